"""Lightning: a callback that takes the snapshots of one round."""

import math
from typing import Any

from dynsnap.errors import PlanError
from dynsnap.keeper._round import TrainingRound, check_epochs, metric_of, set_rates
from dynsnap.trainers import needed

_lightning: Any = needed("lightning.pytorch", "lightning")

_HINT = (
    "Pass `val_dataloaders` to `fit`, log the metric in `validation_step`, and validate once in "
    "every epoch."
)


class SnapshotCallback(_lightning.Callback):  # type: ignore[misc]  # known when it is imported
    """Sets the learning rate of each epoch, and ends the epochs of a round with their accuracy.

    Args:
        training: The round, from `SnapshotKeeper.rounds`. Set `max_epochs=training.epochs_left`.
        monitor: The metric that the module logs in validation: a score from 0 to 1 that is better
            if higher.
        per_step: Whether the rate moves on in every step, and not only between epochs.
    """

    def __init__(
        self, training: TrainingRound, *, monitor: str = "val_acc", per_step: bool = False
    ) -> None:
        super().__init__()
        self._training = training
        self._monitor = monitor
        self._per_step = per_step
        self._rates: list[list[float]] = []
        self._validated = False

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Take the module and its optimisers, restored to where they were stopped.

        Not later: the first rows are drawn before training starts.
        """
        check_epochs(self._training, trainer.max_epochs or 0, "max_epochs")
        if trainer.world_size > 1:
            raise PlanError(
                f"A round is trained by one process, but the trainer has {trainer.world_size}. Set "
                "`devices=1`, and train rounds side by side instead."
            )
        if trainer.check_val_every_n_epoch != 1:
            raise PlanError(
                "Snapshots are chosen by the validation of every epoch, but "
                f"`check_val_every_n_epoch` is {trainer.check_val_every_n_epoch}. Set it to 1."
            )
        if trainer.max_steps != -1:
            raise PlanError(
                f"`max_steps` is {trainer.max_steps}, and would end the training within a round. "
                "Leave it out."
            )
        if trainer.lr_scheduler_configs:
            kind = type(trainer.lr_scheduler_configs[0].scheduler).__name__
            raise PlanError(
                f"`configure_optimizers` gives a scheduler ({kind}), and the round has its own "
                "schedule. Return the optimiser alone."
            )
        self._rates = [
            [float(group["lr"]) for group in one.param_groups] for one in trainer.optimizers
        ]
        self._training.begin(pl_module, *trainer.optimizers)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Set the rate of the epoch."""
        self._validated = False
        self._set(trainer, self._training.rate(self._training.epochs_done))

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Set the rate of the step."""
        if self._per_step:
            steps = trainer.num_training_batches
            if not math.isfinite(steps):
                raise PlanError(
                    "`per_step=True` needs the number of steps of an epoch, and the training data "
                    "has no length. Leave it out, or set `limit_train_batches` to a number."
                )
            epoch = self._training.epochs_done
            self._set(trainer, self._training.rate(epoch, step=batch_idx, steps=int(steps)))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Note that the metric is of this epoch."""
        self._validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End the epoch."""
        epoch = self._training.epochs_done
        # A metric of an earlier validation stays among those of the trainer.
        known = trainer.callback_metrics if self._validated else {}
        self._training.end_epoch(epoch, metric_of(known, self._monitor, epoch=epoch, hint=_HINT))

    def _set(self, trainer: Any, factor: float) -> None:
        for optimizer, rates in zip(trainer.optimizers, self._rates, strict=True):
            set_rates(optimizer.param_groups, rates, factor)
