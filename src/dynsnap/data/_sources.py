"""Every source under the name that study files call it by."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dynsnap._registry import Registry
from dynsnap.data._arrays import read_npz
from dynsnap.data._cifar import read_cifar10, read_cifar100
from dynsnap.data._dataset import DataSet
from dynsnap.data._digits import digits, digits_growth
from dynsnap.data._flights import flights_growth, read_flights
from dynsnap.data._growth import GrowthPlan
from dynsnap.data._images import read_images
from dynsnap.data._newsgroups import read_newsgroups
from dynsnap.data._paper import (
    cifar10_growth,
    cifar100_growth,
    newsgroups_growth,
    yahoo_growth,
)
from dynsnap.data._tables import read_table
from dynsnap.data._texts import read_ag_news, read_jsonl, read_text_csv, read_yahoo_answers
from dynsnap.data._time import TimeGrowth
from dynsnap.errors import PlanError, did_you_mean

Read: TypeAlias = Callable[..., DataSet]
Growth: TypeAlias = Callable[[], GrowthPlan | TimeGrowth]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where data comes from.

    Attributes:
        read: Reads it. Its first parameter is `path`, where it has one; the others are options.
        growth: How it grows in a study that does not say so.
        texts: Whether its inputs are always texts.
    """

    read: Read
    growth: Growth = GrowthPlan
    texts: bool = False


SOURCES: Registry[Source] = Registry(
    "data source",
    {
        "digits": Source(read=digits, growth=digits_growth),
        "cifar-10": Source(read=read_cifar10, growth=cifar10_growth),
        "cifar-100": Source(read=read_cifar100, growth=cifar100_growth),
        "yahoo-answers": Source(read=read_yahoo_answers, growth=yahoo_growth, texts=True),
        "ag-news": Source(read=read_ag_news, texts=True),
        "20-newsgroups": Source(read=read_newsgroups, growth=newsgroups_growth, texts=True),
        "flights": Source(read=read_flights, growth=flights_growth),
        "npz": Source(read=read_npz),
        "table": Source(read=read_table),
        "images": Source(read=read_images),
        "text-csv": Source(read=read_text_csv, texts=True),
        "jsonl": Source(read=read_jsonl, texts=True),
    },
)


def register_source(
    name: str,
    read: Read,
    *,
    growth: Growth = GrowthPlan,
    texts: bool = False,
) -> None:
    """Make a source known in this process: `load` and studies then have it.

    Args:
        name: What [data] `source` calls it.
        read: Reads it. Its first parameter is `path`, where it has one; the others are options.
        growth: How it grows in a study that does not say so.
        texts: Whether its inputs are always texts.
    """
    SOURCES.add(name, Source(read=read, growth=growth, texts=texts))


def load(name: str, path: str | Path | None = None, **options: Any) -> DataSet:
    """A data set by the name of its source, with the options of that source's own function.

    Example:
        >>> len(load("digits").train)
        1797
    """
    read = SOURCES.find(name).read
    known = inspect.signature(read).parameters
    for option in options:
        if option not in known or option == "path":
            others = [word for word in known if word != "path"]
            raise PlanError(
                f"The data source {name!r} has no option {option!r}. "
                + (did_you_mean(option, others) if others else "It has none.")
            )
    if "path" not in known:
        if path is not None:
            raise PlanError(f"The data source {name!r} comes with its library and takes no path.")
        return read(**options)
    if path is None and known["path"].default is inspect.Parameter.empty:
        raise PlanError(f"The data source {name!r} needs a path.")
    return read(path, **options)
