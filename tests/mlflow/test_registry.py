"""The registry in MLflow keeps the contract of all registries, and the loop works with it."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import mlflow
import pandas as pd
import pytest

import dynsnap
import dynsnap.mlflow
from dynsnap import project as projects
from dynsnap.errors import FileError, PlanError
from dynsnap.project import _mlflow_registry
from tests.cli.helpers import dynsnap as command
from tests.messages import naming
from tests.project.made import NEVER, PERIODS, RULES, WEEKS, make, retrain
from tests.project.registry_contract import RegistryContract

OWN = _mlflow_registry.__file__
VERSIONS = dynsnap.mlflow.ModelVersions.__init__.__code__.co_filename
# Everything that registering and deploying a generation changes on the server, in order.
CHANGES = [
    (VERSIONS, "client.create_registered_model("),
    (VERSIONS, "client.create_run("),
    (VERSIONS, "client.log_artifact("),
    (VERSIONS, "made = client.create_model_version("),
    (VERSIONS, "client.set_terminated("),
    (OWN, "self._model.point(CHALLENGER, number)"),
    (OWN, "self._model.point(CHAMPION"),
    (OWN, "self._model.point(CHALLENGER, None)"),
    (OWN, "self._model.tag({_MOVES"),
]
AFTER_THE_ALIAS = ("self._model.point(CHALLENGER, None)", "self._model.tag({_MOVES")


def killed_at(work, file, text):
    """Whether a child killed itself, with nothing cleaned up, before a line of a file."""
    lines = Path(file).read_text().splitlines()
    (line,) = [number for number, each in enumerate(lines, 1) if text in each]
    pid = os.fork()
    if pid == 0:  # nothing of the test may go on in here
        try:

            def watch(frame, event, _):
                if frame.f_code.co_filename != file:
                    return None
                if event == "line" and frame.f_lineno == line:
                    os.kill(os.getpid(), signal.SIGKILL)
                return watch

            sys.settrace(watch)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.fixture
def name(request):
    """A registered model of each test's own."""
    return "".join(sign if sign.isalnum() else "-" for sign in request.node.name)


@pytest.fixture
def client(server):
    return mlflow.MlflowClient()


def aliases(client, name):
    return {alias: int(of) for alias, of in client.get_registered_model(name).aliases.items()}


