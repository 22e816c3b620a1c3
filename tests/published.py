"""Published labels as plain columns, with pyarrow and numpy alone.

No reader of the project's own takes part, so that tests can hold what it computes against them.
"""

import functools
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
