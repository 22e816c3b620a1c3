"""What every store of rounds must keep to."""

import dataclasses
from collections.abc import Callable

import numpy as np

from dynsnap.ensemble import Checkpoints, Recipe, Round, RoundSpec, RoundStore, Schedule
from dynsnap.testing._rounds import assert_same_round


def check_store(reopen: Callable[[], RoundStore]) -> None:
    """Fail unless a store keeps its contract.

    A round comes back as it was put, also to whoever opens the store later; what was never put is
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
