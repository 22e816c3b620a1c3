import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dynsnap as package
from dynsnap import metrics
from tests.cli.helpers import NEW, OLD, TWIN, dynsnap, refused, table
from tests.messages import naming

DYNSNAP = Path(sys.executable).with_name("dynsnap")


@pytest.fixture(scope="module")
def found():
    """The example, read and measured without the comparison."""
    old, new = package.read(OLD), package.read(NEW)
    assert old.truth is not None
    return {
        "consistency": metrics.consistency(old.labels, new.labels),
        "correct_consistency": metrics.correct_consistency(old.labels, new.labels, truth=old.truth),
        "lost": metrics.transitions(old.labels, new.labels, truth=old.truth).lost,
    }


def test_the_four_cases_come_first(found):
    result = dynsnap("compare", OLD, NEW)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "old → new"
    assert lines[1].startswith("797 inputs, 10 classes")
    bar = next(place for place, line in enumerate(lines) if line.startswith("█ "))
    assert [word for word in lines[bar].split() if word.isalpha()] == [
        *("kept", "gained", "lost", "never", "right")
    ]
    first = {line.split()[0]: line for line in lines[bar + 4 : bar + 9]}
    assert first.keys() == {"accuracy", "lost", "gained", "kept", "never"}
    assert f"{found['lost']:.4f}" in first["lost"]
    assert "\x1b" not in result.stdout
    assert max(map(len, lines)) <= 100


def test_json_is_what_the_metrics_say(found):
    result = dynsnap("compare", OLD, NEW, "--json", "-")
    assert result.exit_code == 0
    plain = json.loads(result.stdout)
    assert [generation["name"] for generation in plain["generations"]] == ["old", "new"]
    assert 0.9 < plain["generations"][1]["metrics"]["accuracy"]["value"] < 1
    (pair,) = plain["pairs"]
    assert (pair["old"], pair["new"]) == ("old", "new")
    for name, value in found.items():
        measured = pair["metrics"][name]
        assert measured["value"] == pytest.approx(value)
        assert measured["low"] <= measured["value"] <= measured["high"]


def test_three_generations_have_three_pairs():
    result = dynsnap("compare", OLD, TWIN, NEW, "--names", "a,b,c", "--json", "-")
    plain = json.loads(result.stdout)
    assert [(pair["old"], pair["new"]) for pair in plain["pairs"]] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]


def test_the_noise_floor_stands_beside_the_flip_rates():
    result = dynsnap("compare", OLD, NEW, "--noise-floor", TWIN)
    assert "same data" in result.stdout
    assert "noise floor" not in result.stdout.splitlines()[0]


@pytest.mark.slow
def test_breakdowns_can_be_chosen_and_limited():
    told = dynsnap("compare", OLD, NEW, "--by", "class", "--limit", 3).stdout
    assert "Classes, worst first" in told
    assert "Slices" not in told
    assert "and 7 more" in told
    assert "Slices" in dynsnap("compare", OLD, NEW).stdout
    told = dynsnap("compare", OLD, NEW, "--by", "slice").stdout
    assert "Slices by ink" in told
    assert "Classes, worst first" not in told


def test_top_k_metrics_are_added_for_each_k():
    told = dynsnap("compare", OLD, NEW, "--top-k", 3, "--top-k", 5).stdout
    assert "CACC-2" in told
    assert "top_3_consistency" in told
    assert "top_5_accuracy" in told


def test_the_same_seed_gives_the_same_report_and_another_level_another_interval():
    plain = dynsnap("compare", OLD, NEW, "--json", "-").stdout
    assert plain == dynsnap("compare", OLD, NEW, "--json", "-").stdout
    wide = json.loads(dynsnap("compare", OLD, NEW, "--confidence", 0.99, "--json", "-").stdout)
    narrow = json.loads(dynsnap("compare", OLD, NEW, "--confidence", 0.5, "--json", "-").stdout)
    inner, outer = (each["pairs"][0]["metrics"]["lost"] for each in (narrow, wide))
    assert outer["low"] < inner["low"] < inner["high"] < outer["high"]


def test_flips_are_every_input_that_was_lost_or_gained(tmp_path):
    out = tmp_path / "flips.parquet"
    assert dynsnap("compare", OLD, NEW, "--flips", out, "-q").exit_code == 0
    assert pq.read_table(out).num_rows == 17 + 33


