"""One round after another, for any module, optimiser and loss, on any device."""

import copy
import functools
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.ensemble import average_decay
from dynsnap.errors import PlanError, TrainingError
from dynsnap.train._context import TrainingContext, batches
from dynsnap.train._devices import flushing_denormals
from dynsnap.train._distillation import peer_loss
from dynsnap.train._items import forward, plain
from dynsnap.train._lockstep import RoundState
from dynsnap.train._optimizers import make_optimizer
from dynsnap.train._prepare import State
from dynsnap.train._threads import borrowed_random

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]

_EVALUATED_AT_ONCE = 512


@dataclass(eq=False, kw_only=True)
class _Peer:
    """The second network of a co-distilled round, which is trained and not served."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    rates: list[float]


@dataclass(eq=False, kw_only=True)
class _AloneRound:
    """What training a round takes beside the round itself."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    rates: list[float]  # of the optimiser's groups, before the schedule
    bound: State
    order: Tensor
    random: Tensor  # state of torch's own generator, from which dropout layers draw
    generator: torch.Generator  # for augmentation
    loss: Tensor  # summed over the epoch
    labelled: Loss  # the mean loss of logits and labels
    by_row: Loss | None  # the loss of each row, where rows have weights
    averaged: nn.Module | None = None  # with an average of the weights of all steps so far
    peer: "_Peer | None" = None  # the network that it learns from while that learns from it

    @property
    def judged(self) -> nn.Module:
        """The module that is validated and kept."""
        return self.module if self.averaged is None else self.averaged

    def follow(self, decay: float) -> None:
        """Move the averages toward the weights and statistics after a step."""
        assert self.averaged is not None
        pairs = [
            (own, now.detach())
            for own, now in zip(_floats(self.averaged), _floats(self.module), strict=True)
        ]
        torch._foreach_lerp_([own for own, _ in pairs], [now for _, now in pairs], 1 - decay)


