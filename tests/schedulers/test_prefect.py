"""The example for Prefect, run by the real Prefect with its server on loopback.

Prefect has an environment of its own, without dynsnap: the flow calls the command `dynsnap` on the
path, as it would in production. `make test-schedulers`.
"""

import importlib

import pytest

from tests.schedulers.project import EXAMPLES, deployed, fail_the_gate, made_project

pytest.importorskip("prefect")


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    """The flow of the example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        patch.setenv("DO_NOT_TRACK", "1")
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module("retrain_prefect").weekly


@pytest.fixture
def server(flow):
    """A server of Prefect on loopback that ends with the test."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=600):
        yield


def test_the_flow_retrains_and_fails_with_the_gate(flow, server, tmp_path):
    project = made_project(tmp_path / "delays")
    assert flow(str(project)) == "done"
    assert deployed(project) == 1
    fail_the_gate(project)
    with pytest.raises(RuntimeError, match="gate failed"):
        flow(str(project))
    assert deployed(project) == 1


def test_the_schedule_is_one_that_prefect_knows(flow):
    (schedule,) = flow.to_deployment(name="weekly", cron="17 6 * * 1").schedules
    assert schedule.schedule.cron == "17 6 * * 1"
