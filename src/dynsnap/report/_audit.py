"""An audit of the theorems as a report, and as JSON."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dynsnap.comparison import Estimate
from dynsnap.metrics import metric
from dynsnap.report._blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    count,
    counted,
    interval,
    number,
)
from dynsnap.theory import Audit, Effect

SCHEMA = "dynsnap.audit/1"


def audit_report(audit: Audit, *, old: str, new: str, ids: Sequence[str] | None = None) -> Document:
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
        >>> audit_report(theory.audit(scores, scores), old="monday", new="tuesday")[0]
        Heading(text='monday → tuesday')
    """
    return tuple(_blocks(audit, f"{old} → {new}", ids))


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


def _blocks(audit: Audit, title: str, ids: Sequence[str] | None) -> Iterator[Block]:
    yield Heading(title)
    yield Paragraph(
        f"{counted(audit.members, 'member')}, {counted(audit.inputs, 'input')}, "
        f"{'1 output' if audit.classes == 1 else counted(audit.classes, 'class')}; "
        f"distances of order {'∞' if math.isinf(audit.order) else format(audit.order, 'g')}",
        "quiet",
    )
    if not audit.holds:
        yield Paragraph("A theorem does not hold on these members by more than rounding.", "bad")
    yield _bounds(audit, ids)
    if audit.accuracy_bounds is not None:
        yield _accuracy_bounds(audit)
    if audit.standings:
        yield _standings(audit)
    if audit.effects is not None:
        yield _effects(audit)
    yield Bullets("What this does not say", (audit.honest,))
    yield Bullets(
        "Claims",
        tuple(dict.fromkeys(f"{bound.name.split(',')[0]}: {bound.claim}" for bound in _all(audit))),
    )
    if audit.notes:
        yield Bullets("Notes", audit.notes)


def _all(audit: Audit) -> list[Any]:
    return [*audit.bounds, *([audit.accuracy_bounds] if audit.accuracy_bounds else [])]


def _bounds(audit: Audit, ids: Sequence[str] | None) -> Table:
    return Table(
        title="Both sides, as means over the inputs",
        columns=(
            Column(""),
            Column("left", numeric=True),
            Column("right", numeric=True),
            Column("slack", numeric=True),
            Column("holds"),
            Column("worst input"),
            Column("left", numeric=True),
            Column("right", numeric=True),
            Column("slack", numeric=True),
        ),
        rows=tuple(
            (
                Cell(bound.name),
                Cell(number(bound.left)),
                Cell(number(bound.right)),
                Cell(number(bound.slack), "strong"),
                _holds(bound.holds),
                Cell(_input(bound.worst, ids)),
                Cell(number(float(bound.lefts[bound.worst])), "quiet"),
                Cell(number(float(bound.rights[bound.worst])), "quiet"),
                Cell(number(float(bound.slacks[bound.worst])), "quiet"),
            )
            for bound in audit.bounds
        ),
        footer="The worst input is the one with the least slack.",
    )


def _accuracy_bounds(audit: Audit) -> Table:
    found = audit.accuracy_bounds
    assert found is not None
    return Table(
        title="Correct-consistency between its bounds",
        columns=(
            Column(""),
            Column("low", numeric=True),
            Column("ACC-CON", numeric=True),
            Column("high", numeric=True),
            Column("holds"),
        ),
        rows=(
            (
                Cell(found.name),
                Cell(number(found.low)),
                Cell(number(found.value), "strong"),
                Cell(number(found.high)),
                _holds(found.holds),
            ),
        ),
    )


def _standings(audit: Audit) -> Table:
    return Table(
        title="The ensemble beside its members",
        columns=(
            Column(""),
            Column(""),
            Column("ensemble", numeric=True),
            Column("mean member", numeric=True),
            Column("best member", numeric=True),
            Column("which", numeric=True),
        ),
        rows=tuple(
            (
                Cell(standing.metric),
                Cell(metric(standing.metric).symbol, "quiet"),
                Cell(number(standing.ensemble), "strong"),
                Cell(number(standing.mean_member)),
                Cell(
                    number(standing.best_member),
                    "bad" if standing.best_member > standing.ensemble else "plain",
                ),
                Cell(str(standing.best_position), "quiet"),
            )
            for standing in audit.standings
        ),
        keys=2,
        footer="Accuracy is the mean of both generations. Members are counted from 0.",
    )


def _effects(audit: Audit) -> Table:
    effects = audit.effects
    assert effects is not None
    named = [(f"member {place}", effect) for place, effect in enumerate(effects.members)]
    return Table(
        title="What each member does for correct-consistency",
        columns=(Column(""), Column("change", numeric=True), Column("interval")),
        rows=tuple(_effect(name, effect) for name, effect in [*named, ("mean", effects.mean)]),
        footer=(
            f"With all members less without it; intervals at {effects.confidence:g} confidence "
            f"from {count(effects.resamples)} resamples of the inputs."
        ),
    )


def _effect(name: str, effect: Effect) -> tuple[Cell, ...]:
    limits = interval(Estimate(effect.change, effect.low, effect.high))
    return Cell(name), Cell(f"{effect.change:+.4f}", "strong"), Cell(limits, "quiet")


def _holds(holds: bool) -> Cell:
    return Cell("yes", "good") if holds else Cell("NO", "bad")


def _input(position: int, ids: Sequence[str] | None) -> str:
    return ids[position] if ids is not None else str(position)
