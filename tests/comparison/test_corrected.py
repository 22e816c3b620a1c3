import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import GroupResult
from dynsnap.comparison._groups import corrected

KINDS = ("class", "slice", "frequency")


def groups(p_values):
    return [
        GroupResult(
            kind=KINDS[place % 3],
            column="c",
            name=f"{place}",
            inputs=9,
            weight=9,
            metrics={},
            changed=p,
        )
        for place, p in enumerate(p_values)
    ]


@pytest.mark.slow
def test_a_report_of_classes_and_slices_keeps_its_rate_of_false_alarms():
    draws = np.random.default_rng(0).random((2_000, 60))
    alarms = [any(one.corrected < 0.05 for one in corrected(groups(row))) for row in draws]
    # Three standard errors above 0.05; corrected by kind, it would be about 0.14.
    assert np.mean(alarms) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(draws))


@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_the_kind_of_a_group_does_not_matter_to_its_correction(p_values):
    tested = sorted(p for p in p_values if p is not None)
    for one in corrected(groups(p_values)):
        if one.changed is None:
            assert one.corrected is None
            continue
        # Holm's method, written out: the largest of the earlier ones, each by how many are left.
        steps = [(len(tested) - i) * p for i, p in enumerate(tested) if p <= one.changed]
        assert one.corrected == min(1.0, max(steps))
