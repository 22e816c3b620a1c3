"""Pipes, links and devices where files are expected: refused, and nobody waits for them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.cli.test_ends import published
from tests.fuzz import run_folders


@pytest.fixture
def run(tmp_path):
    for name, content in run_folders.sound().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path / "run"


def replaced(run, pattern):
    return sorted(run.glob(pattern))[0]


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("about.json", "report"),
        ("study.toml", "report"),
        ("dynsnap.json", "runs"),
        ("rounds/*.npz", "size"),
        ("predictions/*.parquet", "publish"),
    ],
)
def test_a_pipe_in_a_run_folder_is_refused_and_not_waited_for(run, tmp_path, pattern, command):
    pipe = replaced(run, pattern)
    pipe.unlink()
    os.mkfifo(pipe)
    opened = threading.Event()

    def write():
        os.close(os.open(pipe, os.O_WRONLY))  # waits for a reader, which then sees the end
        opened.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        target = [tmp_path / "elsewhere"] if command == "publish" else []
        result = dynsnap(command, run, *target)
        read = opened.is_set()
    finally:
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reader)
    assert not read
    assert result.exit_code in (0, 2, 3)


@pytest.mark.parametrize(
    "words",
    [
        ["compare", OLD, NEW, "--resamples", 3, "--json", "LOOP"],
        ["compare", OLD, NEW, "--resamples", 3, "--svg", "LOOP"],
        ["report", "RUN", "--html", "page.html"],
        ["publish", "RUN", "LOOP"],
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_a_link_to_itself_is_no_traceback(tmp_path, words):
    run = published(tmp_path / "run")
    loop = tmp_path / "loop.json"
    for link in (loop, run / "about.json"):
        link.symlink_to(link.name)
    places = {"LOOP": loop, "RUN": run, "page.html": tmp_path / "page.html"}
    refused(*(places.get(word, word) for word in words), code=2 if "LOOP" in words else 3)


@pytest.mark.slow
def test_the_file_that_standard_output_goes_to_is_not_replaced(tmp_path):
    log = tmp_path / "log.txt"
    for target in ("/dev/stdout", log):
        words = [sys.executable, "-m", "dynsnap", "compare", OLD, NEW, "-q", "--resamples", "3"]
        with log.open("w") as out:
            before = os.fstat(out.fileno()).st_ino
            done = subprocess.run(
                [*words, "--json", str(target)], stdout=out, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2, done.stderr
        assert str(target) in done.stderr
        assert log.stat().st_ino == before


def test_publishing_does_not_copy_what_a_link_in_the_run_folder_names(tmp_path):
    run = published(tmp_path / "run")
    secret = tmp_path / "secret"
    secret.write_text("password")
    (run / "replicates.csv").symlink_to(secret)
    said = refused("publish", run, tmp_path / "results", code=3)
    assert "replicates.csv" in said
    assert not (tmp_path / "results").exists()
    assert "password" not in said
    assert Path(secret).read_text() == "password"
