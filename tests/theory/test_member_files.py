import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import ComparisonError, FileError, InputError
from dynsnap.theory import MemberPredictions, audit, line_up, read_members
from tests.messages import naming

SCORES = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5))
CLASSES = np.array(["cat", "dog", "elk"])
IDS = np.array(["a", "b", "c", "d", "e"])


def saved(folder, **arrays):
    path = folder / "members.npz"
    np.savez(path, **arrays)
    return path


def test_an_archive_of_scores_alone_is_enough(tmp_path):
    found = read_members(saved(tmp_path, scores=SCORES))
    assert (found.scores == SCORES).all()
    assert (found.truth, found.ids, found.classes) == (None, None, None)


@pytest.mark.parametrize(
    "truth",
    [np.array([0, 1, 2, 1, 0]), CLASSES[[0, 1, 2, 1, 0]], CLASSES[[0, 1, 2, 1, 0]].astype("S")],
)
def test_truth_may_be_positions_or_names(tmp_path, truth):
    path = saved(tmp_path, scores=SCORES, truth=truth, classes=CLASSES, ids=np.arange(5))
    found = read_members(str(path))
    assert found.truth.tolist() == [0, 1, 2, 1, 0]
    assert found.classes == ("cat", "dog", "elk")
    assert found.ids == ("0", "1", "2", "3", "4")
    assert audit(found.scores, found.scores, truth=found.truth).holds


def test_a_regression_has_one_true_number_per_input(tmp_path):
    path = saved(tmp_path, scores=SCORES[:, :, :1], truth=np.arange(5))
    assert read_members(path).truth.shape == (5, 1)
    path = saved(tmp_path, scores=SCORES, truth=SCORES[0])
    assert (read_members(path).truth == SCORES[0]).all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"probs": SCORES}, naming("`scores`", "probs")),
        ({"scores": SCORES[0]}, naming(r"\(5, 3\)", "single learner", "dynsnap compare")),
        ({"scores": SCORES[0, 0]}, naming("`scores`", r"\(members, inputs, classes\)")),
        ({"scores": SCORES * np.nan}, r"`scores` holds nan at \(0, 0, 0\)"),
        ({"scores": np.full((2, 2, 2), "x")}, "`scores` must hold numbers"),
        (
            {"scores": SCORES, "truth": np.array([0, 1, 2, 3, 0])},
            naming("truth", "0 and 2", "row 3 holds 3"),
        ),
        ({"scores": SCORES, "truth": np.arange(4)}, naming("truth", "5 inputs")),
        ({"scores": SCORES, "truth": np.zeros(5)}, "one class position"),
        ({"scores": SCORES, "truth": CLASSES[[0] * 5]}, naming("truth", "`classes`")),
        (
            {"scores": SCORES, "truth": np.array(["cow"] * 5), "classes": CLASSES},
            naming('"cow"', "`classes`"),
        ),
        ({"scores": SCORES, "classes": CLASSES[:2]}, naming("`classes`", "3 names", "got 2")),
        ({"scores": SCORES, "classes": CLASSES[[0, 1, 1]]}, '`classes` must differ.*"dog"'),
        ({"scores": SCORES, "ids": IDS[[0, 1, 2, 3, 0]]}, '`ids` must differ.*"a"'),
        ({"scores": SCORES, "ids": np.array(["a", "b", "c", "d", "e\n"])}, "control characters"),
        ({"scores": SCORES, "ids": np.zeros(5)}, naming("`ids`", "list of names")),
        ({"scores": SCORES, "ids": np.zeros((5, 1), int)}, naming("`ids`", "list of names")),
        ({"scores": SCORES, "ids": np.array([b"\xff"] * 5)}, naming("`ids`", "not valid")),
    ],
)
def test_arrays_that_make_no_sense_are_refused_with_the_file_named(tmp_path, arrays, message):
    path = saved(tmp_path, **arrays)
    with pytest.raises(FileError, match=message) as caught:
        read_members(path)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


class Trap:
    """Would leave a mark if it were ever unpickled."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_a_pickle_is_refused_and_never_loaded(tmp_path):
    path = saved(tmp_path, scores=np.array([Trap(), None], dtype=object))
    with pytest.raises(
        FileError, match=naming(r"members\.npz", "pickled", "never loaded", "plain arrays")
    ):
        read_members(path)
    plain = tmp_path / "plain.npz"
    plain.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileError, match="NPZ archive"):
        read_members(plain)
    assert not Trap.sprung


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_members(tmp_path / "none.npz")
    with pytest.raises(FileError, match="is a directory"):
        read_members(tmp_path)
    empty = tmp_path / "empty.npz"
    empty.write_bytes(b"")
    with pytest.raises(FileError, match="NPZ archive"):
        read_members(empty)
    single = tmp_path / "single.npy"
    np.save(single, SCORES)
    with pytest.raises(FileError, match="NPZ archive"):
        read_members(single)
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("scores", b"hello")
    with pytest.raises(FileError, match="not an array"):
        read_members(other)


def _archive():
    stream = io.BytesIO()
    np.savez(stream, scores=SCORES, truth=np.zeros(5, int), ids=IDS, classes=CLASSES)
    return stream.getvalue()


WHOLE = _archive()


@settings(max_examples=3 * settings.default.max_examples)
@given(st.data())
def test_a_damaged_archive_is_read_right_or_refused_in_one_line(tmp_path_factory, data):
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(content)
    try:
        found = read_members(path)
    except FileError as error:
        assert "\n" not in str(error)
    else:
        assert found.scores.ndim == 3


# Lining up.


def members(**changes):
    parts = {
        "scores": SCORES,
        "truth": np.array([0, 1, 2, 1, 0]),
        "ids": tuple(IDS.tolist()),
        "classes": tuple(CLASSES.tolist()),
    }
    return MemberPredictions(**{**parts, **changes})


@given(st.permutations(range(5)), st.permutations(range(3)))
def test_inputs_and_classes_are_lined_up_by_name(rows, columns):
    old = members()
    new = members(
        scores=SCORES[:, rows][:, :, columns],
        truth=np.argsort(columns)[old.truth[rows]],
        ids=tuple(IDS[rows].tolist()),
        classes=tuple(CLASSES[columns].tolist()),
    )
    first, second = line_up(old, new)
    assert (first.scores == SCORES).all()
    assert (second.scores == SCORES).all()
    assert second.truth.tolist() == old.truth.tolist()
    assert (second.ids, second.classes) == (old.ids, old.classes)


def test_truth_and_names_of_one_side_serve_both():
    bare = MemberPredictions(scores=SCORES)
    for pair in (line_up(bare, members()), line_up(members(), bare)):
        for side in pair:
            assert side.truth.tolist() == [0, 1, 2, 1, 0]
            assert side.ids == tuple(IDS)


def test_members_of_other_inputs_or_truths_cannot_be_compared():
    with pytest.raises(ComparisonError, match="different truths"):
        line_up(members(), members(truth=np.zeros(5, int)))
    with pytest.raises(ComparisonError, match=naming('"a"', "old")):
        line_up(members(), members(ids=("z", "b", "c", "d", "e")))
    with pytest.raises(ComparisonError, match='different classes: "cat"'):
        line_up(members(), members(classes=("cow", "dog", "elk")))
    with pytest.raises(ComparisonError, match="as many members"):
        line_up(members(), members(scores=SCORES[:2]))


def test_members_check_themselves():
    with pytest.raises(InputError, match=naming("`ids`", "5", "1")):
        members(ids=("a",))
