"""The commands, rules and code of docs/cli.md and docs/gate.md are run as they are."""

import re
import shlex
from pathlib import Path

import pytest

from dynsnap.cli._group import COMMANDS
from dynsnap.gate import read_rules
from tests.cli.helpers import EXAMPLES, dynsnap
from tests.documents import blocks

DOCS = EXAMPLES.parent / "docs"
PAGES = {name: (DOCS / name).read_text() for name in ("cli.md", "gate.md")}


LINES = [
    line.removeprefix("$ ")
    for page in PAGES.values()
    for block in blocks(page, "console")
    for line in block.splitlines()
    # Commands that train are run by their own tests.
    if line.startswith(
        ("$ dynsnap compare", "$ dynsnap gate", "$ dynsnap audit", "$ dynsnap stabilize")
    )
]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in which the examples and the documented rules lie."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (rules,) = blocks(PAGES["gate.md"], "toml")
    (tmp_path / "gate.toml").write_text(rules)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_command_lines_to_run():
    assert len(LINES) >= 9


@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_line_works(checkout, line):
    program, *arguments = shlex.split(line)
    assert program == "dynsnap"
    result = dynsnap(*arguments)
    assert result.exit_code == 0, result.output


def test_the_documented_rules_are_rules(checkout):
    assert len(read_rules("gate.toml")) == 4


def test_the_documented_python_runs(checkout, capsys):
    (code,) = blocks(PAGES["gate.md"], "python")
    exec(compile(code, "docs/gate.md", "exec"), {})
    assert capsys.readouterr().out.startswith("True [0.89")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name):
    assert f"\n## dynsnap {name}\n" in PAGES["cli.md"]


@pytest.mark.parametrize("name", ["compare", "gate", "audit"])
def test_every_option_is_documented(name):
    listed = dynsnap(name, "--help").stdout
    options = set(re.findall(r"--[a-z][a-z-]+", listed)) - {"--help"}
    pages = PAGES["cli.md"] + (PAGES["gate.md"] if name == "gate" else "")
    missing = {option for option in options if option not in pages}
    assert len(options) > 4
    assert not missing


def test_the_documented_workflow_uses_options_that_exist():
    (workflow,) = blocks(PAGES["gate.md"], "yaml")
    listed = dynsnap("gate", "--help").stdout
    (line,) = re.findall(r"dynsnap gate .*", workflow)
    for option in re.findall(r"--[a-z-]+", line):
        assert option in listed


def test_help_and_docs_list_the_exit_codes_of_the_gate():
    listed = dynsnap("gate", "--help").stdout
    for code in "0123":
        assert re.search(rf"\b{code}\b", listed)
        assert f"| {code} |" in PAGES["gate.md"]
        assert f"| {code} |" in PAGES["cli.md"]


def test_no_page_names_a_file_that_is_not_there():
    for page in PAGES.values():
        for link in re.findall(r"\]\(([^)#:]+)\)", page):
            assert (DOCS / link).exists(), link
        for path in re.findall(r"examples/[\w.-]+\w", page):
            assert Path(EXAMPLES.parent, path).exists(), path
