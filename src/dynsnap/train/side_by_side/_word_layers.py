"""Layers for texts that compute several rounds at once, as those of `_layers` do for images.

Tokens are (rounds · texts, longest), one round behind the other. The tables of all rounds are one,
in which a round's own begins after those of the rounds before it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.train.models import FastText
from dynsnap.train.side_by_side._layers import GroupedDropout, GroupedLinear, repeat
from dynsnap.train.side_by_side._vectors import places, sum_vectors


class GroupedEmbedding(nn.Module):
    """`rounds` tables of vectors: (rounds · texts, ...) to (rounds · texts, ..., width)."""

    def __init__(self, plain: nn.Embedding, rounds: int) -> None:
        super().__init__()
        self.rounds, self.padding = rounds, plain.padding_idx
        self.weight = nn.Parameter(repeat(plain.weight, rounds))

    @staticmethod
    def suits(plain: nn.Embedding) -> bool:
        """Whether this layer can stand for a plain one: nothing but looks its vectors up."""
        return plain.max_norm is None and not plain.scale_grad_by_freq

    def forward(self, tokens: Tensor) -> Tensor:
        found = functional.embedding(places(tokens, len(self.weight), self.rounds), self.weight)
        if self.padding is None:
            return found
        # The vector of the padding is never learned.
        return torch.where(tokens.eq(self.padding).unsqueeze(-1), found.detach(), found)


class GroupedMean(nn.Module):
    """The mean vector of each text's tokens; token 0 is padding and counts for nothing."""

    def __init__(self, plain: nn.Embedding, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.weight = nn.Parameter(repeat(plain.weight, rounds))

    def forward(self, tokens: Tensor) -> Tensor:
        lengths = tokens.ne(0).sum(dim=1, keepdim=True)
        return sum_vectors(tokens, self.weight, self.rounds) / lengths.clamp(min=1)


class GroupedFastText(nn.Module):
    """`rounds` fastTexts: what the plain one computes, with shapes that do not follow the texts."""

    def __init__(self, plain: FastText, rounds: int) -> None:
        super().__init__()
        self.vectors = GroupedMean(plain.vectors, rounds)
        self.dropout = GroupedDropout(rounds)
        self.output = GroupedLinear(plain.output, rounds)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.output(self.dropout(self.vectors(tokens)))
        return logits
