"""Learners and unfinished rounds as bytes: safetensors with a checked JSON header."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import safetensors
import safetensors.torch
import torch
from torch import nn

from dynsnap._untrusted import (
    AnyOf,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
    parse_json,
)
from dynsnap.errors import FileError
from dynsnap.train._factory import Blueprint
from dynsnap.train._items import AsGiven
from dynsnap.train._prepare import Features, Pixels, Preparation, Standardised, State
from dynsnap.train._text import Words
from dynsnap.train.models import is_built_in

_Shapes: TypeAlias = Mapping[str, tuple[tuple[int, ...], torch.dtype]]

FORMAT = 1
_MOST_TOKENS = 1 << 28
_ONE_SETTING = (
    "features",
    "standardised",
    "pixels",
    "images",
    "images-nchw",
    "pixels-nchw",
    "as given",
)
_PREPARE: Schema = AnyOf(
    Null(),
    Table({"kind": OneOf(_ONE_SETTING)}),
    Table(
        {
            "kind": OneOf(("words",)),
            "size": Whole(2, _MOST_TOKENS),
            "length": Whole(1, 1 << 31),
            "ngrams": Whole(1, 32),  # of which each makes a token of every word
            "buckets": Whole(0, _MOST_TOKENS),
        }
    ),
)
_LEARNER: Schema = Table(
    {
        "classes": Whole(1, 100_000),
        "offers": MapOf(Plain(), key=Text(form=r"[^\W\d]\w*"), most=100),
        "prepare": _PREPARE,
        "dropout": Number(0, 1),
        "passes": Whole(1, 10_000),
        "noise": Whole(0, 2**64),
    }
)
_KEY = "dynsnap"  # one entry, because the order of several would be random


def pack(tensors: Mapping[str, State], header: Mapping[str, Any]) -> bytes:
    """Groups of tensors and a header as bytes, the same for the same content."""
    flat = {
        f"{group}.{name}": value.detach().cpu().contiguous()
        for group, values in tensors.items()
        for name, value in values.items()
    }
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True)
    content: bytes = safetensors.torch.save(flat, metadata={_KEY: text})
    return content


def unpack(content: bytes, *, what: str) -> tuple[dict[str, State], dict[str, Any]]:
    """The groups of tensors and the header that `pack` was given.

    Raises:
        FileError: The bytes are damaged, of another kind, or of a newer format.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        header = parse_json(parse_json(content[8 : 8 + size])["__metadata__"][_KEY].encode())
        version = header.pop("format")
        flat = safetensors.torch.load(content)
    except (ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
        raise FileError(
            f"{what} cannot be read: its bytes are damaged, or were not written by `dynsnap.train`."
        ) from error
    if version != FORMAT:
        raise FileError(
            f"{what} has format {version}, but this dynsnap reads format {FORMAT}. Update dynsnap."
        )
    groups: dict[str, State] = {}
    for name, value in flat.items():
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = value
    return groups, header


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StoredLearner:
    """One snapshot with all that it takes to predict, but for the module's code.

    Attributes:
        weights: The module's state.
        prepared: What its round's preparation has fitted.
        classes: Width of its scores.
        offers: What its factory may ask for, such as the shape of an input.
        prepare: The preparation with its settings, None for a caller's own.
        dropout: What its factory was given.
        passes: Predictions to draw with dropout on; 1 means that it is off.
        noise: Seeds those passes.
    """

    weights: State
    prepared: State
    classes: int
    offers: Mapping[str, Any] = field(default_factory=dict)
    prepare: dict[str, Any] | None = None
    dropout: float = 0.0
    passes: int = 1
    noise: int = 0

    def to_bytes(self) -> bytes:
        header = {
            "classes": self.classes,
            "offers": dict(self.offers),
            "prepare": self.prepare,
            "dropout": self.dropout,
            "passes": self.passes,
            "noise": self.noise,
        }
        return pack({"model": self.weights, "prepare": self.prepared}, header)

    @classmethod
    def from_bytes(cls, content: bytes) -> "StoredLearner":
        groups, header = unpack(content, what="A stored learner")
        if (problem := mismatch(_LEARNER, header)) is not None:
            raise FileError(f"A stored learner has a header that cannot be read: {problem}.")
        offers = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in header.pop("offers").items()
        }
        return cls(
            weights=groups.get("model", {}),
            prepared=groups.get("prepare", {}),
            offers=offers,
            **header,
        )


_MOST_NUMBERS = 1 << 26  # of one input
_DENSE: Schema = Table({"inputs": ListOf(Whole(0, _MOST_NUMBERS), most=16)})


def widened(
    content: bytes, *, model: Callable[..., nn.Module], classes: int, places: Sequence[int]
) -> bytes:
    """A stored learner with outputs for more classes; those of new classes are untrained.

    Args:
        content: The learner.
        model: The factory that it was trained with, which must ask for `classes`.
        classes: How many classes there are by now.
        places: Where each class that it knows is among them.

    Raises:
        FileError: The learner is of another model.
    """
    old = StoredLearner.from_bytes(content)
    made = Blueprint(factory=model, classes=classes, offers=old.offers).build(dropout=old.dropout)
    fresh = made.state_dict()
    if fresh.keys() != old.weights.keys():
        other = sorted(fresh.keys() ^ old.weights.keys())[0]
        raise FileError(
            f"The deployed network does not fit the model: only one of them has {other[:100]!r}. "
            "Hand in the factory that it was trained with."
        )
    for name, value in old.weights.items():
        room = fresh[name]
        if room.shape == value.shape:
            fresh[name] = value
        elif (old.classes, *room.shape[1:]) == value.shape and len(room) == classes:
            fresh[name] = room.clone()
            fresh[name][list(places)] = value
        else:
            raise FileError(
                f"The deployed network does not fit the model: its {name[:100]!r} is of the shape "
                f"{tuple(value.shape)}, and in the model it is {tuple(room.shape)}. Hand in the "
                "factory that it was trained with."
            )
    return replace(old, weights=fresh, classes=classes).to_bytes()


