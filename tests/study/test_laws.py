import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import InputError
from dynsnap.study import LAWS, Law
from dynsnap.study.size._laws import fit, fits, predicted
from tests.messages import naming

BENDS = {"power": [0.5, 0.6, 0.76, 1.0], "shifted": [0.0, 0.5, 3.0], "inverse": [1.0]}

laws = st.sampled_from(LAWS).flatmap(
    lambda name: st.builds(
        Law,
        name=st.just(name),
        limit=st.floats(0.3, 1),
        scale=st.floats(-0.3, 0.3).filter(lambda scale: abs(scale) > 1e-4),
        bend=st.sampled_from(BENDS[name]),
    )
)


@given(laws, st.integers(3, 30))
def test_a_law_is_found_again_in_what_it_says(law, count):
    rounds = np.arange(1.0, count + 1)
    found = fit(law.name, rounds, np.array([law.at(one) for one in rounds]))
    assert found.limit == pytest.approx(law.limit, abs=1e-9)
    assert found.at(100) == pytest.approx(law.at(100), abs=1e-9)


@given(laws, st.floats(1e-4, 0.1))
def test_enough_is_the_smallest_number_within_the_tolerance(law, tolerance):
    enough = law.enough(tolerance)
    if enough is None:
        assert abs(law.limit - law.at(10**5)) > tolerance
        return
    assert abs(law.limit - law.at(enough)) <= tolerance
    assert enough == 1 or abs(law.limit - law.at(enough - 1)) > tolerance


@given(laws, st.floats(1e-4, 0.1))
def test_settled_is_the_smallest_number_to_which_one_more_adds_less(law, tolerance):
    settled = law.settled(tolerance)
    assert abs(law.at(settled + 1) - law.at(settled)) < tolerance
    assert settled == 1 or abs(law.at(settled) - law.at(settled - 1)) >= tolerance


@given(laws, st.integers(1, 1000))
def test_a_law_never_crosses_its_limit_and_comes_ever_nearer(law, rounds):
    assert abs(law.limit - law.at(rounds + 1)) < abs(law.limit - law.at(rounds))
    assert (law.limit - law.at(rounds)) * law.scale > 0


@settings(max_examples=20)
@given(st.lists(laws.filter(lambda law: law.name == "power"), min_size=1, max_size=4))
def test_many_are_fitted_as_each_alone(many):
    rounds = np.arange(1.0, 9)
    values = np.array([[law.at(one) for law in many] for one in rounds])
    together = fits("power", rounds, values)
    for place, law in enumerate(many):
        alone = fit("power", rounds, values[:, place])
        assert (alone.limit, alone.scale, alone.bend) == tuple(
            pytest.approx(each[place]) for each in together
        )
        assert predicted("power", together, 50)[place] == pytest.approx(law.at(50), abs=1e-9)


def test_two_points_leave_the_exponent_in_the_middle():
    found = fit("power", np.array([1.0, 2.0]), np.array([0.8, 0.85]))
    assert found.bend == pytest.approx(0.76)
    assert found.at(1) == pytest.approx(0.8) and found.at(2) == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("name", "bend", "at_bound"),
    [
        ("power", 0.3, True),  # flatter than any that is tried
        ("power", 0.5, True),
        ("power", 0.7, False),
        ("power", 1.0, True),
        ("power", 1.4, True),
        ("shifted", 0.0, True),
        ("shifted", 2.0, False),
        ("shifted", 9.0, True),
        ("inverse", 1.0, False),
    ],
)
def test_a_law_whose_bend_is_the_last_that_is_tried_is_at_its_bound(name, bend, at_bound):
    rounds = np.arange(1.0, 9)
    shapes = {"power": rounds**-bend, "shifted": 1 / (rounds + bend), "inverse": 1 / rounds}
    assert fit(name, rounds, 0.9 - 0.1 * shapes[name]).at_bound == at_bound


def test_neither_a_flat_law_nor_one_of_two_points_is_at_a_bound():
    assert not fit("power", np.arange(1.0, 5), np.full(4, 0.9)).at_bound
    assert not fit("power", np.array([1.0, 2.0]), np.array([0.8, 0.85])).at_bound


def test_one_point_is_no_law():
    with pytest.raises(InputError, match=naming("two numbers", "got 1")):
        fit("power", np.ones(1), np.ones(1))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.sampled_from(LAWS))
def test_a_share_of_inputs_has_no_limit_beyond_all_of_them(values, name):
    found = fit(name, np.arange(1.0, len(values) + 1), np.array(values))
    assert 0 <= found.limit <= 1


def test_a_limit_at_the_top_leaves_the_nearest_scale():
    rounds = np.array([1.0, 2.0])
    found = fit("inverse", rounds, np.array([0.7, 0.95]))  # a line would lead to 1.2
    assert found.limit == 1
    error = [
        sum(r * (1 - scale / r - v) ** 2 for r, v in zip(rounds, (0.7, 0.95), strict=True))
        for scale in (found.scale - 0.01, found.scale, found.scale + 0.01)
    ]
    assert error[1] < min(error[0], error[2])
