"""Both sides of a claim, side by side, and the claims that accuracies alone decide."""

from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.errors import InputError
from dynsnap.metrics import accuracy, correct_consistency

# Sums of floats come in some order; beyond this the sides differ by more than rounding.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bound:
    """The two sides of "left is at most right", for every input and on average.

    Attributes:
        name: The theorem, in short.
        claim: What it states.
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
        claim: What it states.
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


def epsilon(*, a: float, a_plus: float) -> float:
    """The paper's ε: the chance that a larger ensemble is at least as correct as the smaller one.

    It supposes that the correctness of the smaller lies anywhere between `a` and 1 with equal
    chance, that of the larger between `a_plus` and 1, and that the two are independent.

    Example:
        >>> epsilon(a=0.5, a_plus=0.5), epsilon(a=0.5, a_plus=0.75)
        (0.5, 0.75)
    """
    return upsilon(b=a, b_plus=a_plus, c=1.0, c_plus=1.0)


def upsilon(*, b: float, b_plus: float, c: float, c_plus: float) -> float:
    """The paper's υ, corrected: the chance that correct-consistency does not fall.

    It supposes that the smaller ensemble's lies anywhere between `b` and `c` with equal chance,
    the larger one's between `b_plus` and `c_plus`, neither end below the other's, and that the two
    are independent. The printed formula adds up cases that exclude each other and exceeds 1 for
    most inputs; this is 1 if c ≤ b⁺, else 1 − (c − b⁺)² / (2 (c − b)(c⁺ − b⁺)).

    Example:
        >>> upsilon(b=0.4, b_plus=0.6, c=0.8, c_plus=1.0)
        0.875
    """
    if not (0 <= b <= b_plus <= c_plus <= 1 and b <= c <= c_plus):
        raise InputError(
            "The smaller ensemble must lie between b and c and the larger between b_plus and "
            "c_plus, with 0 ≤ b ≤ b_plus, c ≤ c_plus ≤ 1, "
            f"got b={b}, c={c}, b_plus={b_plus}, c_plus={c_plus}."
        )
    if c <= b_plus:
        return 1.0
    return 1 - (c - b_plus) ** 2 / (2 * (c - b) * (c_plus - b_plus))


def correct_consistency_bounds(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> Range:
    """Correct-consistency and the range that the two accuracies leave it (Fréchet's bounds).

    It lies between max(ACC_old + ACC_new − 1, 0) and min(ACC_old, ACC_new); both ends can occur.
    `weights` is the importance of each input.

    Example:
        >>> import numpy as np
        >>> found = correct_consistency_bounds(
        ...     np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]), truth=np.zeros(4, int))
        >>> found.low, found.value, found.high
        (0.5, 0.5, 0.75)
    """
    before = accuracy(old, truth=truth, weights=weights)
    now = accuracy(new, truth=truth, weights=weights)
    return Range(
        name="T5",
        claim="max(ACC_old + ACC_new − 1, 0) ≤ ACC-CON ≤ min(ACC_old, ACC_new)",
        low=max(before + now - 1, 0.0),
        value=correct_consistency(old, new, truth=truth, weights=weights),
        high=min(before, now),
    )
