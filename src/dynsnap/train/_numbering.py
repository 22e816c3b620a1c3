"""Words as numbers, compiled: for texts by the megabyte. Import this late."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dynsnap._compiled import compiled
from dynsnap._types import AnyArray

_BLOCK = 1 << 20  # bytes that are looked at in one go
_LOAD = 2  # places for each word that the table may hold


class _Known(NamedTuple):
    """The words so far. Word i has the number i + 1, and 0 is an empty place of the table."""

    table: AnyArray  # numbers, at the place of their hash or after it
    hashes: AnyArray  # of each word
    ends: AnyArray  # where each word ends in `letters`; the first begins at 0
    letters: AnyArray  # all words one after another


# Letters, digits and _ stay, capitals become small, and bytes of other scripts stay as they are;
# what is left parts words.
_FOLDED = np.zeros(256, np.uint8)
_FOLDED[128:] = np.arange(128, 256)
for _mark in b"abcdefghijklmnopqrstuvwxyz0123456789_":
    _FOLDED[_mark] = _mark
for _mark in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ":
    _FOLDED[_mark] = _mark + 32


def numbered(texts: Sequence[bytes], length: int) -> tuple[list[str], AnyArray, AnyArray]:
    """Distinct words in the order of their first use; the numbers of all texts; their lengths.

    Args:
        texts: In UTF-8. Beyond ASCII, marks that part words must be spaces by now.
        length: Words of a text that count.
    """
    known = _Known(*(np.zeros(0, kind) for kind in (np.int32, np.uint64, np.int64, np.uint8)))
    words = 0
    lengths = np.zeros(len(texts), np.int64)
    parts: list[AnyArray] = []
    for first, last in _blocks(texts):
        block = np.frombuffer(b"".join(texts[first:last]), np.uint8)
        bounds = np.cumsum([0, *map(len, texts[first:last])])
        known = _with_room(known, words, len(block))
        found = np.empty(len(block) // 2 + last - first, np.int32)
        used, words = _number(
            block, bounds, _FOLDED, length, known, words, found, lengths[first:last]
        )
        parts.append(found[:used].copy())
    ends = [0, *known.ends[:words].tolist()]
    letters = known.letters.tobytes()
    named = [
        letters[start:end].decode("utf-8", "surrogatepass")
        for start, end in itertools.pairwise(ends)
    ]
    return named, np.concatenate([np.zeros(0, np.int32), *parts]), lengths


def _blocks(texts: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Parts of the texts, each of about a block, or of one text that is larger."""
    first, size = 0, 0
    for place, text in enumerate(texts):
        size += len(text)
        if size >= _BLOCK:
            yield first, place + 1
            first, size = place + 1, 0
    if first < len(texts):
        yield first, len(texts)


def _with_room(known: _Known, words: int, size: int) -> _Known:
    """The same with room for all words that a block of this size could bring."""
    most = words + size // 2 + 1
    if most > len(known.hashes):
        grown = max(most, 2 * len(known.hashes))
        known = known._replace(hashes=_longer(known.hashes, grown), ends=_longer(known.ends, grown))
    used = int(known.ends[words - 1]) if words else 0
    if used + size > len(known.letters):
        letters = _longer(known.letters, max(used + size, 2 * len(known.letters)))
        known = known._replace(letters=letters)
    if _LOAD * most > len(known.table):
        table = np.zeros(1 << (2 * _LOAD * most).bit_length(), np.int32)
        _place(known.hashes[:words], table)
        known = known._replace(table=table)
    return known


def _longer(values: AnyArray, size: int) -> AnyArray:
    longer = np.zeros(size, values.dtype)
    longer[: len(values)] = values
    return longer


@compiled
def _place(hashes: AnyArray, table: AnyArray) -> None:
    mask = len(table) - 1
    for word in range(len(hashes)):
        place = int(hashes[word] >> np.uint64(20)) & mask
        while table[place]:
            place = (place + 1) & mask
        table[place] = word + 1


@compiled
def _number(
    block: AnyArray,
    bounds: AnyArray,
    folded: AnyArray,
    length: int,
    known: _Known,
    words: int,
    found: AnyArray,
    lengths: AnyArray,
) -> tuple[int, int]:
    """Number the words of a block of texts: how many were found, and how many are known then."""
    mask = len(known.table) - 1
    used = 0
    for text in range(len(bounds) - 1):
        at, end = bounds[text], bounds[text + 1]
        count = 0
        while at < end and count < length:
            letter = folded[block[at]]
            if not letter:
                at += 1
                continue
            # FNV-1a, of the word in small letters.
            start, value = at, np.uint64(14695981039346656037)
            while letter:
                value = (value ^ np.uint64(letter)) * np.uint64(1099511628211)
                at += 1
                letter = folded[block[at]] if at < end else np.uint8(0)
            place = int(value >> np.uint64(20)) & mask
            number = 0
            while known.table[place]:
                other = known.table[place] - 1
                if known.hashes[other] == value:
                    begin = known.ends[other - 1] if other else 0
                    same = known.ends[other] - begin == at - start
                    k = 0
                    while same and k < at - start:
                        same = known.letters[begin + k] == folded[block[start + k]]
                        k += 1
                    if same:
                        number = other + 1
                        break
                place = (place + 1) & mask
            if not number:
                begin = known.ends[words - 1] if words else 0
                for k in range(at - start):
                    known.letters[begin + k] = folded[block[start + k]]
                known.ends[words] = begin + at - start
                known.hashes[words] = value
                words += 1
                number = words
                known.table[place] = number
            found[used] = number
            used += 1
            count += 1
        lengths[text] = count
    return used, words
