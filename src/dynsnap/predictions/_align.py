"""Several predictions side by side: the same inputs, in one order, over one list of classes."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from dynsnap.errors import ComparisonError, InputError
from dynsnap.predictions._classes import labels_follow, reorders, union_of, with_classes
from dynsnap.predictions._join import join
from dynsnap.predictions._join_common import Common
from dynsnap.predictions._keys import name_of
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._report import AlignmentReport
from dynsnap.predictions._same import same_arrays
from dynsnap.predictions._text import listed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """Predictions of the same inputs, in one order, over the same classes.

    Truth, slices and weights are the same in every generation, whichever brought them.
    """

    generations: tuple[Predictions, ...]
    classes: tuple[str, ...]
    report: AlignmentReport


def align(
    *predictions: Predictions,
    names: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Aligned:
    """Line predictions up by id, on the ids that all of them share, in the order of the first.

    Whole-number ids and text ids are compared as text. Classes become the union of all, those of
    the first in front; scores of a class that a model does not know are zero. Truth comes from any
    generation that has it, slices and weights from the first that has them. Where nothing needs to
    be changed, nothing is copied.

    Args:
        predictions: Generations, oldest first.
        names: What to call them in reports and messages.
        rename: New names for some classes, in all generations. Two classes of one generation that
            get one name become one class, with their scores added up.

    Raises:
        ComparisonError: No id is shared, or two generations contradict each other in the truth or
            in the weight of an input.
        PlanError: `rename` names a class that no generation has.

    Example:
        >>> old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> new = Predictions(ids=[3, 2, 1], classes=["dog", "eel"], labels=["eel", "dog", "eel"])
        >>> both = align(old, new, names=["old", "new"])
        >>> both.classes, both.generations[1].labels.tolist()
        (('cat', 'dog', 'eel'), [2, 1])
        >>> both.report.sentence()
        'Compared on the 2 ids that all share, of 3 in all: old lacks 1 id ("3").'
    """
    if not predictions:
        raise InputError("There is nothing to align. Hand in at least one set of predictions.")
    titles = titles_of(names, len(predictions))
    rename = rename or {}
    classes = union_of([each.classes for each in predictions], rename)

    found = join([each.id_column for each in predictions])
    if not found.shared:
        refuse_strangers(titles, [each.id_column for each in predictions])
    report = AlignmentReport(
        names=titles,
        rows=tuple(len(each) for each in predictions),
        shared=found.shared,
        missing=found.missing,
        examples=tuple(tuple(lost.id for lost in some) for some in found.lacking),
        same_order=found.same_order,
        weights_of=named(titles, [each.weights is not None for each in predictions]),
        truth_of=named(titles, [each.truth is not None for each in predictions]),
        slices_of=holders_of(titles, [each.slices for each in predictions]),
        same=tuple(same_arrays(titles, predictions)),
    )
    lined_up = [
        with_classes(
            each if rows is None else each.take(rows),
            classes,
            rename=rename,
            follow=reorders(each.classes, classes, rename) and labels_follow(each),
        )
        for each, rows in zip(predictions, found.rows, strict=True)
    ]
    common = Common(titles)
    generations = common.add(lined_up, id_column=lined_up[0].id_column)
    common.refuse_contradictions()
    return Aligned(generations=generations, classes=classes, report=report)


def titles_of(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """What generations are called in reports and messages."""
    titles = tuple(names or (f"generation {place + 1}" for place in range(count)))
    if len(titles) != count:
        raise InputError(f"There are {count} predictions, but {len(titles)} names.")
    return titles


def named(titles: Sequence[str], chosen: Sequence[bool]) -> tuple[str, ...]:
    """The names of some generations.

    Example:
        >>> named(["old", "new"], [False, True])
        ('new',)
    """
    return tuple(itertools.compress(titles, chosen))


def holders_of(
    titles: Sequence[str], columns: Sequence[Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """For each column that any generation has, the names of those that have it.

    Example:
        >>> holders_of(["old", "new"], [["hour"], ["hour", "region"]])
        {'hour': ('old', 'new'), 'region': ('new',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for title, own in zip(titles, columns, strict=True):
        for name in own:
            found[name] = (*found.get(name, ()), title)
    return found


def names_of_files(files: Sequence[Path]) -> tuple[str, ...]:
    """What tells files apart: their names without ending, else with their folders, else a number.

    A pattern of files is called by its folder, an address by its method and generation.

    Example:
        >>> names_of_files([Path("monday.csv"), Path("tuesday.csv")])
        ('monday', 'tuesday')
        >>> names_of_files([Path("1/preds.csv"), Path("2/preds.csv")])
        ('1/preds', '2/preds')
        >>> names_of_files([Path("old/*.parquet"), Path("new/*.parquet")])
        ('old', 'new')
        >>> names_of_files([Path("/runs/1/all/preds.csv"), Path("/runs/2/all/preds.csv")])
        ('1/all/preds', '2/all/preds')
    """

    def last(parts: int) -> Callable[[Path], str]:
        return lambda file: str(Path(*file.with_suffix("").parts[-parts:]))

    longest = max(len(file.parts) for file in files)
    ways: list[Callable[[Path], str]] = [
        lambda file: name_of(file.parent if "*" in file.name else file),
        *map(last, range(1, longest + 1)),
        str,
    ]
    for way in ways:
        found = tuple(way(file) for file in files)
        if len(set(found)) == len(found):
            return found
    return tuple(f"{file} ({place})" for place, file in enumerate(files, 1))


def refuse_strangers(titles: Sequence[str], ids: Sequence[pa.Array]) -> NoReturn:
    """Say that generations share no id, and show some of each."""
    some = [
        f"{title} has {listed(column[:3].to_pylist())}"
        for title, column in zip(titles, ids, strict=True)
    ]
    raise ComparisonError(
        f"No id occurs in all of {listed(titles)}: {'; '.join(some)}. They are of different "
        "inputs, or name them differently: compare predictions with the same ids."
    )
