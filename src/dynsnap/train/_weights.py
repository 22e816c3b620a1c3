"""Learners and unfinished rounds as bytes: safetensors with a JSON header, never a pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import safetensors
import safetensors.torch

from dynsnap._untrusted import (
    AnyOf,
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
from dynsnap.train._prepare import State

FORMAT = 1
_MOST_TOKENS = 1 << 28
_PREPARE: Schema = AnyOf(
    Null(),
    Table({"kind": OneOf(("features", "standardised", "pixels", "images"))}),
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
