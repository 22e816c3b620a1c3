"""A real tracking server on loopback, with SQLite: flavour, addresses, evaluator, bad input."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import dynsnap
import dynsnap.mlflow
from dynsnap.cli import cli
from dynsnap.errors import FileError, PlanError
from tests.messages import naming


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The URI of a tracking server, which is ended by its process."""
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    uri = f"http://127.0.0.1:{port}"
    while True:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"{uri}/health") as answer:
                assert answer.status == 200
            break
        except OSError:
            time.sleep(0.2)
    os.environ["MLFLOW_TRACKING_URI"] = uri
    mlflow.set_tracking_uri(uri)
    yield uri
    os.killpg(process.pid, 15)  # the server and its worker
    process.wait()


@pytest.fixture(scope="session")
def generations(server):
    """Two generations of an ensemble, registered, with their predictions logged."""
    rows, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[:100], order[100:]
    made, runs = [], []
    for count in (30, 100):
        some = train[:count]
        model = LogisticRegression(max_iter=500)
        ensemble = dynsnap.DynSnapClassifier(model, method="extbagging", members=3, random_state=0)
        ensemble.fit(frame.iloc[some], names[some])
        with mlflow.start_run() as run:
            info = dynsnap.mlflow.log_model(ensemble, "ensemble", registered_model_name="iris")
            address = dynsnap.mlflow.log_predictions(
                ensemble.predictions(frame.iloc[test], truth=names[test])
            )
            assert address == f"runs:/{run.info.run_id}/{dynsnap.mlflow.PREDICTIONS}"
        made.append(ensemble)
        runs.append((run.info.run_id, info))
    client = mlflow.MlflowClient()
    client.set_registered_model_alias("iris", "champion", "1")
    client.set_registered_model_alias("iris", "challenger", "2")
    return made, runs, (frame.iloc[test], names[test])


def gate(*arguments):
    return CliRunner().invoke(cli, ["gate", *arguments])


def test_the_gate_judges_aliases_versions_and_runs_alike(generations):
    _, ((old, _), (new, _)), _ = generations
    rule = ("--at-least", "correct_consistency=0.5", "--json", "-")
    found = [
        gate("models:/iris@champion", "models:/iris@challenger", *rule),
        gate("models:/iris/1", "models:/iris/2", *rule),
        gate(f"runs:/{old}", f"runs:/{new}/{dynsnap.mlflow.PREDICTIONS}", *rule),
    ]
    assert [one.exit_code for one in found] == [0, 0, 0], found[0].output
    values = [json.loads(one.stdout)["rules"][0]["value"] for one in found]
    assert len(set(values)) == 1
    failed = gate("models:/iris@champion", "models:/iris@challenger", "--at-least", "accuracy=1")
    assert failed.exit_code == 1


def test_the_gate_loads_no_model(generations, monkeypatch):
    def refused(*_given, **_more):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("dynsnap.mlflow._flavour._load_pyfunc", refused)
    monkeypatch.setattr("mlflow.pyfunc.load_model", refused)
    ended = gate("models:/iris/1", "models:/iris/2", "--at-most", "lost=0.5", "-q")
    assert ended.exit_code == 0, ended.output


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("models:/iris@nobody", ["models:/iris@nobody"]),
        ("models:/none/1", ["models:/none/1"]),
        ("models:/iris", ["models:/iris", "models:/NAME@ALIAS"]),
        ("runs:/0123456789abcdef0123456789abcdef", ["runs:/0123456789abcdef"]),
        ("runs:/{run}/other.parquet", ["other.parquet", "log_predictions"]),
    ],
)
def test_bad_addresses_are_one_line(generations, address, names):
    place = address.format(run=generations[1][0][0])
    ended = gate(place, "models:/iris/2", "--at-most", "lost=0.5")
    assert ended.exit_code in (2, 3)
    lines = ended.stderr.strip().splitlines()
    assert len([line for line in lines if line.startswith("dynsnap:")]) == 1
    assert all(name in ended.stderr for name in names)


def test_a_server_that_is_down_is_named(generations, monkeypatch):
    port = free_port()
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"http://127.0.0.1:{port}")
    try:
        with (
            pytest.raises(FileError, match=naming(f"127.0.0.1:{port}", "MLFLOW_TRACKING_URI")),
            dynsnap.mlflow.fetched("models:/iris@champion"),
        ):
            pass
        with pytest.raises(FileError, match=naming(str(port))):
            dynsnap.mlflow.log_predictions(
                dynsnap.Predictions(ids=[1], classes=["a"], labels=["a"])
            )
    finally:
        mlflow.set_tracking_uri(before)


