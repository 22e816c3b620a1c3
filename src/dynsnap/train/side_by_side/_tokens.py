"""Batches of texts for many rounds at once, as tokens of each round's own vocabulary.

The pool lies on the device once, in numbers that all rounds share, text behind text. A round's
vocabulary is a table from those numbers to its own tokens. Every batch is as wide as the longest
text of the pool, for a graph knows one shape only.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.train._prepare import State
from dynsnap.train._text import Texts, Words, padded


class TokenFeed:
    """Texts, each word looked up in the vocabulary of the round that reads it."""

    def __init__(self, texts: Texts, prepare: Words) -> None:
        # Tensors alone: who compiles a step looks at everything that it leads to.
        self._tokens, self._starts = texts.tokens, texts.starts
        self._longest = texts.longest()
        self._numbers = 1 + len(texts.words) + prepare.buckets
        self._words = prepare.size + prepare.buckets
        # Many rounds times many words: no wider than the tokens need.
        kinds = (torch.int16, torch.int32, torch.int64)
        self._kind = next(kind for kind in kinds if self._words <= torch.iinfo(kind).max)

    def room(self, rounds: int, /) -> Tensor:
        shape = (rounds, self._numbers)
        return torch.zeros(shape, dtype=self._kind, device=self._tokens.device)

    def fitted(self, bound: State, /) -> Tensor:
        return bound["lookup"].to(self._kind)

    def batch(self, fitted: Tensor, rows: Tensor, draws: Tensor | None = None, /) -> Tensor:
        numbers = padded(self._tokens, self._starts, rows, self._longest)
        tables = torch.arange(len(rows), device=rows.device)[:, None, None] * fitted.shape[1]
        return fitted.view(-1)[tables + numbers].long().flatten(0, 1)

    def example(self) -> Tensor:
        real, padding = self._example_widths()
        tokens = 1 + torch.arange(2 * real).view(2, real) % (self._words - 1)
        return functional.pad(tokens, (0, padding))

    def suits(self, module: nn.Module, /) -> bool:
        """Alone, a batch is as wide as its own longest text: more padding must not matter."""
        module, tokens = module.cpu().eval(), self.example()
        real, _ = self._example_widths()
        try:
            with torch.no_grad():
                wide, narrow = module(tokens), module(tokens[:, :real])
        except Exception:  # whatever a caller's forward may want of the width
            return False
        return torch.allclose(wide, narrow, rtol=1e-4, atol=1e-6)

    def _example_widths(self) -> tuple[int, int]:
        """Tokens and padding of an example, together no wider than the longest text."""
        width = max(1, min(8, self._longest))
        return (width + 1) // 2, width // 2
