"""Two ensembles that are grown alike on the same data: on how much do they still disagree?"""

from collections.abc import Sequence

import numpy as np

from dynsnap._types import Floats
from dynsnap.ensemble import Members
from dynsnap.study.size._draws import Draw, parts_of

_AT_ONCE = 1 << 17  # numbers that are added up together, so that they stay in the cache


def twin_disagreement(
    found: Members, rounds: Sequence[int], *, draw: Draw, draws: int, rng: np.random.Generator
) -> Floats:
    """The share of inputs that two averages of so many rounds each label differently.

    Args:
        found: The members of one generation.
        rounds: Numbers of rounds, none more than half of those that there are.
        draw: What is drawn: "rounds", or "members" as if each were a round.
        draws: How many orders are drawn, at the least.
        rng: Draws them.
    """
    parts = parts_of(found, draw)
    orders = []
    for _ in range(-(-draws // len(parts))):
        shuffled = rng.permutation(len(parts))
        orders += [np.roll(shuffled, -turn) for turn in range(len(parts))]
    scores = found.scores["test"]
    inputs, classes = scores.shape[1:]
    counts = np.asarray(rounds, np.intp)
    apart = np.zeros(len(counts))
    step = max(1, _AT_ONCE // (len(parts) * classes))
    for start in range(0, inputs, step):
        rows = slice(start, start + step)
        totals = np.stack([scores[part, rows].sum(axis=0, dtype=float) for part in parts])
        sums = np.zeros((len(parts) + 1, *totals.shape[1:]))
        for order in orders:
            for place, part in enumerate(order.tolist()):
                np.add(sums[place], totals[part], out=sums[place + 1])
            one, both = sums[counts], sums[2 * counts]
            apart += (one.argmax(axis=2) != (both - one).argmax(axis=2)).sum(axis=1)
    return np.asarray(apart / (inputs * len(orders)))


def falls_as(rounds: Floats, disagreement: Floats) -> float | None:
    """The exponent b of a disagreement that falls as 1 / rounds^b; None where it cannot be told.

    Example:
        >>> rounds = np.array([1.0, 2, 4])
        >>> round(falls_as(rounds, 0.1 / np.sqrt(rounds)), 6)
        0.5
    """
    if len(rounds) < 2 or not (disagreement > 0).all():
        return None
    return float(-np.polyfit(np.log(rounds), np.log(disagreement), 1)[0])