def test_the_flavour_predicts_as_the_ensemble_and_holds_no_pickle(generations, tmp_path):
    (ensemble, _), ((_, info), _), (rows, _) = generations
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    found = loaded.predict(rows)
    np.testing.assert_allclose(
        found.filter(like="score:").to_numpy(), ensemble.predict_proba(rows), atol=1e-12
    )
    assert found["label"].tolist() == ensemble.predict(rows).tolist()
    again = dynsnap.mlflow.load_model(info.model_uri)
    np.testing.assert_array_equal(again.predict(rows), ensemble.predict(rows))
    dynsnap.mlflow.save_model(ensemble, tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert any(path.name == "model.ensemble" for path in files)
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib")]
    assert "loader_module: dynsnap.mlflow" in (tmp_path / "model/MLmodel").read_text()


def test_a_factory_that_a_file_names_is_not_imported(generations, tmp_path, monkeypatch):
    from dynsnap import store
    from dynsnap.mlflow._flavour import _load_pyfunc

    (ensemble, _), _, _ = generations
    ensemble.save(tmp_path / "e")
    saved = store.load_ensemble(tmp_path / "e")
    forged = dataclasses.replace(saved, model={"backend": "torch", "factory": "os:abort"})
    store.save_ensemble(tmp_path / "model.ensemble", forged)
    monkeypatch.delenv("DYNSNAP_MODEL", raising=False)
    with pytest.raises(PlanError, match=naming("DYNSNAP_MODEL")):
        _load_pyfunc(str(tmp_path / "model.ensemble"))


def evaluated(generations, number, **config):
    _, runs, (rows, truth) = generations
    data = rows.assign(target=truth)
    with mlflow.start_run() as run:
        found = mlflow.models.evaluate(
            runs[number][1].model_uri,
            data,
            targets="target",
            model_type="classifier",
            evaluators="dynsnap",
            evaluator_config=config,
        )
    return run.info.run_id, found


def test_the_evaluator_logs_metrics_page_and_verdict(generations, tmp_path):
    _, ((old, _), (new, _)), _ = generations
    run, found = evaluated(
        generations,
        1,
        champion="models:/iris@champion",
        at_least=["correct_consistency=0.5"],
        at_most=["lost=0.2"],
    )
    expected = [dynsnap.mlflow.fetched(f"runs:/{one}") for one in (old, new)]
    with expected[0] as first, expected[1] as second:
        pair = dynsnap.compare(dynsnap.read(first), dynsnap.read(second)).pairs[0]
    for name in ("consistency", "correct_consistency", "lost"):
        assert found.metrics[f"dynsnap/{name}"] == pytest.approx(pair.metrics[name].value)
    kept = mlflow.MlflowClient().get_run(run).data
    assert kept.tags["dynsnap.verdict"] == "passed"
    assert kept.metrics["dynsnap/consistency"] == found.metrics["dynsnap/consistency"]
    got = mlflow.artifacts.download_artifacts(run_id=run, dst_path=str(tmp_path))
    files = {str(path.relative_to(got)) for path in Path(got).rglob("*") if path.is_file()}
    assert {
        "dynsnap/comparison.html",
        "dynsnap/verdict.json",
        "dynsnap/predictions.parquet",
    } <= files
    # What it logged is a champion for the next gate.
    ended = gate("models:/iris@champion", f"runs:/{run}", "--at-most", "lost=0.2", "-q")
    assert ended.exit_code == 0, ended.output


def test_a_rule_that_fails_is_a_verdict_and_no_error(generations):
    run, _ = evaluated(generations, 1, champion="models:/iris@champion", at_least=["accuracy=1.0"])
    assert mlflow.MlflowClient().get_run(run).data.tags["dynsnap.verdict"] == "failed"


def test_without_a_champion_predictions_are_logged(generations):
    run, found = evaluated(generations, 0)
    assert 0 < found.metrics["dynsnap/accuracy"] <= 1
    with dynsnap.mlflow.fetched(f"runs:/{run}") as file:
        assert len(dynsnap.read(file)) == 50


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"champoin": "models:/iris/1"}, ["champoin", "champion"]),
        ({"at_most": ["lost=0.2"]}, ["champion"]),
        ({"champion": "models:/iris/1", "id": "key"}, ["key"]),
        ({"champion": "models:/iris@nobody"}, ["models:/iris@nobody"]),
    ],
)
def test_bad_settings_of_the_evaluator_are_named(generations, config, names):
    with pytest.raises((PlanError, FileError), match=naming(*names)):
        evaluated(generations, 1, **config)
