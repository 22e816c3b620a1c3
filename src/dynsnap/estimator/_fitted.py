"""What fitting leaves behind, as plain values, and how it predicts."""

import copy
import dataclasses
import importlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import Accuracies, AnyArray, Flags, Floats, Positions
from dynsnap.data import FrameType, columns_in_words
from dynsnap.ensemble import Combination, Members, Method, Round, combine, cost
from dynsnap.errors import PlanError
from dynsnap.estimator import _inputs
from dynsnap.predictions import Predictions
from dynsnap.trainers import SETTINGS, Backend, ScoreMembers, score_by_classes
from dynsnap.trainers import named as backend_named

if TYPE_CHECKING:
    from dynsnap.export import ExportableEnsemble, OnnxModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One learner of an ensemble.

    Attributes:
        round: The round that it comes from, counted from 0.
        epoch: The epoch of that round that it was taken after, counted from 0.
        accuracy: Its accuracy on that round's validation rows.
        learner: Which of the stored learners it is, counted from 0.
        attempt: Which of the passes with dropout on; 0 without dropout.
        generation: Which generation it was trained for.
    """

    round: int
    epoch: int
    accuracy: float
    learner: int
    attempt: int = 0
    generation: int = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RoundHistory:
    """How one round went, epoch by epoch.

    Attributes:
        accuracy: Validation accuracy.
        selection: The selection metric.
        rate: What the base learning rate was multiplied with by the schedule.
        snapshots: The epochs that snapshots were taken after.
        seconds: Time that the round took.
    """

    accuracy: Floats
    selection: Floats
    rate: Floats
    snapshots: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fitted:
    """An ensemble of one generation.

    Attributes:
        backend: The name of the trainer that it comes from.
        learners: The stored learners, each once.
        passes: Members that each learner gives; more than 1 with dropout left on.
        learned: Of each learner, the classes that it knows: the positions of its scores among the
            classes of the ensemble. Empty where all learners know all classes.
        selection_holdout: Share of the rows that no learner was trained on, by their content.
        history: How the rounds of this generation went. Files do not hold it.
        heard: Of each member, whether it votes on each class, where learners of a study score all
            classes and were not trained on all. Empty where `learned` tells.
    """

    backend: str
    members: tuple[Member, ...]
    learners: tuple[bytes, ...]
    passes: int
    rounds: int
    cost: float
    seed: int
    generation: int
    learned: tuple[tuple[int, ...], ...] = ()
    selection_holdout: float = 0.0
    history: tuple[RoundHistory, ...] = ()
    heard: tuple[tuple[bool, ...], ...] = ()

    @property
    def accuracies(self) -> Accuracies:
        """Validation accuracy of each member."""
        return np.array([member.accuracy for member in self.members])

    @property
    def places(self) -> Positions:
        """Where each member stands among the scores of all learners and passes."""
        return np.array([one.learner * self.passes + one.attempt for one in self.members])

    def known(self, classes: int) -> Flags | None:
        """Which classes each member has seen in training; None where all have seen all."""
        if self.heard:
            return np.array(self.heard, dtype=bool)
        if not self.learned:
            return None
        flags = np.zeros((len(self.members), classes), dtype=bool)
        for row, member in zip(flags, self.members, strict=True):
            row[list(self.learned[member.learner])] = True
        return flags

    def scoring(
        self, classes: int, opened: Callable[[Sequence[bytes], int], ScoreMembers]
    ) -> ScoreMembers:
        """What scores inputs with all learners, given what opens those of one number of classes."""
        return score_by_classes(self.learners, self.learned, classes, opened)


def fitted(
    method: Method,
    rounds: tuple[Round, ...],
    kept: Members,
    *,
    backend: str,
    epochs: int,
    seed: int,
    generation: int,
) -> Fitted:
    """The ensemble of those members that a method keeps of its rounds."""
    passes = method.recipe.passes
    sources = dict.fromkeys((at, position // passes) for at, position in kept.origin)
    place = {source: number for number, source in enumerate(sources)}
    return Fitted(
        backend=backend,
        members=tuple(
            Member(
                round=at,
                epoch=int(rounds[at].epochs[position]),
                accuracy=float(judged),
                learner=place[at, position // passes],
                attempt=position % passes,
                generation=generation,
            )
            for (at, position), judged in zip(kept.origin, kept.accuracy, strict=True)
        ),
        learners=tuple(rounds[at].weights[snapshot] for at, snapshot in sources),
        passes=passes,
        rounds=len(rounds),
        cost=cost(method.recipe, rounds=len(rounds), epochs=epochs),
        seed=seed,
        generation=generation,
        history=tuple(_history(done) for done in rounds),
    )


def _history(done: Round) -> RoundHistory:
    judged = done.curve if done.selection_curve is None else done.selection_curve
    return RoundHistory(
        accuracy=np.array(done.curve, float),
        selection=np.array(judged, float),
        rate=done.spec.recipe.multipliers,
        snapshots=tuple(sorted(set(done.epochs.tolist()))),
        seconds=done.seconds,
    )


_HISTORY = (
    *("generation", "round", "epoch", "accuracy", "selection", "rate"),
    *("snapshot", "members"),
)
_SCORES_AT_ONCE = 1 << 24  # numbers held while predicting, so that memory stays bounded


class FittedEnsemble:
    """The half of an estimator that comes after fitting."""

    model: Any
    combination: Combination
    classes_: AnyArray
    _allow_nan: bool
    _columns: FrameType | None
    _fitted: Fitted
    _learned_model: Any
    _score_members: ScoreMembers | None
    _trust: bool = False
    _data: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    @property
    def members_(self) -> tuple[Member, ...]:
        """Where each learner of the ensemble comes from."""
        return self._found().members

    @property
    def accuracies_(self) -> Accuracies:
        """Validation accuracy of each learner."""
        return self._found().accuracies

    @property
    def backend_(self) -> str:
        """The name of the trainer that the members come from, such as "torch" or "boost"."""
        return self._found().backend

    @property
    def rounds_(self) -> int:
        """Rounds that were trained."""
        return self._found().rounds

    @property
    def cost_(self) -> float:
        """What the rounds cost, in trainings of `epochs` epochs."""
        return self._found().cost

    @property
    def generation_(self) -> int:
        """1 after `fit`, one more after each `retrain`."""
        return self._found().generation

    @property
    def estimators_(self) -> list[Any]:
        """Each member as a fitted classifier of its own, in the order of `members_`."""
        made = self._found()
        found = []
        for place, member in enumerate(made.members):
            alone = copy.copy(self)
            alone._score_members = None
            alone._data = None
            alone._fitted = dataclasses.replace(
                made,
                members=(dataclasses.replace(member, learner=0),),
                learners=(made.learners[member.learner],),
                learned=made.learned[member.learner : member.learner + 1],
                heard=made.heard[place : place + 1],
            )
            found.append(alone)
        return found

    @property
    def history_(self) -> Any:
        """Every epoch of every round that this generation trained, one row each.

        A pandas frame, or a pyarrow table where pandas is not installed. Its columns: generation,
        round, epoch, accuracy, selection (the selection metric), rate (what the schedule
        multiplies the learning rate with), snapshot, members (how many were taken after the epoch).
        """
        made = self._found()
        if not made.history and made.rounds:
            raise AttributeError(
                "This estimator was loaded from a file, and a file holds no history of training."
            )
        taken = Counter(
            (one.round, one.epoch) for one in made.members if one.generation == made.generation
        )
        columns: dict[str, list[Any]] = {name: [] for name in _HISTORY}
        for number, went in enumerate(made.history):
            for epoch, row in enumerate(zip(went.accuracy, went.selection, went.rate, strict=True)):
                values = (made.generation, number, epoch, *map(float, row))
                kept = (epoch in went.snapshots, taken[number, epoch])
                for name, value in zip(_HISTORY, (*values, *kept), strict=True):
                    columns[name].append(value)
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            import pyarrow

            return pyarrow.table(columns)
        return pandas.DataFrame(columns)

    def _found(self) -> Fitted:
        # An AttributeError, as for any attribute that fitting has yet to set.
        if not hasattr(self, "_fitted"):
            raise AttributeError("This DynSnapClassifier is not fitted yet: call `fit` first.")
        found: Fitted = self._fitted
        return found

    # --- predicting -------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The combined scores of the members: a row per input, a column per class."""
        check_is_fitted(self)
        inputs = self._features(X, reset=False)
        made, score = self._found(), self._open()
        known = made.known(len(self.classes_))
        blocks = [
            combine(
                score(part)[made.places],
                how=self.combination,
                weights=made.accuracies,
                known=known,
            )
            for part in _parts(inputs, len(made.members) * len(self.classes_))
        ]
        return np.concatenate(blocks)

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """The logarithms of `predict_proba`; minus infinity for a score of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> AnyArray:  # noqa: N803
        """The class with the highest score; ties go to the first of `classes_`."""
        rows = self.predict_proba(X)
        found: AnyArray = self.classes_[rows.argmax(axis=1)]
        return found

    def predictions(
        self,
        X: Any,  # noqa: N803
        *,
        ids: Sequence[Any] | None = None,
        truth: Any = None,
    ) -> Predictions:
        """Scores as `dynsnap.Predictions`, for `dynsnap.compare` and prediction files.

        Args:
            X: Inputs.
            ids: A unique name for each input; its number by default.
            truth: The true class of each, where it is known. Classes that this generation has not
                seen yet are counted as classes that it never predicts.
        """
        rows = self.predict_proba(X)
        # Looked up by value: a 1 in the truth is the class 1.0.
        known = {label: str(label) for label in self.classes_.tolist()}
        names, true = list(known.values()), None
        if truth is not None:
            found = _inputs.targets(truth, len(rows), name="truth").tolist()
            true = [known.get(label, str(label)) for label in found]
            unseen = sorted(set(true) - set(names))
            names += unseen
            rows = np.column_stack([rows, np.zeros((len(rows), len(unseen)))])
        return Predictions(
            ids=np.arange(len(rows)) if ids is None else ids, classes=names, scores=rows, truth=true
        )

    # --- exporting --------------------------------------------------------------------------

    def export_onnx(
        self,
        path: str | os.PathLike[str],
        X: Any = None,  # noqa: N803
    ) -> "OnnxModel":
        """Write one ONNX model with all members and their combination.

        Its outputs are `label`, the class names as text, and `scores`. It is written only if it
        answers as `predict_proba` does: labels equal, scores within 1e-5.

        Args:
            path: The file.
            X: Real inputs to compare both on, beside random ones.
        """
        from dynsnap.export import save_onnx

        check_is_fitted(self)
        inputs = None if X is None else self._features(X, reset=False)
        return save_onnx(self.exportable(), os.fspath(path), inputs=inputs)

    def members_as_modules(self) -> list[Any]:
        """The members as plain `torch.nn.Module`s, with preparation and softmax inside."""
        from dynsnap.export import members_as_modules

        check_is_fitted(self)
        return members_as_modules(self.exportable())

    def stacked_module(self) -> Any:
        """All members as one `torch.nn.Module`: (members, batch, classes), fast for few inputs."""
        from dynsnap.export import stacked_module

        return stacked_module(self.exportable())

    def exportable(self) -> "ExportableEnsemble":
        """The ensemble as `dynsnap.export` takes it."""
        from dynsnap.export import ExportableEnsemble

        check_is_fitted(self)
        if self._columns is not None:
            raise PlanError(
                "The ensemble was fitted on a frame whose model looks at "
                f"{columns_in_words([one.name for one in self._columns])}: a graph has one input "
                "of numbers. Encode the columns before the ensemble, or serve it with "
                "`predict`."
            )
        made, score = self._found(), self._open()
        every = tuple(range(len(self.classes_)))
        order = [member.learner for member in made.members] if made.passes == 1 else ()
        return ExportableEnsemble(
            backend=made.backend,
            model=self._learned_model,
            learners=tuple(made.learners[at] for at in order),
            columns=tuple(made.learned[at] if made.learned else every for at in order),
            classes=tuple(str(name) for name in self.classes_),
            accuracy=made.accuracies,
            combination=self.combination,
            known=made.known(len(self.classes_)),
            score=lambda inputs: score(inputs)[made.places],
            shape=getattr(self, "_shape", None),
            names=tuple(str(name) for name in getattr(self, "feature_names_in_", ())),
            missing=self._allow_nan,
            trust=self._trust,
        )

    def _open(self) -> ScoreMembers:
        """The learners, opened once and ready to score."""
        if self._score_members is None:
            made = self._found()
            backend = backend_named(made.backend)  # `load` has compared it with the caller's
            self._score_members = made.scoring(
                len(self.classes_),
                lambda learners, classes: backend.scorer(
                    learners,
                    model=self._learned_model,
                    classes=classes,
                    members=len(learners) * made.passes,
                    settings=self._training_settings(backend),
                    trust=self._trust,
                ),
            )
        return self._score_members

    def _features(self, inputs: Any, *, reset: bool, training: bool = False) -> Any:
        return _inputs.features(
            self, inputs, reset=reset, allow_nan=self._allow_nan, training=training
        )

    def _training_settings(self, backend: Backend) -> dict[str, Any]:
        """The settings that a backend has a use for, as far as they are given."""
        given = {name: getattr(self, name) for name in SETTINGS if name in backend.settings}
        return {name: value for name, value in given.items() if value is not None}


def _parts(inputs: Any, width: int) -> list[Any]:
    rows = max(1, _SCORES_AT_ONCE // width)
    return [inputs[start : start + rows] for start in range(0, len(inputs), rows)]
