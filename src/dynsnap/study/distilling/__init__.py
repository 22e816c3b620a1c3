"""Distil an ensemble into one network, and measure how much of the ensemble's gain is left."""

from dynsnap.study.distilling._distill import Distilled, RetainedGain, distill
from dynsnap.study.distilling._students import (
    SECOND_TEACHERS,
    UNTAUGHT,
    DistillPlan,
    SecondTeacher,
    control_of,
)

__all__ = [
    "SECOND_TEACHERS",
    "UNTAUGHT",
    "DistillPlan",
    "Distilled",
    "RetainedGain",
    "SecondTeacher",
    "control_of",
    "distill",
]
