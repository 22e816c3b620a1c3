"""An audit of the theorems as a document, as a section of a study's, and as JSON."""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynsnap.comparison import Estimate
from dynsnap.metrics import metric
from dynsnap.report.build.cells import interval_cell, interval_column, value_cell
from dynsnap.report.document import (
    Bullets,
    Cell,
    Check,
    Column,
    Detail,
    Document,
    Node,
    Prose,
    Section,
    Table,
)
from dynsnap.report.words import count, counted
from dynsnap.theory import Audit, MemberEffects

SCHEMA = "dynsnap.audit/1"

# In the claims of theorems; what is not in a claim is not explained.
_SYMBOLS = {
    "d": "the distance of two vectors of scores",
    "s": "the scores of a member",
    "o": "the scores of the ensemble, the mean of its members'",
    "s̃": "the scores of the same member in the new generation, where s is of the old one",
    "õ": "the scores of the new ensemble, where o is of the old one",
    "r": "the right scores: 1 for the true class and 0 for the others, or the true values",
    "correctness": "1 − d / √2, with the distance of order 2 to the right scores",
    "ACC": "accuracy",
    "ACC-CON": "correct consistency, the share of inputs that both ensembles label correctly",
}
_WORD = re.compile(r"ACC-CON|[^\W_]+\u0303?")

_MUST = "The side that must not be larger, as a mean over the inputs."


def audit_document(
    audit: Audit, *, old: str, new: str, ids: Sequence[str] | None = None
) -> Document:
    """Both sides of every theorem, the best member beside the ensemble, and what it all means.

    Args:
        audit: What `dynsnap.theory.audit` returned.
        old: What to call the older ensemble.
        new: What to call the newer one.
        ids: The names of the inputs; without them an input is called by its position.

    Example:
        >>> import numpy as np
        >>> from dynsnap import theory
        >>> scores = np.array([[[0.9, 0.1]], [[0.6, 0.4]]])  # two members, one input
        >>> audit_document(theory.audit(scores, scores), old="monday", new="tuesday").title
        'monday → tuesday'
    """
    claims = dict.fromkeys(f"{bound.name.split(',')[0]}: {bound.claim}" for bound in _all(audit))
    # Beside the claims, which a page has in the table and other formats further down.
    body: list[Node] = [_bounds(audit, "bounds", ids), _symbols([audit], "full")]
    if audit.standings:
        body.append(_versus_members(audit, "standings"))
    if audit.effects is not None:
        body.append(_effects(audit.effects))
    body.append(Bullets.of("What this does not say", [audit.honest]))
    body.append(Bullets.of("Claims", claims, "brief"))
    body.append(_symbols([audit], "brief"))
    if audit.notes:
        body.append(Bullets.of("Notes", audit.notes))
    broken = "A theorem does not hold on these members by more than rounding."
    return Document(
        title=f"{old} → {new}",
        about=_about(audit),
        warnings=() if audit.holds else (broken,),
        sections=(Section(name="audit", title="Theorem audit", body=tuple(body)),),
        suite="audit",
        checks=tuple(
            Check(bound.name, "passed" if bound.holds else "failed", bound.claim)
            for bound in _all(audit)
        ),
    )


def audit_section(audits: Mapping[str, Audit]) -> Section:
    """The same for each pair of ensembles that a study has looked at."""
    holds = all(audit.holds for audit in audits.values())
    body: list[Node] = []
    for place, (name, audit) in enumerate(audits.items()):
        body += [Prose(f"{name}: {_about(audit)}."), _bounds(audit, f"bounds-{place}")]
        body += [_versus_members(audit, f"standings-{place}")] if audit.standings else []
        body += [Prose(note, "quiet") for note in audit.notes]
    body.append(_symbols(audits.values()))
    body.append(Prose(next(iter(audits.values())).honest, "quiet"))
    said = "Every theorem holds on" if holds else "A theorem does not hold on"
    return Section(
        name="audit",
        title="Theorem audit",
        short="Theorems",
        lead=f"Both sides of the paper's theorems, computed on stored members. {said} these.",
        body=tuple(body),
        detail="full",
    )


def audit_json(
    audit: Audit, *, old: str, new: str, ids: Sequence[str] | None = None
) -> dict[str, Any]:
    """An audit as plain values that `json.dumps` takes; docs/cli.md describes the shape.

    Example:
        >>> import numpy as np
        >>> from dynsnap import theory
        >>> scores = np.array([[[0.9, 0.1]], [[0.6, 0.4]]])
        >>> found = audit_json(theory.audit(scores, scores), old="monday", new="tuesday")
        >>> found["schema"], found["holds"], found["bounds"][0]["name"]
        ('dynsnap.audit/1', True, 'T1')
    """
    within = audit.accuracy_bounds
    return {
        "schema": SCHEMA,
        "old": old,
        "new": new,
        "members": audit.members,
        "inputs": audit.inputs,
        "classes": audit.classes,
        "order": audit.order if math.isfinite(audit.order) else "inf",
        "holds": audit.holds,
        "bounds": [
            {
                "name": bound.name,
                "claim": bound.claim,
                "left": bound.left,
                "right": bound.right,
                "slack": bound.slack,
                "holds": bound.holds,
                "worst": {
                    "input": _input(bound.worst, ids),
                    "left": float(bound.lefts[bound.worst]),
                    "right": float(bound.rights[bound.worst]),
                    "slack": float(bound.slacks[bound.worst]),
                },
            }
            for bound in audit.bounds
        ],
        "accuracy_bounds": within and dataclasses.asdict(within) | {"holds": within.holds},
        "standings": [dataclasses.asdict(standing) for standing in audit.standings],
        "effects": audit.effects and dataclasses.asdict(audit.effects),
        "honest": audit.honest,
        "notes": list(audit.notes),
    }


