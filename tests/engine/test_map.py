"""The same done to many things by worker processes."""

import functools
import itertools
import os
import pickle
import re
import signal
import socket
from pathlib import Path

import pytest

from dynsnap.engine import ProcessesMap, RayMap
from dynsnap.engine._ray_task import do
from dynsnap.errors import ComparisonError, FileError, PlanError
from tests.messages import naming


def threads(number):
    return number, os.environ["OMP_NUM_THREADS"]


def failing(number):
    if number == 3:
        raise FileError("old.parquet does not exist.")
    return number


def dying(folder, number):
    """Takes its process down with it, the first time that it meets the number 2."""
    if number == 2:
        try:
            (Path(folder) / "met").touch(exist_ok=False)
        except FileExistsError:
            return number
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def deadly(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def spread():
    with ProcessesMap(2) as spread:
        yield spread


def test_answers_come_in_the_order_of_the_things_from_workers_with_one_thread(spread):
    assert list(spread(threads, range(20))) == [(number, "1") for number in range(20)]
    assert list(spread(threads, [])) == []


def test_things_are_taken_only_as_they_are_needed(spread):
    taken = itertools.count()
    answers = spread(abs, taken)
    assert next(answers) == 0
    assert next(taken) < 6
    answers.close()


def test_what_a_worker_raises_arrives_after_the_answers_before_it(spread):
    found = []
    with pytest.raises(FileError, match=r"old\.parquet does not exist"):
        found.extend(spread(failing, range(6)))
    assert found == [0, 1, 2]


def test_a_worker_that_is_killed_is_replaced(spread, tmp_path):
    assert list(spread(functools.partial(dying, tmp_path), range(6))) == list(range(6))


@pytest.mark.slow
def test_workers_that_are_killed_again_and_again_stop_it(spread):
    with pytest.raises(ComparisonError, match=naming("3 times", "memory", "--workers")):
        list(spread(deadly, range(2)))


def test_a_file_that_a_worker_elsewhere_cannot_read_is_said_with_its_machine():
    for home, said in ((socket.gethostname(), "exist.$"), ("elsewhere", "exist. So it is on .*:")):
        (content,) = do(pickle.dumps((failing, 3, home)))
        well, error = pickle.loads(content)  # noqa: S301
        assert not well
        assert re.search(said, str(error))


def test_settings_that_make_no_sense_are_refused():
    for kind in (ProcessesMap, RayMap):
        with pytest.raises(PlanError, match=naming("`workers`", "at least 1", "got 0")):
            kind(workers=0)
    with pytest.raises(PlanError, match="HOST:PORT"):
        RayMap("ray://head:10001")
