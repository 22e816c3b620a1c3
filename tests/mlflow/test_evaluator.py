"""The evaluator that MLflow finds by its entry point: metrics, page and verdict."""

from pathlib import Path
from types import SimpleNamespace

import mlflow
import pandas as pd
import pytest
from click.testing import CliRunner

import dynsnap
import dynsnap.mlflow
from dynsnap.cli import cli
from dynsnap.errors import PlanError
from dynsnap.mlflow._evaluator import DynSnapEvaluator, _predicted
from tests.messages import naming


@pytest.fixture
def evaluated(generations, iris):
    """A function that evaluates a generation: the run, and what MLflow found."""
    rows, truth = iris[1]

    def evaluated(number, *, data=None, more=None, **config):
        with mlflow.start_run() as run:
            found = mlflow.models.evaluate(
                None if number is None else generations[number].model_uri,
                rows.assign(target=truth) if data is None else data,
                targets="target",
                model_type="classifier",
                evaluators="dynsnap",
                evaluator_config=config,
                **(more or {}),
            )
        return run.info.run_id, found

    return evaluated


def test_metrics_page_and_verdict_are_logged(generations, evaluated, tmp_path):
    old, new = generations
    run, found = evaluated(
        1,
        champion="models:/iris@champion",
        at_least=["correct_consistency=0.5"],
        at_most=["lost=0.2"],
    )
    with (
        dynsnap.mlflow.fetched(f"runs:/{old.run}") as first,
        dynsnap.mlflow.fetched(f"runs:/{new.run}") as second,
    ):
        pair = dynsnap.compare(dynsnap.read(first), dynsnap.read(second)).pairs[0]
    for name in ("consistency", "correct_consistency", "lost"):
        assert found.metrics[f"dynsnap/{name}"] == pytest.approx(pair.metrics[name].value)
    kept = mlflow.MlflowClient().get_run(run).data
    assert kept.tags["dynsnap.verdict"] == "passed"
    assert kept.tags["dynsnap.predictions"] == f"runs:/{run}/{dynsnap.mlflow.PREDICTIONS}"
    assert kept.metrics["dynsnap/consistency"] == found.metrics["dynsnap/consistency"]
    got = mlflow.artifacts.download_artifacts(run_id=run, dst_path=str(tmp_path))
    files = {str(path.relative_to(got)) for path in Path(got).rglob("*") if path.is_file()}
    named = ("comparison.html", "verdict.json", "predictions.parquet")
    assert {f"dynsnap/{name}" for name in named} <= files
    # What it logged is a champion for the next gate.
    arguments = ["gate", "models:/iris@champion", f"runs:/{run}", "--at-most", "lost=0.2", "-q"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0


def test_a_rule_that_fails_is_a_verdict_and_no_error(evaluated):
    run, _ = evaluated(1, champion="models:/iris@champion", at_least=["accuracy=1.0"])
    assert mlflow.MlflowClient().get_run(run).data.tags["dynsnap.verdict"] == "failed"


def test_every_rule_of_the_gate_can_be_asked_for(evaluated, tmp_path):
    rules = tmp_path / "gate.toml"
    rules.write_text(
        '[[rule]]\nmetric = "lost"\nat_most = 0.5\nconfidence = 0.9\n'
        '[[rule]]\nmetric = "lost"\nat_most = 0.6\nclass = "*"\nunresolved = "pass"\n'
        'correction = "holm"\nmin_count = 1\n'
    )
    run, found = evaluated(1, champion="models:/iris@champion", rules=str(rules))
    assert mlflow.MlflowClient().get_run(run).data.tags["dynsnap.verdict"] == "passed"
    plain = evaluated(1, champion="models:/iris@champion")[1]
    assert found.metrics == plain.metrics


def test_labels_that_a_model_chose_itself_are_judged(iris):
    rows, _ = iris[1]
    answers = pd.DataFrame({"score:a": [0.6, 0.6], "score:b": [0.4, 0.4], "label": ["b", "a"]})
    data = SimpleNamespace(
        features_data=rows.iloc[:2], labels_data=["b", "a"], predictions_data=answers
    )
    found = _predicted(data, None, None, None)
    assert found.names_of(found.labels).tolist() == ["b", "a"]


def test_a_missing_truth_is_no_class(generations, evaluated, iris):
    rows, truth = iris[1]
    some = rows.assign(target=[None, *truth[1:]])
    everything = evaluated(1)[1].metrics["dynsnap/accuracy"] * len(rows)
    found = evaluated(1, data=some)[1].metrics["dynsnap/accuracy"] * (len(rows) - 1)
    assert everything - found == pytest.approx(0) or everything - found == pytest.approx(1)
    # The champion's predictions know the truth of all rows.
    pairs = [evaluated(1, data=data, champion="models:/iris@champion") for data in (None, some)]
    lost = [found.metrics["dynsnap/lost"] for _, found in pairs]
    assert lost[0] == lost[1]


def test_without_a_champion_predictions_are_logged(evaluated):
    run, found = evaluated(0)
    assert 0 < found.metrics["dynsnap/accuracy"] <= 1
    with dynsnap.mlflow.fetched(f"runs:/{run}") as file:
        assert len(dynsnap.read(file)) == 50


def test_answers_in_a_column_of_the_data_are_taken(generations, evaluated, iris):
    rows, truth = iris[1]
    data = rows.assign(
        key=[f"flower {number}" for number in range(len(rows))],
        answer=generations[0].ensemble.predict(rows),
        target=truth,
    )
    run, found = evaluated(None, data=data, more={"predictions": "answer"}, id="key")
    assert found.metrics["dynsnap/accuracy"] == generations[0].ensemble.score(rows, truth)
    with dynsnap.mlflow.fetched(f"runs:/{run}") as file:
        assert list(dynsnap.read(file).ids)[:2] == ["flower 0", "flower 1"]


def test_a_column_of_the_answers_can_be_named(generations, evaluated, iris):
    rows, truth = iris[1]
    _, found = evaluated(0, more={"predictions": "label"})
    assert found.metrics["dynsnap/accuracy"] == generations[0].ensemble.score(rows, truth)


def test_settings_of_other_evaluators_are_left_to_them():
    for config, takes in (({}, True), ({"metric_prefix": "a"}, False), ({"champoin": ""}, True)):
        found = DynSnapEvaluator.can_evaluate(model_type="classifier", evaluator_config=config)
        assert found is takes
    assert not DynSnapEvaluator.can_evaluate(model_type="regressor", evaluator_config={})


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"champoin": "models:/iris/1"}, ["champoin", "champion"]),
        ({"at_most": ["lost=0.2"]}, ["champion"]),
        ({"champion": "models:/iris/1", "id": "key"}, ["key"]),
        ({"champion": "models:/iris@nobody"}, ["models:/iris@nobody"]),
    ],
)
def test_bad_settings_are_named(evaluated, config, names):
    with pytest.raises(PlanError, match=naming(*names)):
        evaluated(1, **config)
