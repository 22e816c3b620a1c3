"""Ensembles that carry members over, against the definition written out by hand."""

import csv
import dataclasses
import itertools
import json
import re
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap import predictions, stabilizing
from dynsnap.cli._report import Training
from dynsnap.data import SELECTION_SET, GrowthPlan, Pool, grow
from dynsnap.ensemble import (
    Rolling,
    Round,
    best,
    combine,
    judged,
    method,
    round_key,
    serial,
    survivors,
)
from dynsnap.errors import InputError, PlanError
from dynsnap.study import Ensemble, EnsemblePredictor, RoundManager, open_stream, read_study
from tests.cli.studies import TINY, contents, dynsnap
from tests.messages import naming
from tests.study.test_waves import Memory

CLASSES = ("a", "b", "c", "d")


def a_stream(selection_holdout=0.5):
    pool, test = (
        Pool(
            name=name,
            inputs=np.arange(80.0).reshape(80, 1),
            labels=np.arange(80) % 4,
            classes=CLASSES,
            ids=np.array([f"{name}-{row}" for row in range(80)]),
        )
        for name in ("train", "test")
    )
    plan = GrowthPlan(fractions=(0.4, 0.7, 1.0), late={"d": 3}, selection_holdout=selection_holdout)
    return grow(pool, plan, test=test)


class Made:
    """A trainer that makes its rounds up from their names, on every evaluation set."""

    fingerprint = "made up"

    def __init__(self, stream, seed=0):
        self.stream, self.seed, self.asked = stream, seed, []

    def train(self, specs, /):
        self.asked += specs
        for spec in specs:
            parent = spec.parent or ""
            name = [self.seed, spec.generation, spec.replicate, spec.index, *parent.encode()]
            rng = np.random.default_rng(name)
            count = spec.recipe.members
            yield Round(
                spec=spec,
                accuracy=rng.integers(0, 5, count) / 10,
                epochs=np.zeros(count, int),
                scores={
                    held: rng.dirichlet(np.ones(len(CLASSES)), (count, len(pool)))
                    for held, pool in self.stream.evaluation.items()
                },
                curve=np.zeros(spec.recipe.epochs),
                seconds=1.0,
            )


def managed(trainer):
    """A manager of rounds with nothing in its store."""
    return RoundManager(trainer, Memory(), None, trainer.stream)


def line_of(rolling, *, size=6):
    made = method("rolling", epochs=8, members=size, snapshots=4, rolling=rolling)
    return [Ensemble(method=made, generation=number) for number in (1, 2, 3)]


def by_hand(stream, trainer, rolling, size):
    """Generation after generation, one member at a time, as the words say."""
    found = []
    for ensemble in line_of(rolling, size=size):
        rows = stream.selection_holdout[ensemble.generation - 1]
        truth = stream.evaluation["untouched"].labels[rows]
        carried = []
        if found:
            before = found[-1]
            labels = [done.scores["untouched"][j][rows].argmax(axis=1) for done, j in before]
            together = combine(
                np.stack([done.scores["untouched"][j][rows] for done, j in before]),
                how="average",
                known=np.stack([stream.learned(done.spec.generation) for done, _ in before]),
            ).argmax(axis=1)
            merit = [
                np.mean(said == truth) + rolling.agreement * np.mean(said == together)
                for said in labels
            ]
            order = sorted(range(len(before)), key=lambda place: -merit[place])
            ranked = [before[place] for place in order]
            most = round(rolling.carry_over * size)
            most = most if rolling.carry_over == 1 else min(most, size - 1)
            carried = ranked[:most]
        fresh, index = [], 0

        def accuracy(member, rows=rows, truth=truth):
            done, j = member
            return np.mean(done.scores["untouched"][j][rows].argmax(axis=1) == truth)

        while True:
            while len(carried) + len(fresh) < size:
                (done,) = trainer.train([ensemble.spec(index)])
                fresh += [(done, j) for j in survivors(done.accuracy)]
                index += 1
            if not found or not fresh[: size - most]:
                break
            bar = (
                np.mean([accuracy(member) for member in fresh[: size - most]])
                - rolling.max_accuracy_gap
            )
            held = [member for member in ranked if accuracy(member) >= bar][:most]
            if held == carried:
                break
            carried = held  # those that lag behind make room
        found.append(carried + fresh[: size - len(carried)])
    return found


