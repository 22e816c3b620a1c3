"""What another round is worth, from the rounds there are: without truth, and without training it.

Two ensembles that are grown alike on the same data still disagree on some inputs. The error of an
average of r rounds falls as 1/√r, and so does the share of inputs near enough to a boundary for it
to matter; docs/size.md shows how well that holds.
"""

import math
from collections.abc import Sequence

import numpy as np

from dynsnap._types import Scores
from dynsnap.errors import InputError

INPUTS = 5000  # the most that are looked at, evenly spread: memory and time stay bounded
FEWEST = 2  # rounds, for one to be held against the other


def expected_gain(rounds: Sequence[Scores]) -> float:
    """How much more of the inputs two ensembles would label alike, had each one round more.

    The rounds are cut into two halves, in as many ways as there are rounds; the share of inputs
    on which the halves disagree is scaled from half the rounds to all of them, and to one more.

    Args:
        rounds: The summed scores of each round's members on the same inputs.

    Example:
        >>> always, never = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])
        >>> expected_gain([always, always])
        0.0
        >>> round(expected_gain([always, never]), 3)  # 1 / √2 - 1 / √3
        0.13
    """
    if len(rounds) < FEWEST:
        raise InputError(
            f"What another round gains shows from {FEWEST} rounds on, got {len(rounds)}."
        )
    count = len(rounds)
    half = count // 2
    apart = []
    for start in range(count):
        turned = [rounds[(start + place) % count] for place in range(2 * half)]
        one, other = sum(turned[:half]), sum(turned[half:])
        apart.append(np.mean(np.argmax(one, axis=1) != np.argmax(other, axis=1)))
    at_one = math.sqrt(half) * float(np.mean(apart))
    return at_one * (1 / math.sqrt(count) - 1 / math.sqrt(count + 1))
