"""fastText: the mean of a text's word vectors, and a linear output."""

from torch import Tensor, nn
from torch.nn import functional


class FastText(nn.Module):
    """Averages the vectors of a text's tokens; token 0 is padding and counts for nothing."""

    def __init__(self, classes: int, words: int, width: int, dropout: float) -> None:
        super().__init__()
        self.vectors = nn.Embedding(words, width)
        nn.init.uniform_(self.vectors.weight, -0.05, 0.05)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        real = tokens.ne(0)
        lengths = real.sum(dim=1)
        # Without the padding the bag is nearly twice as fast as with `padding_idx`.
        means = functional.embedding_bag(
            tokens[real], self.vectors.weight, lengths.cumsum(0) - lengths, mode="mean"
        )
        logits: Tensor = self.output(self.dropout(means))
        return logits


def fasttext(
    classes: int, *, words: int = 10_000, width: int = 50, dropout: float = 0.0
) -> nn.Module:
    """A linear classifier on the mean of a text's word vectors.

    Args:
        classes: Width of the output.
        words: Rows of the table of vectors: padding, words, and buckets of hashed n-grams where
            there are any. `dynsnap.train.Words` makes tokens for it.
        width: Length of a vector.
        dropout: Share of units dropped just before the output layer.

    Example:
        >>> sum(p.numel() for p in fasttext(10).parameters())
        500510
    """
    return FastText(classes, words, width, dropout)
