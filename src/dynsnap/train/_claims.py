"""What stored learners claim about themselves, checked before a module is built or run for them.

Learners may come from a stranger. Their bytes are bounded by their file; what they *say* is not: a
width, a vocabulary or a number of passes could ask for any amount of memory, and the compiled steps
of fastText follow positions without a look at where they lead.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from dynsnap._untrusted import ListOf, Schema, Table, Whole, mismatch
from dynsnap.errors import FileError
from dynsnap.train._factory import Blueprint
from dynsnap.train._prepare import Features, Pixels, Preparation, Standardised, State
from dynsnap.train._text import Words
from dynsnap.train._weights import StoredLearner
from dynsnap.train.models import is_built_in

_Shapes: TypeAlias = Mapping[str, tuple[tuple[int, ...], torch.dtype]]

_MOST_NUMBERS = 1 << 26  # of one input
_DENSE: Schema = Table({"inputs": ListOf(Whole(0, _MOST_NUMBERS), most=16)})


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
        _check_weights(one.weights, shapes[one.dropout])
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


def _check_weights(weights: State, shapes: _Shapes | None) -> None:
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
