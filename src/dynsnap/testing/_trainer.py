"""What every trainer, and every backend that makes them, must keep to."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dynsnap._types import Floats
from dynsnap.data import Stream
from dynsnap.ensemble import (
    Checkpoints,
    CheckpointsInMemory,
    Monitor,
    Recipe,
    Round,
    RoundSpec,
    Trainer,
)
from dynsnap.errors import DynSnapError, Interrupted
from dynsnap.testing._contracts import RecordingMonitor, assert_same_round, expected_epochs
from dynsnap.trainers import SETTINGS, Backend, ScoreMembers

MakeTrainer: TypeAlias = Callable[[Monitor | None, Checkpoints | None], Trainer]


def check_trainer(
    make: MakeTrainer,
    *,
    stream: Stream,
    recipes: Sequence[Recipe],
    tolerance: float = 0.0,
    score_tolerance: float = 1e-5,
) -> None:
    """Fail unless a trainer keeps its contract.

    Every round is asked for once and given once; it is the same round whenever, wherever and
    beside whatever it is trained, and also when it was stopped and gone on with; other names give
    other rounds; snapshots are the epochs that the recipe states; stored learners score as the
    round does.

    Args:
        make: Makes the trainer, with a monitor and a place for checkpoints or without.
        stream: What `make` trains on.
        recipes: One round of each is trained several times: keep them small.
        tolerance: How far scores of the same round may be apart; 0 on a CPU.
        score_tolerance: How far stored learners may be from the round's own scores.

    Example:
        >>> from dynsnap.data import digits_stream
        >>> from dynsnap.ensemble import Schedule
        >>> from dynsnap.testing import CentroidTrainer
        >>> stream = digits_stream()
        >>> check_trainer(
        ...     lambda monitor, checkpoints: CentroidTrainer(
        ...         stream, monitor=monitor, checkpoints=checkpoints
        ...     ),
        ...     stream=stream,
        ...     recipes=[Recipe(schedule=Schedule("step"), epochs=4, snapshots=2)],
        ... )
    """
    assert recipes, "give at least one recipe to check"
    trainer = make(None, None)
    assert isinstance(trainer.fingerprint, str) and trainer.fingerprint, "no fingerprint"
    assert trainer.fingerprint == make(None, None).fingerprint, "the fingerprint is not stable"
    assert list(trainer.train([])) == [], "rounds were given, though none were asked for"
    specs = [RoundSpec(recipe=recipe, generation=1, seed=11) for recipe in recipes]
    together = _by_spec(trainer.train(specs), specs)
    for spec in specs:
        done = together[spec]
        _check_round(done, stream)
        (alone,) = make(None, None).train([spec])
        assert_same_round(alone, done, tolerance=tolerance)
        _check_stored(trainer, done, stream, score_tolerance)
        _check_stopped(make, done, tolerance)
    _check_names(trainer, together[specs[0]])


def check_backend(
    backend: Backend,
    *,
    model: Any,
    stream: Stream,
    recipes: Sequence[Recipe],
    settings: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
    score_tolerance: float = 1e-5,
) -> None:
    """Fail unless a backend keeps its contract: see `dynsnap.trainers.Backend`.

    Its trainer keeps its own contract (`check_trainer`); learners score without their trainer as
    they did with it; a damaged learner, or one too few, is refused by an error of dynsnap.

    Args:
        backend: What is checked.
        model: What an estimator would be given as `model`.
        stream: What to train on.
        recipes: One round of each is trained several times: keep them small.
        settings: Settings of training, such as `device`.
        tolerance: How far scores of the same round may be apart; 0 on a CPU.
        score_tolerance: How far stored learners may be from the round's own scores.
    """
    given = {"device": "cpu"} if "device" in backend.settings else {}
    given |= settings or {}
    unknown = backend.settings - set(SETTINGS)
    assert not unknown, f"`settings` names what no estimator has: {sorted(unknown)}"

    def make(monitor: Monitor | None, checkpoints: Checkpoints | None) -> Trainer:
        return backend.trainer(
            stream, model=model, settings=given, monitor=monitor, checkpoints=checkpoints
        )

    check_trainer(
        make,
        stream=stream,
        recipes=recipes,
        tolerance=tolerance,
        score_tolerance=score_tolerance,
    )
    specs = [RoundSpec(recipe=recipe, generation=1, seed=11) for recipe in recipes]
    lean = backend.trainer(stream, model=model, settings=given, keep_weights=False)
    assert not next(iter(lean.train(specs[:1]))).weights, "`keep_weights=False` had no effect"
    for done in make(None, None).train(specs):
        _check_scorer(backend, done, stream, model, given, score_tolerance)


def _check_scorer(
    backend: Backend,
    done: Round,
    stream: Stream,
    model: Any,
    settings: Mapping[str, Any],
    tolerance: float,
) -> None:
    def scorer(learners: Sequence[bytes], members: int) -> ScoreMembers:
        return backend.scorer(
            learners,
            model=model,
            classes=len(stream.pool.classes),
            members=members,
            settings=settings,
            trust=False,
        )

    members, inputs = len(done.accuracy), stream.evaluation["test"].inputs
    scores = scorer(done.weights, members)(inputs)
    where = f"{done.spec}: the scorer"
    np.testing.assert_allclose(scores, done.scores["test"], rtol=0, atol=tolerance, err_msg=where)
    first = done.weights[0]
    for damaged in (b"", first[: len(first) // 2], bytes(len(first))):
        try:
            scorer([damaged, *done.weights[1:]], members)(inputs[:1])
        except DynSnapError:
            continue
        raise AssertionError(f"{where} took a damaged learner of {len(damaged)} bytes")
    try:
        found = scorer(done.weights, members + 1)(inputs[:1])
    except DynSnapError:
        return
    raise AssertionError(f"{where} gave {len(found)} members where {members + 1} were asked for")


def _by_spec(rounds: Iterable[Round], specs: Sequence[RoundSpec]) -> dict[RoundSpec, Round]:
    found: dict[RoundSpec, Round] = {}
    for done in rounds:
        assert done.spec in specs, f"{done.spec} was not asked for"
        assert done.spec not in found, f"{done.spec} was given twice"
        found[done.spec] = done
    assert len(found) == len(set(specs)), "not every round that was asked for was given"
    return found


def _deciding(done: Round) -> Floats:
    """The curve that snapshots were chosen by."""
    return done.curve if done.selection_curve is None else done.selection_curve


def _check_round(done: Round, stream: Stream) -> None:
    recipe, where = done.spec.recipe, str(done.spec)
    assert len(done.curve) == recipe.epochs, f"{where}: the curve must have a value per epoch"
    chosen = np.repeat(expected_epochs(recipe, _deciding(done)), recipe.passes)
    np.testing.assert_array_equal(done.epochs, chosen, err_msg=f"{where}: other snapshots")
    np.testing.assert_array_equal(done.accuracy, done.curve[done.epochs], err_msg=where)
    assert done.scores.keys() == stream.evaluation.keys(), f"{where}: other evaluation sets"
    for name, pool in stream.evaluation.items():
        expected = (recipe.members, len(pool), len(stream.pool.classes))
        assert done.scores[name].shape == expected, f"{where}, `{name}`: {done.scores[name].shape}"
        np.testing.assert_allclose(done.scores[name].sum(axis=2), 1, atol=1e-3, err_msg=where)
    assert done.seconds >= 0, f"{where}: training took {done.seconds} seconds"


def _check_stored(trainer: Trainer, done: Round, stream: Stream, tolerance: float) -> None:
    assert len(done.weights) == done.spec.recipe.snapshots, f"{done.spec}: a learner per snapshot"
    for name, pool in stream.evaluation.items():
        scores = trainer.score(done.weights, pool.inputs)
        np.testing.assert_allclose(
            scores, done.scores[name], rtol=0, atol=tolerance, err_msg=f"{done.spec}, `{name}`"
        )


def _check_stopped(make: MakeTrainer, done: Round, tolerance: float) -> None:
    """A round that is stopped half way and gone on with is the round that was never stopped."""
    states = CheckpointsInMemory()
    half = max(1, done.spec.recipe.epochs // 2)
    notebook = RecordingMonitor(stop_after=half)
    try:
        list(make(notebook, states).train([done.spec]))
    except Interrupted:
        pass
    else:
        raise AssertionError(f"{done.spec} was told to stop, and was not interrupted")
    told = [epoch for _, epoch, _ in notebook.epochs]
    assert told == list(range(half)), f"{done.spec}: told of epochs {told}"
    (resumed,) = make(None, states).train([done.spec])
    assert_same_round(resumed, done, tolerance=tolerance)


def _check_names(trainer: Trainer, done: Round) -> None:
    """Whatever names a round changes its randomness, or consistency is flattered."""
    others = [
        dataclasses.replace(done.spec, replicate=1),
        dataclasses.replace(done.spec, index=1),
        dataclasses.replace(done.spec, seed=done.spec.seed + 1),
        dataclasses.replace(done.spec, twin=1),
    ]
    found = _by_spec(trainer.train(others), others)
    for spec in others:
        same = np.array_equal(found[spec].scores["test"], done.scores["test"])
        assert not same, f"{spec} (seed {spec.seed}) equals {done.spec}"
