"""Both sides of a claim, side by side: measured, not assumed."""

from dataclasses import dataclass

import numpy as np

from dynsnap._types import Floats

# Sums of floats come in some order; beyond this the sides differ by more than rounding.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bound:
    """The two sides of "left is at most right", for every input and on average.

    Attributes:
        name: The theorem, in short.
        claim: What it says.
        lefts: The left side for each input.
        rights: The right side for each input.
    """

    name: str
    claim: str
    lefts: Floats
    rights: Floats

    @property
    def left(self) -> float:
        """The mean of the left side over the inputs."""
        return float(self.lefts.mean())

    @property
    def right(self) -> float:
        """The mean of the right side over the inputs."""
        return float(self.rights.mean())

    @property
    def slack(self) -> float:
        """How much room the right side leaves, on average."""
        return float(self.slacks.mean())

    @property
    def slacks(self) -> Floats:
        """How much room the right side leaves, for each input; what is mere rounding is 0."""
        room = self.rights - self.lefts
        rounding = _RELATIVE * np.maximum(np.abs(self.lefts), np.abs(self.rights)) + _ABSOLUTE
        return np.where((room < 0) & (room >= -rounding), 0.0, room)

    @property
    def holds(self) -> bool:
        """Whether the claim is true of every input, but for rounding."""
        return bool((self.slacks >= 0).all())

    @property
    def worst(self) -> int:
        """The position of the input with the least room; among equals the largest left side."""
        return int(np.lexsort((-self.lefts, self.slacks))[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A value and the two numbers that it must lie between.

    Attributes:
        name: The theorem, in short.
        claim: What it says.
    """

    name: str
    claim: str
    low: float
    value: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the value lies in its range, but for rounding."""
        return self.low - _ABSOLUTE <= self.value <= self.high + _ABSOLUTE
