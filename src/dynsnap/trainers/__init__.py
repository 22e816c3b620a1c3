"""The registry of trainers: estimator and commands ask here for whatever trains a model.

`Backend` is what an adapter implements. dynsnap has two, "torch" and "boost"; another package
provides its own by an entry point in the group `dynsnap.trainers`, which is imported only when the
caller names it.
"""

from dynsnap.trainers._backend import (
    SETTINGS,
    Backend,
    NotInstalledError,
    ScoreMembers,
    needed,
    score_by_classes,
)
from dynsnap.trainers._registry import (
    BACKENDS,
    GROUP,
    for_model,
    named,
    names,
    register,
    saved_by,
    trainer_name,
)

__all__ = [
    "BACKENDS",
    "GROUP",
    "SETTINGS",
    "Backend",
    "NotInstalledError",
    "ScoreMembers",
    "for_model",
    "named",
    "names",
    "needed",
    "register",
    "saved_by",
    "score_by_classes",
    "trainer_name",
]
