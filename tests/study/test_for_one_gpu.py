"""Studies that are meant for one GPU: how many rounds they hand it at once, and how often.

A wave of rounds is trained side by side by a network that takes a minute or more to build, so waves
must be few and wide. Rounds here are made up: what they say gets better window by window.
"""

import dataclasses

import numpy as np
import pytest

from dynsnap import study
from dynsnap.data import Pool, cifar10_growth, cifar100_growth, grow
from dynsnap.ensemble import Round, serial
from dynsnap.study import RoundManager, ensembles_of, read_study, trained_as
from tests.cli.studies import SHIPPED
from tests.study.test_waves import Memory

pytestmark = pytest.mark.slow

MOST_SIDE_BY_SIDE = 48
CIFAR10 = tuple(cifar10_growth().shares)
# Of CIFAR-100 ten classes will do: the ones that its growth plan names.
CIFAR100 = (*cifar100_growth().shares, *cifar100_growth().late)
ROWS = {"cifar-10": 5_000, "cifar-100": 500}


class Improving:
    """A trainer of made up rounds: members get better with every window, and with more data.

    Args:
        stream: The growing data.
        level: For each generation, how good its members are in the end.
    """

    fingerprint = "improving"

    def __init__(self, stream, level):
        self.stream, self.level = stream, level

    def train(self, specs, /):
        for spec in specs:
            count = spec.recipe.members
            name = [spec.generation, spec.replicate, spec.index, spec.twin, spec.recipe.epochs]
            name += (spec.parent or "").encode()
            rng = np.random.default_rng([*name, len(spec.recipe.schedule.kind)])
            best = self.level[spec.generation - 1]
            lacking = 0.4 * np.exp(-np.arange(1, count + 1) / 1.5)
            accuracy = best - (0 if spec.parent else lacking)  # who is trained on was good before
            accuracy = accuracy + rng.normal(0, 0.01, count)
            yield Round(
                spec=spec,
                accuracy=accuracy.clip(0, 1),
                epochs=np.arange(count),
                scores={
                    name: said(pool, accuracy, rng) for name, pool in self.stream.evaluation.items()
                },
                curve=np.zeros(spec.recipe.epochs),
                seconds=1.0,
            )


def said(pool, accuracy, rng):
    """Scores of members that are right as often as they should be."""
    right = rng.random((len(accuracy), len(pool))) < accuracy[:, None]
    wrong = rng.integers(0, len(pool.classes), right.shape)
    return np.eye(len(pool.classes))[np.where(right, pool.labels, wrong)]


class Waves(list):
    """Hears of every wave."""

    def wave_begins(self, specs, /, *, found):
        self.append(list(specs))

    def round_done(self, done, /):
        pass


def stream_of(plan):
    """The data of a study in small: as many held-out rows as it takes to tell members apart."""
    classes = CIFAR10 if plan.data.source == "cifar-10" else CIFAR100
    pools = (
        Pool(
            name=name,
            inputs=np.zeros((rows * len(classes), 1)),
            labels=np.arange(rows * len(classes)) % len(classes),
            classes=classes,
            ids=np.array([f"{name}-{row}" for row in range(rows * len(classes))]),
        )
        for name, rows in (("train", ROWS[plan.data.source]), ("test", 160))
    )
    train, test = pools
    return grow(train, study.growth_of(plan.data), test=test)


def waves_of(name, *, store=None, level=None):
    """The waves of a study, and its ensembles in the end."""
    plan = read_study(SHIPPED[name])
    stream = stream_of(plan)
    generations = len(stream.generations)
    waves = Waves()
    manager = RoundManager(
        Improving(stream, level or [0.9] * generations),
        Memory() if store is None else store,
        waves,
        stream,
        trained_as=trained_as(plan),
    )
    ensembles = ensembles_of(plan, generations)
    return plan, stream, waves, manager.grow(ensembles, engine=serial, ahead=plan.ahead)


def images(stream, specs):
    """Training images that rounds take, as many epochs as they have."""
    sizes = [
        len(rows) - int(held.sum())
        for rows, held in zip(stream.generations, stream.validation, strict=True)
    ]
    return sum(spec.recipe.epochs * sizes[spec.generation - 1] for spec in specs)


def test_balanced_cifar_10_is_three_copies_of_one_training():
    plan, stream, waves, _ = waves_of("cifar10-balanced")
    assert [len(wave) for wave in waves] == [3]
    assert images(stream, waves[0]) == 3 * 200 * 50_000
    first, second = stream.generations
    assert np.array_equal(first, second)
    assert not stream.late
    assert {spec.recipe for spec in waves[0]} == {plan.baseline.recipe}


