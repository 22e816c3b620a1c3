"""Rounds that are stopped and gone on with: the same bits, and no iteration done twice."""

import logging
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

from dynsnap.boost import BoostTrainer
from dynsnap.data import Stream
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import Interrupted, PlanError
from dynsnap.testing import RecordingMonitor, assert_same_round
from tests.boost.streams import digits
from tests.messages import naming

EPOCHS = 6
CYCLIC = Recipe(schedule=Schedule("cyclic"), epochs=EPOCHS, snapshots=2, selection="window")
STEP = Recipe(schedule=Schedule("step"), epochs=EPOCHS, snapshots=3)
ONE = Recipe(schedule=Schedule("constant"), epochs=EPOCHS, snapshots=1)

# Everything that draws at random is on.
QUICK = {
    "xgboost": XGBClassifier(
        max_depth=3,
        subsample=0.6,
        colsample_bytree=0.7,
        colsample_bylevel=0.8,
        colsample_bynode=0.8,
    ),
    "xgboost approx": XGBClassifier(tree_method="approx", max_depth=2, subsample=0.5),
    "xgboost exact": XGBClassifier(tree_method="exact", max_depth=2, colsample_bytree=0.5),
    "xgboost forests": XGBClassifier(max_depth=2, num_parallel_tree=3, subsample=0.5),
    "lightgbm": LGBMClassifier(num_leaves=7, subsample=0.7, subsample_freq=1, colsample_bytree=0.6),
    "lightgbm rare bags": LGBMClassifier(
        num_leaves=7, bagging_fraction=0.4, bagging_freq=4, feature_fraction_bynode=0.5
    ),
    "lightgbm extra": LGBMClassifier(num_leaves=7, extra_trees=True),
}
SLOW = {
    "histogram": HistGradientBoostingClassifier(max_depth=2, max_bins=16, max_features=0.5),
    "gradient": GradientBoostingClassifier(max_depth=2, subsample=0.5, max_features=0.3),
    "mlp": MLPClassifier((8,), learning_rate_init=0.01),
    "mlp momentum": MLPClassifier((8,), solver="sgd", learning_rate_init=0.01),
    "sgd": SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.001),
    "sgd average": SGDClassifier(
        loss="log_loss", learning_rate="constant", eta0=0.001, average=500
    ),
}
MANY = QUICK | SLOW


class Memory(dict):
    """Checkpoints in memory, which count how often they are asked to save."""

    saves = 0

    def load(self, spec):
        return self.get(spec)

    def save(self, spec, state):
        self.saves += 1
        self[spec] = state

    def drop(self, spec):
        self.pop(spec, None)


def two_digits():
    """Zeros and ones: two classes are another case for every library."""
    pool = digits().pool
    rows = np.flatnonzero(pool.labels < 2)
    return Stream(
        pool=pool.take(rows),
        generations=(np.arange(len(rows)),),
        validation=(np.array([20, 20, 0, 0]),),
        evaluation={"test": pool.take(rows)},
    )


def spec_of(recipe, index=0):
    return RoundSpec(recipe=recipe, generation=1, index=index, seed=5)


def train(model, spec, stream=None, **options):
    return list(BoostTrainer(stream or digits(), model=model, **options).train([spec]))


