"""Numbers too small to matter: nothing is lost with them, and the caller's are left alone."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from dynsnap.train import TorchTrainer
from dynsnap.train._devices import LEAST, flushing_denormals, without_denormals
from dynsnap.train.models import cnn
from tests.train.made import pictures, spec, stream_of


def subnormal():
    """Whether a number below the smallest normal one is still a number."""
    return float(torch.tensor(1e-39) * 1.0) != 0.0


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8),
    st.lists(st.floats(-1e4, 1e4, width=32), min_size=8, max_size=8),
)
def test_a_sum_that_shows_in_a_score_is_the_same_without_denormals(kernel, inputs):
    kernel, inputs = torch.tensor(kernel), torch.tensor(inputs[: len(kernel)])
    kept = without_denormals({"kernel": kernel})["kernel"]
    with_dust, clean = (kernel * inputs).sum(), (kept * inputs).sum()
    assert abs(float(with_dust - clean)) <= 8 * LEAST * 1e4


def test_only_floating_point_numbers_are_looked_at():
    counters = {"batches": torch.tensor([0, 3]), "mean": torch.tensor([0.0, -1e-31, 2.0])}
    kept = without_denormals(counters)
    assert kept["batches"] is counters["batches"]
    assert kept["mean"].tolist() == [0.0, 0.0, 2.0]


def test_dust_counts_as_nothing_for_as_long_as_asked():
    assert subnormal()
    with flushing_denormals():
        assert not subnormal()
        with flushing_denormals():
            assert not subnormal()
        assert not subnormal()
    assert subnormal()
    with pytest.raises(KeyError), flushing_denormals():
        raise KeyError
    assert subnormal()


def test_rounds_are_trained_without_denormals_and_stored_learners_score_as_they_did():
    seen = []

    def loss(outputs, labels):
        seen.append(subnormal())
        return functional.cross_entropy(outputs, labels)

    stream = stream_of(pictures())
    trainer = TorchTrainer(
        stream, model=functools.partial(cnn, width=4), loss=loss, device="cpu", keep_weights=True
    )
    (done,) = trainer.train([spec(0, epochs=2)])
    assert set(seen) == {False}
    assert subnormal()
    again = trainer.score(done.weights, stream.evaluation["test"].inputs)
    assert np.array_equal(again, done.scores["test"])
