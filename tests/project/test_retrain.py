"""The loop through the real command: what it deploys, keeps, writes and refuses."""

import errno
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from dynsnap import project as projects
from dynsnap.errors import FileError
from dynsnap.store import FolderLock
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming
from tests.project.made import (
    COMMANDS,
    NEVER,
    OPEN,
    PERIODS,
    RULES,
    WEEKS,
    deployed,
    make,
    retrain,
    week,
)


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "small")


@pytest.fixture
def second(tmp_path):
    """A project with one generation deployed, and rows of a second week."""
    made = make(tmp_path / "small")
    assert retrain(made, WEEKS[0]).decision == "first"
    return made


def decisions(folder):
    return [each.decision for each in projects.results(folder)]


def contents(folder):
    """Every file but the lock."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_weeks_are_retrained_gated_and_deployed(folder):
    for number, day in enumerate(WEEKS[:3], 1):
        ended = dynsnap("retrain", folder, "--until", day)
        assert ended.exit_code == 0, ended.stderr
        assert deployed(folder) == number
    found = list(projects.results(folder))
    assert [each.plan.period for each in found] == list(PERIODS[:3])
    assert [each.decision for each in found] == ["first", "promoted", "promoted"]
    place = folder / "retrains" / PERIODS[1]
    assert json.loads((place / "gate.json").read_text())["verdict"] == "passed"
    assert "<!doctype html>" in (place / "report.html").read_text()[:20].lower()
    assert "generation 1" in (place / "report.md").read_text()
    assert "not verified" not in (place / "report.html").read_text()  # there was no file to verify
    assert ElementTree.parse(place / "junit.xml").getroot().find("testsuite").get("failures") == "0"
    assert not (place / "work").exists()
    assert {"accuracy_old", "lost", "gained"} <= found[1].measured.newest.keys()
    # More rows every week, and never one that is held out.
    assert found[0].plan.train < found[1].plan.train < found[2].plan.train


@pytest.mark.parametrize(("rules", "code", "word"), [(NEVER, 1, "failed"), (OPEN, 5, "unresolved")])
def test_what_does_not_pass_keeps_the_deployed_generation(second, rules, code, word):
    (second / "gate.toml").write_text(rules)
    before = (second / "registry/deployed.json").read_bytes()
    for _ in range(2):  # the second call finds the retrain finished, and ends alike
        ended = dynsnap("retrain", second, "--until", WEEKS[1])
        assert ended.exit_code == code, ended.stderr
        assert (second / "registry/deployed.json").read_bytes() == before
    result = list(projects.results(second))[-1]
    assert (result.decision, result.measured.verdict) == ("kept", word)
    # What was kept back can be deployed by hand.
    assert dynsnap("project", "promote", second, "2").exit_code == 0
    assert deployed(second) == 2


def test_files_that_cannot_be_compared_keep_it_too(second):
    (second / "gate.toml").write_text(RULES + 'slice = { column = "nowhere", value = "x" }\n')
    assert dynsnap("retrain", second, "--until", WEEKS[1]).exit_code == 3
    assert deployed(second) == 1


def test_the_same_command_does_nothing_twice(second):
    retrain(second, WEEKS[1])
    before = contents(second)
    ended = dynsnap("retrain", second, "--until", WEEKS[1])
    assert ended.exit_code == 0
    assert re.search(naming(PERIODS[1], "--again"), ended.stderr)
    assert {**before, "history.html": b""} == {**contents(second), "history.html": b""}
    assert retrain(second, WEEKS[1], again=True).plan.name == f"{PERIODS[1]}-2"
    assert deployed(second) == 3


def test_a_dry_run_says_what_would_happen_and_does_nothing(second):
    (second / "train.py").write_text("open('ran', 'w').close()")
    before = contents(second)
    ended = dynsnap("retrain", second, "--until", WEEKS[1], "--dry-run")
    assert ended.exit_code == 0, ended.stderr
    assert re.search(naming("generation 1", PERIODS[1], r"train\.py", "1 rules"), ended.stdout)
    assert contents(second) == before


@pytest.mark.slow
def test_a_project_without_a_program_that_predicts_is_compared_on_old_rows(tmp_path):
    only = "\n".join(line for line in COMMANDS.splitlines() if not line.startswith("predict ="))
    made = make(tmp_path / "small", retrain=only)
    for day in WEEKS[:2]:
        assert retrain(made, day).exit_code == 0
    measured = list(projects.results(made))[-1].measured
    assert measured.evaluated < list(projects.results(made))[-1].plan.evaluate
    assert measured.notes
    verdict = json.loads((made / "retrains" / PERIODS[1] / "gate.json").read_text())
    assert [each["verified"] for each in verdict["verification"]] == [True, False]


def test_a_second_loop_is_refused(second):
    lock = FolderLock(second)
    lock.acquire()
    before = contents(second)
    try:
        for command in (["retrain", second], ["project", "rollback", second]):
            assert re.search(
                naming(str(os.getpid()), re.escape(str(second))), refused(*command, code=3)
            )
    finally:
        lock.release()
    assert contents(second) == before


@pytest.mark.slow
def test_the_truth_that_a_training_writes_is_not_used(second):
    script = (second / "train.py").read_text()
    lies = script.replace("id,label", "id,truth,label").replace(
        "out.write(f\"{row['id']},", "out.write(f\"{row['id']},late,"
    )
    assert lies.count("late,") == 1
    (second / "train.py").write_text(lies)
    result = retrain(second, WEEKS[1])
    assert 0 < result.measured.held_out["accuracy_new"][0] < 1


# --- bad input: one line, nothing lost ------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("import sys; print('out of memory'); sys.exit(7)", ("exit code 7", "out of memory")),
        ("import os; os.kill(os.getpid(), 9)", ("signal 9",)),
        ("", ("no model",)),
        ("import sys; open(sys.argv[3], 'w').write('x')", ("no predictions",)),
        (
            "import sys; open(sys.argv[3], 'w').write('x'); open(sys.argv[4], 'w').write('id\\n1')",
            ("predictions",),
        ),
        (
            "import sys; open(sys.argv[3], 'w').write('x')\n"
            "open(sys.argv[4], 'w').write('id,label\\nw0-0,late\\n')",
            ("no predictions for", "rows"),
        ),
    ],
    ids=["fails", "killed", "nothing", "model alone", "no labels", "some rows"],
)
def test_a_training_that_fails_or_writes_nothing_changes_nothing(second, script, named):
    whole = (second / "train.py").read_text()
    (second / "train.py").write_text(script)
    assert re.search(naming(*named), dynsnap("retrain", second, "--until", WEEKS[1]).stderr)
    assert dynsnap("retrain", second, "--until", WEEKS[1]).exit_code == 3
    assert deployed(second) == 1
    (second / "train.py").write_text(whole)  # mended, the same command goes on
    assert dynsnap("retrain", second, "--until", WEEKS[1]).exit_code == 0
    assert deployed(second) == 2


def test_a_program_that_does_not_exist_is_named(tmp_path):
    made = make(tmp_path / "small", retrain='command = "no-such-program {model} {predictions}"')
    said = dynsnap("retrain", made, "--until", WEEKS[0]).stderr
    assert re.search(naming("no-such-program"), said)


def test_no_shell_sees_the_command(tmp_path):
    text = COMMANDS.replace('"{deployed}" "', '"{deployed}" ; touch ran $(touch ran) `touch ran` "')
    made = make(tmp_path / "small", retrain=text)
    assert dynsnap("retrain", made, "--until", WEEKS[0]).exit_code == 0
    assert not list(made.rglob("ran"))


@pytest.mark.parametrize("name", ["edge.txt", "predictions.parquet"])
def test_a_file_that_changed_after_it_was_registered_is_not_used(second, name):
    file = second / "registry/generations/0001" / name
    file.chmod(0o644)
    file.write_bytes(file.read_bytes() + b" ")
    said = refused("retrain", second, "--until", WEEKS[1], "-q", code=3)
    assert re.search(naming("[Gg]eneration 1", name, "changed"), said)
    assert "changed" in dynsnap("project", "status", second).stdout
    assert dynsnap("project", "promote", second, "1").exit_code == 0  # it is the deployed one
    retried = dynsnap("project", "status", second, "--json")
    assert retried.exit_code == dynsnap("project", "status", second).exit_code == 3
    assert json.loads(retried.stdout)["generations"][0]["unchanged"] is False


def test_a_full_disk_during_promotion_leaves_what_is_deployed(second, monkeypatch):
    whole, met = os.fsync, []

    def full(handle):
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if name.startswith(".deployed."):
            met.append(name)
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(handle)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=naming("No space left", "generation 1")):
        retrain(second, WEEKS[1])
    assert met
    assert deployed(second) == 1
    monkeypatch.undo()
    assert retrain(second, WEEKS[1]).decision == "promoted"
    assert deployed(second) == 2


def test_rollback_walks_back_and_refuses_what_is_gone(second):
    retrain(second, WEEKS[1])
    retrain(second, WEEKS[2])
    assert dynsnap("project", "rollback", second, "--why", "too many lost").exit_code == 0
    assert deployed(second) == 2
    assert dynsnap("project", "rollback", second).exit_code == 0
    assert deployed(second) == 1
    refused("project", "rollback", second, code=2)
    assert dynsnap("project", "promote", second, "3").exit_code == 0
    gone = second / "registry/generations/0002"
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    for to in ("2", "9"):
        said = refused("project", "rollback", second, "--to", to, code=3)
        assert re.search(naming(f"[Gg]eneration {to}", "1, 3"), said)
        assert deployed(second) == 3
    refused("project", "promote", second, "0", code=2)


def test_a_week_without_rows_is_skipped_and_said(second):
    (second / "data/week-1.csv").unlink()
    ended = dynsnap("retrain", second, "--until", WEEKS[2])
    assert ended.exit_code == 0, ended.stderr
    assert re.search(naming(PERIODS[1], "skipped"), ended.stderr)
    result = list(projects.results(second))[-1]
    assert result.plan.skipped == (PERIODS[1],)
    # And where the newest week is the empty one, nothing is done.
    ended = dynsnap("retrain", second, "--until", "2024-02-12")
    assert (ended.exit_code, deployed(second)) == (0, 2)


@pytest.mark.slow
def test_labels_that_are_not_known_yet_are_waited_for(tmp_path):
    made = make(tmp_path / "small", data='label_delay = "3 days"')
    assert retrain(made, "2024-01-10") is None
    assert retrain(made, "2024-01-11").plan.period == PERIODS[0]
    text = (made / "data/week-1.csv").read_text()
    (made / "data/week-1.csv").write_text(re.sub(r",(late|early)$", ",", text, flags=re.M))
    assert retrain(made, "2024-01-18").plan.period == PERIODS[0]  # still the newest with labels
    (made / "data/week-1.csv").write_text(text)
    assert retrain(made, "2024-01-18").plan.period == PERIODS[1]


def change(folder, old, new, file="data/week-1.csv"):
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("w1-3,", "w0-3,", ("w0-3", "more than once")),
        ("2024-01-08T", "the eighth T", ("the eighth", "time")),
        ("2024-01-08T00:00:00", "2024-01-08T00:00:00+02:00", ("time zones",)),
        ("id,time", "id,when", ("week-1.csv", "columns")),
        ("w1-3,", ",", ("id",)),
    ],
    ids=["id twice", "no time", "mixed zones", "other columns", "no id"],
)
def test_rows_that_cannot_be_used_get_one_line(second, old, new, named):
    change(second, old, new)
    assert re.search(naming(*named), refused("retrain", second, "--until", WEEKS[1], "-q", code=3))
    assert deployed(second) == 1


@pytest.mark.slow
def test_equal_times_and_any_order_of_rows_are_fine(second):
    path = second / "data/week-1.csv"
    head, *rows = path.read_text().splitlines()
    same = [re.sub(r"2024-01-\d\dT\d\d", "2024-01-09T12", row) for row in reversed(rows)]
    path.write_text("\n".join([head, *same]) + "\n")
    assert retrain(second, WEEKS[1]).decision == "promoted"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[data]", "[dta]", ("data", "path")),
        ("command =", "comand =", ("command", "method")),
        ("{model}", "{modle}", ("modle", "model")),
        ("{predictions}", "x", ("predictions",)),
        ("edge.txt", "../edge.txt", ("model_file", r"\.\./edge")),
        ("test_size = 0.4", "test_size = 2.0", ("test_size", r"2\.0")),
        ("test_size", 'cadence = "fortnight"\ntest_size', ("cadence", "fortnight")),
        ("[gate]", '[registry]\nkind = "s3"\n[gate]', ("s3", "folder")),
        ("min_count = 1", 'unresolved = "maybe"', ("unresolved", "maybe")),
        ('name = "small"', "name = [", ("TOML",)),
        ('path = "data"', 'path = "~nobody-is-called-this/x"', ("path", "nobody")),
        ("test_size", 'cadence = "00 weeks"\ntest_size', ("cadence", "00 weeks")),
        ("test_size", 'features = ["x"]\ntest_size', ("features", "command")),
        ("test_size", 'features = ["label"]\ntest_size', ("role", "label")),
        ("test_size", 'id = "two\\nlines"\ntest_size', ("two", "Rename")),
        ("edge.txt", "trained.json", ("model_file", "trained.json")),
        ("edge.txt", "predictions.csv", ("model_file", "predictions_file")),
        ('predictions_file = "predictions.csv"', 'predictions_file = "x.txt"', ("txt", "csv")),
    ],
)
def test_a_project_that_makes_no_sense_is_refused(folder, old, new, named):
    change(folder, old, new, "project.toml")
    before = contents(folder)
    assert re.search(naming(*named), refused("retrain", folder, code=2))
    assert contents(folder) == before


def test_a_day_that_no_calendar_has_is_wrong_use(folder):
    assert "2024-02-31" in refused("retrain", folder, "--until", "2024-02-31", code=2)


def test_folders_without_a_project_are_refused(tmp_path):
    assert re.search(naming("project.toml", "init"), refused("retrain", tmp_path, code=3))
    assert dynsnap("project", "init", tmp_path / "new").exit_code == 0
    before = contents(tmp_path)
    refused("project", "init", tmp_path / "new", code=2)
    refused("project", "init", tmp_path / "other", "--command", "train {model}", code=2)
    assert contents(tmp_path) == before


def test_settings_that_change_in_the_middle_begin_anew(second, monkeypatch):
    (second / "train.py").write_text("raise SystemExit(1)")
    dynsnap("retrain", second, "--until", WEEKS[1])
    make(second)
    change(second, "test_size = 0.4", "test_size = 0.3", "project.toml")
    assert retrain(second, WEEKS[1]).plan.name == f"{PERIODS[1]}-2"
    assert [each.decision for each in projects.results(second)] == [
        "first",
        "abandoned",
        "promoted",
    ]


def test_a_move_by_hand_gives_up_an_unfinished_retrain(second):
    retrain(second, WEEKS[1])
    (second / "train.py").write_text("raise SystemExit(1)")
    dynsnap("retrain", second, "--until", WEEKS[2])
    refused("project", "rollback", second, "--to", "9", code=3)
    assert decisions(second) == ["first", "promoted"]  # what cannot be deployed ends nothing
    ended = dynsnap("project", "rollback", second)
    assert re.search(naming(PERIODS[2]), ended.stderr)
    assert deployed(second) == 1
    make(second)
    assert retrain(second, WEEKS[2]).plan.name == f"{PERIODS[2]}-2"
    assert decisions(second) == ["first", "promoted", "abandoned", "promoted"]


def test_a_rollback_is_not_undone_by_a_retrain_that_was_killed_after_it_deployed(second):
    retrain(second, WEEKS[1])
    (second / "retrains" / PERIODS[1] / "result.json").unlink()  # as if killed right before it
    assert dynsnap("project", "rollback", second).exit_code == 0
    assert decisions(second) == ["first", "promoted"]
    retrain(second, WEEKS[1])
    assert deployed(second) == 1


@pytest.mark.slow
def test_a_newer_week_goes_before_an_unfinished_one(second):
    (second / "train.py").write_text("raise SystemExit(1)")
    dynsnap("retrain", second, "--until", WEEKS[1])
    make(second)
    week(second / "data", 3)
    result = retrain(second, WEEKS[3])
    assert result.plan.period == PERIODS[3]
    assert [each.decision for each in projects.results(second)] == [
        "first",
        "abandoned",
        "promoted",
    ]


def test_the_intervals_of_a_retrain_are_those_of_95_percent_whatever_rules_ask_for(tmp_path):
    loose = RULES + "confidence = 0.5\n"
    found = []
    for name, rules in (("usual", RULES), ("loose", loose)):
        made = make(tmp_path / name, weeks=2, rules=rules)
        retrain(made, WEEKS[0])
        found.append(retrain(made, WEEKS[1]).measured.held_out)
    assert found[0] == found[1]
