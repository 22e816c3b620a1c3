"""Scores of learners: stacked where they are small and dense, one after another elsewhere."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dynsnap import seeds
from dynsnap._types import AnyArray, MemberScores
from dynsnap.errors import DynSnapError, FileError, InputError, one_line
from dynsnap.train._bags import Bags, KnownBags, is_bag
from dynsnap.train._chain import Chain
from dynsnap.train._context import load
from dynsnap.train._devices import choose_device, without_denormals
from dynsnap.train._factory import Blueprint, is_dropout
from dynsnap.train._items import scores_of
from dynsnap.train._preparations import from_header
from dynsnap.train._prepare import Encoded, Preparation, State
from dynsnap.train._stacked import Masks, Stack, drop, flatten, softmax
from dynsnap.train._text import Texts, Words
from dynsnap.train._threads import Copies, OwnRandom, on_one_thread
from dynsnap.train._weights import StoredLearner, check_claims

# How inputs are cut up can show in the last bits of a product, so it never varies.
_STACKED_AT_ONCE = 256
_ALONE_AT_ONCE = 512


class Predictor:
    """Stored learners, ready to score inputs.

    A learner that was trained for several passes with dropout on gives one member for each.

    Args:
        weights: Learners as a round stores them.
        model: The factory that they were trained with.
        prepare: The preparation that they were trained with; needed only if it was the caller's.
        device: Where to compute.
        members: How many members they must give, where a file states it too.
        classes: How many classes they must know, likewise.

    Raises:
        FileError: The learners are damaged, or claim something that is not so: they may come from
            a stranger.
    """

    def __init__(
        self,
        weights: Sequence[bytes],
        *,
        model: Callable[..., nn.Module],
        prepare: Preparation | None = None,
        device: str = "auto",
        members: int | None = None,
        classes: int | None = None,
    ) -> None:
        if not weights:
            raise InputError("There is nothing to predict with: no learners were given.")
        learners = [StoredLearner.from_bytes(content) for content in weights]
        kinds = {(one.classes, str(one.offers), str(one.prepare)) for one in learners}
        if len(kinds) > 1:
            raise FileError(
                "The learners do not belong together: they differ in classes, inputs or "
                "preparation. Predict with the learners of one study."
            )
        first = learners[0]
        blueprint = Blueprint(factory=model, classes=first.classes, offers=first.offers)
        prepare = prepare or from_header(first.prepare)
        check_claims(
            learners, blueprint=blueprint, prepare=prepare, members=members, classes=classes
        )
        self._scoring = Scoring(
            learners, blueprint=blueprint, prepare=prepare, device=choose_device(device)
        )

    @property
    def members(self) -> int:
        """How many rows of scores each input gets."""
        return self._scoring.members

    def __call__(self, inputs: AnyArray, /) -> MemberScores:
        """Scores (members, inputs, classes) for inputs in the form that the pool has."""
        return self._scoring(inputs)


class Scoring:
    """Learners of one task, with the modules to run them."""

    def __init__(
        self,
        learners: Sequence[StoredLearner],
        *,
        blueprint: Blueprint,
        prepare: Preparation,
        device: torch.device,
    ) -> None:
        self.members = sum(one.passes for one in learners)
        self._classes = blueprint.classes
        self._offers = dict(blueprint.offers)
        self._prepare = prepare
        self._device = device
        starts = np.cumsum([0, *(one.passes for one in learners)])
        self._groups: list[tuple[list[int], _Group]] = []
        for dropout, passes in dict.fromkeys((one.dropout, one.passes) for one in learners):
            alike = [
                (one, start)
                for one, start in zip(learners, starts[:-1].tolist(), strict=True)
                if (one.dropout, one.passes) == (dropout, passes)
            ]
            rows = [start + index for _, start in alike for index in range(passes)]
            group = _group([one for one, _ in alike], blueprint, prepare, device)
            self._groups.append((rows, group))

    def __call__(self, inputs: AnyArray) -> MemberScores:
        with torch.device("cpu"):
            encoded = self._prepare.encode(inputs)
        return self.of(encoded.to(self._device))

    def of(self, encoded: Encoded) -> MemberScores:
        """Scores of inputs that are encoded already, on the device."""
        found = {**self._prepare.offers(encoded)}
        if len(encoded) and found != self._offers:
            raise InputError(
                f"The learners were trained on {_words(self._offers)}, but these inputs have "
                f"{_words(found)}."
            )
        # In the precision and where the weights are, whatever the caller's thread is set to.
        with torch.autocast(self._device.type, enabled=False), self._device:
            try:
                found_scores = [group.scores(encoded).cpu().numpy() for _, group in self._groups]
            except DynSnapError:
                raise
            except (IndexError, RuntimeError, TypeError, ValueError) as error:  # of their module
                reason = one_line(str(error)).rstrip(".") or type(error).__name__
                raise InputError(f"The learners cannot score these inputs: {reason}.") from error
        if len(found_scores) == 1:
            return found_scores[0]
        scores = np.empty((self.members, len(encoded), self._classes), np.float32)
        for (rows, _), part in zip(self._groups, found_scores, strict=True):
            scores[rows] = part
        return scores


class _Group(Protocol):
    """Learners of one structure."""

    def scores(self, encoded: Encoded, /) -> Tensor:
        """(learners · passes, inputs, classes)."""
        ...


class _StackedGroup:
    """Small dense learners, all at once."""

    def __init__(
        self, learners: Sequence[StoredLearner], layers: Chain, prepare: Preparation
    ) -> None:
        self._learners = learners
        self._layers = layers
        self._prepare = prepare
        rows = [flatten(layers, one.weights) for one in learners]
        self._stack = Stack(layers, torch.stack(rows))
        self._prepared = {
            name: torch.stack([one.prepared[name] for one in learners]).unsqueeze(1)
            for name in learners[0].prepared
        }

    def scores(self, encoded: Encoded, /) -> Tensor:
        return on_one_thread(lambda: self._scores(encoded))

    @torch.inference_mode()
    def _scores(self, encoded: Encoded) -> Tensor:
        passes = self._learners[0].passes
        if passes == 1:
            return self._pass(encoded, None)
        drawn = [self._pass(encoded, self._masks(index)) for index in range(passes)]
        return torch.stack(drawn, dim=1).flatten(0, 1)

    def _pass(self, encoded: Encoded, masks: Masks | None) -> Tensor:
        scores = torch.empty(len(self._learners), len(encoded), self._layers[-1].outputs)
        for start in range(0, len(encoded), _STACKED_AT_ONCE):
            raw = encoded.part(start, start + _STACKED_AT_ONCE).unsqueeze(0)
            inputs = self._prepare.apply(raw, self._prepared).flatten(2)
            inputs = inputs.expand(len(self._learners), -1, -1)
            part = softmax(self._stack.logits(inputs, masks))
            scores[:, start : start + part.shape[1]] = part
        return scores

    def _masks(self, index: int) -> Masks:
        """Dropout of one pass, which every learner draws from its own noise."""
        noise = [torch.Generator().manual_seed(_seed(one, index)) for one in self._learners]
        return lambda place, value: drop(value, self._layers[place].share, noise)


class _AloneGroup:
    """Learners of any kind, one after another in the same module."""

    def __init__(
        self,
        learners: Sequence[StoredLearner],
        module: nn.Module,
        prepare: Preparation,
        device: torch.device,
    ) -> None:
        self._learners = learners
        self._prepare = prepare
        self._device = device
        self._noisy = learners[0].passes > 1
        module.to(device).eval()
        for part in module.modules():
            if is_dropout(part):
                part.train(self._noisy)
        self._copies = Copies(module)
        self._written = _written(module)
        self._weights = [
            {name: value.to(device) for name, value in without_denormals(one.weights).items()}
            for one in learners
        ]

    @torch.inference_mode()
    def scores(self, encoded: Encoded, /) -> Tensor:
        members = []
        known: dict[int, State] = {}  # snapshots of one round share what it has fitted
        with self._copies.lent() as module:
            for one, weights in zip(self._learners, self._weights, strict=True):
                own = id(one.prepared)
                if own not in known:
                    bound = self._prepare.bind(one.prepared, encoded)
                    known[own] = {name: value.to(self._device) for name, value in bound.items()}
                for index in range(one.passes):
                    with self._noise(one, index):
                        members.append(self._member(module, encoded, weights, known[own]))
        return torch.stack(members)

    def _noise(self, one: StoredLearner, index: int) -> contextlib.AbstractContextManager[object]:
        """Where the dropout of a pass is drawn from."""
        if not self._noisy:
            return contextlib.nullcontext()
        return OwnRandom(_seed(one, index))

    def _member(self, module: nn.Module, encoded: Encoded, weights: State, bound: State) -> Tensor:
        if self._written:
            weights = weights | {name: weights[name].clone() for name in self._written}
        parts = []
        for start in range(0, max(1, len(encoded)), _ALONE_AT_ONCE):
            inputs = self._prepare.apply(encoded.part(start, start + _ALONE_AT_ONCE), bound)
            named = isinstance(inputs, Mapping)
            given = ((), dict(inputs)) if named else ((inputs,), {})
            # A parameter that two layers share is stored for each of them.
            called = torch.func.functional_call(module, weights, *given, tie_weights=False)
            logits = scores_of(called)
            parts.append(torch.softmax(logits.float(), -1))
        return torch.cat(parts)


class _BagsGroup:
    """fastText learners, whose texts are counted once for all of them."""

    def __init__(self, learners: Sequence[StoredLearner], prepare: Words, dropout: float) -> None:
        self._learners = learners
        self._prepare = prepare
        self._dropout = dropout

    def scores(self, encoded: Encoded, /) -> Tensor:
        assert isinstance(encoded, Texts)
        texts = encoded
        return on_one_thread(lambda: self._scores(texts))

    @torch.inference_mode()
    def _scores(self, texts: Texts) -> Tensor:
        bags = Bags(texts, self._prepare)
        known: dict[int, KnownBags] = {}  # snapshots of one round share a vocabulary
        members = []
        for one in self._learners:
            own = id(one.prepared)
            if own not in known:
                known[own] = bags.known(self._prepare.bind(one.prepared, texts))
            means = known[own].means(np.arange(len(texts)), one.weights["vectors.weight"])
            members += [self._pass(means, one, index) for index in range(one.passes)]
        return torch.stack(members)

    def _pass(self, means: Tensor, one: StoredLearner, index: int) -> Tensor:
        if one.passes > 1:
            noise = torch.Generator().manual_seed(_seed(one, index))
            means = means * drop(means.unsqueeze(0), self._dropout, [noise])[0]
        logits = means @ one.weights["output.weight"].T + one.weights["output.bias"]
        return softmax(logits)


def _group(
    learners: Sequence[StoredLearner],
    blueprint: Blueprint,
    prepare: Preparation,
    device: torch.device,
) -> _Group:
    module = blueprint.template(learners[0].dropout)
    for one in learners:
        load(module, one.weights)  # raises where they do not fit
    if device.type == "cpu" and is_bag(module) and isinstance(prepare, Words):
        return _BagsGroup(learners, prepare, module.dropout.p)  # type: ignore[union-attr, arg-type]
    stackable = device.type == "cpu" and prepare.elementwise
    layers = blueprint.layers(learners[0].dropout) if stackable else None
    if layers is not None:
        return _StackedGroup(learners, layers, prepare)
    return _AloneGroup(learners, module, prepare, device)


def _written(module: nn.Module) -> list[str]:
    """The stored buffers that a forward pass might write to: all but those of torch's own layers.

    They are copied for each pass, because predicting must leave learners as they are.
    """
    stored = module.state_dict().keys()
    return [
        name
        for owner, part in module.named_modules()
        if not type(part).__module__.startswith("torch.nn.")
        for name, _ in part.named_buffers(owner, recurse=False)
        if name in stored
    ]


def _seed(one: StoredLearner, index: int) -> int:
    return seeds.number(one.noise, "pass", index)


def _words(offers: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in offers.items())
