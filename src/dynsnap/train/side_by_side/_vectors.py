"""Sums of word vectors for many rounds at once: each round has a table of its own.

On a GPU the kernels of `_vectors_kernels` do the work, which look at a text's own tokens only;
elsewhere, or without Triton, torch does, which computes the same for all padding too.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dynsnap.train._devices import has_kernels


def sum_vectors(tokens: Tensor, vectors: Tensor, rounds: int) -> Tensor:
    """The sum of the vectors of each text's tokens, without those of token 0.

    Args:
        tokens: (rounds · texts, longest).
        vectors: The tables of all rounds, one behind the other (rounds · words, width).
        rounds: How many.

    Example:
        >>> tables = torch.tensor([[9.0], [1.0], [2.0], [9.0], [10.0], [20.0]])
        >>> sum_vectors(torch.tensor([[1, 2, 2], [1, 2, 0]]), tables, rounds=2).flatten()
        tensor([ 5., 30.])
    """
    result: Tensor = _sum(tokens, vectors, rounds)
    return result


@torch.library.custom_op("dynsnap::sum_vectors", mutates_args=())
def _sum(tokens: Tensor, vectors: Tensor, rounds: int) -> Tensor:
    if has_kernels(vectors):
        from dynsnap.train.side_by_side import _vectors_kernels as fast

        return fast.sum_vectors(tokens, vectors, rounds)
    found = functional.embedding(places(tokens, len(vectors), rounds), vectors)
    return (found * tokens.ne(0).unsqueeze(2)).sum(dim=1)


@_sum.register_fake
def _(tokens: Tensor, vectors: Tensor, rounds: int) -> Tensor:
    return vectors.new_empty(len(tokens), vectors.shape[1])


@torch.library.custom_op("dynsnap::sum_vectors_back", mutates_args=())
def _spread(tokens: Tensor, gradient: Tensor, words: int, rounds: int) -> Tensor:
    """The gradient of the tables, which have so many words together."""
    if has_kernels(gradient):
        from dynsnap.train.side_by_side import _vectors_kernels as fast

        return fast.spread(tokens, gradient, words, rounds)
    slopes = gradient.unsqueeze(1) * tokens.ne(0).unsqueeze(2)
    tables = gradient.new_zeros(words, gradient.shape[1])
    return tables.index_add_(0, places(tokens, words, rounds).flatten(), slopes.flatten(0, 1))


@_spread.register_fake
def _(tokens: Tensor, gradient: Tensor, words: int, rounds: int) -> Tensor:
    return gradient.new_empty(words, gradient.shape[1])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    tokens, vectors, ctx.rounds = inputs
    ctx.words = len(vectors)
    ctx.save_for_backward(tokens)


def _back(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    (tokens,) = ctx.saved_tensors
    return None, _spread(tokens, gradient.contiguous(), ctx.words, ctx.rounds), None


_sum.register_autograd(_back, setup_context=_remember)


def places(tokens: Tensor, words: int, rounds: int) -> Tensor:
    """The rows of the tables of all rounds, one behind the other, that tokens stand for."""
    first = torch.arange(rounds, device=tokens.device) * (words // rounds)
    return (tokens.view(rounds, -1) + first[:, None]).view(tokens.shape)