def in_parts(model, spec, stops, stream=None):
    """A round that is stopped after each of these epochs, and the epochs that were trained."""
    memory, told = Memory(), []
    for stop in stops:
        notebook = RecordingMonitor(stop_after=stop - len(told))
        with pytest.raises(Interrupted, match=naming(f"epoch {stop - 1}", "saved")):
            train(model, spec, stream, monitor=notebook, checkpoints=memory)
        told += [epoch for _, epoch, _ in notebook.epochs]
    notebook = RecordingMonitor()
    (done,) = train(model, spec, stream, monitor=notebook, checkpoints=memory)
    told += [epoch for _, epoch, _ in notebook.epochs]
    assert not memory  # a finished round needs no checkpoint
    return done, told


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [CYCLIC, STEP], ids=["cyclic", "step"])
@pytest.mark.parametrize("name", MANY)
def test_a_round_stopped_twice_is_the_round_that_was_never_stopped(name, recipe):
    stream = digits() if recipe is CYCLIC else two_digits()
    (whole,) = train(MANY[name], spec_of(recipe), stream)
    resumed, told = in_parts(MANY[name], spec_of(recipe), [1, 4], stream)
    assert_same_round(resumed, whole)
    assert told == list(range(EPOCHS))  # nothing was trained twice


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(sorted(QUICK)),
    recipe=st.sampled_from([CYCLIC, STEP]),
    stops=st.sets(st.integers(1, EPOCHS - 1), min_size=1),
    two=st.booleans(),
)
def test_it_does_not_matter_where_a_round_is_stopped(name, recipe, stops, two):
    stream = two_digits() if two else digits()
    (whole,) = train(QUICK[name], spec_of(recipe), stream)
    resumed, told = in_parts(QUICK[name], spec_of(recipe), sorted(stops), stream)
    assert_same_round(resumed, whole)
    assert told == list(range(EPOCHS))


def test_lightgbm_that_finds_nothing_to_split_goes_on_too():
    """Some iterations leave no trees: snapshots count iterations, not trees."""
    model = LGBMClassifier(num_leaves=3, subsample=0.3, subsample_freq=1, min_child_samples=45)
    (whole,) = train(model, spec_of(STEP))
    trees = [weights.count(b"\nTree=") // 3 for weights in whole.weights]
    assert max(trees) < EPOCHS  # as was meant
    for stop in range(1, EPOCHS):
        resumed, _ = in_parts(model, spec_of(STEP), [stop])
        assert_same_round(resumed, whole)


def test_a_classifier_that_is_fitted_in_one_go_is_not_fitted_again(monkeypatch):
    model, spec = RandomForestClassifier(n_estimators=3), spec_of(ONE)
    (whole,) = train(model, spec)
    memory = Memory()
    with pytest.raises(Interrupted, match=naming("epoch 0", "saved")):
        train(model, spec, monitor=RecordingMonitor(stop_after=1), checkpoints=memory)
    monkeypatch.setattr(RandomForestClassifier, "fit", None)
    (resumed,) = train(model, spec, checkpoints=memory)
    assert_same_round(resumed, whole)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "histogram", "gradient", "sgd"])
def test_a_round_that_is_stopped_in_its_last_epoch_is_finished(name):
    specs = [spec_of(STEP), spec_of(STEP, index=1)]
    memory, notebook = Memory(), RecordingMonitor(stop_after=EPOCHS)
    settings = {"monitor": notebook, "checkpoints": memory, "checkpoint_every": math.inf}
    rounds = BoostTrainer(digits(), model=MANY[name], **settings).train(specs)
    assert next(rounds).spec == specs[0]
    with pytest.raises(Interrupted, match=r"before round 1 "):
        next(rounds)
    assert not memory.saves
    assert len(notebook.epochs) == EPOCHS


@pytest.mark.parametrize("every", [0, math.inf])
def test_checkpoints_are_saved_from_time_to_time(every):
    memory, spec = Memory(), spec_of(STEP)
    trainer = BoostTrainer(
        digits(), model=QUICK["lightgbm"], checkpoints=memory, checkpoint_every=every
    )
    rounds = trainer.train([spec])
    whole = next(rounds)
    assert memory.saves == (EPOCHS - 1 if every == 0 else 0)
    # As if the process was killed before the round was stored: the last checkpoint is there yet.
    assert (spec in memory) == (every == 0)
    (again,) = train(
        QUICK["lightgbm"], spec, monitor=(notebook := RecordingMonitor()), checkpoints=memory
    )
    assert_same_round(again, whole)
    assert len(notebook.epochs) == (1 if every == 0 else EPOCHS)
    assert list(rounds) == []


