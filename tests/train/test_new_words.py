"""Text networks that go on from a deployed one read the words that have come since."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from dynsnap.data import from_generations
from dynsnap.ensemble import Distillation
from dynsnap.errors import FileError
from dynsnap.train import TorchTrainer, Words
from dynsnap.train._weights import StoredLearner
from dynsnap.train.models import fasttext
from tests.train.made import sentences, spec

WORDS = [["red", "warm", "fire"], ["blue", "cold", "ice"], ["moon", "star", "night"]]
letters = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join)
texts = st.lists(letters, min_size=1, max_size=6)


class OwnBag(nn.Module):
    """A caller's own text network, which no compiled step knows."""

    def __init__(self, classes, words):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, 6)
        self.output = nn.Linear(6, classes)

    def forward(self, tokens):
        return self.output(self.bag(tokens))


class NoTable(nn.Module):
    """A text network whose weights do not belong to words."""

    def __init__(self, classes, words):
        super().__init__()
        self.output = nn.Linear(1, classes)

    def forward(self, tokens):
        return self.output(tokens.float().mean(1, keepdim=True))


class Tied(nn.Module):
    """A network that reads words with the vectors that another layer has for weights."""

    def __init__(self, classes, words):
        super().__init__()
        self.scores = nn.Linear(6, words, bias=False)
        self.vectors = nn.Embedding(words, 6)
        self.again = self.vectors
        self.scores.weight = self.vectors.weight
        self.output = nn.Linear(words, classes)

    def forward(self, tokens):
        return self.output(self.scores(self.again(tokens).mean(1)))


class Computed(nn.Module):
    """A network whose vectors of words are computed of other parameters."""

    def __init__(self, classes, words):
        super().__init__()
        self.vectors = weight_norm(nn.Embedding(words, 6))
        self.output = nn.Linear(6, classes)

    def forward(self, tokens):
        return self.output(self.vectors(tokens).mean(1))


def stream():
    """Two generations of texts; class "c" and its words arrive with the second."""
    pool = sentences(rows=180, classes=3)
    first = np.flatnonzero(pool.labels[:90] != 2)
    return from_generations(
        pool, [first, np.arange(180)], test=pool, validation=0.25, selection_holdout=0.2
    )


def trainer(model=None, kept=None, **settings):
    usual = {
        "model": model or functools.partial(fasttext, width=6),
        "prepare": Words(size=13),
        "batch_size": 16,
        "learning_rate": 0.05,
        "device": "cpu",
    }
    find = None if kept is None else kept.__getitem__
    return TorchTrainer(stream(), parents=find, **{**usual, **settings})


def deployed(model=None, **settings):
    (done,) = trainer(model, **settings).train([spec(epochs=6, snapshots=1)])
    return {"old/0": done.weights[0]}


def listed(state):
    content = state["words"].numpy().tobytes().decode()
    return [] if content == "\n" else content.split("\n")


@given(texts, texts, st.integers(2, 8))
def test_a_renewed_vocabulary_keeps_numbers_and_has_all_frequent_words(first, second, size):
    prepare = Words(size=size)
    before, after = (prepare.encode(np.array(each, object)) for each in (first, second))
    old = prepare.fit(before, np.arange(len(first)))
    wanted = set(listed(prepare.fit(after, np.arange(len(second)))))
    new = prepare.renew(old, after, np.arange(len(second)))
    assert wanted <= set(listed(new)) <= wanted | set(listed(old))
    assert len(listed(new)) == len(set(listed(new))) < size
    places = dict(zip(listed(old), range(1, size), strict=False))
    for place, word in enumerate(listed(new), 1):
        assert places.get(word, place) == place
        assert (place in prepare.replaced(old, new)) == (word not in places)


@given(texts, st.integers(2, 8))
def test_the_same_texts_renew_nothing(given_texts, size):
    prepare, rows = Words(size=size), np.arange(len(given_texts))
    encoded = prepare.encode(np.array(given_texts, object))
    old = prepare.fit(encoded, rows)
    assert listed(prepare.renew(old, encoded, rows)) == listed(old)


@pytest.mark.parametrize("model", [None, OwnBag])
def test_words_that_stay_keep_their_vectors_and_new_ones_start_afresh(model):
    kept = deployed(model)
    way, asked = trainer(model, kept), spec(generation=2, parent="old/0", snapshots=1)
    round_, parent = way._open(asked), StoredLearner.from_bytes(kept["old/0"])
    old, new = listed(parent.prepared), listed(round_.prepared)
    assert not set(WORDS[2]) & set(old)
    assert {*WORDS[0], *WORDS[1], *WORDS[2]} <= set(new)
    (name,) = [name for name in parent.weights if parent.weights[name].shape[0] == 13]
    vectors = way._context.build(round_).state_dict()[name]
    for word in new:
        place = new.index(word) + 1
        same = torch.equal(vectors[place], parent.weights[name][place])
        assert same == (word in old)


def test_vectors_that_are_tied_start_afresh_by_all_of_their_names():
    kept = deployed(Tied)
    way, asked = trainer(Tied, kept), spec(generation=2, parent="old/0", snapshots=1)
    round_, parent = way._open(asked), StoredLearner.from_bytes(kept["old/0"])
    places = Words(size=13).replaced(parent.prepared, round_.prepared)
    built = way._context.build(round_)
    assert len(places)
    same = (built.vectors.weight == parent.weights["vectors.weight"]).all(1)
    assert np.flatnonzero(~same.numpy()).tolist() == places.tolist()


def test_buckets_of_runs_of_words_are_kept_as_they_are():
    prepare = Words(size=8, ngrams=2, buckets=20)
    kept = deployed(OwnBag, prepare=prepare)
    way = trainer(OwnBag, kept, prepare=prepare)
    round_ = way._open(spec(generation=2, parent="old/0", snapshots=1))
    before = StoredLearner.from_bytes(kept["old/0"]).weights["bag.weight"]
    vectors = way._context.build(round_).bag.weight
    assert torch.equal(vectors[8:], before[8:])
    assert not torch.equal(vectors[:8], before[:8])


@pytest.mark.parametrize("model", [None, OwnBag])
def test_a_stored_network_of_another_kind_is_refused(model):
    kept = deployed(model)
    other = OwnBag if model is None else functools.partial(fasttext, width=6)
    for one in (trainer(other, kept), trainer(model, kept, prepare=Words(size=9))):
        with pytest.raises(FileError, match="does not fit the model"):
            list(one.train([spec(generation=2, parent="old/0", snapshots=1)]))


@pytest.mark.parametrize("model", [None, OwnBag, Tied])
def test_a_new_class_is_read_by_its_own_words(model):
    kept = deployed(model)
    asked = spec(generation=2, parent="old/0", snapshots=1, epochs=12)
    taught = dataclasses.replace(
        asked, interpolate=True, distillation=Distillation(teacher="old/0")
    )
    for one in (asked, taught):
        (done,) = trainer(model, kept).train([one])
        for name in ("test", "late"):
            truth = stream().evaluation[name].labels
            assert (done.scores[name][0].argmax(1) == truth).mean() > 0.95


@pytest.mark.parametrize("model", [NoTable, Computed])
def test_a_network_without_vectors_of_words_keeps_its_vocabulary(model):
    kept = deployed(model)
    way, asked = trainer(model, kept), spec(generation=2, parent="old/0", snapshots=1)
    (done,) = way.train([asked])
    found = StoredLearner.from_bytes(done.weights[0]).prepared
    assert listed(found) == listed(StoredLearner.from_bytes(kept["old/0"]).prepared)
