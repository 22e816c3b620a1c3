"""Networks distilled from an ensemble, beside it, as `dynsnap distill --json` wrote them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _measured import line, percent, with_spread
from dynsnap.report import kappa
from dynsnap.study import MethodSummary


class Reference(NamedTuple):
    """A row of the study's own table, and how many networks one prediction takes."""

    of: MethodSummary
    networks: str


def compared(folder: Path, references: Sequence[Reference]) -> Iterator[str]:
    """An ensemble and the networks distilled from it."""
    if not _files(folder):
        yield f"*`dynsnap distill {folder.name}` has not been run yet.*"
        return
    metrics = {
        "accuracy": "ACC",
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
        "late_accuracy": "new class",
    }
    yield f"| `{folder.name}` | networks | κ | {' | '.join(metrics.values())} |"
    yield "|---" * (len(metrics) + 3) + "|"
    for one in _learners(folder):
        cells = [_cell(one["metrics"].get(name)) for name in metrics]
        yield line([one["name"], str(one["networks"]), kappa(one["cost"]), *cells])
    for one, networks in references:
        rows = (one.accuracy, one.consistency, one.correct_consistency, one.lost, one.late)
        cells = [percent(row, spread=False) for row in rows]
        yield line([one.method, networks, kappa(one.accuracy.cost), *cells])


def students(folder: Path, references: Sequence[Reference]) -> Iterator[str]:
    """Students with the accuracy of each generation, and how often they agree with the teacher."""
    if not _files(folder):
        yield f"*The results of `{folder.name}` are not stored.*"
        return
    metrics = {
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
        "late_accuracy": "new class",
        "fidelity": "as teacher",
    }
    yield f"| | networks | κ | ACC (each generation) | {' | '.join(metrics.values())} |"
    yield "|---" * (len(metrics) + 4) + "|"
    for one in _learners(folder):
        found = one["metrics"]
        each = [
            f"{100 * row['value']:.1f}"
            for name, row in found.items()
            if name.startswith("accuracy_")
        ]
        accuracy = f"{_cell(found['accuracy'])} ({', '.join(each)})"
        cells = [_cell(found.get(name)) for name in metrics]
        yield line([one["name"], str(one["networks"]), kappa(one["cost"]), accuracy, *cells])
    for one, networks in references:
        each = [percent(row, spread=False) for row in one.accuracies]
        accuracy = percent(one.accuracy) + (f" ({', '.join(each)})" if each else "")
        rows = (one.consistency, one.correct_consistency, one.lost, one.late)
        cells = [percent(row) for row in rows]
        yield line([one.method, networks or "1", kappa(one.accuracy.cost), accuracy, *cells, ""])


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("distill*.json"))


def _learners(folder: Path) -> Iterator[dict[str, Any]]:
    """Each learner once: every file has the teacher too."""
    shown: set[str] = set()
    for path in _files(folder):
        for one in json.loads(path.read_text(encoding="utf-8"))["learners"]:
            if one["name"] not in shown:
                shown.add(one["name"])
                yield one


def _cell(found: dict[str, float | None] | None) -> str:
    if found is None or found["value"] is None:
        return ""
    return with_spread(
        100 * found["value"], None if found["spread"] is None else 100 * found["spread"]
    )