class TestMlflowRegistry(RegistryContract):
    @pytest.fixture(autouse=True)
    def _server(self, server, client, name):
        self.server, self.client, self.name = server, client, name

    @pytest.fixture
    def opened(self, name):
        return lambda: projects.MlflowRegistry(name)

    def change(self, registry, number, name, content):
        run = self.client.get_run(self.client.get_model_version(self.name, str(number)).run_id)
        self.server.artifact(run, f"dynsnap/{name}").write_text(content)

    def remove(self, registry, number):
        self.client.delete_model_version(self.name, str(number))

    def test_aliases_name_the_deployed_generation_and_the_newest(self, registry, add, client, name):
        one = add("2024-01-01").number
        assert aliases(client, name) == {"challenger": one}
        registry.deploy(one, way="retrain", why="")
        assert aliases(client, name) == {"champion": one}
        two = add("2024-01-08", "2").number
        assert aliases(client, name) == {"champion": one, "challenger": two}

    def test_an_alias_that_was_moved_in_mlflow_is_followed(self, registry, add, client, name):
        one, two = add("2024-01-01").number, add("2024-01-08", "2").number
        registry.deploy(one, way="retrain", why="a")
        registry.deploy(two, way="retrain", why="b")
        client.set_registered_model_alias(name, "champion", str(one))
        found = registry.deployed()
        assert found.generation == one and found.moves[-1].way == "rollback"
        assert registry.checked(one)[0].number == one
        registry.deploy(two, way="promote", why="c")
        ways = [(move.to, move.way) for move in registry.deployed().moves]
        expected = [(one, "retrain"), (two, "retrain"), (one, "rollback"), (two, "promote")]
        assert ways == expected

    def test_an_alias_that_was_removed_is_no_first_retrain(self, registry, add, client, name):
        registry.deploy(add("2024-01-01").number, way="retrain", why="")
        client.delete_registered_model_alias(name, "champion")
        with pytest.raises(FileError, match=naming("champion", "1")):
            registry.deployed()

    def test_tags_that_were_changed_are_named(self, registry, add, client, name):
        registry.deploy(add("2024-01-01").number, way="retrain", why="")
        client.set_registered_model_tag(name, "dynsnap.move.0001", '{"to": "1"}')
        with pytest.raises(FileError, match=naming("dynsnap.move.0001")):
            registry.deployed()

    def test_versions_of_others_are_left_alone(self, registry, add, client, name):
        client.create_registered_model(name)
        run = client.create_run("0")
        client.create_model_version(name, f"{run.info.artifact_uri}/m", run_id=run.info.run_id)
        assert registry.numbers() == []
        assert add("2024-01-01").number == 2
        assert registry.numbers() == [2]

    def test_the_same_name_with_other_files_is_another_generation(self, registry, add):
        assert add("2024-01-01", "1").number != add("2024-01-01", "2").number

    def test_killed_before_any_change_the_same_calls_go_on(
        self, registry, opened, add, client, name
    ):
        def week(number):
            found = add(f"2024-02-{number:02}", str(number))
            pointer = opened().deployed()
            if pointer is None or pointer.moves[-1].why != found.retrain:
                opened().deploy(found.number, way="retrain", why=found.retrain)

        for number, (file, text) in enumerate(CHANGES, 1):
            assert killed_at(lambda number=number: week(number), file, text)
            pointer = opened().deployed()
            moved = text in AFTER_THE_ALIAS
            assert (0 if pointer is None else pointer.generation) == number - (not moved)
            week(number)
            assert aliases(client, name) == {"champion": number}
        count = len(CHANGES)
        assert registry.numbers() == list(range(1, count + 1))
        assert [move.to for move in registry.deployed().moves] == registry.numbers()
        experiment = client.get_experiment_by_name(name).experiment_id
        assert len(client.search_runs([experiment])) == count  # none was left behind

    @pytest.mark.parametrize("bad", ["a/b", "a:b", "a@b", "a'b", ""])
    def test_names_that_mlflow_cannot_have_are_refused(self, bad):
        with pytest.raises(PlanError, match=naming(repr(bad))):
            projects.MlflowRegistry(bad)


# --- the loop -------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, server, name):
    return make(
        tmp_path / "small", weeks=4, more=f'[registry]\nkind = "mlflow"\nmodel = "{name}"\n'
    )


def test_weeks_are_retrained_kept_and_rolled_back(project, client, name):
    for until in WEEKS[:2]:
        ended = command("retrain", project, "--until", until)
        assert ended.exit_code == 0, ended.output
    assert aliases(client, name) == {"champion": 2}
    (project / "gate.toml").write_text(NEVER)
    ended = command("retrain", project, "--until", WEEKS[2])
    assert ended.exit_code == 1, ended.output
    assert aliases(client, name) == {"champion": 2, "challenger": 3}
    found = json.loads(command("project", "status", project, "--json").stdout)
    assert found["deployed"] == 2
    assert [each["unchanged"] for each in found["generations"]] == [True] * 3
    # Both are there for a gate of its own, by their logged predictions.
    champion, challenger = f"models:/{name}@champion", f"models:/{name}@challenger"
    gated = command(
        "gate", champion, challenger, "--at-most", "lost=0.9", "--allow-missing", "1", "-q"
    )
    assert gated.exit_code == 0, gated.output
    assert command("project", "promote", project, "3").exit_code == 0
    assert aliases(client, name) == {"champion": 3}
    for wanted in (2, 1):
        ended = command("project", "rollback", project, "--why", "slow")
        assert ended.exit_code == 0, ended.output
        assert aliases(client, name) == {"champion": wanted}
    assert command("project", "rollback", project).exit_code == 2
    ended = command("project", "history", project)
    assert ended.exit_code == 0 and "slow" in ended.output
    assert not (project / "registry").exists()


