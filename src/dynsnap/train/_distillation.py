"""The loss of a student: how far its scores are from its teacher's, row by row."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dynsnap.data import Pool
from dynsnap.ensemble import SoftTargets
from dynsnap.errors import PlanError

UNKNOWN = -1.0  # in place of the score of a class that the teacher was never trained on


def soft_losses(logits: Tensor, targets: Tensor, temperature: float | Tensor) -> Tensor:
    """The cross-entropy of each input with what its teacher predicts for it.

    Slopes of softened scores shrink with the square of the temperature, which is undone, so that
    a weight means the same at any temperature. Both are compared on the classes that the teacher
    knows: that it never names another one says nothing.

    Args:
        logits: Of the student, (..., classes).
        targets: Scores of the teacher at the temperature, of the same shape; below zero for a
            class that it does not know.
        temperature: A number, or one for each input, (..., 1).
    """
    known = ~(targets < 0)  # also of what is not a number, which must not pass unnoticed
    cool = (logits.float() / temperature).masked_fill(~known, -torch.inf)
    said = torch.log_softmax(cool, dim=-1)
    square = temperature**2
    return -torch.where(known, targets * said, 0).sum(dim=-1) * (
        square.squeeze(-1) if isinstance(square, Tensor) else square
    )


def soft_slopes(
    logits: Tensor, targets: Tensor, temperature: Tensor, softmax: Callable[[Tensor], Tensor]
) -> Tensor:
    """The slope of `soft_losses` at the logits."""
    cool = (logits / temperature).masked_fill(targets < 0, -torch.inf)
    return (softmax(cool) - targets.clamp(min=0)) * temperature


def mixed(taught: Tensor, labelled: Tensor, weight: Tensor) -> Tensor:
    """The teacher's part of losses, or of their slopes, and the labels' part, as one."""
    return weight * taught + (1 - weight) * labelled


def peer_loss(
    logits: Tensor,
    peer: Tensor,
    labels: Tensor,
    weight: float,
    labelled: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """The mean loss of a network that learns from another one while that is trained beside it.

    Args:
        logits: Of the network.
        peer: Of the other one, on the same inputs. No slope goes back through them.
        labels: The true classes.
        weight: The weight of the other one's scores; labels have the rest.
        labelled: The mean loss of logits and labels.
    """
    taught = soft_losses(logits, peer.detach().float().softmax(dim=-1), 1.0).mean()
    if weight == 1:  # not even zero times something that is not finite
        return taught
    return weight * taught + (1 - weight) * labelled(logits, labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundTargets:
    """What one round learns from beside the labels, on its device.

    Attributes:
        scores: Scores of the teacher at the temperature for every row of the pool,
            (rows, classes), `UNKNOWN` for classes that it does not know; those of rows without a
            weight are ignored.
        weights: The weight of these scores for every row; labels have the rest.
        temperature: What the student's logits are divided by.
        wrong: Whether only rows count that the student gets wrong at the moment.
        everywhere: Whether all rows have the same weight, whatever the student predicts.
    """

    scores: Tensor
    weights: Tensor
    temperature: float
    wrong: bool = False
    everywhere: bool = False

    @classmethod
    def of(cls, soft: SoftTargets, pool: Pool, device: torch.device) -> "RoundTargets":
        """Soft targets for the rows of a pool."""
        if soft.scores.shape != (len(pool), len(pool.classes)):
            raise PlanError(
                f"Soft targets must score the {len(pool)} rows of {pool.name} for its "
                f"{len(pool.classes)} classes, but have the shape {soft.scores.shape}."
            )
        # No round trains on a row without scores, but a place that waits side by side is fed one.
        scores = torch.from_numpy(soft.targets).nan_to_num(nan=0.0)
        return cls(
            scores=scores.to(device),
            weights=torch.full((len(pool),), soft.weight, device=device),
            temperature=soft.temperature,
            everywhere=True,
        )

    def row_losses(self, logits: Tensor, labels: Tensor, rows: Tensor, labelled: Tensor) -> Tensor:
        """The loss of each row of a batch, where rows have weights of their own.

        Args:
            logits: Of the student.
            labels: The true classes.
            rows: Where the inputs are in the pool.
            labelled: The loss of each row's logits and label.
        """
        taught = soft_losses(logits, self.scores[rows], self.temperature)
        weights = self.weights[rows]
        if self.wrong:
            weights = weights * (logits.detach().argmax(dim=1) != labels)
        return mixed(taught, labelled, weights)

    def loss(
        self,
        logits: Tensor,
        labels: Tensor,
        rows: Tensor,
        labelled: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """The mean loss of a batch.

        Args:
            logits: Of the student.
            labels: The true classes.
            rows: Where the inputs are in the pool.
            labelled: The mean loss of logits and labels.
        """
        taught = soft_losses(logits, self.scores[rows], self.temperature)
        weights = self.weights[rows]
        if self.everywhere:
            weight = float(weights[0])
            if weight == 1:  # not even zero times something that is not finite
                return taught.mean()
            return weight * taught.mean() + (1 - weight) * labelled(logits, labels)
        if self.wrong:
            weights = weights * (logits.detach().argmax(dim=1) != labels)
        # The labels' part of rows with a teacher and of those without: a caller's own loss gives
        # means, not rows.
        total = (weights * taught).sum()
        for part, share in ((weights > 0, 1 - weights.max()), (weights == 0, 1.0)):
            if part.any():
                total = total + share * part.sum() * labelled(logits[part], labels[part])
        return total / len(rows)
