import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import Settings, compare, compare_blocks, flips
from dynsnap.comparison import _examples as examples
from dynsnap.predictions import Predictions
from tests.comparison.made import Blocks, generations


def test_the_flipped_inputs_are_the_lost_ones_surest_first():
    old, new = generations(rows=300, slices={"place": ["north", "south", ""] * 100})
    found = compare(old, new).pairs[0]
    lost = [row for row in flips(old, new).to_pylist() if row["kind"] == "lost"]
    assert len(found.flipped) == found.transitions.lost == len(lost) > 5
    assert {one.id for one in found.flipped} == {row["id"] for row in lost}
    sure = [one.new_confidence for one in found.flipped]
    assert sure == sorted(sure, reverse=True)
    by_id = {row["id"]: row for row in lost}
    for one in found.flipped:
        row = by_id[one.id]
        assert (one.truth, one.old_label, one.new_label) == (
            row["truth"],
            row["old_label"],
            row["new_label"],
        )
        assert one.old_confidence == pytest.approx(row["old_confidence"])
        assert one.slices == (row["slice:place"] or "",)


@pytest.mark.slow
@given(step=st.integers(1, 60), count=st.integers(2, 4), weighted=st.booleans())
def test_blocks_do_not_change_what_is_remembered(step, count, weighted):
    weights = np.random.default_rng(3).random(60) if weighted else None
    made = generations(rows=60, count=count, weights=weights)
    whole = compare(*made, resamples=5)
    (parted,) = compare_blocks(Blocks(*made, step=step), Settings(resamples=5))
    assert whole.unstable == parted.unstable
    assert whole.ambiguity_so_far == parted.ambiguity_so_far
    assert [p.flipped for p in whole.pairs] == [p.flipped for p in parted.pairs]


def test_only_so_many_are_remembered(monkeypatch):
    monkeypatch.setattr(examples, "FLIPPED", 3)
    monkeypatch.setattr(examples, "UNSTABLE", 2)
    made = generations(rows=300, count=3)
    (found,) = compare_blocks(Blocks(*made, step=17), Settings(resamples=5))
    assert [len(pair.flipped) for pair in found.pairs] == [3, 0, 3]
    assert len(found.unstable) == 2
    assert found.unstable[0].changes == 2


def test_ambiguity_so_far_ends_at_the_ambiguity_and_never_falls():
    found = compare(*generations(rows=200, count=4, weights=np.linspace(1, 2, 200)), resamples=5)
    shares = found.ambiguity_so_far
    assert shares[0] == 0
    assert list(shares) == sorted(shares)
    assert shares[-1] == pytest.approx(found.agreement["ambiguity"].value)


def test_without_truth_and_scores_changed_labels_are_remembered():
    old = Predictions(ids=[1, 2, 3], classes=["a", "b"], labels=[0, 1, 1])
    new = Predictions(ids=[1, 2, 3], classes=["a", "b"], labels=[0, 0, 1])
    (one,) = compare(old, new).pairs[0].flipped
    assert (one.id, one.truth, one.old_label, one.new_label) == ("2", None, "b", "a")
    assert one.old_confidence is None


def test_unstable_inputs_carry_their_labels_in_every_generation():
    made = [
        Predictions(ids=["x", "y"], classes=["a", "b"], labels=labels, truth=[0, 0])
        for labels in ([0, 0], [1, 0], [0, 1])
    ]
    (one,) = compare(*made).unstable
    assert (one.id, one.truth, one.labels, one.changes) == ("x", "a", ("a", "b", "a"), 2)


def test_groups_count_their_cases():
    found = compare(*generations(rows=200, weights=np.linspace(1, 9, 200))).pairs[0]
    classes = [group for group in found.groups if group.kind == "class"]
    assert sum(group.transitions.lost for group in classes) == found.transitions.lost


def test_the_highest_are_found_without_sorting_all():
    from dynsnap.comparison._examples import _highest

    values = np.random.default_rng(0).integers(0, 9, 200) / 8  # with many ties
    ranked = np.argsort(-values, kind="stable")
    for count in (1, 7, 50, 199, 200, 300):
        assert _highest(values, count).tolist() == ranked[:count].tolist()
