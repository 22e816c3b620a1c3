"""What is left of an ensemble in one network, as a document and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from dynsnap.report.build.study_words import HEADLINE, NEW
from dynsnap.report.document import Bullets, Cell, Column, Document, Table
from dynsnap.report.words import UNDEFINED, kappa
from dynsnap.study import UNTAUGHT, Distilled, Row

_METRICS = {
    **HEADLINE,
    "gained": "gained",
    "lost": "lost",
    **NEW,
    "fidelity": "as teacher",
}
SCHEMA = "dynsnap.distill/1"


def distill_document(found: Distilled, *, title: str, notes: Sequence[str] = ()) -> Document:
    """Teacher, student and single learner side by side, and what is left of the gain.

    Args:
        found: What distilling has found.
        title: What the study is called.
        notes: What else the reader should know, a sentence each.
    """
    spread = ", ± standard deviation over replicates" if found.replicates > 1 else ""
    return Document.of(
        f"{title}: {found.how.method.name} as one network",
        _table(found),
        Bullets.of("Reading it", (*_explained(found), *notes)),
        about=f"Percent{spread}. Networks: how many answer for one input. κ: trainings from "
        "scratch per generation, a student's teacher included. ACC: mean over generations; CON, "
        "ACC-CON, gained, lost: mean over pairs of generations. New classes: the last generation "
        "on classes that arrive in a later generation.",
    )


def distill_json(found: Distilled, *, study: str) -> dict[str, Any]:
    """Everything as plain values; numbers are fractions."""
    how = found.how
    return {
        "schema": SCHEMA,
        "study": study,
        "teacher": how.method.name,
        "student": how.name,
        "combination": how.combination,
        "epochs": how.epochs,
        "weight": how.weight,
        "temperature": how.temperature,
        "second_teacher": how.second,
        "share": how.share if how.second else None,
        "generations": list(found.generations),
        "replicates": found.replicates,
        "learners": [
            {
                "name": name,
                "networks": networks,
                "cost": _of(found.rows, name)[0].cost,
                "metrics": {
                    row.metric: {
                        "value": row.value,
                        "low": row.low,
                        "high": row.high,
                        "spread": row.spread,
                    }
                    for row in _of(found.rows, name)
                },
            }
            for name, networks in found.networks.items()
        ],
        "remains": {
            over: {one.metric: one.share for one in found.retained if one.over == over}
            for over in _overs(found)
        },
        "predictions": [str(path) for path in found.predictions],
    }


def _table(found: Distilled) -> Table:
    measured = {row.metric for row in found.rows}
    shown = {metric: symbol for metric, symbol in _METRICS.items() if metric in measured}
    if len(found.generations) > 1:
        each = {f"accuracy_{number}": f"g{number}" for number in found.generations}
        shown = {"accuracy": "ACC", **each, **shown}
    rows = []
    for name, networks in found.networks.items():
        own = {row.metric: row for row in _of(found.rows, name)}
        cost = own["accuracy"].cost
        cells = [Cell(name, tone="strong"), Cell(str(networks), networks), Cell(kappa(cost), cost)]
        rows.append((*cells, *(_percent(own.get(metric)) for metric in shown)))
    heads = ("networks", "κ", *shown.values())
    return Table(
        name="learners",
        title="",
        columns=(Column("learner"), *(Column(head, "number") for head in heads)),
        rows=tuple(rows),
    )


def _explained(found: Distilled) -> Iterator[str]:
    teacher, how = found.networks[found.how.method.name], found.how
    yield f"The student runs at 1/{teacher} of its teacher's cost."
    for over in _overs(found):
        kept = ", ".join(
            f"{_METRICS[one.metric]} "
            + (f"{one.share:.0%}" if one.share is not None else "(no gain to keep)")
            for one in found.retained
            if one.over == over
        )
        yield f"Of what the ensemble gains over {over}, the student keeps: {kept}."
    if not found.retained:
        yield (
            "How much of the gain is left cannot be said: the run has no predictions of a single "
            "learner. Add singlebase to the study's methods, and run it, or ask for a --control."
        )
    if how.control:
        yield (
            f"{UNTAUGHT}: the student's twin, the same {how.epochs} epochs with the same "
            "randomness, by the labels alone."
        )
    if how.second is not None:
        second = "ensemble" if how.second == "previous" else "student"
        yield (
            f"From the second generation on, the {second} of the generation before taught too, "
            f"with a share of {how.share:g}; not on rows of classes that it never saw."
        )


def _overs(found: Distilled) -> list[str]:
    return list(dict.fromkeys(one.over for one in found.retained))


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row.method == name]


def _percent(row: Row | None) -> Cell:
    if row is None:
        return Cell(UNDEFINED)
    spread = "" if row.spread is None else f" ±{100 * row.spread:.1f}"
    return Cell(f"{100 * row.value:.1f}{spread}", row.value)
