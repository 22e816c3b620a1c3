"""One generation of an estimator: from checked inputs to an ensemble, fresh or rolling."""

import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dynsnap._types import Accuracies, AnyArray, Flags, Labels, MemberScores, Positions
from dynsnap.data import SELECTION_SET, Pool, Stream, draw_groups, selection_rows
from dynsnap.ensemble import (
    METHOD_KINDS,
    Method,
    Retraining,
    Rolling,
    RoundSpec,
    Size,
    TeacherScores,
    best,
    grow_rounds,
    judged,
    members,
    method,
    train_rounds,
    wanted,
)
from dynsnap.errors import InputError, PlanError
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.estimator._fitted import Fitted, FittedEnsemble, fitted
from dynsnap.estimator._inputs import encoded, pooled
from dynsnap.estimator._rows import RowFacts, by_class
from dynsnap.estimator._session import Session
from dynsnap.predictions import Predictions, read
from dynsnap.trainers import BACKENDS, SETTINGS, Backend

# Settings that only some methods have a use for.
OF_METHODS = ("dropout", "carry_over", "max_accuracy_gap", "selection_holdout", "beta")


# Settings that more backends have than that of torch.
OF_EACH = ("class_weight", "selection_metric")


def check_settings(backend: Backend, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise PlanError for a setting away from its usual value that would have no effect.

    `members`, `snapshots` and `epochs` are read by every method in its own way.
    """
    model = type(settings["model"]).__name__
    if backend.name not in BACKENDS.own:
        model = f"a model of the trainer {backend.name!r}"
    refuse_unused(backend, settings, usual, model)
    for name in OF_METHODS:
        methods = [method for method, kind in METHOD_KINDS.items() if name in kind.uses]
        if settings["method"] not in methods and _differs(settings[name], usual[name]):
            raise PlanError(
                f"`{name}={settings[name]!r}` is for {', '.join(methods)}, and would have no "
                f"effect on {settings['method']}. Leave it out."
            )


def refuse_unused(
    backend: Backend, given: Mapping[str, Any], usual: Mapping[str, Any], model: str
) -> None:
    """Raise PlanError if a setting of training is given that a backend has no use for."""
    for name in SETTINGS:
        unused = name not in backend.settings
        if unused and name in given and _differs(given[name], usual[name]):
            whose = "would" if name in OF_EACH else "is for torch modules, and would"
            raise PlanError(
                f"`{name}={given[name]!r}` {whose} have no effect on {model}, which has "
                "parameters of its own. Leave it out."
            )


def _differs(value: Any, usual: Any) -> bool:
    if value is usual:
        return False
    try:
        return bool(value != usual)
    except (TypeError, ValueError):  # of what cannot be compared, as an array cannot
        return True


def roll(
    rolling: Rolling,
    size: int,
    before: FittedEnsemble,
    *,
    inputs: Any,
    truth: Labels,
    classes: AnyArray,
    train_new: Callable[[int], tuple[Fitted, MemberScores]],
) -> Fitted:
    """An ensemble of the best members of the one before, and of new ones.

    Args:
        rolling: How members are carried over.
        size: How many members there are in all.
        before: The estimator before.
        inputs: Rows that no member was ever trained on.
        truth: Their classes.
        classes: All classes by now.
        train_new: An ensemble of so many new members, and their scores on those rows. The first of
            many are the same as of few, and are not trained again.
    """
    old = _widened(before, classes)
    scores = np.zeros((len(old.members), len(inputs), len(classes)))
    scores[:, :, list(_places(before, classes))] = before._open()(inputs)[old.places]
    count = rolling.carried(size)
    new, said = train_new(size - count) if count < size else (None, None)
    accuracy, agreement, bars = judged(scores, truth, known=old.known(len(classes)), new=said)
    kept = best(accuracy, agreement, count=count, rolling=rolling, new=bars)
    if len(kept) < count:
        new, _ = train_new(size - len(kept))
    return _joined(old, kept.tolist(), accuracy, new, classes=len(classes))


def check_can_be_carried(before: FittedEnsemble, *, backend: str, selection_holdout: float) -> None:
    """Raise unless members of an estimator can be carried over into one with these settings."""
    made = before._found()
    if made.backend != backend:
        raise InputError(
            f"The last generation was made with a model of another kind ({made.backend}) than "
            f"`model` ({backend}): its members cannot be carried over. Start anew with `fit`."
        )
    if made.heard:
        raise InputError(
            "The last generation comes from a study in which not all members know all classes: its "
            "members cannot be carried over. Start anew with `fit`."
        )
    if made.passes > 1:
        raise InputError(
            "Members of mcdropout cannot be carried over: they are one network. Start anew with "
            "`fit`."
        )
    if made.selection_holdout < selection_holdout:
        raise InputError(
            f"The last generation held {made.selection_holdout:.0%} of the rows out for selection, "
            f"and `selection_holdout` asks for {selection_holdout:.0%} now: it was trained on some "
            "of those. Lower `selection_holdout`, or start anew with `fit`."
        )


def _places(before: FittedEnsemble, classes: AnyArray) -> tuple[int, ...]:
    """Where the classes of the estimator before are among all classes by now."""
    place = {label: position for position, label in enumerate(classes.tolist())}
    for label in before.classes_.tolist():
        if label not in place:
            raise InputError(
                f"The last generation knows the class {label!r}, of which there are no rows any "
                "more. Pass all data so far, or start anew with `fit`."
            )
    return tuple(place[label] for label in before.classes_.tolist())


def _widened(before: FittedEnsemble, classes: AnyArray) -> Fitted:
    """The ensemble before, its columns counted among all classes by now."""
    old, places = before._found(), _places(before, classes)
    columns = old.learned or (tuple(range(len(before.classes_))),) * len(old.learners)
    return dataclasses.replace(
        old, learned=tuple(tuple(places[at] for at in each) for each in columns)
    )


def _joined(
    old: Fitted, kept: list[int], accuracy: AnyArray, new: Fitted | None, *, classes: int
) -> Fitted:
    """Some members of the old ensemble, then all of the new one, each learner once."""
    used = sorted({old.members[place].learner for place in kept})
    carried = tuple(
        dataclasses.replace(
            old.members[place],
            accuracy=float(accuracy[place]),
            learner=used.index(old.members[place].learner),
        )
        for place in kept
    )
    columns = tuple(old.learned[learner] for learner in used)
    learners = tuple(old.learners[learner] for learner in used)
    if new is None:
        return dataclasses.replace(
            old,
            members=carried,
            learners=learners,
            learned=columns,
            rounds=0,
            cost=0.0,
            history=(),
            generation=old.generation + 1,
        )
    fresh = tuple(
        dataclasses.replace(member, learner=member.learner + len(used)) for member in new.members
    )
    return dataclasses.replace(
        new,
        members=carried + fresh,
        learners=learners + new.learners,
        learned=columns + (tuple(range(classes)),) * len(new.learners),
    )


_MOST_ASIDE = 1000  # rows: beyond, more of them would settle little and be missed in training


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
    plan = _method(estimator)
    backend = estimator._chosen_backend()
    check_settings(backend, estimator.get_params(deep=False), estimator._usual())
    classes, positions = encoded(labels, validation=estimator.validation)
    aside, deployed = None, None
    how = plan.retraining
    given = _teacher(teacher, how, before, inputs, positions, classes, estimator.method)
    if given is not None and how is not None:
        how = dataclasses.replace(how, teacher=given.key)
        plan = dataclasses.replace(plan, retraining=how)
    held_out = plan.rolling is not None or (how is not None and how.interpolate)
    if plan.uses_deployed and before is not None:
        share = estimator.selection_holdout if held_out else 0.0
        check_can_be_carried(before, backend=backend.name, selection_holdout=share)
    backend.check_method(estimator.model, plan)
    if how is not None and how.uses_deployed:
        deployed = _deployed(before, classes, backend, estimator)
    if held_out:
        # What a row is held out by: its group, so that none is cut, else its own content.
        content = inputs if facts.groups is None else facts.groups
        aside = _held_out(content, positions, estimator.selection_holdout, estimator.method)
    elif plan.plan.automatic:
        aside = _aside(positions, estimator.validation, facts.groups)
    generation = 1 if before is None else before.generation_ + 1
    pool = facts.noted_in(pooled(inputs, positions, classes))
    if pool.weights is not None:
        backend.check_weights(estimator.model)
    stream = _stream(pool, estimator.validation, generation, aside)
    if before is not None and how is not None:
        # What is new is new to the network that it starts from, whatever another teacher knows.
        if how.uses_deployed or given is None:
            places: Sequence[int] = _places(before, classes)
        else:
            places = np.flatnonzero(given.known).tolist()
        stream = _after(stream, np.isin(positions, places), held_out=held_out)
    key = next(iter(deployed), "") if deployed else ""
    stored = {**(deployed or {}), **({given.key: given.to_bytes()} if given else {})}
    drawn = _seed(estimator.random_state)
    seed = session.seed(drawn, fixed=_fixed(estimator.random_state), data=stream.fingerprint)
    rounds = session.store
    trains = backend.trainer(
        stream,
        model=estimator.model,
        settings=by_class(estimator, classes, estimator._training_settings(backend)),
        monitor=session.watch,
        checkpoints=session.checkpoints(),
        parents=stored.__getitem__ if stored else None,
    )
    session.trains(trains)
    judged = None if plan.rolling is None or aside is None else positions[aside]

    def train_new(size: Size) -> tuple[Fitted, MemberScores]:
        method = dataclasses.replace(
            plan,
            recipe=plan.recipe_of(generation),
            plan=dataclasses.replace(plan.plan_of(generation), size=size),
            rolling=None,
        )
        if stored and how is not None:
            spec = RoundSpec(
                recipe=method.recipe,
                generation=generation,
                seed=seed,
                parent=key if how.warm_start else None,
                distillation=how.distillation(key),
                new_class_weight=how.new_class_weight,
                interpolate=how.interpolate,
            )
            session.watch.plan(1, spec.recipe.epochs)
            found = tuple(train_rounds([spec], trains, engine=session.engine, store=rounds))
        else:
            session.watch.plan(wanted(method.plan, []), method.recipe.epochs)
            found = grow_rounds(
                method.plan,
                trains,
                engine=session.engine,
                recipe=method.recipe,
                generation=generation,
                seed=seed,
                store=rounds,
            )
        kept = members(method.plan, found)
        if judged is not None:
            kept = dataclasses.replace(kept, accuracy=_accuracy(kept.scores["test"], judged))
        made = fitted(
            method,
            found,
            kept,
            backend=backend.name,
            epochs=estimator._size("epochs"),
            seed=seed,
            generation=generation,
        )
        if held_out:
            made = dataclasses.replace(made, selection_holdout=estimator.selection_holdout)
        return made, kept.scores["test"]

    size = plan.plan.size
    if plan.rolling is None or before is None or size == "auto":
        return train_new(size)[0], classes
    assert aside is not None
    made = roll(
        plan.rolling,
        size,
        before,
        inputs=inputs[aside],
        truth=positions[aside],
        classes=classes,
        train_new=train_new,
    )
    return made, classes


def _teacher(
    teacher: Any,
    how: Retraining | None,
    before: ConfiguredEnsemble | None,
    inputs: AnyArray,
    positions: Labels,
    classes: AnyArray,
    method: str,
) -> TeacherScores | None:
    """The scores that a retrain learns from, where they are not those of the deployed network."""
    if how is not None and how.teacher:
        raise PlanError(
            "`teacher` of `retraining` names stored scores, which an estimator does not have. Pass "
            "the teacher itself: retrain(X, y, teacher=...)."
        )
    learns = how is not None and how.distill_weight > 0
    if teacher is not None and not learns:
        raise PlanError(
            f"`teacher` would have no effect on {method}, which learns from labels alone. Use "
            "single-distill or single, with a `distill_weight` above 0."
        )
    if teacher is None and before is not None and how is not None and learns:
        # An ensemble, or a model of another kind, has no weights to start from, but scores.
        other = len(before._found().members) > 1 or before.model is not before._learned_model
        teacher = before if other and not how.warm_start else None
    if teacher is None:
        return None
    names = tuple(map(str, classes.tolist()))
    rows = np.arange(len(inputs))
    if isinstance(teacher, str | os.PathLike):
        name = str(os.fspath(teacher))
        said = read(name)
    elif isinstance(teacher, Predictions):
        name, said = "`teacher`", teacher
    elif hasattr(teacher, "predict_proba") and hasattr(teacher, "classes_"):
        name = f"`teacher` ({type(teacher).__name__})"
        try:
            scores = np.asarray(teacher.predict_proba(inputs))
        except (ValueError, TypeError) as error:
            raise InputError(f"{name} cannot score the training rows: {error}") from error
        labels = tuple(map(str, teacher.classes_.tolist()))
        said = Predictions(ids=rows, classes=labels, scores=scores)
    else:
        raise InputError(
            "`teacher` must be a fitted classifier, predictions with scores, or the path of a "
            f"prediction file, got {type(teacher).__name__}."
        )
    given = TeacherScores.of(said, name=name, ids=rows, classes=names)
    given.check(rows, positions)
    return given


def _deployed(
    before: ConfiguredEnsemble | None, classes: AnyArray, backend: Backend, estimator: Any
) -> dict[str, bytes]:
    """The network that a single network is retrained from, by its key; none for the first."""
    if before is None:
        return {}
    made = before._found()
    if len(made.members) > 1:
        raise InputError(
            f"{estimator.method} is retrained from a single network, and the last generation is "
            f"an ensemble of {len(made.members)}. Use single-distill, which learns from an "
            "ensemble's scores, distil it first, or start anew with `fit`."
        )
    learner, places = made.learners[made.members[0].learner], _places(before, classes)
    if len(places) < len(classes):
        learner = backend.widened(
            learner, model=estimator.model, classes=len(classes), places=places
        )
    return {f"{hashlib.sha256(learner).hexdigest()[:32]}/0": learner}


def _after(stream: Stream, known: Flags, *, held_out: bool) -> Stream:
    """The stream of a retrain: the generation before had rows of the classes that it knows."""
    *_, rows = stream.generations
    last = len(stream.generations) - 1
    counts = np.where(
        np.bincount(stream.pool.labels[rows[known[rows]]], minlength=len(stream.pool.classes)),
        stream.validation[-1],
        0,
    )
    changed = dataclasses.replace(
        stream,
        generations=(rows[known[rows]],) * last + (rows,),
        validation=(counts,) * last + (stream.validation[-1],),
    )
    if not held_out:
        return changed
    seen = stream.evaluation["test"]
    return dataclasses.replace(
        changed,
        evaluation={"test": seen, SELECTION_SET: seen},
        selection_holdout=(np.arange(len(seen)),) * (last + 1),
    )


def _accuracy(scores: MemberScores, truth: Labels) -> Accuracies:
    found: Accuracies = np.mean(scores.argmax(axis=2) == truth, axis=1)
    return found


def _method(estimator: ConfiguredEnsemble) -> Method:
    # One snapshot is all that these take of a round, and all that most classifiers have.
    one = METHOD_KINDS.find(estimator.method).best_only
    plan = method(
        estimator.method,
        epochs=estimator._size("epochs"),
        members=estimator._size("members"),
        snapshots=1 if one else estimator._size("snapshots"),
        dropout=estimator.dropout,
        beta=estimator.beta,  # type: ignore[arg-type]  # checked there
        rolling=Rolling(
            carry_over=estimator.carry_over, max_accuracy_gap=estimator.max_accuracy_gap
        ),
        tolerance=estimator.tolerance,
        most_rounds=estimator.most_rounds,
        retraining=estimator.retraining,
        average=estimator.average,
        smoothing=estimator.smoothing,
    )
    return dataclasses.replace(plan, combinations=(estimator.combination,))


def _aside(labels: Labels, share: float, groups: AnyArray | None) -> Positions:
    """Rows that no round trains on, so that their scores show what another is worth."""
    if groups is not None:
        have = np.bincount(labels)
        counts = np.maximum(np.rint(min(share, _MOST_ASIDE / len(labels)) * have), 1)
        return np.flatnonzero(
            draw_groups(labels, groups, counts.astype(np.intp), np.random.default_rng(0))
        )
    # At least two rows of every class are left, to train and to validate on.
    every = max(round(1 / share), -(-len(labels) // _MOST_ASIDE), 3)
    rows = [np.flatnonzero(labels == label)[every - 1 :: every] for label in np.unique(labels)]
    found = np.sort(np.concatenate(rows))
    if not len(found):
        raise PlanError(
            f'"auto" members are decided on by every {every}th row of each class, and no class '
            "has so many: give a number of members."
        )
    return found


def _held_out(inputs: Any, labels: Labels, share: float, method: str) -> Positions:
    """Rows that no generation trains on, so that members of all of them can be compared."""
    if share == 0:
        raise PlanError(
            f"{method} compares networks of two generations on rows that none is trained on: set "
            "`selection_holdout` above 0, such as 0.1."
        )
    found = np.flatnonzero(selection_rows(inputs, share))
    left = np.bincount(np.delete(labels, found), minlength=int(labels.max()) + 1)
    if not len(found) or left.min() < 2:
        raise InputError(
            f"{method} holds {share:.0%} of the rows out to compare networks of all generations "
            f"on, and {len(inputs)} rows are too few for that: {len(found)} would be "
            f"held out, and {left.min()} left of one class. Bring more rows, or change "
            "`selection_holdout`."
        )
    return found


def _stream(pool: Pool, validation: float, generation: int, aside: Positions | None) -> Stream:
    """The data of one generation as a stream, for trainers."""
    # A trainer always scores a test set. It is unused unless rows are held out for it.
    rows, seen = np.arange(len(pool)), np.arange(1)
    if aside is not None:
        rows, seen = np.delete(rows, aside), aside
    have = np.bincount(pool.labels[rows], minlength=len(pool.classes))
    counts = np.clip(np.rint(validation * have), 1, have - 1).astype(np.intp)
    return Stream(
        pool=pool,
        # Only the last is trained here; those before it were trained by the estimators before.
        generations=(rows,) * generation,
        validation=(counts,) * generation,
        evaluation={"test": pool.take(seen)},
    )


def _fixed(random_state: Any) -> bool:
    return isinstance(random_state, int | np.integer) and bool(random_state >= 0)


def _seed(random_state: Any) -> int:
    if _fixed(random_state):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
