"""Studies in which short cyclic rounds are the first windows of long ones."""

import csv
import dataclasses
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap import predictions, study
from dynsnap.ensemble import RoundSpec, beginning, begins, method, methods, round_key, serial
from dynsnap.errors import Interrupted, PlanError
from dynsnap.store import RunFolder
from dynsnap.study import DataPlan, RoundManager, StudyPlan, ensembles_of, trained_as, workload
from dynsnap.testing import CentroidTrainer, RecordingMonitor
from tests.cli.studies import TINY, contents, dynsnap
from tests.engine.test_more import Queue
from tests.messages import naming
from tests.streams import small_stream
from tests.study.test_waves import ByName, Memory

pytestmark = pytest.mark.slow  # whole studies, several times each

# Windows of two epochs everywhere; Snapshot has 8 of them, and the longest point of the sweep 16.
TEXT = """
[study]
resamples = 20
prefixes = true

[training]
epochs = 8

[methods]
names = ["singlebase", "snapshot", "dynsnap-cyc"]
combinations = ["average"]
members = 8
snapshots = 4

[[sweep]]
over = "snapshots"
values = [1, 2, 4, 8, 16]
window = 2
members = "snapshots"
beta = 1.0
"""
WINDOWS = {1: 0.25, 2: 0.5, 4: 1.0, 8: 2.0, 16: 4.0}  # of each point, and what it costs


@pytest.fixture(scope="module")
def stream():
    return small_stream()


def read(folder, text=TEXT):
    folder.mkdir(exist_ok=True)
    file = folder / "study.toml"
    file.write_text(text)
    return study.read_study(file)


def execute(plan, folder, stream, monitor=None, **settings):
    keeps = plan.keep == "weights"
    with RunFolder(folder, weights=keeps, half=plan.half, training_epochs=plan.epochs) as store:
        trainer = CentroidTrainer(stream, monitor=monitor, keep_weights=keeps)
        checkpoints = store.checkpoints(lambda spec: round_key(trainer, spec))
        trainer = CentroidTrainer(
            stream, monitor=monitor, checkpoints=checkpoints, keep_weights=keeps
        )
        return study.run(
            plan, stream=stream, trainer=trainer, store=store, folder=folder, **settings
        )


def stored(folder):
    """The facts of every stored round."""
    return [entry.facts for entry in RunFolder(folder, weights=False).entries()]


def cyclic(folder):
    """Generation, index and epochs of every stored round with cycles."""
    specs = [facts["spec"] for facts in stored(folder)]
    return {
        (spec["generation"], spec["index"], spec["recipe"]["epochs"])
        for spec in specs
        if spec["recipe"]["schedule"]["kind"] == "cyclic"
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory, stream):
    folder = tmp_path_factory.mktemp("prefixes")
    plan = read(folder)
    return plan, folder, execute(plan, folder, stream)


def a_plan(*chosen, **settings):
    return StudyPlan(
        name="made",
        data=DataPlan(),
        model={},
        training={},
        epochs=8,
        methods=chosen,
        baseline=method("singlebase", epochs=8, snapshots=4),
        **{"prefixes": True, **settings},
    )


def test_only_the_longest_of_all_rounds_with_equal_windows_is_trained(finished):
    plan, folder, result = finished
    firsts = {(generation, epochs) for generation, index, epochs in cyclic(folder) if index == 0}
    assert firsts == {(1, 32), (2, 32), (3, 32)}
    others = {epochs for _, index, epochs in cyclic(folder) if index > 0}
    assert others == {8}  # DynSnap-cyc has further rounds, and nobody longer has
    assert result.trained == result.rounds == len(stored(folder))
    certain = {str(spec) for spec in workload(plan, generations=3).rounds}
    assert certain <= {facts["name"] for facts in stored(folder)}


