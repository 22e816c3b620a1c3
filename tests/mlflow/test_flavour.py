"""Ensembles as MLflow models: nothing pickled, the same answers, no code that a file chose."""

import dataclasses
import json
import os
import subprocess
import sys

import mlflow
import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

import dynsnap
import dynsnap.mlflow
from dynsnap import store
from dynsnap.errors import PlanError
from dynsnap.mlflow._flavour import _load_pyfunc
from tests.messages import naming


def small_network(classes):
    """A factory of the tester's own, which DYNSNAP_MODEL names."""
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, classes))


FACTORY = f"{__name__}:small_network"
MODELS = {
    "sklearn": lambda: LogisticRegression(max_iter=500),
    "lightgbm": lambda: LGBMClassifier(n_jobs=1, verbose=-1, min_child_samples=5),
    "xgboost": lambda: XGBClassifier(n_jobs=1),
    "torch": lambda: small_network,
}


@pytest.fixture(scope="module")
def ensembles(iris):
    """An ensemble of each kind of members."""
    (rows, names), _ = iris
    found = {}
    for kind, model in MODELS.items():
        settings = {} if kind == "sklearn" else {"epochs": 4}
        found[kind] = dynsnap.DynSnapClassifier(
            model(), method="extbagging", members=2, random_state=0, **settings
        ).fit(rows.astype("float32"), names)
    return found


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.fixture
def ensemble(kind, ensembles):
    return ensembles[kind]


@pytest.fixture
def factory(kind, monkeypatch):
    if kind == "torch":
        monkeypatch.setenv("DYNSNAP_MODEL", FACTORY)


def test_a_logged_model_answers_as_its_ensemble(server, kind, ensemble, factory, iris):
    rows = iris[1][0].astype("float32")
    with mlflow.start_run():
        info = dynsnap.mlflow.log_model(ensemble, "ensemble")
    found = mlflow.pyfunc.load_model(info.model_uri).predict(rows)
    wanted = ensemble.predict_proba(rows)
    np.testing.assert_allclose(found.filter(like="score:").to_numpy(), wanted, atol=1e-12)
    assert found["label"].tolist() == ensemble.predict(rows).tolist()
    assert found.index.tolist() == rows.index.tolist()
    model = small_network if kind == "torch" else None
    again = dynsnap.mlflow.load_model(info.model_uri, model=model)
    np.testing.assert_array_equal(again.predict_proba(rows), wanted)


CHILD = """
import json, sys
import mlflow, pandas as pd
rows = pd.read_json("rows.json", orient="split").astype("float32")
models = {kind: mlflow.pyfunc.load_model(kind) for kind in sys.argv[1:]}
print(json.dumps({kind: each.predict(rows)["label"].tolist() for kind, each in models.items()}))
"""


def test_nothing_is_pickled(ensemble, tmp_path):
    folder = tmp_path / "model"
    dynsnap.mlflow.save_model(ensemble, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if path.name == "model.ensemble"]
    for path in files:
        assert path.suffix not in (".pkl", ".pickle", ".joblib")
        assert not path.read_bytes().startswith(b"\x80")  # how a pickle begins
    assert "loader_module: dynsnap.mlflow" in (folder / "MLmodel").read_text()


def test_a_process_with_nothing_but_the_folders_loads_them(ensembles, iris, tmp_path):
    rows = iris[1][0]
    wanted = {
        kind: each.predict(rows.astype("float32")).tolist() for kind, each in ensembles.items()
    }
    for kind, ensemble in ensembles.items():
        dynsnap.mlflow.save_model(ensemble, tmp_path / kind)
        model = small_network if kind == "torch" else None
        again = dynsnap.mlflow.load_model(str(tmp_path / kind), model=model)
        assert again.predict(rows.astype("float32")).tolist() == wanted[kind]
    rows.to_json(tmp_path / "rows.json", orient="split")
    nowhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    path = os.pathsep.join([os.getcwd(), *sys.path])  # noqa: PTH109
    made = subprocess.run(
        [sys.executable, "-c", CHILD, *ensembles],
        env={**os.environ, **nowhere, "DYNSNAP_MODEL": FACTORY, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout.splitlines()[-1]) == wanted


def test_what_a_model_needs_is_named(kind, ensemble, tmp_path):
    dynsnap.mlflow.save_model(ensemble, tmp_path / "model")
    needs = (tmp_path / "model/requirements.txt").read_text().split()
    extras = "mlflow,torch" if kind == "torch" else "boost,mlflow"
    assert f"dynsnap[{extras}]=={dynsnap.__version__}" in needs


def test_a_factory_that_a_file_names_is_not_imported(generations, tmp_path, monkeypatch):
    generations[0].ensemble.save(tmp_path / "e")
    saved = store.load_ensemble(tmp_path / "e")
    forged = dataclasses.replace(saved, model={"factory": "antigravity:fly"})
    store.save_ensemble(tmp_path / "model.ensemble", forged)
    monkeypatch.delenv("DYNSNAP_MODEL", raising=False)
    with pytest.raises(PlanError, match=naming("DYNSNAP_MODEL")):
        _load_pyfunc(str(tmp_path / "model.ensemble"))
    assert "antigravity" not in sys.modules


def test_a_server_that_is_down_is_named(generations, down):
    with pytest.raises(PlanError, match=naming(down, "MLFLOW_TRACKING_URI")):
        dynsnap.mlflow.load_model("models:/iris@champion")
    with pytest.raises(PlanError, match=naming(down)):
        dynsnap.mlflow.log_model(generations[0].ensemble, "ensemble")


def test_a_model_that_does_not_exist_is_named(server):
    with pytest.raises(PlanError, match=naming("models:/nobody@champion")):
        dynsnap.mlflow.load_model("models:/nobody@champion")
