"""Tasks other than telling classes apart: what an answer is, and when two of them agree.

Each task reads its own columns and reduces two answers to an input to the same statistics: in which
of the cases the input is (kept, gained, lost, wrong in the same way or another), and numbers whose
means are metrics. `task_of` makes one of a name and its settings, as `dynsnap.compare` and the
command line take them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dynsnap.errors import PlanError, did_you_mean
from dynsnap.predictions.tasks._binary import Binary, named_alike
from dynsnap.predictions.tasks._graded import Graded, grouped
from dynsnap.predictions.tasks._regression import Regression
from dynsnap.predictions.tasks._sets import MultiLabel, Ranking
from dynsnap.predictions.tasks._task import (
    CHANGED,
    GAINED,
    KINDS,
    LOST,
    AnswerTask,
    Change,
    RowStatistics,
    Task,
)

CLASSIFICATION = "classification"
_TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Binary, MultiLabel, Ranking, Regression, Graded)
}
NAMES = (CLASSIFICATION, *_TASKS)
# What a person may choose; the rest is found out from the files.
_FOUND_OUT = ("whole", "repeated")


def tasks_of(
    task: "str | Task | None",
    settings: Mapping[str, Any],
    *,
    generations: int,
    twin: bool = False,
) -> tuple[Task | None, ...]:
    """The task of each generation, which may have thresholds of their own.

    Args:
        task: Its name, or the task itself; None for classes.
        settings: What is set of it, by name; None for what is not. `threshold` may be several.
        generations: How many generations there are, without the twin.
        twin: Whether the first generation has a twin, which is read like it.

    Raises:
        PlanError: There is no such task, or a setting is not one of it.

    Example:
        >>> tasks_of("binary", {"threshold": [0.5, 0.4]}, generations=2)[1].threshold
        0.4
        >>> tasks_of(None, {}, generations=2)
        (None, None)
    """
    given = {name: value for name, value in settings.items() if value is not None}
    thresholds = given.get("threshold")
    if isinstance(thresholds, Sequence) and not isinstance(thresholds, str):
        if not thresholds:
            del given["threshold"]
        elif len(thresholds) == 1:
            given["threshold"] = thresholds[0]
        elif len(thresholds) != generations:
            raise PlanError(
                f"There are {len(thresholds)} thresholds and {generations} generations. Give one "
                "for all, or one for each, oldest first."
            )
        else:
            every = [task_of(task, {**given, "threshold": each}) for each in thresholds]
            return (*every, every[0]) if twin else tuple(every)
    return (task_of(task, given),) * (generations + twin)


def task_of(task: "str | Task | None", settings: Mapping[str, Any]) -> Task | None:
    """A task of a name and what is set of it; None for classes.

    Example:
        >>> task_of("regression", {"tolerance": 2.0}).meaning
        'Predictions agree that differ by at most 2; one is right that is off by at most 2.'
    """
    if isinstance(task, Task):
        if settings:
            raise PlanError(
                f"`{next(iter(settings))}` is part of the task. Give it to {type(task).__name__}."
            )
        return task
    if task is not None and task not in NAMES:
        raise PlanError(f"There is no task {task!r}. {did_you_mean(str(task), NAMES)}")
    kind = None if task is None else _TASKS.get(task)
    own = () if kind is None else settings_of(kind)
    for name in settings:
        if name not in own:
            whose = [each for each, other in _TASKS.items() if name in settings_of(other)]
            option = name.replace("_", "-")
            raise PlanError(
                f"`{name}` is a setting of the task {' or '.join(whose) or 'of no kind'}, but the "
                f"task is {task or CLASSIFICATION}. Add --task {whose[0] if whose else 'NAME'} (in "
                f'Python: task="{whose[0] if whose else "..."}"), or leave --{option} out.'
            )
    if kind is None:
        return None
    if kind is Regression and "tolerance" not in settings:
        raise PlanError(
            "The task regression needs a tolerance: by how much may predictions differ that agree? "
            "Give `--tolerance NUMBER` (in Python: tolerance=NUMBER), in their own unit."
        )
    return kind(**settings)


def settings_of(kind: type[Task]) -> tuple[str, ...]:
    """What may be set of a task."""
    return tuple(field.name for field in fields(kind) if field.name not in _FOUND_OUT)


__all__ = [
    "CHANGED",
    "CLASSIFICATION",
    "GAINED",
    "KINDS",
    "LOST",
    "NAMES",
    "AnswerTask",
    "Binary",
    "Change",
    "Graded",
    "MultiLabel",
    "Ranking",
    "Regression",
    "RowStatistics",
    "Task",
    "grouped",
    "named_alike",
    "settings_of",
    "task_of",
    "tasks_of",
]