def test_a_retrain_killed_between_registering_and_deploying_goes_on(project, client, name):
    retrain(project, WEEKS[0])

    file, text = OWN, "self._model.point(CHAMPION"
    assert killed_at(lambda: retrain(project, WEEKS[1]), file, text)
    assert aliases(client, name) == {"champion": 1, "challenger": 2}
    assert projects.open_registry(projects.read_project(project)).deployed().generation == 1
    result = retrain(project, WEEKS[1])
    assert (result.decision, result.plan.name) == ("promoted", PERIODS[1])
    assert aliases(client, name) == {"champion": 2}
    moves = projects.open_registry(projects.read_project(project)).deployed().moves
    assert [move.to for move in moves] == [1, 2]
    assert len(client.search_model_versions(f"name = '{name}'")) == 2


def test_a_server_that_is_down_keeps_the_deployed_generation(
    project, client, name, server, silent_port, monkeypatch
):
    retrain(project, WEEKS[0])
    with down_server(silent_port, server) as port:
        for arguments in (
            ("retrain", project, "--until", WEEKS[1]),
            ("retrain", project, "--until", WEEKS[1], "--dry-run"),
            ("project", "status", project),
            ("project", "rollback", project),
        ):
            ended = command(*arguments)
            assert ended.exit_code == 2
            (line,) = ended.stderr.strip().splitlines()
            assert f"127.0.0.1:{port}" in line
    assert aliases(client, name) == {"champion": 1}
    # It goes down after the training: what was trained is used when it is back.
    original = projects.MlflowRegistry.register

    def falls(registry, *given, **more):
        with down_server(silent_port, server):
            return original(registry, *given, **more)

    monkeypatch.setattr(projects.MlflowRegistry, "register", falls)
    assert command("retrain", project, "--until", WEEKS[1]).exit_code == 2
    assert aliases(client, name) == {"champion": 1}
    monkeypatch.undo()
    (project / "train.py").write_text("raise SystemExit('trained again')")
    assert retrain(project, WEEKS[1]).decision == "promoted"
    assert aliases(client, name) == {"champion": 2}


def test_a_file_that_changed_on_the_server_is_not_used(project, client, name, server):
    retrain(project, WEEKS[0])
    run = client.get_run(client.get_model_version(name, "1").run_id)
    server.artifact(run, "dynsnap/edge.txt").write_text("9")
    ended = command("retrain", project, "--until", WEEKS[1])
    assert ended.exit_code == 3 and "edge.txt" in ended.stderr
    shown = command("project", "status", project, "--json")
    assert json.loads(shown.stdout)["generations"][0]["unchanged"] is False


METHOD = """\
method = "singlebase"
epochs = 5
[model]
name = "lightgbm"
n_jobs = 1
min_child_samples = 5
"""


def test_an_ensemble_of_the_loop_is_a_model_of_mlflow(tmp_path, server, name):
    more = f'[registry]\nkind = "mlflow"\nmodel = "{name}"\nuri = "{server.uri}"\n'
    folder = make(tmp_path / "small", weeks=1, retrain=METHOD, rules=RULES, more=more)
    ended = command("retrain", folder, "--until", WEEKS[0])
    assert ended.exit_code == 0, ended.output
    uri = f"models:/{name}@champion"
    rows = pd.DataFrame({"x": [-2.0, 2.0]})
    found = mlflow.pyfunc.load_model(uri).predict(rows)
    assert found["label"].tolist() == ["early", "late"]
    assert dynsnap.mlflow.load_model(uri).predict(rows).tolist() == ["early", "late"]


@contextlib.contextmanager
def down_server(port, server):
    """MLflow as it is while nothing listens on its port."""
    mlflow.set_tracking_uri(f"http://127.0.0.1:{port}")
    try:
        yield port
    finally:
        mlflow.set_tracking_uri(server.uri)
