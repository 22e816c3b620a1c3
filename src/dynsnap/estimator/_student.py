"""One network of a fitted ensemble: a student that learns to predict what the ensemble predicts."""

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Flags, Scores
from dynsnap.data import from_generations
from dynsnap.ensemble import (
    DistillingTrainer,
    EnsemblePlan,
    Method,
    Recipe,
    Schedule,
    SoftTargets,
    grow_rounds,
    members,
    with_second,
)
from dynsnap.errors import InputError, PlanError
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.estimator._fitted import Fitted, fitted
from dynsnap.estimator._inputs import encoded, pooled
from dynsnap.estimator._rows import RowFacts, by_class
from dynsnap.estimator._session import Session


def student(
    estimator: ConfiguredEnsemble,
    inputs: AnyArray,
    labels: AnyArray,
    facts: RowFacts,
    *,
    weight: float,
    temperature: float,
    epochs: int | None,
    previous: ConfiguredEnsemble | None,
    share: float,
    session: Session,
) -> Fitted:
    """One network, taught by a fitted estimator on the data that it was fitted on."""
    classes, positions = encoded(labels, validation=estimator.validation)
    if classes.tolist() != estimator.classes_.tolist():
        raise InputError(
            f"The data has the classes {classes.tolist()}, but the ensemble was trained on "
            f"{estimator.classes_.tolist()}. Pass the data that it was trained on."
        )
    backend = estimator._chosen_backend()
    pool = facts.noted_in(pooled(inputs, positions, classes))
    if pool.weights is not None:
        backend.check_weights(estimator.model)
    generation, rows = estimator.generation_, np.arange(len(inputs))
    stream = from_generations(
        pool, [rows] * generation, test=pool.take(rows[:1]), validation=estimator.validation
    )
    base = backend.trainer(
        stream,
        model=estimator.model,
        settings=by_class(estimator, classes, estimator._training_settings(backend)),
        monitor=session.watch,
    )
    if not isinstance(base, DistillingTrainer):
        raise PlanError(
            f"The trainer {backend.name!r} cannot distil. Networks learn from scores; boosted "
            "trees and scikit-learn's classifiers learn from labels alone."
        )
    scores: Scores = estimator.predict_proba(inputs)
    if previous is not None:
        second, known = _said(previous, inputs, classes)
        scores = with_second(scores, second, share=share, heard=known[positions])
    method = Method(
        name="singlebase",
        recipe=Recipe(
            schedule=Schedule("step"),
            epochs=estimator._size("epochs") if epochs is None else epochs,
            snapshots=1,
        ),
        plan=EnsemblePlan(size=1, snapshots=1, beta=1.0),
    )
    # Its own randomness, which no round of the ensemble has.
    seed = seeds.number(estimator._fitted.seed, "student")
    targets = SoftTargets(scores=scores, weight=weight, temperature=temperature)
    taught = base.taught(targets, checkpoints=session.checkpoints())
    session.trains(taught)
    session.watch.plan(1, method.recipe.epochs)
    rounds = grow_rounds(
        method.plan,
        taught,
        engine=session.engine,
        store=session.store,
        recipe=method.recipe,
        generation=generation,
        seed=seed,
    )
    return fitted(
        method,
        rounds,
        members(method.plan, rounds),
        backend=backend.name,
        epochs=estimator._size("epochs"),
        seed=seed,
        generation=generation,
    )


def _said(
    previous: ConfiguredEnsemble, inputs: AnyArray, classes: AnyArray
) -> tuple[Scores, Flags]:
    """Scores of an earlier generation in the columns of this one, and which classes it knows."""
    known = previous.classes_.tolist()
    gone = [name for name in known if name not in classes.tolist()]
    if gone:
        raise InputError(
            f"`previous` knows the class {gone[0]!r}, which this generation does not have. Pass "
            "the generation before, of the same task."
        )
    places = [classes.tolist().index(name) for name in known]
    second = np.zeros((len(inputs), len(classes)))
    second[:, places] = previous.predict_proba(inputs)
    return second, np.isin(np.arange(len(classes)), places)
