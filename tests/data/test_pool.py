import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynsnap.data import Pool, Stream, check_nested, from_arrays
from dynsnap.data._pool import rank_in_class
from dynsnap.errors import DataError
from tests.messages import naming


def pool(rows=6, classes=("cat", "dog"), **changes):
    made = {
        "name": "made",
        "inputs": np.arange(rows * 2).reshape(rows, 2),
        "labels": np.arange(rows) % len(classes),
        "classes": classes,
        "ids": np.arange(rows),
    }
    return Pool(**{**made, **changes})


def stream(**changes):
    made = {
        "pool": pool(),
        "generations": (np.arange(4), np.arange(6)),
        "validation": (np.array([1, 1]), np.array([1, 1])),
        "evaluation": {"test": pool()},
    }
    return Stream(**{**made, **changes})


@given(hnp.arrays(np.int64, st.integers(0, 30), elements=st.integers(0, 4)))
def test_a_rank_counts_the_earlier_rows_of_the_class(labels):
    slow = [int(np.sum(labels[:row] == label)) for row, label in enumerate(labels)]
    assert rank_in_class(labels).tolist() == slow


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ids": np.arange(5)}, naming("inputs, labels and ids", "6, 6 and 5")),
        ({"ids": np.array([0, 1, 2, 3, 4, 4])}, naming("ids", "unique", "4")),
        ({"labels": np.full(6, 2)}, naming("labels", "2 classes", "2 to 2")),
        ({"labels": np.full(6, -1)}, "run from -1 to -1"),
        ({"labels": np.zeros(6)}, naming("labels", "`classes`", "float64", "`from_arrays`")),
        ({"classes": ("cat", "cat")}, naming("class 'cat'", "twice")),
        ({"slices": {"week": np.zeros(2)}}, naming("slice 'week'", "2 values", "6 rows")),
    ],
)
def test_a_pool_that_does_not_fit_together_is_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        pool(**wrong)


def test_a_pool_is_taken_and_joined_row_by_row():
    whole = pool(slices={"week": np.array(list("aabbcc")), "own": np.zeros(6)})
    part = whole.take(np.array([5, 0]))
    assert part.ids.tolist() == [5, 0]
    assert part.slices["week"].tolist() == ["c", "a"]
    other = pool(2, ids=np.array([10, 11]), slices={"week": np.array(["d", "d"])})
    both = whole.join(other)
    assert len(both) == 8
    assert both.slices.keys() == {"week"}
    assert both.counts.tolist() == [4, 4]
    assert np.array_equal(both.inputs[6:], other.inputs)


def test_pools_that_cannot_be_joined_say_why():
    with pytest.raises(DataError, match=naming("same order", "'cat', 'dog' and 'dog', 'cat'")):
        pool().join(pool(classes=("dog", "cat")))
    with pytest.raises(DataError, match=naming("shape", r"\(2,\)", r"\(3,\)")):
        pool().join(pool(2, inputs=np.zeros((2, 3)), ids=np.array([8, 9])))
    with pytest.raises(DataError, match="0 occurs twice"):
        pool().join(pool())


def test_a_fingerprint_follows_content_and_not_names():
    assert pool().fingerprint == pool(name="other", ids=np.arange(6) + 9).fingerprint
    changed = [
        pool(inputs=pool().inputs + 1),
        pool(inputs=pool().inputs.astype(np.int32)),
        pool(labels=1 - pool().labels),
        pool(classes=("cat", "wolf")),
        from_arrays(["a", "b"], [0, 1]),
        from_arrays(["a", "c"], [0, 1]),
    ]
    prints = {pool().fingerprint, *(other.fingerprint for other in changed)}
    assert len(prints) == 7


def test_a_streams_fingerprint_follows_cuts_and_evaluation():
    later = stream(generations=(np.arange(5), np.arange(6)))
    held = stream(evaluation={"test": pool(4)})
    counts = stream(validation=(np.array([1, 1]), np.array([2, 1])))
    prints = {made.fingerprint for made in (stream(), later, held, counts)}
    assert len(prints) == 4
    assert stream().fingerprint == stream().fingerprint


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"generations": ()}, "one generation"),
        ({"generations": (np.arange(0),)}, "generation 1 is empty"),
        (
            {"generations": (np.array([0, 1]), np.array([1, 2]))},
            naming("generation 2", "1 rows", "row 0"),
        ),
        ({"generations": (np.array([1, 0]),)}, naming("generation 1", "ascending", "once")),
        ({"generations": (np.array([1, 1]),)}, naming("generation 1", "ascending", "once")),
        ({"generations": (np.array([5, 6]),)}, naming("generation 1", "rows 5 to 6", "has 6")),
        ({"generations": (np.array([-1, 6]),)}, "names rows -1 to 6"),
        ({"generations": (np.array([0.5]),)}, naming("generation 1", "row numbers", "float64")),
        ({"late": ("frog",)}, r"`late` names \['frog'\]"),
        ({"evaluation": {}}, 'a set named "test"'),
        ({"evaluation": {"test": pool(0)}}, "`test` has no rows"),
        (
            {"evaluation": {"test": pool(classes=("dog", "cat"))}},
            naming("same order", "'cat', 'dog' and 'dog', 'cat'"),
        ),
        ({"validation": (np.array([1, 1]),)}, naming("2 generations", "validation", "1")),
        (
            {"validation": (np.array([1]), np.array([1]))},
            naming("generation 1", "validation", "2 classes", r"\[1\]"),
        ),
        ({"validation": (np.array([1, -1]),) * 2}, "not negative"),
        ({"validation": (np.array([0, 0]),) * 2}, naming("generation 1", "aside", "validate")),
        (
            {"validation": (np.array([3, 1]),) * 2},
            naming("class 'cat'", "2 rows", "set 3", "fewer"),
        ),
        (
            {"validation": (np.array([1, 2]),) * 2},
            naming("class 'dog'", "2 rows", "set 2", "fewer"),
        ),
    ],
)
def test_a_stream_that_cannot_be_trained_on_is_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        stream(**wrong)


def test_a_new_class_may_be_validated_on_before_it_is_learned():
    early = stream(validation=(np.array([1, 2]), np.array([1, 2])), late=("dog",))
    assert early.late == ("dog",)


def test_nested_generations_pass_the_check():
    check_nested([np.array([2]), np.array([2]), np.array([0, 2])], rows=3)
