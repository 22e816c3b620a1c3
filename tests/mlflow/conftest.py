"""A real tracking server on loopback, with SQLite, for all tests here: `make test-mlflow`."""

import dataclasses
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import dynsnap

collect_ignore_glob = [] if os.environ.get("DYNSNAP_TEST_MLFLOW") else ["test_*.py"]
# Jobs of language models are half of the server's start, and nothing is reported to its makers.
SETTINGS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
os.environ.update(SETTINGS)


@dataclasses.dataclass(frozen=True)
class Server:
    """A tracking server, and the folder of its artifacts."""

    uri: str
    artifacts: Path

    def artifact(self, run, name):
        """The file of an artifact."""
        (found,) = self.artifacts.glob(f"*/{run.info.run_id}/artifacts/{name}")
        return found


@pytest.fixture(scope="session")
def silent_port():
    """A port on which nothing listens, and that nobody else can take."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


def _started(folder):
    """A server that answers, and its address; None if its port was taken in the meantime."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    uri = f"http://127.0.0.1:{port}"
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"{uri}/health") as answer:
                assert answer.status == 200
            return process, uri
        except OSError:
            time.sleep(0.2)
    said = (folder / "log").read_text()
    assert "in use" in said, said
    return None


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server, one for all tests; it is ended by its process."""
    import mlflow

    folder = tmp_path_factory.mktemp("mlflow")
    while (found := _started(folder)) is None:
        pass
    process, uri = found
    os.environ["MLFLOW_TRACKING_URI"] = uri
    mlflow.set_tracking_uri(uri)
    yield Server(uri, folder / "artifacts")
    os.killpg(process.pid, 15)  # the server and its worker
    process.wait()


@pytest.fixture
def down(server, silent_port, monkeypatch):
    """MLflow as it is while its server is down; the address that does not answer."""
    import mlflow

    uri = f"http://127.0.0.1:{silent_port}"
    mlflow.set_tracking_uri(uri)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    yield uri.removeprefix("http://")
    mlflow.set_tracking_uri(server.uri)


@pytest.fixture(scope="session")
def iris():
    """A table of flowers and their names, to train on and to test on."""
    import pandas as pd
    from sklearn.datasets import load_iris

    rows, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[:100], order[100:]
    return (frame.iloc[train], names[train]), (frame.iloc[test], names[test])


@dataclasses.dataclass(frozen=True)
class Logged:
    """A generation of an ensemble that was logged and registered, with its predictions."""

    ensemble: dynsnap.DynSnapClassifier
    run: str
    model_uri: str


@pytest.fixture(scope="session")
def generations(server, iris):
    """Two generations of the registered model "iris": champion and challenger."""
    import mlflow
    from sklearn.linear_model import LogisticRegression

    import dynsnap.mlflow

    (rows, names), (asked, truth) = iris
    made = []
    for count in (30, 100):
        model = LogisticRegression(max_iter=500)
        ensemble = dynsnap.DynSnapClassifier(model, method="extbagging", members=3, random_state=0)
        ensemble.fit(rows.iloc[:count], names[:count])
        with mlflow.start_run() as run:
            info = dynsnap.mlflow.log_model(ensemble, "ensemble", registered_model_name="iris")
            dynsnap.mlflow.log_predictions(ensemble.predictions(asked, truth=truth))
        made.append(Logged(ensemble, run.info.run_id, info.model_uri))
    client = mlflow.MlflowClient()
    client.set_registered_model_alias("iris", "champion", "1")
    client.set_registered_model_alias("iris", "challenger", "2")
    return made
