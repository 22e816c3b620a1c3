"""Studies by time: each retrain on the period that follows, and nothing of the future before it."""

import csv
import dataclasses
import importlib.util
import io
import json
import random
import re
import sys
import tomllib
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from dynsnap import predictions
from dynsnap.data import TimeGrowth, grow, load
from dynsnap.errors import PlanError
from dynsnap.store import RunFolder
from dynsnap.study import (
    DataPlan,
    growth_of,
    open_stream,
    read_study,
    read_table,
    trained_inputs,
    workload,
)
from tests.cli.studies import dynsnap
from tests.data.test_time import pool_of
from tests.documents import blocks, tables
from tests.messages import naming

ROOT = Path(__file__).parents[2]

CUT = 35  # days: what happens from then on is poisoned
STUDY = """
[study]
name = "weeks"
keep = "weights"
resamples = 10
[data]
source = "table"
path = "rows.csv"
time = "when"
[data.growth]
by = "time"
initial = "3 weeks"
label_delay = "1 day"
window = "{window}"
selection_holdout = 0.2
[model]
{model}
[training]
epochs = 3
{training}
[methods]
names = {methods}
combinations = ["average"]
snapshots = 1
[methods.rolling]
members = 2
[[variant]]
name = "margin"
method = "singlebase"
margin = 0.2
[[variant]]
name = "bayesian"
method = "singlebase"
cost_ratio = 2.0
[[variant]]
name = "chosen-margin"
method = "singlebase"
cost_ratio = 2.0
rule = "margin"
[[variant]]
name = "every-4"
method = "singlebase"
every = 2
[[variant]]
name = "gated"
method = "singlebase"
[variant.gate]
at_least = {{ accuracy_change = 0.0 }}
at_most = {{ lost = 0.2 }}
"""
TREES = {
    "model": 'name = "lightgbm"\nnum_leaves = 4\nmin_child_samples = 2',
    "training": "",
    "methods": ["singlebase", "single", "single-distill", "rolling"],
    "window": "expanding",
}
NETWORKS = {
    "model": 'name = "tabular-mlp"\ncategories = [2]\nbuckets = 16\nhidden = [8]',
    "training": 'batch_size = 64\ndevice = "cpu"',
    "methods": ["singlebase", "single", "single-interpolated", "rolling"],
    "window": "16 days",
}


def write_rows(path, *, poison=False, days=49):
    """Rows of three features and two classes, twelve a day; with `poison`, others after the cut."""
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["when", "x", "y", "z", "label"])
        for number in range(12 * days):
            x = rng.normal(size=3)
            label = "dog" if x[0] + 0.03 * number / 12 + rng.normal() > 0.5 else "cat"
            when = datetime(2013, 1, 1) + timedelta(hours=2 * number)
            if poison and number >= 12 * CUT:
                x, label = 1000 - 50 * x, "cat" if label == "dog" else "dog"
            out.writerow([when.isoformat(), *x, label])