class AloneStepper:
    """Steps one round at a time through the module's own forward and torch's autograd."""

    width = 1
    form = "alone"

    def __init__(self, context: TrainingContext, *, loss: Loss) -> None:
        self._context = context
        self._loss = loss
        self._work: dict[RoundState, _AloneRound] = {}

    def admit(self, round_: RoundState, state: State | None, /) -> None:
        context = self._context
        first = self._network(round_, "initial")
        module = first.module
        work = _AloneRound(
            module=module,
            optimizer=first.optimizer,
            rates=first.rates,
            bound=context.bind(round_.prepared),
            order=torch.empty(0),
            random=torch.empty(0),
            generator=torch.Generator(context.device),
            loss=torch.zeros((), device=context.device),
            labelled=self._labelled(round_.spec.recipe.smoothing),
            by_row=None if round_.weights is None else self._by_row(round_.spec.recipe.smoothing),
        )
        if round_.spec.recipe.average:
            work.averaged = copy.deepcopy(module).requires_grad_(requires_grad=False)
        if round_.spec.recipe.codistill:
            work.peer = self._network(round_, "peer")
        if state is not None:
            _restore(work, state)
        self._work[round_] = work

    def _network(self, round_: RoundState, purpose: str) -> _Peer:
        context = self._context
        module = context.build(round_, purpose).to(context.device)
        if context.device.type == "cpu" and context.precision == torch.bfloat16:
            # The layout that a CPU's instructions for bfloat16 want of convolutions.
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = make_optimizer(context.optimizer, module, context.learning_rate)
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        return _Peer(module=module, optimizer=optimizer, rates=rates)

    def _labelled(self, smoothing: float) -> Loss:
        if not smoothing:
            return self._loss
        return functools.partial(functional.cross_entropy, label_smoothing=smoothing)

    def _by_row(self, smoothing: float) -> Loss:
        return row_loss(self._labelled(smoothing))

    def advance(self, rounds: Sequence[RoundState], steps: int, /) -> None:
        for round_ in rounds:
            work = self._work[round_]
            with borrowed_random(), flushing_denormals():
                if round_.step == 0:
                    self._begin(round_, work)
                else:
                    _set_random(self._context.device, work.random)
                try:
                    self._train(round_, work, work.order[round_.step : round_.step + steps])
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    reason = str(error).partition("\n")[0]
                    raise TrainingError(
                        f"{round_.spec} failed in epoch {round_.epoch}, in the model, the loss, "
                        f"the augmentation or the optimiser: {reason}"
                    ) from error
                work.random = _get_random(self._context.device)

    def _begin(self, round_: RoundState, work: _AloneRound) -> None:
        """Everything that an epoch draws from starts at the epoch's own seeds."""
        work.order = torch.from_numpy(round_.order()).to(self._context.device)
        work.generator.manual_seed(round_.seed("augment"))
        torch.manual_seed(round_.seed("noise"))
        multiplier = round_.multipliers[round_.epoch]
        for network in (work, work.peer) if work.peer else (work,):
            for group, rate in zip(network.optimizer.param_groups, network.rates, strict=True):
                group["lr"] = rate * multiplier
        work.loss.zero_()

    def _train(self, round_: RoundState, work: _AloneRound, order: Tensor) -> None:
        context, module, optimizer = self._context, work.module, work.optimizer
        average, peer = round_.spec.recipe.average, work.peer
        module.train()
        if peer is not None:
            peer.module.train()
        for taken, rows in enumerate(order, start=round_.epoch * round_.steps + round_.step + 1):
            inputs = context.prepare.apply(context.inputs.take(rows), work.bound)
            if context.augment is not None:
                inputs = context.augment(inputs, work.generator)
            with context.autocast():
                outputs = forward(module, inputs)
                truth = context.labels[rows]
                if peer is not None:
                    weight, theirs = round_.spec.recipe.codistill, forward(peer.module, inputs)
                    loss = peer_loss(outputs, theirs, truth, weight, work.labelled)
                    other = peer_loss(theirs, outputs, truth, weight, work.labelled)
                elif round_.weights is not None:
                    loss = (
                        round_.weights[rows] * _row_losses(round_, work, outputs, rows, truth)
                    ).mean()
                elif round_.targets is None:
                    loss = work.labelled(outputs, truth)
                else:
                    loss = round_.targets.loss(outputs, truth, rows, work.labelled)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if peer is not None:
                peer.optimizer.zero_grad(set_to_none=True)
                other.backward()  # type: ignore[no-untyped-call]
                peer.optimizer.step()
                work.loss += other.detach()
            work.loss += loss.detach()
            if average:
                work.follow(average_decay(average, taken))

    def validate(self, rounds: Sequence[RoundState], /) -> list[float]:
        return [self._validate(round_, self._work[round_]) for round_ in rounds]

    def _validate(self, round_: RoundState, work: _AloneRound) -> float:
        context, module = self._context, work.judged.eval()
        if work.averaged is not None:
            _count_alike(work.averaged, work.module)
        right = torch.zeros((), dtype=torch.int64, device=context.device)
        health = work.loss.clone()
        with torch.inference_mode(), context.autocast(), flushing_denormals():
            for rows in batches(round_.validation, _EVALUATED_AT_ONCE, context.device):
                taken = context.prepare.apply(plain(context.inputs).take(rows), work.bound)
                logits = forward(module, taken)
                right += (logits.argmax(dim=1) == context.labels[rows]).sum()
                health += logits.sum()
        if not torch.isfinite(health):
            return float("nan")
        return int(right) / len(round_.validation)

    def weights(self, round_: RoundState, /) -> State:
        return _copies(self._work[round_].judged.state_dict())

    def state(self, round_: RoundState, /) -> State:
        work = self._work[round_]
        found = _network_state(work)
        if work.averaged is not None:
            averaged = _copies(work.averaged.state_dict())
            found |= {f"average.{name}": value for name, value in averaged.items()}
        if work.peer is not None:
            found |= {f"peer.{name}": value for name, value in _network_state(work.peer).items()}
        return found

    def release(self, round_: RoundState, /) -> None:
        del self._work[round_]

    def remain(self, rounds: Sequence[RoundState], /) -> None:
        """One round at a time needs no less room."""


