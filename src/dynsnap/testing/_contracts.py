"""What every engine and every store of rounds must keep to."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from dynsnap._types import Floats, Positions
from dynsnap.ensemble import (
    Checkpoints,
    Engine,
    Recipe,
    Round,
    RoundSpec,
    RoundStore,
    Schedule,
    Trainer,
    serial,
)
from dynsnap.errors import DynSnapError


def assert_same_round(found: Round, expected: Round, *, tolerance: float = 0.0) -> None:
    """Fail unless two rounds are the same round, their scores within the tolerance."""
    assert found.spec == expected.spec, f"got {found.spec}, expected {expected.spec}"
    where = str(expected.spec)
    exact = tolerance == 0.0
    if exact:
        np.testing.assert_array_equal(found.accuracy, expected.accuracy, err_msg=where)
        np.testing.assert_array_equal(found.epochs, expected.epochs, err_msg=where)
        np.testing.assert_array_equal(found.curve, expected.curve, err_msg=where)
        np.testing.assert_array_equal(found.judged, expected.judged, err_msg=where)
        assert found.weights == expected.weights, f"{where}: the weights differ"
    assert found.scores.keys() == expected.scores.keys(), f"{where}: other evaluation sets"
    for name, scores in expected.scores.items():
        np.testing.assert_allclose(
            found.scores[name], scores, rtol=0, atol=tolerance, err_msg=f"{where}, `{name}`"
        )


def expected_epochs(recipe: Recipe, curve: Floats) -> Positions:
    """The epochs that a recipe keeps of a finished training, written for reading, not for speed."""
    if recipe.selection == "top":
        ranked = sorted(range(len(curve)), key=lambda epoch: (-curve[epoch], epoch))
        return np.array(ranked[: recipe.snapshots])
    windows = [
        range(len(curve))[i : i + recipe.window] for i in range(0, len(curve), recipe.window)
    ]
    return np.array([max(window, key=lambda epoch: (curve[epoch], -epoch)) for window in windows])


class RecordingMonitor:
    """A monitor that writes down what it is shown, and may stop training after some epochs.

    Example:
        >>> notebook = RecordingMonitor(stop_after=1)
        >>> notebook.stopping()
        False
    """

    def __init__(self, *, stop_after: int | None = None) -> None:
        self.epochs: list[tuple[RoundSpec, int, float]] = []
        self._stop_after = stop_after

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self.epochs.append((spec, epoch, accuracy))

    def stopping(self) -> bool:
        return self._stop_after is not None and len(self.epochs) >= self._stop_after


def check_engine(
    engine: Engine, trainer: Trainer, *, recipes: Sequence[Recipe], tolerance: float = 0.0
) -> None:
    """Fail unless an engine keeps its contract.

    It hands back every round that it was asked for, once and in any order, each equal to what the
    serial engine gives, also when asked a second time and for fewer; asked for nothing, it gives
    nothing; what the trainer raises arrives, as it is where dynsnap raises it on purpose.

    Args:
        engine: What is checked.
        trainer: Trains for it.
        recipes: Two rounds of each are trained twice: keep them small.
        tolerance: How far scores of the same round may be apart; 0 on a CPU.
    """
    assert list(engine(trainer, [])) == [], "rounds were given, though none were asked for"
    specs = [
        RoundSpec(recipe=recipe, generation=1, index=index)
        for recipe in recipes
        for index in (0, 1)
    ]
    assert specs, "give at least one recipe to check"
    expected = {done.spec: done for done in serial(trainer, specs)}
    found = list(engine(trainer, specs))
    assert len(found) == len(specs), f"{len(specs)} rounds were asked for, {len(found)} given"
    assert {done.spec for done in found} == set(specs), "other rounds were given than asked for"
    for done in found:
        assert_same_round(done, expected[done.spec], tolerance=tolerance)
    again = list(engine(trainer, specs[:1]))
    assert [done.spec for done in again] == specs[:1], "asked again, it gave other rounds"
    assert_same_round(again[0], expected[specs[0]], tolerance=tolerance)
    impossible = RoundSpec(recipe=recipes[0], generation=10**6)
    own = _raised(serial, trainer, impossible)
    found_error = _raised(engine, trainer, impossible)
    assert found_error is not None, "a round that cannot be trained raised nothing"
    if isinstance(own, DynSnapError):
        same = type(found_error) is type(own) and str(found_error) == str(own)
        assert same, f"the trainer raised {own!r}, but {found_error!r} arrived"


def _raised(engine: Engine, trainer: Trainer, spec: RoundSpec) -> Exception | None:
    try:
        list(engine(trainer, [spec]))
    except Exception as error:  # of whatever kind the trainer has
        return error
    return None


def check_store(reopen: Callable[[], RoundStore]) -> None:
    """Fail unless a store keeps its contract.

    A round comes back as it was put, also from a store that is opened later; what was never put is
    missing; what is put again replaces what was there; rounds do not get in each other's way.

    Args:
        reopen: Opens the store, which begins empty; called again, it opens the same one.

    Example:
        >>> class Memory(dict):
        ...     def get(self, key, spec):
        ...         return super().get(key)
        ...     def put(self, key, done):
        ...         self[key] = done
        >>> memory = Memory()
        >>> check_store(lambda: memory)
    """
    first, second = _a_round(0), _a_round(1)
    store = reopen()
    assert store.get("aa", first.spec) is None, "a round was found in an empty store"
    store.put("aa", first)
    store.put("bb", second)
    for opened in (store, _again(store, reopen)):
        for key, expected in (("aa", first), ("bb", second)):
            found = opened.get(key, expected.spec)
            assert found is not None, f"the round under {key} is gone"
            assert_same_round(found, expected)
        assert opened.get("cc", first.spec) is None, "a round was found that was never put"
    changed = dataclasses.replace(first, accuracy=first.accuracy / 2)
    store = _again(store, reopen)
    store.put("aa", changed)
    found = store.get("aa", first.spec)
    assert found is not None
    assert_same_round(found, changed)
    _again(store, reopen)


def check_checkpoints(reopen: Callable[[], Checkpoints]) -> None:
    """Fail unless a place for unfinished rounds keeps its contract.

    Args:
        reopen: Opens the place, which begins empty; called again, it opens the same one.
    """
    one, other = _a_round(0).spec, _a_round(1).spec
    states = reopen()
    assert states.load(one) is None, "a state was found where none was saved"
    states.drop(one)  # what is not there can be dropped
    states.save(one, b"first")
    states.save(other, b"")
    states.save(one, b"second\x00\xff")
    for opened in (states, reopen()):
        assert opened.load(one) == b"second\x00\xff", "the last state that was saved is gone"
        assert opened.load(other) == b"", "an empty state is a state"
    states.drop(one)
    assert states.load(one) is None, "a dropped state is still there"
    assert states.load(other) == b"", "dropping one state dropped another"


def _again(store: RoundStore, reopen: Callable[[], RoundStore]) -> RoundStore:
    close = getattr(store, "close", None)
    if close is not None:
        close()
    return reopen()


def _a_round(index: int) -> Round:
    recipe = Recipe(schedule=Schedule("cyclic"), epochs=6, snapshots=3, selection="window")
    rng = np.random.default_rng(index)
    return Round(
        spec=RoundSpec(recipe=recipe, generation=1 + index, index=index),
        accuracy=rng.random(3),
        epochs=np.array([1, 2, 5]),
        scores={
            "test": rng.dirichlet(np.ones(4), (3, 7)).astype(np.float32),
            "late": np.zeros((3, 0, 4), np.float32),
        },
        curve=rng.random(6),
        weights=(b"one", b"", rng.bytes(100)),
        seconds=0.25,
    )
