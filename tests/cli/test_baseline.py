"""`dynsnap baseline`, and gates and comparisons that name a baseline."""

import json
import re
import shutil

import pytest

from tests.cli.helpers import NEW, OLD, TWIN, dynsnap, refused
from tests.messages import naming

RULE = ("--at-most", "lost=0.03")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_gate_against_a_baseline_says_which_one_it_was(project):
    result = dynsnap("baseline", "set", "prod", OLD, "--model-version", "1.4")
    assert result.exit_code == 0
    assert re.search(naming("prod", r"1\.4", "797"), result.stdout)
    outputs = {name: project / f"gate.{name}" for name in ("json", "junit", "markdown", "html")}
    options = [part for name, path in outputs.items() for part in (f"--{name}", path)]
    result = dynsnap("gate", "baseline:prod", NEW, *RULE, *options)
    assert result.exit_code == 0, result.output
    (facts,) = json.loads(outputs["json"].read_text())["baselines"]
    said = naming("prod", r"1\.4", facts["data"][:16], facts["date"])
    for text in (
        result.stdout.replace("\n", " "),
        *(path.read_text() for path in outputs.values()),
    ):
        assert re.search(said, " ".join(text.split())), text[:200]
    compared = dynsnap("compare", "baseline:prod", NEW, "--json", "-")
    assert re.search(said, " ".join(json.loads(compared.stdout)["notes"]))


def test_a_baseline_decides_as_its_file_does(project):
    dynsnap("baseline", "set", "prod", OLD)
    for rule in (RULE, ("--at-most", "lost=0.01")):
        one, other = (dynsnap("gate", old, NEW, *rule, "-q") for old in (OLD, "baseline:prod"))
        assert one.exit_code == other.exit_code
    dynsnap("baseline", "set", "twin", TWIN)
    result = dynsnap("gate", "baseline:prod", NEW, *RULE, "--noise-floor", "baseline:twin")
    assert result.exit_code == 0 and re.search(naming("prod", "twin"), result.stdout)


@pytest.mark.parametrize("command", ["gate", "compare"])
def test_a_baseline_that_changed_ends_with_three(project, command):
    dynsnap("baseline", "set", "prod", OLD)
    (path,) = project.glob("baselines/prod-*")
    path.write_bytes(path.read_bytes() + b"\n")
    rules = RULE if command == "gate" else ()
    assert re.search(
        naming("prod", "changed"), refused(command, "baseline:prod", NEW, *rules, code=3)
    )
    refused("baseline", "show", "prod", code=3)
    listed = dynsnap("baseline", "list")
    assert listed.exit_code == 0 and "changed" in listed.stdout


def test_a_baseline_that_is_new_itself_is_wrong_use(project):
    shutil.copy(NEW, project / "new.parquet")
    dynsnap("baseline", "set", "prod", NEW)
    assert "same file" in refused("gate", "baseline:prod", "baseline:prod", *RULE, code=2)


def test_baselines_may_be_elsewhere(project):
    shelf = (project / "shelf").as_uri()
    dynsnap("baseline", "set", "prod", OLD, "--baselines", shelf)
    refused("gate", "baseline:prod", NEW, *RULE, code=3)
    assert dynsnap("gate", "baseline:prod", NEW, *RULE, "--baselines", shelf).exit_code == 0
    (project / "pyproject.toml").write_text('[tool.dynsnap]\nbaselines = "shelf"\n')
    assert dynsnap("gate", "baseline:prod", NEW, *RULE).exit_code == 0
    assert "prod" in dynsnap("baseline", "list").stdout


def test_baselines_are_listed_shown_and_removed(project):
    assert dynsnap("baseline", "list").exit_code == 0
    dynsnap("baseline", "set", "prod", OLD, "--model-version", "1.4")
    assert re.search(naming("prod", r"1\.4", "797"), dynsnap("baseline", "list").stdout)
    assert json.loads(dynsnap("baseline", "show", "prod").stdout)["model_version"] == "1.4"
    assert dynsnap("baseline", "remove", "prod").exit_code == 0
    assert re.search(naming("prod", "baseline set"), refused("baseline", "show", "prod", code=3))
    assert not any(project.joinpath("baselines").iterdir())


def test_a_name_that_is_none_is_wrong_use(project):
    refused("baseline", "set", "../prod", OLD, code=2)
    refused("gate", "baseline:", NEW, *RULE, code=2)
    refused("gate", "baseline:../old", NEW, *RULE, code=2)
    refused("baseline", "set", "prod", project / "missing.csv", code=3)


def test_help_of_each_action():
    for action in ("set", "list", "show", "remove"):
        assert dynsnap("baseline", action, "--help").exit_code == 0
