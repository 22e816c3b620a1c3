"""`dynsnap gate` and `compare` on runs and model versions: logged predictions, no model."""

import json

import mlflow
import pytest
from click.testing import CliRunner

import dynsnap
import dynsnap.mlflow
from dynsnap.cli import cli
from dynsnap.errors import PlanError
from dynsnap.mlflow._addresses import TAG
from tests.messages import naming

RULE = ("--at-most", "lost=0.5")


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def test_aliases_versions_and_runs_are_judged_alike(generations):
    old, new = generations
    found = [
        invoke("gate", *places, *RULE, "--json", "-")
        for places in (
            ("models:/iris@champion", "models:/iris@challenger"),
            ("models:/iris/1", "models:/iris/2"),
            (f"runs:/{old.run}", f"runs:/{new.run}/{dynsnap.mlflow.PREDICTIONS}"),
        )
    ]
    assert [one.exit_code for one in found] == [0, 0, 0], found[0].output
    lost = {json.loads(one.stdout)["outcomes"][0]["value"] for one in found}
    assert len(lost) == 1
    assert not found[0].stderr
    failed = invoke("gate", "models:/iris/1", "models:/iris/2", "--at-least", "accuracy=1")
    assert failed.exit_code == 1
    compared = invoke("compare", "models:/iris@champion", "models:/iris@challenger", "--json", "-")
    assert compared.exit_code == 0, compared.output
    pair = json.loads(compared.stdout)
    assert [each["name"] for each in pair["generations"]] == ["iris@champion", "iris@challenger"]


def test_no_model_is_loaded(generations, monkeypatch):
    def refused(*_given, **_more):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("dynsnap.mlflow._flavour._load_pyfunc", refused)
    monkeypatch.setattr("mlflow.pyfunc.load_model", refused)
    monkeypatch.setattr("dynsnap.store.load_ensemble", refused)
    ended = invoke("gate", "models:/iris/1", "models:/iris/2", *RULE, "-q")
    assert ended.exit_code == 0, ended.output


def test_the_tag_is_an_address_on_runs_and_on_versions(generations, iris):
    client, (rows, truth) = mlflow.MlflowClient(), iris[1]
    found = generations[1].ensemble.predictions(rows, truth=truth)
    with mlflow.start_run() as run:
        source = f"{run.info.artifact_uri}/model"
        made = client.create_model_version("iris", source, run_id=run.info.run_id)
        version = f"models:/iris/{made.version}"
    with mlflow.start_run() as run:
        address = dynsnap.mlflow.log_predictions(found, "test/week-3.csv", version=version)
    assert address == f"runs:/{run.info.run_id}/test/week-3.csv"
    assert client.get_run(run.info.run_id).data.tags[TAG] == address
    assert client.get_model_version("iris", made.version).tags[TAG] == address
    for place in (address, f"runs:/{run.info.run_id}", version):
        with dynsnap.mlflow.fetched(place) as file:
            assert file.suffix == ".csv" and len(dynsnap.read(file)) == len(truth)
        assert not file.exists()
    client.set_model_version_tag("iris", made.version, TAG, "/etc/passwd")
    with (
        pytest.raises(PlanError, match=naming(TAG, "/etc/passwd")),
        dynsnap.mlflow.fetched(version),
    ):
        pass
    client.delete_model_version("iris", made.version)


@pytest.fixture(scope="module")
def empty_run(server):
    with mlflow.start_run() as run:
        pass
    return run.info.run_id


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("models:/iris@nobody", ["models:/iris@nobody", "nobody"]),
        ("models:/iris/99", ["models:/iris/99"]),
        ("models:/none@champion", ["models:/none@champion"]),
        ("models:/iris", ["models:/iris", "models:/NAME@ALIAS"]),
        ("runs:/0123456789abcdef0123456789abcdef", ["runs:/0123456789abcdef"]),
        ("runs:/{empty}", ["runs:/", "log_predictions", dynsnap.mlflow.PREDICTIONS]),
        ("runs:/{run}/other.parquet", ["other.parquet", "log_predictions"]),
        ("runs:/{run}/../../secret", ["secret"]),
    ],
)
@pytest.mark.parametrize("command", [("gate", *RULE), ("compare",)])
def test_bad_addresses_are_one_line(generations, empty_run, command, address, names):
    place = address.format(run=generations[0].run, empty=empty_run)
    ended = invoke(*command, place, "models:/iris/2")
    assert ended.exit_code == 2
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith("dynsnap:") and all(name in line for name in names)


@pytest.mark.parametrize("command", [("gate", *RULE), ("compare",)])
def test_a_server_that_is_down_is_one_line(generations, down, command):
    ended = invoke(*command, "models:/iris@champion", "models:/iris@challenger")
    assert ended.exit_code == 2
    (line,) = ended.stderr.strip().splitlines()
    assert down in line and "MLFLOW_TRACKING_URI" in line
    with pytest.raises(PlanError, match=naming(down)):
        dynsnap.mlflow.log_predictions(dynsnap.Predictions(ids=[1], classes=["a"], labels=["a"]))


def test_looking_makes_no_database(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    mlflow.set_tracking_uri(None)
    try:
        ended = invoke("gate", "models:/iris/1", "models:/iris/2", *RULE)
    finally:
        mlflow.set_tracking_uri(server.uri)
    assert ended.exit_code == 2 and "MLFLOW_TRACKING_URI" in ended.stderr
    assert not list(tmp_path.iterdir())
