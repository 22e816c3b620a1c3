"""Texts as bags of words: their words counted once, compiled. Import this late."""

from typing import NamedTuple

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.metrics._kernel_compile import compiled


class BagArrays(NamedTuple):
    """The distinct tokens of each text, with how often each occurs in it.

    `starts` says where each text begins in the other two, and where the last ends.
    """

    starts: AnyArray
    tokens: AnyArray
    counts: AnyArray


@compiled
def count(tokens: AnyArray, starts: AnyArray, seen: AnyArray, bags: BagArrays) -> int:
    """Fill the bags of texts, tokens in the order of their first use; how many entries they have.

    Args:
        tokens: The tokens of all texts.
        starts: Where each text begins.
        seen: -1 for every token that there is.
        bags: Room for as many entries as there are tokens.
    """
    n = 0
    for text in range(len(starts) - 1):
        first = n
        bags.starts[text] = n
        for i in range(starts[text], starts[text + 1]):
            token = tokens[i]
            place = seen[token]
            if place >= first:
                bags.counts[place] += np.float32(1)
            else:
                seen[token] = n
                bags.tokens[n] = token
                bags.counts[n] = np.float32(1)
                n += 1
    bags.starts[len(starts) - 1] = n
    return n


@compiled
def measure(bags: BagArrays, lengths: AnyArray) -> None:
    """Count how many known tokens each text has; token 0 is unknown."""
    for text in range(len(lengths)):
        lengths[text] = 0
        for i in range(bags.starts[text], bags.starts[text + 1]):
            if bags.tokens[i]:
                lengths[text] += bags.counts[i]
