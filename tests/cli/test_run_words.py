"""A study that varies its windows: its plan, run, report and page show windows and costs."""

import importlib
import itertools
import json
import re
import shlex

import pytest

from dynsnap.store import RunFolder
from dynsnap.study import open_stream, read_study, read_table, workload
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming

VARIED = (
    TINY
    + """
[methods.singlebase]
replicates = 2

[[sweep]]
over = "snapshots"
values = [1, 2]
window = 1
members = "snapshots"
beta = 1.0

[[ablation]]
name = "no-schedule"
schedule = "constant"
epochs = 3
beta = 1.0
"""
)
# Of what must be named, the numbers: replicates of all and of one, windows, epochs.
OFTEN = naming("1 replicate", "2 of singlebase")
ROUNDS = naming("dynsnap-cyc has 2 windows of 4", "no-schedule: the best 2 of 3", "constant")


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("varied") / "a place"  # which a shell takes apart
    folder.mkdir()
    (folder / "varied.toml").write_text(VARIED)
    ended = dynsnap("run", folder / "varied.toml", "--out", folder / "run")
    assert ended.exit_code == 0, ended.stderr
    return folder, " ".join(ended.stdout.split())


def points(text):
    """The points of the sweep in a terminal's text, each with its cost."""
    _, found, rest = text.partition("Sweep: snapshots, windows of 1 ")
    assert found
    words = rest.partition("Reading it")[0].split()
    return [
        (word, after)
        for word, after in itertools.pairwise(words)
        if word in ("1", "2") and "." in after
    ]


def within(page, table):
    """A table of a page, by its name."""
    _, found, rest = page.partition(f'id="{table}"')
    assert found, table
    return rest.partition("</table>")[0]


def test_the_plan_tells_costs_and_replicates(varied):
    folder, _ = varied
    said = " ".join(dynsnap("run", folder / "varied.toml", "--plan").stdout.split())
    assert "2 generations" in said and re.search(OFTEN, said)
    _, found, rest = said.partition("snapshots=1 ")
    assert found and rest.split()[4:7] == ["0.125", "1", "cyclic"]


def test_the_plan_tells_minutes_at_a_measured_speed(varied):
    file = varied[0] / "varied.toml"
    plan = read_study(file)
    stream, _ = open_stream(plan.data)
    rows = [
        len(each) - int(held.sum())
        for each, held in zip(stream.generations, stream.validation, strict=True)
    ]
    rounds = workload(plan, generations=len(rows)).rounds
    inputs = sum(spec.recipe.epochs * rows[spec.generation - 1] for spec in rounds)
    said = " ".join(dynsnap("run", file, "--plan").stdout.split())
    assert f"{inputs:,}" in said and "--inputs-per-second" in said  # no number is invented
    said = " ".join(dynsnap("run", file, "--plan", "--inputs-per-second", 10).stdout.split())
    assert re.search(naming(f"{inputs:,}", "10 a second", f"{inputs / 600:,.1f} minutes"), said)


def test_a_run_tells_how_fast_it_trained(varied):
    folder, said = varied
    about = json.loads((folder / "run/about.json").read_text())
    rows = [sum(each) for each in zip(*about["training_rows"].values(), strict=True)]
    specs = [entry.facts["spec"] for entry in RunFolder(folder / "run").entries()]
    inputs = sum(spec["recipe"]["epochs"] * rows[spec["generation"] - 1] for spec in specs)
    assert about["training_inputs"] == inputs
    speed = about["inputs_per_second"]
    assert speed == pytest.approx(inputs / about["training_seconds"])
    assert re.search(naming(f"{inputs:,} inputs", f"{speed:,.0f} a second"), said)


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "fast"])
def test_a_speed_that_is_none_is_refused(varied, speed):
    ended = dynsnap("run", varied[0] / "varied.toml", "--plan", "--inputs-per-second", speed)
    assert ended.exit_code == 2 and "--inputs-per-second" in ended.stderr
    ended = dynsnap("run", varied[0] / "varied.toml", "--inputs-per-second", "9")
    assert ended.exit_code == 2 and "--plan" in ended.stderr


