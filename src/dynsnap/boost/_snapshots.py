"""Stored learners: one line of JSON, then the library's own safe format."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dynsnap._types import AnyArray, Labels, MemberScores, Positions, Scores
from dynsnap.boost import _lightgbm, _scikit, _xgboost
from dynsnap.boost._learner import Learner, Predict
from dynsnap.errors import DynSnapError, FileError, InputError

FORMAT = 1
_LOADERS: Mapping[str, Callable[[bytes], Predict]] = {
    "xgboost": _xgboost.load,
    "lightgbm": _lightgbm.load,
    "sklearn": _scikit.load,
}


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
        trust: Whether to open learners that cannot be checked before their library reads them.

    Example:
        >>> score([], np.zeros((2, 3)), classes=4).shape
        (0, 2, 4)
    """
    return opened(weights, classes=classes, trust=trust)(inputs)


def opened(
    weights: Sequence[bytes], *, classes: int, trust: bool = False
) -> Callable[[AnyArray], MemberScores]:
    """Stored learners, read once to `score` many times.

    Args:
        weights: Learners as a `BoostTrainer` stored them.
        classes: How many columns to give.
        trust: Whether to open learners that cannot be checked before their library reads them.

    Example:
        >>> opened([], classes=4)(np.zeros((2, 3))).shape
        (0, 2, 4)
    """
    learners = [_unpack(content, classes) for content in weights]

    def score_all(inputs: AnyArray) -> MemberScores:
        flat = features(inputs)
        scores = np.zeros((len(learners), len(inputs), classes), dtype=np.float32)
        for member, (predict, seen) in zip(scores, learners, strict=True):
            member[:, seen] = _predicted(predict, flat, len(seen))
        return scores

    return score_all


def features(inputs: AnyArray) -> AnyArray:
    """Inputs as these libraries take them: a row each, images laid out flat, texts as they are."""
    return inputs.reshape(len(inputs), -1) if inputs.ndim > 2 else inputs


def _predicted(predict: Predict, inputs: AnyArray, columns: int) -> Scores:
    try:
        found = predict(inputs)
    except DynSnapError:
        raise
    except Exception as error:  # whatever the library has to say about these inputs
        raise InputError(f"A stored learner cannot score these inputs: {error}") from error
    if found.shape != (len(inputs), columns):
        raise FileError(
            f"A stored learner gave scores of the shape {found.shape} for {len(inputs)} inputs "
            f"and {columns} classes: its header and its content do not belong together."
        )
    return found


def _unpack(content: bytes, classes: int) -> tuple[Predict, Positions]:
    line, _, payload = content.partition(b"\n")
    try:
        head = json.loads(line)
        version, kind, expected = head["format"], head["kind"], head["sha256"]
        seen = np.array(head["classes"], dtype=np.intp)
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            "A stored learner has no readable header. The file is damaged, or no learner of "
            "`dynsnap.boost`."
        ) from error
    if version != FORMAT or kind not in _LOADERS:
        raise FileError(
            f"A stored learner is of format {version}, kind {kind!r}; this dynsnap reads format "
            f"{FORMAT}, {', '.join(_LOADERS)}. Update dynsnap to read it."
        )
    if len(seen) and seen[-1] >= classes:
        raise InputError(
            f"A stored learner knows {seen[-1] + 1} classes or more, but {classes} are asked for."
        )
    # Before the library sees it: LightGBM takes the whole process down over a text cut short.
    if hashlib.sha256(payload).hexdigest() != expected:
        raise FileError(f"A stored {kind} learner fails its checksum: it is damaged.")
    try:
        return _LOADERS[kind](payload), seen
    except ImportError as error:
        raise FileError(
            f"A stored learner needs {kind}, which is not installed. Install dynsnap[boost]."
        ) from error
    except DynSnapError:
        raise
    except Exception as error:  # each library has its own way to say that a file is damaged
        raise FileError(
            f"A stored {kind} learner cannot be read ({error}). The file may be damaged."
        ) from error
