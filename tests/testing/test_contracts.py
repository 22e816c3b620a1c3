"""The contracts, held against every implementation in the package."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import dynsnap
from dynsnap import testing, trainers
from dynsnap.data import digits_stream
from dynsnap.ensemble import (
    CheckpointsInMemory,
    Recipe,
    RoundsInMemory,
    Schedule,
    round_key,
    serial,
)
from dynsnap.errors import InputError
from dynsnap.store import RunFolder
from dynsnap.testing import (
    CentroidTrainer,
    check_backend,
    check_checkpoints,
    check_engine,
    check_store,
    check_trainer,
    score_centroids,
)
from tests.messages import naming
from tests.streams import small_stream

STEP = Recipe(schedule=Schedule("step"), epochs=6, snapshots=3)
CYCLIC = Recipe(schedule=Schedule("cyclic"), epochs=6, snapshots=3, selection="window")
DROPOUT = Recipe(schedule=Schedule("step"), epochs=4, snapshots=1, dropout=0.3, passes=3)


@pytest.fixture(scope="module")
def stream():
    return digits_stream()


def centroid_trainer(stream):
    return (
        lambda monitor, states: CentroidTrainer(stream, monitor=monitor, checkpoints=states),
        [STEP, CYCLIC, DROPOUT],
    )


def torch_trainer(stream):
    """Dense layers train as a stack of matrices, convolutions one after another."""
    from dynsnap.train import TorchTrainer
    from dynsnap.train.models import mlp

    def make(monitor, states):
        return TorchTrainer(
            stream,
            model=mlp,
            device="cpu",
            batch_size=64,
            monitor=monitor,
            checkpoints=states,
        )

    return make, [STEP, CYCLIC, DROPOUT]


def boost_trainer(stream):
    """Boosted trees have no dropout."""
    from sklearn.linear_model import SGDClassifier

    from dynsnap.boost import BoostTrainer

    def make(monitor, states):
        return BoostTrainer(stream, model=SGDClassifier(loss="log_loss"), monitor=monitor)

    return make, [STEP, CYCLIC]


# Class name -> what makes it, and the recipes that it can follow.
TRAINERS = {
    "CentroidTrainer": centroid_trainer,
    "TorchTrainer": torch_trainer,
    "BoostTrainer": boost_trainer,
}
STORES = {
    "RunFolder": lambda path: RunFolder(path),
    "RoundsInMemory": functools.cache(lambda path: RoundsInMemory()),  # the same when reopened
}
CHECKPOINTS = {
    "RoundCheckpoints": lambda path: RunFolder(path).checkpoints(lambda spec: f"k{spec.index}"),
    "CheckpointsInMemory": lambda path: CheckpointsInMemory(),
}
ENGINES = {"serial": serial}


@pytest.mark.parametrize("name", trainers.BACKENDS)
def test_every_backend_keeps_the_contract(name):
    from sklearn.linear_model import SGDClassifier

    from dynsnap.train.models import mlp

    model = {"torch": mlp, "boost": SGDClassifier(loss="log_loss")}[name]
    check_backend(trainers.named(name), model=model, stream=small_stream(), recipes=[STEP])


def test_the_check_finds_a_backend_that_takes_damaged_learners():
    class Careless(trainers.Backend):
        name = "careless"

        def trainer(self, stream, *, model, settings, parents=None, **more):
            return CentroidTrainer(stream, **more)

        def scorer(self, learners, *, classes, **more):
            whole = [one for one in learners if one[:1] == b"{" and one[-1:] == b"}"]
            return lambda inputs: score_centroids(whole, inputs, classes=classes)

    with pytest.raises(AssertionError, match="damaged"):
        check_backend(Careless(), model=None, stream=small_stream(), recipes=[STEP])


# To import the first is to run it; the others need Triton, or a library of their own that is not
# among those of the tests.
UNIMPORTED = (
    *("__main__", "_convolution_fast", "_convolution_kernels", "mlflow._evaluator"),
    *(f"keeper.{name}" for name in ("keras", "lightning", "skorch", "transformers")),
)


def classes_with(*methods):
    """Every public class of the package that has these methods and is not a protocol."""
    found = set()
    for module in pkgutil.walk_packages(dynsnap.__path__, "dynsnap."):
        if module.name.endswith(UNIMPORTED):
            continue
        for name, thing in inspect.getmembers(
            importlib.import_module(module.name), inspect.isclass
        ):
            own = thing.__module__.startswith("dynsnap.") and not name.startswith("_")
            protocol = getattr(thing, "_is_protocol", False)
            if own and not protocol and all(hasattr(thing, method) for method in methods):
                found.add(name)
    return found


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_keeps_the_contract(name, stream):
    make, recipes = TRAINERS[name](stream)
    check_trainer(make, stream=stream, recipes=recipes)


@pytest.mark.parametrize("name", STORES)
def test_every_store_keeps_the_contract(name, tmp_path):
    check_store(lambda: STORES[name](tmp_path / "store"))


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_place_for_checkpoints_keeps_the_contract(name, tmp_path):
    made = CHECKPOINTS[name](tmp_path / "states")
    check_checkpoints(lambda: made)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_keeps_the_contract(name, stream):
    check_engine(ENGINES[name], CentroidTrainer(stream), recipes=[STEP, CYCLIC])


# They train or store nothing on purpose; `ScoredRounds` scores what a run folder stores.
STAND_INS = {"NoTrainer", "RoundsByName", "ScoredRounds"}


def test_no_trainer_was_forgotten():
    assert classes_with("train", "score", "fingerprint") - STAND_INS == set(TRAINERS)


def test_no_store_was_forgotten():
    assert classes_with("get", "put") - STAND_INS == set(STORES)


def test_no_place_for_checkpoints_was_forgotten():
    assert classes_with("load", "save", "drop") == set(CHECKPOINTS)


class Flawed(CentroidTrainer):
    """A trainer whose rounds pass through `spoil`."""

    def __init__(self, stream, spoil, **settings):
        super().__init__(stream, **settings)
        self._spoil = spoil

    def train(self, specs, /):
        return self._spoil(list(super().train(specs)))


def twice(rounds):
    return rounds + rounds


def none(rounds):
    return []


def other_snapshots(rounds):
    return [dataclasses.replace(done, epochs=done.epochs[::-1]) for done in rounds]


def no_weights(rounds):
    return [dataclasses.replace(done, weights=()) for done in rounds]


def one_set_missing(rounds):
    return [dataclasses.replace(done, scores={"test": done.scores["test"]}) for done in rounds]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (twice, "given twice"),
        (none, "not every round"),
        (other_snapshots, "other snapshots"),
        (no_weights, naming("round 0", "learner", "snapshot")),
        (one_set_missing, "other evaluation sets"),
    ],
)
def test_the_check_finds_a_flawed_trainer(stream, spoil, message):
    with pytest.raises(AssertionError, match=message):
        check_trainer(
            lambda monitor, states: Flawed(stream, spoil, monitor=monitor, checkpoints=states),
            stream=stream,
            recipes=[STEP],
        )


def test_the_check_finds_a_trainer_that_cannot_be_stopped(stream):
    with pytest.raises(AssertionError, match="was not interrupted"):
        check_trainer(
            lambda monitor, states: CentroidTrainer(stream), stream=stream, recipes=[STEP]
        )


def test_the_check_finds_a_trainer_that_ignores_names(stream):
    class Stubborn(CentroidTrainer):
        def train(self, specs, /):
            for spec in specs:
                named = dataclasses.replace(spec, index=0, replicate=0, seed=11, twin=0)
                (done,) = super().train([named])
                yield dataclasses.replace(done, spec=spec)

    with pytest.raises(AssertionError, match="equals"):
        check_trainer(
            lambda monitor, states: Stubborn(stream, monitor=monitor, checkpoints=states),
            stream=stream,
            recipes=[STEP],
        )


def test_the_check_finds_a_store_that_forgets():
    class Forgetful:
        def get(self, key, spec):
            return None

        def put(self, key, done):
            pass

    with pytest.raises(AssertionError, match="is gone"):
        check_store(Forgetful)


def test_the_check_finds_an_engine_that_loses_a_round(stream):
    def lossy(trainer, specs):
        return list(trainer.train(specs))[1:]

    with pytest.raises(AssertionError, match=naming("2 rounds", "1 given")):
        check_engine(lossy, CentroidTrainer(stream), recipes=[STEP])


def test_the_check_finds_an_engine_that_swallows_errors(stream):
    def silent(trainer, specs):
        try:
            return list(trainer.train(specs))
        except InputError:
            return []

    with pytest.raises(AssertionError, match="raised nothing"):
        check_engine(silent, CentroidTrainer(stream), recipes=[STEP])


def test_centroids_learn_something(stream):
    trainer = CentroidTrainer(stream)
    from dynsnap.ensemble import RoundSpec

    (done,) = trainer.train([RoundSpec(recipe=STEP, generation=3)])
    labels = done.scores["test"][0].argmax(axis=1)
    assert np.mean(labels == stream.evaluation["test"].labels) > 0.6


def test_a_key_changes_with_the_data(stream):
    from dynsnap.ensemble import RoundSpec

    other = digits_stream(seed=1)
    spec = RoundSpec(recipe=STEP, generation=1)
    assert round_key(CentroidTrainer(stream), spec) != round_key(CentroidTrainer(other), spec)


def test_the_public_names_of_testing_are_all_there():
    assert all(hasattr(testing, name) for name in testing.__all__)
