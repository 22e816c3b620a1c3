"""Compiled numbering of words is the plain one, only sooner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.train import Words, _numbering
from dynsnap.train import _text as plain

MARKS = st.sampled_from([*"aAbB_09 .,\n\t-'", "é", "É", "ß", "İ", "中", "\u00a0", "\ud800"])
TEXTS = st.lists(st.text(MARKS, max_size=40), max_size=12)


def both(texts, length):
    inputs = np.empty(len(texts), object)
    inputs[:] = texts
    return plain._number(inputs, length), plain._number_fast(inputs, length)


@given(TEXTS, st.integers(1, 6), st.sampled_from([1, 16, 1 << 20]))
def test_words_numbers_and_lengths_are_the_same(texts, length, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_numbering, "_BLOCK", block)
        (words, tokens, lengths), fast = both(texts, length)
    assert fast[0] == words
    assert fast[1].tolist() == tokens.tolist()
    assert fast[2].tolist() == lengths.tolist()
    assert fast[1].dtype == tokens.dtype


def test_the_table_of_words_grows_without_losing_any():
    texts = [" ".join(f"w{row * 50 + k}" for k in range(100)) for row in range(400)]
    slow, fast = both(texts, 1000)
    assert fast[0] == slow[0]
    assert fast[1].tolist() == slow[1].tolist()


def test_large_texts_are_encoded_as_small_ones_are(monkeypatch):
    texts = np.array(["Don't panic: it's 42!", "", "naïve, naïve 中文"], object)
    prepare = Words(ngrams=2, buckets=10)
    small = prepare.encode(texts)
    monkeypatch.setattr(plain, "_LARGE", 0)
    large = prepare.encode(texts)
    assert large.words == small.words
    assert large.tokens.tolist() == small.tokens.tolist()
    assert large.starts.tolist() == small.starts.tolist()
