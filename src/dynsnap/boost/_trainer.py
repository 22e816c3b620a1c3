"""A trainer for boosted trees and scikit-learn classifiers."""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, MemberScores
from dynsnap.boost._learner import FitTask, Learner, describe
from dynsnap.boost._lightgbm import LightGBMLearner
from dynsnap.boost._one_thread import one_thread
from dynsnap.boost._saver import RoundCheckpointSaver
from dynsnap.boost._scikit import ScikitLearner, SteppedLearner
from dynsnap.boost._settings import check_class_weights, check_objective, has_class_weights
from dynsnap.boost._snapshots import features, opened, pack, score
from dynsnap.boost._staged import GradientLearner, HistogramLearner
from dynsnap.boost._watch import EpochWatch
from dynsnap.boost._xgboost import XGBoostLearner
from dynsnap.data import Stream, split
from dynsnap.ensemble import Checkpoints, Monitor, Recipe, Round, RoundSpec, snapshot_epochs
from dynsnap.errors import DynSnapError, Interrupted, PlanError, TrainingError, one_line

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
        monitor: Is told about every epoch, and may stop the training.
        checkpoints: Keeps unfinished rounds. One that is taken up again ends in the same bits as
            one that was never stopped. Classifiers that give one learner per round cannot stop
            before they are fitted.
        checkpoint_every: Least seconds between two checkpoints of a round.
        keep_weights: Whether rounds carry their learners, or scores only.
        trust: Whether stored learners and checkpoints are loaded even where they cannot be
            checked. Say so only of files of your own.

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
    ) -> None:
        if checkpoint_every < 0:
            raise PlanError(f"`checkpoint_every` must not be negative, got {checkpoint_every}.")
        self._stream = stream
        self._model = model
        self._learner = _adapt(model)
        check_objective(model, stream.pool.classes)
        check_class_weights(model, stream.pool.classes)
        self._monitor = monitor
        self._checkpoints = checkpoints
        self._checkpoint_every = checkpoint_every
        self._keep_weights = keep_weights
        self._trust = trust

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
        ]
        return json.dumps(parts)

    def check(self, recipe: Recipe) -> None:
        """Raise PlanError unless the model can follow the recipe."""
        if recipe.dropout or recipe.passes > 1:
            raise PlanError(
                f"{type(self._model).__name__} has no dropout to leave on at prediction: "
                "MCDropout is for torch modules. Leave it out, in a study by naming the others in "
                "[methods] `names`."
            )
        self._learner.check(recipe)

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        """The rounds, one after another."""
        for spec in specs:
            self.check(spec.recipe)
            if spec.parent is not None:
                raise PlanError(
                    f"{type(self._model).__name__} always starts afresh, but {spec} has a parent."
                )
        return self._train(specs)

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners, with a column for every class of the stream."""
        classes = len(self._stream.pool.classes)
        return score(weights, inputs, classes=classes, trust=self._trust)

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
        pool, name = self._stream.pool, spec.canonical()
        rng = seeds.generator(spec.seed, name, "split")
        train, validation = split(self._stream, spec.generation, rng)
        seen, labels = np.unique(pool.labels[train], return_inverse=True)
        if len(seen) < 2:
            raise TrainingError(
                f"{spec} has rows of {len(seen)} class to train on: at least two are needed."
            )
        task = FitTask(
            recipe=spec.recipe,
            inputs=features(pool.inputs[train]),
            labels=labels,
            classes=tuple(pool.classes[place] for place in seen.tolist()),
            validation=features(pool.inputs[validation]),
            seed=seeds.number(spec.seed, name, "model") % 2**31,
        )
        begun = saver.restore(lambda state: self._learner.open(state, task, trust=self._trust))
        watch = EpochWatch(
            spec,
            truth=pool.labels[validation],
            seen=seen,
            monitor=self._monitor,
            saver=saver,
            curve=begun.curve,
        )
        with one_thread():
            try:
                cut = self._learner.fit(task, watch, begun.state)
            except DynSnapError:
                raise
            except Exception as error:  # whatever the library has to say about model or data
                raise TrainingError(
                    f"{type(self._model).__name__} could not be trained in {spec}: {_reason(error)}"
                ) from error
            epochs = snapshot_epochs(spec.recipe, watch.curve)
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
        )
        return done, watch.stopping


def _reason(error: Exception) -> str:
    """What a library has to say, without the trace that XGBoost adds to it."""
    return one_line(str(error).partition("\nStack trace:")[0]).strip() or type(error).__name__


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
