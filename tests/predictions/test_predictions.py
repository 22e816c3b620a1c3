import dataclasses
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynsnap import metrics
from dynsnap.errors import InputError
from dynsnap.predictions import Predictions, Slice, _ids, _validate
from tests.messages import naming
from tests.strategies import predictions

CLASSES = ["cat", "dog", "eel"]


def made(**parts):
    return Predictions(**({"ids": [1, 2, 3], "classes": CLASSES, "labels": [0, 1, 2]} | parts))


def refused(match, **parts):
    with pytest.raises(InputError, match=match) as caught:
        made(**parts)
    assert "\n" not in str(caught.value)


def test_labels_are_class_names_or_positions():
    by_name = made(labels=["eel", "cat", "cat"], truth=np.array(["dog", "cat", "eel"]))
    by_place = made(labels=[2, 0, 0], truth=np.array([1, 0, 2], np.uint8))
    for each in (by_name, by_place):
        assert each.labels.tolist() == [2, 0, 0]
        assert each.truth.tolist() == [1, 0, 2]
        assert each.names_of(each.labels).tolist() == ["eel", "cat", "cat"]
    arrow = made(labels=pa.chunked_array([["eel"], ["cat", "cat"]]).dictionary_encode())
    assert arrow.labels.tolist() == [2, 0, 0]


def test_labels_follow_from_scores_and_ties_go_to_the_lowest_class():
    each = made(labels=None, scores=[[0.2, 0.4, 0.4], [0, 0, 1], [0.5, 0.5, 0]])
    assert each.labels.tolist() == [1, 2, 0]


def test_given_labels_stand_beside_scores_that_say_otherwise():
    each = made(labels=[2, 2, 2], scores=[[1, 0, 0]] * 3)
    assert each.labels.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (int, float)],
)
def test_scores_keep_their_width_and_lie_in_rows(given, kept):
    scores = np.asfortranarray(np.eye(3).astype(given))
    each = made(scores=scores)
    assert each.scores.dtype == kept
    assert each.scores.flags.c_contiguous


def test_nothing_can_be_changed_and_the_callers_arrays_stay_theirs():
    scores = np.eye(3)
    each = made(scores=scores, truth=[0, 1, 2], weights=[1, 2, 3], slices={"hour": [7, 7, 8]})
    arrays = [each.ids, each.scores, each.labels, each.truth, each.weights]
    arrays.append(each.slices["hour"].codes)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        each.labels = None
    assert scores.flags.writeable
    assert np.shares_memory(scores, each.scores)


@pytest.mark.parametrize(
    ("ids", "dtype", "column"),
    [
        ([3, 1, 2], np.int64, pa.int64()),
        (np.array([3, 1, 2], np.uint16), np.int64, pa.int64()),
        (["a", "b", "ü"], object, pa.large_string()),
        (np.array([b"a", b"b", b"c"]), object, pa.large_string()),
        (pa.array(["a", "b", "c"], pa.string()), object, pa.large_string()),
        (pa.chunked_array([["a"], ["b", "c"]]).dictionary_encode(), object, pa.large_string()),
        (np.array([0, 1, 2**64 - 1], np.uint64), object, pa.large_string()),
    ],
)
def test_ids_are_whole_numbers_or_text(ids, dtype, column):
    each = made(ids=ids)
    assert each.ids.dtype == dtype
    assert each.id_column.type == column
    assert each.ids.tolist() == each.id_column.to_pylist()


def test_whole_number_ids_are_not_copied():
    ids = np.arange(3)
    assert np.shares_memory(made(ids=ids).ids, ids)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (
            [7, 7, 8],
            r"unique, but 1 of 3 rows repeat an id, such as \"7\"\. Keep one",
        ),
        (["b", "a", "b"], r"unique, but 1 of 3 .*\"b\""),
        ([1, None, 3], "1 of 3 ids are missing"),
        (["a", "", "b"], "id is empty"),
        (["a", "b\x1b[2J", "c"], r'id "b\\x1b\[2J" holds control characters'),
        (["a", "b\u0085", "c"], "control characters"),
        (["a", "b\u2028", "c"], "control characters"),
        (["a", "\ud800", "c"], "valid text"),
        ([1, "a", 2], "all whole numbers or all valid text"),
        ([1.5, 2, 3], "whole numbers or text, but are of the type double"),
        ([True, False, True], "of the type bool"),
        (np.zeros((3, 2), int), "one axis"),
        ("abc", "single text"),
        ([], "`ids` is empty"),
        ([b"\xff\xfe", b"a", b"b"], "UTF-8"),
    ],
)
def test_bad_ids_are_refused(ids, match):
    refused(match, ids=ids)


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        (["cat", "cat", "dog"], 'unique, but "cat" occurs more than once'),
        (["cat", "", "dog"], "class name is empty"),
        (["cat", "d\nog", "eel"], r'class name "d\\nog" holds control characters'),
        ([0, 1, 2], "must be text, .* type int"),
        ("cat", "sequence of names"),
        ([], "`classes` is empty"),
    ],
)
def test_bad_class_names_are_refused(classes, match):
    refused(match, classes=classes)