@settings(max_examples=25)
@given(
    st.sampled_from([0.2, 0.5, 0.75, 0.9, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 0.05, 0.2, 1.0]),
    st.integers(3, 9),
    st.integers(0, 5),
)
def test_members_are_carried_over_as_the_definition_says(carry, agreement, lag, size, seed):
    stream, rolling = (
        a_stream(),
        Rolling(carry_over=carry, agreement=agreement, max_accuracy_gap=lag),
    )
    line = line_of(rolling, size=size)
    grown = managed(Made(stream, seed)).grow(line, engine=serial)
    expected = by_hand(stream, Made(stream, seed), rolling, size)
    for ensemble, members in zip(line, expected, strict=True):
        found = grown[ensemble]
        assert found.members.sources == tuple((done.spec, j) for done, j in members)
        scores = np.stack([done.scores["test"][j] for done, j in members])
        assert np.array_equal(found.scores("test"), scores)


def test_a_rolling_ensemble_trains_no_round_that_a_fresh_one_does_not():
    stream = a_stream()
    fresh = method("dynsnap-cyc", epochs=8, members=6, snapshots=4)
    ensembles = [Ensemble(method=fresh, generation=number) for number in (1, 2, 3)]
    alone, both = Made(stream), Made(stream)
    managed(alone).grow(ensembles, engine=serial)
    grown = managed(both).grow([*ensembles, *line_of(Rolling(carry_over=0.5))], engine=serial)
    assert both.asked == alone.asked
    first = line_of(Rolling(carry_over=0.5))[0]
    assert grown[first].members.sources == grown[ensembles[0]].members.sources


def test_carried_members_are_trained_on_from_where_they_were():
    stream, rolling = a_stream(), Rolling(carry_over=0.5, finetune_epochs=2, max_accuracy_gap=1.0)
    trainer = Made(stream)
    manager = managed(trainer)
    line = line_of(rolling)
    grown = manager.grow(line, engine=serial)
    for before, ensemble in itertools.pairwise(line):
        refreshed = grown[ensemble].members.sources[:3]
        assert all(spec.recipe.epochs == 2 for spec, _ in refreshed)
        assert all(spec.generation == ensemble.generation for spec, _ in refreshed)
        assert len({spec.parent for spec, _ in refreshed}) == 3
        places = {str(place) for _, place in grown[before].members.sources}
        assert {spec.parent.rpartition("/")[2] for spec, _ in refreshed} <= places
        # A few epochs on top are too few to learn a class.
        assert grown[ensemble].known_classes[:, 3].tolist()[:3] == [False] * 3
    asked = len(trainer.asked)
    manager.grow(line, engine=serial)
    assert len(trainer.asked) == asked  # all was known


def test_whom_rounds_go_on_from_is_found_once_however_often_it_is_asked():
    manager = managed(Made(a_stream()))
    line = line_of(Rolling(carry_over=0.25, warm_start=True), size=8)
    grown = manager.grow(line, engine=serial)
    read, load = [], manager.rounds.load
    manager.rounds.load = lambda spec: (read.append(spec), load(spec))[1]
    assert grown[line[1]].parents and grown[line[2]].parents
    assert not read  # they were known when the rounds were asked for


def test_new_rounds_go_on_from_the_best_member_of_each_old_round():
    stream, rolling = a_stream(), Rolling(carry_over=0.25, warm_start=True, max_accuracy_gap=1.0)
    trainer = Made(stream)
    manager = managed(trainer)
    line = line_of(rolling, size=8)
    grown = manager.grow(line, engine=serial)
    for before, ensemble in itertools.pairwise(line):
        rows = stream.selection_holdout[ensemble.generation - 1]
        truth = stream.evaluation["untouched"].labels[rows]
        merit = {}
        for spec, place in grown[before].members.sources:
            said = manager.rounds.load(spec).scores["untouched"][place][rows].argmax(axis=1)
            merit[spec, place] = np.mean(said == truth)
        best_of = {}
        for spec, place in sorted(merit, key=merit.get, reverse=True):  # stable, as ours is
            best_of.setdefault(spec, place)
        wanted = [f"{round_key(trainer, spec)}/{place}" for spec, place in best_of.items()]
        specs = [done.spec for done in grown[ensemble].rounds]
        assert [spec.parent for spec in specs] == [
            wanted[index % len(wanted)] for index in range(len(specs))
        ]
        assert [spec.recipe for spec in specs] == [ensemble.method.recipe] * len(specs)
        # Nothing of such a round is pruned, so six new members take two rounds of four.
        new = [one for one in grown[ensemble].members.sources if one[0] in specs]
        assert len(new) == 6 and len(specs) == 2
        # They have learned what their own generation has.
        known = grown[ensemble].known_classes[-6:]
        np.testing.assert_array_equal(known, [stream.learned(ensemble.generation)] * 6)
    asked = len(trainer.asked)
    manager.grow(line, engine=serial)
    assert len(trainer.asked) == asked
    gathered, missing = manager.gather(line)
    assert set(gathered) == set(line) and not missing


