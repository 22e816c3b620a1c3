"""Single networks that are retrained from the deployed one, in studies."""

import hashlib
import json
import re

import numpy as np
import pytest

from dynsnap import predictions
from dynsnap.cli import _models
from dynsnap.ensemble import Retraining, TeacherScores, method
from dynsnap.errors import FileError, PlanError
from dynsnap.store import RunFolder
from dynsnap.study import Ensemble, open_stream, read_study, read_table
from tests.cli.met import Met
from tests.cli.studies import TINY, contents, dynsnap
from tests.messages import naming
from tests.streams import small_stream

NAMES = ["singlebase", "single", "single-warm", "single-distill", "single-long", "single-ema"]
NAMES += ["single-codistill"]
SINGLE = (
    (
        TINY.replace('name = "tiny"', 'name = "tiny"\nkeep = "weights"')
        .replace('names = ["singlebase", "dynsnap-cyc"]', f"names = {json.dumps(NAMES)}")
        .replace("snapshots = 2", "snapshots = 1")
        .replace("late = { 6 = 2 }", "late = { 6 = 2 }\nselection_holdout = 0.3")
    )
    + """
[[variant]]
name = "focal"
method = "single"
distill_rows = "right"
epochs_share = 0.5
restart_rate = 0.3
average = 0.9

[[variant]]
name = "moved"
method = "single-interpolated"
smoothing = 0.1
margin = 0.2
"""
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("single")
    (folder / "study.toml").write_text(SINGLE)
    ended = dynsnap("run", folder / "study.toml", "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder


def specs(folder):
    """What is known of every stored round, by its key."""
    return {entry.key: entry.facts["spec"] for entry in RunFolder(folder / "run").entries()}


def test_every_generation_starts_from_the_one_before_and_learns_from_it(run):
    found = specs(run)
    later = [spec for spec in found.values() if spec["generation"] == 2]
    (single,) = (
        spec
        for spec in later
        if spec["parent"]
        and spec.get("distillation", {}).get("rows") == "all"
        and not spec.get("interpolate")
    )
    teacher = single["distillation"]["teacher"]
    assert single["parent"] == teacher
    first = found[teacher.partition("/")[0]]
    assert first["generation"] == 1 and first["parent"] is None
    assert first["recipe"]["selection"] == "top"
    assert single["recipe"]["selection"] == "last"
    (warm,) = (s for s in later if s["parent"] and "distillation" not in s)
    assert warm["parent"] == teacher, "methods share their first generation"
    (fresh,) = (s for s in later if s["parent"] is None and "distillation" in s)
    assert fresh["distillation"] == single["distillation"]
    (focal,) = (s for s in later if s.get("distillation", {}).get("rows") == "right")
    assert focal["recipe"]["epochs"] == 4
    assert focal["recipe"]["rate"] == 0.3
    assert focal["recipe"]["average"] == 0.9
    (moved,) = (s for s in later if s.get("interpolate"))
    assert moved["recipe"]["smoothing"] == 0.1
    assert {s["recipe"]["epochs"] for s in later} == {8, 4, 16}


def test_their_first_generation_is_a_single_learner_and_later_ones_differ(run):
    def labels(name, generation):
        file = run / f"run/predictions/{name}-average-g{generation}.parquet"
        return predictions.read(file).scores

    for name in ("single", "single-warm", "single-distill", "single-long"):
        np.testing.assert_array_equal(labels(name, 1), labels("singlebase", 1))
        assert not np.array_equal(labels(name, 2), labels("singlebase", 2))


@pytest.mark.slow
def test_a_stored_study_needs_no_training(run, tmp_path):
    before = contents(run / "run")
    ended = dynsnap("run", run / "study.toml", "--out", run / "run", "--no-training", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert contents(run / "run") == before


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_predictions(run, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(SINGLE.replace("batch_size = 64", "batch_size = 64\ncheckpoint_every = 0"))
    # Ten rounds start from scratch: this is one of those that start from them.
    asked = ("run", file, "--out", tmp_path / "run", "-q")
    Met(*asked, cwd=tmp_path, files="rounds/*.npz", count=11).kill()
    assert list((tmp_path / "run/checkpoints").iterdir())
    ended = dynsnap("run", file, "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert contents(tmp_path / "run") == contents(run / "run")


def test_a_single_network_is_trained_to_predict_with(run, tmp_path):
    ended = dynsnap("train", run / "study.toml", "--method", "single", "--out", run / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert "1 members" in ended.stdout or "1 member" in ended.stdout
    assert (run / "run/ensembles/single-g2.ensemble").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('keep = "weights"', ""), 'keep = "weights"'),
        (("selection_holdout = 0.3", ""), "`selection_holdout`"),
        (("restart_rate = 0.3", "restart_rate = 0"), "`restart_rate` must be positive"),
        (("restart_rate = 0.3", "distill_weight = 1.2"), "`distill_weight`.*1.2"),
        (("restart_rate = 0.3", "distil_weight = 0.2"), "`distil_weight`.*distill_weight"),
        (("restart_rate = 0.3", "interpolate = true\nwarm_start = false"), "`interpolate` needs"),
        (("restart_rate = 0.3", "views = 0"), "`views`"),
        (("average = 0.9", "average = 1.0"), "`average`.*1.0"),
        (('distill_rows = "right"', 'distill_rows = "most"'), "most"),
    ],
)
def test_what_is_wrong_with_a_study_is_said_in_one_line(tmp_path, change, message):
    (tmp_path / "study.toml").write_text(SINGLE.replace(*change, 1))
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 2, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert re.search(message, ended.stderr), ended.stderr


def test_a_plan_states_what_it_can_know(run):
    ended = dynsnap("run", run / "study.toml", "--plan")
    assert ended.exit_code == 0, ended.stderr
    assert "single-distill" in ended.stdout


def test_controls_train_from_scratch_for_as_long_as_the_chain():
    long, plain = method("single-long", epochs=30), method("singlebase", epochs=30)
    assert [long.recipe_of(number).epochs for number in (1, 2, 3)] == [30, 60, 90]
    assert long.recipe_of(1) == plain.recipe
    assert not long.uses_deployed
    assert Ensemble(method=long, generation=3).previous is None


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(PlanError, match=naming("`cumulative`", "`warm_start`")):
        Retraining(cumulative=True)
    with pytest.raises(PlanError, match="`epochs_share`"):
        Retraining(epochs_share=1.5)
    with pytest.raises(PlanError, match="`views`"):
        method("single-ema", epochs=10, retraining={"views": 2})


def test_a_codistilled_network_costs_two_trainings_and_is_served_alone(run):
    found = [spec for spec in specs(run).values() if spec["recipe"].get("codistill")]
    assert sorted(spec["generation"] for spec in found) == [1, 2]
    rows = read_table(run / "run/table.csv")
    costs = {
        row.method: row.value for row in rows if row.metric == "retrain_cost" and row.value >= 0
    }
    assert costs["single-codistill"] == 2 * costs["single"] == 2


def taught(run, file, **changed):
    """A study with a network that learns from a file."""
    digest = changed.get("digest", hashlib.sha256(file.read_bytes()).hexdigest())
    names = json.dumps(NAMES)
    return (
        SINGLE[: SINGLE.index("[[variant]]")].replace(names, '["singlebase", "single-distill"]')
        + f"""
[[variant]]
name = "taught"
method = "single-distill"
teacher = "{file}"
teacher_sha256 = "{digest}"
"""
    )


@pytest.mark.slow
def test_a_file_or_an_ensemble_teaches_in_a_study_by_its_digest(run, tmp_path):
    ended = dynsnap("train", run / "study.toml", "--method", "singlebase", "--generation", "1",
                    "--out", run / "run", "-q")  # fmt: skip
    assert ended.exit_code == 0, ended.stderr
    ensemble = run / "run/ensembles/singlebase-g1.ensemble"
    stream, _ = open_stream(read_study(run / "study.toml").data)
    np.savez(tmp_path / "rows.npz", inputs=stream.pool.inputs, ids=stream.pool.ids)
    said = tmp_path / "said.parquet"
    assert dynsnap("predict", ensemble, tmp_path / "rows.npz", "-o", said).exit_code == 0
    made = []
    for number, file in enumerate((said, ensemble)):
        (tmp_path / f"{number}.toml").write_text(taught(run, file))
        out = tmp_path / f"run-{number}"
        ended = dynsnap("run", tmp_path / f"{number}.toml", "--out", out, "-q")
        assert ended.exit_code == 0, ended.stderr
        (spec,) = (
            entry.facts["spec"]
            for entry in RunFolder(out).entries()
            if entry.facts["spec"].get("distillation", {}).get("teacher", "").startswith("sha256:")
        )
        assert spec["distillation"]["teacher"].endswith(
            hashlib.sha256(file.read_bytes()).hexdigest()
        )
        made.append(predictions.read(out / "predictions/taught-average-g2.parquet").scores)
        before = contents(out)
        ended = dynsnap("run", out / "study.toml", "--out", out, "--no-training", "-q")
        assert ended.exit_code == 0, ended.stderr
        assert contents(out) == before
    assert made[0].shape == made[1].shape


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda text: re.sub("teacher_sha256 = .*", "", text), ["`teacher_sha256`", "sha256sum"]),
        (lambda text: re.sub("teacher = .*", "", text), ["`teacher_sha256`", "`teacher`"]),
        (lambda text: re.sub('256 = ".', '256 = "x', text), ["`teacher_sha256`", "64"]),
        (lambda text: text + "distill_weight = 0.0\n", ["`teacher`", "`distill_weight`"]),
        (lambda text: text + "distill_weight = 1.5\n", ["`distill_weight`", "1.5"]),
    ],
)
def test_a_teacher_in_a_study_is_named_by_its_digest(run, tmp_path, change, named):
    file = run / "study.toml"
    (tmp_path / "study.toml").write_text(change(taught(run, file)))
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 2
    assert re.search(naming(*named), ended.stderr)
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_not_the_one_that_was_meant_or_lacks_rows_is_refused(run, tmp_path):
    few = run / "run/predictions/singlebase-average-g1.parquet"  # of test rows alone
    for digest, named in (("0" * 64, ["teacher_sha256"]), (None, ["training rows", few.name])):
        extra = {} if digest is None else {"digest": digest}
        (tmp_path / "study.toml").write_text(taught(run, few, **extra))
        ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
        assert ended.exit_code == 3
        assert re.search(naming(*named), ended.stderr)


def test_a_teacher_that_is_written_again_while_it_is_read_teaches_what_was_digested(
    tmp_path, monkeypatch
):
    stream = small_stream()
    file, read = tmp_path / "said.parquet", predictions.read
    scores = np.random.default_rng(0).dirichlet(np.ones(10), (2, len(stream.pool.ids)))
    meant, other = (
        predictions.Predictions(ids=stream.pool.ids, classes=stream.pool.classes, scores=each)
        for each in scores
    )
    predictions.write(meant, file)
    key = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"

    def read_late(place):
        predictions.write(other, file)
        return read(place)

    monkeypatch.setattr(predictions, "read", read_late)
    taught = TeacherScores.from_bytes(_models._teacher(key, file, stream))
    assert np.array_equal(taught.scores, scores[0].astype(np.float32))
    with pytest.raises(FileError, match=naming(file.name, "digest")):
        _models._teacher(key, file, stream)