def test_markup_in_names_is_plain_data():
    classes = ["<script>alert(1)</script>", "[bold]x[/bold]", "a|b"]
    assert made(classes=classes).classes == tuple(classes)


@pytest.mark.parametrize(
    ("scores", "match"),
    [
        ([[0.5, 0.5, 0], [np.nan, 0, 1], [1, 0, 0]], 'class "cat" in row 1 .* NaN or missing'),
        ([[np.inf, 0, 0], [0, 0, 1], [1, 0, 0]], "row 0 .* is infinite"),
        ([[1, 0, 0], [1.5, -0.5, 0], [1, 0, 0]], r'class "dog" in row 1 .* -0\.5.*softmax'),
        ([[1, 0, 0], [2.5, 0.5, 0], [1, 0, 0]], r"row 1 .* sum to 3\. .*apply softmax"),
        ([[1, 0, 0], [0.5, 0.48, 0], [1, 0, 0]], r"sum to 0\.98"),
        ([[1, 0, 0]], r"\(3, 3\), but has the shape \(1, 3\)"),
        ([1, 0, 0], "shape"),
        ([["a", "b", "c"]] * 3, "must be numbers"),
        ([[1, 0, 0], [1, 0], [1]], "rows of one length"),
    ],
)
def test_bad_scores_are_refused(scores, match):
    refused(match, scores=scores)


def test_rounding_within_the_tolerance_is_accepted():
    assert made(scores=[[0.33, 0.33, 0.33]] * 3).scores is not None


@pytest.mark.parametrize("what", ["labels", "truth"])
@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([0, 1], "one value for each of the 3 ids, but has 2 values"),
        (["cat"], "one value for each of the 3 ids, but has 1"),
        (["cat", "dgo", "eel"], r'names "dgo".* none of the 3 classes\. Did you mean "dog"'),
        ([0, 1, 3], "positions from 0 to 2, .* 1 are outside, such as 3"),
        ([0, -1, 2], "such as -1"),
        ([0.0, 1.0, 2.0], "of the type float64"),
        ([True, False, True], "of the type bool"),
        ([0, "cat", 1], "mixed"),
        ("cat", "one per input"),
        (np.zeros((3, 1), int), "shape"),
    ],
)
def test_bad_labels_and_truths_are_refused(what, values, match):
    refused(f"`{what}` .*{match}|{match}", **{what: values})


@pytest.mark.parametrize("values", [["cat", None, "eel"], [0, None, 2]])
def test_a_label_is_never_missing_and_a_truth_may_be(values):
    refused(naming("`labels`", "1 of 3"), labels=values)
    assert made(truth=values).truth.tolist() == [0, -1, 2]


def test_labels_or_scores_must_be_given():
    refused("Give `scores` or `labels`", labels=None)
    refused("`labels` is missing for 3 of 3", labels=[None] * 3)


def test_truth_that_is_missing_everywhere_is_no_truth():
    assert made(truth=[None, None, None]).truth is None


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, -1, 1], "row 1 .* is -1"),
        ([1, 1, np.nan], "row 2 .* is nan"),
        ([1, np.inf, 1], "row 1 .* is inf"),
        ([0, 0, 0], "All weights are zero"),
        ([1, 2], "one value for each of the 3 ids"),
        (["a", "b", "c"], "must be numbers"),
    ],
)
def test_bad_weights_are_refused(weights, match):
    refused(match, weights=weights)


def test_slices_hold_text_in_natural_order_and_missing_last():
    each = made(slices={"hour": [10, None, 9], "rainy": [True, False, True]})
    hour = each.slices["hour"]
    assert hour.values == ("9", "10", "(none)")
    assert [hour.values[code] for code in hour.codes] == ["10", "(none)", "9"]
    assert each.slices["rainy"].values == ("false", "true")
    again = made(slices={"hour": hour})
    assert again.slices["hour"].values == hour.values


@pytest.mark.parametrize(
    ("slices", "match"),
    [
        ({"hour": [1, 2]}, "one value for each of the 3 ids"),
        ({"ho\nur": [1, 2, 3]}, "slice name .* control characters"),
        ({"hour": ["a\x07", "b", "c"]}, "value of slice .* control characters"),
        ({"hour": Slice(("a",), np.array([0, 0, 1]))}, "positions in them"),
        ({"hour": Slice(("a", "a"), np.array([0, 0, 1]))}, "unique values"),
        ({"hour": [1, "a", 2]}, "mixed"),
        ({"hour": np.array([1j, 2, 3])}, "cannot be stored"),
    ],
)
def test_bad_slices_are_refused(slices, match):
    refused(match, slices=slices)