def test_who_lags_behind_makes_room_for_the_next_best():
    accuracy, agreement = np.array([0.9, 0.9, 0.5, 0.5]), np.array([0.0, 0.0, 1.0, 1.0])
    keen, new = Rolling(agreement=1.0), np.array([0.9])
    assert best(accuracy, agreement, count=2, rolling=keen, new=new).tolist() == [0, 1]


def test_a_member_is_judged_by_what_it_knows():
    scores = np.eye(3)[[[0, 1, 0, 1]]]  # right about the first two rows
    known = np.array([[True, True, False]])
    new = np.eye(3)[[[0, 1, 2, 2], [0, 0, 2, 2]]]
    accuracy, agreement, bars = judged(scores, np.array([0, 1, 2, 2]), known=known, new=new)
    assert (accuracy.tolist(), agreement.tolist()) == ([1.0], [1.0])
    assert bars.tolist() == [[1.0], [0.5]]


@pytest.mark.parametrize(("size", "carry", "count"), [(2, 0.75, 1), (4, 0.9, 3), (4, 1.0, 4)])
def test_a_small_ensemble_too_has_somebody_new(size, carry, count):
    assert Rolling(carry_over=carry).carried(size) == count


def test_the_best_are_carried_over_and_agreement_counts_where_asked():
    accuracy, agreement = np.array([0.5, 0.7, 0.7, 0.6]), np.array([0.9, 0.1, 0.2, 0.8])
    assert best(accuracy, agreement, count=3, rolling=Rolling()).tolist() == [1, 2, 3]
    keen = Rolling(agreement=1.0)
    assert best(accuracy, agreement, count=2, rolling=keen).tolist() == [0, 3]
    with pytest.raises(InputError, match=naming("5 members", "has 4")):
        best(accuracy, agreement, count=5, rolling=Rolling())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"carry_over": -0.1}, naming("`carry_over`", "0 and 1", r"-0\.1")),
        ({"carry_over": 1.5}, naming("`carry_over`", "0 and 1", r"1\.5")),
        ({"carry_over": float("nan")}, naming("`carry_over`", "0 and 1", "nan")),
        ({"max_accuracy_gap": -0.1}, naming("`max_accuracy_gap`", "negative", r"-0\.1")),
        ({"finetune_epochs": -1}, naming("`finetune_epochs`", "number of epochs", "-1")),
        ({"finetune_epochs": 1.5}, naming("`finetune_epochs`", "number of epochs", r"1\.5")),
        ({"agreement": -1}, naming("`agreement`", "negative", "-1")),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        Rolling(**wrong)


@pytest.mark.parametrize("carry", [0.0, 0.02])
def test_carrying_nobody_over_is_refused(carry):
    with pytest.raises(PlanError, match=r"`carry_over` = .* of 20 members .*dynsnap-cyc"):
        method("rolling", epochs=200, rolling=Rolling(carry_over=carry))


def test_data_without_untouched_rows_is_refused_with_the_way_out():
    manager = managed(Made(a_stream(selection_holdout=0.0)))
    with pytest.raises(PlanError, match=r"set `selection_holdout` in \[data.growth\]"):
        manager.grow(line_of(Rolling()), engine=serial)


# --- through the real commands --------------------------------------------------------------

