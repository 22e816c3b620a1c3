"""Generations of a classifier side by side: every metric, with intervals and breakdowns."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.comparison._apart import measure_apart
from dynsnap.comparison._compare import compare, compare_blocks, twin_name
from dynsnap.comparison._count import AlignedBlocks, Spread
from dynsnap.comparison._flips import flips, write_flips
from dynsnap.comparison._json import SCHEMA, to_json
from dynsnap.comparison._results import (
    CONFIDENCE,
    Comparison,
    Estimate,
    Estimates,
    FlippedInput,
    Flow,
    GenerationResult,
    GroupKey,
    GroupKind,
    GroupResult,
    PairResult,
    TransitionCounts,
    UnknownLabels,
    UnstableInput,
)
from dynsnap.comparison._settings import Settings, default_top_k
from dynsnap.comparison._worst import worst_first

if not TYPE_CHECKING:  # to type checkers the old name is unknown
    __getattr__ = renamed_functions(__name__, {"RestlessInput": "UnstableInput"})

__all__ = [
    "CONFIDENCE",
    "SCHEMA",
    "AlignedBlocks",
    "Comparison",
    "Estimate",
    "Estimates",
    "FlippedInput",
    "Flow",
    "GenerationResult",
    "GroupKey",
    "GroupKind",
    "GroupResult",
    "PairResult",
    "Settings",
    "Spread",
    "TransitionCounts",
    "UnknownLabels",
    "UnstableInput",
    "compare",
    "compare_blocks",
    "default_top_k",
    "flips",
    "measure_apart",
    "to_json",
    "twin_name",
    "worst_first",
    "write_flips",
]
