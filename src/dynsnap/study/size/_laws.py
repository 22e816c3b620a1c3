"""How a metric approaches its limit as an ensemble grows.

An average of r rounds is off by an error that falls as 1/√r. What that does to labels depends on
the inputs: flips that cancel out fall as 1/r, those that do not as 1/√r. So the exponent of a power
law lies in between. docs/size.md compares three laws with data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import Floats
from dynsnap.errors import InputError

LawName: TypeAlias = Literal["power", "shifted", "inverse"]

_Shape: TypeAlias = Callable[..., Floats]  # of rounds, and of what bends it
_SHAPES: Mapping[str, tuple[_Shape, Floats]] = {
    "power": (lambda rounds, bend: rounds**-bend, np.linspace(0.5, 1, 26)),
    "shifted": (lambda rounds, bend: 1 / (rounds + bend), np.linspace(0, 5, 51)),
    "inverse": (lambda rounds, bend: 1 / rounds, np.ones(1)),
}
LAWS: tuple[LawName, ...] = ("power", "shifted", "inverse")

_FLAT = 1e-9
_MOST = 10**6  # rounds: beyond them, no number is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A metric as a function of the number of rounds r.

    Attributes:
        name: "power" for limit - scale / r^bend, "shifted" for limit - scale / (r + bend),
            "inverse" for limit - scale / r.

    Example:
        >>> Law(name="power", limit=0.9, scale=0.2, bend=0.5).at(4)
        0.8
    """

    name: LawName
    limit: float
    scale: float
    bend: float

    def at(self, rounds: float) -> float:
        """The expected value for so many rounds."""
        shape = _SHAPES[self.name][0]
        return float(self.limit - self.scale * shape(np.float64(rounds), self.bend))

    def gain(self, rounds: float) -> float:
        """The expected gain of one more round."""
        return self.at(rounds + 1) - self.at(rounds)

    @property
    def at_bound(self) -> bool:
        """Whether its bend is the smallest or the largest that is tried. A flat law has none.

        Example:
            >>> Law(name="power", limit=0.9, scale=0.2, bend=0.5).at_bound
            True
        """
        bends = _SHAPES[self.name][1]
        flat = abs(self.scale) < _FLAT
        return len(bends) > 1 and not flat and not bends[0] < self.bend < bends[-1]

    def enough(self, tolerance: float) -> int | None:
        """The smallest number of rounds within a tolerance of the limit; None beyond a million."""
        return _first(lambda rounds: abs(self.limit - self.at(rounds)) <= tolerance)

    def settled(self, tolerance: float) -> int | None:
        """The smallest number of rounds to which one more adds less than a tolerance."""
        return _first(lambda rounds: abs(self.gain(rounds)) < tolerance)


def fit(name: LawName, rounds: Floats, values: Floats) -> Law:
    """The law of this name that is nearest to some values.

    Example:
        >>> rounds = np.arange(1.0, 7)
        >>> found = fit("power", rounds, 0.9 - 0.1 / rounds**0.6)
        >>> round(found.limit, 6), round(found.bend, 6)
        (0.9, 0.6)
    """
    limit, scale, bend = fits(name, rounds, values[:, None])
    return Law(name=name, limit=float(limit[0]), scale=float(scale[0]), bend=float(bend[0]))


def fits(name: LawName, rounds: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Limit, scale and bend for each column of values (rounds, columns).

    By least squares with the number of rounds as weights: a law is about large ensembles, and small
    ones are the furthest from it. The limit is a share of inputs, and stays between 0 and 1. Two
    points do not determine the bend, which is then in the middle of its range.
    """
    if len(rounds) < 2:
        raise InputError(f"A law is fitted to two numbers of rounds or more, got {len(rounds)}.")
    shape, bends = _SHAPES[name]
    if len(rounds) < 3:
        bends = bends[[len(bends) // 2]]
    columns = values.shape[1]
    best = np.full(columns, np.inf)
    limit, scale, bend = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    weights = np.sqrt(rounds)[:, None]
    for tried in bends.tolist():
        falling = shape(rounds, tried)[:, None]
        basis = np.concatenate([np.ones_like(falling), -falling], axis=1) * weights
        free = (np.linalg.pinv(basis) @ (values * weights))[0]
        top = np.clip(free, 0, 1)
        # With the limit fixed, one number is left to fit.
        slope = (weights**2 * falling * (top - values)).sum(axis=0)
        slope /= (weights**2 * falling**2).sum()
        error = np.square((top - slope * falling - values) * weights).sum(axis=0)
        nearer = error < best
        best = np.where(nearer, error, best)
        limit, scale = np.where(nearer, top, limit), np.where(nearer, slope, scale)
        bend = np.where(nearer, tried, bend)
    return limit, scale, bend


def predicted(name: LawName, fitted: tuple[Floats, Floats, Floats], rounds: float) -> Floats:
    """The predictions of many laws, as `fits` gives them, for a number of rounds."""
    limit, scale, bend = fitted
    return np.asarray(limit - scale * _SHAPES[name][0](np.float64(rounds), bend))


def _first(holds: Callable[[float], bool]) -> int | None:
    """The smallest number for which something holds that holds from some number on."""
    high = 1
    while not holds(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2  # it does not hold there, or that is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