@pytest.mark.parametrize("change", [0.0, 0.3])
def test_the_stream_of_cifar_10_is_one_wave_whether_members_fall_behind_or_not(change):
    level = [0.85 - change] * 6 + [0.85] * 4
    plan, stream, waves, grown = waves_of("cifar10-stream", level=level)
    assert [len(wave) for wave in waves] == [41]
    assert len(waves[0]) <= MOST_SIDE_BY_SIDE
    assert images(stream, waves[0]) < 25e6
    assert len(stream.generations) == 10 and stream.late == ("frog",)
    # After a sudden change, who minds the lag is all new.
    for method in (one for one in plan.methods if one.rolling is not None):
        (seventh,) = (one for one in grown if one.method == method and one.generation == 7)
        old = [spec for spec, _ in grown[seventh].members.sources if spec.generation < 7]
        assert bool(old) != (change > 0 and method.rolling.max_accuracy_gap < 1)


@pytest.mark.parametrize(
    ("study", "cyclic", "refreshed", "epochs"),
    [
        # In this made up second generation six of 18 members have fallen behind.
        ("cifar10-rolling", 3, [12, 18], 5),
        ("cifar10-distill", 4, [15, 15], 10),
    ],
)
def test_rolling_on_cifar_10_is_one_wave_and_refreshing_one_more_for_each_retrain(
    study, cyclic, refreshed, epochs
):
    _, stream, waves, grown = waves_of(study)
    assert len(waves) == 3
    # The first generation has a twin, and six trainings more that are bagged.
    each = (1 + cyclic) * (24_400 + 30_500 + 32_500)
    assert images(stream, waves[0]) == 200 * (each + 7 * 24_400)
    assert not any(spec.parent for spec in waves[0])
    begun = [[spec for spec in wave if spec.parent] for wave in waves[1:]]
    assert [len(one) for one in begun] == refreshed
    for generation, specs in enumerate(begun, 2):
        assert {(spec.generation, spec.recipe.epochs) for spec in specs} == {(generation, epochs)}
    bagged = [one for one in grown if one.method.name == "rolling-bagging"]
    assert len(grown[bagged[0]].rounds) == 7


def test_cifar_100_is_one_wave_of_25_trainings():
    plan, _, waves, grown = waves_of("cifar100-paper")
    assert [len(wave) for wave in waves] == [22]
    assert sum(spec.recipe.epochs for spec in waves[0]) == 25 * 200
    assert plan.replicates_of(plan.baseline) == 3
    # A round of these adds nothing to another, so DynSnap-step does not ask for a third.
    for name, rounds in (("dynsnap-step", 2), ("dynsnap-cyc", 3)):
        found = [one for ensemble, one in grown.items() if ensemble.method.name == name]
        assert [len(one.rounds) for one in found] == [rounds] * 3


def test_the_sensitivity_study_adds_one_wave_to_the_rounds_of_the_paper_s():
    store = Memory()
    waves_of("cifar100-paper", store=store)
    _, _, waves, _ = waves_of("cifar100-sensitivity", store=store)
    # For each generation N, the second round of windows of 5, one of 10, two without a schedule.
    assert [len(wave) for wave in waves] == [3 * (1 + 1 + 1 + 2)]
    assert sum(spec.recipe.epochs for spec in waves[0]) == 6 * 200


def test_all_that_the_paper_trained_is_more_of_the_same_rounds():
    store = Memory()
    waves_of("cifar100-paper", store=store)
    known = len(store)
    _, _, waves, _ = waves_of("cifar100-full", store=store)
    (wave,) = waves
    # ExtBagging has 17 members more, and a fourth round is asked for ahead: the paper took four.
    assert sum(spec.recipe.schedule.kind == "step" for spec in wave) == 3 * 17
    others = [spec for spec in wave if spec.recipe.schedule.kind != "step"]
    assert [(spec.generation, spec.index) for spec in others] == [(1, 3), (2, 3), (3, 3)]
    assert len(store) == known + len(wave)


@pytest.mark.parametrize("level", [[0.9, 0.9, 0.9], [0.7, 0.75, 0.8]])
def test_rolling_on_cifar_100_takes_nothing_but_the_rounds_of_the_paper_s(level):
    store = Memory()
    waves_of("cifar100-paper", store=store, level=level)
    _, _, waves, grown = waves_of("cifar100-rolling", store=store, level=level)
    assert not waves
    rolled = [one for one in grown if one.method.rolling and one.generation == 3]
    assert rolled and all(len(grown[one].members) == 20 for one in rolled)


def test_rolling_on_cifar_100_is_one_wave_of_the_defaults():
    plan, _, waves, _ = waves_of("cifar100-rolling")
    # For each generation a single learner, Snapshot's round, two cyclic ones more; and the twin.
    assert [len(wave) for wave in waves] == [3 * (1 + 1 + 2) + 1]
    assert sum(spec.recipe.epochs for spec in waves[0]) == 16 * 200
    rolling = plan.method("rolling")
    assert dataclasses.asdict(rolling.rolling) == {
        "carry_over": 0.75,
        "max_accuracy_gap": 0.05,
        "finetune_epochs": 0,
        "warm_start": False,
        "agreement": 0.0,
        "class_aware": True,
    }
    assert rolling.plan.size == 20
    paper = read_study(SHIPPED["cifar100-paper"])
    assert (plan.model, plan.training, plan.epochs) == (paper.model, paper.training, paper.epochs)
