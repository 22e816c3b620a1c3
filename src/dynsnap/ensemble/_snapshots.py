"""Which epochs of a round become its snapshots."""

from collections.abc import Sequence

import numpy as np

from dynsnap._types import Positions
from dynsnap.ensemble._recipe import Recipe


def snapshot_epochs(recipe: Recipe, curve: Sequence[float]) -> Positions:
    """The epochs that a recipe keeps of a training, or of its beginning so far.

    "window" keeps the best epoch of each window, in their order; "top" the best epochs of all, the
    best first. On ties it is the earlier one.

    Args:
        recipe: How the round trains.
        curve: Validation accuracy after every epoch so far.

    Example:
        >>> from dynsnap.ensemble import Schedule
        >>> step = Recipe(schedule=Schedule("step"), epochs=4, snapshots=2)
        >>> snapshot_epochs(step, [0.5, 0.7, 0.6, 0.7])
        array([1, 3])
    """
    accuracy = np.asarray(curve)
    if recipe.selection == "top":
        return np.argsort(-accuracy, kind="stable")[: recipe.snapshots]
    starts = np.arange(0, len(accuracy), recipe.window)
    best = [int(np.argmax(accuracy[start : start + recipe.window])) for start in starts]
    return starts + np.array(best, dtype=np.intp)
