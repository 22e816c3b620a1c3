"""Generations of a classifier side by side: every metric, with intervals and breakdowns."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.comparison._apart import measure_apart
from dynsnap.comparison._compare import Levels, compare, compare_blocks, lined_up, twin_name
from dynsnap.comparison._count import AlignedBlocks, InMemory, ParallelMap
from dynsnap.comparison._display import worst_first
from dynsnap.comparison._flips import flips, flips_format, write_flips
from dynsnap.comparison._json import SCHEMA, to_json
from dynsnap.comparison._results import (
    CONFIDENCE,
    ClassChange,
    Comparison,
    Estimate,
    Estimates,
    FlippedInput,
    Flow,
    GenerationResult,
    GroupKey,
    GroupKind,
    GroupResult,
    LabelledInputs,
    PairResult,
    TransitionCounts,
    UnknownLabels,
    UnstableInput,
)
from dynsnap.comparison._settings import Settings, default_top_k
from dynsnap.comparison.intervals import (
    PairedDifference,
    difference_of_means,
    paired_difference,
)

if not TYPE_CHECKING:  # to type checkers the old name is unknown
    __getattr__ = renamed_functions(__name__, {"RestlessInput": "UnstableInput"})

__all__ = [
    "CONFIDENCE",
    "SCHEMA",
    "AlignedBlocks",
    "ClassChange",
    "Comparison",
    "Estimate",
    "Estimates",
    "FlippedInput",
    "Flow",
    "GenerationResult",
    "GroupKey",
    "GroupKind",
    "GroupResult",
    "InMemory",
    "LabelledInputs",
    "Levels",
    "PairResult",
    "PairedDifference",
    "ParallelMap",
    "Settings",
    "TransitionCounts",
    "UnknownLabels",
    "UnstableInput",
    "compare",
    "compare_blocks",
    "default_top_k",
    "difference_of_means",
    "flips",
    "flips_format",
    "lined_up",
    "measure_apart",
    "paired_difference",
    "to_json",
    "twin_name",
    "worst_first",
    "write_flips",
]