def damages(state):
    flipped = bytearray(state)
    flipped[-100] ^= 1
    yield "checksum", bytes(flipped)
    yield "checksum", state[:-10]
    yield "cannot be read", state[:40]
    yield "cannot be read", pickle.dumps({"curve": [1.0]})
    yield "has format 99", state.replace(b'"format":1', b'"format":99', 1)
    yield "another training", state.replace(b'"owner":"', b'"owner":"x', 1)
    yield "Error(", state.replace(b'"parts":[["', b'"parts":[["other ', 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "sgd"])
def test_a_damaged_checkpoint_is_named_and_the_round_starts_over(name, caplog):
    model, spec, memory = MANY[name], spec_of(STEP), Memory()
    (whole,) = train(model, spec)
    with pytest.raises(Interrupted):
        train(model, spec, monitor=RecordingMonitor(stop_after=3), checkpoints=memory)
    for reason, content in damages(memory[spec]):
        memory[spec] = content
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="dynsnap"):
            (again,) = train(
                model, spec, monitor=(notebook := RecordingMonitor()), checkpoints=memory
            )
        assert len(notebook.epochs) == EPOCHS
        assert_same_round(again, whole)
        (message,) = caplog.messages
        named = naming(re.escape(reason), re.escape(str(spec)), "over")
        assert re.search(named, message)


def test_a_checkpoint_of_another_round_is_not_used(caplog):
    memory, model = Memory(), QUICK["lightgbm"]
    with pytest.raises(Interrupted):
        train(model, spec_of(STEP), monitor=RecordingMonitor(stop_after=3), checkpoints=memory)
    other = spec_of(STEP, index=1)
    memory[other] = memory[spec_of(STEP)]
    train(model, other, checkpoints=memory)
    assert re.search(naming("round 1 of", "another training", "over"), caplog.text)


def test_nothing_in_a_checkpoint_is_unpickled(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("something was unpickled")

    for name in ("gradient", "mlp", "lightgbm"):
        memory = Memory()
        with pytest.raises(Interrupted):
            train(
                MANY[name],
                spec_of(STEP),
                monitor=RecordingMonitor(stop_after=3),
                checkpoints=memory,
            )
        with monkeypatch.context() as patch:
            for word in ("load", "loads", "Unpickler"):
                patch.setattr(pickle, word, refuse)
            train(
                MANY[name], spec_of(STEP), monitor=(seen := RecordingMonitor()), checkpoints=memory
            )
        assert len(seen.epochs) == EPOCHS - 3


@pytest.mark.parametrize(
    "model",
    [
        LGBMClassifier(num_leaves=3, use_quantized_grad=True),
        LGBMClassifier(num_leaves=3, cegb_penalty_split=1e-6),
    ],
)
def test_what_no_file_can_hold_starts_over_and_says_so(model):
    memory = Memory()
    with pytest.raises(Interrupted, match="it is lost"):
        train(model, spec_of(STEP), monitor=RecordingMonitor(stop_after=3), checkpoints=memory)
    assert not memory.saves


def test_without_a_place_for_checkpoints_a_stopped_round_starts_over():
    with pytest.raises(Interrupted, match="it is lost"):
        train(QUICK["xgboost"], spec_of(STEP), monitor=RecordingMonitor(stop_after=3))


def test_the_seconds_of_a_round_are_those_of_all_its_parts(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("dynsnap.boost._learner.time.perf_counter", lambda: now[0])

    class Slow(RecordingMonitor):
        def epoch_done(self, *told):
            super().epoch_done(*told)
            now[0] += 7

    memory, spec = Memory(), spec_of(STEP)
    with pytest.raises(Interrupted):
        train(QUICK["lightgbm"], spec, monitor=Slow(stop_after=2), checkpoints=memory)
    now[0] = 1000.0
    (done,) = train(QUICK["lightgbm"], spec, monitor=Slow(), checkpoints=memory)
    assert done.seconds == 7 * EPOCHS


def test_a_negative_interval_is_refused():
    with pytest.raises(PlanError, match=naming("`checkpoint_every`", "negative", "-1")):
        BoostTrainer(digits(), model=QUICK["lightgbm"], checkpoint_every=-1)
