"""Studies that are stopped, killed or disturbed: nothing finished is lost, nothing is other."""

import json
import os
import pty
import re
import signal

import pytest

from tests.cli.met import Met
from tests.cli.studies import COMMAND, LONG, TINY, contents, dynsnap, run_to_the_end
from tests.messages import naming


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "long.toml").write_text(LONG)
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What the long study says when nobody stops it."""
    folder, _ = run_to_the_end(tmp_path_factory.mktemp("unbroken"), "long", LONG)
    return contents(folder)


ROUNDS, CHECKPOINTS = "rounds/[!.]*.npz", "checkpoints/[!.]*.bin"
RUN = ("run", "long.toml", "--out", "run")


def count(folder, files):
    return len(list((folder / "run").glob(files)))


@pytest.mark.slow
def test_killed_among_finished_rounds_only_missing_work_is_done(place, unbroken):
    Met(*RUN, cwd=place, files=ROUNDS, count=2).kill()
    kept = count(place, ROUNDS)
    assert kept == 2
    ended = dynsnap(*RUN)
    assert ended.exit_code == 0, ended.stderr
    about = json.loads((place / "run/about.json").read_text())
    assert about["rounds_trained_last"] == about["rounds"] - kept
    assert contents(place / "run") == unbroken


@pytest.mark.slow
def test_killed_in_the_middle_of_a_round_it_goes_on_from_its_checkpoint(place, unbroken):
    Met(*RUN, cwd=place, files=CHECKPOINTS, count=3).kill()
    assert count(place, CHECKPOINTS) == 3
    ended = dynsnap(*RUN)
    assert ended.exit_code == 0, ended.stderr
    assert contents(place / "run") == unbroken
    assert not list((place / "run/checkpoints").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_stops_in_the_middle_of_a_round_and_says_how_to_go_on(place, unbroken, sent):
    process = Met(*RUN, cwd=place, files=CHECKPOINTS)
    process.send_signal(sent)
    _, said = process.communicate()
    assert process.returncode == 4, said
    assert "checkpoint" in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("dynsnap: ") and last.endswith("dynsnap run long.toml --out run")
    assert count(place, CHECKPOINTS)
    assert dynsnap(*RUN).exit_code == 0
    assert contents(place / "run") == unbroken


@pytest.mark.slow
def test_a_time_budget_stops_cleanly_at_a_checkpoint(place, unbroken):
    ended = dynsnap(*RUN, "--time-budget", "0.01")
    assert ended.exit_code == 4
    assert re.search(naming("time budget", r"0\.01"), ended.stderr)
    assert count(place, CHECKPOINTS)
    assert not (place / "run/table.csv").exists()
    assert dynsnap(*RUN, "--time-budget", "86400").exit_code == 0
    assert contents(place / "run") == unbroken


@pytest.mark.slow
def test_slices_that_end_within_a_round_add_up_to_the_run_that_nobody_stopped(place):
    # Images, each round on its own: every slice ends at the first epoch that it has trained.
    sliced = TINY.replace('name = "mlp"\nhidden = [8]', 'name = "cnn"\nwidth = 4')
    sliced = sliced.replace("epochs = 8", "epochs = 3").replace(', "dynsnap-cyc"', "")
    (place / "sliced.toml").write_text(sliced)
    assert dynsnap("run", "sliced.toml", "--out", "whole", "-q").exit_code == 0
    midway = 0
    for _ in range(30):
        ended = dynsnap("run", "sliced.toml", "--out", "run", "-q", "--time-budget", "0.001")
        if ended.exit_code == 0:
            break
        assert ended.exit_code == 4, ended.stderr
        assert ended.stderr.count("\n") == 1
        assert re.search(naming("time budget", r"0\.001", "in run", "dynsnap"), ended.stderr)
        assert not (place / "run/table.csv").exists()
        midway += bool(count(place, CHECKPOINTS))
    assert ended.exit_code == 0
    assert midway > 1
    assert contents(place / "run") == contents(place / "whole")


@pytest.mark.slow
def test_two_processes_on_one_run_folder_are_refused(place):
    process = Met(*RUN, cwd=place, files=CHECKPOINTS)
    try:
        ended = dynsnap("run", "tiny.toml", "--out", "run")
    finally:
        process.kill()
    assert ended.exit_code == 3
    assert re.search(naming(str(process.pid), "run"), ended.stderr)


def test_a_run_folder_of_a_newer_format_is_refused_and_left_alone(place):
    (place / "run").mkdir()
    mark = place / "run/dynsnap.json"
    mark.write_text(json.dumps({"kind": "run", "format": 99}))
    ended = dynsnap("run", "tiny.toml", "--out", "run")
    assert ended.exit_code == 3
    assert "newer version" in ended.stderr
    assert [path.name for path in (place / "run").iterdir()] == ["dynsnap.json"]


def test_a_damaged_round_is_named_and_trained_again(place):
    assert dynsnap("run", "tiny.toml", "--out", "run", "-q").exit_code == 0
    before = contents(place / "run")
    victim = sorted((place / "run/rounds").iterdir())[0]
    victim.write_bytes(b"PK nonsense")
    ended = dynsnap("run", "tiny.toml", "--out", "run")
    assert ended.exit_code == 0
    assert f"{victim.name} is damaged" in ended.stderr
    assert "1 round to train" in ended.stderr
    assert contents(place / "run") == before


@pytest.mark.slow
def test_a_terminal_gets_a_bar_with_rounds_epochs_accuracy_and_time_left(place):
    outside, inside = pty.openpty()
    pid = os.fork()
    if pid == 0:  # the child, with the terminal as its error stream
        os.chdir(place)
        os.dup2(inside, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.environ.update(TERM="xterm", COLUMNS="160")
        os.execv(COMMAND[0], [*COMMAND, *RUN])
    os.close(inside)
    seen = b""
    while True:
        try:
            part = os.read(outside, 65536)
        except OSError:  # the other end has closed
            break
        if not part:
            break
        seen += part
    os.close(outside)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen.decode()
    shown = seen.decode()
    for word in ("rounds", "epochs", "accuracy", "left"):
        assert word in shown
