"""A study as a document: the paper's tables, what consistency costs, and what lies behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynsnap.comparison import CONFIDENCE, Comparison
from dynsnap.report.build.audit import audit_section
from dynsnap.report.build.comparison import BREAKDOWNS, comparison_sections
from dynsnap.report.build.frontier import frontier_section
from dynsnap.report.build.inputs import Excerpts
from dynsnap.report.build.study_charts import Curve, cost, curves, sweeps
from dynsnap.report.build.study_tables import (
    CASES,
    SCORES,
    TOP,
    by_method,
    by_pair,
    cost_cell,
    is_ablation,
)
from dynsnap.report.build.study_words import (
    abbreviated,
    preferred,
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
)
from dynsnap.report.document import (
    Bullets,
    Cell,
    Column,
    Details,
    Document,
    Node,
    Section,
    Table,
)
from dynsnap.report.words import clipped, percent
from dynsnap.study import (
    FRESH,
    NEVER_RETRAIN,
    NOISE_FLOOR,
    HeldAgainst,
    Row,
    StudyPlan,
    SweepRow,
    missing_rounds,
)
from dynsnap.theory import Audit

_METRICS = 2400  # rows of the table of all metrics, while the page has room
_FACTS = {
    "training_inputs": "inputs trained on, epoch by epoch",
    "inputs_per_second": "inputs trained on per second of training",
    "generations": "rows of each generation",
    "rounds_trained_last": "rounds trained by the last run",
    "wall_seconds_last": "seconds of the last run",
}
_SIZES = 12  # generations whose sizes stand in the first line; of more the first and the last
_NAMED = 4  # classes with equally many training rows that are named; of more their number is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDrilldown:
    """One method of a study, input by input.

    Attributes:
        comparison: Its generations side by side.
        excerpts: What the inputs look like, by id.
        learned_from: Training rows of each class in the last generation, where that is known.
        files: Where its predictions lie, the oldest first.
    """

    method: str
    combination: str
    comparison: Comparison
    excerpts: Excerpts = field(default_factory=dict)
    learned_from: Mapping[str, int] = field(default_factory=dict)
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFindings:
    """What is known about a finished study.

    Attributes:
        rows: The study's table.
        sweeps: The points of its sweeps.
        plan: The study itself, where its file can be read.
        about: What it was run with, as in `about.json`.
        replicates: How many replicates each method has, where that is known.
        file: The study file.
        curves: Some of its rounds.
        audits: The theorems on the members of two generations, by what was looked at.
        drilldown: One of its methods, input by input.
        held: Every method minus its references, as `dynsnap.study.held_in` returns it; methods
            are judged only where this is known.
        notes: What else the reader should know, a sentence each.
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
    drilldown: InputDrilldown | None = None
    held: Mapping[str, Sequence[HeldAgainst]] = field(default_factory=dict)
    notes: Sequence[str] = ()


def study_document(study: StudyFindings) -> Document:
    """The tables of a study as the paper has them, in percent, with all that is known of it."""
    return Document(
        title=study.name,
        about=_about(study.about, study.replicates),
        sections=tuple(_sections(study)),
        made_from="From the tables and rounds of the run.",
    )


def _about(about: Mapping[str, Any], replicates: Mapping[str, int]) -> str:
    parts = []
    if sizes := _sizes(about):
        shown = [f"{size:,}" for size in sizes]
        few = shown if len(shown) <= _SIZES else [shown[0], "…", shown[-1]]
        grown = " → ".join(few)
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


def _sections(study: StudyFindings) -> Iterator[Section]:
    own = [row for row in study.rows if not is_ablation(row.method)]
    yield _methods(own or study.rows)
    yield cost(study.rows, said_rounds(study.plan))
    yield from frontier_section(study.rows, study.held, study.plan)
    if study.sweeps:
        yield sweeps(study.sweeps, said_windows(study.plan))
    if any(is_ablation(row.method) for row in study.rows):
        yield _ablations(study.rows, rounds_of(study.plan))
    if study.curves:
        yield curves(study.curves)
    if study.audits:
        yield audit_section(study.audits)
    if study.drilldown is not None:
        yield _drilldown(study.drilldown)
    yield _everything(study.rows)
    if study.about or study.file:
        yield _run(study.about, study.file)
    rounds = said_rounds(study.plan)
    by_time = study.plan is not None and study.plan.data.by_time
    explained = (
        *_explained(study.rows, by_time=by_time),
        *([rounds] if rounds else []),
        *study.notes,
    )
    if explained:
        yield Section(name="notes", title="Notes", body=(Bullets.of("Notes", explained),))


def _methods(rows: Sequence[Row]) -> Section:
    lead = (
        f"In percent, with {CONFIDENCE:.0%} intervals over test inputs in brackets. ACC: mean over "
        "generations; CON (consistency) and ACC-CON (correct consistency): mean over pairs of "
        "generations. κ: cost of a generation, in trainings from scratch. Best of a column bold, "
        "second best underlined."
    )
    body: list[Node] = [by_method("methods-table", "Methods", rows)]
    present = {row.metric for row in rows}
    # The scores of votes are shares of votes, which tell no more than the labels.
    scored = [row for row in rows if row.combination.endswith("average")]
    further = {"The two likeliest classes, and scores": TOP | SCORES}
    if "top_5_accuracy" in present:  # there are many classes, and one table would be too wide
        further = {"The two and the five likeliest classes": TOP, "Likeness of scores": SCORES}
    for place, (title, metrics) in enumerate(further.items()):
        if scored and present & metrics.keys():
            name = f"further-table-{place}" if place else "further-table"
            body.append(by_method(name, title, scored, metrics, short=True, detail="full"))
    if present & CASES.keys():
        title = "Right and wrong, from old to new"
        body.append(by_method("cases-table", title, rows, CASES, short=True, detail="full"))
    body += by_pair(rows)
    return Section(name="methods", title="Methods", lead=lead, lead_detail="all", body=tuple(body))


