import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.helpers import EXAMPLES, NEW, OLD, TWIN, dynsnap, refused, table
from tests.messages import naming

PASSING = ("--at-least", "correct_consistency=0.85", "--at-most", "lost=0.03")
FAILING = ("--at-most", "lost=0.01")
SMALL = ("--min-count", 1)  # for files of a few rows, made by hand


@pytest.fixture
def rules(tmp_path):
    def written(text):
        path = tmp_path / "gate.toml"
        path.write_text(text)
        return path

    return written


def test_a_gate_that_passes_exits_with_zero():
    result = dynsnap("gate", OLD, NEW, *PASSING)
    assert result.exit_code == 0
    verdict, counts, *_ = result.stdout.splitlines()
    assert verdict.startswith("PASS") and re.search(naming("old", "new"), verdict)
    assert re.findall(r"\d+", counts) == ["0", "2", "797"]  # failed, of all, on so many inputs


def test_a_gate_that_fails_exits_with_one_and_says_why():
    result = dynsnap("gate", OLD, NEW, *PASSING, *FAILING)
    assert result.exit_code == 1
    verdict, counts, *_ = result.stdout.splitlines()
    assert verdict.startswith("FAIL")
    assert re.findall(r"\d+", counts)[:2] == ["1", "3"]
    (line,) = (line for line in result.stdout.splitlines() if line.split()[1:2] == ["failed"])
    assert re.search(naming("lost", "all inputs", r"0\.01", r"0\.0213"), line)
    assert "\x1b" not in result.stdout


def test_quiet_prints_nothing_and_still_decides():
    assert dynsnap("gate", OLD, NEW, *FAILING, "-q").output == ""
    assert dynsnap("gate", OLD, NEW, *FAILING, "-q").exit_code == 1


def test_rules_from_a_file_and_from_the_line_are_all_judged(rules):
    path = rules('[[rule]]\nmetric = "accuracy"\nat_least = 0.9\nname = "good enough"\n')
    result = dynsnap("gate", OLD, NEW, "--rules", path, *PASSING)
    assert result.exit_code == 0
    assert re.findall(r"\d+", result.stdout.splitlines()[1])[:2] == ["0", "3"]
    assert "good enough" in result.stdout


def test_every_class_and_every_slice_can_be_asked_for(rules):
    path = rules(
        """
        [[rule]]
        metric = "lost"
        at_most = 0.045
        class = "*"
        [[rule]]
        metric = "correct_consistency"
        at_least = 0.5
        slice = {column = "ink", value = "heavy"}
        """
    )
    result = dynsnap("gate", OLD, NEW, "--rules", path, "--json", "-")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [o["part"] for o in found["outcomes"] if o["status"] == "failed"] == [
        "class 6",
        "class 8",
    ]
    assert found["outcomes"][-1]["part"] == "ink = heavy"
    assert found["outcomes"][-1]["inputs"] == 267


def test_besides_failures_few_checks_of_a_rule_are_printed_unless_all_are_asked_for(rules):
    file = rules('[[rule]]\nmetric = "lost"\nat_most = 0.05\nclass = "*"\n')
    told = dynsnap("gate", OLD, NEW, "--rules", file, "--limit", 2).stdout
    failed, passed = told.count("failed  "), told.count("passed  ")
    assert failed + passed < 10
    assert passed == 2
    assert f"and {10 - failed - passed} more" in told
    told = dynsnap("gate", OLD, NEW, "--rules", file, "--limit", 0).stdout
    assert told.count("failed  ") + told.count("passed  ") == 10
    assert " more" not in told


def test_rules_at_several_confidences_have_their_own_intervals(rules):
    path = rules(
        "\n".join(
            f'[[rule]]\nmetric = "lost"\nat_most = 0.9\nconfidence = {level}'
            for level in (0.5, 0.99)
        )
    )
    result = dynsnap("gate", OLD, NEW, "--rules", path, "--json", "-")
    narrow, wide = json.loads(result.stdout)["outcomes"]
    assert wide["low"] < narrow["low"] < narrow["value"] < narrow["high"] < wide["high"]
    assert narrow["judged"] == narrow["high"]


def test_a_rule_on_the_top_k_is_enough_to_have_it_measured():
    assert dynsnap("gate", OLD, NEW, "--at-least", "top_3_accuracy=0.9").exit_code == 0
    assert dynsnap("gate", OLD, NEW, "--at-least", "top_3_consistency=0.9").exit_code == 0


