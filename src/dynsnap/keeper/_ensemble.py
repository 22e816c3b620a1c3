"""An ensemble of snapshots that a loop of the caller's has trained: it predicts and is saved."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dynsnap._types import Accuracies, AnyArray, Flags, MemberScores, Scores
from dynsnap.ensemble import Combination, check_scores, combine
from dynsnap.errors import InputError
from dynsnap.keeper._round import torch_part
from dynsnap.predictions import Predictions
from dynsnap.store import SavedEnsemble, environment, save_ensemble
from dynsnap.store import load_ensemble as load_saved

# Weights by name, inputs, the number of classes -> scores (inputs, classes).
ScoreSnapshot: TypeAlias = Callable[[Mapping[str, Any], Any, int], Scores]


def scored(score: ScoreSnapshot, learner: bytes, inputs: Any, *, width: int) -> Scores:
    """The scores of one stored snapshot, with zeros for classes that it does not know.

    Raises:
        InputError: They are not a row of probabilities for each input.
    """
    train = torch_part()
    weights, classes = train.weights_of(learner)
    found = np.asarray(score(weights, inputs, classes), np.float32)
    expected = (train.count_of(inputs), classes)
    if found.shape != expected:
        raise InputError(
            f"`score` must give (inputs, classes), {expected}, but gave the shape {found.shape}."
        )
    if not np.isfinite(found).all():
        rows = int((~np.isfinite(found).all(axis=1)).sum())
        raise InputError(
            f"`score` gave scores that are not finite for {rows} of {len(found)} inputs: they hold "
            "NaN, or the training has diverged. Correct the inputs, or train with a lower learning "
            "rate under another `version`."
        )
    check_scores(found, "`score`")
    return np.pad(found, ((0, 0), (0, width - classes)))


def check_score(score: Any) -> None:
    """Raise unless it can be called with weights, inputs and the number of classes.

    What builds a module, or a module itself, would be found out after a whole round of training.
    """
    if callable(score) and not hasattr(score, "state_dict"):
        try:
            inspect.signature(score).bind(b"", None, 2)
            return
        except ValueError:  # of a function in C, which has no signature
            return
        except TypeError:
            pass
    raise InputError(
        f"`score` must be `ModuleScores(build)`, or a function of weights, inputs and the number "
        f"of classes, got {type(score).__name__}."
    )


class SnapshotEnsemble:
    """The members of one generation, combined; `SnapshotKeeper.ensemble` makes it.

    Attributes:
        classes: Class names, the columns of `predict_proba`.
        generation: Which generation it is.
    """

    def __init__(self, saved: SavedEnsemble, score: ScoreSnapshot) -> None:
        self._saved = saved
        self._score = score
        self.classes = saved.classes
        self.generation = saved.generation

    def __len__(self) -> int:
        return len(self._saved.positions)

    def __repr__(self) -> str:
        return (
            f"<SnapshotEnsemble {self._saved.method}, generation {self.generation}: {len(self)} "
            f"members, {len(self.classes)} classes>"
        )

    @property
    def accuracies(self) -> Accuracies:
        """The validation accuracy of each member."""
        return np.asarray(self._saved.accuracy)

    @cached_property
    def known(self) -> Flags | None:
        """Which classes each member was trained on; None where all know the same."""
        return self._saved.known

    @property
    def weights(self) -> list[Mapping[str, Any]]:
        """The weights of each member, by name."""
        learners = [self._saved.learners[at] for at in self._saved.positions.tolist()]
        return [torch_part().weights_of(one)[0] for one in learners]

    def member_scores(self, inputs: Any) -> MemberScores:
        """The scores of every member, (members, inputs, classes)."""
        width = len(self.classes)
        found = [scored(self._score, one, inputs, width=width) for one in self._saved.learners]
        return np.stack(found)[self._saved.positions]

    def predict_proba(self, inputs: Any) -> Scores:
        """The combined scores of the members: a row per input, a column per class."""
        return combine(
            self.member_scores(inputs),
            how=self._saved.combination,
            weights=self.accuracies,
            known=self.known,
        )

    def predict(self, inputs: Any) -> AnyArray:
        """The class name with the highest score; ties go to the first."""
        names = np.array(self.classes, dtype=object)
        found: AnyArray = names[self.predict_proba(inputs).argmax(axis=1)]
        return found

    def predictions(
        self, inputs: Any, *, ids: Sequence[Any] | None = None, truth: Any = None
    ) -> Predictions:
        """Scores as `dynsnap.Predictions`, for `dynsnap.compare` and prediction files.

        Args:
            inputs: Inputs.
            ids: A unique name for each input; its number by default.
            truth: The true class of each where it is known: names, or positions in `classes`.
        """
        rows = self.predict_proba(inputs)
        return Predictions(
            ids=np.arange(len(rows)) if ids is None else ids,
            classes=self.classes,
            scores=rows,
            truth=None if truth is None else positions_in(self.classes, truth, "truth"),
            positions=True,
        )

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the ensemble to one file, without the code of the model; its SHA-256."""
        return save_ensemble(Path(path), self._saved)


def load_ensemble(
    path: str | os.PathLike[str], *, score: ScoreSnapshot, sha256: str | None = None
) -> SnapshotEnsemble:
    """Read an ensemble that a `SnapshotKeeper` or `SnapshotEnsemble.save` has written.

    Args:
        path: The file.
        score: What scores inputs with a snapshot, as the keeper was given it: no file holds code.
        sha256: The digest that the file must have. Any other file is refused unread.
    """
    check_score(score)
    return SnapshotEnsemble(load_saved(Path(path), sha256=sha256), score)


def saved_as(
    *,
    method: str,
    generation: int,
    combination: Combination,
    classes: tuple[str, ...],
    accuracy: Accuracies,
    learners: tuple[bytes, ...],
    positions: Any,
    known: Flags | None,
    about: Mapping[str, Any],
) -> SavedEnsemble:
    """The ensemble in the form that files have; its module is the caller's own."""
    return SavedEnsemble(
        method=method,
        generation=generation,
        combination=combination,
        classes=classes,
        accuracy=accuracy,
        learners=learners,
        positions=positions,
        known=known,
        model={"backend": "torch"},
        about={**about, "environment": environment()},
    )


def positions_in(classes: Sequence[str], labels: Any, name: str) -> AnyArray:
    """Labels as positions among class names.

    Whole numbers are names where any class is named by one, as 7 of the classes "6" and "7"; else
    they are positions. The labels at hand do not decide: of some sets they could be read both ways.

    Example:
        >>> positions_in(["cat", "dog"], ["dog", "cat"], "truth")
        array([1, 0])
        >>> positions_in(["cat", "dog"], [1, 0], "truth"), positions_in(["7", "6"], [6, 7], "truth")
        (array([1, 0]), array([1, 0]))
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(f"`{name}` must be one label for each input, got {array.shape}.")
    place = {one: position for position, one in enumerate(classes)}
    if array.dtype.kind in "iu" and not any(map(_is_whole, classes)):
        if len(array) and not 0 <= array.min() <= array.max() < len(classes):
            raise InputError(
                f"`{name}` must be class names, or positions from 0 to {len(classes) - 1}, but "
                f"runs from {array.min()} to {array.max()}."
            )
        return array.astype(np.intp)
    for label in array.tolist():
        if str(label) not in place:
            some = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
            raise InputError(f"`{name}` holds {label!r}, which is not among the classes: {some}.")
    return np.array([place[str(label)] for label in array.tolist()], np.intp)


def _is_whole(name: str) -> bool:
    return name.lstrip("-").isdecimal()
