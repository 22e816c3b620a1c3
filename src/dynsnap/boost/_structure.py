"""What checks of stored learners share: how they refuse, and that nodes form trees."""

import numpy as np

from dynsnap._types import Flags, Positions
from dynsnap.errors import FileError

# XGBoost and LightGBM walk trees by recursion, on a thread's stack of a few megabytes.
DEEPEST = 4096


def invalid(reason: str) -> FileError:
    """The error for a learner whose content contradicts itself: no setting loads it."""
    return FileError(f"A stored learner is not valid: {reason}. It was not loaded.")


def unchecked(what: str) -> FileError:
    """The error for a learner that may be sound, but that no check covers."""
    return FileError(
        f"A stored learner holds {what}, which dynsnap cannot check, so a forged file could crash "
        "or block this process. It was not loaded. If the file is your own, load it with "
        "`trust=True` (command line: --trust)."
    )


def shown(value: object) -> str:
    """A value from a file as a message shows it: not longer than a line."""
    text = repr(value) if not isinstance(value, list) else ", ".join(map(str, value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def reachable(left: Positions, right: Positions, roots: Positions) -> Flags:
    """Which nodes the roots lead to, where every node has one way to it: trees, without cycles.

    Args:
        left: For each node its left child, a position in this array; negative for a leaf.
        right: Likewise; positions must be in range wherever `left` is not negative.
        roots: Where each tree begins.

    Example:
        >>> reachable(np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0])).all()
        np.True_
    """
    seen = np.zeros(len(left), dtype=bool)
    level, total = roots, 0
    for _ in range(DEEPEST):
        seen[level] = True
        total += len(level)
        inner = level[left[level] >= 0]
        if total > len(left) or not len(inner):
            break
        level = np.concatenate([left[inner], right[inner]])
    else:
        raise invalid(f"a tree is deeper than {DEEPEST} levels")
    if np.count_nonzero(seen) != total:
        raise invalid("a tree's node is the child of two nodes, or of itself")
    return seen
