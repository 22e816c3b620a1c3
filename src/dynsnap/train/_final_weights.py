"""What becomes of a round's weights after its last epoch: new statistics, interpolation."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dynsnap import seeds
from dynsnap._types import Flags, Floats, Labels, Positions, Scores
from dynsnap.train._context import TrainingContext, batches, load
from dynsnap.train._devices import flushing_denormals, log
from dynsnap.train._items import forward, plain
from dynsnap.train._lockstep import RoundState
from dynsnap.train._prepare import Encoded, State

_ROWS_AT_ONCE = 512
STEPS = tuple(step / 10 for step in range(9))  # toward the parent; all the way is the parent
NEW_CLASS_KEPT = 0.97  # of the rows of a new class that are right without interpolation
_ROUNDING = 1e-12  # of all weights: sums of different rows that are equal but for rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutRows:
    """Rows that no network was ever trained on.

    Attributes:
        inputs: A data set that holds them.
        rows: Where they are in it.
        labels: Their true classes.
        new: Which classes the generation before did not know.
        weights: How much each of them counts; None where all count 1.
        pool_weights: The same of the rows that are trained on, of which some may join them.
    """

    inputs: Encoded
    rows: Positions
    labels: Labels
    new: Flags
    weights: Floats | None = None
    pool_weights: Floats | None = None

    def joined_weights(self, aside: Positions) -> Floats | None:
        """How much these rows count, and after them some that are trained on otherwise."""
        if self.weights is None and self.pool_weights is None:
            return None
        first = np.ones(len(self.rows)) if self.weights is None else self.weights
        second = np.ones(len(aside)) if self.pool_weights is None else self.pool_weights[aside]
        return np.concatenate([first, second])


def chosen_step(
    labels: Iterable[Labels],
    deployed: Labels,
    truth: Labels,
    *,
    new: Flags,
    steps: Iterable[float],
    weights: Floats | None = None,
) -> float:
    """How far to move weights toward the deployed ones: the step that loses least.

    A step must leave accuracy at least where it is, and nearly all that is right of each new class.
    Of those that do, the one with the fewest rows that the deployed network has right and the
    moved one wrong; of equals the shortest. A row of weight 3 is three rows.

    Args:
        labels: Labels of the network on held-out rows after each step, the first without a move.
        deployed: Labels of the deployed network.
        truth: The true classes.
        new: Which classes are new.
        steps: The steps, rising from 0.
        weights: How much each row counts; None where all count 1.

    Example:
        >>> truth, deployed = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
        >>> here, there = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 0])
        >>> chosen_step([here, there], deployed, truth, new=np.zeros(2, bool), steps=[0, 0.5])
        0.5
        >>> chosen_step([here, there], deployed, truth, new=np.array([False, True]), steps=[0, 0.5])
        0
    """
    counts = np.ones(len(truth)) if weights is None else weights
    close = _ROUNDING * counts.sum()
    start, best = None, (0.0, np.inf)
    for step, found in zip(steps, labels, strict=True):
        right = found == truth
        in_all = counts[right].sum()
        of_new = np.array([counts[right & (truth == place)].sum() for place in np.flatnonzero(new)])
        if start is None:
            start = in_all, of_new
        lost = counts[(deployed == truth) & ~right].sum()
        as_right = in_all >= start[0] - close
        kept = as_right and (of_new >= NEW_CLASS_KEPT * start[1] - close).all()
        if kept and lost < best[1] - close:
            best = step, lost
    return best[0]


class FinalWeights:
    """The weights that a finished round is kept with, and their validation accuracy.

    Statistics of batch norm belong to the weights that they were taken with, and an average of
    weights is another network: its statistics are taken again, over the round's training rows as
    training shows them.

    Args:
        round_: The round.
        context: Data and model.
        held_out: Rows that interpolation is decided by; those of new classes that the round has
            set aside of its training rows join them.
    """

    def __init__(
        self, round_: RoundState, context: TrainingContext, held_out: HeldOutRows | None = None
    ) -> None:
        self._round, self._context, self._held_out = round_, context, held_out
        self._bound = context.bind(round_.prepared)

    def settle(self, weights: State, accuracy: float) -> tuple[State, float]:
        """The final weights of one snapshot, from those that training left and their accuracy."""
        spec = self._round.spec
        if not spec.recipe.average and not spec.interpolate:
            return weights, accuracy
        with flushing_denormals():
            if spec.interpolate:
                module = self._interpolated(weights)
            else:
                module = self._module(weights)
                if not _norms(module):
                    return weights, accuracy
                self._take_statistics(module)
            return _state(module), self._accuracy(module)

    def _interpolated(self, weights: State) -> nn.Module:
        """The network on the way to the deployed one, as far as held-out rows allow."""
        spec, held_out = self._round.spec, self._held_out
        assert held_out is not None
        parent = self._context.parent(spec)
        old = self._context.parent_weights(self._round, weights)
        aside = self._round.aside
        pool_labels = self._context.labels.cpu().numpy()
        truth = np.concatenate([held_out.labels, pool_labels[aside]])
        own, theirs = map(self._bounds, (self._round.prepared, parent.prepared))
        deployed = self._judged(self._module(parent.weights), theirs)
        steps = STEPS if aside.size or len(held_out.rows) else STEPS[:1]
        found = (self._judged(self._moved(weights, old, step), own) for step in steps)
        counts = held_out.joined_weights(aside)
        step = chosen_step(found, deployed, truth, new=held_out.new, steps=steps, weights=counts)
        log.debug("%s: weights moved %.1f of the way to the deployed ones.", spec, step)
        return self._moved(weights, old, step)

    def _moved(self, weights: State, old: State, step: float) -> nn.Module:
        mixed = {
            name: torch.lerp(value, old[name], step) if value.is_floating_point() else value
            for name, value in weights.items()
        }
        module = self._module(mixed)
        self._take_statistics(module)
        return module

    def _bounds(self, prepared: State) -> tuple[State, State]:
        """A preparation for the held-out rows, and for those set aside for new classes."""
        assert self._held_out is not None
        return self._context.bind(prepared, self._held_out.inputs), self._context.bind(prepared)

    def _judged(self, module: nn.Module, bounds: tuple[State, State]) -> Labels:
        """Labels of a network on the held-out rows, then on those set aside for new classes."""
        held_out = self._held_out
        assert held_out is not None
        first = self._labels(module, held_out.rows, held_out.inputs, bounds[0])
        second = self._labels(module, self._round.aside, self._context.inputs, bounds[1])
        return np.concatenate([first.cpu().numpy(), second.cpu().numpy()])

    def _module(self, weights: State) -> nn.Module:
        context = self._context
        module = context.blueprint.build(dropout=self._round.spec.recipe.dropout)
        load(module, weights)
        return module.to(context.device).eval()

    @torch.no_grad()
    def _take_statistics(self, module: nn.Module) -> None:
        context, round_ = self._context, self._round
        norms = _norms(module)
        if not norms:
            return
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all batches
            norm.train()
        generator = torch.Generator(context.device).manual_seed(self._seed("augment"))
        for rows in batches(self._in_batches(round_.train), _ROWS_AT_ONCE, context.device):
            inputs = context.prepare.apply(context.inputs.take(rows), self._bound)
            if context.augment is not None:
                inputs = context.augment(inputs, generator)
            forward(module, inputs)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        module.eval()

    def _in_batches(self, rows: Positions) -> Positions:
        """Rows in an order of their own, as many as fill batches: all count the same."""
        drawn = seeds.generator(
            self._round.spec.seed, self._round.spec.seed_name(), "statistics"
        ).permutation(rows)
        full = len(rows) // _ROWS_AT_ONCE * _ROWS_AT_ONCE
        return drawn[: full or len(rows)]

    def _seed(self, purpose: str) -> int:
        spec = self._round.spec
        return seeds.number(spec.seed, spec.seed_name(), "statistics", purpose)

    @torch.inference_mode()
    def _labels(self, module: nn.Module, rows: Positions, encoded: Encoded, bound: State) -> Tensor:
        context = self._context
        found = [torch.zeros(0, dtype=torch.int64, device=context.device)]
        found += [
            forward(module, context.prepare.apply(plain(encoded).take(some), bound)).argmax(dim=1)
            for some in batches(rows, _ROWS_AT_ONCE, context.device)
        ]
        return torch.cat(found)

    @torch.inference_mode()
    def validation_scores(self, weights: State) -> Scores:
        """What a network with these weights says of the round's validation rows."""
        context, module = self._context, self._module(weights)
        encoded = plain(context.inputs)
        with context.autocast(), flushing_denormals():
            found = [
                forward(module, context.prepare.apply(encoded.take(some), self._bound)).float()
                for some in batches(self._round.validation, _ROWS_AT_ONCE, context.device)
            ]
        scores: Scores = torch.cat(found).softmax(dim=1).cpu().numpy()
        return scores

    def _accuracy(self, module: nn.Module) -> float:
        rows = self._round.validation
        truth = self._context.labels[torch.from_numpy(rows).to(self._context.device)]
        found = self._labels(module, rows, self._context.inputs, self._bound)
        return float((found == truth).double().mean())


def _norms(module: nn.Module) -> list[_BatchNorm]:
    """The layers of a module that keep statistics of what they have seen."""
    return [
        part
        for part in module.modules()
        if isinstance(part, _BatchNorm) and part.track_running_stats
    ]


def _state(module: nn.Module) -> State:
    # Copies: parameters that are tied share memory, which no file takes.
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
