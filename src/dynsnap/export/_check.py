"""An exported graph against the ensemble that it was made of, on inputs of all kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Flags, Floats
from dynsnap.errors import DynSnapError
from dynsnap.export._ensemble import ExportableEnsemble

TOLERANCE = 1e-5
_AT_ONCE = 256


class ExportError(DynSnapError):
    """A graph does not answer as the ensemble does, and was not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check has found; it has passed, or there would be none.

    Attributes:
        random: Random inputs that were compared.
        given: Inputs of the caller that were compared.
        ties: Inputs on which two classes, or a member's two best, are closer than the tolerance:
            their labels were not compared.
        difference: The largest difference of two scores.
    """

    random: int
    given: int
    ties: int
    difference: float


def check(
    run: Callable[[AnyArray], tuple[AnyArray, Floats]],
    ensemble: ExportableEnsemble,
    *,
    random: AnyArray,
    given: AnyArray | None,
    dtype: Any,
) -> Checked:
    """Compare labels and scores, or raise ExportError.

    Args:
        run: The graph: labels and scores of inputs.
        ensemble: The ensemble.
        random: Inputs that were made up.
        given: Inputs of the caller, as they are; the graph gets them in its own type.
        dtype: The type of the graph's input.
    """
    ties, largest = 0, 0.0
    for what, inputs in (("random", random), ("given", given)):
        for start in range(0, 0 if inputs is None else len(inputs), _AT_ONCE):
            part = inputs[start : start + _AT_ONCE]  # type: ignore[index]
            members = ensemble.score(part)
            expected = ensemble.combined(members)
            labels, scores = run(part.astype(dtype))
            apart = np.abs(scores - expected)
            tied = _tied(ensemble, members, expected)
            if ensemble.combination.endswith("majority"):
                apart[tied] = 0  # a member that is undecided may vote for either
            names = np.array(ensemble.classes, dtype=object)
            wrong = (labels != names[expected.argmax(axis=1)]) & ~tied
            worst = float(apart.max(initial=0))
            if wrong.any() or not worst <= TOLERANCE:
                row = int(np.flatnonzero(wrong)[0] if wrong.any() else apart.max(axis=1).argmax())
                raise ExportError(_words(what, start + row, expected[row], scores[row], ensemble))
            ties, largest = ties + int(tied.sum()), max(largest, worst)
    return Checked(
        random=len(random), given=0 if given is None else len(given), ties=ties, difference=largest
    )


def _tied(ensemble: ExportableEnsemble, members: AnyArray, expected: AnyArray) -> Flags:
    """Inputs whose label rounding may decide."""
    if ensemble.combination.endswith("majority"):
        return np.asarray(_close(members).any(axis=0))
    return _close(expected)


def _close(scores: AnyArray) -> Flags:
    if scores.shape[-1] < 2:
        return np.zeros(scores.shape[:-1], dtype=bool)
    best = np.partition(scores, -2, axis=-1)[..., -2:]
    return np.asarray(best[..., 1] - best[..., 0] <= 2 * TOLERANCE)


def _words(
    what: str, row: int, expected: Floats, scores: Floats, ensemble: ExportableEnsemble
) -> str:
    def best(found: Floats) -> str:
        at = int(np.argmax(found))
        return f"{ensemble.classes[at]!r} with {found[at]:.6g}"

    reason = ""
    if ensemble.backend == "boost" and what == "given":
        reason = (
            " Trees in ONNX compare in single precision: round the inputs to float32 before "
            "training, and train again."
        )
    return (
        f"The graph does not answer as the ensemble does, so nothing was written: on {what} input "
        f"{row} it predicts {best(scores)}, the ensemble {best(expected)}; scores may differ by "
        f"{TOLERANCE:g}.{reason}"
    )


def random_inputs(
    shape: tuple[int, ...], dtype: Any, *, seed: int, rows: int = 256, missing: bool = False
) -> AnyArray:
    """Inputs drawn at random: bytes for images of bytes, else numbers of many sizes."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.uint8:
        return rng.integers(0, 256, (rows, *shape), np.uint8)
    found = rng.standard_normal((rows, *shape)).astype(np.float32)
    # Numbers of other sizes on the last quarter: a standardised feature is rarely about 1.
    found[-rows // 4 :] *= np.float32(10) ** rng.integers(-2, 3, (rows // 4, *[1] * len(shape)))
    if missing:
        found[rng.random(found.shape) < 0.05] = np.nan
    return found


def near_thresholds(inputs: AnyArray, thresholds: list[AnyArray], *, seed: int) -> AnyArray:
    """Inputs of which half the numbers are at, just below or just above what trees split at."""
    rng = np.random.default_rng(seed)
    found = inputs.copy()
    for column, values in enumerate(thresholds):
        if not len(values):
            continue
        chosen = rng.choice(values, len(found)).astype(np.float32)
        shift = rng.integers(0, 3, len(found))
        chosen = np.where(shift == 1, np.nextafter(chosen, np.float32(-np.inf)), chosen)
        chosen = np.where(shift == 2, np.nextafter(chosen, np.float32(np.inf)), chosen)
        found[:, column] = np.where(rng.random(len(found)) < 0.5, chosen, found[:, column])
    return found
