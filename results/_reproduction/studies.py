"""The studies of the page, the paper's and our own, and their rows."""

# ruff: noqa: E501  lines of the page are longer than lines of code

import csv
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import _seeds
from dynsnap.comparison import PairedDifference
from dynsnap.comparison.intervals import student_quantile
from dynsnap.study import MethodLabels, Row, SweepRow

MAIN = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
METHODS = ("singlebase", "extbagging", "mcdropout", "snapshot", "dynsnap-cyc", "dynsnap-step")
NOT_RUN = "not run yet"
# Points: twice what the difference of two methods varies by from replicate to replicate on CIFAR-10
# (its standard deviation is at most 0.55), where there are no replicates.
DOUBT = 1.0
UNCLEAR = "no clear difference"
BY_INPUTS = "clear for these inputs, but within one point"  # of one replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A folder of results, and what the paper calls the same."""

    folder: str
    title: str
    paper: str | None = None  # its name in paper.csv
    unlike: str = ""  # how it differs from the paper
    again: bool = False  # whether all but ExtBagging's rows are of the rounds of another study
    # Points that ACC, CON and ACC-CON may lie off the paper's: of singlebase on either side, of
    # dynsnap-cyc below.
    singlebase: tuple[float, float, float] | None = None
    dynsnap_cyc: tuple[float, float, float] | None = None


ASIDE = """\
Differences from the paper:

* 5 of the 50 validation images of each class are held out to select members, so that [rolling ensembles](beyond.md) can use the same rounds.
  The paper validates on all 50. The training sets have the paper's sizes.
* In the first run DynSnap-cyc's first round is the first half of Snapshot's training. 10 of Snapshot's 20 snapshots are also among the 30 that DynSnap-cyc
  prunes. SingleBase's three replicates there, and in `cifar100-paper-2021`, are the rounds of ExtBagging and DynSnap-step (`cifar100-rolling-2021` has one more of that seed). `cifar100-paper-2022` has DynSnap-cyc and a single
  network alone, without the second network that the noise floor takes. In neither further run is Snapshot trained: DynSnap-cyc has rounds of its own.
* The second single network trained its last 1 and 3 of 200 epochs on a CPU in generations 2 and 3, where the GPU's time ran out. All of its
  snapshots are from earlier epochs. Its seconds are those on the GPU.
"""

SHARED = """\
Differences from the paper:

* DynSnap-cyc's first round is the first half of Snapshot's training (`prefixes`). 10 of Snapshot's 20 snapshots are also among the 30 that
  DynSnap-cyc prunes, so the two are more alike than separate runs. SingleBase's replicates are the rounds of ExtBagging and DynSnap-step.
* ExtBagging has 7 members, the paper's 20. It has those in the section below.
"""

WHOLE = """\
The third replicate of the section above, with ExtBagging's 13 further members. All other rows are of the same rounds as there.
"""

STUDIES = (
    Study(
        folder="cifar10-paper",
        title="CIFAR-10, ResNet-20",
        paper="cifar10",
        unlike=SHARED,
        singlebase=(0.7, 0.7, 0.7),
        dynsnap_cyc=(0.7, 1.5, 1.0),
    ),
    Study(
        folder="cifar10-full",
        title="CIFAR-10 with ExtBagging's 20 members",
        paper="cifar10",
        unlike=WHOLE,
        again=True,
    ),
    Study(
        folder="cifar100-paper",
        title="CIFAR-100, ResNet-56",
        paper="cifar100",
        unlike=ASIDE,
        singlebase=(1.0, 1.0, 1.0),
        dynsnap_cyc=(1.5, 2.5, 2.5),
    ),
    Study(folder="yahoo-paper", title="Yahoo! Answers, fastText", paper="yahoo"),
    Study(folder="20news", title="20 Newsgroups, fastText"),
    Study(folder="digits", title="Handwritten digits, a small dense network"),
)
VARIED = (
    Study(folder="cifar100-sensitivity", title="CIFAR-100, ResNet-56"),
    Study(folder="20news-sensitivity", title="20 Newsgroups, fastText"),
)


