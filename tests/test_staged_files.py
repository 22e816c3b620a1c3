"""Files that are written aside: what takes its place when, and what is left of whom."""

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from dynsnap import _files
from dynsnap.errors import FileError

# Writes a file, says so when all of it is on disk, and waits there for ever.
HOLDING = """
import sys, time
from pathlib import Path
from dynsnap._files import replacing
with replacing(Path(sys.argv[1])) as aside:
    aside.write_text("half")
    print(aside, flush=True)
    while True:
        time.sleep(0.01)
"""


@contextmanager
def holding(path):
    """A process that has begun to write a file, and the file aside."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, path], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


@contextmanager
def disk_of(size):
    """A disk on which no file can be larger than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_next_writer_removes_what_a_killed_one_has_left_and_nothing_else(tmp_path):
    target, other = tmp_path / "found.json", tmp_path / "other.json"
    own = tmp_path / ".found.json"  # somebody's own hidden file
    own.write_text("mine")
    with holding(target) as (dead, left), holding(other) as (_, alive):
        dead.kill()
        dead.wait()
        assert left.read_text() == "half"
        _files.write_text(target, "whole")
        assert not left.exists()
        assert alive.read_text() == "half"
    assert target.read_text() == "whole"
    assert own.read_text() == "mine"


def test_a_writer_that_is_still_at_work_is_left_in_peace_by_another_of_the_same_file(tmp_path):
    target = tmp_path / "found.json"
    with holding(target) as (process, left):
        _files.write_text(target, "whole")
        assert left.read_text() == "half"
        assert process.poll() is None
    assert target.read_text() == "whole"


def test_files_written_together_take_their_places_together(tmp_path):
    first, second, stale = (tmp_path / name for name in ("a.txt", "b.txt", "c.txt"))
    for path in (first, second, stale):
        path.write_text("old")
    with _files.together():
        _files.write_text(first, "new")
        _files.write_text(second, "new")
        _files.remove(stale)
        assert [path.read_text() for path in (first, second, stale)] == ["old"] * 3
    assert [path.read_text() for path in (first, second)] == ["new"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt"}


def test_a_disk_that_is_full_for_the_last_of_them_replaces_none(tmp_path):
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    for path in (small, large):
        path.write_text("old")
    with pytest.raises(FileError, match=r"large\.txt"), disk_of(1000), _files.together():
        _files.make_folder(tmp_path / "new" / "folder")
        _files.write_text(tmp_path / "new" / "folder" / "x.txt", "new")
        _files.write_text(small, "new")
        _files.write_text(large, "new" * 1000)
    assert [path.read_text() for path in (small, large)] == ["old"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"small.txt", "large.txt"}


def test_a_signal_that_comes_while_files_take_their_places_waits_until_all_have(
    tmp_path, monkeypatch
):
    places = [tmp_path / "a.txt", tmp_path / "b.txt"]
    move = _files.StagedFile.move

    def disturbed(aside, target):
        os.kill(os.getpid(), signal.SIGINT)
        move(aside, target)

    monkeypatch.setattr(_files.StagedFile, "move", disturbed)
    with pytest.raises(KeyboardInterrupt), _files.together():
        for path in places:
            _files.write_text(path, "new")
    assert [path.read_text() for path in places] == ["new"] * 2
    assert len(list(tmp_path.iterdir())) == 2


@contextmanager
def signal_at(step):
    """Sends Ctrl-C at this step of what writes files, counted in lines."""
    files = {_files.__file__}
    passed = [0]

    def watch(frame, event, _):
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            passed[0] += 1
            if passed[0] == step:
                os.kill(os.getpid(), signal.SIGINT)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield passed
    finally:
        sys.settrace(before)


def test_a_signal_at_any_step_leaves_all_outputs_or_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of times, for nothing here
    written = set()

    def write(step):
        folder = tmp_path / str(step)
        folder.mkdir()
        with signal_at(step) as passed, _files.together():
            _files.make_folder(folder / "new" / "figures")
            _files.write_text(folder / "new" / "figures" / "a.svg", "new")
            _files.write_text(folder / "b.txt", "new")
        return passed[0]

    steps = write(0)
    for step in range(1, steps):
        with pytest.raises(KeyboardInterrupt):
            write(step)
        left = frozenset(path.name for path in (tmp_path / str(step)).rglob("*"))
        assert left in (frozenset(), {"new", "figures", "a.svg", "b.txt"}), step
        written.add(left)
        _files._current.set(None)  # no signal comes before the first call of a `finally` clause
    assert steps > 100
    assert len(written) == 2


def test_two_outputs_of_one_name_are_refused(tmp_path):
    with pytest.raises(FileError, match="twice"), _files.together():
        _files.write_text(tmp_path / "a.txt", "one")
        _files.write_text(tmp_path / "a.txt", "two")
    assert not list(tmp_path.iterdir())


def test_the_file_behind_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "real" / "file.txt")
    _files.write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "file.txt").read_text() == "new"


@pytest.mark.parametrize("name", ["a" * 251 + ".txt", "é" * 125 + ".csv"])
def test_any_name_that_a_file_can_have_can_be_written(tmp_path, name):
    _files.write_text(tmp_path / name, "new")
    assert [path.name for path in tmp_path.iterdir()] == [name]
