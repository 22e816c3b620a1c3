"""What every stepper works with: the data on the device, the model, the settings."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dynsnap import seeds
from dynsnap._types import Positions
from dynsnap.ensemble import RoundSpec
from dynsnap.errors import FileError, PlanError
from dynsnap.train._augment import Augmentation
from dynsnap.train._factory import Blueprint
from dynsnap.train._lockstep import RoundState
from dynsnap.train._new_words import carried, renewed
from dynsnap.train._optimizers import OptimizerFactory
from dynsnap.train._prepare import Encoded, Preparation, State
from dynsnap.train._weights import StoredLearner, check_weights


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingContext:
    """Settings and data that all rounds share.

    Attributes:
        device: Where to compute.
        precision: The type of forward passes; bfloat16 is mixed with float32 by autocast.
        inputs: The whole pool, encoded, on the device.
        labels: Its labels, on the device.
        parents: Finds the bytes of a stored learner by its key.
    """

    device: torch.device
    precision: torch.dtype
    blueprint: Blueprint
    prepare: Preparation
    inputs: Encoded
    labels: Tensor
    optimizer: OptimizerFactory
    learning_rate: float
    augment: Augmentation | None
    parents: Callable[[str], bytes] | None

    def build(self, round_: RoundState, purpose: str = "initial") -> nn.Module:
        """The module that a round starts from, on the CPU: fresh, or as its parent left it.

        Args:
            round_: The round.
            purpose: What its first weights are drawn for: another one has others.
        """
        spec = round_.spec
        seed = seeds.number(spec.seed, spec.seed_name(), purpose)
        module = self.blueprint.build(dropout=spec.recipe.dropout, seed=seed)
        if spec.parent is not None:
            load(module, self.parent_weights(round_, module.state_dict()))
        return module

    def prepared(self, spec: RoundSpec, train: Positions) -> State:
        """What the preparation of a round has learned from its rows, or from its parent's."""
        if spec.parent is None:
            return self.prepare.fit(self.inputs, train)
        old, module = self.parent(spec).prepared, self.blueprint.template(0.0)
        return renewed(self.prepare, old, module, self.inputs, train)

    def parent_weights(self, round_: RoundState, other: State) -> State:
        """The weights of a round's parent, for what the round reads.

        Args:
            round_: The round.
            other: Weights to take from what the parent did not know, such as words.
        """
        parent = self.parent(round_.spec)
        return carried(
            self.prepare,
            self.blueprint.template(0.0),
            weights=parent.weights,
            old=parent.prepared,
            other=other,
            new=round_.prepared,
        )

    def parent(self, spec: RoundSpec) -> StoredLearner:
        """The stored learner that a round starts from."""
        assert spec.parent is not None
        return self.stored(spec, spec.parent)

    def stored(self, spec: RoundSpec, key: str) -> StoredLearner:
        """A stored learner that a round needs."""
        if self.parents is None:
            raise PlanError(f"{spec} needs a stored learner: hand in `parents` to find it.")
        return StoredLearner.from_bytes(self.parents(key))

    def bind(self, prepared: State, encoded: Encoded | None = None) -> State:
        """What a preparation has fitted, for rows of a data set, by default the pool."""
        bound = self.prepare.bind(prepared, self.inputs if encoded is None else encoded)
        return {name: value.to(self.device) for name, value in bound.items()}

    def autocast(self) -> contextlib.AbstractContextManager[None]:
        """Mixed precision, or nothing."""
        if self.precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.precision)


def load(module: nn.Module, weights: State) -> None:
    """Put stored weights into a module.

    Raises:
        FileError: They belong to another module.
    """
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        # The first thing that differs is enough: torch lists every layer.
        check_weights(
            weights,
            {name: (tuple(one.shape), one.dtype) for name, one in module.state_dict().items()},
        )
        reason = str(error).replace("\n", " ").replace("\t", "")
        raise FileError(
            f"A stored learner does not fit the model: {reason} Hand in the factory that it was "
            "trained with."
        ) from error


def batches(rows: Positions, size: int, device: torch.device) -> Iterator[Tensor]:
    """Rows in parts, on the device."""
    for start in range(0, len(rows), size):
        yield torch.from_numpy(rows[start : start + size]).to(device)
