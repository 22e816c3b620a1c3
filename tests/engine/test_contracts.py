"""Every engine of the package is held against the contract, and none was forgotten."""

import inspect
import pickle
from pathlib import Path

import pytest

from dynsnap import engine
from dynsnap.data import digits_stream
from dynsnap.engine._worker import failed
from dynsnap.ensemble import serial
from dynsnap.errors import PlanError, TrainingError
from dynsnap.predictions._slicing import UnknownSliceError
from dynsnap.predictions._vocabulary import NoRowsError
from dynsnap.testing import CentroidTrainer, check_engine
from tests.engine.made import STEP
from tests.messages import naming

CHECKED_IN = {
    "ProcessesEngine": ("test_processes.py",),
    "RayEngine": ("ray/test_one_node.py", "ray/test_two_nodes.py"),
}


MAPS = {"ProcessesMap", "RayMap"}  # for comparisons; in test_map.py and ray/test_one_node.py


def test_there_are_three_engines_and_each_is_checked():
    found = {
        name
        for name in engine.__all__
        if inspect.isclass(kind := getattr(engine, name))
        and any("__call__" in vars(base) for base in kind.__mro__)
    }
    assert {serial.__name__, *found} == {"serial", *CHECKED_IN, *MAPS}
    for name, files in CHECKED_IN.items():
        text = "".join((Path(__file__).parent / file).read_text() for file in files)
        assert f"{name}(" in text
        assert "check_engine(engine, " in text
        assert "class TestFaults(Faults)" in text


def test_engines_can_be_closed_and_used_in_a_with_block():
    for name in CHECKED_IN:
        methods = {name for name, _ in inspect.getmembers(getattr(engine, name))}
        assert {"close", "__enter__", "__exit__"} <= methods


class Refusing(CentroidTrainer):
    """Says why it cannot train a generation that is not there."""

    def train(self, specs, /):
        for spec in specs:
            if spec.generation > 3:
                raise PlanError(f"{spec} is not there.")
        return super().train(specs)


def test_the_check_finds_an_engine_that_tells_another_error():
    def vague(trainer, specs):
        try:
            return list(trainer.train(specs))
        except PlanError as error:
            raise PlanError("Something went wrong.") from error

    trainer = Refusing(digits_stream())
    check_engine(serial, trainer, recipes=[STEP])
    with pytest.raises(AssertionError, match=naming("is not there", "Something went wrong")):
        check_engine(vague, trainer, recipes=[STEP])


def test_the_check_finds_an_engine_that_works_only_once():
    calls = []

    def tired(trainer, specs):
        calls.extend(specs)
        return [] if len(calls) > 2 else trainer.train(specs)

    with pytest.raises(AssertionError, match="asked again"):
        check_engine(tired, Refusing(digits_stream()), recipes=[STEP])


class OddError(TrainingError):
    """An error that pickle cannot make again: it takes no text."""

    def __init__(self, *, code):
        super().__init__(f"odd {code}")


class HoldingError(TrainingError):
    """An error that pickle cannot write."""

    def __init__(self, text):
        super().__init__(text)
        self.held = lambda: text


@pytest.mark.parametrize("error", [OddError(code=3), HoldingError("odd 3")])
def test_errors_of_a_trainers_own_arrive_with_their_text(error):
    sent = pickle.loads(pickle.dumps(failed(error)))  # noqa: S301
    assert type(sent.error) is TrainingError and str(sent.error) == "odd 3"


@pytest.mark.parametrize("kind", [NoRowsError, UnknownSliceError, TrainingError])
def test_errors_of_dynsnaps_own_can_be_sent(kind):
    again = pickle.loads(pickle.dumps(kind("what was wrong")))  # noqa: S301
    assert type(again) is kind and str(again) == "what was wrong"


def test_errors_of_dynsnaps_own_arrive_from_worker_processes_as_they_are():
    with engine.ProcessesEngine(1) as processes:
        check_engine(processes, Refusing(digits_stream()), recipes=[STEP])
