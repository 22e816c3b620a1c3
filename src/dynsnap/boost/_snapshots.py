"""Stored learners: one line of JSON, then the library's own safe format."""

import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dynsnap._types import AnyArray, Labels, MemberScores, Positions, Scores
from dynsnap.boost import _lightgbm, _scikit, _xgboost
from dynsnap.boost._learner import Learner, Loaded, Predict
from dynsnap.boost._structure import shown
from dynsnap.errors import DynSnapError, FileError, InputError, one_line

FORMAT = 1
_ROUNDING = 1e-3  # of single precision, added up over many classes
_WIDEST = 2**20  # features of an input that is made up


class _Load(Protocol):
    def __call__(self, payload: bytes, columns: int, /, *, trust: bool) -> Loaded: ...


_LOADERS: Mapping[str, _Load] = {
    "xgboost": _xgboost.load,
    "lightgbm": _lightgbm.load,
    "sklearn": _scikit.load,
}
_READERS = {"xgboost": _xgboost.read, "lightgbm": _lightgbm.read, "sklearn": _scikit.read}


def pack(payload: bytes, *, learner: Learner, seen: Labels) -> bytes:
    """A learner with what is needed to read it, and the classes that its columns stand for."""
    head = {
        "format": FORMAT,
        "kind": learner.kind,
        "version": learner.version,
        "classes": seen.tolist(),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload


def score(
    weights: Sequence[bytes], inputs: AnyArray, *, classes: int, trust: bool = False
) -> MemberScores:
    """Scores of stored learners, each with a column for every class: zero for those never seen.

    Args:
        weights: Learners as a `BoostTrainer` stored them.
        inputs: One per row; images are laid out flat.
        classes: How many columns to give.
        trust: Whether to load learners that cannot be checked: a forged one could crash or block
            the process. Say so only of files of your own.

    Raises:
        FileError: A learner is damaged or forged, or cannot be checked and is not trusted.

    Example:
        >>> score([], np.zeros((2, 3)), classes=4).shape
        (0, 2, 4)
    """
    return opened(weights, classes=classes, trust=trust)(inputs)


def opened(
    weights: Sequence[bytes], *, classes: int, trust: bool = False
) -> Callable[[AnyArray], MemberScores]:
    """Stored learners, read and checked once to `score` many times.

    Args:
        weights: Learners as a `BoostTrainer` stored them.
        classes: How many columns to give.
        trust: Whether to load learners that cannot be checked.

    Example:
        >>> opened([], classes=4)(np.zeros((2, 3))).shape
        (0, 2, 4)
    """
    learners = [_unpack(content, classes, trust=trust) for content in weights]

    def score_all(inputs: Any) -> MemberScores:
        flat = features(inputs)
        scores = np.zeros((len(learners), len(inputs), classes), dtype=np.float32)
        for member, (predict, seen) in zip(scores, learners, strict=True):
            member[:, seen] = predicted(predict, flat, len(seen))
        return scores

    return score_all


def features(inputs: Any) -> Any:
    """Inputs as these libraries take them: a row each, images laid out flat, others as they are."""
    return inputs.reshape(len(inputs), -1) if inputs.ndim > 2 else inputs


def predicted(predict: Predict, inputs: Any, columns: int) -> Scores:
    try:
        found = predict(inputs)
    except DynSnapError:
        raise
    except Exception as error:  # whatever the library has to say about these inputs
        reason = one_line(str(error).partition("\n")[0]).rstrip(".") or type(error).__name__
        raise InputError(f"A stored learner cannot score these inputs: {reason}.") from error
    if found.shape != (len(inputs), columns):
        raise FileError(
            f"A stored learner gave scores of the shape {found.shape} for {len(inputs)} inputs "
            f"and {columns} classes: its header and its content do not belong together."
        )
    # Minus is there for rounding, and NaN is neither more nor less than anything.
    wrong = ~((np.abs(found.sum(axis=1) - 1) < _ROUNDING) & (found > -_ROUNDING).all(axis=1))
    if wrong.any():
        raise FileError(
            f"A stored learner gave scores that are not probabilities to {wrong.sum()} of "
            f"{len(inputs)} inputs, such as {shown(found[wrong][0].tolist())}. The file is damaged "
            "or forged, or training has diverged."
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLearner:
    """A learner as it is stored; only its header was looked at.

    Attributes:
        kind: The library that reads it.
        seen: The classes that its columns stand for, as places among all classes.
        payload: The learner in the library's own format.
    """

    kind: str
    seen: Positions
    payload: bytes


def widened(learner: bytes, *, places: Sequence[int]) -> bytes:
    """A stored learner whose classes have other places, because there are more of them.

    Args:
        learner: A learner as a `BoostTrainer` stored it.
        places: Where each class that there was is among those that there are.
    """
    stored = header(learner, len(places))
    head = json.loads(learner.partition(b"\n")[0])
    head["classes"] = [int(places[place]) for place in stored.seen]
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + stored.payload


def header(content: bytes, classes: int) -> StoredLearner:
    """A stored learner, whose library has not read it yet; raise if it is damaged."""
    line, _, payload = content.partition(b"\n")
    try:
        head = json.loads(line)
        version, kind, expected = head["format"], head["kind"], head["sha256"]
        seen = _positions(head["classes"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FileError(
            "A stored learner has no readable header. The file is damaged, or no learner of "
            "`dynsnap.boost`."
        ) from error
    if seen[-1] >= classes:
        raise InputError(
            f"A stored learner knows {seen[-1] + 1} classes or more, but {classes} are asked for."
        )
    if version != FORMAT or not isinstance(kind, str) or kind not in _LOADERS:
        raise FileError(
            f"A stored learner is of format {shown(version)}, kind {shown(kind)}; this dynsnap "
            f"reads format {FORMAT}, {', '.join(_LOADERS)}. Update dynsnap to read it."
        )
    # It detects damage; a forged file has the right one.
    if hashlib.sha256(payload).hexdigest() != expected:
        raise FileError(f"A stored {kind} learner fails its checksum: it is damaged.")
    return StoredLearner(kind=kind, seen=seen, payload=payload)


@contextlib.contextmanager
def reading(kind: str) -> Iterator[None]:
    """Say of what a library cannot read that it is no learner of its own."""
    try:
        yield
    except ImportError as error:
        raise FileError(
            f"A stored learner needs {kind}, which is not installed. Install dynsnap[boost]."
        ) from error
    except DynSnapError:
        raise
    except Exception as error:  # each library has its own way to say that a file is damaged
        raise FileError(
            f"A stored {kind} learner cannot be read ({shown(str(error))}). The file may be "
            "damaged."
        ) from error


def load(stored: StoredLearner, *, trust: bool) -> Loaded:
    """A stored learner, read by its library and ready to score."""
    with reading(stored.kind):
        return _LOADERS[stored.kind](stored.payload, len(stored.seen), trust=trust)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LibraryModel:
    """A stored learner as its library has it, for those who convert it.

    Attributes:
        kind: "xgboost", "lightgbm" (boosters) or "sklearn" (a fitted classifier).
        model: The booster or classifier.
        seen: The classes that its columns stand for, as places among all classes.
        features: How many features it takes, where that is known.
        missing: The number that stands for no value.
    """

    kind: str
    model: Any
    seen: Positions
    features: int | None
    missing: float = float("nan")


def library_model(content: bytes, *, classes: int, trust: bool = False) -> LibraryModel:
    """A stored learner, checked as `opened` checks it, as its library has it.

    Args:
        content: A learner as a `BoostTrainer` stored it.
        classes: How many classes there are.
        trust: Whether to load a learner that cannot be checked.
    """
    stored = header(content, classes)
    with reading(stored.kind):
        model, width = _READERS[stored.kind](stored.payload, len(stored.seen), trust=trust)
        known = width if width is not None else _features(stored.kind, model)
        missing = _xgboost.missing_value(model) if stored.kind == "xgboost" else float("nan")
    return LibraryModel(
        kind=stored.kind, model=model, seen=stored.seen, features=known, missing=missing
    )


def _features(kind: str, model: Any) -> int | None:
    if kind == "xgboost":
        return int(model.num_features())
    if kind == "lightgbm":
        return int(model.num_feature())
    return getattr(model, "n_features_in_", None)


def _unpack(content: bytes, classes: int, *, trust: bool) -> tuple[Predict, Positions]:
    stored = header(content, classes)
    predict, width = load(stored, trust=trust)
    if not trust and width is not None and width <= _WIDEST:
        # To learn of most of what is wrong now, not when it is asked. Zeros need not be an input
        # that a learner takes: only scores that no learner gives count.
        with contextlib.suppress(InputError):
            predicted(predict, np.zeros((1, width)), len(stored.seen))
    return predict, stored.seen


def _positions(found: Any) -> Positions:
    """The classes that a learner knows: places among all classes, in their order."""
    if not isinstance(found, list) or not all(type(place) is int for place in found):
        raise ValueError("the classes are not a list of places")
    if not found or found[0] < 0 or any(a >= b for a, b in itertools.pairwise(found)):
        raise ValueError("the classes are not in order")
    return np.array(found, dtype=np.intp)
