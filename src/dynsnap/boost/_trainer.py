"""A trainer for boosted trees and scikit-learn classifiers."""

import json
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, MemberScores
from dynsnap.boost import _scikit
from dynsnap.boost._learner import Learner, Task, describe
from dynsnap.boost._lightgbm import LightGBMLearner
from dynsnap.boost._snapshots import FORMAT, features, pack, score
from dynsnap.boost._watch import Watch
from dynsnap.boost._xgboost import XGBoostLearner
from dynsnap.data import Stream, split
from dynsnap.ensemble import Monitor, Recipe, Round, RoundSpec, snapshot_epochs
from dynsnap.errors import DynSnapError, PlanError, TrainingError


class BoostTrainer:
    """Trains rounds of an XGBoost, LightGBM or scikit-learn classifier.

    `epochs` of a recipe are boosting iterations, or passes over the data for classifiers that
    learn by `partial_fit`. The recipe's schedule drives the learning rate in each of them, except
    for scikit-learn's gradient boosting, whose rate cannot change. Same spec, same machine, same
    library: the same round, bit by bit.

    Args:
        stream: The growing data.
        model: An instance, not fitted. Its parameters hold, except the number of iterations, the
            random state, threads and early stopping, which the round decides.
        monitor: Is told about every epoch, and may stop the training. A stopped round starts over.
        keep_weights: Whether rounds carry their learners, or scores only.

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
        keep_weights: bool = True,
    ) -> None:
        self._stream = stream
        self._model = model
        self._learner = _adapt(model)
        self._monitor = monitor
        self._keep_weights = keep_weights

    @cached_property
    def fingerprint(self) -> str:
        """Text that changes whenever the data, the model or the library would change a round."""
        learner = self._learner
        parts = [
            f"boost/{FORMAT}",
            learner.kind,
            learner.version,
            describe(self._model),
            self._stream.fingerprint,
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
        return map(self._train, specs)

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners, with a column for every class of the stream."""
        return score(weights, inputs, classes=len(self._stream.pool.classes))

    def _train(self, spec: RoundSpec) -> Round:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        start = time.perf_counter()
        pool, name = self._stream.pool, spec.canonical()
        rng = seeds.generator(spec.seed, name, "split")
        train, validation = split(self._stream, spec.generation, rng)
        seen, labels = np.unique(pool.labels[train], return_inverse=True)
        if len(seen) < 2:
            raise TrainingError(
                f"{spec} has rows of {len(seen)} class to train on: at least two are needed."
            )
        task = Task(
            recipe=spec.recipe,
            inputs=features(pool.inputs[train]),
            labels=labels,
            validation=features(pool.inputs[validation]),
            seed=seeds.number(spec.seed, name, "model") % 2**31,
        )
        watch = Watch(spec, truth=pool.labels[validation], seen=seen, monitor=self._monitor)
        # One thread: sums in parallel come in any order, and so differ in their last bits.
        with threadpool_limits(limits=1):
            try:
                cut = self._learner.fit(task, watch)
            except DynSnapError:
                raise
            except Exception as error:  # whatever the library has to say about model or data
                raise TrainingError(
                    f"{type(self._model).__name__} could not be trained in {spec}: {error}"
                ) from error
            epochs = snapshot_epochs(spec.recipe, watch.curve)
            weights = tuple(
                pack(cut(epoch), learner=self._learner, seen=seen) for epoch in epochs.tolist()
            )
            seconds = time.perf_counter() - start
            # The stored learners are what is scored, so what was stored is what was measured.
            scores = {
                name: self.score(weights, held_out.inputs)
                for name, held_out in self._stream.evaluation.items()
            }
        curve = np.array(watch.curve)
        return Round(
            spec=spec,
            accuracy=curve[epochs],
            epochs=epochs,
            scores=scores,
            curve=curve,
            weights=weights if self._keep_weights else (),
            seconds=seconds,
        )


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
    return _scikit.adapt(model)