def test_as_many_rounds_fewer_are_trained_as_the_plan_says(finished, tmp_path, stream):
    plan, _, result = finished
    ahead = workload(plan, generations=3)
    assert ahead.spared == 3 * 4  # N = 1, 2, 4 and 8; DynSnap-cyc and Snapshot are among them
    assert ahead.spared_cost == 3 * (0.25 + 0.5 + 1 + 2)
    own = dataclasses.replace(plan, prefixes=False)
    every = workload(own, generations=3)
    assert (every.spared, every.spared_cost) == (0, 0)
    assert len(every.rounds) - len(ahead.rounds) == ahead.spared
    assert every.cost - ahead.cost == ahead.spared_cost
    assert [one.cost for one in every.methods] == [one.cost for one in ahead.methods]
    apart = execute(own, tmp_path, stream)
    assert {epochs for _, index, epochs in cyclic(tmp_path) if index == 0} == {2, 4, 8, 16, 32}
    assert apart.trained >= len(every.rounds)
    assert result.trained < apart.trained


def test_every_method_and_point_costs_what_it_would_on_its_own(finished):
    _, folder, result = finished
    assert result.value("snapshot", "accuracy").cost == 2.0
    assert result.value("snapshot", "retrain_cost").value == 2.0
    found = {point.point: point.row for point in result.sweeps}
    assert {int(point): row.cost for point, row in found.items()} == WINDOWS
    longest = found["16"].seconds
    for count in WINDOWS:
        assert found[str(count)].seconds == pytest.approx(longest * count / 16)
    # What was really trained: the long rounds as a whole.
    total = sum(facts["seconds"] for facts in stored(folder))
    assert result.seconds == pytest.approx(total)
    costs = {facts["spec"]["recipe"]["epochs"]: facts["cost"] for facts in stored(folder)}
    assert costs == {8: 1.0, 32: 4.0}


def long_round(folder, generation):
    """The one long round of a generation, as it is stored."""
    (key,) = [
        facts["key"]
        for facts in stored(folder)
        if facts["spec"]["recipe"]["epochs"] == 32 and facts["spec"]["generation"] == generation
    ]
    recipe = method("snapshot", epochs=16, members=16).recipe
    done = RunFolder(folder, weights=False).get(
        key, RoundSpec(recipe=recipe, generation=generation)
    )
    assert done is not None
    return done


def test_members_are_the_first_snapshots_of_the_long_round(finished):
    """A slow reference: the average of the first eight, which are all of Snapshot's."""
    _, folder, _ = finished
    for generation in (1, 2, 3):
        whole = long_round(folder, generation)
        said = predictions.read(folder / f"predictions/snapshot-average-g{generation}.parquet")
        expected = whole.scores["test"][:8].astype(float).mean(axis=0)
        np.testing.assert_allclose(said.scores, expected, atol=1e-6)


def test_the_first_round_of_dynsnap_is_pruned_among_its_own_windows(finished, stream):
    plan, folder, _ = finished
    store = RunFolder(folder, weights=False)
    trainer = CentroidTrainer(stream)
    manager = RoundManager(trainer, store, None, stream, trained_as=trained_as(plan))
    gathered, missing = manager.gather(ensembles_of(plan, 3))
    assert not missing
    ensemble = next(one for one in gathered if one.method.name == "dynsnap-cyc")
    first = manager.rounds.load(ensemble.spec(0))
    whole = long_round(folder, 1)
    assert first.curve.tolist() == whole.curve[:8].tolist()
    bar = whole.accuracy[:4].mean()
    kept = [place for spec, place in gathered[ensemble].members.sources if spec.index == 0]
    assert sorted(kept) == np.flatnonzero(whole.accuracy[:4] >= bar).tolist()


def test_a_study_without_the_setting_trains_every_round_under_its_own_name(tmp_path):
    plan = read(tmp_path, TEXT.replace("prefixes = true\n", ""))
    assert not plan.prefixes
    serving = trained_as(plan)
    for ensemble in ensembles_of(plan, 3):
        for spec in ensemble.certain():
            assert serving(spec) == spec


def test_what_is_no_yes_or_no_is_refused(tmp_path):
    with pytest.raises(PlanError, match=naming("`prefixes`", "true or false", "40")):
        read(tmp_path, TEXT.replace("prefixes = true", "prefixes = 40"))