def _about(audit: Audit) -> str:
    return (
        f"{counted(audit.members, 'member')}, {counted(audit.inputs, 'input')}, "
        f"{'1 output' if audit.classes == 1 else counted(audit.classes, 'class')}; "
        f"distances of order {'∞' if math.isinf(audit.order) else format(audit.order, 'g')}"
    )


def _all(audit: Audit) -> list[Any]:
    return [*audit.bounds, *([audit.accuracy_bounds] if audit.accuracy_bounds else [])]


def _symbols(audits: Iterable[Audit], detail: Detail = "all") -> Bullets:
    claims = " ".join(bound.claim for audit in audits for bound in _all(audit))
    there = set(_WORD.findall(claims))
    said = (f"{name}: {means}." for name, means in _SYMBOLS.items() if name in there)
    return Bullets.of("Symbols", said, detail)


def _bounds(audit: Audit, name: str, ids: Sequence[str] | None = None) -> Table:
    worst: Detail = "brief"  # a page has the claims instead
    rows = [
        (
            *_sides(bound.name, bound.left, bound.right, bound.holds, bound.claim),
            Cell(_input(bound.worst, ids)),
            value_cell(float(bound.lefts[bound.worst]), "quiet"),
            value_cell(float(bound.rights[bound.worst]), "quiet"),
            value_cell(float(bound.slacks[bound.worst]), "quiet"),
        )
        for bound in audit.bounds
    ]
    if (within := audit.accuracy_bounds) is not None:
        for which, left, right in (
            (f"{within.name}, from below", within.low, within.value),
            (f"{within.name}, from above", within.value, within.high),
        ):
            sides = _sides(which, left, right, within.holds, within.claim)
            rows.append((*sides, Cell(), Cell(), Cell(), Cell()))
    return Table(
        name=name,
        title="Both sides, as means over the inputs",
        columns=(
            Column("theorem"),
            Column("left", "number", _MUST),
            Column("right", "number"),
            Column("slack", "number"),
            Column("holds"),
            Column("claim", "claim", detail="full"),
            Column("worst input", detail=worst),
            Column("left", "number", detail=worst),
            Column("right", "number", detail=worst),
            Column("slack", "number", detail=worst),
        ),
        rows=tuple(rows),
        brief_footer="The worst input is the one with the least slack.",
    )


def _sides(name: str, left: float, right: float, holds: bool, claim: str) -> tuple[Cell, ...]:
    return (
        Cell(name),
        value_cell(left),
        value_cell(right),
        value_cell(right - left, "strong"),
        Cell("yes", tone="good") if holds else Cell("NO", tone="bad"),
        Cell(claim),
    )


def _versus_members(audit: Audit, name: str) -> Table:
    return Table(
        name=name,
        title="The ensemble beside its members",
        columns=(
            Column("metric"),
            Column("symbol", key=True),
            Column("ensemble", "number"),
            Column("mean member", "number"),
            Column("best member", "number"),
            Column("which", "number"),
        ),
        rows=tuple(
            (
                Cell(one.metric, hint=metric(one.metric).meaning),
                Cell(metric(one.metric).symbol, tone="quiet"),
                value_cell(one.ensemble, "strong"),
                value_cell(one.mean_member),
                value_cell(one.best_member, "bad" if one.best_member > one.ensemble else "plain"),
                Cell(str(one.best_position), one.best_position, "quiet"),
            )
            for one in audit.standings
        ),
        footer="Accuracy is the mean of both generations. Members are counted from 0.",
    )


def _effects(effects: MemberEffects) -> Table:
    named = [(f"member {place}", effect) for place, effect in enumerate(effects.members)]
    return Table(
        name="effects",
        title="What each member does for correct consistency",
        columns=(Column("member"), Column("change", "number"), interval_column()),
        rows=tuple(
            (
                Cell(who),
                Cell(f"{effect.change:+.4f}", effect.change, "strong"),
                interval_cell(Estimate(effect.change, effect.low, effect.high)),
            )
            for who, effect in [*named, ("mean", effects.mean)]
        ),
        footer=(
            f"With all members less without it; intervals at {effects.confidence:g} confidence "
            f"from {count(effects.resamples)} resamples of the inputs."
        ),
    )


def _input(position: int, ids: Sequence[str] | None) -> str:
    return ids[position] if ids is not None else str(position)