ROLLING = (
    TINY.replace("[data.growth]", "[data.growth]\nselection_holdout = 0.5")
    .replace('"dynsnap-cyc"]', '"dynsnap-cyc", "rolling"]')
    .replace("members = 2", "members = 4")
    .replace("resamples = 30", 'resamples = 30\nkeep = "weights"')
    + """
[methods.rolling]
carry_over = 0.5

[[variant]]
name = "refreshed"
carry_over = 0.5
finetune_epochs = 2

[[variant]]
name = "onward"
carry_over = 0.5
warm_start = true

[[variant]]
name = "stubborn"
carry_over = 1.0
class_aware = false

[[sweep]]
over = "carry_over"
values = [0.25, 0.75]
"""
)


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """A folder with the study file, and its run, which is trained once."""
    folder = tmp_path_factory.mktemp("rolled")
    (folder / "rolling.toml").write_text(ROLLING)
    ended = dynsnap("run", folder / "rolling.toml", "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder


def stored(run):
    """What each file of a run folder's rounds is of."""
    return {
        path: json.loads(dynsnap("runs", run, "show", path.stem).stdout)["spec"]
        for path in (run / "rounds").iterdir()
    }


def test_a_study_with_rolling_ensembles_runs_and_tells_the_cost_of_a_retrain(rolled, tmp_path):
    shutil.copytree(rolled, tmp_path, dirs_exist_ok=True)
    lines = (tmp_path / "run/table.csv").read_text().splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    retrain = {
        row["method"]: float(row["value"]) for row in rows if row["metric"] == "retrain_cost"
    }
    assert retrain["rolling"] >= 1
    assert retrain["refreshed"] == retrain["rolling"] + 2 * 2 / 8
    assert retrain["onward"] >= 1
    assert retrain["stubborn"] == retrain["never-retrain"] == 0
    folder = tmp_path / "run/predictions"
    first, kept = (
        predictions.read(folder / f"{name}-average-g1.parquet") for name in ("rolling", "stubborn")
    )
    assert np.array_equal(first.scores, kept.scores)
    assert np.array_equal(
        kept.scores, predictions.read(folder / "stubborn-average-g2.parquet").scores
    )
    assert (tmp_path / "run/sweeps.csv").read_text().count("carry,0.75") > 3
    # All of them share the first round of generation 2, but for one, whose rounds go on.
    plan = read_study(tmp_path / "rolling.toml")
    onward = dataclasses.replace(plan, methods=(plan.method("onward"),))
    names = [
        ("dynsnap-cyc", "first round of generation 2"),
        ("onward", "first round of generation 1"),
    ]
    for asked, wanted in zip((plan, onward), names, strict=True):
        (curve,) = Training.of(tmp_path / "run", asked).curves
        assert (curve.method, curve.name) == wanted
    # Where a round that goes on is missing, so is whoever needs it, and nobody else.
    going_on = [
        path
        for path, spec in stored(tmp_path / "run").items()
        if spec["parent"] is not None and spec["recipe"]["epochs"] == 8
    ]
    going_on[0].unlink()
    ended = dynsnap("run", tmp_path / "rolling.toml", "--out", tmp_path / "run", "--no-training")
    told = " ".join(ended.stdout.split())
    assert ended.exit_code == 0, ended.stderr
    assert re.search(naming("Left out: onward", "1 round", r"from a member\)"), told)


def test_rounds_that_nobody_can_count_yet_are_named(tmp_path):
    (tmp_path / "rolling.toml").write_text(ROLLING)
    told = " ".join(dynsnap("run", tmp_path / "rolling.toml", "--plan").stdout.split())
    assert re.search(naming(r"\(refreshed, onward\)", "onward, stubborn", "first generation"), told)
    (tmp_path / "tiny.toml").write_text(TINY)
    told = dynsnap("run", tmp_path / "tiny.toml", "--plan").stdout
    assert "Not counted" not in told and "carry members over" not in told


@pytest.mark.slow
def test_worker_processes_give_the_same_and_find_the_members_to_train_on(rolled, tmp_path):
    ended = dynsnap(
        *("run", rolled / "rolling.toml", "--out", tmp_path, "-q"),
        *("--engine", "processes", "--workers", "1"),
    )
    assert ended.exit_code == 0, ended.stderr
    assert contents(tmp_path) == contents(rolled / "run")


def test_a_trained_rolling_ensemble_predicts_what_the_study_said(rolled, tmp_path):
    shutil.copytree(rolled, tmp_path, dirs_exist_ok=True)
    ended = dynsnap(
        *("train", tmp_path / "rolling.toml", "--method", "rolling", "--generation", 2),
        *("--out", tmp_path / "run", "-q"),
    )
    assert ended.exit_code == 0, ended.stderr
    test = read_inputs(tmp_path / "rolling.toml")
    np.savez(tmp_path / "in.npz", inputs=test.inputs, ids=test.ids)
    ended = dynsnap(
        *("predict", tmp_path / "run/ensembles/rolling-g2.ensemble", tmp_path / "in.npz"),
        *("-o", tmp_path / "out.parquet"),
    )
    assert ended.exit_code == 0, ended.stderr
    found = predictions.read(tmp_path / "out.parquet")
    expected = predictions.read(tmp_path / "run/predictions/rolling-average-g2.parquet")
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)


