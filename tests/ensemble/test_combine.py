import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynsnap.ensemble import COMBINATIONS, combine, judged
from dynsnap.errors import InputError, PlanError
from tests.messages import naming
from tests.strategies import score_rows


@st.composite
def ensembles(draw):
    members, inputs, classes = draw(st.tuples(*[st.integers(1, n) for n in (6, 8, 4)]))
    scores = np.stack(
        [draw(score_rows(inputs=inputs, classes=classes + 1)) for _ in range(members)]
    )
    weights = draw(hnp.arrays(float, members, elements=st.floats(0.01, 1)))
    return scores, weights


def reference(scores, how, weights):
    """One input and one member at a time, in plain Python."""
    members, inputs, classes = scores.shape
    if not how.startswith("weighted"):
        weights = [1.0] * members
    rows = []
    for t in range(inputs):
        row = [0.0] * classes
        for j in range(members):
            own = list(scores[j, t])
            for k in range(classes):
                vote = 1.0 if k == own.index(max(own)) else 0.0
                row[k] += weights[j] * (vote if how.endswith("majority") else own[k])
        rows.append([value / sum(weights) for value in row])
    return np.array(rows)


@given(ensembles(), st.sampled_from(COMBINATIONS))
def test_all_four_equal_the_slow_reference(ensemble, how):
    scores, weights = ensemble
    combined = combine(scores, how=how, weights=weights)
    np.testing.assert_allclose(combined, reference(scores, how, weights), atol=1e-12)


@given(ensembles(), st.sampled_from(COMBINATIONS), st.sampled_from([np.float16, np.float32]))
def test_rows_sum_to_one_also_from_short_floats(ensemble, how, kind):
    scores, weights = ensemble
    combined = combine(scores.astype(kind), how=how, weights=weights)
    assert combined.shape == scores.shape[1:]
    np.testing.assert_allclose(combined.sum(axis=1), 1, atol=1e-12)
    assert (combined >= 0).all()


@given(ensembles())
def test_a_single_member_is_labelled_alike_by_all_four(ensemble):
    alone = ensemble[0][:1]
    labels = [combine(alone, how=how, weights=np.array([0.7])).argmax(1) for how in COMBINATIONS]
    assert all(np.array_equal(labels[0], other) for other in labels)
    assert np.array_equal(labels[0], alone[0].argmax(axis=1))


@given(ensembles(), st.sampled_from(["majority", "average"]), st.floats(0.001, 1000))
def test_equal_weights_change_nothing(ensemble, how, weight):
    scores, _ = ensemble
    weighted = combine(scores, how=f"weighted_{how}", weights=np.full(len(scores), weight))
    np.testing.assert_allclose(weighted, combine(scores, how=how), atol=1e-12)


@given(ensembles())
def test_the_average_is_no_farther_from_another_than_its_members_are(ensemble):
    scores, _ = ensemble  # the paper's theorem 1, on the combination that it is about
    other = scores[:, ::-1]
    apart = np.linalg.norm(combine(scores, how="average") - combine(other, how="average"), axis=1)
    assert (apart <= np.linalg.norm(scores - other, axis=2).mean(axis=0) + 1e-12).all()


def test_ties_go_to_the_lowest_class():
    torn = np.array([[[0.0, 0.5, 0.5]], [[0.5, 0.0, 0.5]]])
    assert combine(torn, how="majority").tolist() == [[0.5, 0.5, 0.0]]
    assert combine(torn, how="majority").argmax(axis=1).tolist() == [0]
    assert combine(torn[:, :, ::-1], how="majority").tolist() == [[1.0, 0.0, 0.0]]


def test_a_member_without_weight_does_not_count():
    scores = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert combine(scores, how="weighted_average", weights=[0, 0.5]).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("scale", [1e-320, 1e300])
def test_huge_and_tiny_weights_are_only_relative(scale):
    scores = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    combined = combine(scores, how="weighted_majority", weights=np.array([scale, scale]))
    assert combined.tolist() == [[0.5, 0.5]]


def test_no_inputs_give_no_rows():
    assert combine(np.zeros((3, 0, 2)), how="average").shape == (0, 2)


def test_the_members_scores_are_left_as_they_were():
    scores = np.full((2, 3, 4), 0.25)
    combine(scores, how="weighted_average", weights=np.array([0.3, 0.9]))
    assert (scores == 0.25).all()


def ones(members):
    return np.ones((members, 2, 1))


@pytest.mark.parametrize(
    ("scores", "weights", "message"),
    [
        (ones(2), None, '"weighted_average" needs `weights`'),
        (ones(2), [0.5], naming("`weights`", "2 members", r"\(1,\)")),
        (ones(2), [0, 0], naming("`weights`", "above 0")),
        (ones(2), [0.5, -0.1], naming("`weights`", "negative")),
        (ones(2), [0.5, np.nan], "`weights` holds nan"),
        (ones(0), [], naming("`scores`", "one member", r"\(0, 2, 1\)")),
        (np.ones((2, 1)), [1, 1], naming("`scores`", r"\(members, inputs, classes\)", r"\(2, 1\)")),
        (np.full((1, 1, 1), "a"), [1], naming("`scores`", "numbers", "<U1")),
        (ones(2) * 3, [1, 1], naming("`scores`", "member 0", "input 0", "to 3", "softmax")),
        (ones(2) * np.nan, [1, 1], "sums to nan"),
        (np.array([[[1.5, -0.5]]]), [1], naming("`scores`", "negative", "member 0", r"-0\.5")),
    ],
)
def test_what_cannot_be_combined_is_refused(scores, weights, message):
    with pytest.raises(InputError, match=message):
        combine(scores, how="weighted_average", weights=weights)


