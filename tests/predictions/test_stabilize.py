"""Stabilized predictions: laws of the rows, and what is done with ids and classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import ComparisonError, InputError, PlanError
from dynsnap.predictions import Predictions, stabilize, stabilize_scores
from tests import strategies
from tests.messages import naming

MARGINS = st.floats(0, 1)


@given(strategies.scored_pairs(), MARGINS)
def test_a_label_changes_exactly_where_another_class_leads_by_more_than_the_margin(pair, margin):
    new, _, deployed = pair
    rows = stabilize_scores(new, deployed, margin=margin)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert (rows >= 0).all()
    for row, scores, old in zip(rows, new, deployed, strict=True):
        ahead = max(scores) - scores[old]
        if ahead > margin + 2e-6:
            assert row.argmax() == scores.argmax()
        elif ahead <= margin and margin:
            assert row.argmax() == old


@given(strategies.scored_pairs(), MARGINS, MARGINS)
def test_a_larger_margin_changes_no_more_labels(pair, one, other):
    new, _, deployed = pair
    low, high = sorted((one, other))
    few, many = (
        stabilize_scores(new, deployed, margin=margin).argmax(axis=1) for margin in (high, low)
    )
    assert ((few == deployed) | (many != deployed)).all()


@given(strategies.scored_pairs())
def test_a_margin_of_0_changes_no_score_and_one_of_1_keeps_every_label(pair):
    new, _, deployed = pair
    np.testing.assert_array_equal(stabilize_scores(new, deployed, margin=0), new)
    np.testing.assert_array_equal(
        stabilize_scores(new, deployed, margin=1).argmax(axis=1), deployed
    )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_lead_of_exactly_the_margin_is_no_lead_by_more(kind):
    votes = np.arange(21)[:, None] * [1, -1] + [0, 20]  # of 20 members for two classes
    old = Predictions(ids=np.arange(21), classes=["cat", "dog"], labels=["dog"] * 21)
    new = Predictions(ids=np.arange(21), classes=["cat", "dog"], scores=(votes / 20).astype(kind))
    for tenths in range(1, 11):
        made = stabilize(old, new, margin=tenths / 10)
        ahead = votes[:, 0] - votes[:, 1]  # in members
        np.testing.assert_array_equal(made.labels == 1, ahead <= 2 * tenths)


@given(strategies.scored_pairs(), MARGINS)
def test_rows_that_nothing_is_deployed_for_stay_as_they_are(pair, margin):
    new, _, deployed = pair
    deployed = np.where(np.arange(len(new)) % 2, deployed, -1)
    rows = stabilize_scores(new, deployed, margin=margin)
    np.testing.assert_array_equal(rows[::2], new[::2])


def test_old_labels_are_found_by_id_and_by_the_names_of_classes():
    old = Predictions(ids=["3", "1"], classes=["dog", "cat"], labels=["cat", "dog"])
    new = Predictions(
        ids=[1, 2, 3],
        classes=["cat", "dog"],
        scores=[[0.55, 0.45], [0.55, 0.45], [0.45, 0.55]],
        truth=["cat", "cat", "dog"],
        weights=[1, 2, 3],
    )
    made = stabilize(old, new, margin=0.2)
    assert made.names_of(made.labels).tolist() == ["dog", "cat", "cat"]
    assert made.ids.tolist() == [1, 2, 3]
    assert made.truth.tolist() == [0, 0, 1] and made.weights.tolist() == [1, 2, 3]
    assert "more than 0.2" in made.notes[-1]
    assert new.labels.tolist() == [0, 0, 1]  # what was handed in is as it was


def test_an_old_class_that_the_new_model_does_not_know_is_not_kept():
    old = Predictions(ids=[1], classes=["cat", "eel"], labels=["eel"])
    new = Predictions(ids=[1], classes=["cat", "dog"], scores=[[0.4, 0.6]])
    assert stabilize(old, new, margin=1).labels.tolist() == [1]


def test_new_predictions_without_scores_are_refused():
    both = [Predictions(ids=[1], classes=["cat"], labels=["cat"]) for _ in range(2)]
    with pytest.raises(InputError, match=r"labels alone.*scores"):
        stabilize(*both)


def test_predictions_of_other_inputs_are_refused():
    old = Predictions(ids=["a"], classes=["cat"], labels=["cat"])
    new = Predictions(ids=["b"], classes=["cat"], scores=[[1.0]])
    with pytest.raises(ComparisonError, match=naming('"a"', '"b"')):
        stabilize(old, new)


@pytest.mark.parametrize("margin", [-0.1, 1.1, float("nan"), True, "0.2"])
def test_a_margin_that_makes_no_sense_is_refused(margin):
    with pytest.raises(PlanError, match=naming("`margin`", "0", "1")):
        stabilize_scores(np.array([[1.0, 0.0]]), np.array([0]), margin=margin)


@pytest.mark.parametrize(
    ("deployed", "said"),
    [
        ([0.0], "float64 of the shape"),
        ([0, 1], r"shape \(2,\)"),
        ([2], "goes from 2 to 2"),
        ([-2], "goes from -2"),
    ],
)
def test_deployed_labels_that_are_no_columns_are_refused(deployed, said):
    with pytest.raises(InputError, match=said):
        stabilize_scores(np.array([[1.0, 0.0]]), np.array(deployed))


def test_predictions_without_a_common_class_are_refused():
    old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
    new = Predictions(ids=[1, 2], classes=["Cat", "Dog"], scores=[[0.4, 0.6], [0.4, 0.6]])
    with pytest.raises(InputError, match=naming("cat", "Dog")) as caught:
        stabilize(old, new)
    assert "\n" not in str(caught.value)