def test_a_run_and_its_report_tell_windows_costs_and_replicates(varied):
    folder, said = varied
    reported = dynsnap("report", folder / "run", "--html", folder / "page.html").stdout
    for text in (said, " ".join(reported.split())):
        assert points(text) == [("1", "0.125"), ("2", "0.25")]
        assert re.search(ROUNDS, text)
        assert re.search(r"κ.*ACC 1 ACC 2", text)
    command = reported.splitlines()[-1]
    assert command.startswith("dynsnap compare ")
    assert dynsnap(*shlex.split(command)[1:]).exit_code == 0
    assert re.search(OFTEN, said)


def test_the_page_tells_windows_costs_and_replicates(varied):
    folder, _ = varied
    assert not dynsnap("report", folder / "run", "--html", folder / "page.html", "-q").stdout
    page = (folder / "page.html").read_text()
    assert re.search(r"Sweep over snapshots.* 1 epoch", page)
    assert "1 (0.125κ)" in page and "2 (0.25κ)" in page
    assert re.search(ROUNDS, page)
    assert ">2 × 4<" in page and ">2 best of 3<" in page  # in the table of ablations
    assert re.search(OFTEN, page)
    for table, cost in (
        ("sweep-snapshots-table", "0.125"),
        ("ablations-table", "0.375"),
        ("frontier-table", "0.375"),
        ("everything-table", "0.375"),
    ):
        assert f">{cost}<" in within(page, table), table
    assert "cost (κ)" in within(page, "frontier-table")
    assert "retrain κ" not in within(page, "ablations-table")


def test_the_table_tells_how_many_members_there_are(varied):
    folder, _ = varied
    members = {
        (row.method, row.metric): row.value
        for row in read_table(folder / "run/table.csv")
        if row.metric.startswith("members_")
    }
    own = {"singlebase": 1, "dynsnap-cyc": 2, "no-schedule": 2}
    assert members == {
        (method, f"members_{number}"): count for method, count in own.items() for number in (1, 2)
    }


def test_stored_rounds_tell_what_they_cost(varied):
    folder, _ = varied
    lines = [line.split() for line in dynsnap("runs", folder / "run").stdout.splitlines()]
    costs = {line[1]: line[7] for line in lines if len(line) > 7}
    assert (costs["step"], costs["constant"]) == ("1.0", "0.375")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name = "mlp"', 'name = "mpl"', ["'mpl'"]),
        ("hidden = [8]", "hiden = [8]", ["`hiden`", '"hidden"']),
        ("batch_size", "batchsize", [r"\[training\]", "`batchsize`"]),
        ("replicates = 2", "replicates = 0", ["`replicates`", "singlebase", "1"]),
        ("values = [1, 2]", "values = [1, 2, 1]", ["`values`", "1"]),
        ("late = { 6 = 2 }", "late = { 66 = 2 }", ["'66'", '"6"']),
        (
            "late = { 6 = 2 }",
            f"late = {{ {', '.join(f'{name} = 2' for name in range(10))} }}",
            ["generation 1", "empty"],
        ),
    ],
)
def test_a_plan_is_refused_where_the_study_would_be(tmp_path, old, new, named):
    file = tmp_path / "wrong.toml"
    file.write_text(VARIED.replace(old, new))
    ended = dynsnap("run", file, "--plan")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert re.search(naming(*named), ended.stderr)


def test_a_plan_ends_as_the_run_where_data_has_too_few_rows(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text(VARIED.replace("[0.6, 1.0]", "[0.001, 1.0]"))
    ended = dynsnap("run", file, "--plan")
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert re.search(naming("generation 1", "class", "none"), ended.stderr)


def test_a_module_that_a_library_has_not_is_no_library_that_is_not_installed(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text('[model]\nname = "sklearn.ensembl.X"\n')
    ended = dynsnap("run", file, "--plan")
    assert ended.exit_code == 2
    assert "'sklearn.ensembl.X'" in ended.stderr
    assert '"sklearn.ensemble"' in ended.stderr


def test_what_is_not_installed_does_not_hide_a_plan(varied, monkeypatch):
    folder, _ = varied

    def missing(name, real=importlib.import_module):
        if name == "dynsnap.train":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    ended = dynsnap("run", folder / "varied.toml", "--plan")
    assert ended.exit_code == 0
    said = " ".join(ended.stdout.split())
    assert "pip install 'dynsnap[torch]'" in said