def test_the_same_study_again_trains_nothing(finished, stream, tmp_path):
    plan, folder, first = finished
    copy = shutil.copytree(folder, tmp_path / "again")
    again = execute(plan, copy, stream)
    assert (again.trained, again.rounds) == (0, first.rounds)
    assert contents(copy) == contents(folder)


@pytest.mark.slow
def test_a_study_that_is_stopped_within_a_long_round_goes_on_to_the_same_end(
    finished, stream, tmp_path
):
    plan, folder, whole = finished
    read(tmp_path)
    stops = 0
    while True:
        try:
            # A notebook counts epochs of all rounds: 23 end within a long round, time and again.
            result = execute(plan, tmp_path, stream, monitor=Watching(stop_after=23))
        except Interrupted:
            stops += 1
        else:
            break
    assert stops > 5
    assert result.rounds == whole.rounds == len(stored(tmp_path))
    assert contents(tmp_path) == contents(folder)


class Watching(RecordingMonitor):
    """What a study tells beside what a trainer tells is of no interest."""

    def wave_begins(self, specs, /, *, found):
        pass

    def round_done(self, done, /):
        pass

    def measured(self, method, combination, /):
        pass


@pytest.mark.slow
def test_a_second_study_in_the_folder_uses_the_rounds_that_both_name(finished, stream, tmp_path):
    """The sweep in a study of its own: its longest round is the longest of the first one too."""
    _, folder, _ = finished
    copy = shutil.copytree(folder, tmp_path / "both")
    names = TEXT.replace('"singlebase", "snapshot", "dynsnap-cyc"', '"singlebase"')
    again = execute(read(copy, names), copy, stream)
    assert again.trained == 0
    # A shorter longest round has another name, and so another randomness.
    shorter = read(copy, names.replace("8, 16]", "8]"))
    assert execute(shorter, copy, stream).trained == 3
    # Which is that of Snapshot, where there is no sweep.
    without = read(copy, TEXT[: TEXT.index("[[sweep]]")])
    assert execute(without, copy, stream).trained == 0


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
def test_scores_in_half_precision_and_learners_are_cut_alike(stream, tmp_path, half):
    """The learners of a prefix are those that said what is stored."""
    text = TEXT.replace(
        "prefixes = true",
        f'prefixes = true\nkeep = "weights"\nhalf_precision = {str(half).lower()}',
    )
    plan = read(tmp_path, text)
    result = execute(plan, tmp_path, stream)
    rounds = len(stored(tmp_path))
    trainer = CentroidTrainer(stream)
    with RunFolder(tmp_path, weights=True, half=half) as store:
        (made,) = study.train_ensembles(
            plan, plan.method("snapshot"), [2], stream=stream, trainer=trainer, store=store
        )
    assert len(stored(tmp_path)) == rounds == result.rounds
    assert len(made.learners) == 8
    assert made.price.kappa == 2.0
    said = predictions.read(tmp_path / "predictions/snapshot-average-g2.parquet")
    scores = trainer.score(made.learners, stream.evaluation["test"].inputs).mean(axis=0)
    np.testing.assert_allclose(said.scores, scores, atol=1e-3 if half else 1e-6)


def test_what_lacks_its_long_round_is_left_out(finished, stream, tmp_path):
    plan, folder, _ = finished
    copy = shutil.copytree(folder, tmp_path / "less")
    for facts in stored(copy):
        if facts["spec"]["recipe"]["epochs"] == 32 and facts["spec"]["generation"] == 2:
            RunFolder(copy, weights=False).remove(facts["key"])
    result = execute(plan, copy, stream, training=False)
    assert {row.method for row in result.rows} == {
        *("singlebase", "noise-floor", "never-retrain", "never-retrain-dynsnap-cyc")
    }
    (missing,) = result.missing
    assert (missing.index, missing.generation, missing.replicate) == (0, 2, 0)
    assert (missing.recipe.schedule.kind, missing.recipe.epochs) == ("cyclic", 32)
    assert not result.sweeps


