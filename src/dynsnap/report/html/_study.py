"""A study as a page: the paper's tables, what consistency costs, and what lies behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynsnap import __version__
from dynsnap.comparison import Comparison
from dynsnap.report._element import clipped, element
from dynsnap.report._study_words import (
    abbreviated,
    kappa,
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
)
from dynsnap.report.html._audit import audited
from dynsnap.report.html._comparison import sections
from dynsnap.report.html._frontier import honest
from dynsnap.report.html._looks import Looks
from dynsnap.report.html._page import Page, bounded, page
from dynsnap.report.html._parts import INTERVAL, Entry, Head, Listing, Section, listing
from dynsnap.report.html._study_figures import Curve, cost, curves, sweeps
from dynsnap.report.html._study_run import how_it_was_run
from dynsnap.report.html._study_table import (
    CASES,
    SCORES,
    SPREAD,
    TOP,
    by_method,
    by_pair,
    is_ablation,
)
from dynsnap.study import FRESH, Row, StudyPlan, SweepRow, missing_rounds
from dynsnap.theory import Audit

_METRICS = 2400  # rows of the table of all metrics, where there is room
_ROOM = 60  # rows of other tables from which on there is


@dataclass(frozen=True, slots=True, kw_only=True)
class Closer:
    """One method of a study, input by input.

    Attributes:
        comparison: Its generations side by side.
        looks: What the inputs look like, by id.
        learned_from: Training rows of each class in the last generation, where that is known.
        files: Where its predictions lie, the oldest first.
    """

    method: str
    combination: str
    comparison: Comparison
    looks: Looks = field(default_factory=dict)
    learned_from: Mapping[str, int] = field(default_factory=dict)
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFindings:
    """What a run folder holds about a finished study.

    Attributes:
        rows: The study's table.
        sweeps: The points of its sweeps.
        plan: The study itself, where its file can be read.
        about: What it was run with, as in `about.json`.
        replicates: How many replicates each method has, where that is known.
        file: The study file.
        curves: Some of its rounds.
        audits: The theorems on the members of two generations, by what was looked at.
        closer: One of its methods, input by input.
        notes: What was left out and why, a sentence each.
    """

    name: str
    rows: Sequence[Row]
    sweeps: Sequence[SweepRow] = ()
    plan: StudyPlan | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    replicates: Mapping[str, int] = field(default_factory=dict)
    file: str = ""
    curves: Sequence[Curve] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict)
    closer: Closer | None = None
    notes: Sequence[str] = ()


def study_page(study: StudyFindings) -> Page:
    """A finished study as one self-contained page of at most 1.5 MB."""
    return bounded(
        lambda rows: page(
            title=study.name,
            about=_about(study.about, study.replicates),
            sections=tuple(_sections(study, rows)),
            footer=(
                f"Made by dynsnap {__version__} from the tables and rounds of the run folder. "
                "Nothing on this page is fetched from anywhere."
            ),
        )
    )


def _about(about: Mapping[str, Any], replicates: Mapping[str, int]) -> str:
    parts = []
    if sizes := _sizes(about):
        grown = " → ".join(f"{size:,}" for size in sizes)
        parts.append(f"{len(sizes)} generations of {grown} training inputs")
    if isinstance(tested := about.get("test_inputs"), int):
        parts.append(f"{tested:,} test inputs")
    if isinstance(often := about.get("replicates"), int):
        parts.append(said_replicates(often, replicates))
    if isinstance(rounds := about.get("rounds"), int):
        parts.append(f"{rounds:,} rounds of training")
        if isinstance(missing := about.get("rounds_missing"), int) and missing:
            parts[-1] += f" ({missing_rounds(missing, more=True)})"
    return ", ".join(parts) + "." if parts else ""


def _sizes(about: Mapping[str, Any]) -> list[int]:
    """The training rows of each generation; older folders count those held out as well."""
    rows = about.get("training_rows")
    if isinstance(rows, Mapping) and rows:
        return [sum(each) for each in zip(*rows.values(), strict=True)]
    sizes = about.get("generations")
    return [size for size in sizes if isinstance(size, int)] if isinstance(sizes, list) else []


def _sections(study: StudyFindings, rows: int) -> Iterator[Section]:
    own = [row for row in study.rows if not is_ablation(row.method)]
    yield _methods(own or study.rows)
    yield cost(study.rows, said_rounds(study.plan))
    frontier = honest(study.rows)
    if frontier is not None:
        yield frontier
    if study.sweeps:
        yield sweeps(study.sweeps, said_windows(study.plan))
    if any(is_ablation(row.method) for row in study.rows):
        yield _ablations(study.rows, rounds_of(study.plan))
    if study.curves:
        yield curves(study.curves)
    if study.audits:
        yield audited(study.audits)
    if study.closer is not None:
        yield _closer(study.closer, rows)
    yield _everything(study.rows, rows)
    if study.about or study.file:
        yield how_it_was_run(study.about, study.file)
    if study.notes:
        said = [element("li", clipped(note, 400)) for note in study.notes]
        yield Section(name="notes", title="Notes", body=[element("ul", said, class_="plain")])


def _methods(rows: Sequence[Row]) -> Section:
    lead = (
        "In percent, with 95 % intervals over test inputs in brackets. ACC is the mean over "
        "generations, CON (labelled alike) and ACC-CON (alike and right) over all pairs of "
        "generations. κ: trainings from scratch that a generation takes. Best of a column bold, "
        "second best underlined."
    )
    body = [by_method("methods-table", "Methods, by how their members are combined", rows)]
    present = {row.metric for row in rows}
    # The scores of votes are shares of votes, which say no more than the labels.
    scored = [row for row in rows if row.combination.endswith("average")]
    further = {"The two likeliest classes, and scores": TOP | SCORES}
    if "top_5_accuracy" in present:  # there are many classes, and one table would be too wide
        further = {"The two and the five likeliest classes": TOP, "Likeness of scores": SCORES}
    for place, (caption, metrics) in enumerate(further.items()):
        if scored and present & metrics.keys():
            name = f"further-table-{place}" if place else "further-table"
            body.append(by_method(name, caption, scored, metrics, short=True))
    if present & CASES.keys():
        caption = "Right and wrong, from old to new"
        body.append(by_method("cases-table", caption, rows, CASES, short=True))
    pairs = by_pair(rows)
    if pairs is not None:
        body.append(pairs)
    return Section(name="methods", title="Methods", lead=lead, body=body)


def _ablations(rows: Sequence[Row], rounds: Mapping[str, str]) -> Section:
    beside = [row for row in rows if is_ablation(row.method) or row.method == FRESH]
    body = [by_method("ablations-table", "Ablations and variants", beside, rounds=rounds)]
    if any(row.metric == "top_5_accuracy" for row in beside):  # there are many classes
        scored = [row for row in beside if row.combination.endswith("average")]
        caption = "Their two and five likeliest classes"
        body.append(by_method("ablations-top-table", caption, scored, TOP, short=True))
    return Section(
        name="ablations",
        title="Ablations and variants",
        short="Ablations",
        lead=f"With an idea taken away, changed or added, beside {FRESH} itself.",
        body=body,
    )


def _closer(closer: Closer, rows: int) -> Section:
    # Every metric of every method has a table of its own already.
    parts = [
        part
        for part in sections(closer.comparison, rows, closer.looks, closer.learned_from)
        if part.name not in ("metrics", "notes")
    ]
    return Section(
        name="closer",
        title=f"A closer look at {clipped(closer.method, 60)}",
        short="Closer look",
        lead=f"Members combined by {closer.combination.replace('_', ' ')}, first replicate.",
        parts=tuple(parts),
    )


def _everything(rows: Sequence[Row], most: int) -> Section:
    most = _METRICS if most >= _ROOM else most
    lines = [
        [
            Entry(row.method),
            Entry(abbreviated(row.combination)),
            Entry(row.metric.replace("_", " ")),
            Entry(f"{row.value:.4f}", key=row.value if row.value == row.value else None),
            Entry(
                "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
                tone="range",
            ),
            Entry("" if row.spread is None else f"±{row.spread:.4f}", tone="range"),
            Entry(kappa(row.cost), key=row.cost),
        ]
        for row in rows
    ]
    return Section(
        name="everything",
        title="All metrics",
        body=[
            listing(
                Listing(
                    name="everything-table",
                    caption="Every method, combination and metric; shares as fractions",
                    heads=(
                        Head("method"),
                        Head("by"),
                        Head("metric"),
                        Head("value", True),
                        INTERVAL,
                        SPREAD,
                        Head("κ", True),
                    ),
                    rows=lines[:most],
                    search=True,
                    whole=len(lines),
                    note="All of them: table.csv in the run folder." if len(lines) > most else "",
                )
            )
        ],
    )
