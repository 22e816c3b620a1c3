"""Engines from the command line."""

import json
import re
import signal
from types import SimpleNamespace

import pytest

from dynsnap.cli._execute import EngineChoice
from tests.cli.helpers import refused
from tests.cli.met import Met
from tests.cli.studies import LONG, TINY, contents, dynsnap, run_to_the_end
from tests.messages import naming


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """What the long study says without workers."""
    folder, _ = run_to_the_end(tmp_path_factory.mktemp("serial"), "long", LONG)
    return contents(folder)


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "long.toml").write_text(LONG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = ("run", "long.toml", "--out", "run", "--engine", "processes", "--workers")


# Workers load torch, each for itself: that is what takes long here.
@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_or_a_kill_lose_nothing_and_the_predictions_are_the_serial_ones(
    place, serial, workers
):
    process = Met(*RUN, workers, cwd=place, files="checkpoints/[!.]*.bin")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 4, said
    assert "Traceback" not in said
    assert "dynsnap run long.toml" in said
    Met(*RUN, workers, cwd=place, files="rounds/[!.]*.npz").kill()
    kept = len(list((place / "run/rounds").glob("[!.]*.npz")))
    ended = dynsnap(*RUN, workers)
    assert ended.exit_code == 0, ended.stderr
    about = json.loads((place / "run/about.json").read_text())
    assert about["engine"] == "processes"
    assert about["rounds_trained_last"] == about["rounds"] - kept
    assert contents(place / "run") == serial
    assert not list((place / "run/checkpoints").iterdir())


@pytest.mark.slow
def test_train_uses_the_engine_too(place):
    ended = dynsnap(
        *("train", "long.toml", "--out", "run", "--engine", "processes", "--workers", "1")
    )
    assert ended.exit_code == 0, ended.stderr
    assert list((place / "run/ensembles").iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2"), naming("serial", "workers")),
        (("--engine", "processes", "--address", "auto"), naming("--address", "--engine ray")),
        (("--engine", "ray", "--address", "ray://a:1"), "HOST:PORT or auto"),
        (("--engine", "threads"), naming("--engine", "'threads'")),
    ],
)
def test_options_that_contradict_each_other_are_refused(place, options, message):
    assert re.search(message, refused("run", "long.toml", *options, code=2))


def test_needs_of_workers_are_read_from_the_study_and_checked(place):
    (place / "needy.toml").write_text(TINY + "\n[workers]\nround = 3\n")
    said = refused("run", "needy.toml", code=2)
    assert re.search(naming(r"\[workers\]", "`round`", '"rounds"'), said)


def test_what_a_task_needs_is_read_from_the_study_file():
    plan = SimpleNamespace(workers={"cpus": 2.0, "gpus": 0.25, "rounds": 5})
    engine = EngineChoice(name="ray").opened(plan)
    assert engine._needs(object()) == {"CPU": 2.0, "GPU": 0.25}
    assert engine._rules.together == 5
    nothing = EngineChoice(name="ray").opened(SimpleNamespace(workers={}))
    assert nothing._needs(object()) == {"CPU": 1.0, "GPU": 0.0}
    assert nothing._needs(SimpleNamespace(device="cuda:0")) == {"CPU": 1.0, "GPU": 1.0}
