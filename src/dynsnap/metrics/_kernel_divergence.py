"""A class's share of the Jensen-Shannon divergence, without a branch or a call.

The logarithm of the standard library is one number at a time. This one becomes vector code.
"""

import math

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.metrics._kernel_compile import TILE, full_width, inlined, part

_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½
_LN2 = math.log(2)
_QUARTER_IN_BITS = 0.25 / _LN2

# 2 atanh(z)/z as a polynomial in z², for |z| ≤ (√2 − 1)/(√2 + 1), off by less than 1e-15.
ATANH = (
    2.0000000000000004,
    0.6666666666655292,
    0.40000000061741614,
    0.2857141602110767,
    0.22223434547517906,
    0.18121934431215214,
    0.16837659970680488,
)
# (1 + w) ln(1 + w)/w as a polynomial in 2w − 1, for w from 0 to 1, off by less than 6e-14.
GROWTH = (
    1.2163953243244932,
    0.18906978378420203,
    -0.02240311711716187,
    0.003884598578716686,
    -0.0007981788395411087,
    0.00018089510705058995,
    -4.372074643372372e-05,
    1.1059156685732054e-05,
    -2.8947290350362623e-06,
    7.805422370549609e-07,
    -2.1434826740208993e-07,
    5.663222783111117e-08,
    -1.601301240865518e-08,
    6.758786558701272e-09,
    -1.971084765443876e-09,
)


@inlined
def _atanh(square: float) -> float:
    value = ATANH[6] * square + ATANH[5]
    value = value * square + ATANH[4]
    value = value * square + ATANH[3]
    value = value * square + ATANH[2]
    value = value * square + ATANH[1]
    return value * square + ATANH[0]


@inlined
def _growth(t: float) -> float:
    value = GROWTH[14] * t + GROWTH[13]
    value = value * t + GROWTH[12]
    value = value * t + GROWTH[11]
    value = value * t + GROWTH[10]
    value = value * t + GROWTH[9]
    value = value * t + GROWTH[8]
    value = value * t + GROWTH[7]
    value = value * t + GROWTH[6]
    value = value * t + GROWTH[5]
    value = value * t + GROWTH[4]
    value = value * t + GROWTH[3]
    value = value * t + GROWTH[2]
    value = value * t + GROWTH[1]
    return value * t + GROWTH[0]


@inlined
def _share(old: float, new: float) -> float:
    """s ((1 + w) ln(1 + w) + (1 − w) ln(1 − w)) with s = old + new and w = |old − new| / s.

    A quarter of it is the class's share in nats. The logarithm of x = 1 − w is taken apart into
    x = 2^e m with m between √½ and √2. At x = 0 it is finite nonsense, times zero.
    """
    total = old + new
    w = abs(old - new) / max(total, 1e-300)
    x = 1.0 - w
    bits = np.float64(x).view(np.int64)
    exponent = (bits - np.int64(_SQRT_HALF)) >> np.int64(52)
    m = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
    z = (m - 1.0) / (m + 1.0)
    logarithm = np.float64(exponent) * _LN2 + z * _atanh(z * z)
    share: float = total * (w * _growth(2.0 * w - 1.0) + x * logarithm)
    return share


@part
def divergence(old: AnyArray, new: AnyArray, bits: AnyArray) -> None:
    """The Jensen-Shannon divergence in bits of each row of two tiles (classes, rows)."""
    full_width()
    bits[:] = 0.0
    for c in range(len(old)):
        for r in range(TILE):
            bits[r] += _share(np.float64(old[c, r]), np.float64(new[c, r]))
    for r in range(TILE):
        bits[r] = max(0.0, bits[r] * _QUARTER_IN_BITS)
