"""How the program ends: by a signal, a full disk, a reader that leaves, or an error."""

import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dynsnap.cli import cli
from dynsnap.cli._signals import Signalled
from tests.cli.helpers import EXAMPLES, NEW, OLD, dynsnap, refused, table
from tests.cli.test_group import failing
from tests.test_staged_files import disk_of

NUMBERS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}

# Runs a command line, says when its first file is on disk, not in its place, and waits there.
HELD = """
import signal, time
for name in ("SIGTERM", "SIGHUP"):  # whatever the tests themselves were started with
    signal.signal(getattr(signal, name), signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from dynsnap import _files
flush = _files.flush
def hold(path):
    flush(path)
    print("aside", flush=True)
    while True:
        time.sleep(0.01)
_files.flush = hold
from dynsnap.cli import main
main()
"""

# Sends itself Ctrl-C in the moment in which a module is imported, and starts as the script does.
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["compare", "old.csv", "new.csv"]
from dynsnap.cli import main
main()
"""


def published(folder):
    """A run folder, as far as `publish` needs one."""
    (folder / "predictions").mkdir(parents=True)
    (folder / "table.csv").write_text("method,combination,metric,value\n")
    for number, file in enumerate((OLD, NEW), 1):
        place = folder / "predictions" / f"singlebase-average-g{number}.parquet"
        place.write_bytes(Path(file).read_bytes())
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def commands(folder):
    """Command lines that write: to new files, to old ones, and to folders."""
    out = folder / "out"
    return {
        "stabilize": ["stabilize", OLD, NEW, "-o", out / "new.parquet"],
        "publish": ["publish", published(folder / "run"), out / "results"],
        "compare": [
            *("compare", OLD, NEW, "--resamples", 3, "--json", out / "old.json"),
            *("--html", out / "page.html", "--svg", out / "figures" / "svg"),
            *("--flips", out / "flips.parquet"),
        ],
    }


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("stabilize", "SIGINT"),
        pytest.param("stabilize", "SIGHUP", marks=pytest.mark.slow),
        ("publish", "SIGTERM"),
        pytest.param("compare", "SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_command_in_one_line_and_leaves_no_trace(tmp_path, command, sent):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old.json").write_text("earlier")
    before = contents(out)
    words = [str(word) for word in commands(tmp_path)[command]]
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "aside\n"
        process.send_signal(signal.Signals[sent])
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode == NUMBERS[sent], said
    assert said == ("dynsnap: Stopped.\n" if sent == "SIGINT" else f"dynsnap: Stopped by {sent}.\n")
    assert contents(out) == before


@pytest.mark.parametrize(
    "name",
    ["dynsnap.cli._signals", "dynsnap.cli._group", "click", "dynsnap.cli._compare", "numpy"],
)
def test_ctrl_c_during_any_import_is_one_line(name):
    program = INTERRUPTED.format(name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "dynsnap: Stopped.\n")


@pytest.mark.parametrize("method", ["make_context", "invoke"])
def test_a_signal_among_the_instructions_of_click_is_no_traceback(monkeypatch, method):
    def stopped(*_, **__):
        raise Signalled(signal.SIGTERM)

    monkeypatch.setattr(type(cli), method, stopped)  # before its own way to end begins
    result = dynsnap()
    assert result.exit_code == 143
    assert result.stderr.split("\n")[-2] == "dynsnap: Stopped by SIGTERM."


def test_nothing_is_imported_before_the_entry_point_can_catch_ctrl_c():
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())
    module, function = project["project"]["scripts"]["dynsnap"].split(":")
    program = (
        f"import sys; before = set(sys.modules); from {module} import {function}\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["dynsnap", "dynsnap.cli"]


def test_a_reader_that_leaves_is_no_verdict():
    process = subprocess.Popen(
        [sys.executable, "-m", "dynsnap", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (141, "")


def test_an_error_stream_that_is_full_does_not_change_the_exit_code():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "dynsnap", "gaet"], stderr=full)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "error",
    [
        RecursionError("maximum recursion depth exceeded"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        EOFError("Compressed file ended before the end-of-stream marker was reached"),
        MemoryError("std::bad_alloc"),
        OSError(28, "No space left on device", "table.csv"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_library_raises_for_a_bad_file_is_one_line_and_exit_code_3(error):
    result = failing(error)
    assert result.exit_code == 3, result.output
    assert re.fullmatch(r"dynsnap: .+\n", result.stderr)


def test_a_full_disk_replaces_no_figure_and_no_other_output(tmp_path):
    one, other, third = (
        table(tmp_path / name, [f"{number},{number % 9},{number % wrong}" for number in range(27)])
        for name, wrong in (("one.csv", 9), ("other.csv", 8), ("third.csv", 7))
    )
    figures = ["--svg", tmp_path / "figures"]
    texts = ["--json", tmp_path / "found.json", "--html", tmp_path / "page.html"]
    settings = ["-q", "--resamples", 3]
    assert dynsnap("compare", one, other, *settings, *texts, *figures).exit_code == 0
    before = contents(tmp_path)
    drawn = [len(found) for name, found in before.items() if name.endswith(".svg")]
    assert len(drawn) >= 3
    # There is room for some of the figures; or for all but the page.
    some, page = (min(drawn) + max(drawn)) // 2, len(before["page.html"]) * 3 // 4
    assert page > len(before["found.json"])
    for outputs, room in ((figures, some), (texts, page)):
        with disk_of(room):
            said = refused("compare", one, third, *settings, *outputs, code=3)
        assert "Cannot write" in said
        assert str(outputs[-1]) in said
        assert contents(tmp_path) == before


def test_a_full_disk_leaves_published_results_as_they_were(tmp_path):
    run = published(tmp_path / "run")
    assert dynsnap("publish", run, tmp_path / "results").exit_code == 0
    before = contents(tmp_path / "results")
    (run / "table.csv").write_text("method,combination,metric,value\nnew,average,accuracy,1\n")
    second = run / "predictions" / "singlebase-average-g2.parquet"
    second.write_bytes(Path(OLD).read_bytes())
    room = min(len(found) for found in before.values() if found and found[:4] == b"PAR1")
    with disk_of(room - 1):
        assert "results" in refused("publish", run, tmp_path / "results", code=3)
    assert contents(tmp_path / "results") == before


def test_a_command_that_fails_makes_no_folders(tmp_path):
    outputs = ["--svg", tmp_path / "new" / "svg", "--html", tmp_path / "page.html"]
    refused("compare", tmp_path / "absent.csv", NEW, *outputs, code=3)
    assert not list(tmp_path.iterdir())


def test_figures_that_have_no_place_are_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    said = refused("compare", "absent.csv", NEW, "--svg", tmp_path / "file" / "svg", code=2)
    assert "--svg" in said
    assert "absent" not in said


def test_what_is_printed_comes_after_the_files(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    seen = []
    monkeypatch.setattr("click.echo", lambda *_, **__: seen.append(page.exists()))
    dynsnap("compare", OLD, NEW, "-q", "--resamples", 3, "--json", "-", "--html", page)
    assert seen == [True]
