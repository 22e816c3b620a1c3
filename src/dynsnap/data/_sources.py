"""Every source under the name that study files call it by."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dynsnap.data._arrays import read_npz
from dynsnap.data._cifar import read_cifar10, read_cifar100
from dynsnap.data._dataset import DataSet
from dynsnap.data._digits import digits
from dynsnap.data._images import read_images
from dynsnap.data._jsonl import read_jsonl
from dynsnap.data._newsgroups import read_newsgroups
from dynsnap.data._tables import read_table
from dynsnap.data._text_csv import read_ag_news, read_text_csv, read_yahoo_answers
from dynsnap.errors import PlanError, did_you_mean

SOURCES: Mapping[str, Callable[..., DataSet]] = {
    "digits": digits,
    "cifar-10": read_cifar10,
    "cifar-100": read_cifar100,
    "yahoo-answers": read_yahoo_answers,
    "ag-news": read_ag_news,
    "20-newsgroups": read_newsgroups,
    "npz": read_npz,
    "table": read_table,
    "images": read_images,
    "text-csv": read_text_csv,
    "jsonl": read_jsonl,
}


def load(name: str, path: str | Path | None = None, **options: Any) -> DataSet:
    """A data set by the name of its source, with the options of that source's own function.

    Example:
        >>> len(load("digits").train)
        1797
    """
    if name not in SOURCES:
        raise PlanError(f"There is no data source {name!r}. {did_you_mean(str(name), SOURCES)}")
    read = SOURCES[name]
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
