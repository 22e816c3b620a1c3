"""Which rounds step together, and what computes their steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dynsnap import seeds
from dynsnap.data import Stream, split
from dynsnap.ensemble import RoundSpec
from dynsnap.train._alone import AloneStepper, Loss
from dynsnap.train._bags import BagsStepper
from dynsnap.train._bags import suits as suits_bags
from dynsnap.train._chain import Chain
from dynsnap.train._context import TrainingContext
from dynsnap.train._lockstep import Stepper
from dynsnap.train._optimizers import Adam
from dynsnap.train._stacked import StackedStepper
from dynsnap.train.side_by_side import Losses, groups, is_suited, side_by_side


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundGroup:
    """What rounds have in common that may step together.

    Attributes:
        batch: Rows in a step.
        layers: The stack that they are, None for any other module.
        beside: Whether they may step side by side on a GPU.
        bags: Whether they are fastText on bags of words.
        dropout: What their modules are built with.
    """

    batch: int
    layers: Chain | None = None
    beside: bool = False
    bags: bool = False
    dropout: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundGroups:
    """Sorts the rounds of a trainer into groups, and finds each group its stepper.

    Attributes:
        context: The model, the settings, the data on the device.
        stream: The growing data.
        batch_size: Rows in a step, where a generation has so many.
        loss: The caller's own; None for cross-entropy, the one that all steppers know.
        weighted: Whether rows have weights, which not all steppers know.
        taught: Whether all rounds have soft targets, beside those that have a teacher.
    """

    context: TrainingContext
    stream: Stream
    batch_size: int
    loss: Loss | type[nn.Module] | None
    weighted: bool = False
    taught: bool = False

    def formed(self, specs: Sequence[RoundSpec]) -> dict[RoundGroup, list[RoundSpec]]:
        """The rounds by their groups, in the order in which they should begin."""
        found: dict[RoundGroup, list[RoundSpec]] = {}
        for spec in specs:
            found.setdefault(self.of(spec), []).append(spec)
        for group, members in found.items():
            if group.beside:  # a long round that starts last would be alone in the end
                members.sort(key=lambda spec: -spec.recipe.epochs * self._size(spec))
        return found

    def of(self, spec: RoundSpec) -> RoundGroup:
        """The group of a round, which follows from its spec alone."""
        context, dropout = self.context, spec.recipe.dropout
        batch = min(self.batch_size, self._trained(spec))
        # Asked for first, because it builds the module, and refuses dropout that it does not know.
        layers = context.blueprint.layers(dropout)
        if spec.recipe.codistill:  # two networks to a round: only one stepper holds both
            return RoundGroup(batch=batch)
        if self.bags and _counted(spec):
            return RoundGroup(batch=batch, bags=True)
        plain = isinstance(context.optimizer, Adam) and self.loss is None
        if plain and not self.weighted and is_suited(context):
            return RoundGroup(batch=batch, beside=True, dropout=0.0 if self._grouped else dropout)
        stackable = (
            plain
            and context.prepare.elementwise
            and context.device.type == "cpu"
            and context.precision == torch.float32
        )
        return RoundGroup(batch=batch, layers=layers if stackable else None)

    def steps(self, spec: RoundSpec) -> int:
        """Steps of an epoch of a round."""
        rows = self._trained(spec)
        return -(-rows // min(self.batch_size, rows))

    def stepper(self, group: RoundGroup, specs: Sequence[RoundSpec]) -> Stepper:
        """What computes the steps of these rounds of a group."""
        if group.layers is not None:
            return StackedStepper(self.context, layers=group.layers)
        if group.bags:
            return BagsStepper(self.context)
        if group.beside:
            longest = max(len(rows) for rows in self.stream.generations)
            stepper = side_by_side(
                self.context,
                lambda: self.context.blueprint.build(dropout=group.dropout),
                batch_size=group.batch,
                rows=longest + group.batch,
                wanted=len(specs),
                grouped=self._grouped,
                losses=Losses(
                    taught=self.taught or any(one.distillation is not None for one in specs),
                    smoothed=any(one.recipe.smoothing for one in specs),
                    averaged=any(one.recipe.average for one in specs),
                ),
            )
            if stepper is not None:
                return stepper
        loss = self.loss() if isinstance(self.loss, type) else self.loss
        return AloneStepper(self.context, loss=loss or functional.cross_entropy)

    @cached_property
    def bags(self) -> bool:
        """Whether rounds are fastText that can be trained on bags of words."""
        return self.loss is None and not self.weighted and suits_bags(self.context)

    @cached_property
    def _grouped(self) -> bool:
        """Whether rounds side by side on a GPU can be one network."""
        return groups(self.context, self.context.blueprint.build())

    def _size(self, spec: RoundSpec) -> int:
        return len(self.stream.generations[spec.generation - 1])

    def _trained(self, spec: RoundSpec) -> int:
        """Rows that a round trains on."""
        if self.stream.pool.groups is not None:  # whole groups, so each round has its own number
            rng = seeds.generator(spec.seed, spec.canonical(), "split")
            return len(split(self.stream, spec.generation, rng)[0])
        return self._size(spec) - int(np.sum(self.stream.validation[spec.generation - 1]))


def _counted(spec: RoundSpec) -> bool:
    """Whether the compiled steps on bags of words know what a round asks for."""
    return spec.recipe.plain and (spec.distillation is None or spec.distillation.rows != "wrong")