def _ablations(rows: Sequence[Row], rounds: Mapping[str, str]) -> Section:
    beside = [row for row in rows if is_ablation(row.method) or row.method == FRESH]
    title = "Ablations and variants"
    body: list[Node] = [by_method("ablations-table", title, beside, rounds=rounds)]
    if any(row.metric == "top_5_accuracy" for row in beside):  # there are many classes
        scored = [row for row in beside if row.combination.endswith("average")]
        likely = "Their two and five likeliest classes"
        body.append(
            by_method("ablations-top-table", likely, scored, TOP, short=True, detail="full")
        )
    return Section(
        name="ablations",
        title=title,
        short="Ablations",
        lead=f"With an idea taken away, changed or added, beside {FRESH} itself.",
        body=tuple(body),
    )


def _drilldown(found: InputDrilldown) -> Section:
    # Every metric of every method has a table of its own already.
    parts = comparison_sections(found.comparison, BREAKDOWNS, 0, found.excerpts, found.learned_from)
    return Section(
        name="closer",
        title=f"A closer look at {clipped(found.method, 60)}",
        short="Closer look",
        lead=f"Members combined by {found.combination.replace('_', ' ')}, first replicate.",
        body=tuple(part for part in parts if part.name not in ("metrics", "notes")),
        detail="full",
    )


def _everything(rows: Sequence[Row]) -> Section:
    table = Table(
        name="everything-table",
        title="Every method, combination and metric; shares as fractions",
        columns=(
            Column("method"),
            Column("by"),
            Column("metric"),
            Column("value", "number"),
            Column("interval", "interval"),
            Column("±", "interval", "standard deviation over replicates"),
            Column("κ", "number"),
        ),
        rows=tuple(
            (
                Cell(row.method),
                Cell(abbreviated(row.combination)),
                Cell(row.metric.replace("_", " ")),
                Cell(f"{row.value:.4f}", row.value),
                Cell(
                    ""
                    if row.low is None or row.high is None
                    else f"[{row.low:.4f}, {row.high:.4f}]"
                ),
                Cell("" if row.spread is None else f"±{row.spread:.4f}"),
                cost_cell(row.cost),
            )
            for row in rows
        ),
        search=True,
        roomy=_METRICS,
        rest="All of them: table.csv in the run folder.",
    )
    return Section(name="everything", title="All metrics", body=(table,), detail="full")


def _run(about: Mapping[str, Any], file: str) -> Section:
    """How it was run: software, hardware, time, what it was trained on, and the study file."""
    body: list[Node] = []
    if facts := list(_facts(about)):
        body.append(
            Table(
                name="run-table",
                title="Software, hardware, time",
                columns=(Column("what"), Column("which", "words")),
                rows=tuple((Cell(name), Cell(value)) for name, value in facts),
                sortable=False,
            )
        )
    if file:
        body.append(Details("The study file", file))
    return Section(name="run", title="How it was run", short="Run", body=tuple(body), detail="full")


def _facts(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of a run, one fact a line."""
    for name, value in about.items():
        word = _FACTS.get(name, name.replace("_", " "))
        if name == "training_rows" and isinstance(value, Mapping):
            alike: dict[str, list[str]] = {}  # a hundred lines would hide all others
            for key, rows in value.items():
                alike.setdefault(_listed(rows), []).append(str(key))
            for said, classes in alike.items():
                many = len(classes) > _NAMED
                which = f"each of {len(classes)} classes" if many else ", ".join(classes)
                yield f"{word} of {which}", said
        elif isinstance(value, Mapping):
            yield from _facts({key: each for key, each in value.items() if key != "dynsnap"})
        elif isinstance(value, list):
            yield word, _listed(value)
        elif isinstance(value, float):
            yield word, f"{value:,.1f}"
        elif isinstance(value, int):
            yield word, f"{value:,}"
        else:
            yield word, str(value)


def _listed(values: Any) -> str:
    each = values if isinstance(values, list) else [values]
    return ", ".join(f"{one:,}" if isinstance(one, int) else str(one) for one in each)


def _explained(rows: Sequence[Row], *, by_time: bool) -> Iterator[str]:
    """What the references mean."""
    if by_time:
        yield (
            "By time: 1 is the model before each retrain and 2 the one after it, both on the "
            "period that follows that retrain; the slice `period` tells the periods apart."
        )
    how = preferred(rows)
    found = {(row.method, row.metric): row for row in rows if row.combination == how}
    noise = found.get((NOISE_FLOOR, "consistency"))
    if noise is not None:
        yield (
            f"{NOISE_FLOOR}: SingleBase trained twice on the same "
            f"{'rows of each generation' if by_time else 'first generation'} already labels "
            f"{percent(1 - noise.value)} % of the inputs differently."
        )
    if (NEVER_RETRAIN, "accuracy") in found:
        yield f"{NEVER_RETRAIN}: the first generation, kept for ever. Its labels never change."