def test_an_unknown_combination_is_refused_with_a_suggestion():
    with pytest.raises(PlanError, match='Did you mean "majority"'):
        combine(ones(2), how="majorty")


@st.composite
def ensembles_of_two_generations(draw):
    """Members that know all classes but some of the last ones, and at least one that knows all."""
    scores, weights = draw(ensembles())
    members, _, classes = scores.shape
    lacking = draw(st.lists(st.integers(0, classes - 1), min_size=members - 1, max_size=members))
    known = np.ones((members, classes), dtype=bool)
    for member, count in enumerate(lacking[: members - 1]):
        known[member, classes - count :] = False
    return scores, weights, known


def reference_with_silence(scores, how, weights, known):
    """Fill every member's row where it is silent, one input at a time; then combine the rows."""
    members, inputs, classes = scores.shape
    if not how.startswith("weighted"):
        weights = np.ones(members)
    rows = np.array(scores, dtype=float)
    for j in range(members):
        for t in range(inputs):
            own = [rows[j, t, k] if known[j, k] else 0.0 for k in range(classes)]
            if sum(own) == 0:
                own = [float(known[j, k]) for k in range(classes)]
            if how.endswith("majority"):
                own = [float(k == own.index(max(own))) for k in range(classes)]
            rows[j, t] = np.array(own) / sum(own)
    found = np.zeros((inputs, classes))
    for t in range(inputs):
        likely = [
            np.average(rows[known[:, k], t, k], weights=weights[known[:, k]])
            for k in range(classes)
        ]
        for j in range(members):
            silent = [0.0 if known[j, k] else likely[k] for k in range(classes)]
            silent = np.array(silent) / max(1.0, sum(silent))
            found[t] += weights[j] * (rows[j, t] * (1 - silent.sum()) + silent)
    return found / np.sum(weights)


@given(ensembles_of_two_generations(), st.sampled_from(COMBINATIONS))
def test_silence_is_filled_as_in_the_slow_reference(ensemble, how):
    scores, weights, known = ensemble
    combined = combine(scores, how=how, weights=weights, known=known)
    np.testing.assert_allclose(
        combined, reference_with_silence(scores, how, weights, known), atol=1e-9
    )
    np.testing.assert_allclose(combined.sum(axis=1), 1, atol=1e-12)


@given(ensembles(), st.sampled_from(COMBINATIONS))
def test_where_all_know_the_same_classes_nothing_changes(ensemble, how):
    scores, weights = ensemble
    plain = combine(scores, how=how, weights=weights)
    for flag in (True, False):
        known = np.ones(scores[:, 0].shape, dtype=bool)
        known[:, -1] = flag  # nobody knows the last one: there is nobody to ask
        assert np.array_equal(combine(scores, how=how, weights=weights, known=known), plain)


@given(ensembles())
def test_a_new_class_is_judged_by_those_alone_who_know_it(ensemble):
    scores, _ = ensemble
    known = np.ones((2 * len(scores), scores.shape[2]), dtype=bool)
    known[len(scores) :, -1] = False
    both = np.concatenate([scores, scores[::-1]])
    combined = combine(both, how="average", known=known)
    np.testing.assert_allclose(combined[:, -1], combine(scores, how="average")[:, -1], atol=1e-9)


@given(ensembles(), st.data())
def test_members_that_are_compared_on_a_row_of_weight_three_meet_it_three_times(ensemble, data):
    scores, _ = ensemble
    _, rows, classes = scores.shape
    truth = data.draw(hnp.arrays(int, rows, elements=st.integers(0, classes - 1)))
    times = data.draw(hnp.arrays(int, rows, elements=st.integers(1, 4)))
    known = data.draw(hnp.arrays(bool, (len(scores), classes)))
    known[:, 0] = True
    often, new = scores.repeat(times, axis=1), scores[:1]
    wanted = judged(often, truth.repeat(times), known=known, new=new.repeat(times, axis=1))
    for one, other in zip(
        judged(scores, truth, known=known, new=new, weights=0.5 * times), wanted, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            np.ones((2, 2), dtype=bool),
            naming("`known`", "2 members", "3 classes", "bool", r"\(2, 2\)"),
        ),
        (np.ones((2, 3)), "but is float64"),
        (np.array([[True, True, True], [False] * 3]), "without any class"),
    ],
)
def test_a_wrong_account_of_who_knows_what_is_refused(known, message):
    with pytest.raises(InputError, match=message):
        combine(np.full((2, 1, 3), 1 / 3), how="average", known=known)
