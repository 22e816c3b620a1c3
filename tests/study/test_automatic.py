"""Ensembles that decide on their own size, in a study: whoever trains, and resumed or not."""

import numpy as np
import pytest

from dynsnap import study
from dynsnap.engine import ProcessesEngine
from dynsnap.ensemble import grow_rounds, serial
from dynsnap.errors import PlanError
from dynsnap.store import RunFolder
from dynsnap.study import Ensemble, RoundManager
from dynsnap.testing import CentroidTrainer
from tests.messages import naming
from tests.streams import small_stream as digits_stream

pytestmark = pytest.mark.slow  # whole studies

TEXT = """
[study]
resamples = 20
[training]
epochs = 6
[methods]
names = ["singlebase", "extbagging", "dynsnap-cyc"]
combinations = ["average"]
members = "auto"
tolerance = 0.012
most_rounds = 6
snapshots = 3
[methods.extbagging]
members = 2
"""


def plan_of(folder, text=TEXT):
    (folder / "study.toml").write_text(text)
    return study.read_study(folder / "study.toml")


def grow(folder, plan, *, engine=serial, ahead=0, half=False):
    """Grow all automatic ensembles: whoever has trained the rounds, and the rounds of each."""
    stream = digits_stream()
    store = RunFolder(folder, weights=False, half=half)
    manager = RoundManager(CentroidTrainer(stream), store, None, stream)
    method = plan.method("dynsnap-cyc")
    ensembles = [Ensemble(method=method, generation=number, seed=plan.seed) for number in (1, 2, 3)]
    with store:
        found = manager.grow(ensembles, engine=engine, ahead=ahead)
    return manager, [[done.spec for done in one.rounds] for one in found.values()]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("automatic")
    plan = plan_of(folder)
    manager, specs = grow(folder / "run", plan)
    return plan, manager, specs


def test_a_study_grows_what_each_ensemble_would_grow_alone(grown):
    plan, manager, specs = grown
    method = plan.method("dynsnap-cyc")
    assert manager.trained == sum(map(len, specs))
    assert 2 < max(map(len, specs)) < 6  # the gain has stopped it, not the bounds
    for number, each in enumerate(specs, 1):
        alone = grow_rounds(
            method.plan,
            CentroidTrainer(digits_stream()),
            recipe=method.recipe,
            generation=number,
            seed=plan.seed,
        )
        assert each == [done.spec for done in alone]


def test_rounds_trained_ahead_change_nothing(grown, tmp_path):
    plan, _, specs = grown
    manager, again = grow(tmp_path, plan, ahead=3)
    assert again == specs
    assert manager.trained > sum(map(len, specs))


def test_a_study_that_goes_on_ends_the_same(grown, tmp_path):
    plan, _, specs = grown

    def stops(trainer, asked):
        for done in serial(trainer, asked):
            yield done
            raise KeyboardInterrupt

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            grow(tmp_path, plan, engine=stops)
    manager, again = grow(tmp_path, plan)
    assert again == specs
    assert manager.trained == sum(map(len, specs)) - 4


def test_half_precision_changes_nothing(grown, tmp_path):
    plan, _, specs = grown
    assert grow(tmp_path, plan, half=True)[1] == specs
    assert grow(tmp_path, plan, half=True)[1] == specs


@pytest.mark.slow
def test_worker_processes_change_nothing(grown, tmp_path):
    plan, _, specs = grown
    with ProcessesEngine(workers=2) as engine:
        assert grow(tmp_path, plan, engine=engine)[1] == specs


def test_nothing_large_is_held_in_memory(grown):
    _, manager, _ = grown
    assert all(not head.scores for head in manager.rounds.heads.values())


def test_a_study_file_says_auto_for_all_or_for_one(tmp_path):
    plan = plan_of(tmp_path)
    automatic = plan.method("dynsnap-cyc").plan
    assert (automatic.size, automatic.tolerance, automatic.most_rounds) == ("auto", 0.012, 6)
    assert plan.method("extbagging").plan.size == 2
    assert plan.method("singlebase").plan.single
    one = TEXT.replace('members = "auto"\n', "").replace("members = 2", 'members = "auto"')
    assert plan_of(tmp_path, one).method("extbagging").plan.automatic
    assert plan_of(tmp_path, one).method("dynsnap-cyc").plan.size == 20


def test_a_sweep_may_hold_auto_against_numbers(tmp_path):
    text = TEXT + '[[sweep]]\nover = "members"\nvalues = [2, "auto"]\n'
    (sweep,) = plan_of(tmp_path, text).sweeps
    assert [(label, made.plan.size) for label, made in sweep.points] == [("2", 2), ("auto", "auto")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('members = "auto"', 'members = "all"', naming("`members`", "whole number", "'all'")),
        ("tolerance = 0.012", "tolerance = 2.0", naming("`tolerance`", "below 1", r"2\.0")),
        ("most_rounds = 6", "most_rounds = 1", "at least 2"),
        ('"singlebase", ', '"snapshot", ', naming("snapshot", "one round")),
        ("tolerance", "tolerence", 'Did you mean "tolerance"'),
    ],
)
def test_a_study_that_cannot_decide_is_refused(tmp_path, old, new, message):
    with pytest.raises(PlanError, match=message):
        plan_of(tmp_path, TEXT.replace(old, new))


def test_a_whole_study_runs_and_is_measured(grown, tmp_path):
    plan, _, specs = grown
    stream = digits_stream()
    with RunFolder(tmp_path / "run", weights=False) as store:
        result = study.run(
            plan,
            stream=stream,
            trainer=CentroidTrainer(stream),
            store=store,
            folder=tmp_path / "run",
        )
    row = result.value("dynsnap-cyc", "consistency")
    assert row.cost == pytest.approx(np.mean([len(each) for each in specs]))
