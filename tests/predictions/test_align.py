import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import ComparisonError, InputError, PlanError
from dynsnap.predictions import Predictions, _join, align
from tests.messages import naming
from tests.strategies import names, predictions


@st.composite
def generations(draw):
    """Two or three predictions whose ids and classes overlap more or less."""
    pool = draw(st.sampled_from([list(range(6)), [f"id {n}" for n in range(6)], [-9, 10**15, 3]]))
    words = draw(st.lists(names(), min_size=2, max_size=4, unique=True))
    count = draw(st.integers(2, 3))

    def one():
        ids = draw(st.lists(st.sampled_from(pool), min_size=1, unique=True))
        classes = draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
        return draw(predictions(ids=ids, classes=classes))

    return [one() for _ in range(count)]


def slow(each):
    """Everything said about each input, by names: what no reordering may change."""
    said = {}
    for row, name in enumerate(each.ids.tolist()):
        said[str(name)] = {
            "label": each.classes[each.labels[row]],
            "truth": None if each.truth is None else each.classes[each.truth[row]],
            "weight": None if each.weights is None else each.weights[row],
            "scores": None
            if each.scores is None
            else {
                name: score
                for name, score in zip(each.classes, each.scores[row], strict=True)
                if score
            },
        }
    return said


def first_given(every, what, key):
    return next((said[key][what] for said in every if said[key][what] is not None), None)


@given(generations())
def test_aligned_predictions_say_what_each_said(given_generations):
    every = [slow(each) for each in given_generations]
    shared = [key for key in every[0] if all(key in said for said in every)]
    contradicted = any(
        len({said[key][what] for said in every} - {None}) > 1
        for key in shared
        for what in ("truth", "weight")
    )
    if contradicted or not shared:
        match = "different (truths|weights)" if contradicted else "No id"
        with pytest.raises(ComparisonError, match=match):
            align(*given_generations)
        return

    aligned = align(*given_generations)
    union = {key for said in every for key in said}
    assert aligned.report.rows == tuple(len(said) for said in every)
    assert aligned.report.shared == len(shared)
    assert aligned.report.missing == tuple(len(union - set(said)) for said in every)
    assert aligned.report.total == len(union)
    assert aligned.report.partial == any(set(said) != union for said in every)
    orders = [[key for key in said if key in shared] for said in every]
    assert aligned.report.same_order == all(order == shared for order in orders)
    for said, some, count in zip(
        every, aligned.report.examples, aligned.report.missing, strict=True
    ):
        assert len(some) == min(count, 5)
        assert set(some) <= union - set(said)
    for said, each in zip(every, aligned.generations, strict=True):
        assert each.classes == aligned.classes
        assert [str(key) for key in each.ids.tolist()] == shared
        for key, found in slow(each).items():
            assert found["scores"] == said[key]["scores"]
            assert found["truth"] == first_given(every, "truth", key)
            assert found["weight"] == first_given(every, "weight", key)
            assert found["label"] == said[key]["label"] or is_a_tie(said[key], found["label"])


def is_a_tie(said, label):
    """A label that follows from the scores may change where another class scores the same."""
    scores = said["scores"]
    return scores is not None and scores[label] == scores[said["label"]] == max(scores.values())


@given(generations())
def test_classes_are_the_union_with_those_of_the_first_in_front(given_generations):
    bare = [
        Predictions(ids=range(len(each)), classes=each.classes, labels=each.labels, positions=True)
        for each in given_generations
    ]
    aligned = align(*bare)
    first = bare[0].classes
    assert aligned.classes[: len(first)] == first
    assert set(aligned.classes) == {name for each in bare for name in each.classes}
    assert len(set(aligned.classes)) == len(aligned.classes)


