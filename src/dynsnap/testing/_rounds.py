"""What the checks compare rounds with, and follow training by."""

import numpy as np

from dynsnap._types import Floats, Positions
from dynsnap.ensemble import Recipe, Round, RoundSpec


def assert_same_round(found: Round, expected: Round, *, tolerance: float = 0.0) -> None:
    """Fail unless two rounds are the same round, their scores within the tolerance."""
    assert found.spec == expected.spec, f"got {found.spec}, expected {expected.spec}"
    where = str(expected.spec)
    exact = tolerance == 0.0
    if exact:
        np.testing.assert_array_equal(found.accuracy, expected.accuracy, err_msg=where)
        np.testing.assert_array_equal(found.epochs, expected.epochs, err_msg=where)
        np.testing.assert_array_equal(found.curve, expected.curve, err_msg=where)
        assert found.weights == expected.weights, f"{where}: the weights differ"
    assert found.scores.keys() == expected.scores.keys(), f"{where}: other evaluation sets"
    for name, scores in expected.scores.items():
        np.testing.assert_allclose(
            found.scores[name], scores, rtol=0, atol=tolerance, err_msg=f"{where}, `{name}`"
        )


def expected_epochs(recipe: Recipe, curve: Floats) -> Positions:
    """The epochs that a recipe keeps of a finished training, written for reading, not for speed."""
    if recipe.selection == "top":
        ranked = sorted(range(len(curve)), key=lambda epoch: (-curve[epoch], epoch))
        return np.array(ranked[: recipe.snapshots])
    windows = [
        range(len(curve))[i : i + recipe.window] for i in range(0, len(curve), recipe.window)
    ]
    return np.array([max(window, key=lambda epoch: (curve[epoch], -epoch)) for window in windows])


class Notebook:
    """A monitor that writes down what it is told, and may stop training after some epochs.

    Example:
        >>> notebook = Notebook(stop_after=1)
        >>> notebook.stopping()
        False
    """

    def __init__(self, *, stop_after: int | None = None) -> None:
        self.epochs: list[tuple[RoundSpec, int, float]] = []
        self._stop_after = stop_after

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self.epochs.append((spec, epoch, accuracy))

    def stopping(self) -> bool:
        return self._stop_after is not None and len(self.epochs) >= self._stop_after
