"""Two formulas of the paper's corollary, as they hold under its assumption of uniform chances.

The corollary itself (a member at least as accurate as the mean helps, with some probability) is
not established, so nothing here is a guarantee: `leave_one_out` measures the effect instead.
"""

from dynsnap.errors import InputError


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
