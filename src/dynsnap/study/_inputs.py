"""The inputs that a reader will want to see: kept with a study, so that its page needs no data."""

from pathlib import Path

import numpy as np

from dynsnap import data, predictions
from dynsnap.comparison import Comparison, compare
from dynsnap.data import Stream
from dynsnap.study._plan import StudyPlan
from dynsnap.study._views import Shelf, generations_of

INPUTS = "inputs.npz"
SHOWN = 200  # lost inputs of each retrain, and as many that change again and again


def shown_ids(found: Comparison) -> set[str]:
    """The ids that a page shows of a comparison."""
    lost = {one.id for pair in found.pairs for one in pair.flipped[:SHOWN]}
    return lost | {one.id for one in found.restless[:SHOWN]}


def write_inputs(plan: StudyPlan, stream: Stream, shelf: Shelf, path: Path) -> None:
    """Keep small versions of the test inputs that methods lost, where there is something to see.

    Of the first replicate. Images are shrunk and texts cut: a few megabytes, whatever the data.
    """
    test = stream.evaluation["test"]
    if not data.excerpts(test.inputs[:1], test.ids[:1]):
        return
    how = "average" if "average" in plan.combinations else plan.combinations[0]
    wanted: set[str] = set()
    for method in plan.methods:
        line = generations_of(plan, method, len(stream.generations), 0)
        files = [shelf.path(one, how) for one in line]
        if not all(file.exists() for file in files):
            continue  # its rounds are not all there
        said = [predictions.read(file) for file in files]
        wanted |= shown_ids(
            compare(*said, names=[str(one.generation) for one in line], resamples=1)
        )
    names = test.ids.astype(str)
    rows = np.flatnonzero(np.isin(names, list(wanted)))
    if len(rows):
        data.write_excerpts(path, data.excerpts(test.inputs[rows], names[rows]))
