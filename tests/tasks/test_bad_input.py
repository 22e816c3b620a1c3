"""What fits no task, or another one, is refused in a line that says what to do."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import dynsnap
from dynsnap.cli import cli
from dynsnap.errors import ComparisonError, FileError, InputError, PlanError
from dynsnap.predictions.tasks import Graded, MultiLabel, Ranking, Regression, task_of
from tests.messages import naming
from tests.tasks import files


@pytest.mark.parametrize("threshold", [-0.1, 1.5, math.nan, "high"])
@pytest.mark.parametrize("task", ["binary", "multilabel", "graded"])
def test_a_threshold_outside_0_to_1_is_refused(task, threshold):
    with pytest.raises(PlanError, match=naming("threshold", "0", "1", str(threshold))):
        task_of(task, {"threshold": threshold})


@pytest.mark.parametrize("task", [None, "classification", "binary", "graded"])
def test_a_tolerance_without_regression_is_refused(task):
    with pytest.raises(PlanError, match=naming("tolerance", "--task regression")):
        task_of(task, {"tolerance": 0.5})


@pytest.mark.parametrize("tolerance", [-1, math.nan, math.inf, "much", True])
def test_a_tolerance_that_is_no_distance_is_refused(tolerance):
    with pytest.raises(PlanError, match=naming("tolerance", str(tolerance))):
        Regression(tolerance=tolerance)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, 5000])
def test_a_ranking_of_no_places_is_refused(k):
    with pytest.raises(PlanError, match=naming("`k`", str(k))):
        Ranking(k=k)


def test_a_regression_needs_a_tolerance_and_a_task_a_name():
    with pytest.raises(PlanError, match=naming("regression", "--tolerance")):
        task_of("regression", {})
    with pytest.raises(PlanError, match=naming("regresion", "regression")):
        task_of("regresion", {})
    with pytest.raises(PlanError, match=naming("tolerance", "Regression")):
        task_of(Regression(tolerance=1), {"tolerance": 2})


def saved(folder, **columns):
    rows = len(next(iter(columns.values())))
    path = folder / "file.parquet"
    pq.write_table(pa.table({"id": list(range(rows)), **columns}), path)
    return path


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"score": [0.1, 0.9]}, ["--task binary", "score"]),
        ({"proba": [0.1, 0.9]}, ["--task binary --score-column proba"]),
        ({"correct": [1, 0]}, ["--task graded"]),
        ({"prediction": [1.5, 2.5]}, ["--task regression", "--tolerance"]),
        ({"tags": [["a"], ["b"]]}, ["--task multilabel --label-column tags"]),
        ({"ranking": [["a"], ["b"]]}, ["--task ranking"]),
        ({"label": [["a"], ["b", "c"]]}, ["--task multilabel", "--task ranking"]),
        ({"label": [0.25, 1.5]}, ["--task regression", "--task binary"]),
        ({"label": np.arange(100) * 1.37}, ["--task regression"]),
        ({"label": [f"answer {i}" for i in range(100)]}, ["100", "--task graded"]),
    ],
)
def test_files_of_another_task_are_told_which(columns, words, tmp_path):
    with pytest.raises(FileError, match=naming(*words)):
        dynsnap.read(saved(tmp_path, **columns))


@pytest.mark.parametrize(
    ("task", "settings", "columns", "words"),
    [
        ("binary", {}, {"score": [0.5, 3.0]}, ["score", "3", "sigmoid"]),
        ("binary", {}, {"score": ["low", "high"]}, ["score", "low"]),
        ("binary", {}, {"score": [0.5, None]}, ["score", "row 1"]),
        ("binary", {}, {"score": [0.1, 0.2], "truth": ["ham", "spam"]}, ["--positive", "ham"]),
        ("binary", {"positive": "x"}, {"score": [0, 1], "truth": ["ham", "spam"]}, ['"x"', "ham"]),
        ("binary", {}, {"score": [0, 1, 1], "truth": ["a", "b", "c"]}, ["two classes", "3"]),
        ("binary", {}, {"label": ["a", "b"]}, ["score", "--score-column"]),
        ("regression", {"tolerance": 1}, {"label": ["a", "b"]}, ["numbers", '"a"']),
        ("regression", {"tolerance": 1}, {"prediction": [1.0, math.nan]}, ["row 1", "nan"]),
        ("regression", {"tolerance": 1}, {"prediction": [1.0, math.inf]}, ["row 1", "inf"]),
        ("regression", {"tolerance": 1}, {"prediction": [1.0, 1e200]}, ["1e\\+200"]),
        ("regression", {"tolerance": 1}, {"prediction": [[1.0], [2.0]]}, ["numbers", "list"]),
        (
            "regression",
            {"tolerance": 1},
            {"prediction": [1.0, 2.0], "truth": [1.0, math.inf]},
            ["truth", "row 1"],
        ),
        ("graded", {}, {"correct": [0, 5]}, ["correct", "5", "0", "1"]),
        ("graded", {}, {"correct": [[1], []]}, ["correct", "row 1"]),
        ("graded", {}, {"label": ["a", "b"]}, ["correct", "--correct-column"]),
        ("multilabel", {}, {"label": [1, 2]}, ["lists", "label"]),
        ("multilabel", {}, {"label": [[], []]}, ["label"]),
        ("multilabel", {}, {"score:a": [0.5, 7.0]}, ["score:a", "7"]),
        ("multilabel", {}, {"label": [f"text {i}" for i in range(100)]}, ["100", "label"]),
        ("ranking", {}, {"ranking": [f"text {i}" for i in range(100)]}, ["100", "ranking"]),
        ("multilabel", {}, {"label": [["x"] * 2000]}, ["2,000", "--task ranking"]),
    ],
)
def test_columns_that_do_not_fit_a_task_are_refused(task, settings, columns, words, tmp_path):
    with pytest.raises(FileError, match=naming(*words)):
        dynsnap.read(saved(tmp_path, **columns), task=task, **settings)


def test_generations_of_two_tasks_are_not_compared(tmp_path):
    old = dynsnap.read(saved(tmp_path, prediction=[1.0, 2.0]), task="regression", tolerance=1)
    new = dynsnap.read(saved(tmp_path, label=[["a"], []]), task="multilabel")
    with pytest.raises(ComparisonError, match=naming("regression", "multilabel")):
        dynsnap.compare(old, new)


@pytest.mark.parametrize("kind", ["multilabel", "regression"])
def test_truths_that_contradict_each_other_are_refused(kind, tmp_path):
    old, new = files.pair(tmp_path, kind)
    rows = files.rows_of(kind, 2)
    rows[7]["truth"] = "zebra" if kind == "multilabel" else 99
    files.write(new, rows)
    with pytest.raises(ComparisonError, match=naming("truth", "zebra|99", "7")):
        dynsnap.compare(old, new, **files.SETTINGS[kind])


def test_repeated_ids_are_several_answers_only_where_these_are_graded(tmp_path):
    rows = [{"id": 1, "prediction": 1}, {"id": 1, "prediction": 2}]
    with pytest.raises(FileError, match=naming("1", "id")):
        dynsnap.read(files.write(tmp_path / "r.csv", rows), task="regression", tolerance=1)
    table = pa.table({"id": [1, 1], "correct": [[0, 1], [1]]})
    pq.write_table(table, tmp_path / "g.parquet")
    with pytest.raises(FileError, match=naming("list", "id")):
        dynsnap.read(tmp_path / "g.parquet", task="graded")


def test_answers_that_are_no_classes_are_not_written(tmp_path):
    read = dynsnap.read(saved(tmp_path, correct=[1, 0]), task="graded")
    with pytest.raises(InputError, match=naming("graded")):
        dynsnap.predictions.write(read, tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("kind", "rule", "words"),
    [
        ("regression", ["--at-least", "cohen_kappa=0.5"], ["cohen_kappa", "regression"]),
        ("regression", ["--at-least", "correctness=0.5"], ["correctness", "regression"]),
        ("binary", ["--at-most", "mae=0.5"], ["mean_absolute_error", "--task regression"]),
        ("graded", ["--at-least", "jaccard_consistency=0.5"], ["jaccard", "multilabel"]),
    ],
)
def test_a_rule_of_another_task_is_refused(kind, rule, words, tmp_path):
    pair = files.pair(tmp_path, kind, weights=False)
    done = CliRunner().invoke(cli, ["gate", *map(str, pair), *files.COMMANDS[kind], *rule])
    assert done.exit_code == 3
    assert len(done.output.strip().splitlines()) == 1
    for word in words:
        assert word in done.output


def test_a_rule_on_classes_that_a_task_does_not_have_is_refused(tmp_path):
    pair = files.pair(tmp_path, "regression", weights=False)
    found = dynsnap.compare(*pair, **files.SETTINGS["regression"], resamples=40)
    rule = dynsnap.gate.Rule(metric="lost", at_most=0.1, class_name="*")
    with pytest.raises(ComparisonError, match=naming("regression", "slice")):
        dynsnap.gate.judge(found, rule)


def test_as_many_thresholds_as_generations_or_one(tmp_path):
    pair = files.pair(tmp_path, "binary")
    with pytest.raises(PlanError, match=naming("3", "2")):
        dynsnap.compare(*pair, task="binary", threshold=[0.1, 0.2, 0.3])
    one = dynsnap.compare(*pair, task="binary", threshold=[0.3], resamples=40)
    same = dynsnap.compare(*pair, task="binary", threshold=0.3, resamples=40)
    assert one.pairs[0].transitions == same.pairs[0].transitions


def test_settings_of_sets_and_grades_are_checked():
    with pytest.raises(PlanError, match=naming("separator")):
        MultiLabel(separator="")
    with pytest.raises(PlanError, match=naming("threshold")):
        Graded(threshold=0)  # every answer would be right
