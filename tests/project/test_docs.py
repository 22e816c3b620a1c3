"""What docs/weekly.md shows is run, and the examples of schedulers follow their formats."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from dynsnap import project as projects
from dynsnap.cli import cli
from dynsnap.gate import read_rules
from tests.cli.helpers import dynsnap
from tests.documents import blocks, commands
from tests.project.made import COMMANDS, WEEKS, make, retrain

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "weekly.md").read_text(encoding="utf-8")
EXAMPLES = DOCS / "examples"


def exists(arguments):
    """Whether a command with these options exists: its help is printed, and nothing is done."""
    words = [word for word in arguments if not word.startswith("-")]
    depth = 2 if words[0] in ("project", "demo") else 1
    ended = CliRunner().invoke(cli, [*words[:depth], "--help"])
    assert ended.exit_code == 0, ended.output
    for word in arguments:
        if word.startswith("--"):
            assert word in ended.output, word


def test_documented_commands_exist():
    for line in commands(PAGE):
        exists(line)


def test_documented_files_can_be_read(tmp_path):
    project, rules, program, registry = blocks(PAGE, "toml")
    (tmp_path / "gate.toml").write_text(rules)
    assert len(read_rules(tmp_path / "gate.toml")) == 2
    (tmp_path / "project.toml").write_text(project)
    assert projects.read_project(tmp_path).name == "delays"
    head = project.partition("[retrain]")[0]
    (tmp_path / "project.toml").write_text(head + program)
    found = projects.read_project(tmp_path).trainer
    assert found.model_file == "model.bin" and len(found.predict) == 5
    (tmp_path / "project.toml").write_text(project + registry)
    kept = projects.read_project(tmp_path).registry
    assert (kept.kind, kept.model) == ("mlflow", "delays")


def test_documented_settings_are_the_defaults(tmp_path):
    shown = tomllib.loads(blocks(PAGE, "toml")[0])
    plain = projects.read_project(make(tmp_path / "small")).data
    for name in ("id", "time", "label", "window"):
        assert shown["data"][name] == getattr(plain, name)
    for name in ("cadence", "test_periods"):
        assert str(shown["data"][name]) == str(getattr(plain, name))


def test_the_documented_code_finds_the_deployed_model(tmp_path, monkeypatch):
    made = make(tmp_path / "delays")
    retrain(made, WEEKS[0])
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(compile(blocks(PAGE, "python")[0], "docs/weekly.md", "exec"), space)
    assert float(space["model"].read_text()) < 10


def test_a_project_that_init_wrote_is_ready(tmp_path, monkeypatch):
    folder = tmp_path / "new"
    command = "python train.py {train} {evaluate} {model} {predictions}"
    assert dynsnap("project", "init", folder, "--command", command).exit_code == 0
    assert projects.read_project(folder).trainer.train[0] == "python"
    odd = tmp_path / 'odd "name"\\'
    assert dynsnap("project", "init", odd, "--data", 'a "b"\\c.csv').exit_code == 0
    assert projects.read_project(odd).data.path == odd / 'a "b"\\c.csv'
    # A path that is there from here is named from the project; others are looked for in it.
    rows = tmp_path / "rows.csv"
    rows.touch()
    monkeypatch.chdir(tmp_path)
    assert dynsnap("project", "init", "here", "--data", "rows.csv").exit_code == 0
    assert projects.read_project(Path("here")).data.path.resolve() == rows.resolve()
    assert "here/rows" not in (tmp_path / "here/project.toml").read_text()
    assert "later/data" in dynsnap("project", "init", "later").stdout
    # And the program that it names is that of the small project.
    made = make(tmp_path / "small")
    text = (folder / "project.toml").read_text()
    alone = re.sub("predict = .*\n", "", COMMANDS)
    mine = text.partition("[retrain]")[0] + "[retrain]\n" + alone + "[gate]\nmin_count = 1\n"
    (made / "project.toml").write_text(mine)
    (made / "gate.toml").write_text((folder / "gate.toml").read_text())
    assert retrain(made, WEEKS[0]).decision == "first"
    assert retrain(made, WEEKS[1]).decision == "promoted"


# --- schedulers -----------------------------------------------------------------------------


def shell_commands(text):
    """The dynsnap commands in a text, up to what a shell does with their output."""
    for found in re.findall(r"dynsnap ((?:retrain|project)[^\n\"#]*)", text):
        yield shlex.split(re.split(r">>|\|", found)[0])


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.is_file()))
def test_schedulers_call_commands_that_exist(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    found = list(shell_commands(text.replace('"dynsnap", "retrain", project', "dynsnap retrain p")))
    assert found
    for line in found:
        exists([word for word in line if word.startswith("-") or word.isalpha()])
    assert "17 6 * * 1" in text and name in PAGE
    if name.endswith(".py"):
        tree = ast.parse(text)
        assert [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def test_the_line_of_cron_has_five_fields_and_a_command():
    (line,) = [
        line
        for line in (EXAMPLES / "crontab").read_text().splitlines()
        if line[:1] not in ("#", "")
    ]
    *fields, command = line.split(maxsplit=5)
    assert len(fields) == 5 and all(re.fullmatch(r"[\d*,/-]+", field) for field in fields)
    assert "%" not in command  # which cron would take for the end of the line
    assert subprocess.run(["sh", "-n", "-c", command], check=False).returncode == 0


@pytest.mark.slow
def test_the_workflow_follows_the_schema_of_github():
    pytest.importorskip("check_jsonschema")
    file = str(EXAMPLES / "retrain-github.yml")
    check = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", file]
    made = subprocess.run([sys.executable, *check], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
