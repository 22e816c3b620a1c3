"""Follow the validation accuracy of one round, and say which epochs are worth a snapshot."""

from collections.abc import Callable

import numpy as np

from dynsnap._types import Labels, Positions, Scores
from dynsnap.boost._saver import RoundCheckpointSaver, State
from dynsnap.ensemble import Monitor, RoundSpec, snapshot_epochs
from dynsnap.errors import Interrupted, TrainingError


class EpochWatch:
    """Is shown the validation scores after every epoch of one round, and may stop it there.

    Attributes:
        curve: Validation accuracy after every epoch so far; its length is the epoch that is next.
        stopping: Whether the monitor has asked to stop.
    """

    def __init__(
        self,
        spec: RoundSpec,
        *,
        truth: Labels,
        seen: Labels,
        monitor: Monitor | None,
        saver: RoundCheckpointSaver,
        curve: list[float],
    ) -> None:
        self._spec = spec
        self._truth = truth
        self._seen = seen
        self._monitor = monitor
        self._saver = saver
        self.curve = curve
        self.stopping = False

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
        self.curve.append(float(np.mean(labels == self._truth)))
        return snapshot_epochs(self._spec.recipe, self.curve)

    def rest(self, state: Callable[[], State] | None) -> None:
        """The epoch that was shown is over: the place to save the round, and to stop.

        Args:
            state: Gives all that the learner needs to go on from here; None where no file can
                hold it.

        Raises:
            Interrupted: The monitor asked to stop, and epochs are left to train.
        """
        epoch = len(self.curve) - 1
        if self._monitor is not None:
            self._monitor.epoch_done(self._spec, epoch, self.curve[-1])
            self.stopping = self.stopping or self._monitor.stopping()
        if epoch + 1 == self._spec.recipe.epochs:
            return  # the round is as good as finished
        if state is not None and (self.stopping or self._saver.due()):
            self._saver.save(self.curve, state())
        if self.stopping:
            saved = "was saved as it is" if self._saver.saves and state is not None else "is lost"
            raise Interrupted(
                f"Training stopped as asked in {self._spec}, after epoch {epoch}: it {saved}."
            )
