"""Rounds on texts side by side are the same training as alone, with vocabularies of their own."""

import dataclasses
import functools
import logging
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.data import Pool
from dynsnap.ensemble import RoundSpec
from dynsnap.train import Adam, TorchTrainer, Words, _round_groups
from dynsnap.train._alone import AloneStepper
from dynsnap.train._context import TrainingContext
from dynsnap.train._factory import Blueprint
from dynsnap.train.models import FastText, fasttext
from dynsnap.train.side_by_side import side_by_side
from dynsnap.train.side_by_side._feed import TokenFeed, feed_of
from dynsnap.train.side_by_side._group import can_be_grouped
from tests.messages import naming
from tests.train.made import recipe, stream_of
from tests.train.side_by_side.made import (
    ALL_LOSSES,
    assert_same,
    beside,
    lessons,
    round_,
    specs,
    trained,
)

ADAM = Adam(betas=(0.8, 0.95), eps=1e-6, kernel_penalty=1e-4)
PAIRS = Words(size=8, ngrams=2, buckets=20)


def written(rows=90):
    """Texts of very different lengths, whose words come into use one after the other."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(30)])
    texts = [
        " ".join(rng.choice(words[: 6 + row // 3], rng.integers(0, 12))) for row in range(rows)
    ]
    texts[3], texts[4] = "", " ".join(words[:25])
    return np.array(texts, dtype=object)


class Pooled(nn.Module):
    """A caller's own: the mean of vectors, written out."""

    def __init__(self, classes, words, dropout=0.0):
        super().__init__()
        self.table = nn.Embedding(words, 4)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(4, classes)

    def forward(self, tokens):
        real = tokens.ne(0).unsqueeze(2)
        sums = (self.table(tokens) * real).sum(1)
        return self.output(self.dropout(sums / real.sum(1).clamp(min=1)))


class Padded(Pooled):
    """Leaves the vector of the padding as it is, and counts it: every text starts with some."""

    def __init__(self, classes, words, dropout=0.0):
        super().__init__(classes, words, dropout)
        self.table = nn.Embedding(words, 4, padding_idx=0)
        with torch.no_grad():
            self.table.weight[0] = 1

    def forward(self, tokens):
        tokens = functional.pad(tokens, (1, 0))
        return super().forward(tokens) + self.table(tokens[:, :1]).sum((1, 2))[:, None]


class MindsPadding(Pooled):
    """Takes the mean over the padding too, so a text's scores depend on the batch's longest."""

    def forward(self, tokens):
        return self.output(self.dropout(self.table(tokens).mean(1)))


class Shifted(FastText):
    """Derived from fastText, and something else."""

    def forward(self, tokens):
        return super().forward(tokens) + self.vectors.weight.mean()


SMALL = functools.partial(fasttext, width=5)


def made(factory=SMALL, prepare=None, **more):
    prepare = prepare or Words(size=12)
    texts = prepare.encode(written())
    return TrainingContext(
        device=torch.device("cpu"),
        precision=torch.float32,
        blueprint=Blueprint(factory=factory, classes=3, offers=prepare.offers(texts)),
        prepare=prepare,
        inputs=texts,
        labels=torch.from_numpy(np.random.default_rng(1).integers(0, 3, 90)),
        optimizer=ADAM,
        learning_rate=5e-2,
        augment=None,
        parents=None,
        **more,
    )


@pytest.mark.parametrize(
    ("context", "grouped"),
    [
        (made(), True),
        (made(prepare=PAIRS), True),
        (made(Pooled), True),
        (made(Padded), True),
        (made(Pooled), False),
    ],
    ids=["fasttext", "runs of words", "a caller's own", "padded", "on streams"],
)
def test_a_round_on_texts_side_by_side_is_the_round_alone(context, grouped):
    alone = trained(context, AloneStepper(context, loss=functional.cross_entropy), specs())
    together = trained(context, beside(context, grouped=grouped), specs())
    assert list(together) != list(alone), "the short ones should overtake the long one"
    for spec, one in alone.items():
        assert_same(one, together[spec])


def test_rounds_with_teachers_of_their_own_are_the_rounds_alone():
    context = made()
    rounds, targets = lessons()
    stepper = AloneStepper(context, loss=functional.cross_entropy)
    alone = trained(context, stepper, rounds, targets)
    together = trained(context, beside(context, grouped=True, losses=ALL_LOSSES), rounds, targets)
    for spec, one in alone.items():
        assert_same(one, together[spec])


def test_dropout_is_noise_in_the_round_that_asks_for_it_and_in_no_other():
    context = made()
    *others, last = specs()
    noisy = dataclasses.replace(last, recipe=dataclasses.replace(last.recipe, dropout=0.5))
    calm = trained(context, beside(context, grouped=True, width=4), [*others, last])
    mixed = trained(context, beside(context, grouped=True, width=4), [*others, noisy])
    for spec in others:
        assert_same(calm[spec], mixed[spec])
    outputs = [list(done.kept.values())[-1]["output.weight"] for done in (calm[last], mixed[noisy])]
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize("prepare", [Words(size=12), PAIRS], ids=["words", "runs of words"])
def test_the_gathered_batch_is_what_preparation_gives(prepare):
    context = made(prepare=prepare)
    feed = feed_of(context)
    states = [prepare.fit(context.inputs, np.arange(count)) for count in (20, 60)]
    bound = [prepare.bind(state, context.inputs) for state in states]
    fitted = feed.room(2)
    for place, own in enumerate(bound):
        fitted[place].copy_(feed.fitted(own))
    rows = torch.tensor([[3, 4, 7, 4], [88, 3, 70, 4]])
    gathered = feed.batch(fitted, rows).unflatten(0, (2, 4))
    assert gathered.shape[2] == context.inputs.longest()
    for place, own in enumerate(bound):
        alone = prepare.apply(context.inputs.take(rows[place]), own)
        wide = functional.pad(alone, (0, gathered.shape[2] - alone.shape[1]))
        assert torch.equal(gathered[place], wide)
    assert not torch.equal(*(own["lookup"] for own in bound)), "vocabularies should differ"


