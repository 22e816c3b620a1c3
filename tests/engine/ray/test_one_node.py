"""The Ray engine on a Ray that it starts by itself."""

import functools
import os

import numpy as np
import pytest

from dynsnap.data import digits_stream
from dynsnap.engine import RayEngine, RayMap
from dynsnap.errors import ComparisonError, FileError, PlanError, TrainingError
from dynsnap.testing import CentroidTrainer, assert_same_round, check_engine
from tests.cli.helpers import NEW, OLD, dynsnap
from tests.engine.made import CYCLIC, STEP, assert_memory_does_not_grow_with_rounds, specs
from tests.engine.test_map import deadly, failing
from tests.messages import naming
from tests.train.made import pictures, stream_of
from tests.train.made import spec as made_spec

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def home():
    """An engine with a Ray of its own, which the others of this module join."""
    assert not ray.is_initialized()
    with RayEngine(workers=2) as engine:
        check_engine(engine, CentroidTrainer(digits_stream()), recipes=[STEP, CYCLIC])
        yield engine
    assert not ray.is_initialized()


def test_it_starts_neither_dashboard_nor_usage_statistics(home):
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    node = ray._private.worker._global_node
    assert not node.webui_url
    assert ray.cluster_resources()["CPU"] == 2


@pytest.mark.parametrize("kind", ["stacked", "alone"])
def test_torch_gives_the_same_bits_as_in_one_process(home, kind):
    import torch

    from dynsnap.train import TorchTrainer
    from dynsnap.train.models import cnn, mlp

    model = mlp if kind == "stacked" else functools.partial(cnn, width=4)
    trainer = TorchTrainer(stream_of(pictures()), model=model, batch_size=16, device="cpu")
    wanted = [made_spec(i, epochs=3, generation=1 + i % 2, dropout=0.1) for i in range(5)]
    torch.set_num_threads(1)  # as workers have it
    expected = {done.spec: done for done in trainer.train(wanted)}
    found = list(home(trainer, wanted))
    assert {done.spec for done in found} == set(wanted)
    for done in found:
        assert_same_round(done, expected[done.spec])


def test_what_only_this_program_knows_can_be_sent(home):
    trainer = CentroidTrainer(digits_stream())
    trainer.helper = lambda: None
    assert len(list(home(trainer, specs(1)))) == 1


def test_rounds_fetched_do_not_keep_their_place_in_the_object_store(home):
    found = list(home(CentroidTrainer(digits_stream()), specs(2)))
    assert all(scores.flags.writeable for done in found for scores in done.scores.values())


def test_needs_that_the_cluster_cannot_meet_are_refused(home):
    engine = RayEngine(gpus=0.5)
    with pytest.raises(TrainingError, match=naming("2 CPUs", "0 GPUs", "needs 1 CPUs")):
        list(engine(CentroidTrainer(digits_stream()), specs(1)))


def test_an_engine_leaves_a_ray_alone_that_it_has_not_started(home):
    with RayEngine(workers=1) as engine:
        assert len(list(engine(CentroidTrainer(digits_stream()), specs(1)))) == 1
    assert ray.is_initialized()


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(PlanError, match=naming("`workers`", "at least 1", "got 0")):
        RayEngine(workers=0)
    with pytest.raises(PlanError, match=naming("`cpus`", "positive", "0")):
        RayEngine(cpus=0)
    with pytest.raises(PlanError, match=naming("`gpus`", "negative", "-1")):
        RayEngine(gpus=-1)
    with pytest.raises(PlanError, match="HOST:PORT"):
        RayEngine("ray://head:10001")


def test_a_comparison_is_spread_too(home, tmp_path):
    from tests.comparison.test_parallel import cut, made, result

    cut(made(2), tmp_path / "old", 700, 2500)
    cut(made(3).take(np.random.default_rng(1).permutation(len(made(3)))), tmp_path / "new", 1000)
    found = result(tmp_path, "old", "new", parallel=RayMap(workers=2))
    assert found == result(tmp_path, "old", "new")


def test_the_command_line_compares_on_ray_too(home, tmp_path):
    found = []
    for options in ((), ("--engine", "ray", "--workers", "2")):
        file = tmp_path / f"found{len(found)}.json"
        ended = dynsnap("compare", OLD, NEW, "-q", "--json", file, *options)
        assert ended.exit_code == 0, ended.stderr
        found.append(file.read_text())
    assert found[0] == found[1]


def test_what_a_worker_raises_while_it_counts_arrives(home):
    with pytest.raises(FileError, match=r"old\.parquet does not exist"):
        list(RayMap()(failing, range(6)))


def test_workers_that_die_again_and_again_while_they_count_stop_it(home):
    with pytest.raises(ComparisonError, match="lost 3 times"):
        list(RayMap()(deadly, range(2)))


def test_the_memory_of_the_driver_does_not_grow_with_the_number_of_rounds():
    assert_memory_does_not_grow_with_rounds("RayEngine")