def row_loss(loss: Loss) -> Loss:
    """A loss that gives one number for each row, for a loss that gives their mean.

    Raises:
        PlanError: The loss has no `reduction` that could be switched off.
    """
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
        found = copy.copy(loss)
        vars(found)["reduction"] = "none"
        return found
    inner = loss.func if isinstance(loss, functools.partial) else loss
    try:
        known = "reduction" in inspect.signature(inner).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        known = False
    if not known:
        raise PlanError(
            "`loss` gives the mean of a batch, so weights of rows and of classes cannot reach its "
            'rows. Let it take `reduction="none"`, as losses of torch do, or leave weights out.'
        )
    return functools.partial(loss, reduction="none")  # type: ignore[call-arg]  # just found


def _row_losses(
    round_: RoundState, work: _AloneRound, outputs: Tensor, rows: Tensor, truth: Tensor
) -> Tensor:
    assert work.by_row is not None
    losses = work.by_row(outputs, truth)
    if losses.shape != truth.shape:
        raise ValueError(
            f"the loss gave the shape {tuple(losses.shape)} for {len(truth)} rows: with weights of "
            "rows it must give one number for each"
        )
    if round_.targets is None:
        return losses
    return round_.targets.row_losses(outputs, truth, rows, losses)


def _floats(module: nn.Module) -> list[Tensor]:
    """The weights and statistics of a module that can be averaged."""
    return [value for value in module.state_dict().values() if value.is_floating_point()]


def _count_alike(averaged: nn.Module, module: nn.Module) -> None:
    """Copy what has no average, such as how many batches a layer has seen."""
    now = module.state_dict()
    for name, value in averaged.state_dict().items():
        if not value.is_floating_point():
            value.copy_(now[name])


def _copies(tensors: State) -> State:
    return {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()}


def _flatten(optimizer: torch.optim.Optimizer) -> tuple[State, dict[str, Any]]:
    """An optimiser's state as named tensors and plain values."""
    state = optimizer.state_dict()
    tensors: State = {}
    values: list[tuple[int, str, Any]] = []
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"slot.{index}.{name}"] = value
            elif value is None or isinstance(value, bool | int | float | str):
                values.append((index, name, value))
            else:
                raise TrainingError(
                    f"{type(optimizer).__name__} keeps a {type(value).__name__} in its state, "
                    "which cannot be saved. Train without `checkpoints`, or use another optimiser."
                )
    return tensors, {"values": values, "groups": state["param_groups"]}


def _network_state(network: "_AloneRound | _Peer") -> State:
    """A network and its optimiser as named tensors."""
    tensors, plain = _flatten(network.optimizer)
    text = torch.frombuffer(bytearray(json.dumps(plain).encode()), dtype=torch.uint8)
    module = _copies(network.module.state_dict())
    named = {f"module.{name}": value for name, value in module.items()}
    return {**named, **_copies(tensors), "optimizer": text}


def _restore(work: _AloneRound, state: State) -> None:
    _restore_network(work, state)
    if work.averaged is not None:
        work.averaged.load_state_dict(_of_kind(state, "average"))
    if work.peer is not None:
        _restore_network(work.peer, _of_kind(state, "peer"))


def _of_kind(state: State, kind: str) -> State:
    start = f"{kind}."
    return {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}


def _restore_network(network: "_AloneRound | _Peer", state: State) -> None:
    plain = json.loads(state["optimizer"].numpy().tobytes())
    slots: dict[int, dict[str, Any]] = {}
    stepped = [value for group in network.optimizer.param_groups for value in group["params"]]
    for key, value in _of_kind(state, "slot").items():
        index, _, name = key.partition(".")
        slots.setdefault(int(index), {})[name] = _laid_out(value, like=stepped[int(index)])
    for place, name, value in plain["values"]:
        slots.setdefault(int(place), {})[name] = value
    network.module.load_state_dict(_of_kind(state, "module"))
    network.optimizer.load_state_dict({"state": slots, "param_groups": plain["groups"]})


def _laid_out(slot: Tensor, *, like: Tensor) -> Tensor:
    """A slot in memory as its parameter is: fused optimisers take it that all lies alike."""
    if slot.shape != like.shape:
        return slot
    return torch.empty_like(like, dtype=slot.dtype, device=slot.device).copy_(slot)


def _get_random(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state() if device.type == "cuda" else torch.get_rng_state()


def _set_random(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state)
    else:
        torch.set_rng_state(state)