@st.composite
def plans(draw):
    """Methods of many lengths, some of which have windows in common."""
    counts = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5, unique=True))
    window = draw(st.integers(1, 3))
    chosen = [
        dataclasses.replace(
            method(
                "dynsnap-cyc",
                epochs=count * window,
                snapshots=count,
                members=draw(st.integers(1, 20)),
                beta=draw(st.sampled_from([1.0, "mean"])),
            ),
            name=f"n{count}",
        )
        for count in counts
    ]
    chosen += methods(epochs=8, members=draw(st.sampled_from([1, 2, 4, 8])), snapshots=4).values()
    return a_plan(*chosen, replicates=draw(st.integers(1, 2)), ahead=draw(st.integers(0, 2)))


def wanted_by(plan):
    """Every round that the study may come to ask for, within reason."""
    return [
        ensemble.spec(index)
        for ensemble in ensembles_of(plan, 2)
        for index in range(ensemble.wanted([]) + 3)
    ]


@settings(max_examples=30)
@given(plans())
def test_a_round_is_trained_as_the_longest_that_the_study_is_certain_to_train(plan):
    serving = trained_as(plan)
    certain = {spec for one in ensembles_of(plan, 2) for spec in one.certain()}
    for spec in wanted_by(plan):
        whole = serving(spec)
        assert begins(spec, whole)
        assert serving(whole) == whole
        assert whole == spec or whole in certain
        assert not any(
            begins(spec, one) and one.recipe.epochs > whole.recipe.epochs for one in certain
        )
    ahead = workload(plan, generations=2)
    assert set(ahead.rounds) == set(map(serving, certain))
    assert len(ahead.rounds) + ahead.spared == len(certain)
    assert ahead.spared_cost >= -1e-9


class Prefixed(ByName):
    """A trainer whose long rounds begin like its short ones: what makes prefixes invisible."""

    def train(self, specs, /):
        self.asked.append(list(specs))
        for spec in specs:
            if spec.recipe.selection != "window":
                yield from ByName().train([spec])
                continue
            recipe = dataclasses.replace(
                spec.recipe, epochs=100 * spec.recipe.window, snapshots=100
            )
            (done,) = ByName().train([dataclasses.replace(spec, recipe=recipe)])
            yield dataclasses.replace(beginning(done, spec), seconds=float(spec.recipe.epochs))


@pytest.mark.slow
@settings(max_examples=30)
@given(plans(), st.sampled_from(["serial", "first first", "last first"]))
def test_ensembles_are_the_same_as_without_where_randomness_is_the_same(plan, order):
    ensembles = ensembles_of(plan, 2)
    engine = {"serial": serial, "first first": Queue(False), "last first": Queue(True)}[order]
    alone, trainer = RoundManager(Prefixed(), Memory()), Prefixed()
    apart = alone.grow(ensembles, engine=serial)
    store = Memory()
    manager = RoundManager(trainer, store, trained_as=trained_as(plan))
    grown = manager.grow(ensembles, engine=engine, ahead=plan.ahead)
    for ensemble in ensembles:
        for ours, theirs in zip(grown[ensemble].rounds, apart[ensemble].rounds, strict=True):
            assert ours.spec == theirs.spec
            assert ours.accuracy.tolist() == theirs.accuracy.tolist()
            assert ours.seconds == pytest.approx(theirs.seconds)
            loaded, known = (one.rounds.load(ours.spec) for one in (manager, alone))
            assert loaded.scores["test"].tolist() == known.scores["test"].tolist()
    asked = [spec for wave in trainer.asked for spec in wave]
    assert len(asked) == len(set(asked)) == len(store) == manager.trained
    assert all(trained_as(plan)(spec) == spec for spec in asked)
    if order != "serial":
        assert engine.calls == 1  # whoever waits for the beginning of a round asks when it is there


COMMANDS = TINY.replace("resamples = 30", 'resamples = 30\nprefixes = true\nkeep = "weights"')
COMMANDS = COMMANDS.replace(
    '["singlebase", "dynsnap-cyc"]', '["singlebase", "snapshot", "rolling"]'
)
COMMANDS = COMMANDS.replace("[data.growth]", "[data.growth]\nselection_holdout = 0.5")
COMMANDS = COMMANDS.replace("members = 2\nsnapshots = 2", "members = 4\nsnapshots = 2")
COMMANDS += """
[methods.rolling]
carry_over = 1.0
finetune_epochs = 2

[[variant]]
name = "dynsnap-cyc"
method = "dynsnap-cyc"
beta = 1.0
"""


