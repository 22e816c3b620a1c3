"""Triton kernels for sums of word vectors of many rounds.

Batches are as wide as the longest text, and most texts are much shorter: a block of padding is
looked at and passed over.
"""

import triton
import triton.language as tl
from torch import Tensor

TOKENS = 64  # of a text at once


def sum_vectors(tokens: Tensor, vectors: Tensor, rounds: int) -> Tensor:
    """The sum of the vectors of each text's tokens, without those of token 0."""
    texts, longest = tokens.shape
    words, width = vectors.shape
    result = vectors.new_empty(texts, width)
    _sum_kernel[(texts,)](
        tokens, vectors, result, texts // rounds, words // rounds, longest,
        WIDTH=width, LANES=triton.next_power_of_2(width), TOKENS=TOKENS,
    )  # fmt: skip
    return result


def spread(tokens: Tensor, gradient: Tensor, words: int, rounds: int) -> Tensor:
    """The gradient of the tables: what a text's sum got goes to each of its tokens.

    Texts that share a word add to it in any order, so the last bits vary.
    """
    texts, longest = tokens.shape
    width = gradient.shape[1]
    result = gradient.new_zeros(words, width)
    _spread_kernel[(texts, triton.cdiv(longest, TOKENS))](
        tokens, gradient, result, texts // rounds, words // rounds, longest,
        WIDTH=width, LANES=triton.next_power_of_2(width), TOKENS=TOKENS,
    )  # fmt: skip
    return result


@triton.jit
def _sum_kernel(
    tokens, vectors, result, texts, words, longest,
    WIDTH: tl.constexpr, LANES: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    text = tl.program_id(0).to(tl.int64)
    table = (text // texts) * words
    lane = tl.arange(0, LANES)
    total = tl.zeros([LANES], tl.float32)
    for start in range(0, longest, TOKENS):
        column = start + tl.arange(0, TOKENS)
        token = tl.load(tokens + text * longest + column, mask=column < longest, other=0)
        if tl.max(token, axis=0) > 0:
            place = (table + token)[:, None] * WIDTH + lane[None, :]
            wanted = (token > 0)[:, None] & (lane < WIDTH)[None, :]
            total += tl.sum(tl.load(vectors + place, mask=wanted, other=0.0), axis=0)
    tl.store(result + text * WIDTH + lane, total, mask=lane < WIDTH)


@triton.jit
def _spread_kernel(
    tokens, gradient, result, texts, words, longest,
    WIDTH: tl.constexpr, LANES: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    text = tl.program_id(0).to(tl.int64)
    table = (text // texts) * words
    lane = tl.arange(0, LANES)
    column = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    token = tl.load(tokens + text * longest + column, mask=column < longest, other=0)
    if tl.max(token, axis=0) > 0:
        slope = tl.load(gradient + text * WIDTH + lane, mask=lane < WIDTH, other=0.0)
        place = (table + token)[:, None] * WIDTH + lane[None, :]
        wanted = (token > 0)[:, None] & (lane < WIDTH)[None, :]
        slopes = tl.broadcast_to(slope[None, :], [TOKENS, LANES])
        tl.atomic_add(result + place, slopes, mask=wanted, sem="relaxed")
