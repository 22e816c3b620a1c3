"""One round after another, for any module, optimiser and loss, on any device."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from dynsnap.errors import TrainingError
from dynsnap.train._context import TrainingContext, batches
from dynsnap.train._denormals import flushing_denormals
from dynsnap.train._optimizers import make_optimizer
from dynsnap.train._prepare import State
from dynsnap.train._random import borrowed_random
from dynsnap.train._round_state import RoundState

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]

_EVALUATED_AT_ONCE = 512


@dataclass(eq=False, kw_only=True)
class _Work:
    """What training a lane takes beside the lane itself."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    rates: list[float]  # of the optimiser's groups, before the schedule
    bound: State
    order: Tensor
    random: Tensor  # state of torch's own generator, from which dropout layers draw
    generator: torch.Generator  # for augmentation
    loss: Tensor  # summed over the epoch


class AloneStepper:
    """Steps one lane at a time through the module's own forward and torch's autograd."""

    width = 1
    form = "alone"

    def __init__(self, context: TrainingContext, *, loss: Loss) -> None:
        self._context = context
        self._loss = loss
        self._work: dict[RoundState, _Work] = {}

    def admit(self, lane: RoundState, state: State | None, /) -> None:
        context = self._context
        module = context.build(lane.spec).to(context.device)
        if context.device.type == "cpu" and context.precision == torch.bfloat16:
            # The layout that a CPU's instructions for bfloat16 want of convolutions.
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = make_optimizer(context.optimizer, module, context.learning_rate)
        work = _Work(
            module=module,
            optimizer=optimizer,
            rates=[float(group["lr"]) for group in optimizer.param_groups],
            bound=context.bind(lane),
            order=torch.empty(0),
            random=torch.empty(0),
            generator=torch.Generator(context.device),
            loss=torch.zeros((), device=context.device),
        )
        if state is not None:
            _restore(work, state)
        self._work[lane] = work

    def advance(self, lanes: Sequence[RoundState], steps: int, /) -> None:
        for lane in lanes:
            work = self._work[lane]
            with borrowed_random(), flushing_denormals():
                if lane.step == 0:
                    self._begin(lane, work)
                else:
                    _set_random(self._context.device, work.random)
                try:
                    self._train(work, work.order[lane.step : lane.step + steps])
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    reason = str(error).partition("\n")[0]
                    raise TrainingError(
                        f"{lane.spec} failed in epoch {lane.epoch}, in the model, the loss, the "
                        f"augmentation or the optimiser: {reason}"
                    ) from error
                work.random = _get_random(self._context.device)

    def _begin(self, lane: RoundState, work: _Work) -> None:
        """Everything that an epoch draws from starts at the epoch's own seeds."""
        work.order = torch.from_numpy(lane.order()).to(self._context.device)
        work.generator.manual_seed(lane.seed("augment"))
        torch.manual_seed(lane.seed("noise"))
        multiplier = lane.multipliers[lane.epoch]
        for group, rate in zip(work.optimizer.param_groups, work.rates, strict=True):
            group["lr"] = rate * multiplier
        work.loss.zero_()

    def _train(self, work: _Work, order: Tensor) -> None:
        context, module, optimizer = self._context, work.module, work.optimizer
        module.train()
        for rows in order:
            inputs = context.prepare.apply(context.inputs.take(rows), work.bound)
            if context.augment is not None:
                inputs = context.augment(inputs, work.generator)
            with context.autocast():
                outputs = module(inputs)
                loss = self._loss(outputs, context.labels[rows])
                if (distillation := context.distillation) is not None:
                    taught = distillation.losses(outputs, distillation.targets[rows])
                    loss = distillation.mixed(taught.mean(), loss)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            work.loss += loss.detach()

    def validate(self, lanes: Sequence[RoundState], /) -> list[float]:
        return [self._validate(lane, self._work[lane]) for lane in lanes]

    def _validate(self, lane: RoundState, work: _Work) -> float:
        context = self._context
        work.module.eval()
        right = torch.zeros((), dtype=torch.int64, device=context.device)
        health = work.loss.clone()
        with torch.inference_mode(), context.autocast(), flushing_denormals():
            for rows in batches(lane.validation, _EVALUATED_AT_ONCE, context.device):
                logits = work.module(context.prepare.apply(context.inputs.take(rows), work.bound))
                right += (logits.argmax(dim=1) == context.labels[rows]).sum()
                health += logits.sum()
        if not torch.isfinite(health):
            return float("nan")
        return int(right) / len(lane.validation)

    def weights(self, lane: RoundState, /) -> State:
        return _copies(self._work[lane].module.state_dict())

    def state(self, lane: RoundState, /) -> State:
        work = self._work[lane]
        tensors, plain = _flatten(work.optimizer)
        text = torch.frombuffer(bytearray(json.dumps(plain).encode()), dtype=torch.uint8)
        module = {f"module.{name}": value for name, value in self.weights(lane).items()}
        return {**module, **_copies(tensors), "optimizer": text}

    def release(self, lane: RoundState, /) -> None:
        del self._work[lane]

    def remain(self, lanes: Sequence[RoundState], /) -> None:
        """One lane at a time needs no less room."""


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


def _restore(work: _Work, state: State) -> None:
    plain = json.loads(state["optimizer"].numpy().tobytes())
    slots: dict[int, dict[str, Any]] = {}
    module: State = {}
    stepped = [value for group in work.optimizer.param_groups for value in group["params"]]
    for key, value in state.items():
        kind, _, rest = key.partition(".")
        if kind == "module":
            module[rest] = value
        elif kind == "slot":
            index, _, name = rest.partition(".")
            slots.setdefault(int(index), {})[name] = _laid_out(value, like=stepped[int(index)])
    for place, name, value in plain["values"]:
        slots.setdefault(int(place), {})[name] = value
    work.module.load_state_dict(module)
    work.optimizer.load_state_dict({"state": slots, "param_groups": plain["groups"]})


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
