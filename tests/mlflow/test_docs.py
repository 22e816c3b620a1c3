"""What docs/serving.md shows of MLflow is run, with the real server."""

from pathlib import Path

import mlflow
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import dynsnap
from dynsnap.cli import cli
from tests.documents import blocks, commands

PAGE = (Path(__file__).parents[2] / "docs/serving.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## MLflow\n")[2].partition("\n## ")[0]


def test_the_documented_code_and_commands_work(server, iris):
    (rows, names), (asked, truth) = iris
    ids = [f"customer {number}" for number in range(len(asked))]
    log, evaluate = (compile(block, "docs/serving.md", "exec") for block in blocks(SECTION, "py"))
    for count in (30, 100):
        model = LogisticRegression(max_iter=500)
        ensemble = dynsnap.DynSnapClassifier(model, method="extbagging", members=2, random_state=0)
        ensemble.fit(rows.iloc[:count], names[:count])
        space = {"ensemble": ensemble, "X_test": asked, "ids": ids, "y_test": truth, "X": asked}
        exec(log, space)
    mlflow.MlflowClient().set_registered_model_alias("churn", "challenger", "2")
    gate = next(line for line in commands(SECTION) if "models:/churn@challenger" in line)
    ended = CliRunner().invoke(cli, gate)
    assert ended.exit_code in (0, 1), ended.output  # a verdict
    data = asked.assign(customer=ids, churned=truth)
    with mlflow.start_run() as run:
        exec(evaluate, {"mlflow": mlflow, "data": data})
    assert mlflow.MlflowClient().get_run(run.info.run_id).data.tags["dynsnap.verdict"]
