import json
import os
import re

import pytest

from dynsnap.store import RunFolder
from tests.cli.studies import dynsnap
from tests.messages import naming
from tests.store.rounds import a_round, a_spec


@pytest.fixture
def folder(tmp_path):
    with RunFolder(tmp_path / "run", training_epochs=6) as store:
        store.put("aaaa1111", a_round())
        store.put("bbbb2222", a_round(a_spec(index=1)))
        store.put("bbcc3333", a_round(a_spec(generation=2, twin=1)))
    return tmp_path / "run"


def keys(folder):
    return sorted(path.stem for path in (folder / "rounds").iterdir())


def test_rounds_are_listed_with_what_they_took(folder):
    ended = dynsnap("runs", folder)
    assert ended.exit_code == 0, ended.stderr
    for part in ("aaaa1111", "bbbb2222", "bbcc3333", "step", "weights", "twin", "3 rounds"):
        assert part in ended.stdout


def test_rounds_that_are_begun_are_counted(folder):
    assert "begun" not in dynsnap("runs", folder).stdout
    for key in ("aaaa1111", "dddd4444", "eeee5555"):  # the first is done, and not yet swept away
        (folder / "checkpoints" / f"{key}.bin").write_bytes(b"")
    os.utime(folder / "checkpoints/aaaa1111.bin", (0, 0))  # written before its round was
    assert re.search(naming("2 begun", "`dynsnap run`"), dynsnap("runs", folder).stdout)
    assert dynsnap("runs", folder, "remove", "aa", "bbb", "bbc").exit_code == 0
    said = dynsnap("runs", folder).stdout
    assert re.search(naming("No rounds", "2 begun", "`dynsnap run`"), said)


def test_a_round_is_shown_in_full_by_the_beginning_of_its_key(folder):
    ended = dynsnap("runs", folder, "show", "aa")
    facts = json.loads(ended.stdout)
    assert facts["key"] == "aaaa1111"
    assert facts["cost"] == 1
    assert facts["environment"]["python"]


def test_rounds_are_removed_by_the_beginning_of_their_keys(folder):
    ended = dynsnap("runs", folder, "remove", "aa", "bbb")
    assert ended.exit_code == 0, ended.stderr
    assert keys(folder) == ["bbcc3333"]


def test_damaged_rounds_are_listed_and_can_be_removed(folder):
    (folder / "rounds/aaaa1111.npz").write_bytes(b"nonsense")
    assert "damaged" in dynsnap("runs", folder).stdout
    assert "damaged" in dynsnap("runs", folder, "show", "aa").stdout
    assert dynsnap("runs", folder, "remove", "--damaged").exit_code == 0
    assert keys(folder) == ["bbbb2222", "bbcc3333"]
    assert "No round" in dynsnap("runs", folder, "remove", "--damaged").stdout


def test_a_key_that_fits_several_rounds_removes_none(folder):
    ended = dynsnap("runs", folder, "remove", "bb")
    assert ended.exit_code == 3
    assert re.search(naming("2 rounds", "'bb'", "the key"), ended.stderr)
    assert len(keys(folder)) == 3


def test_removing_while_a_study_is_at_work_is_refused(folder):
    with RunFolder(folder):
        ended = dynsnap("runs", folder, "remove", "aa")
    assert ended.exit_code == 3
    assert "Another process" in ended.stderr
    assert len(keys(folder)) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show"], 2, "rounds to show"),
        (["remove"], 2, "rounds to remove"),
        (["list", "aa"], 2, "takes no keys"),
        (["show", "zz"], 3, "No round in"),
        (["delete", "aa"], 2, "'delete'"),
    ],
)
def test_wrong_use_is_one_clear_line(folder, arguments, code, message):
    ended = dynsnap("runs", folder, *arguments)
    assert ended.exit_code == code
    assert message in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_folder_that_is_no_run_folder_is_said_so(tmp_path):
    ended = dynsnap("runs", tmp_path)
    assert ended.exit_code == 3
    assert re.search(naming(re.escape(str(tmp_path)), "run folder"), ended.stderr)
