"""How many members: laws, closed forms and slow references."""

import json
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.ensemble import COMBINATIONS, Members, combine
from dynsnap.errors import InputError, PlanError
from dynsnap.metrics import accuracy, consistency, correct_consistency
from dynsnap.study import estimate_sizes
from dynsnap.study.size._draws import falls_as, twin_disagreement
from tests.messages import naming


def made(scores, rounds=None):
    """Members with these scores, each a round of its own unless told otherwise."""
    scores = np.asarray(scores, float)
    rounds = range(len(scores)) if rounds is None else rounds
    places = [list(rounds[:i]).count(r) for i, r in enumerate(rounds)]
    weights = np.linspace(0.9, 0.5, len(scores))
    return Members(weights, {"test": scores}, tuple(zip(rounds, places, strict=True)))


def votes(labels, classes=2):
    """Members (members, inputs) that are sure of what they say."""
    return np.eye(classes)[np.asarray(labels)]


@st.composite
def stories(draw, members=None):
    """Two generations of members, and the truth."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = members or draw(st.integers(2, 6))
    old, new = (rng.dirichlet(np.ones(3), (count, 7)) for _ in range(2))
    return made(old), made(new), rng.integers(0, 3, 7)


def sizes(generations, truth, **settings):
    given = {"draws": 30, "resamples": 20, **settings}
    return estimate_sizes([generations], truth=truth, **given)


def value(found, metric, members):
    (point,) = (one for one in found.curves[metric].points if one.members == members)
    return point.value


def said(found, how, chosen):
    weights = found.accuracy[list(chosen)]
    return combine(found.scores["test"][list(chosen)], how=how, weights=weights).argmax(axis=1)


@settings(max_examples=10)
@given(stories(), st.sampled_from(COMBINATIONS))
def test_all_members_give_exactly_what_the_stored_ensemble_gives(story, how):
    old, new, truth = story
    found = sizes([old, new], truth, combination=how)
    a, b = (said(each, how, range(len(each))) for each in (old, new))
    both = [accuracy(one, truth=truth) for one in (a, b)]
    assert value(found, "accuracy", len(old)) == pytest.approx(np.mean(both), abs=1e-12)
    assert value(found, "consistency", len(old)) == pytest.approx(consistency(a, b), abs=1e-12)
    both_right = correct_consistency(a, b, truth=truth)
    assert value(found, "correct_consistency", len(old)) == pytest.approx(both_right, abs=1e-12)


@settings(max_examples=10)
@given(stories(members=3), st.sampled_from(COMBINATIONS))
def test_of_three_members_every_subset_is_drawn_equally_often(story, how):
    old, new, truth = story
    found = sizes([old, new], truth, at=[1, 2, 3], combination=how)
    for size in (1, 2, 3):
        chosen = list(combinations(range(3), size))
        every = [(said(old, how, a), said(new, how, b)) for a in chosen for b in chosen]
        expected = {
            "accuracy": [accuracy(one, truth=truth) for pair in every for one in pair],
            "consistency": [consistency(a, b) for a, b in every],
            "correct_consistency": [correct_consistency(a, b, truth=truth) for a, b in every],
        }
        for metric, all_of_them in expected.items():
            assert value(found, metric, size) == pytest.approx(np.mean(all_of_them), abs=1e-12)


@settings(max_examples=10)
@given(stories(), st.sampled_from(["rounds", "members"]))
def test_expected_values_keep_to_theorem_5(story, draw):
    old, new, truth = story
    found = sizes([old, new], truth, draw=draw)
    for size in range(len(found.curves["accuracy"].by_rounds)):
        right, alike, both = (
            found.curves[metric].by_rounds[size].value
            for metric in ("accuracy", "consistency", "correct_consistency")
        )
        slack = 1e-12
        assert 2 * right - 1 - slack <= both <= min(right, alike) + slack


@settings(max_examples=10)
@given(stories())
def test_values_lie_within_their_intervals_over_inputs_and_draws(story):
    old, new, truth = story
    for curve in sizes([old, new], truth, resamples=300).curves.values():
        for point in (*curve.points, *curve.by_rounds):
            assert -1e-9 <= point.low <= point.high <= 1 + 1e-9
            assert -1e-9 <= point.least <= point.most <= 1 + 1e-9
        # All members are one ensemble, which leaves nothing to draw.
        assert curve.points[-1].least == curve.points[-1].most


def chosen_right(right, members, size):
    """The chance that most of `size` members, drawn without replacement, are right."""
    ways = [
        comb(right, k) * comb(members - right, size - k) for k in range(size // 2 + 1, size + 1)
    ]
    return sum(ways) / comb(members, size)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_members_of_known_agreement_give_what_the_closed_form_says(seed):
    """Voters of whom known numbers are right: draws without replacement are hypergeometric."""
    rng, members = np.random.default_rng(seed), 9
    right = rng.integers(0, members + 1, (2, 12))
    generations = []
    for counts in right:
        labels = np.array([rng.permutation(np.arange(members) >= count) for count in counts]).T
        generations.append(made(votes(labels.astype(int))))
    truth = np.zeros(12, int)
    found = sizes(generations, truth, at=[1, 3, 5, 9], combination="majority", draws=3000)
    for size in (1, 3, 5, 9):
        a, b = ([chosen_right(int(c), members, size) for c in counts] for counts in right)
        a, b = np.array(a), np.array(b)
        near = pytest.approx(np.mean([a, b]), abs=0.012)
        assert value(found, "accuracy", size) == near
        near = pytest.approx(np.mean(a * b + (1 - a) * (1 - b)), abs=0.012)
        assert value(found, "consistency", size) == near
        near = pytest.approx(np.mean(a * b), abs=0.012)
        assert value(found, "correct_consistency", size) == near


def test_rounds_are_drawn_whole_and_members_one_by_one():
    # Two rounds of two members each: one round is right about everything, the other never.
    labels = np.repeat([[0] * 5, [0] * 5, [1] * 5, [1] * 5], 1, axis=0)
    generation = made(votes(labels), rounds=[0, 0, 1, 1])
    truth = np.zeros(5, int)
    whole = sizes([generation, generation], truth, at=[1, 2, 3, 4])
    assert whole.draw == "rounds" and whole.rounds == 2 and whole.members_per_round == 2
    assert value(whole, "consistency", 2) == pytest.approx(0.5)
    single = sizes([generation, generation], truth, at=[1, 2, 3, 4], draw="members", draws=2000)
    # Two of four: both right 1/6, both wrong 1/6, one of each 4/6, which is a tie for class 0.
    assert value(single, "accuracy", 2) == pytest.approx(5 / 6, abs=0.03)
    assert value(whole, "accuracy", 4) == value(single, "accuracy", 4)


def test_members_of_one_round_are_drawn_one_by_one_unless_told_otherwise():
    generation = made(votes([[0, 1], [1, 1], [0, 0]]), rounds=[0, 0, 0])
    assert sizes([generation, generation], None).draw == "members"
    with pytest.raises(InputError, match=naming("one round", '"members"')):
        sizes([generation, generation], None, draw="rounds")


def test_without_truth_there_is_the_consistency_only():
    generation = made(votes([[0, 1], [1, 1], [0, 0]]))
    assert list(sizes([generation, generation], None).curves) == ["consistency"]


@settings(max_examples=10)
@given(stories(), st.integers(0, 5))
def test_the_same_seed_gives_the_same_to_the_last_bit(story, seed):
    old, new, truth = story
    one, other = (sizes([old, new], truth, seed=seed, extrapolate=True) for _ in range(2))
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())


def test_replicates_are_averaged():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 20)
    runs = [[made(rng.dirichlet(np.ones(3), (4, 20))) for _ in range(2)] for _ in range(3)]
    together = estimate_sizes(runs, truth=truth, draws=8, resamples=5)
    alone = [value(sizes(run, truth), "accuracy", 4) for run in runs]
    assert value(together, "accuracy", 4) == pytest.approx(np.mean(alone))
    assert together.replicates == 3


def crowd(rng, members, margins):
    """Members that see the margin of each input with a normal error of their own."""
    right = 1 / (1 + np.exp(-(margins + rng.normal(size=(members, len(margins))))))
    return made(np.stack([right, 1 - right], axis=2))


def test_the_law_foresees_a_size_that_it_was_not_fitted_to():
    rng = np.random.default_rng(1)
    margins = rng.uniform(-2, 3, 600)
    generations = [crowd(rng, 40, margins + rng.normal(0, 0.3, 600)) for _ in range(2)]
    found = sizes(generations, np.zeros(600, int), at=[10, 20, 40, 80], extrapolate=True)
    for curve in found.curves.values():
        assert [trial.law for trial in curve.trials] == ["power", "shifted", "inverse"]
        assert {(trial.fitted_to, trial.tested_at) for trial in curve.trials} == {(20, 40)}
        assert abs(curve.trials[0].error) < 0.005
        beyond = curve.points[-1]
        assert beyond.extrapolated and beyond.least is None
        assert beyond.low <= beyond.value <= beyond.high
        assert curve.limit.low <= curve.limit.value <= curve.limit.high
        assert abs(curve.law.at(curve.enough) - curve.limit.value) <= 0.005
        assert curve.gain == pytest.approx(curve.law.at(41) - curve.law.at(40))


def test_below_four_rounds_no_law_is_tested():
    rng = np.random.default_rng(0)
    few = [made(rng.dirichlet(np.ones(3), (3, 9))) for _ in range(2)]
    assert sizes(few, None).curves["consistency"].trials == ()


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"at": [9]}, PlanError, naming("9 members", "the 4", "extrapolate")),
        ({"at": [0]}, PlanError, naming("one member", "got 0")),
        ({"tolerance": 0.0}, PlanError, "`tolerance` must be above 0"),
        ({"truth": np.zeros(3, int)}, InputError, naming("3 true classes", "5 inputs")),
        ({"generations": 1}, InputError, "fewer than two"),
        ({"members": 1}, InputError, "one member only"),
    ],
)
def test_what_cannot_be_told_is_said(change, kind, message):
    rng = np.random.default_rng(0)
    asked = {"generations": 2, "members": 4, "truth": np.zeros(5, int), **change}
    count, members, truth = (asked.pop(name) for name in ("generations", "members", "truth"))
    run = [made(rng.dirichlet(np.ones(3), (members, 5))) for _ in range(count)]
    with pytest.raises(kind, match=message):
        sizes(run, truth, **asked)


def test_generations_of_other_inputs_are_refused():
    rng = np.random.default_rng(0)
    old, new = (made(rng.dirichlet(np.ones(3), (3, inputs))) for inputs in (5, 6))
    with pytest.raises(InputError, match="same test inputs"):
        sizes([old, new], None)


@pytest.mark.parametrize("draw", ["rounds", "members"])
def test_twins_disagree_as_much_as_the_closed_form_says(draw):
    """Margins spread evenly over (-5, 5), each member off by a normal error of its own.

    Two averages of k members then disagree on 2 ∫ Φ(μ√k) Φ(-μ√k) dμ / 10 = 0.2 / √(πk) of the
    inputs.
    """
    rng = np.random.default_rng(0)
    margins = rng.uniform(-5, 5, 4000)
    scores = np.zeros((8, 4000, 2))
    scores[:, :, 0] = margins + rng.normal(size=(8, 4000))
    found = twin_disagreement(made(scores), [1, 2, 4], draw=draw, draws=40, rng=rng)
    known = 0.2 / np.sqrt(np.pi * np.array([1, 2, 4]))
    assert found == pytest.approx(known, rel=0.1)
    assert falls_as(np.array([1.0, 2, 4]), found) == pytest.approx(0.5, abs=0.06)


def test_twins_of_equal_members_agree_on_everything():
    same = made(np.tile([[0.7, 0.3], [0.4, 0.6]], (4, 1, 1)))
    found = sizes([same, same], None).twins
    assert (found.rounds, found.disagreement, found.exponent) == ((1, 2), (0.0, 0.0), None)