def test_outputs_for_machines_are_written_whether_it_passes_or_not(tmp_path):
    paths = {name: tmp_path / name for name in ("out.json", "out.xml", "out.md")}
    for options, passed in ((PASSING, True), (FAILING, False)):
        result = dynsnap(
            "gate", OLD, NEW, *options,
            "--json", paths["out.json"], "--junit", paths["out.xml"], "--markdown", paths["out.md"],
        )  # fmt: skip
        assert result.exit_code == (0 if passed else 1)
        assert json.loads(paths["out.json"].read_text())["passed"] is passed
        suite = ElementTree.parse(paths["out.xml"]).getroot()[0]
        assert (suite.get("failures") == "0") is passed
        assert paths["out.md"].read_text().startswith("## PASS" if passed else "## FAIL")


@pytest.mark.parametrize("option", ["--json", "--junit", "--markdown"])
def test_a_dash_prints_one_output_instead_of_the_report(option):
    printed = dynsnap("gate", OLD, NEW, *PASSING, option, "-").stdout
    assert printed[0] == {"--json": "{", "--junit": "<", "--markdown": "#"}[option]


def test_the_noise_floor_is_shown_beside():
    result = dynsnap("gate", OLD, NEW, *PASSING, "--noise-floor", TWIN)
    assert result.exit_code == 0
    assert "same data" in result.stdout


def test_equal_predictions_in_two_files_pass_with_a_note(tmp_path):
    copy = shutil.copy(OLD, tmp_path / "copy.parquet")
    result = dynsnap("gate", OLD, copy, "--at-most", "lost=0", "--at-least", "consistency=1")
    assert result.exit_code == 0
    assert "itself" in result.stdout


def test_an_unset_variable_is_not_the_folder_that_one_is_in(tmp_path, monkeypatch):
    shutil.copy(OLD, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "name is empty" in refused("gate", "", "", "--at-most", "lost=0", code=2)
    assert "name is empty" in refused("gate", OLD, NEW, "--rules", "", code=2)


def test_places_may_be_uris():
    places = [Path(file).as_uri() for file in (OLD, NEW)]
    assert dynsnap("gate", *places, *PASSING).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], naming("no rule", "--rules")),
        (
            ["--at-least", "consistancy=0.8"],
            naming("'consistancy'", '"consistency"'),
        ),
        (["--at-most", "lost=2"], r"0\.02"),
        (["--at-most", "lost"], "--at-most takes metric=number"),
        (["--at-mots", "lost=0.1"], "--at-most"),
        ([*PASSING, "--allow-missing", "2"], "--allow-missing"),
        ([*PASSING, "--allow-missing", "nan"], "--allow-missing"),
        ([*PASSING, "--resamples", "0"], "--resamples"),
        ([*PASSING, "--rename", "a"], "--rename takes OLD=NEW"),
        ([*PASSING, "--rename", "frog=cat"], "frog"),
        ([*PASSING, "--json", "-", "--junit", "-"], naming("--json", "--junit", "standard output")),
        ([*PASSING, "--json", OLD], naming("--json", "overwrite", re.escape(str(OLD)))),
        ([*PASSING, "--id-column", ""], "name"),
    ],
)
def test_wrong_use_exits_with_two(arguments, message):
    assert re.search(message, refused("gate", OLD, NEW, *arguments, code=2))


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('[[rule]]\nmetric = "lost"\nat_most = 0.1\nklass = "a"', "'klass'"),
        ('[[rule]]\nmetric = "losst"\nat_most = 0.1', 'Did you mean "lost"'),
        ('[[rule]]\nmetric = "lost"', "exactly one of"),
        ("", "hold no rule"),
        ("\x1b[31m", "not valid TOML"),
    ],
)
def test_a_wrong_rules_file_exits_with_two(rules, toml, message):
    assert message in refused("gate", OLD, NEW, "--rules", rules(toml), code=2)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('metric = "lost"\nat_most = 0.1\nclass = "frog"', naming("class frog", "files")),
        ('metric = "lost"\nat_most = 0.1\nslice = {column = "inc"}', 'Did you mean "ink"'),
        (
            'metric = "lost"\nat_most = 0.1\nslice = {column = "ink", value = "lite"}',
            naming("'ink'|ink = lite", "value"),
        ),
        ('metric = "lost"\nat_most = 0.9\nclass = "8"\nmin_count = 78', "77 inputs, fewer than 78"),
        ('metric = "lost"\nat_most = 0.9\nmin_count = 1000', "797 inputs, fewer than 1000"),
        ('metric = "top_20_accuracy"\nat_least = 0.1', "top_20_accuracy"),
    ],
)
def test_rules_that_cannot_be_judged_exit_with_three(rules, toml, message):
    said = refused("gate", OLD, NEW, "--rules", rules(f"[[rule]]\n{toml}"), code=3)
    assert re.search(message, said)


