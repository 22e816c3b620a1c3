"""Whole numbers are names or positions: never the one that was not meant."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.data import from_arrays, read_inputs
from dynsnap.errors import DataError, DynSnapError, FileError, InputError
from dynsnap.predictions import Predictions, read, write
from dynsnap.theory import read_members
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming

SHIFTED = ["1", "2", "3"]


@pytest.mark.parametrize("what", ["labels", "truth"])
@pytest.mark.parametrize(
    "numbers",
    [np.array([1, 2, 1]), [1, 2, 1], np.array([1, 2, 1], object), pa.array([1, 2, 1])],
    ids=["numpy", "list", "objects", "arrow"],
)
def test_numbers_that_could_be_names_are_refused(what, numbers):
    given = {"labels": ["1"] * 3, what: numbers}
    with pytest.raises(InputError, match=rf"`{what}`.*'1' is at position 0.*positions=False"):
        Predictions(ids=[1, 2, 3], classes=SHIFTED, **given)


def test_an_explicit_word_says_which():
    made = {"ids": [1, 2, 3], "classes": SHIFTED, "labels": [1, 2, 1], "truth": [0, 2, 1]}
    assert Predictions(**made, positions=True).labels.tolist() == [1, 2, 1]
    made["truth"] = np.array([3, 2, 1], np.uint8)
    named = Predictions(**made, positions=False)
    assert named.labels.tolist() == [0, 1, 0]
    assert named.truth.tolist() == [2, 1, 0]
    with pytest.raises(InputError, match='"0"'):
        Predictions(ids=[1], classes=SHIFTED, labels=[0], positions=False)


@pytest.mark.parametrize(
    "classes", [["cat", "dog"], ["0", "1"], ["0", "other"], ["zero", "1.0"], ["00", "+1"]]
)
def test_numbers_that_can_only_be_positions_need_no_word(classes):
    assert Predictions(ids=[1, 2], classes=classes, labels=[0, 1]).labels.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["7", "-1", "01", "1.0", "9" * 5000, "1" + "0" * 5000])
def test_one_name_that_is_another_number_makes_all_numbers_doubtful(name):
    with pytest.raises(InputError, match="names or positions"):
        Predictions(ids=[1, 2], classes=[name, "cat"], labels=[0, 1])


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=5, unique=True), st.data())
def test_numbers_are_taken_in_silence_only_where_names_and_positions_agree(numbers, data):
    classes = [str(number) for number in numbers]
    labels = data.draw(st.lists(st.integers(-3, 9), min_size=1, max_size=4))
    made = {"ids": range(len(labels)), "classes": classes, "labels": labels}
    try:
        silent = Predictions(**made)
    except InputError:
        return
    assert silent.names_of(silent.labels).tolist() == [str(label) for label in labels]


def archive(folder, **arrays):
    file = folder / "made.npz"
    np.savez(file, id=np.arange(3), **arrays)
    return file


def test_an_archive_with_doubtful_numbers_is_refused_and_can_say_what_they_are(tmp_path):
    doubtful = {"classes": np.array(SHIFTED), "label": np.array([0, 2, 1])}
    with pytest.raises(FileError, match=r"made\.npz.*`label`.*positions"):
        read(archive(tmp_path, **doubtful))
    made = {"classes": np.array(SHIFTED), "label": np.array([1, 2, 1])}
    found = read(archive(tmp_path, **made))
    assert found.names_of(found.labels).tolist() == ["1", "2", "1"]
    found = read(archive(tmp_path, **made, positions=True))
    assert found.names_of(found.labels).tolist() == ["2", "3", "2"]
    found = read(archive(tmp_path, **made, positions=False))
    assert found.names_of(found.labels).tolist() == ["1", "2", "1"]
    with pytest.raises(FileError, match=naming("`positions`", "true or false")):
        read(archive(tmp_path, **made, positions=1))
    # A value for each row is a slice.
    assert "positions" in read(archive(tmp_path, **made, positions=np.array([True] * 3))).slices


def test_what_was_written_says_what_its_numbers_are(tmp_path):
    made = Predictions(ids=[1, 2], classes=["2", "1"], labels=["1", "2"], truth=["2", "2"])
    write(made, tmp_path / "made.npz")
    found = read(tmp_path / "made.npz")
    assert found.names_of(found.labels).tolist() == ["1", "2"]
    assert found.names_of(found.truth).tolist() == ["2", "2"]
    sliced = Predictions(ids=[1], classes=["a"], labels=["a"], slices={"positions": ["x"]})
    with pytest.raises(FileError, match='"positions"'):
        write(sliced, tmp_path / "sliced.npz")


def test_a_gate_on_doubtful_numbers_is_refused(tmp_path):
    for name in ("old", "new"):
        arrays = {"classes": np.array(SHIFTED), "label": np.arange(60) % 3}
        np.savez(tmp_path / f"{name}.npz", id=np.arange(60), truth=np.arange(60) % 3, **arrays)
    files = (tmp_path / "old.npz", tmp_path / "new.npz")
    assert "positions" in refused("gate", *files, "--at-most", "lost=0.1", code=3)


def test_members_of_an_ensemble_and_training_data_follow_the_same_rule(tmp_path):
    members = tmp_path / "members.npz"
    held = {"scores": np.full((2, 3, 3), 1 / 3), "classes": np.array(SHIFTED)}
    np.savez(members, **held, truth=np.array([0, 1, 2]))
    with pytest.raises(FileError, match="names or positions"):
        read_members(members)
    np.savez(members, **held, truth=np.array([0, 1, 2]), positions=True)
    assert read_members(members).truth.tolist() == [0, 1, 2]
    np.savez(members, **held, truth=np.array([3, 1, 2]), positions=False)
    assert read_members(members).truth.tolist() == [2, 0, 1]

    with pytest.raises(DataError, match="names or positions"):
        from_arrays(np.zeros((3, 2)), [1, 2, 1], classes=SHIFTED)
    pool = from_arrays(np.zeros((3, 2)), [1, 2, 1], classes=SHIFTED, positions=False)
    assert pool.labels.tolist() == [0, 1, 0]
    rows = tmp_path / "rows.npz"
    held = {"inputs": np.zeros((3, 2)), "classes": np.array(SHIFTED), "labels": np.array([1, 2, 1])}
    np.savez(rows, **held)
    with pytest.raises(DynSnapError, match="names or positions"):
        read_inputs(rows)
    np.savez(rows, **held, positions=False)
    assert read_inputs(rows).labels.tolist() == ["1", "2", "1"]
    np.savez(rows, **held, positions=True)
    assert read_inputs(rows).labels.tolist() == ["2", "3", "2"]


def test_names_and_positions_give_one_verdict_where_they_are_said(tmp_path):
    truth = np.arange(60) % 3
    for name, said in (("old", truth), ("new", np.roll(truth, 1))):
        arrays = {"id": np.arange(60), "classes": np.array(SHIFTED)}
        np.savez(tmp_path / f"{name}-p.npz", **arrays, label=said, truth=truth, positions=True)
        named = {"label": said + 1, "truth": truth + 1, "positions": False}
        np.savez(tmp_path / f"{name}-n.npz", **arrays, **named)
    for old in "pn":
        for new in "pn":
            files = (tmp_path / f"old-{old}.npz", tmp_path / f"new-{new}.npz")
            assert dynsnap("gate", *files, "--at-most", "lost=0.1").exit_code == 1
