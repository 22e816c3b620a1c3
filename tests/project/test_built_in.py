"""Built-in methods in the loop, the history page, and the demo, with real boosted trees."""

import re

import numpy as np
import pandas as pd
import pytest

from dynsnap import DynSnapClassifier, predictions
from dynsnap import project as projects
from dynsnap.errors import DataError, InputError
from dynsnap.project import _records as records
from dynsnap.project._rows import held_out
from dynsnap.project._trainers import make_trainer
from dynsnap.report.build.history import HistoryFindings, RetrainRow, history_document
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming
from tests.project.made import WEEKS, deployed, make, retrain
from tests.project.whole import check

LINEAR = "sklearn.linear_model.LogisticRegression"
METHOD = """\
method = "{method}"
{more}
[model]
name = "sklearn.linear_model.LogisticRegression"
"""
TREES = """\
method = "{method}"
epochs = 5
{more}
[model]
name = "lightgbm"
n_jobs = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("single-warm", "retraining = { epochs_share = 0.4 }"),
        ("single-distill", ""),
        ("rolling-bagging", "members = 3\nsnapshots = 2"),
        ("singlebase", ""),
    ],
)
def test_methods_of_the_estimator_are_retrained(tmp_path, method, more):
    made = make(tmp_path / "small", retrain=TREES.format(method=method, more=more))
    for number, day in enumerate(WEEKS[:3], 1):
        result = retrain(made, day)
        assert result.exit_code == 0
        assert deployed(made) == number
        assert result.measured.about["trainer"] == method
        assert result.measured.about["cost"] > 0
    registry = projects.FolderRegistry(made / "registry")
    assert registry.get(3).model == "model.ensemble"


@pytest.mark.slow
def test_a_model_that_starts_anew_is_trained_scored_and_deployed(tmp_path):
    made = make(tmp_path / "small", retrain=METHOD.format(method="singlebase", more=""))
    for day in WEEKS[:2]:
        assert retrain(made, day).exit_code == 0
    assert deployed(made) == 2
    assert retrain(made, WEEKS[1], again=True).measured.held_out["lost"][0] == 0  # the same rows


def named_model(name):
    return METHOD.format(method="singlebase", more="").replace(LINEAR, name)


@pytest.mark.parametrize(
    ("retrain_table", "named"),
    [
        (METHOD.format(method="singel", more=""), ("singel", "single")),
        (METHOD.format(method="singlebase", more="member = 3"), ("member", "members")),
        (METHOD.format(method="singlebase", more="random_state = 3"), ("random_state", "seed")),
        (METHOD.format(method="singlebase", more="").partition("[model]")[0], ("model",)),
        (named_model("os.linear_model.LogisticRegression"), ("os",)),
        (
            named_model("lightbgm"),
            ("lightbgm", '"lightgbm"'),
        ),
        (
            named_model("what"),
            ("what", "lightgbm", "mlp", "sklearn"),
        ),
    ],
    ids=["method", "setting", "seed", "no model", "other module", "misspelt", "unknown"],
)
def test_methods_and_models_that_do_not_exist_are_refused(tmp_path, retrain_table, named):
    made = make(tmp_path / "small", retrain=retrain_table)
    assert re.search(naming(*named), refused("retrain", made, "--until", WEEKS[0], code=2))
    assert not (made / "retrains").exists()


# --- history and advice ---------------------------------------------------------------------


def result(decision="promoted", change=(0.01, 0.005, 0.02), verdict="passed"):
    values = {"accuracy_change": list(change)}
    measured = records.Measured(
        generation=2, verdict=verdict, held_out=values, newest={}, evaluated=10
    )
    return records.Result(
        plan=records.Plan(name="2024-01-01", period="2024-01-01"),
        measured=measured,
        decision=decision,
        reason="",
        finished="",
    )


def test_advice_follows_its_rule():
    flat = result(change=(0.001, -0.002, 0.004))
    gain, kept = result(), result("kept", verdict="failed")
    first = result("first", verdict="none")
    assert "2 of 3" in projects.advice([first, flat, flat])
    for quiet in ([flat] * 3, [kept] * 3, [gain, flat, kept, flat]):
        assert re.search(naming("nothing that matters", "less often"), projects.advice(quiet))
    for worth in ([gain] * 3, [flat, flat, gain], [first, flat, gain, kept]):
        assert "keep the cadence" in projects.advice(worth)
    unknown = result(change=(0.01, None, None))  # no interval: no claim
    assert "nothing that matters" in projects.advice([unknown] * 3)


def test_the_history_page_escapes_what_it_shows(tmp_path):
    row = RetrainRow(
        period="2024-01-01",
        name="2024-01-01",
        generation=1,
        held_against=None,
        decision="first",
        verdict="none",
        train=10,
        evaluated=5,
        held_out={"accuracy_new": [0.5, None, None]},
        newest={},
        shares={"<script>alert(1)</script>": 0.5, "b": 0.5},
    )
    found = HistoryFindings(
        name="<b>x</b>", cadence="week", deployed=1, rows=(row, row), advice="Keep it."
    )
    from dynsnap import report

    document = history_document(found)
    page = report.to_html(document)
    assert "<script>alert" not in page and "<b>x</b>" not in page
    assert "Keep it." in report.to_terminal(document, width=100, colour=False)
    assert "alert" in report.to_markdown(document)


def test_history_shows_every_week_and_moves_by_hand(tmp_path):
    made = make(tmp_path / "small")
    assert dynsnap("project", "history", made).exit_code == 0  # before the first retrain, too
    for day in WEEKS[:3]:
        retrain(made, day)
    assert dynsnap("project", "rollback", made, "--why", "too many lost").exit_code == 0
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    ended = dynsnap("project", "history", made, "--html", page, "--markdown", text)
    assert ended.exit_code == 0, ended.stderr
    for said in (page.read_text(), text.read_text(), ended.stdout):
        assert all(day in said for day in ("2024-01-01", "2024-01-08", "2024-01-15"))
        assert "too many lost" in said
    assert "<svg" in page.read_text()
    findings = projects.history_findings(projects.read_project(made))
    assert [row.drift is None for row in findings.rows] == [True, False, False]
    assert all(np.isclose(sum(row.shares.values()), 1) for row in findings.rows)


# --- the demo -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_retrains_flights_and_goes_on_where_it_was(tmp_path):
    out = tmp_path / "weekly"
    ended = dynsnap("demo", "weekly", "--out", out, "--weeks", "2", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].endswith(str(out / "history.html"))
    assert deployed(out) in (1, 2)
    before = [each.finished for each in projects.results(out)]
    assert len(before) == 2
    ended = dynsnap("demo", "weekly", "--out", out, "--weeks", "3")
    assert ended.exit_code == 0, ended.stderr
    after = [each.finished for each in projects.results(out)]
    assert after[:2] == before and len(after) == 3
    assert check(out, 3)


def test_options_of_one_demo_are_not_those_of_the_other(tmp_path):
    said = refused("demo", "--html", tmp_path / "x.html", "weekly", code=2)
    assert re.search(naming("--html"), said)


# --- columns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "known", "named"),
    [
        ({"x": [1.0], "y": [2.0]}, ["x"], ("y",)),
        ({"z": [1.0]}, ["x"], ("x", "z")),
        ({"y": [1.0], "x": [2.0]}, ["x", "y"], ("order",)),
        ({"x": [1.0], "word": ["a"]}, None, ("word", "features")),
        ({"two\nlines": [1.0]}, None, ("two", "Rename")),
    ],
    ids=["more", "renamed", "another order", "text", "name"],
)
def test_columns_that_are_not_those_of_the_deployed_generation_are_refused(
    tmp_path, columns, known, named
):
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = make(tmp_path / "small", weeks=1, retrain=METHOD.format(method="singlebase", more=""))
    trainer = make_trainer(projects.read_project(made))
    rows = {"id": ["a"], "time": ["2024-01-01"], **columns, "label": ["late"]}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    about = None if known is None else {"features": known}
    with pytest.raises(DataError, match=naming(*named)):
        trainer.check_rows(tmp_path, about)
    if known is not None:
        trainer.check_rows(tmp_path, {"features": list(columns)})
        trainer.check_rows(tmp_path, {})  # a generation of before they were kept


def test_a_newest_week_without_held_out_rows_has_no_metrics_of_its_own(tmp_path):
    made = make(tmp_path / "small", weeks=2)
    path = made / "data/week-1.csv"
    head, *rows = path.read_text().splitlines()
    out = held_out(np.array([row.partition(",")[0] for row in rows], dtype=object), 0.4)
    kept = [row for row, gone in zip(rows, out, strict=True) if not gone]
    path.write_text("\n".join([head, *kept]) + "\n")
    retrain(made, WEEKS[0])
    measured = retrain(made, WEEKS[1]).measured
    assert measured.held_out["lost"] and measured.newest == {}


def test_rows_of_one_class_are_named(tmp_path):
    made = make(tmp_path / "small", weeks=1, retrain=METHOD.format(method="singlebase", more=""))
    path = made / "data/week-0.csv"
    path.write_text(path.read_text().replace(",early", ",late"))
    said = refused("retrain", made, "--until", WEEKS[0], "-q", code=3)
    assert re.search(naming("one class", "late", "window"), said) and "np." not in said


def test_a_class_that_left_the_window_is_named_with_what_helps(tmp_path):
    table = METHOD.format(method="single-distill", more="")
    made = make(tmp_path / "small", weeks=2, retrain=table, data='window = "1 week"')
    first = made / "data/week-0.csv"
    first.write_text(re.sub(r",late(?=\n.*,early)", ",never", first.read_text(), count=20))
    assert retrain(made, WEEKS[0]).decision == "first"
    said = refused("retrain", made, "--until", WEEKS[1], "-q", code=3)
    assert re.search(naming("'never'", "window", "singlebase"), said)


def test_a_model_knows_its_columns_by_name_when_it_is_served(tmp_path, recwarn):
    made = make(tmp_path / "small", weeks=2, retrain=METHOD.format(method="singlebase", more=""))
    for file in (made / "data").iterdir():
        head, *lines = file.read_text().splitlines()
        more = [f"{line},{at % 3}" for at, line in enumerate(lines)]
        file.write_text("\n".join([f"{head},z", *more]) + "\n")
    for day in WEEKS[:2]:
        retrain(made, day)  # on arrays of the same columns, without a word of names
    assert not [one for one in recwarn if "feature names" in str(one.message)]
    served = DynSnapClassifier.load(made / "registry/generations/0002/model.ensemble")
    rows = pd.DataFrame({"x": [-1.0, 2.0], "z": [1.0, 2.0]})
    assert served.predict(rows).tolist() == ["early", "late"]
    with pytest.raises(InputError, match="order"):
        served.predict(rows[["z", "x"]])


def test_the_deployed_model_is_scored_as_it_is_served_whatever_project_toml_has_by_now(tmp_path):
    more = 'members = 2\ncombination = "average"'
    made = make(tmp_path / "small", weeks=1, retrain=METHOD.format(method="extbagging", more=more))
    retrain(made, WEEKS[0])
    model = made / "registry/generations/0001/model.ensemble"
    config = made / "project.toml"
    config.write_text(config.read_text().replace("average", "majority"))
    rows = tmp_path / "rows.parquet"
    pd.DataFrame({"id": ["a", "b"], "time": ["2024-01-01"] * 2, "x": [-0.5, 1.5]}).to_parquet(rows)
    trainer = make_trainer(projects.read_project(made))
    found = predictions.read(trainer.predict(model, rows, tmp_path))
    served = DynSnapClassifier.load(model)
    assert np.allclose(found.scores, served.predict_proba(pd.DataFrame({"x": [-0.5, 1.5]})))
