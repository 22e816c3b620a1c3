"""Tasks with what else a comparison offers: chosen slices, verdicts, noise floors, baselines."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import dynsnap
from dynsnap.cli import cli
from dynsnap.gate import Rule
from dynsnap.predictions import tasks
from dynsnap.predictions._baselines import data_hash
from dynsnap.report.build.inputs import flipped
from tests.messages import naming
from tests.tasks import files

pytestmark = pytest.mark.slow  # every task with everything else


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


def with_age(folder, kind):
    """Both files with a column of many numbers."""
    made = []
    for name, seed in (("old", 1), ("new", 2)):
        rows = [{**row, "age": int(row["id"]) * 7 % 50} for row in files.rows_of(kind, seed)]
        made.append(files.write(folder / f"{name}.csv", rows))
    return made


@pytest.mark.parametrize("kind", files.COMMANDS)
def test_chosen_slices_are_those_of_rows_counted_by_hand(kind, tmp_path):
    pair = with_age(tmp_path, kind)
    settings = files.SETTINGS[kind]
    found = dynsnap.compare(*pair, slices=["age:2", "region*age:2"], resamples=20, **settings)
    assert set(found.slices) == {"age:2", "region*age:2"}
    groups = {group.name: group for group in found.pairs[0].groups if group.kind == "slice"}
    ages = np.array([place * 7 % 50 for place in range(files.ROWS)])
    low, high = found.slices["age:2"]
    edge = np.sort(ages)[len(ages) // 2 - 1]
    assert groups[low].inputs == (ages <= edge).sum()
    assert groups[low].inputs + groups[high].inputs == files.ROWS
    crossed = [group for name, group in groups.items() if " × " in name]
    assert sum(group.inputs for group in crossed) == files.ROWS
    # Predictions in memory are cut alike, and what is in memory says the same as files.
    if kind != "binary":
        held = [dynsnap.read(path, **settings) for path in pair]
        again = dynsnap.compare(*held, slices=["region"], resamples=20)
        plain = dynsnap.compare(*pair, slices=["region"], resamples=20, **settings)
        for one, other in zip(again.pairs[0].groups, plain.pairs[0].groups, strict=True):
            assert one.key == other.key
            assert one.metrics["lost"].value == pytest.approx(other.metrics["lost"].value)


@pytest.mark.parametrize("kind", files.COMMANDS)
def test_a_gate_leaves_open_what_the_interval_covers(kind, tmp_path):
    pair = with_age(tmp_path, kind)
    found = dynsnap.compare(*pair, resamples=100, **files.SETTINGS[kind])
    lost = found.pairs[0].metrics["lost"]
    threshold = (lost.value + lost.high) / 2
    page = tmp_path / "gate.html"
    done = run(
        "gate",
        *pair,
        *files.COMMANDS[kind],
        *("--at-most", f"lost={threshold:.6f}", "--confidence", 0.95, "--resamples", 100),
        *("--unresolved", "report", "--slice", "age:2", "--html", page, "--min-count", 10),
        *("--json", tmp_path / "verdict.json"),
    )
    assert done.exit_code == 5, done.output
    (outcome,) = json.loads((tmp_path / "verdict.json").read_text())["outcomes"]
    assert outcome["status"] == "unresolved" and outcome["further"] > 0
    # Numbers that agree may be right and wrong, and only grades tell which answers differ.
    differing = outcome["further_differing"]
    if kind != "binary":  # of these few, the threshold is above all that differ
        assert (differing is not None) == (kind in ("multilabel", "ranking"))
    assert "age:2" in page.read_text()


def test_several_answers_are_a_noise_floor_for_multiples(tmp_path):
    pair = files.pair(tmp_path, "repeated", weights=False)
    found = dynsnap.compare(*pair, task="graded", resamples=200)
    (one,) = found.pairs
    for each in (one, *(group for group in one.groups if group.column == "region")):
        multiple = each.multiples["lost"]
        ratio = each.metrics["lost"].value / each.noise_floor["lost"].value
        assert multiple.value == pytest.approx(ratio)
        assert multiple.low < multiple.value < multiple.high
    multiple = one.multiples["lost"].value
    for factor, code in ((multiple * 1.01, 0), (multiple * 0.99, 1)):
        rule = f"lost={factor:.6f} x noise_floor"
        words = ("gate", *pair, "--task", "graded", "--at-most", rule, "--resamples", 20)
        assert run(*words).exit_code == code
    alone = files.pair(tmp_path, "graded", weights=False)
    done = run("gate", *alone, "--task", "graded", "--at-most", "lost=2 x noise_floor")
    assert done.exit_code == 3
    assert re.search(naming("noise floor", "several answers"), done.output)


def test_a_twin_is_a_noise_floor_of_numbers(tmp_path):
    rows = {seed: files.rows_of("regression", seed) for seed in (1, 2, 3)}
    paths = [files.write(tmp_path / f"{seed}.csv", each) for seed, each in rows.items()]
    old, new, twin = paths
    settings = files.SETTINGS["regression"]
    found = dynsnap.compare(old, new, noise_floor=twin, resamples=100, **settings).pairs[0]
    said = {
        seed: np.array([row["prediction"] for row in each if row]) for seed, each in rows.items()
    }
    weight = np.array([row["weight"] for row in rows[1]])
    apart = [np.average(abs(said[seed] - said[1]), weights=weight) for seed in (2, 3)]
    multiple = found.multiples["mean_absolute_change"]
    assert multiple.value == pytest.approx(apart[0] / apart[1])
    assert multiple.low < multiple.value < multiple.high
    rule = Rule(metric="mean_absolute_change", at_most="0.1 x noise_floor", min_count=10)
    checked = dynsnap.gate.check(old, new, rule, noise_floor=twin, resamples=20, **settings)
    assert not checked.passed


def test_rules_on_classes_need_labels_that_are_measured(tmp_path):
    for kind in ("ranking", "regression", "graded"):
        pair = files.pair(tmp_path, kind, weights=False)
        done = run("gate", *pair, *files.COMMANDS[kind], "--at-most", "lost[*]=0.5")
        assert done.exit_code == 3
        assert re.search(naming("class", files.SETTINGS[kind]["task"]), done.output)


def test_labels_that_come_and_go_are_named(tmp_path):
    old = [{"id": place, "truth": "a", "label": "a|b"} for place in range(20)]
    new = [{**row, "label": "a|z"} for row in old]
    paths = [files.write(tmp_path / f"{name}.csv", each) for name, each in (("o", old), ("n", new))]
    found = dynsnap.compare(*paths, task="multilabel", resamples=20)
    assert [each.name for each in found.new_classes] == ["z"]
    assert [each.name for each in found.dropped_classes] == ["b"]
    done = run("compare", *paths, "--task", "multilabel", "--resamples", 20)
    assert re.search(naming("label", "z"), done.output) and re.search(
        naming("label", "b"), done.output
    )
    assert dynsnap.compare(*paths, task="ranking", resamples=20).new_classes == ()


@pytest.mark.parametrize("kind", ["binary", "multilabel", "regression", "repeated"])
def test_a_baseline_of_a_task(kind, tmp_path, monkeypatch):
    old, new = files.pair(tmp_path, kind, weights=False)
    monkeypatch.chdir(tmp_path)
    task = files.COMMANDS[kind][:2] + (["--tolerance", "0.5"] if kind == "regression" else [])
    done = run("baseline", "set", "prod", old, *task)
    assert done.exit_code == 0, done.output
    assert f"{files.ROWS:,} inputs" in done.output
    words = ("--at-most", "lost=0.0001", "--resamples", 20)
    done = run("gate", "baseline:prod", new, *task, *words)
    assert done.exit_code == 1, done.output
    done = run("gate", old, new, *task, *words)
    assert done.exit_code == 1, done.output


def test_a_baseline_of_numbers_is_asked_for_its_task(tmp_path, monkeypatch):
    old, _ = files.pair(tmp_path, "regression")
    monkeypatch.chdir(tmp_path)
    done = run("baseline", "set", "prod", old)
    assert done.exit_code != 0
    assert re.search(naming("--task regression"), done.output)


def test_the_hash_of_data_is_that_of_ids_and_truth_alone(tmp_path):
    one = [{"id": 1, "truth": "a|b", "label": "c"}, {"id": 2, "truth": "[]", "label": "a"}]
    two = [{"id": 2, "truth": "[]", "label": ""}, {"id": 1, "truth": "b|a", "label": "b|d"}]
    sets = [
        dynsnap.read(files.write(tmp_path / f"{place}.csv", rows), task="multilabel")
        for place, rows in enumerate((one, two, [{**one[0], "truth": "a"}, one[1]]))
    ]
    first, same, other = map(data_hash, sets)
    assert first == same != other
    partly = [
        dynsnap.Predictions(ids=[1, 2], classes=["x", "y"], labels=["x", "y"], truth=truth)
        for truth in (["x", "y"], ["x", None])
    ]
    assert data_hash(partly[0]) != data_hash(partly[1])


@pytest.mark.parametrize("kind", files.COMMANDS)
def test_results_show_themselves(kind, tmp_path):
    found = dynsnap.compare(*files.pair(tmp_path, kind), resamples=20, **files.SETTINGS[kind])
    text = repr(found)
    assert len(text.splitlines()) <= 20
    if kind != "binary":
        assert files.SETTINGS[kind]["task"] in text and "0 classes" not in text
    assert "<" in found._repr_html_()
    frame = found.to_frame()
    assert len(frame) >= len(found.pairs[0].metrics)
    found.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_a_task_object_cuts_slices_as_its_name_does(tmp_path):
    pair = with_age(tmp_path, "regression")
    ways = ({"task": "regression", "tolerance": 0.5}, {"task": tasks.Regression(tolerance=0.5)})
    one, other = (dynsnap.compare(*pair, slices=["age:3"], resamples=20, **way) for way in ways)
    assert one.slices == other.slices and one.pairs[0].metrics == other.pairs[0].metrics


@pytest.mark.parametrize("kind", ["binary", "multilabel", "ranking", "regression", "graded"])
def test_a_table_of_several_models_is_the_same_as_a_file_of_each(kind, tmp_path):
    old, new = (files.rows_of(kind, seed) for seed in (1, 2))
    column = {"binary": "score", "regression": "prediction", "graded": "correct"}.get(kind, "label")
    lists = kind in ("multilabel", "ranking")

    def answer(row):
        return row[column].split("|") if lists and row[column] else [] if lists else row[column]

    wide = {
        name: [row[name] for row in old] for name in old[0] if name not in (column, "prediction")
    }
    wide |= {"v1": list(map(answer, old)), "v2": list(map(answer, new))}
    long = [{**row, "model": name} for name, rows in (("v1", old), ("v2", new)) for row in rows]
    long = {name: [row[name] for row in long] for name in long[0]}
    settings = {**files.SETTINGS[kind], "resamples": 20, "slices": ["region"]}
    paths = [files.write(tmp_path / f"{n}.csv", rows) for n, rows in (("v1", old), ("v2", new))]
    expected = dynsnap.compare(*paths, **settings)
    for table, columns in ((wide, {"labels": ["v1", "v2"]}), (long, {"model": "model"})):
        found = dynsnap.compare(table, columns=columns, **settings)
        assert found.pairs[0].metrics == expected.pairs[0].metrics
        assert [each.name for each in found.generations] == ["v1", "v2"]


@pytest.mark.parametrize("kind", ["regression", "ranking"])
def test_a_page_shows_the_truth_that_the_old_answer_was_near(kind, tmp_path):
    found = dynsnap.compare(*files.pair(tmp_path, kind), resamples=20, **files.SETTINGS[kind])
    section = flipped(found, found.pairs[0], {})
    (table,) = section.body
    place = [column.title for column in table.columns].index("truth")
    shown = [row[place].text for row in table.rows]
    assert shown == [one.truth for one in found.pairs[0].flipped]
