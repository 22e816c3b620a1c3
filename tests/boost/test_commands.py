"""Boosted studies from the command line, stopped again and again."""

import re

import pytest

from dynsnap.boost._learner import EpochRecorder
from dynsnap.store import RunFolder
from tests.cli.studies import contents, dynsnap
from tests.messages import naming

STUDY = """
[study]
name = "boosted"
resamples = 10

[data.growth]
fractions = [0.6, 1.0]
late = {{ 6 = 2 }}

[model]
{model}

[training]
epochs = 3

[methods]
names = ["dynsnap-cyc"]
combinations = ["average"]
members = 1
snapshots = 1
"""
MODELS = {
    "xgboost": 'name = "xgboost"\nmax_depth = 2\nsubsample = 0.5\ncolsample_bytree = 0.5',
    "lightgbm": 'name = "lightgbm"\nnum_leaves = 3\nsubsample = 0.5\nsubsample_freq = 2',
}


@pytest.fixture
def epochs(monkeypatch):
    """Every epoch that is trained, as the validation accuracy after it."""
    seen, show = [], EpochRecorder.show

    def counted(self, scores):
        wanted = show(self, scores)
        seen.append(self.curve[-1])
        return wanted

    monkeypatch.setattr(EpochRecorder, "show", counted)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_study_stopped_again_and_again_ends_and_trains_nothing_twice(name, tmp_path, epochs):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(model=MODELS[name]))
    assert dynsnap("run", study, "--out", tmp_path / "whole", "-q").exit_code == 0
    whole = epochs.copy()
    epochs.clear()
    stops = 0
    while True:
        ended = dynsnap("run", study, "--out", tmp_path / "parts", "--time-budget", "0.000001")
        if ended.exit_code == 0:
            break
        assert ended.exit_code == 4, ended.stderr
        assert "is spent" in ended.stderr
        assert len(epochs) > stops  # each time it got somewhere, however short the time
        stops = len(epochs)
    assert stops > 3
    assert epochs == whole
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert not list((tmp_path / "parts/checkpoints").iterdir())


def test_a_damaged_checkpoint_is_said_on_the_command_line(tmp_path, epochs):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(model=MODELS["lightgbm"]))
    command = ("run", study, "--out", tmp_path / "run")
    assert dynsnap(*command, "--time-budget", "0.000001").exit_code == 4
    (checkpoint,) = (tmp_path / "run/checkpoints").iterdir()
    checkpoint.write_bytes(checkpoint.read_bytes()[:-5])
    ended = dynsnap(*command)
    assert ended.exit_code == 0
    assert f"{checkpoint.name} is damaged" in ended.stderr
    assert epochs[0] == epochs[1]  # the first epoch was trained again


def test_how_often_to_save_is_a_setting_of_boosted_studies_too(tmp_path):
    study = tmp_path / "study.toml"
    text = STUDY.format(model=MODELS["lightgbm"])
    study.write_text(text.replace("epochs = 3", "epochs = 3\ncheckpoint_every = -1.0"))
    ended = dynsnap("run", study, "--out", tmp_path / "run")
    assert ended.exit_code == 2
    assert re.search(naming("`checkpoint_every`", "negative", r"-1\.0"), ended.stderr)
    study.write_text(text.replace("epochs = 3", "epochs = 3\nbatch_size = 3"))
    ended = dynsnap("run", study, "--out", tmp_path / "run")
    assert ended.exit_code == 2
    assert "batch_size" in ended.stderr


RETRAINED = (
    STUDY.replace('name = "boosted"', 'name = "boosted"\nkeep = "weights"')
    .replace('["dynsnap-cyc"]', '["singlebase", "single", "single-warm", "single-distill"]')
    .replace("epochs = 3", "epochs = 4")
)


@pytest.fixture
def retrained(tmp_path):
    """A study of trees that are retrained, and its run."""
    study = tmp_path / "study.toml"
    text = RETRAINED.format(model=MODELS["lightgbm"])
    study.write_text(text + "\n[methods.single]\nepochs_share = 0.5\n")
    ended = dynsnap("run", study, "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return study, tmp_path / "run"


@pytest.mark.slow
def test_a_study_of_retrained_trees_that_is_stopped_again_and_again_ends_alike(retrained, tmp_path):
    study, run = retrained
    parts, stops = tmp_path / "parts", 0
    while (ended := dynsnap("run", study, "--out", parts, "--time-budget", "1e-6")).exit_code:
        assert ended.exit_code == 4, ended.stderr
        stops += 1
    assert stops > 3
    assert contents(parts) == contents(run)


@pytest.mark.slow
def test_trees_are_retrained_in_a_study(retrained):
    study, run = retrained
    specs = [entry.facts["spec"] for entry in RunFolder(run).entries()]
    later = [spec for spec in specs if spec["generation"] == 2]
    found = {(bool(one["parent"]), "distillation" in one, one["recipe"]["epochs"]) for one in later}
    assert found == {(False, False, 4), (True, True, 2), (True, False, 4), (False, True, 4)}
    ended = dynsnap("train", study, "--method", "single", "--out", run, "-q")
    assert ended.exit_code == 0, ended.stderr
    assert (run / "ensembles/single-g2.ensemble").exists()


@pytest.mark.parametrize(
    ("model", "settings", "named"),
    [
        ('name = "sklearn.naive_bayes.GaussianNB"', "", ["GaussianNB", "afresh"]),
        (MODELS["xgboost"], "temperature = 2.0", ["XGBClassifier", "`temperature`"]),
        (MODELS["xgboost"], 'distill_rows = "wrong"', ["XGBClassifier", "`distill_rows`"]),
    ],
)
@pytest.mark.parametrize("asked", [(), ("--plan",)])
def test_what_trees_cannot_do_is_said_before_anything_is_trained(
    tmp_path, model, settings, named, asked
):
    study = tmp_path / "study.toml"
    study.write_text(RETRAINED.format(model=model) + f"\n[methods.single]\n{settings}\n")
    ended = dynsnap("run", study, "--out", tmp_path / "run", *asked)
    assert ended.exit_code == 2
    assert ended.stderr.count("\n") == 1
    assert re.search(naming(*named), ended.stderr), ended.stderr
    assert not list(tmp_path.glob("run/rounds/*"))
