"""The example for Airflow, loaded and run by the real Airflow.

Airflow has an environment of its own, without dynsnap: its tasks call the command `dynsnap` on the
path, as they would in production. `make test-schedulers`.
"""

import importlib
import shutil

import pytest

from tests.schedulers.project import EXAMPLES, deployed, fail_the_gate, made_project

pytest.importorskip("airflow", exc_type=ImportError)


@pytest.fixture(scope="module")
def dag(tmp_path_factory):
    """The DAG as Airflow finds it in a folder."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    shutil.copy(EXAMPLES / "retrain_airflow.py", home / "dags")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        bags = importlib.import_module("airflow.dag_processing.dagbag")
        bag = bags.DagBag(home / "dags")
        assert bag.import_errors == {}
        yield bag.dags["retrain_delays"]


def test_airflow_finds_the_schedule_and_the_tasks(dag):
    assert dag.schedule == "17 6 * * 1"
    assert not dag.catchup and dag.max_active_runs == 1
    retrain, history = dag.get_task("retrain"), dag.get_task("history")
    assert retrain.downstream_task_ids == {"history"} and history.trigger_rule == "all_done"


def test_its_tasks_retrain_and_fail_with_the_gate(dag, tmp_path):
    from airflow.sdk.exceptions import AirflowException

    project = made_project(tmp_path / "delays")
    retrain, history = dag.get_task("retrain"), dag.get_task("history")
    for task in (retrain, history):
        assert "/srv/models/delays" in task.bash_command
        task.bash_command = task.bash_command.replace("/srv/models/delays", str(project))
    retrain.execute({})
    assert deployed(project) == 1
    fail_the_gate(project)
    with pytest.raises(AirflowException, match="exit code 1"):
        retrain.execute({})
    history.execute({})
    assert deployed(project) == 1
