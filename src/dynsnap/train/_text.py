"""From text to tokens, fast: every text is cut into words once, however many rounds read it."""

import itertools
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import InputError, PlanError
from dynsnap.train._prepare import Encoded, State

_WORD = re.compile(r"\w+")
_NO_WORDS = b"\n"  # a vocabulary without any: no tensor is made of no bytes
_LARGE = 2_000_000  # characters from which on compiled code is worth loading
# ASCII text is cut by a table: letters, digits and _ stay, the rest becomes a space.
_TABLE = "".join(chr(c) if chr(c).isalnum() or chr(c) == "_" else " " for c in range(128))


def tokenise(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation.

    Example:
        >>> tokenise("Don't panic: it's 42!")
        ['don', 't', 'panic', 'it', 's', '42']
    """
    lower = text.lower()
    # Splitting is about three times as fast as matching.
    return lower.translate(_TABLE).split() if lower.isascii() else _WORD.findall(lower)


def _number(inputs: AnyArray, length: int) -> tuple[list[str], AnyArray, AnyArray]:
    """Distinct words in the order of their first use; the numbers of all texts; their lengths."""
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers) + 1)
    find = numbers.__getitem__
    rows = [np.fromiter(map(find, tokenise(text)[:length]), np.int32) for text in inputs]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return list(numbers), np.concatenate([np.zeros(0, np.int32), *rows]), lengths


def _number_fast(inputs: AnyArray, length: int) -> tuple[list[str], AnyArray, AnyArray]:
    """The same, compiled: about ten times as fast, once it is."""
    from dynsnap.train._numbering import numbered

    return numbered([_bytes(text) for text in inputs], length)


def _bytes(text: str) -> bytes:
    if text.isascii():
        return text.encode()
    return " ".join(tokenise(text)).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts as the numbers of their words, one after another.

    Attributes:
        words: The distinct words, in the order of their first use; word i has the number i + 1.
        tokens: The numbers of all texts; beyond the words come the buckets of n-grams.
        starts: Where each text starts in `tokens`, and where the last ends.
    """

    words: tuple[str, ...]
    tokens: Tensor
    starts: Tensor

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: Tensor, /) -> Tensor:
        """Tokens (rows, longest), with 0 where a text is over."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        return padded(self.tokens, self.starts, rows, int(lengths.max()) if len(rows) else 0)

    def longest(self) -> int:
        """Tokens of the longest text."""
        return int(self.starts.diff().max()) if len(self) else 0

    def part(self, start: int, end: int, /) -> Tensor:
        return self.take(torch.arange(start, min(end, len(self)), device=self.starts.device))

    def to(self, device: torch.device, /) -> "Texts":
        return Texts(self.words, self.tokens.to(device), self.starts.to(device))


def padded(tokens: Tensor, starts: Tensor, rows: Tensor, length: int) -> Tensor:
    """Tokens (*rows, length or at least 1) of texts one after another, 0 where a text is over.

    Example:
        >>> padded(torch.tensor([5, 6, 7]), torch.tensor([0, 1, 3]), torch.tensor([1, 0]), 3)
        tensor([[6, 7, 0],
                [5, 0, 0]])
    """
    first, end = starts[rows].unsqueeze(-1), starts[rows + 1].unsqueeze(-1)
    where = first + torch.arange(max(1, length), device=rows.device)
    if not len(tokens):
        return torch.zeros_like(where)
    # An index beyond the text is masked, but has to exist.
    return tokens[where.clamp(max=len(tokens) - 1)].long() * (where < end)


@dataclass(frozen=True, kw_only=True)
class Words:
    """Texts as tokens of a vocabulary: the most frequent words of the round's training texts.

    Attributes:
        size: Tokens for words, the first of which is padding and unknown words.
        length: Words of a text that count, from its beginning.
        ngrams: Longest run of words that is a token of its own, by its hash.
        buckets: Tokens for the hashes; needed for `ngrams` above 1.
    """

    size: int = 10_000
    length: int = 1014
    ngrams: int = 1
    buckets: int = 0

    elementwise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.size < 2:
            raise PlanError(f"A vocabulary needs a `size` of at least 2, got {self.size}.")
        if self.length < 1 or self.ngrams < 1:
            raise PlanError(
                f"`length` and `ngrams` must be at least 1, got {self.length} and {self.ngrams}."
            )
        if (self.ngrams > 1) != (self.buckets > 0):
            raise PlanError(
                f"`ngrams` above 1 are hashed into `buckets`: set both or neither, got "
                f"{self.ngrams} and {self.buckets}."
            )

    def encode(self, inputs: AnyArray, /) -> Texts:
        for text in inputs:
            if not isinstance(text, str):
                raise InputError(
                    f"Texts must be str, got {type(text).__name__}. "
                    "Prepare numbers as `dynsnap.train.Features`."
                )
        large = sum(map(len, inputs)) >= _LARGE
        words, tokens, lengths = (_number_fast if large else _number)(inputs, self.length)
        if self.ngrams > 1:
            rows = np.split(tokens, np.cumsum(lengths)[:-1])
            hashes = np.array([0, *(zlib.crc32(word.encode()) for word in words)], np.uint64)
            rows = [np.concatenate([row, *self._runs(row, hashes, len(words))]) for row in rows]
            lengths = np.fromiter(map(len, rows), np.int64, len(rows))
            tokens = np.concatenate([np.zeros(0, np.int32), *rows])
        return Texts(
            words=tuple(words),
            tokens=torch.from_numpy(tokens),
            starts=torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)])),
        )

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        assert isinstance(encoded, Texts)
        starts, tokens = encoded.starts.cpu().numpy(), encoded.tokens.cpu().numpy()
        chosen = np.zeros(len(encoded), bool)
        chosen[rows] = True
        counted = tokens[np.repeat(chosen, np.diff(starts))]
        counts = np.bincount(counted, minlength=len(encoded.words) + 1)[: len(encoded.words) + 1]
        # Equally frequent words rank by name: the order of the texts must not matter.
        bar = np.partition(counts, -self.size)[-self.size] if len(counts) > self.size else 0
        candidates = np.flatnonzero(counts >= max(bar, 1))
        ranked = sorted(candidates.tolist(), key=lambda n: (-counts[n], encoded.words[n - 1]))
        return _stored([encoded.words[number - 1] for number in ranked[: self.size - 1]])

    def renew(self, state: State, encoded: Encoded, rows: Positions, /) -> State:
        """The vocabulary of a network that goes on to learn from these rows.

        Words keep their numbers. Those that are frequent by now take the numbers that are free,
        then those of words that are not frequent any more, the most frequent word first.
        """
        words, wanted = _listed(state), _listed(self.fit(encoded, rows))
        frequent, known = set(wanted), set(words)
        given_up = (place for place, word in enumerate(list(words)) if word not in frequent)
        for word in wanted:
            if word in known:
                continue
            if len(words) < self.size - 1:
                words.append(word)
            else:
                words[next(given_up)] = word
        return _stored(words)

    def replaced(self, old: State, new: State, /) -> Positions:
        """The numbers that stand for another word in the one vocabulary than in the other."""
        pairs = itertools.zip_longest(_listed(old), _listed(new))
        return np.array([place for place, (a, b) in enumerate(pairs, 1) if a != b], np.intp)

    def bind(self, state: State, encoded: Encoded, /) -> State:
        assert isinstance(encoded, Texts)
        known = {word: place for place, word in enumerate(_listed(state), 1)}
        lookup = [0, *(known.get(word, 0) for word in encoded.words)]
        lookup += range(self.size, self.size + self.buckets)
        return {"lookup": torch.tensor(lookup, device=encoded.tokens.device)}

    def apply(self, raw: Tensor, bound: State, /) -> Tensor:
        return bound["lookup"][raw]

    def offers(self, encoded: Encoded, /) -> Mapping[str, Any]:
        return {"words": self.size + self.buckets}

    def _runs(self, row: AnyArray, hashes: AnyArray, words: int) -> Iterable[AnyArray]:
        """Numbers of the runs of 2, 3, ... words, hashed as fastText hashes them."""
        single = hashes[row]
        run = single
        for length in range(2, min(self.ngrams, len(row)) + 1):
            run = run[:-1] * np.uint64(116049371) + single[length - 1 :]
            yield (run % np.uint64(self.buckets)).astype(np.int32) + np.int32(words + 1)


def _listed(state: State) -> list[str]:
    """The words of a vocabulary; the first has the number 1."""
    content = state["words"].numpy().tobytes()
    return [] if content == _NO_WORDS else content.decode().split("\n")


def _stored(words: Iterable[str]) -> State:
    content = "\n".join(words).encode() or _NO_WORDS
    return {"words": torch.frombuffer(bytearray(content), dtype=torch.uint8)}
