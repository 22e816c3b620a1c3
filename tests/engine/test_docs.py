"""What docs/scaling.md shows is held against what there is."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dynsnap.cli._execute import ENGINES, EngineChoice
from dynsnap.study import read_study
from tests.cli.helpers import dynsnap
from tests.documents import blocks

PAGE = (Path(__file__).parents[2] / "docs/scaling.md").read_text()


def block(language):
    (found,) = blocks(PAGE, language)
    return found


@pytest.mark.slow
def test_the_documented_program_runs(tmp_path):
    (tmp_path / "program.py").write_text(block("python"))
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.stdout == "8 rounds\n", ended.stderr


def test_the_documented_needs_are_read(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('[model]\nname = "mlp"\n' + block("toml"))
    plan = read_study(file)
    assert plan.workers == tomllib.loads(block("toml"))["workers"]
    for name in ENGINES:
        with EngineChoice(name=name).opened(plan):
            pass


def test_every_engine_and_option_is_documented():
    listed = dynsnap("run", "--help").stdout
    for name in ENGINES:
        assert f"| `{name}` |" in PAGE
        assert name in listed
    for option in ("--engine", "--workers", "--address"):
        assert option in PAGE
        assert option in listed
