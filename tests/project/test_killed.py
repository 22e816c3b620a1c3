"""Retrains that are killed: whatever the line, one whole generation is deployed, and work goes on.

A child is forked from this process, counts the lines that it passes in the loop and in what writes
files, and sends itself SIGKILL at a chosen one. Nothing is cleaned up then: what is on disk is what
a power cut of the process leaves. The same retrain, called again, must end as an unbroken one.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from dynsnap import _files
from dynsnap import project as projects
from tests.project.made import PERIODS, RULES, WEEKS, deployed, make, retrain

LOOP = {str(file) for file in Path(projects.__file__).parent.glob("*.py")} | {_files.__file__}

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def forked(work, *, line=None, only=None):
    """Work in a child that kills itself at a line: whether it did, and how many it passed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:  # nothing of the test may go on in here
        try:
            os.close(reading)
            passed = 0

            def watch(frame, event, _):
                nonlocal passed
                if frame.f_code.co_filename not in (only or LOOP):
                    return None
                if event == "line":
                    passed += 1
                    if passed == line:
                        os.kill(os.getpid(), signal.SIGKILL)
                return watch

            sys.settrace(watch)
            work()
            sys.settrace(None)
            os.write(writing, str(passed).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return killed, int(said or 0)


def outcome(folder):
    """What a retrain leaves for good, without dates, times and the marks of attempts."""
    results = [
        (each.plan, each.measured.verdict, each.measured.held_out, each.decision)
        for each in projects.results(folder)
    ]
    registry = projects.FolderRegistry(folder / "registry")
    sums = [
        {name: each["sha256"] for name, each in registry.checked(number)[0].files.items()}
        for number in registry.numbers()
    ]
    moves = [(move.to, move.way, move.why) for move in registry.deployed().moves]
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return results, sums, moves, left


def killed_everywhere(tmp_path, count, rules=RULES, *, only=None):
    start = make(tmp_path / "start", weeks=2, rules=rules)
    retrain(start, WEEKS[0])
    whole = tmp_path / "whole"
    shutil.copytree(start, whole)
    _, lines = forked(lambda: retrain(whole, WEEKS[1]), only=only)
    assert lines > count
    retrain(whole, WEEKS[1])  # makes nothing new
    wanted, kills, seen = outcome(whole), 0, set()
    for number in range(count):
        folder = tmp_path / f"killed-{number}"
        shutil.copytree(start, folder)
        line = 1 + number * (lines - 1) // (count - 1)
        killed, _ = forked(lambda folder=folder: retrain(folder, WEEKS[1]), line=line, only=only)
        kills += killed
        current = deployed(folder)  # checks every file of it
        assert current in (1, 2)
        seen.add(current)
        if current == 2:  # only what a gate has let through
            measured = folder / "retrains" / PERIODS[1] / "measured.json"
            assert json.loads(measured.read_text())["verdict"] == "passed"
        retrain(folder, WEEKS[1])
        assert outcome(folder) == wanted
        shutil.rmtree(folder)
    return kills, seen


def test_killed_at_a_few_lines_it_goes_on(tmp_path):
    kills, _ = killed_everywhere(tmp_path, 3)
    assert kills == 3


@pytest.mark.slow
def test_killed_at_every_step_one_whole_generation_is_deployed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of times, for nothing here
    kills, seen = killed_everywhere(tmp_path, 50)
    assert kills == 50
    assert seen == {1, 2}  # before the pointer moved, and after


@pytest.mark.slow
def test_killed_while_the_pointer_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    registry = {str(Path(projects.__file__).with_name("_registry.py"))}
    kills, seen = killed_everywhere(tmp_path, 20, only=registry)
    assert kills == 20
    assert seen == {1, 2}


@pytest.mark.slow
def test_moves_by_hand_are_whole_or_not_made(tmp_path):
    folder = make(tmp_path / "small", weeks=2)
    retrain(folder, WEEKS[0])
    retrain(folder, WEEKS[1])

    def move(to):
        registry = projects.FolderRegistry(folder / "registry")
        registry.deploy(to, way="promote", why="")

    _, lines = forked(lambda: move(1))
    for line in range(1, lines + 1, max(1, lines // 25)):
        before = deployed(folder)
        to = 3 - before
        forked(lambda to=to: move(to), line=line)
        assert deployed(folder) in (1, 2)
        move(to)
        assert deployed(folder) == to
        assert not [each for each in (folder / "registry").iterdir() if each.name[0] == "."]
