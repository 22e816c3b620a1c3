"""One generation of an estimator: from checked inputs to an ensemble, fresh or rolling."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels, MemberScores
from dynsnap.ensemble import (
    Method,
    Round,
    RoundSpec,
    Size,
    Trainer,
    grow_rounds,
    members,
    train_rounds,
    wanted,
)
from dynsnap.errors import PlanError
from dynsnap.estimator._carried import check_can_be_carried, class_places, roll
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.estimator._fitted import Fitted, fitted
from dynsnap.estimator._inputs import encoded, pooled
from dynsnap.estimator._rows import RowFacts, by_class
from dynsnap.estimator._session import Session
from dynsnap.estimator._settings import check_settings, is_fixed, method_of, seed_of
from dynsnap.estimator._streams import after_the_first, rows_aside, rows_held_out, stream_of
from dynsnap.estimator._teachers import deployed_network, teacher_scores


def train(
    estimator: ConfiguredEnsemble,
    inputs: Any,
    labels: AnyArray,
    facts: RowFacts,
    *,
    before: ConfiguredEnsemble | None,
    session: Session,
    teacher: Any = None,
) -> tuple[Fitted, AnyArray]:
    """The ensemble that an estimator's settings make of this data, and its classes."""
    if not 0 < estimator.validation < 1:
        raise PlanError(f"`validation` must be above 0 and below 1, got {estimator.validation}.")
    plan = method_of(estimator)
    backend = estimator._chosen_backend()
    check_settings(backend, estimator.get_params(deep=False), estimator._usual())
    classes, positions = encoded(labels, validation=estimator.validation)
    how = plan.retraining
    given = teacher_scores(teacher, how, before, inputs, positions, classes, estimator.method)
    if given is not None and how is not None:
        how = replace(how, teacher=given.key)
        plan = replace(plan, retraining=how)
    held_out = plan.rolling is not None or (how is not None and how.interpolate)
    if plan.uses_deployed and before is not None:
        share = estimator.selection_holdout if held_out else 0.0
        check_can_be_carried(before, backend=backend.name, selection_holdout=share)
    backend.check_method(estimator.model, plan)
    deployed: dict[str, bytes] = {}
    if how is not None and how.uses_deployed:
        deployed = deployed_network(before, classes, backend, estimator)
    aside = None
    if held_out:
        # What a row is held out by: its group, so that none is cut, else its own content.
        content = inputs if facts.groups is None else facts.groups
        aside = rows_held_out(content, positions, estimator.selection_holdout, estimator.method)
    elif plan.plan.automatic:
        aside = rows_aside(positions, estimator.validation, facts.groups)
    generation = 1 if before is None else before.generation_ + 1
    pool = facts.noted_in(pooled(inputs, positions, classes))
    if pool.weights is not None:
        backend.check_weights(estimator.model)
    stream = stream_of(pool, estimator.validation, generation, aside)
    if before is not None and how is not None:
        # What is new is new to the network that it starts from, whatever another teacher knows.
        if how.uses_deployed or given is None:
            known = np.array(class_places(before, classes))
        else:
            known = np.flatnonzero(given.known)
        stream = after_the_first(stream, np.isin(positions, known), held_out=held_out)
    stored = {**deployed, **({given.key: given.to_bytes()} if given else {})}
    drawn, fixed = seed_of(estimator.random_state), is_fixed(estimator.random_state)
    seed = session.seed(drawn, fixed=fixed, data=stream.fingerprint)
    trainer = backend.trainer(
        stream,
        model=estimator.model,
        settings=by_class(estimator, classes, estimator._training_settings(backend)),
        monitor=session.watch,
        checkpoints=session.checkpoints(),
        parents=stored.__getitem__ if stored else None,
    )
    session.trains(trainer)
    made = _Generation(
        estimator=estimator,
        backend=backend.name,
        plan=plan,
        trainer=trainer,
        session=session,
        number=generation,
        seed=seed,
        parent=next(iter(deployed), "") if stored else None,
        held_out=held_out,
        truth=None if plan.rolling is None or aside is None else positions[aside],
        weights=None if aside is None or pool.weights is None else pool.weights[aside],
    )
    size = plan.plan.size
    if plan.rolling is None or before is None or size == "auto":
        return made.ensemble(size)[0], classes
    assert aside is not None
    rolled = roll(
        plan.rolling,
        size,
        before,
        inputs=inputs[aside],
        truth=positions[aside],
        weights=made.weights,
        classes=classes,
        train_new=made.ensemble,
    )
    return rolled, classes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Generation:
    """A generation whose data and settings are known: new members are trained on request.

    Attributes:
        estimator: With its settings.
        backend: The name of what trains.
        plan: The method.
        trainer: Trains its rounds.
        session: What watches the training and keeps rounds.
        number: Which generation, counted from 1.
        seed: Names all of its randomness.
        parent: The key of the deployed network, "" where another teacher is stored alone; None
            where rounds neither start nor learn from anything that is stored.
        held_out: Whether rows are held out of all generations.
        truth: The classes of the rows that members of two generations are compared on.
        weights: How much each of these rows counts; None where all count 1.
    """

    estimator: ConfiguredEnsemble
    backend: str
    plan: Method
    trainer: Trainer
    session: Session
    number: int
    seed: int
    parent: str | None
    held_out: bool
    truth: Labels | None
    weights: Floats | None

    def ensemble(self, size: Size) -> tuple[Fitted, MemberScores]:
        """An ensemble of so many new members, and their scores on the rows set aside."""
        method = replace(
            self.plan,
            recipe=self.plan.recipe_of(self.number),
            plan=replace(self.plan.plan_of(self.number), size=size),
            rolling=None,
        )
        rounds = self._rounds(method)
        kept = members(method.plan, rounds)
        scores = kept.scores["test"]
        if self.truth is not None:
            right = scores.argmax(axis=2) == self.truth
            kept = replace(kept, accuracy=np.average(right, axis=1, weights=self.weights))
        made = fitted(
            method,
            rounds,
            kept,
            backend=self.backend,
            epochs=self.estimator._size("epochs"),
            seed=self.seed,
            generation=self.number,
        )
        if self.held_out:
            made = replace(made, selection_holdout=self.estimator.selection_holdout)
        return made, scores

    def _rounds(self, method: Method) -> tuple[Round, ...]:
        how, session = self.plan.retraining, self.session
        if self.parent is None or how is None:
            session.watch.plan(wanted(method.plan, []), method.recipe.epochs)
            return grow_rounds(
                method.plan,
                self.trainer,
                engine=session.engine,
                recipe=method.recipe,
                generation=self.number,
                seed=self.seed,
                store=session.store,
            )
        spec = RoundSpec(
            recipe=method.recipe,
            generation=self.number,
            seed=self.seed,
            parent=self.parent if how.warm_start else None,
            distillation=how.distillation(self.parent),
            new_class_weight=how.new_class_weight,
            interpolate=how.interpolate,
        )
        session.watch.plan(1, spec.recipe.epochs)
        return tuple(train_rounds([spec], self.trainer, engine=session.engine, store=session.store))