def check_claims(
    learners: Sequence[StoredLearner],
    *,
    blueprint: Blueprint,
    prepare: Preparation,
    members: int | None,
    classes: int | None,
) -> None:
    """Raise FileError unless what learners of one task say of themselves can be so.

    Args:
        learners: The learners, which agree on classes, inputs and preparation.
        blueprint: What builds their module.
        prepare: How their inputs are prepared.
        members: How many members they must give; None for any number.
        classes: How many classes they must know; None for any number.
    """
    found = sum(one.passes for one in learners)
    if members is not None and found != members:
        raise FileError(f"The learners give {found:,} members, but there must be {members:,}.")
    if classes is not None and blueprint.classes != classes:
        raise FileError(
            f"The learners know {blueprint.classes:,} classes, but there must be {classes:,}."
        )
    _check_offers(blueprint.offers, prepare)
    shapes = {dropout: _shapes(blueprint, dropout) for dropout in {one.dropout for one in learners}}
    for one in learners:
        check_weights(one.weights, shapes[one.dropout])
        _check_prepared(one.prepared, prepare, one.offers)


def _check_offers(offers: Mapping[str, Any], prepare: Preparation) -> None:
    if isinstance(prepare, Words):
        fits = dict(offers) == {"words": prepare.size + prepare.buckets}
        problem = None if fits else "the vocabulary is of another size than its model's"
    elif isinstance(prepare, Features | Pixels):
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in offers.items()}
        problem = mismatch(_DENSE, plain)
        if problem is None and math.prod(offers["inputs"]) > _MOST_NUMBERS:
            problem = f"inputs of the shape {offers['inputs']} are too large"
    elif isinstance(prepare, AsGiven):
        inputs: Any = offers.get("inputs")
        named = isinstance(inputs, tuple) and all(isinstance(part, str) for part in inputs)
        shaped = isinstance(inputs, tuple) and all(type(part) is int for part in inputs)
        small = named or (shaped and 0 <= math.prod(inputs) <= _MOST_NUMBERS)
        problem = None if len(offers) == 1 and small else "its inputs have no shape and no names"
    else:  # the caller's own, which has words of its own for its inputs
        return
    if problem is not None:
        raise FileError(f"A stored learner cannot be used: {problem}.")


def _shapes(blueprint: Blueprint, dropout: float) -> _Shapes | None:
    """The names, shapes and types of a module's weights, found without memory for any of them.

    None for a factory of the caller's own that does not work without: it is called as it is.
    """
    try:
        with torch.device("meta"):
            module = blueprint.build(dropout=dropout)
            return {
                name: (tuple(value.shape), value.dtype)
                for name, value in module.state_dict().items()
            }
    except Exception as error:  # whatever a factory has to say about what the file told it
        if not is_built_in(blueprint.factory):
            return None
        reason = (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")
        raise FileError(
            f"A stored learner does not fit the model: {reason}. Hand in the factory that it was "
            "trained with."
        ) from error


def check_weights(weights: State, shapes: _Shapes | None) -> None:
    """Raise FileError unless weights have these names, shapes and types; None for any."""
    if shapes is None:
        return
    found = {name: (tuple(value.shape), value.dtype) for name, value in weights.items()}
    for name in sorted(shapes.keys() | found.keys()):
        if shapes.get(name) != found.get(name):
            own = _words(found[name]) if name in found else "is missing"
            other = _words(shapes[name]) if name in shapes else "there is none"
            raise FileError(
                f"A stored learner does not fit the model: its {name[:100]!r} {own}, but in the "
                f"model {other}. Hand in the factory that it was trained with."
            )


def _words(found: tuple[tuple[int, ...], torch.dtype]) -> str:
    return f"is {found[1]} of the shape {found[0]}"


def _check_prepared(prepared: State, prepare: Preparation, offers: Mapping[str, Any]) -> None:
    """Raise unless the state of a preparation is what it would have fitted."""
    if isinstance(prepare, Words):
        problem = _problem_of_words(prepared, prepare)
    elif isinstance(prepare, Features | Pixels):
        standard = isinstance(prepare, Standardised)
        names = {"mean", "deviation"} if standard else {"mean"}
        names = names if standard or isinstance(prepare, Pixels) else set()
        sound = prepared.keys() == names and all(
            tuple(value.shape) == tuple(offers["inputs"]) and value.dtype == torch.float32
            for value in prepared.values()
        )
        problem = None if sound else "its preparation is of other inputs than its model"
    elif isinstance(prepare, AsGiven):
        problem = "its inputs are taken as they are, and yet prepared" if prepared else None
    else:
        return
    if problem is not None:
        raise FileError(f"A stored learner cannot be used: {problem}.")


def _problem_of_words(prepared: State, prepare: Words) -> str | None:
    words = prepared.get("words")
    if len(prepared) != 1 or words is None or words.dtype != torch.uint8 or words.ndim != 1:
        return "it has no vocabulary"
    content = words.numpy().tobytes()
    # A word's place is the row of its vector.
    if content != b"\n" and content.count(b"\n") + 1 > prepare.size - 1:
        return (
            f"its vocabulary has more words than the {prepare.size:,} that its model has room for"
        )
    try:
        content.decode()
    except UnicodeDecodeError:
        return "its vocabulary is not text"
    return None