def test_files_are_written_beside_the_report(tmp_path):
    result = dynsnap(
        "compare", OLD, NEW, "--json", tmp_path / "a.json", "--markdown", tmp_path / "a.md"
    )
    assert result.stdout.startswith("old → new\n")
    assert json.loads((tmp_path / "a.json").read_text())["pairs"]
    assert (tmp_path / "a.md").read_text().startswith("## old → new\n")


def test_all_formats_compare_alike(tmp_path):
    said = package.read(NEW)
    expected = json.loads(dynsnap("compare", OLD, NEW, "--json", "-").stdout)["pairs"]
    for ending in (".csv", ".arrow", ".npz"):
        file = tmp_path / f"new{ending}"
        package.predictions.write(said, file)
        plain = json.loads(dynsnap("compare", OLD, file, "--json", "-").stdout)["pairs"]
        for name, estimate in expected[0]["metrics"].items():
            assert plain[0]["metrics"][name]["value"] == pytest.approx(estimate["value"], abs=1e-6)


def test_partial_overlap_is_compared_with_a_loud_count(tmp_path):
    old = table(tmp_path / "old.csv", [f"{i},a,a" for i in range(10)])
    new = table(tmp_path / "new.csv", [f"{i},a,b" for i in range(5, 20)])
    result = dynsnap("compare", old, new)
    assert result.exit_code == 0
    _, counted, note, *_ = result.stdout.splitlines()
    assert counted.startswith("5 inputs")
    assert re.findall(r"\d+", note)[:2] == ["5", "20"]  # shared ids, of all


def test_labels_without_truth_work_and_the_notes_say_what_is_left_out(tmp_path):
    old = table(tmp_path / "old.csv", ["1,a", "2,b"], head="id,label")
    new = table(tmp_path / "new.csv", ["1,a", "2,a"], head="id,label")
    told = dynsnap("compare", old, new).stdout
    assert "consistency  CON  0.5000" in told
    assert "left out" in told


def test_renamed_classes_are_the_same(tmp_path):
    old = table(tmp_path / "old.csv", ["1,car,car", "2,bus,bus"])
    new = table(tmp_path / "new.csv", ["1,car,automobile", "2,bus,bus"])
    plain = json.loads(
        dynsnap("compare", old, new, "--rename", "automobile=car", "--json", "-").stdout
    )
    assert plain["pairs"][0]["metrics"]["consistency"]["value"] == 1


def test_files_of_one_name_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("mon", "tue"):
        Path(folder).mkdir()
        table(Path(folder, "preds.csv"), ["1,a,a", "2,b,b"])
    told = dynsnap("compare", "mon/preds.csv", "tue/preds.csv").stdout
    assert told.startswith("mon/preds → tue/preds\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([OLD], "at least two"),
        ([], "at least two"),
        ([OLD, NEW, "--confidence", "95"], "--confidence"),
        ([OLD, NEW, "--confidence", "nan"], "--confidence"),
        ([OLD, NEW, "--resamples", "0"], naming("--resamples", "1", "100,000")),
        ([OLD, NEW, "--resamples", "1e9"], naming("--resamples", "1e9", "1", "100,000")),
        ([OLD, NEW, "--resamples", "100001"], naming("--resamples", "100001", "1", "100,000")),
        ([OLD, NEW, "--seed", "x"], naming("--seed", "'x'", "0")),
        ([OLD, NEW, "--top-k", "0"], "--top-k"),
        ([OLD, NEW, "--by", "colour"], "--by"),
        ([OLD, NEW, "--names", "a"], "--names takes 2"),
        ([OLD, NEW, "--rename", "x"], "--rename takes OLD=NEW"),
        ([OLD, NEW, "--jsno", "x"], "--json"),
        ([OLD, NEW, "--flips", NEW], naming("--flips", "overwrite", re.escape(str(NEW)))),
        ([OLD, NEW, "--flips", "-"], naming("Flips", r"\.parquet", r"\.csv")),
        ([OLD, NEW, "--flips", "flips.npz"], naming("Flips", r"\.parquet", r"flips\.npz")),
    ],
)
def test_wrong_use_exits_with_two(arguments, message):
    assert re.search(message, refused("compare", *arguments, code=2))


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def bomb(path):
    np.savez(path, id=np.arange(2), label=np.array([Bomb(), Bomb()], dtype=object))