@given(predictions(), st.data())
def test_rows_are_taken_from_every_part_alike(whole, data):
    rows = data.draw(st.lists(st.integers(0, len(whole) - 1), unique=True))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    mask = np.isin(np.arange(len(whole)), rows)
    for part, chosen in [
        (whole.take(rows), rows),
        (whole.take(mask), sorted(rows)),
        (whole.slice(start, stop), range(start, stop)),
    ]:
        chosen = list(chosen)
        assert len(part) == len(chosen)
        assert part.ids.tolist() == [whole.ids[row] for row in chosen]
        assert part.labels.tolist() == whole.labels[chosen].tolist()
        for name in ("scores", "truth", "weights"):
            if getattr(whole, name) is not None:
                assert np.array_equal(getattr(part, name), getattr(whole, name)[chosen])
        for name, column in whole.slices.items():
            assert part.slices[name].codes.tolist() == column.codes[chosen].tolist()


def test_slicing_copies_nothing():
    whole = made(scores=np.eye(3))
    part = whole.slice(1, 3)
    assert np.shares_memory(part.scores, whole.scores)
    assert np.shares_memory(part.ids, whole.ids)


def test_rows_outside_are_refused():
    with pytest.raises(InputError, match="from 0 to 2"):
        made().take([3])


def test_predictions_can_be_sent_to_another_process():
    each = made(ids=["a", "b", "c"], scores=np.eye(3), slices={"hour": [1, 2, 3]})
    again = pickle.loads(pickle.dumps(each))  # noqa: S301
    assert again.ids.tolist() == each.ids.tolist()
    assert np.array_equal(again.scores, each.scores)
    assert repr(again) == repr(each)


@pytest.fixture(params=[1, 10**9], ids=["compiled", "numpy"])
def either_way(request, monkeypatch):
    """Every check by the compiled pass and by numpy, whatever the number of rows."""
    monkeypatch.setattr(_validate, "COMPILED_FROM", request.param)
    monkeypatch.setattr(_ids, "COMPILED_FROM", request.param)


SOME_SCORES = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=4),
    elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, -0.25, np.nan, np.inf, 1.008]),
)


def slow_first_bad_row(scores):
    for place, row in enumerate(scores.astype(float)):
        if not (np.isfinite(row).all() and (row >= 0).all() and abs(row.sum() - 1) <= 0.01):
            return place
    return -1


@pytest.mark.usefixtures("either_way")
def test_every_bad_row_is_found():
    @given(SOME_SCORES)
    def check(scores):
        assert _validate._first_bad_row(scores) == slow_first_bad_row(scores)

    check()


@pytest.mark.usefixtures("either_way")
def test_the_highest_class_is_found():
    @given(SOME_SCORES.filter(lambda scores: np.isfinite(scores).all()))
    def check(scores):
        best = [max(range(len(row)), key=lambda place: row[place]) for row in scores.tolist()]
        assert _validate.highest_class(scores).tolist() == best

    check()


@pytest.mark.usefixtures("either_way")
def test_every_duplicate_is_found_and_no_other():
    texts = st.lists(st.text(st.sampled_from("abü"), min_size=1, max_size=4), min_size=1)
    numbers = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), min_size=1)

    @given(texts | numbers, st.integers(0, 3))
    def check(ids, skipped):
        column = _ids.as_id_column(ids)[skipped:]  # an array that does not start at its buffers
        kept = ids[skipped:]
        if len(set(kept)) == len(kept):
            _ids.check_ids(column)
        else:
            with pytest.raises(InputError, match="unique"):
                _ids.check_ids(column)

    check()


@pytest.mark.parametrize("part", ["ids", "labels", "truth"])
def test_bytes_that_are_not_text_are_refused(part):
    given = {"ids": [1, 2], "labels": [0, 0], "truth": [0, 0]} | {part: np.array([b"\xff", b"a"])}
    with pytest.raises(InputError, match=naming(f"`{part}`", "UTF-8")):
        Predictions(classes=["a"], **given)


def test_repeated_class_names_are_found_among_very_many():
    names = [f"class {place}" for place in range(20_000)]
    with pytest.raises(InputError, match=naming('"class 7"', '"class 9"', "once")):
        Predictions(ids=[1], classes=[*names, "class 9", "class 7"], labels=[0])


def test_metrics_take_every_row_of_scores_that_predictions_take():
    edge = np.array([[0.5, 0.49], [0.33, 0.66]])
    made = Predictions(ids=[1, 2], classes=["a", "b"], scores=edge, truth=[0, 1])
    assert metrics.jensen_shannon(made.scores, made.scores) == 0
    assert metrics.expected_calibration_error(made.scores, truth=made.truth) > 0
