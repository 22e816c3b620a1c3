"""The slice that tells majority and minority classes apart, by what learners are trained on."""

import numpy as np

from dynsnap.data import (
    TRAINING_ROWS,
    GrowthPlan,
    Pool,
    cifar100_growth,
    digits_stream,
    grow,
    split,
    training_rows,
)
from tests.data.real import cifar100_labels, sizes


def a_pool(name, rows=60, **slices):
    labels = np.arange(rows) % 3
    return Pool(
        name=name,
        inputs=np.zeros((rows, 2)),
        labels=labels,
        classes=("a", "b", "c"),
        ids=np.array([f"{name}{row}" for row in range(rows)]),
        slices={column: np.array(values) for column, values in slices.items()},
    )


def test_training_rows_are_what_a_round_learns_from():
    stream = digits_stream()
    for generation, expected in enumerate(training_rows(stream), start=1):
        train, _ = split(stream, generation, np.random.default_rng(0))
        assert np.bincount(stream.pool.labels[train], minlength=10).tolist() == expected.tolist()


def test_held_out_rows_know_whether_their_class_is_a_minority_in_training():
    plan = GrowthPlan(fractions=(0.5, 1), shares={"b": 0.1})
    stream = grow(a_pool("train"), plan, test=a_pool("test"))
    assert training_rows(stream).tolist() == [[10, 1, 10], [20, 2, 20]]
    test = stream.evaluation["test"]
    expected = ["minority" if label == 1 else "majority" for label in test.labels]
    assert test.slices[TRAINING_ROWS].tolist() == expected


def test_classes_with_equally_many_rows_have_no_such_slice():
    stream = grow(a_pool("train"), GrowthPlan(fractions=(0.5, 1)), test=a_pool("test"))
    assert TRAINING_ROWS not in stream.evaluation["test"].slices


def test_a_column_of_the_same_name_stays_the_users_own():
    own = {TRAINING_ROWS: ["mine"] * 60}
    plan = GrowthPlan(fractions=(0.5, 1), shares={"b": 0.1})
    stream = grow(a_pool("train", **own), plan, test=a_pool("test", **own))
    assert set(stream.evaluation["test"].slices[TRAINING_ROWS]) == {"mine"}


def test_the_minorities_of_cifar_100_are_the_classes_that_the_paper_cut():
    train, test = cifar100_labels()
    stream = grow(train, cifar100_growth(), test=test)
    assert training_rows(stream).sum(axis=1).tolist() == sizes(stream)
    held = stream.evaluation["test"]
    minority = held.labels[held.slices[TRAINING_ROWS] == "minority"]
    found = {held.classes[label] for label in minority}
    assert found == set(cifar100_growth().shares)
