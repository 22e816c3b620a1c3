import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import FileError, InputError
from dynsnap.store import RunFolder
from tests.messages import naming
from tests.store.rounds import a_round, a_spec, assert_same_round
from tests.test_staged_files import disk_of


@pytest.fixture
def folder(tmp_path):
    with RunFolder(tmp_path / "run", training_epochs=3, device="cpu") as made:
        yield made


def test_a_round_comes_back_as_it_was_put(folder):
    done = a_round()
    folder.put("k1", done)
    assert_same_round(folder.get("k1", done.spec), done)


def test_a_round_that_was_never_put_is_missing(folder):
    assert folder.get("k1", a_spec()) is None


def test_a_later_process_finds_the_round(folder):
    done = a_round()
    folder.put("k1", done)
    folder.close()
    assert_same_round(RunFolder(folder.path).get("k1", done.spec), done)


def test_scores_are_mapped_from_the_file_and_not_read(folder):
    done = a_round()
    folder.put("k1", done)
    assert isinstance(folder.get("k1", done.spec).scores["test"], np.memmap)


def test_the_same_round_is_the_same_file(folder):
    folder.put("k1", a_round())
    first = (folder.path / "rounds/k1.npz").read_bytes()
    folder.put("k1", a_round())
    assert (folder.path / "rounds/k1.npz").read_bytes() == first


def test_numpy_alone_can_open_a_round(folder):
    done = a_round()
    folder.put("k1", done)
    with np.load(folder.path / "rounds/k1.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["scores.test"], done.scores["test"])


def test_half_precision_halves_the_scores(tmp_path):
    done = a_round()
    folder = RunFolder(tmp_path, half=True)
    folder.put("k1", done)
    found = folder.get("k1", done.spec).scores["test"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, done.scores["test"], atol=1e-3)


def test_a_round_knows_its_seed_cost_time_and_environment(folder):
    folder.put("k1", a_round())
    (entry,) = folder.entries()
    assert entry.damage is None
    assert entry.facts["cost"] == 2.0  # six epochs, where one training takes three
    assert entry.facts["seconds"] == 1.5
    assert entry.facts["seed"] == 7
    assert entry.facts["environment"]["device"] == "cpu"
    assert entry.facts["environment"]["numpy"] == np.__version__


def test_scores_alone_are_kept_where_weights_are_not_wanted(tmp_path):
    done = a_round()
    lean = RunFolder(tmp_path, weights=False)
    lean.put("k1", done)
    assert lean.get("k1", done.spec).weights == ()


def test_a_round_without_weights_is_missing_to_one_who_wants_them(tmp_path):
    done = a_round()
    with RunFolder(tmp_path, weights=False) as lean:
        lean.put("k1", done)
    assert RunFolder(tmp_path, weights=True).get("k1", done.spec) is None


def test_a_round_without_weights_is_refused_by_a_folder_that_keeps_them(folder):
    with pytest.raises(InputError, match=r"without weights.*weights=False"):
        folder.put("k1", a_round(learners=0))


def test_a_damaged_round_is_named_and_counts_as_missing(folder):
    done = a_round()
    folder.put("k1", done)
    path = folder.path / "rounds/k1.npz"
    content = bytearray(path.read_bytes())
    content[content.index(done.weights[1])] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=naming(r"k1\.npz", "checksum", "trained again")):
        assert folder.get("k1", done.spec) is None
    (entry,) = folder.entries()
    assert "weights.0001.bin" in entry.damage
    folder.put("k1", done)
    assert_same_round(folder.get("k1", done.spec), done)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("fuzz"))
    folder.put("k1", a_round())
    return folder, (folder.path / "rounds/k1.npz").read_bytes()


