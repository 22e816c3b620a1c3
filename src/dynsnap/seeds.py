"""Random numbers by name: the same name gives the same numbers, in any order, on any machine."""

import hashlib

import numpy as np


def sequence(seed: int, *name: int | str) -> np.random.SeedSequence:
    """The seed sequence of one named thing within a study.

    Example:
        >>> a = sequence(7, "round", 1).generate_state(1)
        >>> b = sequence(7, "round", 2).generate_state(1)
        >>> bool(a == b)
        False
    """
    digest = hashlib.sha256("\x1f".join(f"{type(part).__name__}:{part}" for part in name).encode())
    words = np.frombuffer(digest.digest(), dtype="<u4")
    return np.random.SeedSequence(seed, spawn_key=tuple(int(word) for word in words))


def generator(seed: int, *name: int | str) -> np.random.Generator:
    """A numpy generator for one named thing within a study."""
    return np.random.default_rng(sequence(seed, *name))


def number(seed: int, *name: int | str) -> int:
    """A seed of 63 bits for libraries that want a plain integer."""
    return int(sequence(seed, *name).generate_state(1, np.uint64)[0] >> np.uint64(1))