@given(predictions(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(made, random):
    rows = random.sample(range(len(made)), len(made))
    shuffled = made.take(rows)
    aligned = align(made, shuffled)
    assert slow(aligned.generations[1]) == slow(made)
    assert aligned.generations[1].ids.tolist() == made.ids.tolist()
    assert not aligned.report.partial
    assert re.search(naming(f"All {len(made)} ids"), aligned.report.sentence())


@given(predictions())
def test_predictions_that_agree_already_are_not_copied(made):
    again = Predictions(
        ids=made.ids.copy(),
        classes=made.classes,
        scores=made.scores,
        labels=made.labels,
        positions=True,
    )
    aligned = align(made, again)
    assert aligned.report.same_order
    for each, given_one in zip(aligned.generations, (made, again), strict=True):
        assert np.shares_memory(each.labels, given_one.labels)
        if each.scores is not None:
            assert np.shares_memory(each.scores, given_one.scores)


@given(
    st.lists(st.integers(-5, 20), unique=True, min_size=1),
    st.lists(st.integers(-5, 20) | st.just(2**62), unique=True, min_size=1),
)
def test_numbers_are_found_through_a_table_as_by_hashing(first, second):
    columns = [
        Predictions(ids=ids, classes=["x"], labels=[0] * len(ids)).id_column
        for ids in (first, second)
    ]
    places = _join.places_in(*columns).tolist()
    assert places == [second.index(each) if each in second else -1 for each in first]


def made(ids, labels="ab", **parts):
    labels = (list(labels) * len(ids))[: len(ids)]
    return Predictions(**({"ids": ids, "classes": ["a", "b"], "labels": labels} | parts))


def test_whole_numbers_and_text_are_compared_as_text():
    aligned = align(made([1, 2, 3]), made(["3", "1", "02"]))
    assert aligned.report.shared == 2
    assert [each.ids.tolist() for each in aligned.generations] == [[1, 3], [1, 3]]
    assert aligned.report.examples == (("02",), ("2",))
    assert align(made(["3", "x"]), made([3, 4])).generations[1].ids.tolist() == ["3"]


def test_missing_ids_are_counted_and_shown():
    report = align(made([1, 2, 3, 4]), made([2, 3, 9]), names=["old", "new"]).report
    assert report.partial
    assert report.missing == (1, 2)
    assert report.missing_share == pytest.approx(2 / 5)
    assert re.search(naming("2", "5", 'old.*1.*"9".*new.*2.*"1", "4"'), report.sentence())
    many = align(made(range(2000)), made([5]), names=["old", "new"]).report
    assert re.search(naming("new.*1,999"), many.sentence())
    assert len(many.sentence()) < 300  # some of them, not all


def test_no_shared_id_is_refused():
    with pytest.raises(ComparisonError, match=naming('"old"', '"new"', '"1"', '"2"', '"a"')):
        align(made([1, 2]), made(["a", "b"]), names=["old", "new"])


def test_different_truths_for_one_id_are_refused():
    old = made([1, 2, 3], truth=["a", "b", "a"])
    new = made([3, 2, 1], truth=["a", "a", "a"])
    with pytest.raises(
        ComparisonError,
        match=naming('"old"', '"new"', "1", "3", '"b"', '"a"', '"2"'),
    ):
        align(old, new, names=["old", "new"])


def test_different_weights_for_one_id_are_refused_but_not_lost_digits():
    weights = np.array([0.1, 0.2, 0.3])
    align(made([1, 2, 3], weights=weights), made([1, 2, 3], weights=weights.astype(np.float32)))
    with pytest.raises(
        ComparisonError, match=naming("weights", "1", "3", r'"0\.3"', r'"1\.0"', '"3"')
    ):
        align(made([1, 2, 3], weights=weights), made([1, 2, 3], weights=[0.1, 0.2, 1]))


def test_truth_slices_and_weights_come_from_whoever_has_them():
    bare = made([1, 2, 3])
    slices = {"hour": [7, 8, 9]}
    rich = made([3, 2, 1], truth=["a", "b", "b"], weights=[1, 2, 3], slices=slices)
    other = made([1, 2, 3], slices={"hour": [0, 0, 0], "place": ["x", "y", "z"]})
    for each in align(bare, rich, other).generations:
        assert each.truth.tolist() == [1, 1, 0]
        assert each.weights.tolist() == [3, 2, 1]
        hour = each.slices["hour"]
        assert [hour.values[code] for code in hour.codes] == ["9", "8", "7"]
        assert list(each.slices) == ["hour", "place"]


def test_scores_of_unknown_classes_are_zero():
    old = Predictions(ids=[1], classes=["a", "b"], scores=[[0.25, 0.75]])
    new = Predictions(ids=[1], classes=["c", "b"], scores=np.array([[0.5, 0.5]], np.float32))
    aligned = align(old, new)
    assert aligned.classes == ("a", "b", "c")
    assert aligned.generations[0].scores.tolist() == [[0.25, 0.75, 0]]
    assert aligned.generations[1].scores.tolist() == [[0, 0.5, 0.5]]
    assert aligned.generations[1].scores.dtype == np.float32


def test_ties_go_to_the_lowest_class_of_the_common_order():
    old = Predictions(ids=[1], classes=["a", "b"], scores=[[0.5, 0.5]])
    new = Predictions(ids=[1], classes=["b", "a"], scores=[[0.5, 0.5]])
    assert [each.labels.tolist() for each in align(old, new).generations] == [[0], [0]]
    stated = Predictions(ids=[1, 2], classes=["b", "a"], scores=[[0.5, 0.5]] * 2, labels=["a", "b"])
    old = Predictions(ids=[1, 2], classes=["a", "b"], labels=["a", "b"])
    assert align(old, stated).generations[1].labels.tolist() == [0, 1]


def test_classes_are_renamed_in_all_generations():
    old = Predictions(ids=[1], classes=["cat", "dog"], labels=["cat"], truth=["cat"])
    new = Predictions(ids=[1], classes=["felis", "dog"], labels=["felis"], truth=["felis"])
    with pytest.raises(ComparisonError, match="different truths"):
        align(old, new)
    aligned = align(old, new, rename={"felis": "cat"})
    assert aligned.classes == ("cat", "dog")
    assert aligned.generations[1].labels.tolist() == [0]
    swapped = align(old, rename={"cat": "dog", "dog": "cat"}).generations[0]
    assert swapped.names_of(swapped.labels).tolist() == ["dog"]
    with pytest.raises(PlanError, match=naming('"felix"', '"felis"')):
        align(old, new, rename={"felix": "cat"})
    with pytest.raises(InputError, match=naming("class name", "empty")):
        align(old, new, rename={"cat": ""})


def test_what_cannot_be_aligned_is_refused():
    with pytest.raises(InputError, match="nothing to align"):
        align()
    with pytest.raises(InputError, match="2 predictions, but 1 names"):
        align(made([1]), made([1]), names=["old"])
