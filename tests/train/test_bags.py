"""fastText on bags of words is the same training as torch's own, only sooner."""

import functools
import itertools

import numpy as np
import pytest
import torch

from dynsnap.train import Adam, TorchTrainer, Words, _round_groups
from dynsnap.train._bags import Bags
from dynsnap.train.models import fasttext
from tests.train.made import sentences, spec, stream_of

TEXTS = sentences(rows=90)
TEXTS.inputs[5] = ""  # a text without a word
TEXTS.inputs[6] = "Red red red, the ice of the ice; unheard"
STREAM = stream_of(TEXTS)


def trainer(**more):
    settings = {
        "model": functools.partial(fasttext, width=5),
        "prepare": Words(size=9),
        "batch_size": 8,
        "learning_rate": 0.05,
        "optimizer": Adam(betas=(0.8, 0.95), eps=1e-6),
        "device": "cpu",
    }
    return TorchTrainer(STREAM, **(settings | more))


@pytest.mark.parametrize(
    "more",
    [{}, {"prepare": Words(size=6, ngrams=2, buckets=30)}, {"batch_size": 1000}],
    ids=["words", "runs of words", "one batch"],
)
def test_a_round_on_bags_is_the_round_that_torch_trains(more, monkeypatch):
    specs = [spec(0, epochs=5, generation=2), spec(1, kind="cyclic", epochs=6, snapshots=3)]
    ours = {done.spec: done for done in trainer(**more).train(specs)}
    monkeypatch.setattr(_round_groups, "suits_bags", lambda context: False)
    for alone in trainer(**more).train(specs):
        own = ours[alone.spec]
        np.testing.assert_allclose(own.curve, alone.curve)
        np.testing.assert_array_equal(own.epochs, alone.epochs)
        np.testing.assert_allclose(own.scores["test"], alone.scores["test"], atol=2e-5)


def test_dropout_on_bags_is_noise_that_does_not_keep_a_round_from_learning():
    (noisy,) = trainer().train([spec(0, epochs=30, snapshots=1, dropout=0.3, passes=20)])
    assert len({scores.tobytes() for scores in noisy.scores["test"]}) == 20
    said = noisy.scores["test"].mean(axis=0).argmax(axis=1)
    assert (said == TEXTS.labels).mean() > 0.95


def test_stored_learners_say_again_what_their_round_said():
    own = trainer()
    (done,) = own.train([spec(0, epochs=3, snapshots=2)])
    np.testing.assert_array_equal(own.score(done.weights, TEXTS.inputs), done.scores["test"])


def test_bags_hold_every_word_of_a_text_once():
    prepare = Words()
    texts = prepare.encode(np.array(["a b a", "", "c a c c"], dtype=object))
    bound = prepare.bind(prepare.fit(texts, np.arange(3)), texts)
    known = Bags(texts, prepare).known(bound)
    names = {int(bound["lookup"][place + 1]): word for place, word in enumerate(texts.words)}
    starts, tokens, counts = known.bags
    found = [
        {names[int(t)]: float(c) for t, c in zip(tokens[a:b], counts[a:b], strict=True)}
        for a, b in itertools.pairwise(starts)
    ]
    assert found == [{"a": 2, "b": 1}, {}, {"c": 3, "a": 1}]
    assert known.lengths.tolist() == [3, 0, 4]


@pytest.mark.parametrize(
    "more",
    [
        {"loss": torch.nn.functional.cross_entropy},
        {"optimizer": torch.optim.SGD},
        {"precision": "bfloat16"},
        {"augment": lambda batch, generator: batch},
    ],
    ids=["loss", "optimizer", "precision", "augment"],
)
def test_settings_that_the_compiled_steps_do_not_know_train_alone(more):
    assert not trainer(**more)._round_groups.bags
    assert trainer()._round_groups.bags
