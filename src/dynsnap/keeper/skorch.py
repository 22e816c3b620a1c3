"""skorch: a callback that takes the snapshots of one round."""

from typing import Any

from dynsnap.errors import PlanError
from dynsnap.keeper._round import TrainingRound, check_epochs, metric_of, set_rates
from dynsnap.trainers import needed

_callbacks: Any = needed("skorch.callbacks", "skorch")

_HINT = "A net without `train_split`, or without the scorer of that name, validates nothing."


class SnapshotCallback(_callbacks.Callback):  # type: ignore[misc]  # known when it is imported
    """Sets the learning rate of each epoch, and ends the epochs of a round with their accuracy.

    Args:
        training: The round, from `SnapshotKeeper.rounds`. Set `max_epochs=training.epochs_left`.
        monitor: The column of the net's history: a score from 0 to 1 that is better if higher.
    """

    def __init__(self, training: TrainingRound, monitor: str = "valid_acc") -> None:
        self.training = training
        self.monitor = monitor

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **of: Any) -> None:  # noqa: N803
        """Take the module and its optimiser, restored to where they were stopped."""
        check_epochs(self.training, net.max_epochs, "max_epochs")
        if any(isinstance(one, _callbacks.LRScheduler) for _, one in net.callbacks_):
            raise PlanError(
                "The net has a callback `LRScheduler`, and the round has its own schedule. Leave "
                "it out."
            )
        self.rates_ = [float(group["lr"]) for group in net.optimizer_.param_groups]
        self.training.begin(net.module_, net.optimizer_)

    def on_epoch_begin(self, net: Any, **of: Any) -> None:
        """Set the rate of the epoch."""
        factor = self.training.rate(self.training.epochs_done)
        set_rates(net.optimizer_.param_groups, self.rates_, factor)

    def on_epoch_end(self, net: Any, **of: Any) -> None:
        """End the epoch."""
        epoch = self.training.epochs_done
        found = {name: value for name, value in net.history[-1].items() if name != "batches"}
        self.training.end_epoch(epoch, metric_of(found, self.monitor, epoch=epoch, hint=_HINT))
