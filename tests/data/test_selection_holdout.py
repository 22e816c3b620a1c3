import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.data import GrowthPlan, Pool, from_arrivals, grow, selection_rows, split
from dynsnap.errors import DataError, PlanError
from tests.messages import naming


def a_pool(rows, *, classes=2, texts=False, name="made"):
    inputs = np.arange(rows * 3).reshape(rows, 3)
    if texts:
        inputs = np.array([f"text {row}" for row in range(rows)], dtype=object)
    return Pool(
        name=name,
        inputs=inputs,
        labels=np.arange(rows) % classes,
        classes=tuple("abcdef"[:classes]),
        ids=np.array([f"{name}-{row}" for row in range(rows)]),
    )


@given(st.integers(1, 200), st.floats(0, 0.99), st.booleans(), st.randoms())
def test_a_rows_side_depends_on_its_content_alone(rows, share, texts, random):
    pool = a_pool(rows, texts=texts)
    order = list(range(rows))
    random.shuffle(order)
    found = selection_rows(pool.inputs, share)
    shuffled = selection_rows(pool.take(np.array(order)).inputs, share)
    assert np.array_equal(shuffled, found[order])
    assert np.array_equal(selection_rows(pool.inputs, 0), np.zeros(rows, dtype=bool))


def test_a_number_is_the_same_number_in_any_type():
    pool = a_pool(200)
    whole = selection_rows(pool.inputs, 0.3)
    for kind in (np.int32, np.float32, np.float64):
        other = Pool(
            name="other",
            inputs=pool.inputs.astype(kind),
            labels=pool.labels,
            classes=pool.classes,
            ids=pool.ids,
        )
        assert np.array_equal(selection_rows(other.inputs, 0.3), whole)


def test_growing_data_keeps_its_selection_holdout_out_of_every_round():
    train, test = a_pool(60), a_pool(40, name="test")
    plan = GrowthPlan(fractions=(0.5, 1.0), selection_holdout=0.4)
    stream = grow(train, plan, test=test)
    aside = set(stream.evaluation["untouched"].ids)
    assert len(aside) == 8  # 0.4 of the 20 validation rows
    for generation in (1, 2):
        for seed in range(5):
            for part in split(stream, generation, np.random.default_rng(seed)):
                assert not aside & set(stream.pool.ids[part])
        assert stream.selection_holdout[generation - 1].tolist() == list(range(8))
    assert not aside & set(stream.evaluation["test"].ids)
    plain = grow(train, GrowthPlan(fractions=(0.5, 1.0)), test=test)
    for with_, without in zip(stream.generations, plain.generations, strict=True):
        trained = len(with_) - stream.validation[0].sum()
        assert trained == len(without) - plain.validation[0].sum()
    assert set(plain.evaluation["test"].ids) == set(stream.evaluation["test"].ids)


def test_a_new_class_is_judged_by_from_its_arrival_on():
    train, test = a_pool(60, classes=3), a_pool(60, classes=3, name="test")
    plan = GrowthPlan(
        fractions=(0.5, 1.0), late={"c": 2}, late_validation="arrival", selection_holdout=0.5
    )
    stream = grow(train, plan, test=test)
    labels = stream.evaluation["untouched"].labels
    assert set(labels[stream.selection_holdout[0]]) == {0, 1}
    assert set(labels[stream.selection_holdout[1]]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("late_validation", "first"),
    [("never", [True, True, False]), ("always", [True, True, False])],
)
def test_what_is_only_validated_on_is_not_learned(late_validation, first):
    plan = GrowthPlan(fractions=(0.5, 1.0), late={"c": 2}, late_validation=late_validation)
    stream = grow(a_pool(60, classes=3), plan, test=a_pool(60, classes=3, name="test"))
    assert stream.learned(1).tolist() == first
    assert stream.learned(2).all()


def test_arrivals_keep_the_selection_holdout_aside_generation_by_generation():
    pool = a_pool(400)
    stream = from_arrivals(
        pool, np.repeat([1, 2], 200), test=a_pool(20, name="test"), selection_holdout=0.2
    )
    aside = selection_rows(pool.inputs, 0.2)
    ids = stream.evaluation["untouched"].ids
    for generation, rows in enumerate((np.arange(200), np.arange(400))):
        assert set(ids[stream.selection_holdout[generation]]) == set(pool.ids[rows[aside[rows]]])
        assert set(stream.generations[generation]) == set(rows[~aside[rows]])


def test_the_fingerprint_knows_the_selection_holdout():
    train, test = a_pool(60), a_pool(40, name="test")
    prints = {
        grow(
            train, GrowthPlan(fractions=(0.5, 1.0), selection_holdout=share), test=test
        ).fingerprint
        for share in (0.0, 0.4, 0.6)
    }
    assert len(prints) == 3


@pytest.mark.parametrize("share", [-0.1, 1, "half"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(PlanError, match=naming("`selection_holdout`", "0", "1")):
        GrowthPlan(selection_holdout=share)


def test_too_few_validation_rows_to_hold_some_out_are_named():
    with pytest.raises(DataError, match=naming("'a'", r"0\.1")):
        grow(a_pool(60), GrowthPlan(selection_holdout=0.1), test=a_pool(8, name="test"))