@pytest.fixture(
    scope="module",
    params=["trees", pytest.param("networks", marks=pytest.mark.slow)],
)
def runs(request, tmp_path_factory):
    """The same study on the same past, with two futures."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = {"trees": TREES, "networks": NETWORKS}[request.param]
    for name in ("plain", "poisoned"):
        (folder / name).mkdir()
        write_rows(folder / name / "rows.csv", poison=name == "poisoned")
        text = STUDY.format(**settings | {"methods": json.dumps(settings["methods"])})
        (folder / name / "study.toml").write_text(text)
        ended = dynsnap("run", folder / name / "study.toml", "--out", folder / name / "run", "-q")
        assert ended.exit_code == 0, ended.stderr
    return folder


def rounds_of(folder):
    """The stored rounds, by a name in which no key of another round is left."""
    found = {}
    for entry in RunFolder(folder / "run").entries():
        spec = entry.facts["spec"]
        named = {**spec, "parent": spec["parent"] is not None}
        if "distillation" in spec:
            named["distillation"] = {**spec["distillation"], "teacher": ""}
        with zipfile.ZipFile(folder / "run" / "rounds" / f"{entry.key}.npz") as file:
            parts = {name: file.read(name) for name in file.namelist()}
        found[json.dumps(named, sort_keys=True)] = spec["generation"], parts
    return found


def arrays(content):
    return np.load(io.BytesIO(content))


def test_no_row_of_the_future_changes_a_bit_of_an_earlier_generation(runs):
    plain, poisoned = rounds_of(runs / "plain"), rounds_of(runs / "poisoned")
    earlier = {name for name, (generation, _) in plain.items() if generation <= 3}
    assert earlier and earlier == {n for n, (generation, _) in poisoned.items() if generation <= 3}
    changed = 0
    for name in plain.keys() & poisoned.keys():
        generation, one = plain[name]
        _, other = poisoned[name]
        same = all(
            content == other[part]
            for part, content in one.items()
            if part.startswith(("weights", "accuracy", "curve", "epochs"))
        )
        if generation <= 3:
            assert same, name
            for part, rows in (("scores.test.npy", 12 * (CUT - 21)), ("scores.untouched.npy", 60)):
                np.testing.assert_array_equal(
                    arrays(one[part])[:, :rows], arrays(other[part])[:, :rows]
                )
        else:
            changed += not same
    assert changed, "the poison reaches later generations"


def test_no_row_of_the_future_changes_an_earlier_answer(runs):
    """Of every method: also where members, rules and verdicts are chosen on held-out rows."""
    found = sorted(path.name for path in (runs / "plain/run/predictions").glob("*.parquet"))
    assert len(found) == 2 * 10
    for name in found:
        one, other = (
            predictions.read(runs / future / "run/predictions" / name)
            for future in ("plain", "poisoned")
        )
        rows = 12 * 7  # of the period after the second retrain, which ends at the cut
        np.testing.assert_array_equal(one.ids[:rows], other.ids[:rows])
        np.testing.assert_array_equal(one.scores[:rows], other.scores[:rows])
        np.testing.assert_array_equal(one.labels[:rows], other.labels[:rows])
        assert not np.array_equal(one.truth, other.truth)


def test_both_models_answer_on_the_rows_that_follow_the_retrain(runs):
    folder = runs / "plain/run/predictions"
    before, after = (predictions.read(folder / f"singlebase-average-g{g}.parquet") for g in (1, 2))
    np.testing.assert_array_equal(before.ids, after.ids)
    periods = before.slices["period"]
    assert periods.values == ("2013-01-29", "2013-02-05", "2013-02-12")
    assert np.bincount(periods.codes).tolist() == [84, 84, 84]
    # What a week's first model answers before the retrain is what it answered after the last one.
    scores = {
        generation: arrays(parts["scores.test.npy"])[0]
        for name, (generation, parts) in rounds_of(runs / "plain").items()
        if (spec := json.loads(name))["recipe"]["schedule"]["kind"] == "step"
        and not (spec["twin"] or spec["parent"] or "distillation" in spec)
        and spec["recipe"]["snapshots"] == 1
    }
    assert sorted(scores) == [1, 2, 3, 4]
    for week, generation in enumerate((2, 3, 4)):
        rows, tested = slice(84 * week, 84 * week + 84), slice(84 * week + 84, 84 * week + 168)
        for side, number in ((before, generation - 1), (after, generation)):
            np.testing.assert_allclose(side.scores[rows], scores[number][tested], atol=1e-6)


def test_references_and_gate(runs):
    folder = runs / "plain/run"
    rows = {(row.method, row.metric): row.value for row in read_table(folder / "table.csv")}
    assert rows["never-retrain", "consistency"] == 1
    assert 0 < rows["noise-floor", "consistency"] <= 1
    assert rows["margin", "consistency"] >= rows["singlebase", "consistency"]
    read = {
        (name, g): predictions.read(folder / f"predictions/{name}-average-g{g}.parquet").labels
        for name in ("gated", "singlebase", "never-retrain")
        for g in (1, 2)
    }
    monthly = [
        predictions.read(folder / f"predictions/every-4-average-g{g}.parquet").labels
        for g in (1, 2)
    ]
    for week, retrained in enumerate((False, True, False)):
        rows = slice(84 * week, 84 * week + 84)
        assert retrained or np.array_equal(monthly[0][rows], monthly[1][rows])
    np.testing.assert_array_equal(monthly[1][84:168], read["singlebase", 2][84:168])
    week = slice(0, 84)
    kept = np.array_equal(read["gated", 1][week], read["gated", 2][week])
    passed = np.array_equal(read["gated", 2][week], read["singlebase", 2][week])
    assert kept or passed, "a week is that of the old model or that of the new one"
    np.testing.assert_array_equal(read["never-retrain", 1], read["never-retrain", 2])
    np.testing.assert_array_equal(read["never-retrain", 1][week], read["singlebase", 1][week])


def test_a_study_by_time_can_be_published_and_shown(runs, tmp_path, monkeypatch):
    small = tmp_path / "flights"
    ended = dynsnap("publish", runs / "plain/run", small)
    assert ended.exit_code == 0, ended.stderr
    ended = dynsnap("report", small, "--html", tmp_path / "page.html")
    assert ended.exit_code == 0, ended.stderr
    assert "2013-02-05" in (tmp_path / "page.html").read_text()
    # What docs/flights.md is made of, week by week, is what the table of the study says of all.
    flights = script()
    monkeypatch.setattr(flights, "RESULTS", tmp_path)
    (of,) = flights.studies()
    rows = {(row.method, row.metric): row.value for row in read_table(small / "table.csv")}
    assert {*flights.shown(of)} >= {"margin", "gated", "never-retrain", "rolling", "chosen-margin"}
    assert of.names == ("2013-01-29", "2013-02-05", "2013-02-12")
    for method in of.methods:
        named = "noise-floor" if method == flights.FLOOR else method
        found = of.weeks(method)
        for metric, values in (
            ("lost", found.lost),
            ("gained", found.gained),
            ("consistency", found.agree),
        ):
            assert values.mean() == pytest.approx(rows[named, metric])
    page = "".join(
        f"<!-- flights: {name} -->\n<!-- end -->\n" for name in ("wins", "cadence", "months")
    )
    made = flights.filled(page)
    assert flights.filled(made) == made
    wins, cadence, months = tables(made)
    assert len(wins) - 2 == len(flights.shown(of)), "every method, and the noise floor"
    trained = {row[1]: row[2] for row in cadence[1:]}
    assert [
        trained[flights.METHODS[name]] for name in ("singlebase", "every-4", "never-retrain")
    ] == [*("4", "2", "1")]
    assert [row[months[0].index("retrains")] for row in months[1:]] == ["1", "2"]


def script():
    """The script that writes the tables of docs/flights.md."""
    path = ROOT / "results" / "flights.py"
    spec = importlib.util.spec_from_file_location("flights_tables", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("growth", "named"),
    [
        ({"by": "weeks"}, ("by", "time", "weeks")),
        ({"by": "time", "fractions": [0.5, 1.0]}, ("fractions",)),
        ({"by": "time", "cadence": "soon"}, ("cadence", "soon")),
        ({"by": "time", "window": 7}, ("window", "7")),
        ({"by": "time", "retrains": 0}, ("retrains", "0")),
        ({"by": "time", "validation": 1.5}, ("validation", "1.5")),
        ({"cadence": "1 week"}, ("cadence",)),
    ],
)
def test_wrong_settings_are_refused_by_name(growth, named):
    with pytest.raises(PlanError, match=naming(*named)):
        growth_of(DataPlan(source="table", growth=growth))


def test_the_documented_settings_are_settings():
    (text,) = blocks((ROOT / "docs/data.md").read_text(encoding="utf-8"), "toml")
    found = tomllib.loads(text)["data"]
    growth = growth_of(DataPlan(source=found["source"], growth=found["growth"]))
    assert dataclasses.asdict(growth) == found["growth"], "every setting is there"


def test_by_time_needs_times(tmp_path):
    write_rows(tmp_path / "rows.csv")
    options = {"features": ["x", "y", "z"]}
    plan = DataPlan(
        source="table", path=tmp_path / "rows.csv", options=options, growth={"by": "time"}
    )
    with pytest.raises(PlanError, match=naming("`time`")):
        open_stream(plan)


def test_skipped_weeks_reach_the_notes_and_windows_may_slide():
    days = np.array([day for day in np.arange(0, 56, 0.25) if not 28 <= day < 35])
    stream = grow(pool_of(days), TimeGrowth(initial="3 weeks", window="2 weeks"))
    assert [len(rows) for rows in stream.generations] == [56, 28, 28, 56]
    assert len(stream.notes) == 1 and "2013-01-29" in stream.notes[0]
    assert [len(rows) for rows in stream.test_rows] == [28] * 4
    assert stream.evaluation["test"].slices["period"][-1] == "2013-02-19"


def test_a_share_of_the_rows_is_drawn_row_by_row(tmp_path):
    write_rows(tmp_path / "rows.csv")
    options = {"time": "when"}
    plan = {
        "source": "table",
        "path": tmp_path / "rows.csv",
        "growth": {"by": "time", "initial": "2 weeks"},
    }
    some, _ = open_stream(DataPlan(**plan, options=options, subsample=0.3))
    whole = load("table", tmp_path / "rows.csv", **options).train
    assert 0.2 < len(some.pool) / len(whole) < 0.4
    (tmp_path / "rows.csv").unlink()
    write_rows(tmp_path / "rows.csv", poison=True)
    other, _ = open_stream(DataPlan(**plan, options=options, subsample=0.3))
    np.testing.assert_array_equal(some.pool.ids, other.pool.ids)


# --- the future of words, categories and classes --------------------------------------------

MORE = """
[study]
name = "more"
keep = "weights"
resamples = 10
[data]
source = "table"
path = "rows.csv"
time = "when"
{inputs}
[data.growth]
by = "time"
initial = "3 weeks"
selection_holdout = 0.2
[model]
{model}
[training]
epochs = 2
{training}
[methods]
names = ["singlebase", "single-warm"]
combinations = ["average"]
snapshots = 1
"""
KINDS = {
    "categories": {
        "inputs": 'features = ["x", "colour"]\ncategorical = ["colour"]',
        "model": 'name = "lightgbm"\nnum_leaves = 4\nmin_child_samples = 2',
        "training": "",
    },
    "words": {
        "inputs": 'text = "words"',
        "model": 'name = "fasttext"',
        "training": 'batch_size = 64\ndevice = "cpu"',
    },
}


def write_more(path, *, poison, days=42, cut=35):
    """Rows with a category and words; the poison has others of them, and other answers."""
    rng = np.random.default_rng(5)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["when", "x", "colour", "words", "label"])
        for number in range(8 * days):
            x, label = rng.normal(), ("dog", "cat")[number % 2]
            colour = ("red", "green", "blue")[(number + (rng.random() < 0.4)) % 3]
            words = f"{label if rng.random() < 0.7 else 'bird'} w{rng.integers(20)}"
            when = datetime(2013, 1, 1) + timedelta(hours=3 * number)
            if poison and number >= 8 * cut:  # names that sort before all others, and after
                colour, words = ("a", "z")[number % 2], f"aardvark zebra n{number} {words}"
                label = ("cat", "dog")[number % 2]
            out.writerow([when.isoformat(), x, colour, words, label])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_words_and_categories_of_the_future_change_no_earlier_answer(kind, tmp_path):
    for name in ("plain", "poisoned"):
        folder = tmp_path / name
        folder.mkdir()
        write_more(folder / "rows.csv", poison=name == "poisoned")
        (folder / "study.toml").write_text(MORE.format(**KINDS[kind]))
        ended = dynsnap("run", folder / "study.toml", "--out", folder / "run", "-q")
        assert ended.exit_code == 0, ended.stderr
    found = sorted(path.name for path in (tmp_path / "plain/run/predictions").glob("*.parquet"))
    assert found
    for name in found:
        one, other = (
            predictions.read(tmp_path / future / "run/predictions" / name)
            for future in ("plain", "poisoned")
        )
        rows = 8 * 7  # of the one period that ends before the poison
        np.testing.assert_array_equal(one.scores[:rows], other.scores[:rows])
        assert not np.array_equal(one.truth, other.truth)


def test_classes_that_come_later_are_stated():
    days = np.arange(0, 56, 0.25)
    labels = np.arange(len(days)) % 2
    labels[days < 30] = 0
    labels[::7] = 1
    later = np.where((days < 30) & (labels == 1), 0, labels)
    later[0] = 1
    known = dataclasses.replace(pool_of(days, labels), classes=("cat", "dog", "emu"))
    stream = grow(known, TimeGrowth(initial="3 weeks"))
    assert stream.late == ("emu",)
    assert any("emu" in note for note in stream.notes)
    assert not grow(pool_of(days, later), TimeGrowth(initial="3 weeks")).late


def planned(folder, retrains, *, data=True):
    """The plan of a study of nine weeks whose first retrain is after three, as words and places."""
    if data:
        write_rows(folder / "rows.csv", days=63)
    settings = TREES | {"methods": '["singlebase", "rolling"]'}
    text = STUDY.format(**settings).replace("initial", f"{retrains}\ninitial")
    (folder / "study.toml").write_text(text)
    ended = dynsnap("run", folder / "study.toml", "--plan")
    assert ended.exit_code == 0, ended.stderr
    return " ".join(ended.stdout.split())


@pytest.mark.parametrize(
    ("retrains", "generations"), [("", 6), ("retrains = 20", 6), ("retrains = 4", 4)]
)
def test_a_plan_counts_the_retrains_that_the_data_gives(tmp_path, retrains, generations):
    said = planned(tmp_path, retrains)
    plan = read_study(tmp_path / "study.toml")
    ahead = workload(plan, generations=generations)
    assert f"{len(ahead.rounds)} rounds of training" in said
    assert f"{generations} generations" in said
    inputs = trained_inputs(ahead.rounds, open_stream(plan.data)[0])
    assert f"{inputs:,} inputs" in said


def test_a_plan_without_data_claims_no_number_of_retrains(tmp_path):
    said = planned(tmp_path, "", data=False)
    assert "rows.csv" in said and "singlebase" in said
    assert not re.search(r"[\d,]+ (rounds of training|generations)", said)
    said = planned(tmp_path, "retrains = 4", data=False)
    assert re.search(r"(?i)at most 4 generations", said)


GATED = """
[study]
name = "gated"
resamples = 30
[data]
source = "table"
path = "rows.csv"
label = "label"
time = "when"
[data.growth]
by = "time"
initial = "4 weeks"
validation = 0.3
selection_holdout = 0.9
retrains = 4
[model]
name = "tabular-mlp"
hidden = [8]
[training]
epochs = 4
[methods]
names = ["singlebase"]
combinations = ["average"]
snapshots = 2
[[variant]]
name = "gated"
method = "singlebase"
[variant.gate]
at_least = { accuracy_change = 0.0 }
"""


@pytest.mark.slow
def test_a_class_that_arrives_later_is_no_unknown_label_of_a_gate(tmp_path):
    rng = random.Random(1)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["when", "a", "b", "c", "d", "label"])
        for number in range(700):
            x = [rng.gauss(0, 1) for _ in range(4)]
            label = "emu" if number >= 350 and x[1] > 0.3 else "dog" if x[0] > 0 else "cat"
            when = datetime(2024, 1, 1) + timedelta(days=number // 10)
            out.writerow([when.date(), *x, label])
    (tmp_path / "study.toml").write_text(GATED)
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert any(row.method == "gated" for row in read_table(tmp_path / "run/table.csv"))
