"""A study on paper: what must be so whatever happens, and how well workers are used."""

import dataclasses
import itertools
import logging
from importlib import resources

import numpy as np
import pytest
from benchmarks.simulated_cluster import Gpu, Mishaps, SimulatedPool, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.engine import Rules
from dynsnap.engine._worker import RoundDone, Task
from dynsnap.errors import PlanError
from dynsnap.study import read_study
from tests.engine.made import CYCLIC, specs
from tests.messages import naming

pytestmark = pytest.mark.slow  # whole clusters on paper

IMAGES = (37_500, 46_875, 47_375)
QUICK = Gpu(build=5, save=60)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR, "dynsnap.engine")


def paper(tmp_path, **changes):
    """The paper's study, every round trained on its own, with some lines of its file changed."""
    text = (resources.files("dynsnap") / "studies/cifar100-full.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "study.toml"
    file.write_text(text)
    return dataclasses.replace(read_study(file), prefixes=False, ahead=1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The same with a tenth of the epochs and of the members."""
    return paper(
        tmp_path_factory.mktemp("small"),
        **{
            "epochs = 200": "epochs = 20",
            "members = 20": "members = 4",
            "replicates = 5": "replicates = 2",
        },
    )


@settings(max_examples=25, deadline=None)
@given(
    gpus=st.integers(1, 40),
    together=st.integers(1, 8),
    side_by_side=st.booleans(),
    straggling=st.sampled_from([0.0, 0.2]),
    failing=st.sampled_from([0.0, 0.3, 0.6]),
    seed=st.integers(0, 1000),
)
def test_every_round_comes_once_and_no_second_is_lost(
    small, gpus, together, side_by_side, straggling, failing, seed
):
    mishaps = Mishaps(straggling=straggling, failing=failing, repair=30, node=4)
    rules = Rules(together=together, side_by_side=side_by_side, attempts=50)
    found = simulate(
        small, images=IMAGES, gpus=gpus, gpu=QUICK, mishaps=mishaps, rules=rules, seed=seed
    )
    # The store refuses a round that comes twice, and the study ends only when all are there.
    assert found.rounds >= 3 * 4 + 3 + 3 + 1  # bagging, snapshot, dropout, twin
    assert found.busy + found.idle + found.down == pytest.approx(gpus * found.wall)
    assert min(found.busy, found.idle + 1e-6, found.down + 1e-6, found.lost + 1e-6) > 0
    assert found.busy_share <= 1
    if not failing:
        assert found.down == 0
    if not failing and not straggling:
        assert found.lost == 0


def test_what_ensembles_need_does_not_depend_on_the_number_of_gpus(small):
    plan = dataclasses.replace(small, ahead=0)
    found = {simulate(plan, images=IMAGES, gpus=gpus, gpu=QUICK).rounds for gpus in (1, 3, 64)}
    assert len(found) == 1


def test_alone_on_one_gpu_a_round_takes_what_the_rule_says():
    gpu = Gpu(base=1.0, each=0.5, beside=0.0, build=10.0, batch=10, save=1e9)
    pool = SimulatedPool(gpus=1, gpu=gpu, images=[100], mishaps=Mishaps())
    (spec,) = specs(1, recipe=CYCLIC)
    pool.begin(Task(1, (spec,)))
    told = list(itertools.chain.from_iterable(pool.events(0) for _ in range(2)))
    assert isinstance(told[-2][1], RoundDone)
    assert pool.now == 10 + CYCLIC.epochs * 10 * 1.5 == pool.busy


def test_rounds_side_by_side_share_their_steps_and_leave_room_when_done():
    gpu = Gpu(base=1.0, each=1.0, beside=0.0, build=0.0)
    steps, seconds = gpu.course([10, 10, 10, 30])
    assert np.interp([10, 30], steps, seconds).tolist() == [50, 50 + 20 * 2]


def test_a_round_goes_on_from_its_checkpoint():
    gpu = Gpu(base=1.0, each=0.0, beside=0.0, build=0.0, batch=10)
    pool = SimulatedPool(gpus=1, gpu=gpu, images=[100], mishaps=Mishaps())
    (spec,) = specs(1, recipe=CYCLIC)
    pool.begin(Task(1, (spec,), {spec: b"4"}))
    while pool.busy == 0:
        list(pool.events(0))
    assert pool.now == (CYCLIC.epochs - 4) * 10


@pytest.mark.slow
@pytest.mark.parametrize("one_after_another", [True, False])
def test_sixty_four_workers_are_busy_nine_tenths_of_the_time(one_after_another, tmp_path):
    """On the paper's CIFAR-100 study, each method five times, as the paper had its single base."""
    plan = paper(
        tmp_path,
        **{
            "seed = 2020": "seed = 2020\nreplicates = 5",
            "[methods.singlebase]\nreplicates = 5": "",
        },
    )
    gpu = Gpu(base=0.0, each=3.54e-3, build=0.0) if one_after_another else Gpu()
    found = simulate(plan, images=IMAGES, gpus=64, gpu=gpu)
    assert found.rounds > 350
    assert found.busy_share >= 0.9


def test_large_tasks_are_quicker_and_cheaper_on_gpus(tmp_path):
    plan = paper(tmp_path)
    small, large = (
        simulate(plan, images=IMAGES, gpus=8, rules=Rules(side_by_side=side_by_side))
        for side_by_side in (False, True)
    )
    assert large.wall < 0.8 * small.wall
    assert large.gpu_hours < 0.8 * small.gpu_hours


def test_a_slow_worker_is_overtaken(tmp_path):
    plan = paper(tmp_path)
    slow = Mishaps(straggling=0.05, slowness=20.0)
    good, bad = (simulate(plan, images=IMAGES, gpus=64, mishaps=each) for each in (Mishaps(), slow))
    # It takes as long to notice as a good worker needs twice, and then once more.
    assert bad.wall < 5 * good.wall
    assert bad.lost > 0


def test_settings_that_make_no_sense_are_refused(small):
    with pytest.raises(PlanError, match=naming("`gpus`", "at least 1", "got 0")):
        simulate(small, images=IMAGES, gpus=0)
    with pytest.raises(PlanError, match=naming("`failing`", "below 1", "got 1")):
        Mishaps(failing=1.0)


def test_beginnings_of_longer_rounds_are_not_trained_on_paper_either(tmp_path):
    plans = [dataclasses.replace(paper(tmp_path), prefixes=each) for each in (False, True)]
    apart, shared = (simulate(plan, images=IMAGES, gpus=8, gpu=QUICK) for plan in plans)
    assert shared.rounds < apart.rounds
