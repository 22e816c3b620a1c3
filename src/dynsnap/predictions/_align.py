"""Several predictions side by side: the same inputs, in one order, over one list of classes."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from dynsnap.errors import ComparisonError, InputError
from dynsnap.predictions._classes import labels_follow, reorders, union_of, with_classes
from dynsnap.predictions._digest import IN_MEMORY, Verification
from dynsnap.predictions._join import Common, join
from dynsnap.predictions._keys import name_of
from dynsnap.predictions._models import OneModel
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._same import Same, same_arrays
from dynsnap.predictions._text import listed

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentReport:
    """What joining several predictions by id found.

    Attributes:
        names: What each generation is called.
        rows: Inputs of each generation.
        shared: Ids that all of them have, and that everything is compared on.
        missing: For each generation, how many ids it lacks that another one has.
        examples: For each generation, up to five of the ids that it lacks, as text.
        same_order: Whether the shared ids come in one order everywhere.
        verification: For each generation, whether it was read as it was written; empty where
            predictions were handed over in memory.
        weights_of: The generations that have weights; those of the first are used.
        truth_of: The generations that have the truth.
        truth_gaps: Whether each of those has inputs without it.
        slices_of: For each slice column, the generations that have it; the first one's is used.
        same: The generations that are one: the same file, or the same arrays in memory.
        files: Where each generation was read from; empty for predictions in memory.

    Example:
        >>> report = AlignmentReport(names=("old", "new"), rows=(4, 3), shared=3, missing=(0, 1),
        ...                          examples=((), ("17",)), same_order=True)
        >>> report.missing_share
        0.25
        >>> report.sentence()
        'Compared on the 3 ids that all share, of 4 in all: new lacks 1 id ("17").'
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    shared: int
    missing: tuple[int, ...]
    examples: tuple[tuple[str, ...], ...]
    same_order: bool
    verification: tuple[Verification, ...] = field(default=(), compare=False, repr=False)
    weights_of: tuple[str, ...] = field(default=(), repr=False)
    truth_of: tuple[str, ...] = field(default=(), repr=False)
    truth_gaps: bool = field(default=False, repr=False)
    slices_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    same: tuple[Same, ...] = field(default=(), compare=False, repr=False)
    files: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def total(self) -> int:
        """Ids that at least one generation has."""
        return self.rows[0] + self.missing[0]

    @property
    def partial(self) -> bool:
        """Whether some id is missing somewhere."""
        return any(self.missing)

    @property
    def missing_share(self) -> float:
        """The largest share of all ids that one generation lacks; 0 when all cover the same."""
        return max(self.missing) / self.total

    @property
    def verified(self) -> dict[str, Verification]:
        """Whether each generation was read as it was written."""
        every = self.verification or (IN_MEMORY,) * len(self.names)
        return dict(zip(self.names, every, strict=True))

    def sentence(self) -> str:
        """The finding for people."""
        if not self.partial:
            order = "in the same order" if self.same_order else "in another order"
            return f"All {self.shared:,} ids are shared, {order}."
        lacks = [
            f"{name} lacks {count:,} {'id' if count == 1 else 'ids'} ({_some(count, examples)})"
            for name, count, examples in zip(self.names, self.missing, self.examples, strict=True)
            if count
        ]
        return (
            f"Compared on the {self.shared:,} ids that all share, of {self.total:,} in all: "
            f"{'; '.join(lacks)}."
        )


