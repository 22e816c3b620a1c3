"""docs/tasks.md: its examples run, its commands too, and it names every task and metric."""

from pathlib import Path

from click.testing import CliRunner

from dynsnap.cli import cli
from dynsnap.metrics import task_metrics
from dynsnap.predictions.tasks import NAMES
from tests.documents import blocks, commands

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_examples_run_and_the_commands_read_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/tasks.md", "exec"), names)
    shown = commands(PAGE)
    assert {words[words.index("--task") + 1] for words in shown} == set(NAMES[1:])
    for words in shown:
        done = CliRunner().invoke(cli, [*words, "--resamples", "100"])
        assert done.exit_code == 0, done.output


def test_the_page_names_every_metric_of_a_task():
    for name, entry in task_metrics.items():
        assert name in PAGE and entry.symbol.replace("|", "\\|") in PAGE
