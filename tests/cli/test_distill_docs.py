"""What docs/distill.md shows is run here, on a smaller form of the same study."""

import re
from pathlib import Path

import pytest

from dynsnap import study
from tests.cli.studies import dynsnap
from tests.documents import blocks, commands, smaller

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/distill.md").read_text()
STUDY = "examples/distill-digits.toml"


COMMANDS = [
    command
    for command in commands(PAGE)
    if "--data" not in command  # which not everybody has
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The documented study with little to train."""
    less = {"replicates = 10": "replicates = 2\nresamples = 10", "epochs = 100": "epochs = 4"}
    few = {'combinations = ["average"]': 'combinations = ["average"]\nmembers = 2\nsnapshots = 2'}
    text = smaller((ROOT / STUDY).read_text(), less | few)
    (tmp_path / STUDY).parent.mkdir()
    (tmp_path / STUDY).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_documented_commands_work_one_after_another(place):
    assert len(COMMANDS) >= 5
    for command in COMMANDS:
        ended = dynsnap(*command, "-q")
        assert ended.exit_code == 0, ended.stderr
    for path in re.findall(r"`((?:ensembles|predictions)/\S+)`", PAGE):
        assert (place / "runs/distill-digits" / path).exists(), path


@pytest.mark.slow
def test_the_documented_python_works(capsys):
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "docs/distill.md", "exec"), {})
    assert 0.5 < float(capsys.readouterr().out) <= 1


def test_every_option_is_documented():
    listed = dynsnap("distill", "--help").stdout
    options = set(re.findall(r"--[a-z][a-z-]+", listed))
    known = {"--help", "--out", "--data", "--time-budget", "--quiet"}
    assert {option for option in options - known if option not in PAGE} == set()


def test_the_study_of_the_page_is_the_one_that_it_tells_of():
    plan = study.read_study(ROOT / STUDY)
    assert (plan.replicates, plan.epochs, plan.keep) == (10, 100, "weights")
    assert plan.method("dynsnap-cyc").plan.size == 20