class Found:
    """The rows of one study, ours or the paper's, by what they are about."""

    def __init__(self, rows: Sequence[Row], folder: Path | None = None) -> None:
        self._folder = folder
        self._rows = {(row.method, row.combination, row.metric): row for row in rows}
        self.methods = list(dict.fromkeys(row.method for row in rows))

    def __call__(self, method: str, metric: str, how: str = "average") -> Row | None:
        return self._rows.get((method, how, metric))

    def difference(self, one: str, other: str, metric: str) -> PairedDifference | None:
        """One method minus another, as on the page of evidence; None without labels of both."""
        labels = None if self._folder is None else _labels_of(self._folder)
        return None if labels is None else labels.difference(one, other, metric)

    def has(self, *methods: str) -> bool:
        """Whether these methods have all of the main metrics."""
        return all(self(method, metric) is not None for method in methods for metric in MAIN)

    def value(self, method: str, metric: str) -> float:
        """A value that is known to be there, in percent."""
        row = self(method, metric)
        assert row is not None
        return 100 * row.value

    def rows(self, method: str) -> dict[str, Row]:
        """The rows of the main metrics of a method."""
        return {metric: row for metric in MAIN if (row := self(method, metric)) is not None}


def ours_of(folder: Path) -> Found | None:
    """The results of a study here, further seeds included; None if it was not run."""
    return Found(_seeds.rows_of(folder), folder) if (folder / "table.csv").is_file() else None


@functools.cache
def _labels_of(folder: Path) -> MethodLabels | None:
    return _seeds.labels_of(folder) if (folder / "labels.parquet").is_file() else None


def papers(path: Path) -> dict[str, Found]:
    """The paper's tables, as rows like ours."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    costs = {
        (line["data"], line["method"]): float(line["value"])
        for line in lines
        if line["metric"] == "cost"
    }
    rows: dict[str, list[Row]] = {}
    for line in lines:
        if line["metric"] != "cost":
            pair = f"_{line['pair'].replace('-', '_')}" if line["pair"] else ""
            rows.setdefault(line["data"], []).append(
                Row(
                    method=line["method"],
                    combination=line["combination"],
                    metric=line["metric"] + pair,
                    value=float(line["value"]),
                    cost=costs[line["data"], line["method"]],
                )
            )
    return {data: Found(found) for data, found in rows.items()}


Points = dict[tuple[str, str], dict[str, Row]]
"""Of a sweep: (setting, point) and metric to the row."""


def sweeps_of(folder: Path) -> dict[str, Points]:
    """The sweeps of a study over all of its seeds, by name."""
    return by_sweep(_seeds.sweeps_of(folder))


def by_sweep(rows: Iterable[SweepRow]) -> dict[str, Points]:
    """Rows of sweeps, by the name of each."""
    found: dict[str, Points] = {}
    for one in rows:
        points = found.setdefault(one.sweep, {})
        points.setdefault((one.over, one.point), {})[one.row.metric] = one.row
    return found


def percent(row: Row) -> str:
    """A value as it stands in a table."""
    spread = "" if row.spread is None else f" ± {100 * row.spread:.1f}"
    return f"{100 * row.value:.2f}{spread}"


def doubt_of(one: Row, other: Row, replicates: int) -> float:
    """What two values have to differ by, in points, to be clearly apart, from tables alone.

    Student's t over replicates, with the fewest degrees of freedom that Welch's test may have.
    """
    if one.spread is None or other.spread is None:
        return DOUBT
    error = 100 * math.hypot(one.spread, other.spread) / math.sqrt(max(replicates, 2))
    return student_quantile(0.975, max(replicates, 2) - 1) * error


def clear_word(one: PairedDifference) -> str:
    """Whether a paired difference is clear; with one replicate it must also exceed what runs do."""
    if not (one.clearly_above or one.clearly_below):
        return UNCLEAR
    found = worded(100 * one.value, DOUBT if one.replicates == 1 else 0.0)
    return BY_INPUTS if found == UNCLEAR else found


def worded(gap: float, doubt: float) -> str:
    """Whether a difference in points is higher or lower than nothing, beyond its doubt."""
    return UNCLEAR if abs(gap) <= doubt else "higher" if gap > 0 else "lower"


def folded(summary: str) -> Iterator[str]:
    """The opening of a part that a reader unfolds; `</details>` closes it."""
    yield f'<details markdown="1"><summary>{summary}</summary>\n'
