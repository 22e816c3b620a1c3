import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.ensemble import SoftTargets, TeacherScores, with_second
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.predictions import Predictions
from tests.messages import naming

ROWS = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])


@st.composite
def rows(draw):
    seed = draw(st.integers(0, 1000))
    return np.random.default_rng(seed).dirichlet(np.ones(4), 5)


@given(rows(), st.floats(0.2, 20))
def test_targets_sum_to_one_and_rank_classes_as_the_scores_do(scores, temperature):
    targets = SoftTargets(scores=scores, temperature=temperature).targets
    np.testing.assert_allclose(targets.sum(1), 1, atol=1e-5)
    best = targets.max(axis=1)
    np.testing.assert_allclose(targets[np.arange(5), scores.argmax(1)], best)


def test_a_temperature_of_one_leaves_scores_as_they_are():
    np.testing.assert_allclose(SoftTargets(scores=ROWS).targets, ROWS, atol=1e-7)


def test_rows_of_nan_were_not_asked_about():
    scores = np.vstack([ROWS, np.full((1, 3), np.nan)])
    assert SoftTargets(scores=scores).taught.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": 0}, "`weight` must be above 0"),
        ({"weight": 1.1}, naming("`weight`", "at most 1", r"1\.1")),
        ({"weight": float("nan")}, "`weight`"),
        ({"temperature": 0}, naming("`temperature`", "positive", "0")),
        ({"temperature": float("inf")}, "`temperature`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        SoftTargets(scores=ROWS, **settings)


@pytest.mark.parametrize(
    "scores", [ROWS[0], ROWS * 3, -ROWS, np.full((2, 3), np.nan), np.array([[0.5, np.nan]])]
)
def test_scores_that_are_no_rows_of_probabilities_are_refused(scores):
    with pytest.raises(InputError):
        SoftTargets(scores=scores)


@given(rows(), rows(), st.floats(0, 1))
def test_two_teachers_stay_between_their_scores(first, second, share):
    heard = np.array([True, True, True, False, False])
    mixed = with_second(first, second, share=share, heard=heard)
    np.testing.assert_allclose(mixed.sum(1), 1)
    assert (mixed <= np.maximum(first, second) + 1e-12).all()
    np.testing.assert_array_equal(mixed[~heard], first[~heard])


def test_a_share_of_one_is_the_second_teacher_and_of_none_the_first():
    heard, second = np.ones(2, bool), ROWS[::-1]
    np.testing.assert_array_equal(with_second(ROWS, second, share=1.0, heard=heard), second)
    np.testing.assert_array_equal(with_second(ROWS, second, share=0.0, heard=heard), ROWS)


def test_a_share_beyond_the_whole_is_refused():
    with pytest.raises(PlanError, match=naming("`share`", "0", "1", r"1\.5")):
        with_second(ROWS, ROWS, share=1.5, heard=np.ones(2, bool))


@given(st.integers(0, 10_000))
def test_the_scores_of_a_file_are_laid_out_as_the_rows_of_the_data(seed):
    rng = np.random.default_rng(seed)
    names = np.array(["a", "b", "c", "d"])
    given_classes = rng.permutation(names)[: rng.integers(2, 5)]
    ids, there = rng.permutation(20)[:12], rng.permutation(20)[:15]
    said = rng.dirichlet(np.ones(len(given_classes)), len(there)).astype(np.float32)
    said /= said.sum(1, keepdims=True)
    file = Predictions(ids=there, classes=given_classes.tolist(), scores=said)
    made = TeacherScores.of(file, name="file", ids=ids, classes=tuple(names))
    known = set()
    for row, one in enumerate(ids.tolist()):
        if one not in there.tolist():
            assert np.isnan(made.scores[row]).all()
            continue
        found = said[there.tolist().index(one)]
        known.add(str(given_classes[found.argmax()]))
        for column, name in enumerate(names):
            wanted = found[given_classes.tolist().index(name)] if name in given_classes else 0
            assert made.scores[row, column] == np.float32(wanted)
    assert set(names[made.known]) == known
    again = TeacherScores.from_bytes(made.to_bytes())
    np.testing.assert_array_equal(again.scores, made.scores)
    np.testing.assert_array_equal(again.known, made.known)
    assert again.key == made.key


def test_what_a_file_lacks_is_counted_and_named():
    said = Predictions(ids=["1", "2"], classes=["a", "b"], scores=[[0.9, 0.1], [0.2, 0.8]])
    ids, labels = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 2])
    made = TeacherScores.of(said, name="week.parquet", ids=ids, classes=("a", "b", "c"))
    made.check(np.array([1, 2, 3]), labels)  # of "c", labels are enough
    with pytest.raises(InputError, match=naming("week.parquet", "1", "3", "row 0")):
        made.check(np.arange(4), labels)
    other = TeacherScores.of(said, name="week.parquet", ids=ids + 7, classes=("a", "b", "c"))
    with pytest.raises(InputError, match=naming("week.parquet", "4 of 4")):
        other.check(np.arange(4), labels)
    with pytest.raises(InputError, match=naming("week.parquet", "'b'", "'x'")):
        TeacherScores.of(said, name="week.parquet", ids=ids, classes=("a", "x"))
    bare = Predictions(ids=[1], classes=["a", "b"], labels=["a"])
    with pytest.raises(InputError, match=naming("week.parquet", "scores")):
        TeacherScores.of(bare, name="week.parquet", ids=ids, classes=("a", "b"))


def test_scores_of_other_rows_teach_nothing_where_a_truth_shows_it():
    truth, scores = ["a", None, "b"], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]
    said = Predictions(ids=[0, 1, 2], classes=["a", "b"], scores=scores, truth=truth)
    of = {"name": "week.parquet", "ids": np.array([0, 1, 2]), "classes": ("a", "b")}
    same = TeacherScores.of(said, **of, labels=np.array([0, 1, 1]))
    np.testing.assert_array_equal(same.scores, TeacherScores.of(said, **of).scores)
    with pytest.raises(InputError, match=naming("week.parquet", "2 of 3", "'a'", "0", "'b'")):
        TeacherScores.of(said, **of, labels=np.array([1, 1, 0]))


@pytest.mark.parametrize("content", [b"", b"{}", b"dynsnap-teacher-scores\n[]\n"])
def test_damaged_scores_of_a_teacher_are_refused(content):
    with pytest.raises(FileError, match="damaged"):
        TeacherScores.from_bytes(content)
