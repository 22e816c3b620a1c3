"""The predictions of a study in a folder: a run folder, or published results."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from dynsnap.errors import FileError
from dynsnap.predictions._keys import FORM, KINDS, MARK, PredictionKey
from dynsnap.predictions._published import LABELS, SCORES, Contents, is_published
from dynsnap.predictions._text import listed, on_one_line, shown


class Address(NamedTuple):
    """One ensemble among published results."""

    folder: Path
    key: PredictionKey

    def __str__(self) -> str:
        return f"{self.folder}{MARK}{self.key}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it is read from."""
        return tuple(path for name in (LABELS, SCORES) if (path := self.folder / name).is_file())


def stored(folder: str | Path) -> dict[PredictionKey, str]:
    """The predictions of a study, and the address of each.

    Args:
        folder: A run folder, or published results.

    Raises:
        FileError: The published results are damaged.
    """
    return {key: f"{folder}{MARK}{key}" for key in sorted(stored_places(Path(folder)))}


def resolve(folder: Path, text: str) -> Path | Address:
    """Where the predictions are that an address names.

    Args:
        folder: The folder in front of the address.
        text: What follows; nothing of it becomes part of a path.
    """
    name = on_one_line(folder)
    if not folder.is_dir():
        raise FileError(
            f"{name} is not a directory, so {shown(text)} names nothing in it. An address is "
            f"{FORM}, with a run folder or published results as FOLDER."
        )
    found = stored_places(folder)
    if not found:
        raise FileError(
            f"{name} holds no predictions of a study. `dynsnap publish RUN {name}` writes them."
        )
    key = PredictionKey.parse(text)
    if key is None:
        raise FileError(
            f"{shown(text)} is no part of an address, which is {FORM}, such as "
            f"{name}{MARK}{min(found)}. {_inside(found)}"
        )
    if key not in found:
        raise FileError(f"{name} has no predictions {key}. {_lacking(key, list(found))}")
    return found[key]


def refuse_study(folder: Path) -> None:
    """Raise for published results, which hold the predictions of many ensembles."""
    if is_published(folder):
        found = stored_places(folder)
        raise FileError(
            f"{on_one_line(folder)} holds the predictions of {len(found):,} ensembles. Name one, "
            f"such as {on_one_line(folder)}{MARK}{min(found)}. {_inside(found)}"
        )


def stored_places(folder: Path) -> dict[PredictionKey, Path | Address]:
    """Where the predictions of a study are: files of a run folder, addresses in other folders."""
    if is_published(folder):
        return {key: Address(folder, key) for key in Contents.listed(folder).keys}
    found: dict[PredictionKey, Path | Address] = {}
    for kind in KINDS:
        place = folder / "predictions" / ("" if kind == "test" else kind)
        for file in sorted(place.glob("[!.]*.parquet")):
            if (key := PredictionKey.of_file(file, kind)) is not None:
                found[key] = file
    return found


def _lacking(key: PredictionKey, found: Sequence[PredictionKey]) -> str:
    """Which part of a key is wrong, and what there is instead."""
    parts: tuple[tuple[str, Callable[[PredictionKey], str]], ...] = (
        ("Predictions", lambda one: one.kind),
        ("Methods", lambda one: one.method),
        ("Combinations", lambda one: one.combination),
        ("Generations", lambda one: f"g{one.generation}"),
        ("Replicates", lambda one: f"r{one.replicate}"),
    )
    left, before = list(found), ""
    for what, part in parts:
        same = [one for one in left if part(one) == part(key)]
        if not same:
            known = sorted({part(one) for one in left}, key=lambda name: (len(name), name))
            of = f" of {before.rstrip('/')}" if before else ""
            return f"{what}{of}: {listed(known, most=20)}."
        left = same
        before += "" if part(key) == "test" else f"{part(key)}/"
    raise AssertionError("the key is there")


def _inside(found: Iterable[PredictionKey]) -> str:
    names = {one.method for one in found}
    return f"Methods: {listed(sorted(names), most=20)}."
