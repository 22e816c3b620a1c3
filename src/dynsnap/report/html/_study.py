"""A study as a page: the paper's tables, what consistency costs, and what lies behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynsnap import __version__
from dynsnap.report._element import clipped, element
from dynsnap.report.html._audit import audited
from dynsnap.report.html._page import Page, bounded, page
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing
from dynsnap.report.html._study_figures import Curve, cost, curves, sweeps
from dynsnap.report.html._study_table import SHORT, headline, is_ablation
from dynsnap.study import Row, SweepRow
from dynsnap.theory import Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFindings:
    """What a run folder holds about a finished study.

    Attributes:
        rows: The study's table.
        sweeps: The points of its sweeps.
        about: What it was run with, as in `about.json`.
        curves: Some of its rounds.
        audits: The theorems on the members of two generations, by what was looked at.
        notes: What was left out and why, a sentence each.
    """

    name: str
    rows: Sequence[Row]
    sweeps: Sequence[SweepRow] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    curves: Sequence[Curve] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict)
    notes: Sequence[str] = ()


def study_page(study: StudyFindings) -> Page:
    """A finished study as one self-contained page of at most 1.5 MB."""
    return bounded(
        lambda rows: page(
            title=study.name,
            about=_about(study.about),
            sections=tuple(_sections(study, rows)),
            footer=(
                f"Made by dynsnap {__version__} from the tables and rounds of the run folder. "
                "Nothing on this page is fetched from anywhere."
            ),
        )
    )


def _about(about: Mapping[str, Any]) -> str:
    parts = []
    if isinstance(sizes := about.get("generations"), list):
        grown = " → ".join(f"{size:,}" for size in sizes if isinstance(size, int))
        parts.append(f"{len(sizes)} generations of {grown} training inputs")
    if isinstance(tested := about.get("test_inputs"), int):
        parts.append(f"{tested:,} test inputs")
    if isinstance(often := about.get("replicates"), int):
        parts.append(f"{often} replicate{'s' if often > 1 else ''}")
    if isinstance(rounds := about.get("rounds"), int):
        parts.append(f"{rounds:,} rounds of training")
    return ", ".join(parts) + "." if parts else ""


def _sections(study: StudyFindings, rows: int) -> Iterator[Section]:
    own = [row for row in study.rows if not is_ablation(row.method)]
    yield _methods(own, study)
    yield cost(study.rows)
    if study.sweeps:
        yield sweeps(study.sweeps)
    if any(is_ablation(row.method) for row in study.rows):
        yield _ablations(study.rows)
    if study.curves:
        yield curves(study.curves)
    if study.audits:
        yield audited(study.audits)
    yield _everything(study.rows, rows)
    if study.notes:
        said = [element("li", clipped(note, 400)) for note in study.notes]
        yield Section(name="notes", title="Notes", body=[element("ul", said, class_="plain")])


def _methods(rows: Sequence[Row], study: StudyFindings) -> Section:
    lead = (
        "In percent. ACC is the mean over generations, CON (labelled alike) and ACC-CON (alike and "
        "right) over all pairs of generations. κ: trainings from scratch that a generation takes. "
        "Best of a column bold, second best underlined."
    )
    return Section(
        name="methods",
        title="Methods",
        lead=lead,
        body=[headline("methods-table", "Methods, by how their members are combined", rows)],
    )


def _ablations(rows: Sequence[Row]) -> Section:
    beside = [row for row in rows if is_ablation(row.method) or row.method == "dynsnap-cyc"]
    return Section(
        name="ablations",
        title="Ablations",
        lead="DynSnap with an idea taken away or changed, beside the whole of it.",
        body=[headline("ablations-table", "Ablations", beside)],
    )


def _everything(rows: Sequence[Row], most: int) -> Section:
    lines = [
        [
            Entry(row.method),
            Entry(SHORT.get(row.combination, row.combination)),
            Entry(row.metric.replace("_", " ")),
            Entry(f"{row.value:.4f}", key=row.value),
            Entry(
                "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
                tone="quiet",
            ),
            Entry(f"{row.cost:.1f}", key=row.cost),
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
                    caption="Every method, combination and metric, as fractions",
                    heads=(
                        Head("method"),
                        Head("by"),
                        Head("metric"),
                        Head("value", True),
                        Head("interval", fixed=True),
                        Head("κ", True),
                    ),
                    rows=lines[: 2 * most],
                    search=True,
                    whole=len(lines),
                    note="All of them: table.csv in the run folder."
                    if len(lines) > 2 * most
                    else "",
                )
            )
        ],
    )
