"""A trainer whose rounds go wrong as told, and that notes on disk which it has trained."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cached_property
from pathlib import Path

import numpy as np

from dynsnap.ensemble import Recipe, RoundSpec, Schedule, serial
from dynsnap.errors import TrainingError
from dynsnap.testing import CentroidTrainer, assert_same_round
from tests.streams import small_stream

STEP = Recipe(schedule=Schedule("step"), epochs=4, snapshots=2)
LONG = Recipe(schedule=Schedule("step"), epochs=12, snapshots=2)
CYCLIC = Recipe(schedule=Schedule("cyclic"), epochs=6, snapshots=3, selection="window")


def specs(count, recipe=STEP):
    return [RoundSpec(recipe=recipe, generation=1, index=index) for index in range(count)]


class FaultyTrainer(CentroidTrainer):
    """Does as `faults` says of the index of a round: "kill", "raise", "diverge", "hang".

    With "once" before it ("once kill"), only the first time; "hang on there" hangs on the node that
    is called "there" by its environment only. "until stopped" does not go on after its fifth epoch
    before it is asked to stop, "after met" not at all before there is a file "met" in the folder.
    """

    def __init__(self, folder, faults=None, **settings):
        super().__init__(small_stream(), **settings)
        self.folder = Path(folder)
        self.faults = faults or {}

    @cached_property
    def fingerprint(self):
        return "faulty"

    def train(self, specs, /):
        for spec in specs:
            fault = self.faults.get(spec.index, "")
            if not fault.startswith("once") or self._first(spec):
                self._go_wrong(fault.removeprefix("once "), spec)
            (done,) = super().train([spec])
            with (self.folder / "trained").open("a") as notes:
                notes.write(f"{spec.index}\n")
            yield done

    def _first(self, spec):
        try:
            (self.folder / f"met-{spec.index}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _go_wrong(self, fault, spec):
        with (self.folder / f"begun-{spec.index}").open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "raise":
            raise OSError(f"no luck with {spec.index}")
        elif fault == "diverge":
            raise TrainingError(f"{spec} diverged.")
        elif fault == "hang" or fault == f"hang on {os.environ.get('DYNSNAP_TEST_NODE')}":
            threading.Event().wait()  # until it is killed
        elif fault == "after met":
            wait_for(lambda: (self.folder / "met").exists())

    def _tell(self, spec, path, curve):
        if self.faults.get(spec.index) == "until stopped" and len(curve) > 5:
            wait_for(self._monitor.stopping)
        super()._tell(spec, path, curve)


class PairedTrainer(CentroidTrainer):
    """Trains no round before another one has begun too, and tells what Ray has granted each."""

    def __init__(self, folder):
        super().__init__(small_stream())
        self.folder = Path(folder)

    def train(self, specs, /):
        import ray

        for spec in specs:
            (self.folder / f"here-{spec.index}").touch()
            wait_for(lambda: len(list(self.folder.glob("here-*"))) > 1)
            (done,) = super().train([spec])
            granted = {
                "resources": ray.get_runtime_context().get_assigned_resources(),
                "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"),
            }
            yield dataclasses.replace(done, weights=(json.dumps(granted).encode(),) * 2)


class HeavyTrainer(CentroidTrainer):
    """Gives rounds of four megabytes."""

    def __init__(self):
        super().__init__(small_stream())

    def train(self, specs, /):
        for done in super().train(specs):
            scores = {"test": np.full((2, 25_000, 10), 0.1)}
            yield dataclasses.replace(done, scores=scores)


def memory_of_driver(engine, *, rounds):
    """The most megabytes that this process holds while it is handed so many heavy rounds."""
    most = 0
    for _ in engine(HeavyTrainer(), specs(rounds)):
        lines = Path("/proc/self/status").read_text().splitlines()
        (held,) = (line for line in lines if line.startswith("RssAnon"))
        most = max(most, int(held.split()[1]) // 1024)
    return most


def assert_memory_does_not_grow_with_rounds(kind):
    """Fail if a driver of its own, with such an engine, holds more with more rounds."""
    code = (
        f"from dynsnap.engine import {kind} as Engine\n"
        "from tests.engine.made import memory_of_driver\n"
        "if __name__ == '__main__':\n"
        "    with Engine(workers=2) as engine:\n"
        "        print(*(memory_of_driver(engine, rounds=rounds) for rounds in (4, 36)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    few, many = map(int, ended.stdout.split())
    assert many < few + 100, f"{few} MB with 4 rounds of 4 MB, {many} MB with 36"


def trained(folder):
    """The indices of the rounds that were trained to their end, in order."""
    notes = Path(folder) / "trained"
    return sorted(map(int, notes.read_text().split())) if notes.exists() else []


def assert_as_serial(found, wanted, tolerance=0.0):
    """Fail unless these are the rounds that the serial engine gives."""
    expected = {done.spec: done for done in serial(CentroidTrainer(small_stream()), wanted)}
    assert {done.spec for done in found} == set(wanted)
    assert len(found) == len(wanted)
    for done in found:
        assert_same_round(done, expected[done.spec], tolerance=tolerance)


def begun(folder, index):
    """The processes that have begun with a round, in order."""
    notes = Path(folder) / f"begun-{index}"
    return notes.read_text().split() if notes.exists() else []


def wait_for(happens):
    """Wait until something has happened, however long that takes."""
    while not happens():
        time.sleep(0.02)


def alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
