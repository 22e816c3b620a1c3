"""The engine of worker processes."""

import dataclasses
import functools
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from dynsnap.engine import ProcessesEngine, Rules
from dynsnap.engine._pickled import PickledTrainer
from dynsnap.engine._processes import _ProcessPool, _WorkerProcess
from dynsnap.errors import PlanError
from dynsnap.testing import CentroidTrainer, assert_same_round, check_engine
from tests.engine.faults import Faults
from tests.engine.made import (
    CYCLIC,
    STEP,
    FaultyTrainer,
    alive,
    assert_as_serial,
    assert_memory_does_not_grow_with_rounds,
    begun,
    specs,
    wait_for,
)
from tests.messages import naming
from tests.streams import small_stream
from tests.train.made import pictures, stream_of
from tests.train.made import spec as made_spec


@pytest.fixture
def engine_with():
    made = []

    def make(rules):
        made.append(ProcessesEngine(2, rules=rules))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.mark.slow
class TestFaults(Faults):
    """Of worker processes."""


@pytest.mark.parametrize(("content", "hinted"), [(b"c__main__\nbuild\n.", True), (b".", False)])
def test_a_worker_that_dies_in_a_script_that_it_needs_names_the_guard(content, hinted):
    facts = {"versions": {}, "path": (), "fingerprint": "", "arrays": []}
    pool = _ProcessPool(PickledTrainer(content=content, **facts), 1)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    theirs.close()
    dead = types.SimpleNamespace(exitcode=1, join=lambda *seconds: None, kill=lambda: None)
    worker = _WorkerProcess(dead, ours)
    pool._workers.append(worker)
    assert ("__main__" in pool._hear(worker).reason) == hinted
    pool.close()


def test_the_contract_holds():
    with ProcessesEngine(2) as engine:
        check_engine(engine, CentroidTrainer(small_stream()), recipes=[STEP, CYCLIC])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stacked", "alone"])
def test_torch_gives_the_same_bits_as_in_one_process(kind):
    import torch

    from dynsnap.train import TorchTrainer
    from dynsnap.train.models import cnn, mlp

    model = mlp if kind == "stacked" else functools.partial(cnn, width=4)
    trainer = TorchTrainer(stream_of(pictures()), model=model, batch_size=16, device="cpu")
    wanted = [made_spec(i, epochs=3, generation=1 + i % 2, dropout=0.1) for i in range(5)]
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as workers have it
    expected = {done.spec: done for done in trainer.train(wanted)}
    torch.set_num_threads(before)
    with ProcessesEngine(2) as engine:
        found = list(engine(trainer, wanted))
    assert {done.spec for done in found} == set(wanted)
    for done in found:
        assert_same_round(done, expected[done.spec])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["lightgbm.LGBMClassifier", pytest.param("xgboost.XGBClassifier", marks=pytest.mark.slow)],
)
def test_boosted_trees_keep_the_contract_too(name):
    from dynsnap.boost import BoostTrainer

    module, _, kind = name.rpartition(".")
    model = getattr(importlib.import_module(module), kind)(max_depth=2)
    with ProcessesEngine(1) as engine:
        check_engine(engine, BoostTrainer(small_stream(), model=model), recipes=[STEP])


class Threads(CentroidTrainer):
    """Says through a weight how many threads it was told to use, and who it is."""

    def train(self, specs, /):
        for done in super().train(specs):
            told = f"{os.environ['OMP_NUM_THREADS']} {os.getpid()}".encode()
            yield dataclasses.replace(done, weights=(told,) * 2)


def test_workers_compute_with_one_thread_and_stay_for_the_next_wave(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    trainer = Threads(small_stream())
    with ProcessesEngine(1) as engine:
        waves = [list(engine(trainer, specs(2))) for _ in range(2)]
    told = {done.weights[0] for wave in waves for done in wave}
    (only,) = told
    assert only.startswith(b"1 ")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert not alive(int(only.split()[1]))


def test_no_more_workers_are_started_than_there_are_rounds(tmp_path):
    with ProcessesEngine(8) as engine:
        assert_as_serial(list(engine(FaultyTrainer(tmp_path), specs(1))), specs(1))
        assert len(multiprocessing.active_children()) == 1


class Writing(CentroidTrainer):
    """Spoils its own inputs after every round."""

    def train(self, specs, /):
        for spec in specs:
            yield from super().train([spec])
            self._stream.pool.inputs[:] = 0


@pytest.mark.slow
def test_workers_share_the_data_but_cannot_change_it_for_each_other():
    trainer = Writing(small_stream())
    before = trainer._stream.pool.inputs.copy()
    with ProcessesEngine(2, rules=Rules(together=1)) as engine:
        found = list(engine(trainer, specs(2)))
    assert_as_serial(found, specs(2))
    np.testing.assert_array_equal(trainer._stream.pool.inputs, before)


@pytest.mark.slow
def test_workers_leave_with_a_driver_that_is_killed(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from dynsnap.engine import ProcessesEngine\n"
        "from tests.engine.made import FaultyTrainer, specs\n"
        "list(ProcessesEngine(1)(FaultyTrainer(sys.argv[1], {0: 'hang'}), specs(1)))\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), Path.cwd()])
    wait_for(lambda: begun(tmp_path, 0))
    worker = int(begun(tmp_path, 0)[0])
    assert alive(worker)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_for(lambda: not alive(worker))


def test_a_trainer_that_cannot_travel_is_refused():
    trainer = CentroidTrainer(small_stream())
    trainer.helper = lambda: None
    with ProcessesEngine(1) as engine, pytest.raises(PlanError, match="not lambdas"):
        list(engine(trainer, specs(1)))


def test_rules_that_make_no_sense_are_refused():
    for wrong in ({"attempts": 0}, {"together": 0}, {"patience": 0}):
        with pytest.raises(PlanError, match=f"`{next(iter(wrong))}` must be"):
            Rules(**wrong)
    with pytest.raises(PlanError, match=naming("`workers`", "at least 1", "got 0")):
        ProcessesEngine(0)


def test_an_engine_that_is_left_early_leaves_no_workers(tmp_path):
    engine = ProcessesEngine(2, rules=Rules(together=1))
    rounds = engine(FaultyTrainer(tmp_path, {3: "hang"}), specs(4))
    next(rounds)
    rounds.close()
    engine.close()
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_the_memory_of_the_driver_does_not_grow_with_the_number_of_rounds():
    assert_memory_does_not_grow_with_rounds("ProcessesEngine")
