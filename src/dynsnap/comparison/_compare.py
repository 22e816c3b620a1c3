"""Generations of a classifier side by side."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dynsnap.comparison._assemble import assemble
from dynsnap.comparison._count import AlignedBlocks, InMemory, Spread, count
from dynsnap.comparison._label_sets import refuse_strange_labels, unknown_labels
from dynsnap.comparison._results import CONFIDENCE, Comparison
from dynsnap.comparison._settings import Settings
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, align, names_of_files, read, stream

_TWIN = "noise floor"


def compare(
    *generations: Predictions | str | Path,
    names: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    noise_floor: Predictions | str | Path | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = 1000,
    top_k: Sequence[int] | None = None,
    seed: int = 0,
    minority_share: float = 0.9,
    spread: Spread | None = None,
    families: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Every metric of two or more generations: of each, of each pair, of all together.

    Inputs are matched by id, and compared where all generations have them. What needs scores or
    truth is left out where they are missing, and `notes` says so. Intervals come from resampling
    inputs; they are paired across generations and metrics.

    Args:
        generations: Predictions or files of them, oldest first; many Parquet files that hold a
            generation together as a directory, a pattern or a URI, see `predictions.stream`. Where
            all are files, they need not fit into memory.
        names: What to call the generations. Files are called by their names without ending.
        rename: New names for some classes, in all generations.
        noise_floor: The predictions of the first generation trained again on the same data: how
            much retraining changes by itself.
        confidence: The level of every interval.
        resamples: How many resamples the intervals come from.
        top_k: The k of top-k accuracy and top-k consistency; by default 2 and, with more than 20
            classes, 5.
        seed: Names the resamples; the same seed gives the same intervals.
        minority_share: Majority classes cover this share of the inputs, most frequent first; all
            others are minority classes.
        spread: Has parts of the rows counted by other processes, as `engine.ProcessesMap` and
            `engine.RayMap` do, where all generations are Parquet files. Results are the same.
        families: For slices that are made of whole classes, such as superclasses, the value of
            classes that no input has: of those that do occur, the inputs tell it.

    Raises:
        ComparisonError: The generations share no inputs or contradict each other.
        FileError: A file cannot be read.
        InputError: A generation is neither predictions nor a file.
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
    )
    given = [*generations] if noise_floor is None else [*generations, noise_floor]
    for each in given:
        if not isinstance(each, Predictions | str | Path):
            raise InputError(
                "A generation must be `Predictions` or the name of a file, got "
                f"{type(each).__name__}. Make labels or scores into `Predictions(ids=..., "
                "classes=..., labels=..., truth=...)`."
            )
    titles = _titles(generations, names)
    if noise_floor is not None:
        titles = (*titles, twin_name(titles))
    files = [each for each in given if not isinstance(each, Predictions)]
    with contextlib.ExitStack() as until:
        blocks: AlignedBlocks
        if len(files) == len(given):  # they need not fit into memory
            blocks = until.enter_context(stream(files, names=titles, rename=rename))
        else:
            held = [each if isinstance(each, Predictions) else read(each) for each in given]
            blocks = InMemory(align(*held, names=titles, rename=rename))
        (found,) = compare_blocks(blocks, settings, spread=spread)
    return found


def compare_blocks(
    blocks: AlignedBlocks, settings: Settings | None = None, *, spread: Spread | None = None
) -> list[Comparison]:
    """The same for generations that are lined up already, and need not fit into memory.

    Args:
        blocks: The generations, oldest first, block by block.
        settings: What may be chosen about the comparison.
        spread: Has parts of files counted by other processes.

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
    counted = count(blocks, settings, spread=spread)
    refuse_strange_labels(counted, blocks)
    counted = replace(counted, unknown_labels=unknown_labels(counted, blocks))
    return [
        assemble(counted, level, minority_share=settings.minority_share)
        for level in settings.levels
    ]


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


def _titles(
    generations: Sequence[Predictions | str | Path], names: Sequence[str] | None
) -> tuple[str, ...]:
    if len(generations) < 2:
        raise PlanError(
            f"A comparison needs at least two generations, old before new; got {len(generations)}."
        )
    if names is None:
        names = names_of_files(
            [
                Path(f"generation {place}" if isinstance(each, Predictions) else each)
                for place, each in enumerate(generations, 1)
            ]
        )
    titles = tuple(str(name) for name in names)
    if len(titles) != len(generations):
        raise PlanError(f"There are {len(generations)} generations, but {len(titles)} names.")
    if len(set(titles)) < len(titles) or "" in titles:
        raise PlanError("`names` must be different for each generation, and not empty.")
    return titles
