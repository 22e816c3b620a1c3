"""A trainer for boosted trees and scikit-learn classifiers."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Labels, MemberScores, Positions
from dynsnap.boost._learner import (
    EpochRecorder,
    FitTask,
    Learner,
    RoundCheckpointSaver,
    as_numbers,
    describe,
    one_thread,
)
from dynsnap.boost._lightgbm import LightGBMLearner
from dynsnap.boost._scikit import ScikitLearner, SteppedLearner
from dynsnap.boost._scikit_boosting import GradientLearner, HistogramLearner
from dynsnap.boost._settings import (
    check_class_weights,
    check_objective,
    has_class_weights,
    refuse_twofold_class_weight,
)
from dynsnap.boost._snapshots import (
    StoredLearner,
    features,
    header,
    opened,
    pack,
    reading,
    score,
)
from dynsnap.boost._soft_labels import check_distillation, taught, taught_by_scores
from dynsnap.boost._xgboost import XGBoostLearner
from dynsnap.data import (
    ClassWeight,
    Frame,
    Stream,
    check_class_weight,
    columns_in_words,
    described_class_weight,
    split,
    training_weights,
)
from dynsnap.ensemble import (
    NEW_CLASS_WEIGHT,
    Checkpoints,
    Distillation,
    Judge,
    Monitor,
    Recipe,
    Retraining,
    Round,
    RoundSpec,
    SelectionMetric,
    TeacherScores,
    snapshot_epochs,
)
from dynsnap.errors import (
    DynSnapError,
    FileError,
    Interrupted,
    PlanError,
    TrainingError,
    one_line,
)

_WAY = 2  # of training: it goes up when the same spec gives other bits than before


class BoostTrainer:
    """Trains rounds of an XGBoost, LightGBM or scikit-learn classifier.

    `epochs` of a recipe are boosting iterations, or passes over the data for classifiers that
    learn by `partial_fit`. The recipe's schedule drives the learning rate in each of them, except
    for scikit-learn's gradient boosting, whose rate cannot change. Same spec, same machine, same
    library: the same round, bit by bit.

    Args:
        stream: The growing data.
        model: An instance, not fitted. Its parameters hold, except the random state and threads,
            which the round decides. Those that would have no effect are refused: another number of
            iterations than the recipe's, early stopping, callbacks.
        monitor: Receives every epoch, and may stop the training.
        checkpoints: Keeps unfinished rounds. One that is taken up again ends in the same bits as
            one that was never stopped. Classifiers that give one learner per round cannot stop
            before they are fitted.
        checkpoint_every: Least seconds between two checkpoints of a round.
        keep_weights: Whether rounds carry their learners, or scores only.
        trust: Whether stored learners and checkpoints are loaded even where they cannot be
            checked. Say so only of files of your own.
        parents: Finds the stored learner that a round goes on from or learns from, by its key.
        class_weight: How much the rows of each class count: "balanced", or weights by class name.
            The weights of the pool's rows are multiplied by it.
        selection_metric: What snapshots are chosen and pruned by: see `dynsnap.ensemble.Judge`.
            Weights of rows count in it.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from dynsnap.data import Pool, Stream
        >>> from dynsnap.ensemble import Recipe, Schedule
        >>> x, y = np.arange(20.0).reshape(20, 1), np.repeat([0, 1], 10)
        >>> pool = Pool(name="toy", inputs=x, labels=y, classes=("low", "high"), ids=np.arange(20))
        >>> stream = Stream(pool=pool, generations=(np.arange(20),),
        ...                 validation=(np.array([2, 2]),), evaluation={"test": pool})
        >>> trainer = BoostTrainer(stream, model=LogisticRegression())
        >>> recipe = Recipe(schedule=Schedule("constant"), epochs=1, snapshots=1)
        >>> (done,) = trainer.train([RoundSpec(recipe=recipe, generation=1)])
        >>> done.scores["test"].shape
        (1, 20, 2)
    """

    def __init__(
        self,
        stream: Stream,
        *,
        model: Any,
        monitor: Monitor | None = None,
        checkpoints: Checkpoints | None = None,
        checkpoint_every: float = 60.0,
        keep_weights: bool = True,
        trust: bool = False,
        parents: Callable[[str], bytes] | None = None,
        class_weight: ClassWeight = None,
        selection_metric: str | SelectionMetric = "accuracy",
    ) -> None:
        if checkpoint_every < 0:
            raise PlanError(f"`checkpoint_every` must not be negative, got {checkpoint_every}.")
        self._stream = stream
        self._model = model
        self._learner = _adapt(model)
        frame = stream.pool.inputs if isinstance(stream.pool.inputs, Frame) else None
        self._learner.check_frame(frame)
        check_objective(model, stream.pool.classes)
        check_class_weights(model, stream.pool.classes)
        check_class_weight(class_weight, stream.pool.classes)
        if class_weight:
            refuse_twofold_class_weight(model)
        if class_weight or stream.pool.weights is not None:
            self._learner.check_weights()
        self._class_weight = class_weight
        self._judge = Judge(selection_metric, weighted=stream.pool.weights is not None)
        self._monitor = monitor
        self._checkpoints = checkpoints
        self._checkpoint_every = checkpoint_every
        self._keep_weights = keep_weights
        self._trust = trust
        self._parents = parents

    @cached_property
    def fingerprint(self) -> str:
        """Text that changes whenever the data, the model or the library would change a round."""
        learner = self._learner
        parts = [
            f"boost/{_WAY}",
            learner.kind,
            learner.version,
            describe(self._model),
            self._stream.fingerprint,
            # Once, LightGBM took the names of classes for their places.
            *(["weights by name"] if has_class_weights(self._model) else []),
            *(
                [f"class weight {described_class_weight(self._class_weight)}"]
                if self._class_weight
                else []
            ),
            *([f"selected by {judged}"] if (judged := self._judge.fingerprint) else []),
        ]
        return json.dumps(parts)

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Raise PlanError unless the model can follow the recipe.

        Args:
            recipe: How a round trains.
            shortened: Whether it may have other iterations than a training from scratch.
        """
        if recipe.dropout or recipe.passes > 1:
            raise PlanError(
                f"{type(self._model).__name__} has no dropout to leave on at prediction: "
                "MCDropout is for torch modules. Leave it out, in a study by naming the others in "
                "[methods] `names`."
            )
        if not recipe.plain:
            raise PlanError(
                f"{type(self._model).__name__} has no weights to average, no smoothed labels and "
                "no second network beside it: `average`, `smoothing` and `codistill` are for torch "
                "modules. Leave them out."
            )
        self._learner.check(recipe, shortened=shortened)

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        """The rounds, one after another."""
        for spec in specs:
            self._check(spec)
        return self._train(specs)

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners, with a column for every class of the stream."""
        classes = len(self._stream.pool.classes)
        return score(weights, inputs, classes=classes, trust=self._trust)

    def _check(self, spec: RoundSpec) -> None:
        """Raise PlanError for a round that cannot be trained here."""
        how = spec.distillation
        stored = spec.parent is not None or how is not None
        self.check(spec.recipe, shortened=stored)
        try:
            _check_stored(
                self._learner,
                self._model,
                continues=spec.parent is not None,
                distillation=how,
                interpolate=spec.interpolate,
            )
        except PlanError as error:
            raise PlanError(f"{spec} cannot be trained: {error}") from error
        if stored and self._parents is None:
            raise PlanError(f"{spec} needs a stored learner: hand in `parents` to find it.")
        if how is not None and spec.generation == 1:
            raise PlanError(f"{spec} has a teacher, but no generation comes before the first.")

    def _stored(self, key: str) -> StoredLearner:
        assert self._parents is not None
        return header(self._parents(key), len(self._stream.pool.classes))

    def _taught(self, task: FitTask, how: Distillation, seen: Labels, train: Positions) -> FitTask:
        """The task of a round that learns from a teacher."""
        if how.given:
            assert self._parents is not None
            given = TeacherScores.from_bytes(self._parents(how.teacher))
            given.check(train, self._stream.pool.labels)
            return taught_by_scores(task, how, given.scores[train][:, seen], given.known[seen])
        teacher = self._stored(how.teacher)
        there = np.isin(teacher.seen, seen)
        places = np.where(there, np.searchsorted(seen, teacher.seen), -1)
        with one_thread():
            return taught(task, how, teacher, places, trust=self._trust)

    def _begin(self, spec: RoundSpec, task: FitTask, seen: Labels) -> Any:
        """What a round goes on from that starts with the trees of a stored learner."""
        assert spec.parent is not None
        stored, learner, names = self._stored(spec.parent), self._learner, self._stream.pool.classes
        if stored.kind != learner.kind:
            raise FileError(
                f"The deployed model is one of {stored.kind}, from which no "
                f"{type(self._model).__name__} can go on. Use that library, or the method "
                "single-distill, which learns from the deployed model's scores."
            )
        gone = np.setdiff1d(stored.seen, seen)
        if len(gone):
            raise TrainingError(
                f"{spec} goes on from a model that knows {len(gone)} classes of which there are no "
                f"rows to train on, such as {names[gone[0]]!r}. Add rows of them, or start afresh."
            )
        with reading(stored.kind):
            return learner.begin(
                stored.payload, np.searchsorted(seen, stored.seen), task, trust=self._trust
            )

    def _taken(self, inputs: Any) -> Any:
        """Inputs as the learner takes them: columns by name, or all as numbers."""
        return features(inputs) if self._learner.by_name else as_numbers(features(inputs))

    def _train(self, specs: Sequence[RoundSpec]) -> Iterator[Round]:
        stopping = False
        for spec in specs:
            if stopping:
                raise Interrupted(f"Training stopped as asked, before {spec}.")
            saver = RoundCheckpointSaver(
                spec,
                checkpoints=self._checkpoints,
                every=self._checkpoint_every,
                owner=self.fingerprint,
            )
            done, stopping = self._train_one(spec, saver)
            yield done
            # Not before the caller has come back for more, and so has the round in safety.
            saver.drop()

    def _train_one(self, spec: RoundSpec, saver: RoundCheckpointSaver) -> tuple[Round, bool]:
        """A round, and whether the monitor asked to stop while it was in its last epoch."""
        pool, name = self._stream.pool, spec.seed_name()
        rng = seeds.generator(spec.seed, name, "split")
        train, validation = split(self._stream, spec.generation, rng)
        seen, labels = np.unique(pool.labels[train], return_inverse=True)
        if len(seen) < 2:
            raise TrainingError(
                f"{spec} has rows of {len(seen)} class to train on: at least two are needed."
            )
        framed = isinstance(pool.inputs, Frame) and not self._learner.by_name
        task = FitTask(
            recipe=spec.recipe,
            inputs=self._taken(pool.inputs[train]),
            labels=labels,
            classes=tuple(pool.classes[place] for place in seen.tolist()),
            validation=self._taken(pool.inputs[validation]),
            weights=training_weights(pool, train, self._class_weight),
            seed=seeds.number(spec.seed, name, "model") % 2**31,
            categorical=pool.inputs.categorical if framed else None,
        )
        if spec.distillation is not None:
            task = self._taught(task, spec.distillation, seen, train)
        begun = saver.restore(lambda state: self._learner.open(state, task, trust=self._trust))
        start = begun.state
        if start is None and spec.parent is not None:
            with one_thread():
                start = self._begin(spec, task, seen)
        watch = EpochRecorder(
            spec,
            truth=pool.labels[validation],
            seen=seen,
            monitor=self._monitor,
            saver=saver,
            curve=begun.curve,
            judge=self._judge,
            judged=begun.judged,
            weights=None if pool.weights is None else pool.weights[validation],
            inputs=pool.inputs[validation],
            classes=len(pool.classes),
        )
        with one_thread():
            try:
                cut = self._learner.fit(task, watch, start)
            except DynSnapError:
                raise
            except Exception as error:  # whatever the library has to say about model or data
                raise TrainingError(
                    f"{type(self._model).__name__} could not be trained in {spec}: {_reason(error)}"
                    f"{_gaps(pool.inputs, error)}"
                ) from error
            epochs = snapshot_epochs(spec.recipe, watch.deciding)
            weights = tuple(
                pack(cut(epoch), learner=self._learner, seen=seen) for epoch in epochs.tolist()
            )
            seconds = saver.seconds
            # The stored learners are what is scored, so what was stored is what was measured.
            scoring = opened(weights, classes=len(pool.classes), trust=True)
            scores = {
                name: scoring(held_out.inputs) for name, held_out in self._stream.evaluation.items()
            }
        curve = np.array(watch.curve)
        done = Round(
            spec=spec,
            accuracy=curve[epochs],
            epochs=epochs,
            scores=scores,
            curve=curve,
            weights=weights if self._keep_weights else (),
            seconds=seconds,
            selection=None if self._judge.plain else np.array(watch.judged)[epochs],
            selection_curve=None if self._judge.plain else np.array(watch.judged),
        )
        return done, watch.stopping


def check_retraining(model: Any, how: Retraining) -> None:
    """Raise PlanError unless a model can be retrained from a deployed one in this way.

    Args:
        model: A classifier, set up but not fitted.
        how: How it is retrained.
    """
    if how.new_class_weight not in (1, NEW_CLASS_WEIGHT):
        raise PlanError(
            f"{type(model).__name__} sees all rows at once: `new_class_weight` is for torch "
            "modules, which draw them. Leave it out, or use `class_weight`."
        )
    _check_stored(
        _adapt(model),
        model,
        continues=how.warm_start,
        distillation=how.distillation(""),
        interpolate=how.interpolate,
    )


def _check_stored(
    learner: Learner,
    model: Any,
    *,
    continues: bool,
    distillation: Distillation | None,
    interpolate: bool,
) -> None:
    name = type(model).__name__
    if interpolate:
        raise PlanError(
            f"{name} has no weights to move toward the deployed ones: `interpolate` is for torch "
            "modules. Leave it out."
        )
    if continues:
        learner.check_continues()
    if distillation is not None:
        check_distillation(distillation, model=name)
        learner.check_copies()


def _gaps(inputs: Any, error: Exception) -> str:
    """The columns that a model may have stumbled over, which sees them without their names."""
    if not isinstance(inputs, Frame) or "NaN" not in str(error) or not inputs.missing:
        return ""
    found = columns_in_words(inputs.missing, starts=True)
    return f". {found} lack values in some rows: fill them (SimpleImputer), or drop these rows."


def _reason(error: Exception) -> str:
    """What a library has to say, without the trace that XGBoost adds to it."""
    said = str(error).partition("\nStack trace:")[0]
    if "contains NaN" in said:  # scikit-learn goes on to advertise others
        said = said.partition(". For supervised learning")[0]
    return one_line(said).strip() or type(error).__name__


def _adapt(model: Any) -> Learner:
    """The learner for a model, by the library that its class comes from."""
    if isinstance(model, type) or not hasattr(model, "get_params"):
        found = model.__name__ if isinstance(model, type) else type(model).__name__
        raise PlanError(
            "`model` must be an XGBClassifier, LGBMClassifier or scikit-learn classifier that is "
            f"set up but not fitted, such as LogisticRegression(C=2), got {found}."
        )
    homes = {parent.__module__.partition(".")[0] for parent in type(model).__mro__}
    if "xgboost" in homes:
        return XGBoostLearner(model)
    if "lightgbm" in homes:
        return LightGBMLearner(model)
    return _adapt_scikit(model)


def _adapt_scikit(model: Any) -> Learner:
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    if isinstance(model, GradientBoostingClassifier):
        return GradientLearner(model)
    if isinstance(model, HistGradientBoostingClassifier):
        return HistogramLearner(model)
    # The MLP's solver "lbfgs" has no epochs, and no `partial_fit`.
    if isinstance(model, MLPClassifier | SGDClassifier) and hasattr(model, "partial_fit"):
        return SteppedLearner(model)
    return ScikitLearner(model)