@pytest.fixture(scope="module")
def commanded(tmp_path_factory):
    """A study with real learners, run by its command."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "tiny.toml").write_text(COMMANDS)
    ended = dynsnap("run", folder / "tiny.toml", "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder


def test_plan_shows_what_is_saved(commanded):
    ended = dynsnap("run", commanded / "tiny.toml", "--plan")
    said = " ".join(ended.stdout.split())
    plan = study.read_study(commanded / "tiny.toml")
    ahead = workload(plan, generations=2)
    assert f"{len(ahead.rounds)} rounds of training ({ahead.cost:.1f} κ" in said
    assert f"2 more ({ahead.spared_cost:.1f} κ)" in said


def test_a_carried_member_is_trained_on_from_the_round_that_holds_it(commanded):
    """Its name is the key of a stored round, and a place there."""
    facts = stored(commanded / "run")
    keys = {one["key"]: one["spec"] for one in facts}
    parents = [one["spec"]["parent"] for one in facts if one["spec"]["parent"] is not None]
    assert parents
    for parent in parents:
        key, _, place = parent.partition("/")
        assert int(place) < 2 <= keys[key]["recipe"]["snapshots"]
    longer = [
        parent for parent in parents if keys[parent.partition("/")[0]]["recipe"]["epochs"] > 8
    ]
    assert longer  # a member of the first round, which is the first half of Snapshot's


def test_training_an_ensemble_of_the_run_trains_nothing(commanded):
    before = len(stored(commanded / "run"))
    for name in ("dynsnap-cyc", "snapshot"):
        ended = dynsnap(
            *("train", commanded / "tiny.toml", "--method", name, "--out", commanded / "run", "-q")
        )
        assert ended.exit_code == 0, ended.stderr
    assert len(stored(commanded / "run")) == before


def test_measuring_without_training_finds_the_same(commanded, tmp_path):
    (tmp_path / "rounds").mkdir()
    for number, path in enumerate(sorted((commanded / "run/rounds").glob("*.npz"))):
        shutil.copy(path, tmp_path / f"rounds/{number:032}.npz")
    # Members that are trained on are found by the key of their round, so rolling is left out.
    text = COMMANDS[: COMMANDS.index("[methods.rolling]")].replace(', "rolling"', "")
    text += COMMANDS[COMMANDS.index("[[variant]]") :]
    (tmp_path / "tiny.toml").write_text(text)
    ended = dynsnap("run", tmp_path / "tiny.toml", "--out", tmp_path, "--no-training", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert "missing" not in ended.stdout
    ours, theirs = contents(tmp_path), contents(commanded / "run")
    assert ours and all(theirs[name] == content for name, content in ours.items())


# Of a single round its members are drawn, and each counts as one.
@pytest.mark.parametrize(("name", "rounds"), [("dynsnap-cyc", 2), ("snapshot", 4)])
def test_the_size_is_estimated_from_first_rounds_that_are_prefixes_too(commanded, name, rounds):
    few = ("--draws", 5, "--resamples", 5, "--json", "-")
    ended = dynsnap("size", commanded / "run", "--method", name, *few)
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["rounds"], found["members"]) == (rounds, 4)


def test_the_report_and_published_results_know_every_method(commanded, tmp_path):
    ended = dynsnap("report", commanded / "run", "--html", tmp_path / "page.html")
    assert ended.exit_code == 0, ended.stderr
    assert "No rounds" not in ended.stdout
    ended = dynsnap("publish", commanded / "run", tmp_path / "results")
    assert ended.exit_code == 0, ended.stderr
    with (tmp_path / "results/table.csv").open(newline="") as file:
        costs = {row["method"]: float(row["cost"]) for row in csv.DictReader(file)}
    assert (costs["snapshot"], costs["dynsnap-cyc"]) == (2.0, 2.0)
