"""What an ensemble file may say about an estimator."""

from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted import (
    AnyOf,
    Flag,
    ListOf,
    Null,
    Number,
    OneOf,
    Schema,
    Table,
    Text,
    Whole,
)
from dynsnap.ensemble import COMBINATIONS

# What a file calls the parameters that have another name by now: files of all versions are read.
STORED_NAMES = {"carry_over": "carry", "max_accuracy_gap": "lag", "selection_holdout": "untouched"}

_MOST_MEMBERS = 10_000
_MOST_BYTES = 1 << 28  # of class labels in one array

_COUNT = Whole(1, 2**31)
_NAME = Text(free=True)  # of a class or a column

# The parameters of an estimator that JSON can hold; what only training looks at may be anything.
_SETTINGS = Table(
    {},
    {
        "method": Text(longest=100),
        "members": AnyOf(OneOf(("auto",)), _COUNT),
        "snapshots": _COUNT,
        "epochs": _COUNT,
        "combination": OneOf(COMBINATIONS),
        "beta": AnyOf(OneOf(("mean",)), Number()),
        "validation": Number(0, 1),
        "dropout": Number(0, 1),
        "tolerance": AnyOf(Null(), Number()),
        "most_rounds": AnyOf(Null(), _COUNT),
        "carry": Number(),
        "lag": Number(),
        "untouched": Number(0, 1),
        "batch_size": _COUNT,
        "learning_rate": Number(),
        "optimizer": Null(),
        "loss": Null(),
        "augment": Null(),
        "prepare": AnyOf(Null(), Text(longest=100)),
        "device": Text(longest=100),
        "precision": Text(longest=100),
        "random_state": AnyOf(Null(), Whole(-(2**63), 2**64)),
        "keep_data": Flag(),
    },
)
_MEMBER = Table(
    {
        "round": Whole(),
        "epoch": Whole(),
        "accuracy": Number(0, 1),
        "learner": Whole(0, _MOST_MEMBERS),
    },
    {"attempt": Whole(0, _MOST_MEMBERS), "generation": Whole(0, 1_000_000)},
)
ESTIMATOR: Schema = Table(
    {
        "backend": Text(form=r"[\w.-]{1,100}"),
        "members": ListOf(_MEMBER, least=1, most=_MOST_MEMBERS),
        "passes": Whole(1, _MOST_MEMBERS),
        "rounds": Whole(),
        "cost": Number(0),
        "seed": Whole(0, 2**128),
        "settings": _SETTINGS,
        "lost": ListOf(Text(longest=100), most=100),
        "classes": ListOf(AnyOf(Flag(), Number(), _NAME), least=1),
        "class_type": Text(form=r"object|[<>|=]?[biufU]\d{1,5}"),
        "shape": AnyOf(Null(), ListOf(Whole(0, 2**40), most=16)),
        "allow_nan": Flag(),
        "columns": ListOf(_NAME, most=10_000_000),
    },
    {
        "learned": ListOf(ListOf(Whole(0, 100_000), distinct=True), most=_MOST_MEMBERS),
        "untouched": Number(0, 1),
    },
)


def class_labels(about: dict[str, Any], names: tuple[str, ...]) -> AnyArray:
    """The labels of the classes, of the type that they had.

    Raises:
        ValueError: They are not those that the ensemble names.
    """
    kind = np.dtype(about["class_type"])
    if kind.itemsize * len(about["classes"]) > _MOST_BYTES:
        raise ValueError(f"`class_type` asks for too much memory: {about['class_type']}")
    labels = np.array(about["classes"], dtype=kind)
    if tuple(str(label) for label in labels) != names:
        raise ValueError("`classes` are not those of the ensemble")
    return labels
