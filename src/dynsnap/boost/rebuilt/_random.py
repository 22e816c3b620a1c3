"""Random generators from what was stored of them: numpy takes some states without looking."""

from typing import Any

import numpy as np

from dynsnap.boost._structure import invalid, unchecked

_WORDS = 624  # of the state of the Mersenne twister


def random_state(state: Any) -> np.random.RandomState:
    """A generator of numpy's older kind."""
    try:
        name, inner = state["bit_generator"], state["state"]
        key, place = inner["key"], inner["pos"]
        sound = (
            isinstance(key, np.ndarray)
            and (key.shape, key.dtype) == ((_WORDS,), np.uint32)
            and type(place) is int
            and 0 <= place <= _WORDS
            and state["has_gauss"] in (0, 1)
            and isinstance(state["gauss"], float)
            and set(state) == {"bit_generator", "state", "has_gauss", "gauss"}
        )
    except (TypeError, KeyError) as error:
        raise invalid("a random state is not complete") from error
    if name != "MT19937" or not sound:
        raise invalid("a random state is not what it should be")
    found = np.random.RandomState()
    found.set_state(state)
    return found


def generator(state: Any, seeds: Any) -> np.random.Generator:
    """A generator of numpy's newer kind."""
    try:
        name, inner = state["bit_generator"], state["state"]
        sound = (
            all(_bits(inner[part], 128) for part in ("state", "inc"))
            and state["has_uint32"] in (0, 1)
            and _bits(state["uinteger"], 32)
            and set(state) == {"bit_generator", "state", "has_uint32", "uinteger"}
            and set(seeds) == {"entropy", "spawn_key", "pool_size", "n_children_spawned"}
            and seeds["pool_size"] == 4
            and _bits(seeds["n_children_spawned"], 32)
            and isinstance(seeds["spawn_key"], tuple)
            and all(_bits(key, 32) for key in seeds["spawn_key"])
        )
    except (TypeError, KeyError) as error:
        raise invalid("a random generator is not complete") from error
    if name != "PCG64":
        raise unchecked("a random generator that is not PCG64")
    entropy = seeds["entropy"]
    words = entropy if isinstance(entropy, list | tuple) else [entropy]
    if not sound or not all(_bits(word, 256) for word in words):
        raise invalid("a random generator is not what it should be")
    found = np.random.PCG64(np.random.SeedSequence(**seeds))
    found.state = state
    return np.random.Generator(found)


def _bits(value: Any, most: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= 0 and int(value).bit_length() <= most
