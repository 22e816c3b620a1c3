"""Networks distilled from an ensemble, beside it, as `dynsnap distill --json` wrote them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from _measured import line, percent
from _students import learners_of
from dynsnap.report import kappa
from dynsnap.study import MethodSummary


class StudyRow(NamedTuple):
    """A row of the study's own table, and how many networks one prediction takes."""

    of: MethodSummary
    networks: str


def compared(folder: Path, references: Sequence[StudyRow]) -> Iterator[str]:
    """An ensemble and the networks distilled from it."""
    learners = learners_of(folder)
    if not learners:
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
    for name, one in learners.items():
        cells = [percent(one.metrics.get(metric)) for metric in metrics]
        yield line([name, str(one.networks), kappa(one.cost), *cells])
    for one, networks in references:
        rows = (one.accuracy, one.consistency, one.correct_consistency, one.lost, one.late)
        cells = [percent(row) for row in rows]
        yield line([one.method, networks, kappa(one.accuracy.cost), *cells])


def students(folder: Path, references: Sequence[StudyRow]) -> Iterator[str]:
    """Students with the accuracy of each generation, and how often they agree with the teacher."""
    learners = learners_of(folder)
    if not learners:
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
    for name, learner in learners.items():
        found = learner.metrics
        each = [
            percent(row, spread=False)
            for metric, row in found.items()
            if metric.startswith("accuracy_")
        ]
        accuracy = f"{percent(found['accuracy'])} ({', '.join(each)})"
        cells = [percent(found.get(metric)) for metric in metrics]
        yield line([name, str(learner.networks), kappa(learner.cost), accuracy, *cells])
    for one, networks in references:
        each = [percent(row, spread=False) for row in one.accuracies]
        accuracy = percent(one.accuracy) + (f" ({', '.join(each)})" if each else "")
        rows = (one.consistency, one.correct_consistency, one.lost, one.late)
        cells = [percent(row) for row in rows]
        yield line([one.method, networks or "1", kappa(one.accuracy.cost), accuracy, *cells, ""])
