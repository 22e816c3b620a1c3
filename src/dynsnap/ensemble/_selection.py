"""What decides which snapshots of a round are kept: a metric on its validation rows."""

import hashlib
import types
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import PlanError, TrainingError, did_you_mean


class SelectionMetric(Protocol):
    """Judges a snapshot by its scores on validation rows: higher is better, never NaN."""

    def __call__(
        self, truth: Labels, scores: Scores, /, *, weights: Floats | None, inputs: AnyArray
    ) -> float:
        """The value of a snapshot.

        Args:
            truth: The classes of the rows, as columns of the scores.
            scores: (rows, classes).
            weights: How much each row counts; None where all count alike.
            inputs: The rows themselves.
        """
        ...


def _accuracy(truth: Labels, scores: Scores, weights: Floats | None) -> float:
    return float(np.average(scores.argmax(axis=1) == truth, weights=weights))


def _balanced_accuracy(truth: Labels, scores: Scores, weights: Floats | None) -> float:
    right = scores.argmax(axis=1) == truth
    rows = np.bincount(truth, weights, scores.shape[1])
    hits = np.bincount(truth, right if weights is None else right * weights, scores.shape[1])
    return float(np.mean(hits[rows > 0] / rows[rows > 0]))


def _log_loss(truth: Labels, scores: Scores, weights: Floats | None) -> float:
    wide = np.asarray(scores, np.float64)
    given = wide[np.arange(len(truth)), truth] / wide.sum(axis=1)
    # A wrong answer of full confidence is worse than all others, but not without end.
    least = np.finfo(np.float32).eps
    return float(np.average(np.log(np.maximum(given, least)), weights=weights))


def _f1(truth: Labels, scores: Scores, weights: Floats | None) -> float:
    found, classes = scores.argmax(axis=1), scores.shape[1]
    said, rows = (np.bincount(each, weights, classes) for each in (found, truth))
    both = np.where(found == truth, 1.0 if weights is None else weights, 0.0)
    hits = np.bincount(truth, both, classes)
    there = said + rows > 0
    return float(np.mean(2 * hits[there] / (said + rows)[there]))


_Named: TypeAlias = Callable[[Labels, Scores, Floats | None], float]
_NAMED: dict[str, _Named] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "log_loss": _log_loss,
    "f1": _f1,
}
SELECTION_METRICS = tuple(_NAMED)


class Judge:
    """A selection metric, and whether it is anything but the share of right rows.

    Args:
        metric: "accuracy", "balanced_accuracy", "log_loss" (its negative, so that higher is
            better), "f1" (the mean over classes), or a `SelectionMetric`.
        weighted: Whether validation rows have weights.

    Example:
        >>> judge = Judge("f1")
        >>> truth, scores = np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> judge(truth, scores, weights=None, inputs=truth)
        1.0
    """

    def __init__(
        self, metric: "str | SelectionMetric" = "accuracy", *, weighted: bool = False
    ) -> None:
        if isinstance(metric, str):
            if metric not in _NAMED:
                raise PlanError(
                    f"There is no selection metric {metric!r}. {did_you_mean(metric, _NAMED)}"
                )
        elif not callable(metric):
            raise PlanError(
                f"`selection_metric` must be one of {', '.join(_NAMED)}, or a function that judges "
                f"scores, got {type(metric).__name__}."
            )
        self._metric = metric
        self.plain = metric == "accuracy" and not weighted

    @property
    def fingerprint(self) -> str:
        """Text that names the metric; empty for accuracy, which all rounds had once."""
        if isinstance(self._metric, str):
            return "" if self._metric == "accuracy" else self._metric
        return named_code(self._metric)

    def __call__(
        self, truth: Labels, scores: Scores, /, *, weights: Floats | None, inputs: AnyArray
    ) -> float:
        """The value of a snapshot on validation rows."""
        if isinstance(self._metric, str):
            return _NAMED[self._metric](truth, scores, weights)
        value = float(self._metric(truth, scores, weights=weights, inputs=inputs))
        if not np.isfinite(value):
            raise TrainingError(
                f"The selection metric gave {value} on {len(truth)} validation rows, and snapshots "
                "cannot be compared by that. Use another metric, or validate on more rows."
            )
        return value


def named_code(thing: Any) -> str:
    """A function or object as text that is the same in every process.

    Example:
        >>> named_code(named_code).startswith("dynsnap.ensemble._selection.named_code#")
        True
    """
    if isinstance(thing, types.FunctionType):
        code = hashlib.sha256(repr(_code(thing.__code__)).encode()).hexdigest()[:16]
        return f"{thing.__module__}.{thing.__qualname__}#{code}"
    text = repr(thing)
    if " at 0x" in text:  # the address of an object is another in every process
        raise PlanError(
            f"Cannot tell one {type(thing).__name__} from another, so a round made with it could "
            "not be found again. Give it a `__repr__` that shows its settings."
        )
    return text


def _code(code: types.CodeType) -> Any:
    constants = [
        _code(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts
    ]
    return code.co_code, code.co_names, constants
