"""Generations of a classifier side by side."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap.comparison._assemble import assemble
from dynsnap.comparison._count import AlignedBlocks, InMemory, ParallelMap, count, task_in
from dynsnap.comparison._label_sets import refuse_strange_labels, unknown_labels
from dynsnap.comparison._results import CONFIDENCE, Comparison
from dynsnap.comparison._settings import Settings
from dynsnap.comparison._slices import WithSlices
from dynsnap.errors import PlanError
from dynsnap.predictions import (
    ColumnNames,
    OneModel,
    Predictions,
    Source,
    Table,
    align,
    as_predictions,
    models_of,
    names_of_files,
    stream,
)
from dynsnap.predictions._frames import refuse_other_kinds
from dynsnap.predictions._predictions import changed
from dynsnap.predictions._slicing import Slicing
from dynsnap.predictions.tasks import Binary, Task, named_alike, tasks_of

_TWIN = "noise floor"


def compare(
    *generations: Predictions | Source,
    names: Sequence[str] | None = None,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    slices: Sequence[str] | Table | str | Path | None = None,
    noise_floor: Predictions | Source | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = 1000,
    top_k: Sequence[int] | None = None,
    seed: int = 0,
    minority_share: float = 0.9,
    parallel: ParallelMap | None = None,
    families: Mapping[str, Mapping[str, str]] | None = None,
    metrics: Collection[str] | None = None,
    task: str | Task | None = None,
    threshold: float | Sequence[float] | None = None,
    positive: str | None = None,
    tolerance: float | None = None,
    truth_tolerance: float | None = None,
    k: int | None = None,
    separator: str | None = None,
) -> Comparison:
    """Every metric of two or more generations: of each, of each pair, of all together.

    Inputs are matched by id, and compared where all generations have them. What needs scores or
    truth is left out where they are missing, and `notes` states it. Intervals come from resampling
    inputs; they are paired across generations and metrics.

    Args:
        generations: Predictions, frames, dicts of arrays or files of them, oldest first, in any
            mixture; see `predictions.read`. Many Parquet files that hold a generation together as a
            directory, a pattern or a URI, see `predictions.stream`. Where none is `Predictions`,
            files need not fit into memory. One table of several models will do, see `columns`.
        names: What to call the generations. Files are called by their names without ending.
        columns: What the columns of frames and files are called: a `ColumnNames`, or a mapping
            such as {"id": "image"}. With `model` or `labels`, each model of a table is a
            generation.
        rename: New names for some classes, in all generations.
        slices: A list of the slices to break results down by, and no others: `region` is a column,
            `age:10` its ten quantile bins, `time:week` the weeks of a time (or `:day`, `:month`),
            and `region*age:4` every combination of two. The first generation with a column sets its
            bins. Or a frame or a file with a column of ids and further columns to break results
            down by; inputs that it lacks are in the slice "(none)". By default, every column with
            at most 50 values.
        noise_floor: The predictions of the first generation trained again on the same data: how
            much retraining changes by itself.
        confidence: The level of every interval.
        resamples: How many resamples the intervals come from.
        top_k: The k of top-k accuracy and top-k consistency; by default 2 and, with more than 20
            classes, 5.
        seed: Names the resamples; the same seed gives the same intervals.
        minority_share: Majority classes cover this share of the inputs, most frequent first; all
            others are minority classes.
        parallel: Has parts of the rows counted by other processes, as `engine.ProcessesMap` and
            `engine.RayMap` do, where all generations are Parquet files. Results are the same.
        families: For slices that are made of whole classes, such as superclasses, the value of
            classes that no input has: of those that do occur, the inputs tell it.
        metrics: Which groups of metrics are measured beside "consistency": "classification"
            (balanced accuracy, F1, log loss, ...) and "ranking" (AUROC, average precision). By
            default the first, and the second up to 200,000 inputs times classes.
        task: What answers are, where they are no classes: "binary", "multilabel", "ranking",
            "regression" or "graded". docs/tasks.md has each of them.
        threshold: Of "binary", from which score the positive class is the label: one for all
            generations, or one for each; of "multilabel" and "graded" likewise.
        positive: Of "binary", the class that the score is of.
        tolerance: Of "regression", by how much two predictions may differ that agree.
        truth_tolerance: Of "regression", by how much one may be off that is right; the same as
            `tolerance` if left out.
        k: Of "ranking", how many places count.
        separator: Of "multilabel" and "ranking", what stands between labels in text.

    Raises:
        ComparisonError: The generations share no inputs or contradict each other.
        FileError: A file cannot be read.
        InputError: A generation is neither predictions nor anything that can be read as such.
        PlanError: A setting does not make sense.

    Example:
        >>> old = Predictions(ids=[1, 2, 3, 4], classes=["cat", "dog"], labels=[0, 1, 1, 0],
        ...                   truth=[0, 1, 0, 0])
        >>> new = Predictions(ids=[1, 2, 3, 4], classes=["cat", "dog"], labels=[0, 0, 0, 0])
        >>> pair = compare(old, new).pairs[0]
        >>> pair.metrics["lost"].value, pair.metrics["gained"].value, pair.transitions.lost
        (0.25, 0.25, 1)
    """
    # Settings first: a misspelt one should not cost the reading of large files.
    settings = Settings(
        confidences=(confidence,),
        resamples=resamples,
        seed=seed,
        top_k=top_k,
        minority_share=minority_share,
        families=families or {},
        twin=noise_floor is not None,
        metrics=metrics,
    )
    chosen = {
        "threshold": threshold,
        "positive": positive,
        "tolerance": tolerance,
        "truth_tolerance": truth_tolerance,
        "k": k,
        "separator": separator,
    }
    with lined_up(
        generations,
        names=names,
        columns=columns,
        rename=rename,
        slices=slices,
        noise_floor=noise_floor,
        task=task,
        settings=chosen,
    ) as blocks:
        (found,) = compare_blocks(blocks, settings, parallel=parallel)
    return found


@contextlib.contextmanager
def lined_up(
    generations: Sequence[Predictions | Source],
    *,
    names: Sequence[str] | None = None,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    slices: Sequence[str] | Table | str | Path | None = None,
    noise_floor: Predictions | Source | None = None,
    task: str | Task | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[AlignedBlocks]:
    """Generations of any kind side by side, block by block; the arguments are those of `compare`.

    The twin comes last, if there is one.
    """
    own = ColumnNames.of(columns)
    chosen = isinstance(slices, list | tuple)
    slicing = Slicing.of(slices) if chosen else None  # type: ignore[arg-type]
    for each in (*generations, *(() if noise_floor is None else (noise_floor,))):
        if not isinstance(each, Predictions | OneModel):
            refuse_other_kinds(each, what="A generation")
    given, titles = _titled(generations, names, own)
    twin = noise_floor is not None
    tasks = tasks_of(task, settings or {}, generations=len(given), twin=twin)
    if noise_floor is not None:
        given, titles = [*given, noise_floor], (*titles, twin_name(titles))
    tables = [each for each in given if not isinstance(each, Predictions)]
    with contextlib.ExitStack() as until:
        blocks: AlignedBlocks
        if len(tables) == len(given):  # they need not fit into memory
            opened = stream(
                tables, names=titles, columns=own, rename=rename, slices=slicing, tasks=tasks
            )
            blocks = until.enter_context(opened)
        else:
            held = [
                as_predictions(each, own, slicing, task=kind)
                for each, kind in zip(given, tasks, strict=True)
            ]
            if slicing is not None:
                slicing.refuse_unmet()
            if isinstance(tasks[0], Binary):
                held = _named_alike(held)
            blocks = InMemory(align(*held, names=titles, rename=rename))
        if slices is not None and not chosen:
            table: Any = slices
            blocks = WithSlices.read(blocks, table, own)
        yield blocks


def compare_blocks(
    blocks: AlignedBlocks, settings: Settings | None = None, *, parallel: ParallelMap | None = None
) -> list[Comparison]:
    """The same for generations that are lined up already, and need not fit into memory.

    Args:
        blocks: The generations, oldest first, block by block.
        settings: What may be chosen about the comparison.
        parallel: Has parts of files counted by other processes.

    Returns:
        A comparison for each level of the settings, all from one pass over the blocks.

    Example:
        >>> said = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> blocks = InMemory(align(said, said))
        >>> found = compare_blocks(blocks, Settings(confidences=[0.8, 0.95]))
        >>> [(each.confidence, each.pairs[0].metrics["churn"].value) for each in found]
        [(0.8, 0.0), (0.95, 0.0)]
    """
    settings = settings or Settings()
    levels = Levels(blocks, settings, parallel=parallel)
    return [levels(each) for each in settings.confidences]


class Levels:
    """Generations that were counted once, with intervals of any level.

    Args:
        blocks: The generations, oldest first, block by block.
        settings: What may be chosen about the comparison.
        parallel: Has parts of files counted by other processes.

    Example:
        >>> said = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> levels = Levels(InMemory(align(said, said)), Settings())
        >>> levels(0.8).confidence
        0.8
    """

    def __init__(
        self, blocks: AlignedBlocks, settings: Settings, *, parallel: ParallelMap | None = None
    ) -> None:
        self._settings = settings
        counted = count(blocks, settings, parallel=parallel)
        if task_in(counted.tally) is None:
            if not settings.known_classes:
                refuse_strange_labels(counted, blocks)
            counted = replace(counted, unknown_labels=unknown_labels(counted, blocks))
        self._counted = counted
        self._made: dict[float, Comparison] = {}

    def __call__(self, confidence: float) -> Comparison:
        """The comparison with intervals of this level."""
        if confidence not in self._made:
            (level,) = replace(self._settings, confidences=(confidence,)).levels
            share = self._settings.minority_share
            self._made[confidence] = assemble(self._counted, level, minority_share=share)
        return self._made[confidence]


def _named_alike(held: list[Predictions]) -> list[Predictions]:
    """Generations of a binary task by the names that the truth of any has for the two classes."""
    if any(len(each.classes) != 2 for each in held):
        return held
    known = [set() if each.truth is None else {*np.unique(each.truth).tolist()} for each in held]
    made_up = [
        [name for place, name in enumerate(each.classes) if place not in own]
        for each, own in zip(held, known, strict=True)
    ]
    names = named_alike([each.classes for each in held], made_up)
    return [changed(each, classes=own) for each, own in zip(held, names, strict=True)]


def twin_name(names: Sequence[str]) -> str:
    """What to call the twin of the first generation: a name that no generation has.

    Example:
        >>> twin_name(["old", "new"]), twin_name(["old", "noise floor"])
        ('noise floor', 'noise floor (twin)')
    """
    name = _TWIN
    while name in names:
        name += " (twin)"
    return name


def _titled(
    generations: Sequence[Predictions | Source], names: Sequence[str] | None, columns: ColumnNames
) -> tuple[list[Predictions | Source], tuple[str, ...]]:
    """The generations, each model of a table for itself, and what to call them."""
    called: list[Path | OneModel] = []
    given: list[Predictions | Source] = []
    for place, each in enumerate(generations, 1):
        title = str(each) if isinstance(each, str | Path | OneModel) else f"generation {place}"
        models: list[OneModel] = []
        if columns.many_models and not isinstance(each, Predictions | OneModel):
            models = models_of(each, columns, name=title)
        given += models if models else (each,)
        own = each if isinstance(each, OneModel) else Path(title)
        called += models if models else (own,)
    if len(given) < 2:
        raise PlanError(
            f"A comparison needs at least two generations, old before new; got {len(given)}."
        )
    generations = given
    titles = tuple(str(name) for name in (names_of_files(called) if names is None else names))
    if len(titles) != len(generations):
        raise PlanError(f"There are {len(generations)} generations, but {len(titles)} names.")
    if len(set(titles)) < len(titles) or "" in titles:
        raise PlanError("`names` must be different for each generation, and not empty.")
    return given, titles
