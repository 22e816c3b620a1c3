"""Whether two generations are one: the same file by two paths, or the same arrays in memory."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import FileError
from dynsnap.predictions._locate import files_of, locate
from dynsnap.predictions._models import OneModel
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._stored import Address
from dynsnap.predictions._stream_file import Source


class Same(NamedTuple):
    """Two generations that come from one source.

    Attributes:
        first: What the earlier one is called.
        second: What the later one is called.
        what: The source, for people.
    """

    first: str
    second: str
    what: str


def same_files(names: Iterable[str], places: Iterable[Source | None]) -> Iterator[Same]:
    """The places that have a file in common, by whatever path, each two once.

    Args:
        names: What the places are called.
        places: Where predictions are, or tables of them; None for one that is not there.
    """
    owners: dict[object, tuple[str, object]] = {}
    met: set[tuple[str, str]] = set()
    for role, place in zip(names, places, strict=True):
        if place is None:
            continue
        with contextlib.suppress(FileError, OSError):  # the reader reports it
            for identity, file in _identities(place):
                owner, name = owners.setdefault(identity, (role, file))
                if owner != role and (owner, role) not in met:
                    met.add((owner, role))
                    if file is None:
                        yield Same(owner, role, "the same table in memory")
                        continue
                    also = f" is {name}" if str(file) != str(name) else ""
                    yield Same(owner, role, f"the same file: {file}{also}")


def same_arrays(names: Sequence[str], generations: Sequence[Predictions]) -> Iterator[Same]:
    """The generations that hold the very same arrays, each two once."""
    for later, new in enumerate(generations):
        for earlier, old in enumerate(generations[:later]):
            if old is new or _one_model(old, new):
                yield Same(names[earlier], names[later], "the same predictions in memory")


def _one_model(old: Predictions, new: Predictions) -> bool:
    """Whether what two generations say is one array: labels, or scores and the labels of them."""
    if old.values is not None:
        return _one_memory(old.values, new.values)
    if old.scores is None and new.scores is None:
        return _one_memory(old.labels, new.labels)
    return _one_memory(old.scores, new.scores) and np.array_equal(old.labels, new.labels)


def _one_memory(one: AnyArray | None, other: AnyArray | None) -> bool:
    """Whether two arrays are one. Columns of one table interleave, and are two all the same."""
    return one is not None and other is not None and _extent(one) == _extent(other)


def _extent(array: AnyArray) -> tuple[object, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _identities(place: Source) -> Iterator[tuple[object, object]]:
    """What two paths have in common that lead to one file: links, hard or not, do not matter."""
    if isinstance(place, OneModel):  # several are in one table
        own = place.column if place.wide else place.model
        for identity, file in _identities(place.source):
            yield (identity, own), file
        return
    if not isinstance(place, str | Path):
        yield id(place), None
        return
    found = locate(place)
    if isinstance(found, Address):  # many generations share its files
        yield (*_inode(found.files[0]), found.key), found
        return
    for file in files_of(found):
        yield (file if isinstance(file, str) else _inode(file)), file


def _inode(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_dev, about.st_ino
