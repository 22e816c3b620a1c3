"""One network of an ensemble, and how much of the ensemble's gain is left."""

from dynsnap.study.distilling._distill import Distilled, distill
from dynsnap.study.distilling._distilled import Remains
from dynsnap.study.distilling._plan import SECONDS, UNTAUGHT, DistillPlan, Second

__all__ = [
    "SECONDS",
    "UNTAUGHT",
    "DistillPlan",
    "Distilled",
    "Remains",
    "Second",
    "distill",
]
