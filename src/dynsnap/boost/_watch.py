"""Follow the validation accuracy of one round, and say which epochs are worth a snapshot."""

import numpy as np

from dynsnap._types import Labels, Positions, Scores
from dynsnap.ensemble import Monitor, RoundSpec, snapshot_epochs
from dynsnap.errors import Interrupted, TrainingError


class Watch:
    """Is shown the validation scores after every epoch of one round.

    Attributes:
        curve: Validation accuracy after every epoch so far.
    """

    def __init__(
        self, spec: RoundSpec, *, truth: Labels, seen: Labels, monitor: Monitor | None
    ) -> None:
        self._spec = spec
        self._truth = truth
        self._seen = seen
        self._monitor = monitor
        self.curve: list[float] = []

    def show(self, scores: Scores) -> Positions:
        """Take the scores after one more epoch, and say which epochs are worth keeping so far."""
        if not np.isfinite(scores).all():
            raise TrainingError(
                f"{self._spec} gave scores that are not finite in epoch {len(self.curve)}. "
                "Training has diverged: lower the learning rate, or scale the inputs."
            )
        # The columns are the classes that the round has seen, in their order.
        # In single precision, as they are stored: what is measured here holds for what is kept.
        labels = self._seen[np.argmax(scores.astype(np.float32), axis=1)]
        accuracy = float(np.mean(labels == self._truth))
        self.curve.append(accuracy)
        if self._monitor is not None:
            self._monitor.epoch_done(self._spec, len(self.curve) - 1, accuracy)
            if self._monitor.stopping():
                raise Interrupted(
                    f"Stopped in {self._spec}, after epoch {len(self.curve) - 1}. Finished rounds "
                    "are kept; this one starts over."
                )
        return snapshot_epochs(self._spec.recipe, self.curve)