def read_inputs(file):
    return open_stream(read_study(file).data)[0].evaluation["test"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("carry_over = 0.5\n\n", "carry_over = 2\n\n"),
            "`carry_over` must be between 0 and 1, got 2.0",
        ),
        (("carry_over = 0.5\n\n", "cary = 0.5\n\n"), "has no setting `cary`"),
        (('keep = "weights"', ""), 'refreshed trains on members.*`keep = "weights"`'),
        (("finetune_epochs = 2", "warm_start = true"), "refreshed trains on members"),
        (("warm_start = true", "warm_start = 1"), "`warm_start`"),
        (("selection_holdout = 0.5", ""), r"set `selection_holdout` in \[data.growth\]"),
        (
            ('over = "carry_over"', 'over = "carry_over"\nmethod = "dynsnap-cyc"'),
            "sweep over `carry_over`",
        ),
    ],
)
def test_what_is_wrong_with_a_rolling_study_is_said_in_one_line(tmp_path, change, message):
    changed = ROLLING.replace(*change, 1)
    if "refreshed trains" in message:
        changed = changed.replace('keep = "weights"', "")
    (tmp_path / "rolling.toml").write_text(changed)
    ended = dynsnap("run", tmp_path / "rolling.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 2, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "run/rounds").exists() or not list((tmp_path / "run/rounds").iterdir())
    assert re.search(message, ended.stderr), ended.stderr


@pytest.mark.parametrize("how", ["average", "majority"])
@pytest.mark.parametrize("rolling", [None, Rolling(carry_over=0.5)])
def test_answers_stand_from_generation_to_generation(rolling, how):
    stream = a_stream()
    plain = method("dynsnap-cyc", epochs=8, members=6, snapshots=4)
    plain = dataclasses.replace(plain, rolling=rolling)
    wary = dataclasses.replace(plain, name="standing", margin=0.1)
    both = [
        [Ensemble(method=one, generation=number) for number in (1, 2, 3)] for one in (plain, wary)
    ]
    grown = managed(Made(stream)).grow([*both[0], *both[1]], engine=serial)
    pools = {name: stream.evaluation[name] for name in ("test", "late")}
    predictor = EnsemblePredictor(grown)
    said = [
        {
            (name, one.generation): made
            for one in line
            for name, _, made in predictor.predictions(one, pools, [how])
        }
        for line in both
    ]
    for name in pools:
        deployed = said[0][name, 1]
        np.testing.assert_array_equal(said[1][name, 1].scores, deployed.scores)
        for number in (2, 3):
            deployed = predictions.stabilize(deployed, said[0][name, number], margin=0.1)
            found = said[1][name, number]
            np.testing.assert_array_equal(found.scores, deployed.scores)
    # Whoever asks for the last generation first hears the same.
    for name, _, made in EnsemblePredictor(grown).predictions(both[1][2], pools, [how]):
        np.testing.assert_array_equal(made.scores, said[1][name, 3].scores)
    for fresh, kept in zip(*both, strict=True):
        specs = [[done.spec for done in grown[one].rounds] for one in (fresh, kept)]
        assert specs[0] == specs[1]


STANDING = (
    TINY.replace("late = { 6 = 2 }", "late = { 6 = 2 }\n")
    + """
[[variant]]
name = "standing"
method = "dynsnap-cyc"
margin = 0.3

[[sweep]]
over = "margin"
values = [0, 0.3, 1.0]
"""
)


@pytest.mark.slow
def test_a_study_lets_answers_stand_at_no_further_training(tmp_path):
    (tmp_path / "study.toml").write_text(STANDING)
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    held = tmp_path / "run/predictions"
    for folder in (held, held / "late"):
        said = [predictions.read(folder / f"dynsnap-cyc-average-g{i}.parquet") for i in (1, 2)]
        made = predictions.read(folder / "standing-average-g2.parquet")
        np.testing.assert_array_equal(made.labels, predictions.stabilize(*said, margin=0.3).labels)
    rows = {
        (row["method"], row["metric"]): float(row["value"])
        for row in csv.DictReader((tmp_path / "run/table.csv").open())
        if row["value"]
    }
    assert rows["standing", "retrain_cost"] == rows["dynsnap-cyc", "retrain_cost"]
    points = {
        row["point"]: float(row["value"])
        for row in csv.DictReader((tmp_path / "run/sweeps.csv").open())
        if row["metric"] == "consistency"
    }
    assert points["0"] == rows["dynsnap-cyc", "consistency"]
    assert points["0.3"] == rows["standing", "consistency"]
    assert points["0"] < points["0.3"] <= points["1"]
    # Where the first generation is gone, nobody knows what the second stands on.
    for path, spec in stored(tmp_path / "run").items():
        if spec["generation"] == 1 and spec["recipe"]["schedule"]["kind"] == "cyclic":
            path.unlink()
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "--no-training")
    assert "Left out: dynsnap-cyc, standing." in ended.stdout
    assert (held / "dynsnap-cyc-average-g2.parquet").exists()
    assert not (held / "standing-average-g2.parquet").exists()