BROKEN = {
    "empty.parquet": lambda path: path.write_bytes(b""),
    "cut.parquet": lambda path: path.write_bytes(Path(NEW).read_bytes()[:2000]),
    "noise.parquet": lambda path: path.write_bytes(os.urandom(500)),
    "text.npz": lambda path: path.write_text("id,label\n1,a\n"),
    "pickle.npz": lambda path: path.write_bytes(pickle.dumps([1])),
    "bomb.npz": bomb,
    "empty.csv": lambda path: path.write_text(""),
    "rows.csv": lambda path: path.write_text("id,label\n"),
    "ragged.csv": lambda path: path.write_text("id,label\n1,a\n2\n"),
    "no-id.csv": lambda path: path.write_text("key,label\n1,a\n"),
    "no-label.csv": lambda path: path.write_text("id,truth\n1,a\n"),
    "twice.csv": lambda path: path.write_text("id,label\n1,a\n1,b\n"),
    "nan.csv": lambda path: path.write_text("id,score:a,score:b\n1,nan,1\n"),
    "negative.csv": lambda path: path.write_text("id,score:a,score:b\n1,-0.5,1.5\n"),
    "sum.csv": lambda path: path.write_text("id,score:a,score:b\n1,0.5,0.9\n"),
    "control.csv": lambda path: path.write_text("id,label\n1,a\x1b[31m\n"),
    "control-id.csv": lambda path: path.write_text("id,label\nx\x07,a\n"),
    "ending.xlsx": lambda path: path.write_text("id,label\n1,a\n"),
    "folder.csv": lambda path: path.mkdir(),
    "absent.csv": lambda path: None,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, name):
    path = tmp_path / name
    BROKEN[name](path)
    for arguments in ([path, NEW], [OLD, path], [OLD, NEW, "--noise-floor", path]):
        line = refused("compare", *arguments, code=3)
        assert name in line
        assert "\x1b" not in line


def test_an_unwritable_output_is_refused_and_older_files_stay(tmp_path):
    older = tmp_path / "older.parquet"
    older.write_text("before")
    for option in ("--json", "--markdown", "--flips"):
        assert "directory" in refused("compare", OLD, NEW, option, tmp_path, code=2)
        assert "folder" in refused("compare", OLD, NEW, option, tmp_path / "no" / "x.csv", code=2)
        refused("compare", OLD, tmp_path / "absent.csv", option, older, code=3)
    assert older.read_text() == "before"
    assert list(tmp_path.iterdir()) == [older]


def test_a_link_to_an_output_stays_a_link(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("before")
    link.symlink_to(real)
    assert dynsnap("compare", OLD, NEW, "--json", link, "-q").exit_code == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["pairs"]


def test_markup_in_names_is_plain_data(tmp_path):
    name = "[red]<b>|*x*"
    file = table(tmp_path / "old.csv", [f"1,{name},{name}", f"2,b,{name}"])
    new = table(tmp_path / "[bold]new[-].csv", [f"1,{name},b", "2,b,b"])
    told = dynsnap("compare", file, new).stdout
    assert name in told
    assert "[bold]new[-]" in told
    page = dynsnap("compare", file, new, "--markdown", "-").stdout
    assert "<b>" not in page.replace("\\<b", "")
    plain = json.loads(dynsnap("compare", file, new, "--json", "-").stdout)
    assert name in plain["classes"]


def run(*arguments, **options):
    return subprocess.run([DYNSNAP, *arguments], capture_output=True, text=True, **options)


def test_the_installed_command_compares():
    done = run("compare", OLD, NEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("old → new\n")


def test_the_installed_command_fails_in_one_line():
    done = run("compare", OLD, "absent\n\x1b[31m.csv")
    assert done.returncode == 3
    assert done.stderr.startswith("dynsnap: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error():
    with subprocess.Popen(
        [DYNSNAP, "compare", OLD, NEW], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
def test_a_terminal_gets_colour_and_its_own_width():
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    environment = {**os.environ, "COLUMNS": "72", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([DYNSNAP, "compare", OLD, NEW], stdout=other, env=environment)
    os.close(other)
    shown = b""
    while True:
        try:
            shown += os.read(main, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
    os.close(main)
    assert process.wait() == 0
    assert b"\x1b[" in shown
    assert "old → new" in shown.decode()
