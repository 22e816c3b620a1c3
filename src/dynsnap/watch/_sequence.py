"""Evidence that may be looked at every day: test martingales and confidence sequences.

A fixed test that is repeated daily rings for nothing sooner or later. What is here may be looked at
after every day, for ever: the chance that it *ever* rings for nothing stays below `alpha`.

The alarm. Each row either differs (1) or not (0). The claim to be refuted is that, whatever came
before, a row differs with a probability of at most `rate`. For p above `rate` the product of

    (p / rate)^x · ((1 - p) / (1 - rate))^(1 - x)

is then a supermartingale that starts at 1, and so is a mean of such products over several p, and
over several days on which each of them may begin. By Ville's inequality the mean ever reaches
1 / alpha with a probability of at most alpha. Beginning on many days is what finds a change that
comes late; the weights 1 / (s (s + 1)) of the days s = 1, 2, ... sum to 1 however long it goes on.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dynsnap._types import Floats
from dynsnap.errors import PlanError

_BETS = 24  # rates that evidence is collected for, spaced from just above the limit to 1
_ROWS = 1_000.0  # rows for which the interval of the mean is about as narrow as it can be


class Evidence:
    """Evidence, day by day, that rows differ more often than at a rate.

    Args:
        rate: The limit, above 0 and below 1.

    Attributes:
        value: The evidence so far: 1 for none.
        peak: The most that it has been.

    Example:
        >>> evidence = Evidence(0.05)
        >>> for day in range(10):
        ...     evidence.add(rows=200, differing=10)
        >>> evidence.value < 1
        True
        >>> for day in range(10):
        ...     evidence.add(rows=200, differing=24)
        >>> evidence.value > 1000
        True
    """

    def __init__(self, rate: float) -> None:
        if not 0 < rate < 1:
            raise PlanError(f"The rate must be above 0 and below 1, got {rate!r}.")
        self.value = self.peak = 1.0
        odds = math.log(rate / (1 - rate)) + np.linspace(0.05, 4.0, _BETS)
        # In logarithms, which the smallest limits do not drive to infinity.
        self._hit: Floats = -np.logaddexp(0, -odds) - math.log(rate)
        self._miss: Floats = -np.logaddexp(0, odds) - math.log1p(-rate)
        self._days = 0
        self._whole: Floats = np.zeros(_BETS)  # log of each product since the first day
        # Log of the sum, over all first days, of their weight divided by the product before them.
        self._begun: Floats = np.full(_BETS, -np.inf)

    def add(self, *, rows: int, differing: int) -> None:
        """Take one more day into account."""
        self._days += 1
        weight = -math.log(self._days * (self._days + 1))
        self._begun = np.logaddexp(self._begun, weight - self._whole)
        self._whole = self._whole + differing * self._hit + (rows - differing) * self._miss
        each = self._whole + self._begun
        top = float(each.max())
        rest = 1 / (self._days + 1)  # of days to come, on which nothing has been staked yet
        self.value = math.exp(min(700.0, top)) * float(np.exp(each - top).mean()) + rest
        self.peak = max(self.peak, self.value)


def mean_interval(rows: int, differing: int, *, alpha: float) -> tuple[float, float]:
    """An interval of the mean rate so far that holds on all days together, with 1 - alpha.

    It is the normal mixture of Robbins for rows within [0, 1], so it needs no equal rate on all
    days: it is about the mean of the rates of the rows so far.

    Example:
        >>> low, high = mean_interval(10_000, 400, alpha=0.05)
        >>> low < 0.04 < high, 0.02 < low
        (True, True)
    """
    if not rows:
        return 0.0, 1.0
    spread, start = rows / 4, _ROWS / 4 / 10
    depth = math.log((spread + start) / start) - 2 * math.log(alpha)
    width = math.sqrt((spread + start) * depth) / rows
    rate = differing / rows
    return max(0.0, rate - width), min(1.0, rate + width)


def shares(appeared: Sequence[int], alpha: float) -> list[float]:
    """The part of `alpha` of each slice value, by the day on which it first appeared.

    Values that appear on the same day share equally; the k-th such day has 1 / (k (k + 1)) of all,
    so that values which appear later never take from those before, and all together have at most
    alpha.

    Example:
        >>> shares([0, 0, 3], 0.12)
        [0.03, 0.03, 0.02]
    """
    count = Counter(appeared)
    place = {day: at for at, day in enumerate(sorted(count), 1)}
    return [alpha / (place[day] * (place[day] + 1)) / count[day] for day in appeared]
