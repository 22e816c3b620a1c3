"""What may go wrong with workers, and must go right with every engine that has any."""

import math
import os
import signal
import threading

import pytest

from dynsnap.engine import Rules
from dynsnap.ensemble import round_key
from dynsnap.errors import FileError, Interrupted, TrainingError
from dynsnap.store import RunFolder
from dynsnap.study import RoundManager
from dynsnap.testing import RecordingMonitor
from tests.engine.made import (
    LONG,
    FaultyTrainer,
    assert_as_serial,
    begun,
    specs,
    trained,
    wait_for,
)
from tests.messages import naming


class Memory:
    """Checkpoints in memory."""

    def __init__(self):
        self.kept = {}
        self.loaded = []

    def load(self, spec, /):
        if spec in self.kept:
            self.loaded.append(spec)
        return self.kept.get(spec)

    def save(self, spec, state, /):
        self.kept[spec] = state

    def drop(self, spec, /):
        self.kept.pop(spec, None)


# However busy the machine is, no round is trained a second time because its worker is slow.
PATIENT = {"patience": math.inf}


def until_error(rounds, found):
    for done in rounds:
        found.append(done)


class Faults:
    """Tests for an engine with two workers, which the fixture `engine_with` makes from rules."""

    def test_a_worker_killed_in_the_middle_is_replaced_and_its_round_retried(
        self, engine_with, tmp_path
    ):
        engine = engine_with(Rules(together=1, **PATIENT))
        found = list(engine(FaultyTrainer(tmp_path, {2: "once kill"}), specs(6)))
        assert_as_serial(found, specs(6))
        assert trained(tmp_path) == list(range(6))

    def test_rounds_that_a_killed_worker_had_sent_are_not_trained_again(
        self, engine_with, tmp_path
    ):
        engine = engine_with(Rules(**PATIENT))
        # The task with the last rounds of a wave of 8 on two workers is a small one; the first
        # holds rounds 0 and 1, of which 0 is done when 1 kills the worker.
        found = list(engine(FaultyTrainer(tmp_path, {1: "once kill"}), specs(8)))
        assert_as_serial(found, specs(8))
        assert trained(tmp_path) == list(range(8))

    def test_a_worker_killed_from_outside_is_replaced(self, engine_with, tmp_path):
        engine = engine_with(Rules(together=1, **PATIENT))
        rounds = engine(FaultyTrainer(tmp_path, {0: "once hang"}), specs(3))

        def kill():
            wait_for(lambda: begun(tmp_path, 0))
            os.kill(int(begun(tmp_path, 0)[0]), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        assert_as_serial(list(rounds), specs(3))
        killer.join()

    def test_a_round_that_kills_every_worker_stops_the_study_and_others_are_kept(
        self, engine_with, tmp_path
    ):
        engine, found = engine_with(Rules(attempts=2, **PATIENT)), []
        rounds = engine(FaultyTrainer(tmp_path, {3: "kill"}), specs(4))
        with pytest.raises(TrainingError, match=naming("round 3", "2 times")):
            until_error(rounds, found)
        assert_as_serial(found, specs(3))

    def test_a_round_that_raises_again_and_again_stops_the_study_with_its_last_error(
        self, engine_with, tmp_path
    ):
        engine, found = engine_with(Rules(attempts=3, **PATIENT)), []
        rounds = engine(FaultyTrainer(tmp_path, {3: "raise"}), specs(4))
        with pytest.raises(TrainingError, match=naming("3 times", "OSError: no luck")) as error:
            until_error(rounds, found)
        assert "_go_wrong" in error.value.__notes__[0]
        assert_as_serial(found, specs(3))

    def test_a_round_that_raises_once_is_retried(self, engine_with, tmp_path):
        engine = engine_with(Rules(together=1, **PATIENT))
        found = list(engine(FaultyTrainer(tmp_path, {0: "once raise"}), specs(2)))
        assert_as_serial(found, specs(2))

    def test_what_dynsnap_raises_is_not_retried_and_rounds_under_way_are_kept(
        self, engine_with, tmp_path
    ):
        engine, found = engine_with(Rules(together=1, **PATIENT)), []
        rounds = engine(FaultyTrainer(tmp_path, {0: "diverge"}), specs(6))
        with pytest.raises(TrainingError, match=r"round 0 .* diverged"):
            until_error(rounds, found)
        assert len(begun(tmp_path, 0)) == 1
        done = sorted(one.spec.index for one in found)
        assert 1 in done  # handed out together with the one that diverged
        assert trained(tmp_path) == done

    def test_a_straggler_is_overtaken(self, engine_with, tmp_path):
        engine = engine_with(Rules(together=1, patience=1))
        found = list(engine(FaultyTrainer(tmp_path, {1: "once hang"}), specs(4)))
        assert_as_serial(found, specs(4))
        assert trained(tmp_path) == list(range(4))

    def test_epochs_are_told_and_stopping_reaches_workers_and_keeps_checkpoints(
        self, engine_with, tmp_path
    ):
        notebook, states, found = RecordingMonitor(stop_after=5), Memory(), []
        wanted = specs(4, recipe=LONG)
        faults = dict.fromkeys(range(4), "until stopped")
        trainer = FaultyTrainer(tmp_path, faults, monitor=notebook, checkpoints=states)
        with pytest.raises(Interrupted, match="stopped as asked"):
            until_error(engine_with(Rules(together=2, **PATIENT))(trainer, wanted), found)
        assert not found
        assert len(notebook.epochs) >= 5
        half_done = set(states.kept)
        assert half_done == set(wanted[:2])
        going_on = FaultyTrainer(tmp_path, monitor=RecordingMonitor(), checkpoints=states)
        found += engine_with(Rules(**PATIENT))(going_on, wanted)
        assert_as_serial(found, wanted)
        assert half_done <= set(states.loaded)
        assert not states.kept

    def test_a_full_disk_stops_the_study_and_costs_nothing_that_was_stored(
        self, engine_with, tmp_path, monkeypatch
    ):
        trainer, wanted = FaultyTrainer(tmp_path), specs(6)
        with RunFolder(tmp_path / "run") as store:
            put, room = store.put, iter(range(2))

            def full(key, done):
                if next(room, None) is None:
                    raise FileError(f"Cannot write {key}: No space left on device.")
                put(key, done)

            monkeypatch.setattr(store, "put", full)
            manager = RoundManager(trainer, store)
            with pytest.raises(FileError, match="No space left"):
                manager.train(wanted, engine=engine_with(Rules(together=1, **PATIENT)))
        with RunFolder(tmp_path / "run") as store:
            stored = [
                spec for spec in wanted if store.get(round_key(trainer, spec), spec) is not None
            ]
            assert len(stored) == 2
            left = [spec for spec in wanted if spec not in stored]
            manager = RoundManager(trainer, store)
            manager.train(left, engine=engine_with(Rules(together=1, **PATIENT)))
            assert manager.trained == 4
            # Stored in single precision.
            assert_as_serial([manager.rounds.load(spec) for spec in wanted], wanted, tolerance=1e-7)
