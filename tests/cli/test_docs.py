"""The commands, rules and code of docs/cli.md and docs/gate.md are run as they are."""

import re
import shlex
from pathlib import Path

import pytest

from dynsnap.cli import cli
from dynsnap.gate import Rule, inputs_needed, read_rules
from tests.cli.helpers import EXAMPLES, dynsnap
from tests.documents import blocks, numbers, tables

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
    and "baseline:" not in line  # set by the line before it: run in order below
]
RULES = {re.match(r"# (\S+)", text)[1]: text for text in blocks(PAGES["gate.md"], "toml")}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in which the examples and the documented rules lie."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    for name, rules in RULES.items():
        (tmp_path / name).write_text(rules)
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


@pytest.mark.parametrize("page", PAGES)
def test_documented_baselines_are_set_used_and_removed(checkout, page):
    lines = [
        line.removeprefix("$ dynsnap ")
        for block in blocks(PAGES[page], "console")
        if "$ dynsnap baseline set" in block
        for line in block.splitlines()
    ]
    assert len(lines) >= 3
    for line in lines:
        result = dynsnap(*shlex.split(line))
        assert result.exit_code == 0, result.output


def test_the_documented_rules_are_rules(checkout):
    assert {name: len(read_rules(name)) for name in RULES} == {"gate.toml": 4, "decide.toml": 3}


def test_the_documented_needs_are_those_of_the_rules():
    (table,) = (each for each in tables(PAGES["gate.md"]) if "inputs needed" in each[0][1])
    for words, needed in table[1:]:
        metric, side, number = re.match(r"`(\w+)` at (\w+) (\S+)", words).groups()
        threshold = float(number.replace("−", "-"))
        rule = Rule(metric=metric, **{f"at_{side}": threshold}, on="bound")
        assert inputs_needed(rule) == int(needed)


def test_the_documented_error_rates_hold_their_level():
    """From benchmarks/gate_errors.py: 5,000 test sets a cell, so 0.5 % is two standard errors."""
    rates, classes = (
        each for each in tables(PAGES["gate.md"]) if (each[0][0].startswith("rule") and "any" in
        " ".join(each[0])) or "wrong, at the threshold" in each[0]
    )  # fmt: skip
    assert len(rates) == 1 + 3 * 4
    for _, kind, wrong, good, bad in rates[1:]:
        for cell in (good, bad):
            assert len(numbers(cell)) == 3
        if kind != "value":
            most = 5.5 if "report" in kind else 3.0
            assert all(float(each) <= most for each in numbers(wrong)), (kind, wrong)
    (_, *alone), (_, *holm) = classes[1:]
    assert float(alone[0]) > 10 and all(float(each) <= 3.0 for each in holm)


def test_the_documented_python_runs(checkout, capsys):
    (code,) = blocks(PAGES["gate.md"], "python")
    exec(compile(code, "docs/gate.md", "exec"), {})
    assert capsys.readouterr().out.startswith("True [0.89")


@pytest.mark.parametrize("name", cli.list_commands(None))
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


def test_help_and_docs_list_the_exit_codes_of_the_gate():
    listed = dynsnap("gate", "--help").stdout
    for code in "01235":
        assert re.search(rf"\b{code}\b", listed)
        assert f"| {code} |" in PAGES["gate.md"]
        assert f"| {code} |" in PAGES["cli.md"]


def test_no_page_names_a_file_that_is_not_there():
    for page in PAGES.values():
        for link in re.findall(r"\]\(([^)#:]+)\)", page):
            assert (DOCS / link).exists(), link
        for path in re.findall(r"examples/[\w.-]+\w", page):
            assert Path(EXAMPLES.parent, path).exists(), path
