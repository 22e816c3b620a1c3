"""The example in docs/studies.md is run here: with less of everything, and as it stands there."""

import re
from pathlib import Path

import numpy as np
import pytest

from dynsnap import study
from dynsnap.data import SOURCES, digits
from dynsnap.ensemble import COMBINATIONS, METHODS
from tests.cli.studies import dynsnap
from tests.documents import IN_SMALL, blocks, commands, smaller

PAGE = (Path(__file__).parents[2] / "docs/studies.md").read_text()


COMMANDS = commands(PAGE)
LESS = {
    "resamples = 200": "resamples = 10",
    "subsample = 1.0": "subsample = 0.4",
    'names = ["singlebase", "extbagging", "snapshot", "dynsnap-cyc", "dynsnap-step"]': (
        'names = ["extbagging", "dynsnap-cyc"]'
    ),
    'combinations = ["majority", "average"]': 'combinations = ["average"]',
}


@pytest.fixture(scope="module", params=IN_SMALL)
def place(request, tmp_path_factory):
    """A folder with the documented study and inputs to predict on."""
    folder = tmp_path_factory.mktemp("docs")
    (example,) = blocks(PAGE, "toml")
    if request.param == "in small":
        example = smaller(example, LESS)
    (folder / "my-study.toml").write_text(example)
    np.savez(folder / "new.npz", inputs=digits().train.inputs[:50])
    (folder / "results").mkdir()
    published = Path(__file__).parents[2] / "results/cifar10-paper"
    (folder / "results/cifar10-paper").symlink_to(published)
    return folder


@pytest.mark.slow
def test_the_documented_commands_work_one_after_another(place, monkeypatch):
    monkeypatch.chdir(place)
    assert len(COMMANDS) >= 6
    for command in COMMANDS:
        ended = dynsnap(*command)
        assert ended.exit_code == 0, ended.stderr
    for name in ("table.csv", "replicates.csv", "sweeps.csv", "study.toml", "about.json"):
        assert (place / "runs/mine" / name).exists()
        assert name in PAGE
    assert (place / "predictions.parquet").exists()


@pytest.mark.slow
def test_the_documented_python_works(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "docs/studies.md", "exec"), {})
    assert 0 < float(capsys.readouterr().out) < 1


def test_every_source_method_and_combination_is_documented():
    for name in (*METHODS, *COMBINATIONS):
        assert f"`{name}`" in PAGE
    data = (Path(__file__).parents[2] / "docs/data.md").read_text()
    for name in SOURCES:
        assert f"`{name}`" in data


def test_the_papers_sweeps_and_ablations_are_read_as_documented(tmp_path):
    tables = {
        "| m |": "sweep",
        "| β |": "sweep",
        "| N |": "sweep",
        "| window T/N |": "sweep",
        "| no schedule |": "ablation",
        "| no randomness |": "ablation",
    }
    text = ""
    for start, kind in tables.items():
        (line,) = (line for line in PAGE.splitlines() if line.startswith(start))
        settings = re.findall(r"`([a-z]+ = [^`]+)`", line)
        name = [] if kind == "sweep" else [f'name = "a{len(text)}"']
        text += "\n".join([f"[[{kind}]]", *name, *settings]) + "\n\n"
    (tmp_path / "paper.toml").write_text(text)
    plan = study.read_study(tmp_path / "paper.toml")
    assert [len(sweep.points) for sweep in plan.sweeps] == [6, 6, 5, 4]
    assert len(plan.methods) == len(METHODS) + 2
