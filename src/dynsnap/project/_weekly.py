"""The demo: flights of 2013 that arrive week by week in a project."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dynsnap import _files
from dynsnap.project._rows import flights_table
from dynsnap.project._settings import FILE, DataSettings
from dynsnap.project._template import RULES

_MONDAY = date(2013, 1, 7)  # the first of the year; flights before it are in the first file
_BEFORE = 5  # weeks before the first retrain
_PROJECT = """\
# Flights from New York in 2013: how late each arrives, from what is known before it departs.
# `dynsnap demo weekly` wrote this, and lets a file arrive in data/ every week.
name = "flights"

[data]
path = "data"
cadence = "week"
label_delay = "0 days"
test_size = 0.2
test_periods = 4

[retrain]
method = "single-warm"  # adds trees to the deployed model
epochs = {trees}
retraining = {{ epochs_share = 0.2 }}  # a fifth of the trees of the first training

[model]
name = "lightgbm"
n_jobs = 1

[gate]
rules = "gate.toml"
"""


@dataclass(frozen=True, slots=True)
class ArrivedWeek:
    """A week whose rows have arrived: the day that is taken for today, and the rows so far."""

    until: datetime
    rows: int


def flights_project(folder: Path, *, weeks: int, trees: int = 60) -> Iterator[ArrivedWeek]:
    """Set up a project of flights, and let the rows of one more week arrive with every step.

    Args:
        folder: The project; one that was begun goes on.
        weeks: How many weeks are retrained on.
        trees: Boosting iterations of a training from scratch.
    """
    table = flights_table(DataSettings(source="flights"))
    days = np.asarray(table.column("time").cast(pa.int64()).to_numpy()).astype("datetime64[us]")
    with _files.together():
        _files.make_folder(folder / "data")
        for name, text in ((FILE, _PROJECT.format(trees=trees)), ("gate.toml", RULES)):
            if not (folder / name).exists():
                _files.write_text(folder / name, text)
    start, arrived = None, 0
    for number in range(_BEFORE, _BEFORE + weeks):
        end = _MONDAY + timedelta(weeks=number)
        fresh = days < np.datetime64(end, "us")
        if start is not None:
            fresh &= days >= np.datetime64(start, "us")
        file = folder / "data" / f"until-{end}.parquet"
        if not file.exists():
            with _files.replacing(file) as aside:
                pq.write_table(table.filter(pa.array(fresh)), aside)
        start, arrived = end, arrived + int(fresh.sum())
        yield ArrivedWeek(datetime.combine(end, datetime.min.time()), arrived)