@pytest.mark.parametrize("how", ["average", "majority"])
def test_a_rule_with_a_cost_is_chosen_on_the_holdout_of_each_generation(how):
    stream = a_stream()
    plain = method("dynsnap-cyc", epochs=8, members=6, snapshots=4)
    wary = dataclasses.replace(plain, name="wary", cost_ratio=2.0)
    both = [
        [Ensemble(method=one, generation=number) for number in (1, 2, 3)] for one in (plain, wary)
    ]
    grown = managed(Made(stream)).grow([*both[0], *both[1]], engine=serial)
    pools = dict(stream.evaluation)
    predictor = EnsemblePredictor(grown, stream)
    fresh, kept = (
        [{name: made for name, _, made in predictor.predictions(one, pools, [how])} for one in line]
        for line in both
    )
    deployed = fresh[0]
    for number in (1, 2):
        rows = stream.selection_holdout[number]
        held = [one[SELECTION_SET].take(rows) for one in (deployed, fresh[number])]
        rule = stabilizing.choose_cost_rule(*held, ratio=2.0).rule
        deployed = {
            name: stabilizing.update(deployed[name], fresh[number][name], rule) for name in pools
        }
        for name in pools:
            np.testing.assert_array_equal(kept[number][name].labels, deployed[name].labels)
            np.testing.assert_allclose(kept[number][name].scores, deployed[name].scores, atol=1e-6)
    # The last generation first gives the same.
    last = EnsemblePredictor(grown, stream).predictions(both[1][2], pools, [how])
    for name, _, made in last:
        np.testing.assert_array_equal(made.labels, kept[2][name].labels)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("cost_ratio = 2.0", ("cost_ratio", "selection_holdout")),
        ("cost_ratio = 0.5", ("cost_ratio", "0.5")),
        ("cost_ratio = 2.0\nmargin = 0.1", ("cost_ratio", "margin")),
    ],
)
def test_a_cost_that_cannot_be_used_is_refused_before_training(tmp_path, setting, named):
    (tmp_path / "study.toml").write_text(STANDING.replace("margin = 0.3", setting, 1))
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 2, ended.stderr
    assert re.search(naming(*named), ended.stderr)
    assert not list((tmp_path / "run").glob("rounds/*"))


def test_a_margin_out_of_range_is_refused_by_name(tmp_path):
    (tmp_path / "study.toml").write_text(STANDING.replace("margin = 0.3", "margin = 3"))
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 2
    assert re.search(naming("`margin`", "0 and 1", "got 3"), ended.stderr)
