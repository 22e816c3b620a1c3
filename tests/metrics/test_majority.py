import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.metrics import majority_classes

counts = st.lists(st.integers(0, 50), min_size=1, max_size=30).map(np.array)


@given(counts, st.floats(0.01, 1))
def test_majority_classes_cover_their_share_and_no_class_too_many(rows, share):
    majority = majority_classes(rows, share=share)
    total = rows.sum()
    if not total:
        assert not majority.any()
        return
    assert rows[majority].sum() >= share * total * (1 - 1e-12)
    least = rows[majority].min()
    # Without the rarest of them, which are equally frequent, they would not.
    assert rows[majority & (rows > least)].sum() < share * total


@given(counts)
def test_more_frequent_classes_come_first_and_equals_are_alike(rows):
    majority = majority_classes(rows)
    if majority.any():
        assert rows[majority].min() > max(rows[~majority], default=0)


def test_balanced_classes_have_no_minority():
    assert majority_classes(np.full(100, 50)).all()
