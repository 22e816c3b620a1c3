"""The loss of a student: how far its scores are from its teachers'."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dynsnap.data import Pool
from dynsnap.ensemble import SoftTargets
from dynsnap.errors import PlanError


@dataclass(frozen=True, eq=False, kw_only=True)
class DistillationLoss:
    """The distance of a student's scores from soft targets, which lie on a device.

    Attributes:
        targets: Softened scores of the teachers for every row of the pool (rows, classes).
        weight: What they count for beside the labels.
        temperature: What the student's logits are divided by.
    """

    targets: Tensor
    weight: float
    temperature: float

    @classmethod
    def of(cls, soft: SoftTargets, pool: Pool, device: torch.device) -> "DistillationLoss":
        """The loss with soft targets for the rows of a pool."""
        if soft.scores.shape != (len(pool), len(pool.classes)):
            raise PlanError(
                f"Soft targets must score the {len(pool)} rows of {pool.name} for its "
                f"{len(pool.classes)} classes, but have the shape {soft.scores.shape}."
            )
        # No round trains on a row without scores, but a place that waits side by side is fed one.
        targets = torch.from_numpy(soft.targets).nan_to_num(nan=0.0)
        return cls(
            targets=targets.to(device),
            weight=soft.weight,
            temperature=soft.temperature,
        )

    def losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy of each input with what the teachers say about it.

        Slopes of softened scores shrink with the square of the temperature, which is undone, so
        that `weight` means the same at any temperature.
        """
        said = torch.log_softmax(logits.float() / self.temperature, dim=-1)
        return -(targets * said).sum(dim=-1) * self.temperature**2

    def slopes(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The slope of `losses` at the logits, from the student's scores at the temperature."""
        return (scores - targets) * self.temperature

    def mixed(self, taught: Tensor, labelled: Tensor) -> Tensor:
        """The teachers' part of a loss, or of its slope, and the labels' part of it, as one."""
        if self.weight == 1:  # not even zero times something that is not finite
            return taught
        return self.weight * taught + (1 - self.weight) * labelled