@pytest.mark.parametrize(
    ("words", "kind"), [(12, torch.int16), (32_767, torch.int16), (32_768, torch.int32)]
)
def test_vocabularies_take_no_more_room_than_their_tokens_need(words, kind):
    prepare = Words(size=words)
    texts = prepare.encode(written())
    room = TokenFeed(texts, prepare).room(3)
    assert (room.dtype, room.shape) == (kind, (3, 1 + len(texts.words)))


def test_a_pool_without_a_single_word_is_padding():
    prepare = Words(size=12)
    texts = prepare.encode(np.array(["", "..."], dtype=object))
    feed = TokenFeed(texts, prepare)
    assert not feed.batch(feed.room(2), torch.tensor([[0, 1], [1, 0]])).any()


@pytest.mark.parametrize("longest", [0, 1, 2, 3, 50])
def test_models_are_tried_on_texts_no_longer_than_the_longest(longest):
    prepare = Words(size=12)
    texts = prepare.encode(np.array(["word " * longest, ""], dtype=object))
    feed = TokenFeed(texts, prepare)
    assert feed.example().shape == (2, max(1, min(8, longest)))
    assert feed.suits(SMALL(classes=3, words=12))
    assert feed.suits(MindsPadding(3, 12)) == (longest < 2)


@pytest.mark.parametrize("make", [SMALL, Pooled], ids=["fasttext", "a caller's own"])
def test_text_models_can_be_grouped(make):
    feed = feed_of(made())
    assert can_be_grouped(make(classes=3, words=12), feed.example())


class BoundsItsVectors(Pooled):
    """Looks vectors up in a table that changes when it is looked at."""

    def __init__(self, classes, words):
        super().__init__(classes, words)
        self.table = nn.Embedding(words, 4, max_norm=0.5)


class MixesTexts(Pooled):
    """Takes off the mean of the batch, so rounds side by side would leak into each other."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits - logits.mean(0)


@pytest.mark.parametrize("make", [BoundsItsVectors, MixesTexts])
def test_a_text_model_that_grouping_would_falsify_is_found_out(make):
    assert not can_be_grouped(make(3, 12), feed_of(made()).example())


def test_what_is_derived_from_fasttext_is_not_taken_for_it():
    assert not can_be_grouped(Shifted(3, 12, 5, 0.0), feed_of(made()).example())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_a_step_is_one_graph_without_a_break(backend):
    torch._dynamo.reset()
    context = made()
    stepper = beside(context, grouped=True, width=3)
    running = round_(context, specs()[1])
    stepper.admit(running, None)
    net, _ = stepper._slot[running]
    program = net.program
    whole = functools.partial(torch.compile, backend=backend, fullgraph=True)
    stepper.advance([running], 2)
    plain = stepper.weights(running)

    stepper.release(running)
    stepper.admit(running, None)
    program.losses, program.update = whole(program._losses), whole(program._update)
    stepper.advance([running], 2)
    for name, value in stepper.weights(running).items():
        torch.testing.assert_close(value, plain[name], rtol=1e-5, atol=1e-7)

    looking = stepper._evaluation
    before = stepper.validate([running])
    looking._program.scores = whole(looking._program._scores)
    assert stepper.validate([running]) == before


def test_a_model_that_minds_the_padding_is_trained_alone_and_that_is_said(caplog):
    context = made(MindsPadding)
    with caplog.at_level(logging.WARNING, logger="dynsnap.train"):
        found = side_by_side(
            context, context.blueprint.build, batch_size=16, rows=64, wanted=4, grouped=False
        )
    assert found is None
    (said,) = caplog.messages
    assert re.search(naming("other texts", "one after another", "token 0"), said)


def test_a_trainer_gives_the_same_rounds_of_texts_either_way(monkeypatch):
    labels = np.random.default_rng(1).integers(0, 3, 90)
    pool = Pool(
        name="texts", inputs=written(), labels=labels, classes=tuple("abc"), ids=np.arange(90)
    )
    asked = [
        RoundSpec(recipe=recipe(kind, epochs=4), generation=part, index=index)
        for kind, part, index in (("step", 1, 0), ("cyclic", 2, 0), ("step", 2, 1))
    ]

    def rounds(suited):
        monkeypatch.setattr(_round_groups, "suits_bags", lambda context: False)
        monkeypatch.setattr(_round_groups, "is_suited", lambda context: suited)
        trainer = TorchTrainer(
            stream_of(pool), model=SMALL, prepare=Words(size=12), batch_size=8, device="cpu",
            learning_rate=0.05,
        )  # fmt: skip
        return {done.spec: done for done in trainer.train(asked)}

    alone, together = rounds(False), rounds(True)
    for spec, one in alone.items():
        np.testing.assert_array_equal(together[spec].curve, one.curve)
        np.testing.assert_allclose(together[spec].scores["test"], one.scores["test"], atol=2e-5)
