"""The growing data of a study: its plan, and the stream that it gives."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import data
from dynsnap._renamed import with_new_names
from dynsnap.data import GrowthPlan, Pool, Stream
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.study._old_keys import GROWTH


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """Where a study's data comes from, and how it grows.

    Attributes:
        source: The name of a source of `dynsnap.data`.
        path: Where its files are, None for a source that needs none.
        options: Further settings of the source.
        subsample: The share of each class that is used at all, the first rows in file order.
        growth: Settings of `dynsnap.data.GrowthPlan` that differ from the source's own.
    """

    source: str = "digits"
    path: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    subsample: float = 1.0
    growth: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.subsample <= 1:
            raise PlanError(f"`subsample` must be above 0 and at most 1, got {self.subsample}.")


def open_stream(plan: DataPlan) -> tuple[Stream, tuple[str, ...]]:
    """Read a study's data and cut it into generations; with notes on how it was read.

    Example:
        >>> stream, notes = open_stream(DataPlan(source="digits"))
        >>> len(stream.generations)
        3
    """
    growth = growth_of(plan)
    found = data.load(plan.source, plan.path, **plan.options)
    train, test = found.train, found.test
    if plan.subsample < 1:
        train = _first_of_each_class(train, plan.subsample)
        test = None if test is None else _first_of_each_class(test, plan.subsample)
    return data.grow(train, growth, test=test), found.notes


def growth_of(plan: DataPlan) -> GrowthPlan:
    """How a study's data grows: as its source does, with the changes that the study makes.

    Example:
        >>> growth_of(DataPlan(source="cifar-10", growth={"fractions": [0.5, 0.8, 1.0]})).late
        {'frog': 3}
    """
    known = [field.name for field in dataclasses.fields(GrowthPlan)]
    asked = with_new_names(plan.growth, GROWTH, "[data.growth]")
    for name in asked:
        if name not in known:
            raise PlanError(f"[data.growth] has no setting `{name}`. {did_you_mean(name, known)}")
    start = data.SOURCES.find(plan.source).growth()
    try:
        return dataclasses.replace(start, **asked)
    except (TypeError, AttributeError) as error:
        raise PlanError(f"[data.growth] cannot be used as it stands: {error}.") from error


def _first_of_each_class(pool: Pool, share: float) -> Pool:
    """The first rows of every class, in file order, and at least one."""
    kept = [
        rows[: max(1, round(share * len(rows)))]
        for label in range(len(pool.classes))
        for rows in [np.flatnonzero(pool.labels == label)]
    ]
    return pool.take(np.sort(np.concatenate(kept)))
