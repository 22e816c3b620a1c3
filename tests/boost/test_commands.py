"""Boosted studies from the command line, stopped again and again."""

import pytest

from dynsnap.boost._watch import EpochWatch
from tests.cli.studies import contents, dynsnap

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
    seen, show = [], EpochWatch.show

    def counted(self, scores):
        wanted = show(self, scores)
        seen.append(self.curve[-1])
        return wanted

    monkeypatch.setattr(EpochWatch, "show", counted)
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
    assert "`checkpoint_every` must not be negative" in ended.stderr
    study.write_text(text.replace("epochs = 3", "epochs = 3\nbatch_size = 3"))
    ended = dynsnap("run", study, "--out", tmp_path / "run")
    assert ended.exit_code == 2
    assert "batch_size" in ended.stderr
