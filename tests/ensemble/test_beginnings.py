"""A cyclic training is the beginning of every longer one: the law on real trainers, and the cut."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.boost import BoostTrainer
from dynsnap.ensemble import (
    Recipe,
    Round,
    RoundSpec,
    Schedule,
    beginning,
    begins,
    longest,
    snapshot_epochs,
)
from dynsnap.errors import InputError, PlanError
from dynsnap.testing import CentroidTrainer
from dynsnap.train import ShiftsAndFlips, TorchTrainer
from dynsnap.train.models import cnn, fasttext, mlp
from tests.boost.streams import digits
from tests.boost.test_trainer import MANY
from tests.marks import daily
from tests.messages import naming
from tests.train.made import blobs, pictures, sentences, stream_of
from tests.train.test_trainer import Normed


def windows(count, window=3, **settings):
    """A cyclic training of so many windows."""
    return Recipe(
        schedule=Schedule("cyclic"),
        epochs=count * window,
        snapshots=count,
        selection="window",
        **settings,
    )


def named_as(spec, longer):
    """The same round with the randomness of a longer one: its name is what all seeds come from."""

    class Renamed(RoundSpec):
        __slots__ = ()

        def canonical(self):
            return longer.canonical()

    return Renamed(**{field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)})


def torch_trainer(stream, model, **settings):
    return TorchTrainer(stream, model=model, device="cpu", batch_size=16, **settings)


TRAINERS = {
    "centroids": lambda: CentroidTrainer(digits()),
    "dense, stacked": lambda: torch_trainer(stream_of(blobs()), mlp),
    "batch norm, alone": lambda: torch_trainer(stream_of(blobs()), Normed),
    "pictures": lambda: torch_trainer(
        stream_of(pictures()), cnn, augment=ShiftsAndFlips(shift=0.05, flip=False)
    ),
    "text": lambda: torch_trainer(stream_of(sentences()), fasttext),
    **{
        name: lambda name=name: BoostTrainer(digits(), model=copy.deepcopy(MANY[name]))
        for name in ("xgboost", "lightgbm", "mlp", "sgd")
    },
}


@pytest.mark.parametrize(
    "name", daily(TRAINERS, *(name for name in TRAINERS if name != "batch norm, alone"))
)
def test_the_first_windows_of_a_longer_training_are_the_training_of_so_many(name):
    """Bit by bit, with the randomness of the longer one."""
    long = RoundSpec(recipe=windows(4), generation=2, seed=7)
    short = dataclasses.replace(long, recipe=windows(2))
    (whole,) = TRAINERS[name]().train([long])
    (alone,) = TRAINERS[name]().train([named_as(short, long)])
    cut = beginning(whole, short)
    assert cut.spec == short
    for part in ("accuracy", "epochs", "curve"):
        assert getattr(cut, part).tolist() == getattr(alone, part).tolist()
    for held in alone.scores:
        assert cut.scores[held].tobytes() == alone.scores[held].tobytes()
    if name != "lightgbm":  # whose files tell how many iterations were asked for
        assert cut.weights == alone.weights
    assert whole.scores["test"][:2].tobytes() != whole.scores["test"][2:].tobytes()


def test_passes_with_dropout_are_those_of_the_longer_training_too():
    noisy = {"dropout": 0.3, "passes": 3}
    long = RoundSpec(recipe=windows(4, **noisy), generation=1)
    short = dataclasses.replace(long, recipe=windows(2, **noisy))
    stream = stream_of(blobs())
    (whole,) = torch_trainer(stream, Normed).train([long])
    (alone,) = torch_trainer(stream, Normed).train([named_as(short, long)])
    cut = beginning(whole, short)
    assert (len(cut.accuracy), len(cut.weights)) == (6, 2)
    assert cut.scores["test"].tobytes() == alone.scores["test"].tobytes()
    again = torch_trainer(stream, Normed).score(cut.weights, stream.evaluation["test"].inputs)
    assert again.tobytes() == cut.scores["test"].tobytes()


@st.composite
def recipes(draw):
    kind = draw(st.sampled_from(["cyclic", "cyclic", "cyclic", "step", "constant"]))
    dropout, passes = draw(st.sampled_from([(0.0, 1), (0.0, 1), (0.1, 1), (0.1, 2)]))
    try:
        return Recipe(
            schedule=Schedule(kind),
            epochs=draw(st.integers(1, 24)),
            snapshots=draw(st.integers(1, 8)),
            selection="window" if kind == "cyclic" else "top",
            dropout=dropout,
            passes=passes,
        )
    except PlanError:  # epochs that cannot be cut into so many windows
        return windows(draw(st.integers(1, 8)), draw(st.integers(1, 4)))


@st.composite
def rounds(draw):
    return RoundSpec(
        recipe=draw(recipes()),
        generation=draw(st.integers(1, 2)),
        replicate=draw(st.integers(0, 1)),
        index=draw(st.integers(0, 1)),
        twin=draw(st.sampled_from([0, 0, 0, 1])),
        parent=draw(st.sampled_from([None, None, None, "somebody"])),
    )


@given(rounds(), st.lists(rounds(), max_size=12))
def test_what_a_round_is_the_beginning_of_differs_in_its_length_alone(spec, others):
    for other in [spec, *others]:
        if not begins(spec, other):
            continue
        assert dataclasses.replace(other, recipe=spec.recipe) == spec
        assert spec.recipe.epochs <= other.recipe.epochs
        if other != spec:
            assert spec.recipe.schedule.kind == other.recipe.schedule.kind == "cyclic"
            assert spec.recipe.window == other.recipe.window
            assert (spec.recipe.dropout, spec.recipe.passes) == (
                *(other.recipe.dropout, other.recipe.passes),
            )
    assert begins(spec, spec)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.data())
def test_whoever_is_the_beginning_of_another_keeps_the_same_epochs(few, many, window, data):
    """The reason for it all: the epochs that a recipe keeps of a curve, cut or not."""
    short, long = windows(min(few, many), window), windows(max(few, many), window)
    coarse = st.integers(0, 5).map(lambda tenths: tenths / 10)
    curve = data.draw(st.lists(coarse, min_size=long.epochs, max_size=long.epochs))
    kept = snapshot_epochs(long, curve)[: short.snapshots]
    assert kept.tolist() == snapshot_epochs(short, curve[: short.epochs]).tolist()
    rates = [one.schedule.multipliers(one.epochs, window=one.window) for one in (short, long)]
    assert rates[0].tolist() == rates[1][: short.epochs].tolist()
    assert begins(RoundSpec(recipe=short, generation=1), RoundSpec(recipe=long, generation=1))


def test_a_training_that_ends_within_a_window_is_no_beginning():
    """Of the last window, the longer one may have kept an epoch that is still to come."""
    uneven = Recipe(schedule=Schedule("cyclic"), epochs=10, snapshots=3, selection="window")
    spec, longer = (
        RoundSpec(recipe=recipe, generation=1) for recipe in (uneven, windows(4, uneven.window))
    )
    assert uneven.window == 4
    assert not begins(spec, longer)
    assert begins(dataclasses.replace(spec, recipe=windows(2, 4)), spec)


@given(rounds(), st.lists(rounds(), max_size=12))
def test_the_longest_is_found_and_has_none_that_is_longer(spec, among):
    found = longest(spec, among)
    assert begins(spec, found)
    assert found == spec or found in among
    assert all(one.recipe.epochs <= found.recipe.epochs for one in among if begins(spec, one))
    assert longest(found, among) == found
    assert longest(spec, reversed(among)) == found


@given(rounds(), st.data())
def test_a_cut_round_has_its_share_of_everything(spec, data):
    found = [dataclasses.replace(spec, recipe=recipe) for recipe in data.draw(st.lists(recipes()))]
    whole, rng = longest(spec, found), np.random.default_rng(0)
    members = whole.recipe.members
    done = Round(
        spec=whole,
        accuracy=rng.random(members),
        epochs=np.arange(members),
        scores={"test": rng.random((members, 3, 2)), "late": np.zeros((members, 0, 2))},
        curve=rng.random(whole.recipe.epochs),
        weights=tuple(bytes([place]) for place in range(whole.recipe.snapshots)),
        seconds=whole.recipe.epochs * 2.0,
    )
    cut = beginning(done, spec)
    assert cut.spec == spec
    assert cut.accuracy.tolist() == done.accuracy[: spec.recipe.members].tolist()
    assert len(cut.curve) == spec.recipe.epochs
    assert len(cut.weights) == spec.recipe.snapshots
    assert cut.scores["test"].shape == (spec.recipe.members, 3, 2)
    assert cut.seconds == pytest.approx(spec.recipe.epochs * 2.0)


def test_a_round_that_another_does_not_begin_with_is_refused():
    spec = RoundSpec(recipe=windows(2), generation=1)
    done = next(iter(CentroidTrainer(digits()).train([spec])))
    with pytest.raises(
        InputError, match=naming("^round 1 of", "beginning of round 0", "3 epochs", "6 epochs")
    ):
        beginning(done, dataclasses.replace(spec, recipe=windows(1), index=1))