@given(data=st.data())
@settings(max_examples=4 * settings.default.max_examples)
def test_no_damage_goes_unseen(stored, data):
    """Whatever happens to the file, the round comes back whole or not at all."""
    folder, sound = stored
    content = bytearray(sound)
    how = data.draw(st.sampled_from(["flip", "cut", "junk"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if how == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "cut":
        del content[place:]
    else:
        content[place : place + 8] = data.draw(st.binary(min_size=1, max_size=16))
    (folder.path / "rounds/k1.npz").write_bytes(content)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = folder.get("k1", a_spec())
    if found is None:
        assert "damaged" in str(seen[0].message)
    else:
        assert_same_round(found, a_round())


def test_another_round_under_the_same_name_is_damage(folder):
    folder.put("k1", a_round())
    with pytest.warns(UserWarning, match="holds another round"):
        assert folder.get("k1", a_spec(index=1)) is None


def test_a_folder_of_a_newer_format_is_refused(tmp_path):
    (tmp_path / "dynsnap.json").write_text(json.dumps({"kind": "run", "format": 99}))
    with pytest.raises(FileError, match=naming("format 99", "Upgrade")):
        RunFolder(tmp_path)


def test_a_folder_that_says_it_is_something_else_is_refused(tmp_path):
    (tmp_path / "dynsnap.json").write_text(json.dumps({"kind": "other"}))
    with pytest.raises(FileError, match=naming(r"dynsnap\.json", "run folder")):
        RunFolder(tmp_path)


def test_two_writers_on_one_folder_are_refused(folder):
    with pytest.raises(FileError, match=naming(r"pid \d+", "another folder")):
        RunFolder(folder.path).put("k2", a_round())


def test_reading_needs_no_lock(folder):
    folder.put("k1", a_round())
    assert RunFolder(folder.path).get("k1", a_spec()) is not None


def test_a_killed_writer_leaves_no_lock_behind(tmp_path):
    script = (
        "import os, signal, sys\n"
        "from dynsnap.store import RunFolder\n"
        "RunFolder(sys.argv[1]).__enter__()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=False)
    assert ended.returncode == -9
    with RunFolder(tmp_path / "run") as folder:
        folder.put("k1", a_round())


def test_what_a_killed_writer_left_half_written_is_swept_away(tmp_path):
    (tmp_path / "rounds").mkdir()
    (tmp_path / "rounds/.k1.0123456789abcdef.dynsnap.npz").write_bytes(b"half")
    with RunFolder(tmp_path) as folder:
        assert list((tmp_path / "rounds").iterdir()) == []
        assert list(folder.entries()) == []


DISK_FULL = """
import resource, sys
import numpy as np
from dynsnap.errors import FileError
from dynsnap.store import RunFolder
from tests.store.rounds import a_round, a_spec
folder = RunFolder(sys.argv[1])
folder.put("k1", a_round())
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    folder.put("k2", a_round(a_spec(index=1), inputs=5_000))
except FileError as error:
    print(error)
"""


def test_a_disk_that_is_full_loses_nothing_that_was_saved(tmp_path):
    """The kernel itself refuses the write: a limit on the size of files stands for a full disk."""
    ended = subprocess.run(
        [sys.executable, "-c", DISK_FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "Cannot write" in ended.stdout and "has room" in ended.stdout
    assert sorted(path.name for path in (tmp_path / "rounds").iterdir()) == ["k1.npz"]
    assert_same_round(RunFolder(tmp_path).get("k1", a_spec()), a_round())


def test_a_disk_that_fails_only_when_flushed_is_noticed(folder, monkeypatch):
    folder.put("k1", a_round())

    def failing(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", failing)
    with pytest.raises(FileError, match=naming(r"k2\.npz", "No space", "has room")):
        folder.put("k2", a_round(a_spec(index=1)))
    assert [path.name for path in (folder.path / "rounds").iterdir()] == ["k1.npz"]


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FileError, match=naming("run folder", "file: Not a directory")),
        RunFolder(tmp_path / "file"),
    ):
        pass


def test_checkpoints_come_back_and_can_be_replaced(folder):
    states = folder.checkpoints(lambda spec: f"c{spec.index}")
    assert states.load(a_spec()) is None
    states.save(a_spec(), b"one")
    states.save(a_spec(), b"two")
    states.save(a_spec(index=1), b"other")
    assert states.load(a_spec()) == b"two"
    states.drop(a_spec())
    assert states.load(a_spec()) is None
    assert states.load(a_spec(index=1)) == b"other"


def test_a_finished_round_needs_no_checkpoint(folder):
    states = folder.checkpoints(lambda spec: "k1")
    states.save(a_spec(), b"half way")
    folder.put("k1", a_round())
    assert states.load(a_spec()) is None


def test_who_is_killed_between_a_round_and_its_checkpoint_leaves_nothing_behind(folder):
    states = folder.checkpoints(lambda spec: "k1")
    states.save(a_spec(), b"half way")
    spent = (folder.path / "checkpoints/k1.bin").read_bytes()
    folder.put("k1", a_round())
    folder.close()
    left = folder.path / "checkpoints/k1.bin"
    left.write_bytes(spent)
    before = (folder.path / "rounds/k1.npz").stat().st_mtime_ns
    os.utime(left, ns=(before, before - 1))
    with RunFolder(folder.path):
        assert not left.exists()


def test_the_checkpoint_of_a_round_that_is_trained_again_is_kept(folder):
    folder.put("k1", a_round())
    states = folder.checkpoints(lambda spec: "k1")
    states.save(a_spec(), b"half way, again")
    done, left = folder.path / "rounds/k1.npz", folder.path / "checkpoints/k1.bin"
    later = done.stat().st_mtime_ns + 1
    os.utime(left, ns=(later, later))
    folder.close()
    with RunFolder(folder.path):
        assert states.load(a_spec()) == b"half way, again"


def test_a_damaged_checkpoint_is_named_and_the_round_starts_over(folder):
    states = folder.checkpoints(lambda spec: "k1")
    states.save(a_spec(), b"half way")
    (folder.path / "checkpoints/k1.bin").write_bytes(b"x" * 70)
    with pytest.warns(UserWarning, match=naming(r"k1\.bin", "starts over")):
        assert states.load(a_spec()) is None


def test_a_key_is_found_by_its_beginning(folder):
    for key in ("aa1", "ab2"):
        folder.put(key, a_round())
    assert folder.find("ab") == "ab2"
    with pytest.raises(InputError, match=naming("2 rounds", "'a'", "the key")):
        folder.find("a")
    with pytest.raises(InputError, match="No round"):
        folder.find("c")


def test_a_removed_round_is_gone(folder):
    folder.put("k1", a_round())
    folder.remove("k1")
    assert folder.get("k1", a_spec()) is None


def test_hidden_files_that_are_not_ours_stay(tmp_path):
    with RunFolder(tmp_path / "run"):
        pass
    kept, left = [], []
    for part in ("rounds", "checkpoints"):
        kept += [tmp_path / "run" / part / name for name in (".gitkeep", ".nfs0001", ".k1.npz")]
        left += [tmp_path / "run" / part / f".k1.{'0a' * 8}.dynsnap.npz"]
    for file in (*kept, *left):
        file.touch()
    with RunFolder(tmp_path / "run"):
        assert all(file.exists() for file in kept)
        assert not any(file.exists() for file in left)


def test_a_disk_without_room_for_the_lock_is_named_by_the_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with disk_of(0), pytest.raises(FileError, match=re.escape(str(tmp_path / "run"))):
        folder.__enter__()
    with folder:  # there is room again, and nobody holds the lock
        pass
