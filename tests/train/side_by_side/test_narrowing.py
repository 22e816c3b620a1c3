"""Narrower networks are built when that is the fastest way to the end."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from dynsnap.train.side_by_side._stepper import worth_narrowing

STEP, BUILDING = 1.0, 50.0


def fastest(left, width, *, now):
    """By trying every set of moments to build at; `now`: whether that is one of them."""
    ends = sorted(set(left))
    best = float("inf")
    for later in itertools.product([False, True], repeat=len(ends) - 1):
        places, total, before = width, 0.0, 0
        for end, builds in zip(ends, [now, *later], strict=True):
            if builds:
                places = sum(steps >= end for steps in left)
                total += BUILDING
            total += (end - before) * STEP * places / width
            before = end
        best = min(best, total)
    return best


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(0, 6))
def test_it_narrows_when_the_fastest_way_begins_so(left, empty):
    width = len(left) + empty
    wanted = fastest(left, width, now=True) < fastest(left, width, now=False)
    found = worth_narrowing(left, width=width, step_seconds=STEP, building_seconds=BUILDING)
    assert found == wanted


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_a_full_network_is_never_rebuilt(left):
    assert not worth_narrowing(left, width=len(left), step_seconds=STEP, building_seconds=0.1)
