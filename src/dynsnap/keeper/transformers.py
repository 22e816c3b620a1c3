"""Hugging Face: a callback for its `Trainer`, and a loss that learns from a deployed ensemble."""

import math
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Scores
from dynsnap.errors import InputError, PlanError
from dynsnap.keeper._round import TrainingRound, check_epochs, metric_of, set_rates, torch_part
from dynsnap.trainers import needed

_transformers: Any = needed("transformers", "transformers")

_HINT = 'Pass `eval_dataset` and `compute_metrics`, and set `eval_strategy="epoch"`.'


class SnapshotCallback(_transformers.TrainerCallback):  # type: ignore[misc]  # known at import
    """Sets the learning rate of each step, and ends the epochs of a round with their accuracy.

    Args:
        training: The round, from `SnapshotKeeper.rounds`. Set
            `num_train_epochs=training.epochs_left` and `eval_strategy="epoch"`; and
            `data_seed=training.seed + training.epochs_done`, so that a round that was stopped goes
            on with the order of rows that it would have had.
        metric: What `compute_metrics` returns, behind "eval_": a score from 0 to 1 that is better
            if higher.
    """

    def __init__(self, training: TrainingRound, *, metric: str = "eval_accuracy") -> None:
        self._training = training
        self._metric = metric
        self._rates: list[float] = []
        self._steps = 1
        self._start = 0
        self._open = False
        self._found: dict[str, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **of: Any) -> None:
        """Take the model and its optimiser, restored to where they were stopped."""
        check_epochs(self._training, args.num_train_epochs, "num_train_epochs")
        if args.eval_strategy != "epoch" or args.max_steps > 0:
            raise PlanError(
                "Snapshots are chosen by the validation of every epoch, but `eval_strategy` is "
                f'"{getattr(args.eval_strategy, "value", args.eval_strategy)}" and `max_steps` is '
                f'{args.max_steps}. Set `eval_strategy="epoch"` and leave `max_steps` out.'
            )
        if args.world_size > 1:
            raise PlanError(f"A round is trained by one process, got {args.world_size}.")
        # The trainer's own scheduler may have set `lr` already, to 0 where it has a warm-up.
        self._rates = [
            float(group.get("initial_lr", group["lr"])) for group in of["optimizer"].param_groups
        ]
        batches = len(of["train_dataloader"])
        self._steps = math.ceil(batches / args.gradient_accumulation_steps)
        self._training.begin(of["model"], of["optimizer"])

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **of: Any) -> None:
        """Count the steps of the epoch."""
        self._check_evaluated()
        self._open, self._start, self._found = True, state.global_step, {}

    def on_step_begin(self, args: Any, state: Any, control: Any, **of: Any) -> None:
        """Set the rate of the step; the trainer's own scheduler moves only after it."""
        step = min(state.global_step - self._start, self._steps - 1)
        factor = self._training.rate(self._training.epochs_done, step=step, steps=self._steps)
        set_rates(of["optimizer"].param_groups, self._rates, factor)

    def on_evaluate(self, args: Any, state: Any, control: Any, **of: Any) -> None:
        """End the epoch."""
        if not self._open:  # evaluated by hand, after training
            return
        self._found.update(of["metrics"])
        if self._metric in self._found:  # else it is that of another of several evaluation sets
            self._end()

    def on_train_end(self, args: Any, state: Any, control: Any, **of: Any) -> None:
        """Refuse a last epoch that was not evaluated."""
        self._check_evaluated()

    def _check_evaluated(self) -> None:
        if self._open:
            self._end()  # which shows what was logged instead

    def _end(self) -> None:
        epoch, self._open = self._training.epochs_done, False
        found = metric_of(self._found, self._metric, epoch=epoch, hint=_HINT)
        self._training.end_epoch(epoch, found)


def taught_labels(labels: Any, scores: Scores) -> AnyArray:
    """Labels together with what a teacher says, for the column "labels" of a training set.

    Args:
        labels: The class of each row, as a position.
        scores: The teacher's scores for each row, (rows, classes), as `predict_proba` gives them. A
            class without any score is one that it does not know: it gets -1, and rows of it have
            no teacher.

    Example:
        >>> taught_labels([0, 1], np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]])).tolist()
        [[0.0, 0.75, 0.25, -1.0], [1.0, 0.5, 0.5, -1.0]]
    """
    own = np.asarray(labels)
    found = np.array(scores, np.float32)
    if found.ndim != 2 or own.shape != found.shape[:1]:
        raise InputError(
            f"The teacher's scores must be (rows, classes) for {own.shape[:1]} rows, but have the "
            f"shape {found.shape}."
        )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
        raise InputError(
            f"The teacher's scores must be finite, but those of row {row} are {found[row]}. Score "
            "all rows, or give those without a teacher zeros."
        )
    known = found.sum(axis=0) > 0
    found[~known[own]] = 0
    found[:, ~known] = -1
    return np.column_stack([own.astype(np.float32), found])


class DistillationLoss:
    """A `compute_loss_func` of the Hugging Face `Trainer`: the labels and a deployed ensemble.

    The loss of a row is weight · T² · CE(teacher at T, student at T) + (1 − weight) · CE(label).
    Rows without a teacher, and plain labels, as in validation, count by their label alone.

    Args:
        weight: The weight of the teacher, above 0 and at most 1.
        temperature: What the logits of both are divided by.
    """

    def __init__(self, *, weight: float = 0.5, temperature: float = 1.0) -> None:
        torch_part().check_distillation(weight, temperature)
        self._weight = weight
        self._temperature = temperature

    def __call__(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        """The mean loss of a batch, or its part of the mean over `num_items_in_batch`."""
        losses = torch_part().taught_losses(
            outputs["logits"] if isinstance(outputs, dict) else outputs[0],
            labels,
            weight=self._weight,
            temperature=self._temperature,
        )
        if num_items_in_batch is None:
            return losses.mean()
        # The trainer counts the numbers among the labels; a row that is taught has several.
        return losses.sum() * (labels.numel() / len(labels)) / num_items_in_batch