def test_a_rules_file_that_is_missing_or_a_folder_exits_with_three(tmp_path):
    for path in (tmp_path / "absent.toml", tmp_path):
        said = refused("gate", OLD, NEW, "--rules", path, code=3)
        assert re.search(naming("rules", re.escape(str(path))), said)


def test_a_metric_that_the_files_cannot_give_never_passes(tmp_path):
    labels, again = (table(tmp_path / f"l{i}.csv", ["1,a,a", "2,b,b"]) for i in "12")
    bare, same = (table(tmp_path / f"b{i}.csv", ["1,a", "2,b"], head="id,label") for i in "12")
    assert "scores" in refused("gate", labels, again, "--at-least", "pearson=0", *SMALL, code=3)
    assert "truth" in refused("gate", bare, same, "--at-most", "lost=0.9", *SMALL, code=3)
    assert dynsnap("gate", bare, same, "--at-least", "consistency=1", *SMALL).exit_code == 0


def test_missing_ids_never_pass_unless_allowed(tmp_path):
    old = table(tmp_path / "old.csv", [f"{i},a,a" for i in range(10)])
    new = table(tmp_path / "new.csv", [f"{i},a,a" for i in range(9)])
    for files in ((old, new), (new, old)):
        run = ("gate", *files, "--at-most", "lost=0.9", *SMALL)
        line = refused(*run, code=3)
        assert "lacks 1 id" in line
        assert "--allow-missing" in line
        assert dynsnap(*run, "--allow-missing", 0.1).exit_code == 0
        refused(*run, "--allow-missing", 0.09, code=3)


def test_files_that_cannot_be_compared_exit_with_three(tmp_path):
    old = table(tmp_path / "old.csv", ["1,a,a", "2,b,b"])
    others = table(tmp_path / "others.csv", ["3,a,a", "4,b,b"])
    truths = table(tmp_path / "truths.csv", ["1,b,a", "2,b,b"])
    assert "No id occurs" in refused("gate", old, others, "--at-most", "lost=0.9", code=3)
    assert "different truths" in refused("gate", old, truths, "--at-most", "lost=0.9", code=3)


def test_a_failed_run_leaves_older_outputs_as_they_were(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("before")
    refused("gate", OLD, tmp_path / "absent.csv", *PASSING, "--json", out, code=3)
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_markup_in_names_is_plain_data_everywhere(tmp_path, rules):
    name = "<b>[red]x[/]|*y*</b>"
    head = "id,truth,label,region"
    file, again = (
        table(tmp_path / f"[bold]{i}[-].csv", [f"1,{name},{name},{name}"], head=head) for i in "12"
    )
    path = rules(
        f"""
        [[rule]]
        metric = "lost"
        at_most = 0
        class = "{name}"
        name = "{name}"
        [[rule]]
        metric = "lost"
        at_most = 0
        slice = {{column = "region", value = "{name}"}}
        """
    )
    run = ("gate", file, again, "--rules", path, *SMALL)
    assert dynsnap(*run).stdout.count(name) >= 3
    assert "<b>" not in dynsnap(*run, "--markdown", "-").stdout.replace("\\<b", "")
    suite = ElementTree.fromstring(dynsnap(*run, "--junit", "-").stdout.encode())[0]
    assert name in suite.find("testcase").get("name")
    assert json.loads(dynsnap(*run, "--json", "-").stdout)["outcomes"][0]["rule"]["class"] == name


def test_files_with_other_column_names_are_read(tmp_path):
    file, again = (
        table(tmp_path / f"{i}.csv", ["1,a,a", "2,b,b"], head="key,gold,guess") for i in "ab"
    )
    columns = ("--id-column", "key", "--truth-column", "gold", "--label-column", "guess")
    run = ("gate", file, again, "--at-most", "lost=0", *SMALL)
    assert dynsnap(*run, *columns).exit_code == 0
    assert "a.csv" in refused(*run, code=3)


def test_examples_are_small_and_all_there():
    found = {path.name: path.stat().st_size for path in EXAMPLES.iterdir() if path.is_file()}
    assert {"old.parquet", "new.parquet", "twin.parquet", "make.py"} <= set(found)
    assert max(found.values()) < 200_000