def _some(count: int, examples: tuple[str, ...]) -> str:
    return listed(examples) if count <= len(examples) else f"such as {listed(examples)}"


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
    refuse_other_tasks(titles, [each.task for each in predictions])
    rename = rename or {}
    classes = union_of([each.classes for each in predictions], rename, task=predictions[0].task)

    found = join([each.id_column for each in predictions])
    if not found.shared:
        refuse_disjoint_ids(titles, [each.id_column for each in predictions])
    report = AlignmentReport(
        names=titles,
        rows=tuple(len(each) for each in predictions),
        shared=found.shared,
        missing=found.missing,
        examples=tuple(tuple(lost.id for lost in some) for some in found.lacking),
        same_order=found.same_order,
        weights_of=named(titles, [each.weights is not None for each in predictions]),
        truth_of=named(titles, [each.truth is not None for each in predictions]),
        truth_gaps=gaps_in(
            [(each.truth is not None, bool(each.unlabelled)) for each in predictions]
        ),
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


def refuse_other_tasks(titles: Sequence[str], tasks: Sequence["Task | None"]) -> None:
    """Raise unless all generations answer the same kind of question."""
    kinds = ["classification" if task is None else task.name for task in tasks]
    for title, kind in zip(titles, kinds, strict=True):
        if kind != kinds[0]:
            raise ComparisonError(
                f"{listed(titles[:1])} was read for the task {kinds[0]}, and {listed([title])} for "
                f"the task {kind}. Read both for one task."
            )


def named(titles: Sequence[str], chosen: Sequence[bool]) -> tuple[str, ...]:
    """The names of some generations.

    Example:
        >>> named(["old", "new"], [False, True])
        ('new',)
    """
    return tuple(itertools.compress(titles, chosen))


def gaps_in(generations: Iterable[tuple[bool, bool]]) -> bool:
    """Whether no generation has the truth of all its inputs, but one has that of some.

    Args:
        generations: Of each, whether it has any truth, and whether some inputs have none.
    """
    gaps = [gaps for has_truth, gaps in generations if has_truth]
    return bool(gaps) and all(gaps)


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


def names_of_files(files: Sequence[Path | OneModel]) -> tuple[str, ...]:
    """What distinguishes files: their names without ending, else with their folders, else a number.

    A pattern of files is called by its folder, an address by its method and generation, a model of
    a table by its own name.

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

    paths = [each for each in files if not isinstance(each, OneModel)]
    if len(paths) < len(files):  # "v1.5" has no ending, and "a/b" no folder
        rest = iter(names_of_files(paths) if paths else ())
        named = tuple(each.model if isinstance(each, OneModel) else next(rest) for each in files)
        if len(set(named)) == len(named):
            return named
        paths = [Path(str(each)) for each in files]

    def last(parts: int) -> Callable[[Path], str]:
        return lambda file: str(Path(*file.with_suffix("").parts[-parts:]))

    longest = max(len(file.parts) for file in paths)
    ways: list[Callable[[Path], str]] = [
        lambda file: name_of(file.parent if "*" in file.name else file),
        *map(last, range(1, longest + 1)),
        str,
    ]
    for way in ways:
        found = tuple(way(file) for file in paths)
        if len(set(found)) == len(found):
            return found
    return tuple(f"{file} ({place})" for place, file in enumerate(paths, 1))


def refuse_disjoint_ids(titles: Sequence[str], ids: Sequence[pa.Array]) -> NoReturn:
    """Say that generations share no id, and show some of each."""
    some = [
        f"{title} has {listed(column[:3].to_pylist())}"
        for title, column in zip(titles, ids, strict=True)
    ]
    counted = [title for title, column in zip(titles, ids, strict=True) if _counts_rows(column)]
    advice = "compare predictions with the same ids."
    if counted and len(counted) < len(titles):
        advice = (
            f"those of {listed(counted)} only count its rows. Is the index of a frame used as id "
            "by mistake? Name the column of ids (`id=`, `--id-column`)."
        )
    raise ComparisonError(
        f"No id occurs in all of {listed(titles)}: {'; '.join(some)}. They are of different "
        f"inputs, or name them differently: {advice}"
    )


def _counts_rows(ids: pa.Array) -> bool:
    """Whether ids are 0, 1, 2 and so on, as far as they are seen."""
    some = [str(each) for each in ids[:3].to_pylist()]
    return some == [str(place) for place in range(len(some))]
