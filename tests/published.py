"""Published labels as plain columns, and differences between them, with pyarrow, numpy and scipy.

Nothing of the project's own takes part, so that tests can hold what it computes against them.
"""

import functools
import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

RESULTS = Path(__file__).parents[1] / "results"


def with_seeds(study):
    """The folder of a study, and those of its further seeds."""
    return [RESULTS / study, *sorted(RESULTS.glob(f"{study}-20[0-9][0-9]"))]


def _holds_classes(name):
    return name == "truth" or name.count("/") == 3


@functools.cache
def classes(folder):
    """The names of the classes, whose places in this list are their numbers."""
    table = pq.read_table(folder / "labels.parquet")
    found = set()
    for name in filter(_holds_classes, table.column_names):
        found |= set(pc.unique(table.column(name)).to_pylist())
    return sorted(found)


@functools.cache
def columns(folder, inputs=None):
    """The columns of `labels.parquet`: truth and labels as numbers, one for each class.

    Args:
        folder: The published results.
        inputs: Of these inputs alone, "test" or "late".
    """
    table = pq.read_table(folder / "labels.parquet")
    known = pa.array(classes(folder))
    found = {}
    for name in table.column_names:
        column = table.column(name)
        if _holds_classes(name):
            found[name] = pc.index_in(column.cast(pa.string()), value_set=known).to_numpy()
        else:
            found[name] = column.to_numpy()
    if inputs is None:
        return found
    return {name: column[found["inputs"] == inputs] for name, column in found.items()}


@functools.cache
def generations(study):
    """How many there are, by the columns of its published labels; three if there are none."""
    if not (RESULTS / study / "labels.parquet").is_file():
        return 3
    names = columns(RESULTS / study, "test")
    return max(int(found[1]) for name in names if (found := re.search(r"/g(\d+)/", name)))


@functools.cache
def values(study, method, metric):
    """A metric of every input, by seed and replicate, of a study and of its further seeds.

    Args:
        study: The study.
        method: The method; "never-retrain-NAME" is the first generation of NAME, kept.
        metric: "ACC", "CON", "ACC-CON", "lost" (per retrain), "lost in all pairs", "new" (class),
            or the number of a generation for its accuracy.
    """
    found, kept = {}, method.removeprefix("never-retrain-")
    numbers = [n if kept == method else 1 for n in range(1, generations(study) + 1)]
    for folder in with_seeds(study):
        of = columns(folder, "late" if metric == "new" else "test")
        for first in (name for name in of if name.startswith(f"{kept}/average/g1/r")):
            keys = [first.replace("/g1/", f"/g{number}/") for number in numbers]
            if set(keys) <= set(of):
                r = int(first.rpartition("/r")[2])
                said = [of[key] for key in keys]
                found[folder.name.removeprefix(study), r] = _metric(said, of["truth"], metric)
    return found


def _metric(said, truth, metric):
    right = [one == truth for one in said]
    if metric == "CON":
        each = [a == b for a, b in combinations(said, 2)]
    elif metric == "ACC-CON":
        each = [a & b for a, b in combinations(right, 2)]
    elif metric in ("lost", "lost in all pairs"):
        pairs = pairwise(right) if metric == "lost" else combinations(right, 2)
        each = [a & ~b for a, b in pairs]
    elif metric == "ACC":
        each = right
    else:
        return right[-1 if metric == "new" else metric - 1]
    return np.mean(each, axis=0)


def each(study, method, metric):
    """The mean of a metric over inputs, in percent, by seed and replicate."""
    return {key: 100 * one.mean() for key, one in values(study, method, metric).items()}


def by_replicate(study, method):
    """ACC, CON, ACC-CON, what is lost per retrain, and the new class: percent, by replicate."""
    metrics = ("ACC", "CON", "ACC-CON", "lost", "new")
    return np.array([[*each(study, method, metric).values()] for metric in metrics]).T


def interval(mine, other):
    """Mean and interval of a difference over inputs and replicates, in points."""
    value, low, high, _ = gap(mine, other)
    return value, low, high


def gap(mine, other):
    """The same, and the difference that would have been seen four times out of five."""
    each = np.stack(mine).astype(float) - np.stack(other)
    r, n = each.shape
    padded = np.concatenate([each, np.zeros((r, 2))], axis=1)
    padded[0, -2:] = 1, -1
    a = padded.mean(0).var(ddof=1) / (n + 2)
    total, weights = a, [(1.0, n + 1)]
    if r > 1:
        b = padded.mean(1).var(ddof=1) / r
        rest = padded - padded.mean(0) - padded.mean(1)[:, None] + padded.mean()
        both = (rest**2).sum() / ((r - 1) * (n + 1)) / padded.size
        total = max(a + b - both, a, b)
        weights = [(a / (a + b), n + 1), (b / (a + b), r - 1)]

    def half(share):
        return np.sqrt(total) * sum(part * stats.t.ppf(share, free) for part, free in weights)

    value, middle = each.mean(), padded.mean()
    # The interval holds the mean: the two further inputs may move its centre off it.
    low = max(min(middle - half(0.975), value), -1)
    high = min(max(middle + half(0.975), value), 1)
    return tuple(100 * one for one in (value, low, high, min(half(0.975) + half(0.8), 1)))


def apart(study, method, other, metrics=(2, 3)):
    """A metric of a method minus that of another, in points; of several metrics the mean.

    Over the replicates of all seeds that have both. The other "itself" is the method's own first
    generation, never retrained.
    """
    mine = [values(study, method, metric) for metric in metrics]
    theirs = [values(study, other, metric) for metric in metrics if other != "itself"]
    theirs = theirs or [values(study, method, 1)]
    both = [key for key in mine[0] if key in theirs[0]]
    return interval(
        *([np.mean([one[key] for one in side], axis=0) for key in both] for side in (mine, theirs))
    )


def signed(values, places=1):
    """A difference and its interval as sentences tell them."""
    value, low, high = (f"{one:+.{places}f}" for one in values)
    return f"{value}, {low} to {high}"


def cell_of(mine, other):
    """A difference as the pages tell it; one replicate says nothing of other seeds."""
    value, low, high = interval(mine, other)
    covered = ", inputs alone" if len(mine) == 1 else ""
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f}{covered})"
