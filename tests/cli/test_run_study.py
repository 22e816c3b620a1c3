import csv
import json
import os
import pty
import signal

import pytest

from tests.cli.studies import LONG, TINY, contents, dynsnap, started, wait_until


@pytest.fixture
def place(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "long.toml").write_text(LONG)
    return tmp_path


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What the long study says when nobody stops it."""
    folder = tmp_path_factory.mktemp("unbroken")
    (folder / "long.toml").write_text(LONG)
    ended = dynsnap("run", "long.toml", "--out", "run", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return contents(folder / "run")


def test_a_study_leaves_everything_in_its_folder(place):
    ended = dynsnap("run", "tiny.toml", cwd=place)
    assert ended.returncode == 0, ended.stderr
    folder = place / "runs/tiny"
    assert (folder / "study.toml").read_text() == TINY
    about = json.loads((folder / "about.json").read_text())
    assert about["environment"]["device"] == "cpu"
    assert about["rounds"] == about["rounds_trained_last"]
    with (folder / "table.csv").open(newline="") as file:
        methods = {line["method"] for line in csv.DictReader(file)}
    assert methods == {
        "singlebase",
        "dynsnap-cyc",
        "noise-floor",
        "never-retrain",
        "never-retrain-dynsnap-cyc",
    }
    assert "ACC-CON" in ended.stdout
    assert "█" in ended.stdout
    assert "noise-floor" in ended.stdout


def test_output_that_is_not_a_terminal_is_plain(place):
    ended = dynsnap("run", "tiny.toml", cwd=place)
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "rounds to train" in ended.stderr
    assert dynsnap("run", "tiny.toml", "--quiet", "--out", "r", cwd=place).returncode == 0


def test_predictions_of_a_study_can_be_compared(place):
    assert dynsnap("run", "tiny.toml", "-q", cwd=place).returncode == 0
    files = [f"runs/tiny/predictions/dynsnap-cyc-average-g{i}.parquet" for i in (1, 2, 3)]
    ended = dynsnap("compare", *files, "--json", "-", "-q", cwd=place)
    assert ended.returncode == 0, ended.stderr
    pairs = json.loads(ended.stdout)["pairs"]
    found = sum(pair["metrics"]["consistency"]["value"] for pair in pairs) / 3
    with (place / "runs/tiny/table.csv").open(newline="") as file:
        (value,) = (
            float(line["value"])
            for line in csv.DictReader(file)
            if (line["method"], line["metric"]) == ("dynsnap-cyc", "consistency")
        )
    assert value == pytest.approx(found)


def test_killed_among_finished_rounds_only_missing_work_is_done(place, unbroken):
    process = started("run", "long.toml", "--out", "run", cwd=place)
    rounds = place / "run/rounds"
    wait_until(lambda: len(list(rounds.glob("[!.]*.npz"))) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = len(list(rounds.glob("[!.]*.npz")))
    ended = dynsnap("run", "long.toml", "--out", "run", cwd=place)
    assert ended.returncode == 0, ended.stderr
    about = json.loads((place / "run/about.json").read_text())
    assert about["rounds_trained_last"] == about["rounds"] - kept
    assert contents(place / "run") == unbroken


def test_killed_in_the_middle_of_a_round_it_goes_on_from_its_checkpoint(place, unbroken):
    process = started("run", "long.toml", "--out", "run", cwd=place)
    states = place / "run/checkpoints"
    wait_until(lambda: len(list(states.glob("[!.]*.bin"))) >= 3, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = dynsnap("run", "long.toml", "--out", "run", cwd=place)
    assert ended.returncode == 0, ended.stderr
    assert contents(place / "run") == unbroken
    assert not list(states.iterdir())


def test_ctrl_c_stops_at_a_checkpoint_and_says_how_to_go_on(place, unbroken):
    process = started("run", "long.toml", "--out", "run", cwd=place)
    states = place / "run/checkpoints"
    wait_until(lambda: list(states.glob("[!.]*.bin")), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "Stopping at the next checkpoint" in said
    assert said.strip().splitlines()[-1] == (
        "dynsnap: Stopped as asked. What was done is in run. "
        "Go on with: dynsnap run long.toml --out run"
    )
    assert list(states.glob("*.bin"))
    assert dynsnap("run", "long.toml", "--out", "run", cwd=place).returncode == 0
    assert contents(place / "run") == unbroken


def test_a_time_budget_stops_cleanly_and_slices_add_up(place, unbroken):
    codes = []
    while not codes or codes[-1] == 4:
        ended = dynsnap(
            "run", "long.toml", "--out", "run", "--time-budget", "0.15", cwd=place
        )
        codes.append(ended.returncode)
        assert len(codes) < 60, ended.stderr
    assert codes[0] == 4
    assert codes[-1] == 0, ended.stderr
    assert contents(place / "run") == unbroken


def test_a_spent_budget_says_so(place):
    ended = dynsnap("run", "long.toml", "--out", "run", "--time-budget", "0.01", cwd=place)
    assert ended.returncode == 4
    assert "the time budget of 0.01 s is spent" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_processes_on_one_run_folder_are_refused(place):
    process = started("run", "long.toml", "--out", "run", cwd=place)
    try:
        wait_until((place / "run/dynsnap.json").exists, process)
        ended = dynsnap("run", "tiny.toml", "--out", "run", cwd=place)
    finally:
        process.kill()
        process.communicate()
    assert ended.returncode == 3
    assert f"Another process (pid {process.pid}) is at work in run" in ended.stderr


def test_a_run_folder_of_a_newer_format_is_refused(place):
    (place / "run").mkdir()
    mark = place / "run/dynsnap.json"
    mark.write_text(json.dumps({"kind": "run", "format": 99}))
    ended = dynsnap("run", "tiny.toml", "--out", "run", cwd=place)
    assert ended.returncode == 3
    assert "newer version" in ended.stderr
    assert json.loads(mark.read_text())["format"] == 99


def test_a_damaged_round_is_named_and_trained_again(place):
    assert dynsnap("run", "tiny.toml", "--out", "run", "-q", cwd=place).returncode == 0
    before = contents(place / "run")
    victim = sorted((place / "run/rounds").iterdir())[0]
    victim.write_bytes(b"PK nonsense")
    ended = dynsnap("run", "tiny.toml", "--out", "run", cwd=place)
    assert ended.returncode == 0
    assert f"{victim.name} is damaged" in ended.stderr
    assert "1 round to train" in ended.stderr
    assert contents(place / "run") == before


def test_a_terminal_gets_a_bar_with_rounds_epochs_accuracy_and_time_left(place):
    outside, inside = pty.openpty()
    pid = os.fork()
    if pid == 0:  # the child, with the terminal as its error stream
        os.chdir(place)
        os.dup2(inside, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.environ.update(TERM="xterm", COLUMNS="160")
        from tests.cli.studies import COMMAND

        os.execv(COMMAND[0], [*COMMAND, "run", "long.toml", "--out", "run"])
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


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (TINY + "[traning]\n", 2, 'has no setting `traning`. Did you mean "training"'),
        (TINY.replace("batch_size", "batchsize"), 2, "[training] has no setting `batchsize`"),
        (TINY.replace('name = "mlp"', 'name = "mpl"'), 2, "There is no model 'mpl'"),
        (TINY.replace("hidden = [8]", "hiden = [8]"), 2, "has no setting `hiden`"),
        (TINY.replace('name = "mlp"\nhidden = [8]', ""), 2, "[model] must say the `name`"),
        (TINY + '[data]\nsource = "cifar-10"\npath = "none"\n', 3, "cifar-10"),
        (TINY + '[data]\nsource = "npz"\npath = "none.npz"\n', 3, "no file"),
        (TINY + "[training.adam]\nepsilon = 1\n", 2, "[training.adam] has no setting `epsilon`"),
        (TINY.replace("learning_rate = 0.01", "learning_rate = 1e30"), 3, "not finite"),
        (TINY + "[data.growth]\nfractions = [1.0]\nlate = {}\n", 2, "compares generations"),
    ],
)
def test_a_wrong_study_is_one_clear_line(place, text, code, message):
    (place / "wrong.toml").write_text(text)
    ended = dynsnap("run", "wrong.toml", "--out", "run", cwd=place)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == code, ended.stderr
    assert last.startswith("dynsnap: ")
    assert message in last
    assert "Traceback" not in ended.stderr


def test_a_study_that_does_not_exist_is_said_so(place):
    ended = dynsnap("run", "digit", cwd=place)
    assert ended.returncode == 2
    assert 'Did you mean "digits"?' in ended.stderr


def test_an_output_that_cannot_be_made_is_said_so(place):
    (place / "file").write_text("")
    ended = dynsnap("run", "tiny.toml", "--out", "file/run", cwd=place)
    assert ended.returncode == 3
    assert "Cannot make the run folder" in ended.stderr
