"""What may go wrong on a real cluster of two nodes, which are both on this machine."""

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

import dynsnap as package
from dynsnap.engine import RayEngine, Rules
from dynsnap.errors import TrainingError
from tests.cli.met import Met
from tests.cli.studies import LONG, contents, dynsnap
from tests.engine.faults import PATIENT, Faults, until_error
from tests.engine.made import FaultyTrainer, PairedTrainer, assert_as_serial, specs, trained
from tests.messages import naming

ray = pytest.importorskip("ray")


class Nodes:
    """A cluster to which nodes are added, one core each."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._cluster = Cluster()
        self.add(include_dashboard=False)

    @property
    def address(self):
        return self._cluster.address

    def add(self, num_cpus=1, **settings):
        return self._cluster.add_node(
            num_cpus=num_cpus, object_store_memory=100 * 2**20, **settings
        )

    def kill(self, node):
        """End a node's raylet and its workers at once, each by its own pid."""
        (raylet,) = node.all_processes["raylet"]
        pid = raylet.process.pid
        for one in (pid, *children(pid)):
            os.kill(one, signal.SIGKILL)

    def remove(self, node):
        self._cluster.remove_node(node, allow_graceful=False)

    def end(self):
        self._cluster.shutdown()


def children(pid):
    """The processes that a process has started, and not yet ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended in the meantime
            if int(file.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(file.parent.name))
    return found


@pytest.fixture(scope="module")
def cluster():
    """A head, and a second node."""
    nodes = Nodes()
    nodes.add()
    yield nodes
    nodes.end()


@pytest.fixture
def engine_with(cluster):
    made = []

    def make(rules):
        for engine in made:
            engine.close()
        made.append(RayEngine(cluster.address, workers=2, rules=rules))
        return made[-1]

    yield make
    for engine in made:
        engine.close()
    assert not ray.is_initialized()


class TestFaults(Faults):
    """Of the workers of two nodes."""


def test_a_node_that_is_killed_takes_nothing_with_it(cluster, tmp_path):
    doomed = cluster.add(env_vars={"DYNSNAP_TEST_NODE": "there"})
    wanted = specs(8)
    faults = dict.fromkeys(range(8), "hang on there")
    found = []
    with RayEngine(cluster.address, rules=Rules(together=1, **PATIENT)) as engine:
        for done in engine(FaultyTrainer(tmp_path, faults), wanted):
            found.append(done)
            if len(found) == 7:  # all but the one that hangs on the third node
                cluster.kill(doomed)
    cluster.remove(doomed)
    assert_as_serial(found, wanted)
    assert trained(tmp_path) == list(range(8))


def test_two_tasks_share_a_gpu_where_each_needs_half_of_it(cluster, tmp_path):
    # Ray believes a node that says it has a GPU.
    node = cluster.add(num_cpus=2, num_gpus=1)
    rules = Rules(together=1, **PATIENT)
    with RayEngine(cluster.address, gpus=0.5, rules=rules) as engine:
        found = list(engine(PairedTrainer(tmp_path), specs(2)))
    cluster.remove(node)
    told = [json.loads(done.weights[0]) for done in found]
    assert [one["resources"] for one in told] == [{"CPU": 1.0, "GPU": 0.5}] * 2
    assert {one["gpu"] for one in told} == {"0"}


def test_a_worker_with_another_version_is_named(cluster, tmp_path):
    shutil.copytree(Path(package.__file__).parent, tmp_path / "old/dynsnap")
    file = tmp_path / "old/dynsnap/__init__.py"
    text = file.read_text()
    text = text.replace(f'"{package.__version__}"', '"0.0.9"')
    assert '"0.0.9"' in text
    # The others go on when a worker of this version has a task too.
    file.write_text(f"{text}\nopen({str(tmp_path / 'met')!r}, 'w').close()\n")
    old = cluster.add(env_vars={"PYTHONPATH": str(tmp_path / "old")})
    found = []
    with (
        RayEngine(cluster.address, rules=Rules(together=1, **PATIENT)) as engine,
        pytest.raises(
            TrainingError,
            match=naming(r"0\.0\.9", "Install"),
        ),
    ):
        until_error(
            engine(FaultyTrainer(tmp_path, dict.fromkeys(range(6), "after met")), specs(6)), found
        )
    cluster.remove(old)
    assert trained(tmp_path) == sorted(done.spec.index for done in found)


def test_a_driver_that_is_killed_goes_on_where_it_was(cluster, tmp_path, monkeypatch):
    (tmp_path / "long.toml").write_text(LONG)
    monkeypatch.chdir(tmp_path)
    assert dynsnap("run", "long.toml", "--out", "serial", "-q").exit_code == 0
    command = ("run", "long.toml", "--engine", "ray", "--address", cluster.address, "--out", "run")
    Met(*command, cwd=tmp_path, files="rounds/[!.]*.npz").kill()
    kept = len(list((tmp_path / "run/rounds").glob("[!.]*.npz")))
    ended = dynsnap(*command)
    assert ended.exit_code == 0, ended.stderr
    about = json.loads((tmp_path / "run/about.json").read_text())
    assert about["rounds_trained_last"] == about["rounds"] - kept
    assert contents(tmp_path / "run") == contents(tmp_path / "serial")
    assert not list((tmp_path / "run/checkpoints").iterdir())


def test_a_cluster_that_is_not_there_is_named():
    engine = RayEngine("127.0.0.1:9")  # the port to which nobody listens
    with pytest.raises(TrainingError, match=naming("Ray", r"127\.0\.0\.1:9")):
        list(engine(FaultyTrainer("."), specs(1)))
