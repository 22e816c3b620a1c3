"""Intervals through `compare`: what holds of every one, and how often they hold the true value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap import metrics
from dynsnap.comparison import Settings, compare, compare_blocks
from dynsnap.comparison.intervals import BayesianBootstrap, PairStatistic, clopper_pearson
from dynsnap.comparison.intervals._bayesian_bootstrap import _draws
from dynsnap.predictions import Predictions, write
from dynsnap.predictions._ids import id_keys
from tests import strategies
from tests.comparison import made


def everything(found):
    """Every estimate of a comparison, under a name of its own."""
    named = {"average": found.averages, "all": found.agreement}
    named |= {f"of {each.name}": each.metrics for each in found.generations}
    for pair in found.pairs:
        named[f"{pair.old} to {pair.new}"] = pair.metrics
        for group in pair.groups:
            part = f"{group.column} {group.name}"
            named[f"{pair.old} to {pair.new}, {part}"] = group.metrics
    return {
        (part, name): estimate
        for part, metrics in named.items()
        for name, estimate in metrics.items()
    }


def test_up_to_1024_inputs_every_draw_weighs_whole_inputs_and_one_that_was_not_seen():
    old, new = made.generations(rows=90)
    unseen, draws = _draws(90, 300, 7)
    weights = np.empty_like(draws)
    weights[:, np.argsort(id_keys(old.id_column))] = draws
    pair = compare(old, new, resamples=300, seed=7, confidence=0.9).pairs[0].metrics
    low, high = 15 - 1, 300 - 15

    def composite(weight, extra, lost):
        """With one more input that was lost, or kept."""
        labels = [np.append(each.labels, 0) for each in (old, new)]
        truth = np.append(old.truth, 0)
        labels[1][-1] = 1 if lost else 0
        four = metrics.transitions(*labels, truth=truth, weights=np.append(weight, extra))
        return four.composite

    def divergence(weight, extra, end):
        of_rows = metrics.jensen_shannon(old.scores, new.scores, weights=weight)
        return (of_rows * weight.sum() + end * extra) / (weight.sum() + extra)

    for name, least, most in (
        ("composite", lambda w, e: composite(w, e, True), lambda w, e: composite(w, e, False)),
        ("jensen_shannon", lambda w, e: divergence(w, e, 0), lambda w, e: divergence(w, e, 1)),
    ):
        lowest = sorted(map(least, weights, unseen))[low]
        highest = sorted(map(most, weights, unseen))[high]
        found = pair[name]
        assert (found.low, found.high) == pytest.approx((lowest, highest), rel=1e-9), name


def test_the_draws_of_a_share_have_the_exact_interval_of_the_share():
    cases = np.zeros((1, 60, 5))
    cases[0, :, 0] = 1
    cases[0, :4] = [0, 0, 1, 0, 0]  # four inputs lost
    bootstrap = BayesianBootstrap(resamples=50_000)
    sampled = bootstrap.sampled(
        PairStatistic((), True), cases, heaviest=np.ones(1), inputs=np.array([60]), order=None
    )
    exact = clopper_pearson(np.array([4]), np.array([60]), confidence=0.95)
    drawn = bootstrap.interval(sampled, "lost")
    assert np.ravel(drawn) == pytest.approx(np.ravel(exact), rel=0.02)


def test_blocks_of_many_inputs_give_the_intervals_of_single_inputs():
    old, new = made.generations(rows=20_000)
    pair = compare(old, new).pairs[0]
    for name in ("consistency", "lost", "kept"):
        estimate = pair.metrics[name]
        share = estimate.value
        expected = 2 * 1.96 * np.sqrt(share * (1 - share) / 20_000)
        assert estimate.high - estimate.low == pytest.approx(expected, rel=0.05)
    spread = metrics.distances(old.scores, new.scores).std() / np.sqrt(20_000)
    distance = pair.metrics["minkowski"]
    assert distance.high - distance.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_few_blocks_of_many_inputs_are_allowed_for():
    # 32 blocks tell the spread of a mean as 32 numbers do: Student's t has heavier tails.
    rng = np.random.default_rng(3)
    sums = np.zeros((500, 32, 5))
    sums[..., 0] = rng.binomial(40, 0.7, (500, 32))
    sums[..., 3] = 40 - sums[..., 0]
    bootstrap = BayesianBootstrap(resamples=400)
    sampled = bootstrap.sampled(
        PairStatistic((), True),
        sums,
        heaviest=np.ones(500),
        inputs=np.full(500, 32 * 40),
        order=None,
    )
    low, high = bootstrap.interval(sampled, "composite")
    assert 0.935 <= np.mean((low <= 0.7) & (high >= 0.7)) <= 0.975


def test_the_seed_names_the_draws():
    parts = made.generations()
    one, again, other = (compare(*parts, seed=seed, resamples=50) for seed in (1, 1, 2))
    assert one == again
    composite = [each.pairs[0].metrics["composite"] for each in (one, other)]
    assert composite[0] != composite[1]


@settings(max_examples=15)
@given(strategies.generations())
def test_a_higher_confidence_widens_every_interval_and_all_hold_their_value(generations):
    narrow, wide = (
        everything(compare(*generations, confidence=c, resamples=250)) for c in (0.8, 0.99)
    )
    for part, estimate in narrow.items():
        if np.isnan(estimate.value):
            assert (estimate.low, estimate.high) == (None, None), part
            assert "0/0" in estimate.reason
            continue
        wider = wide[part]
        assert wider.low <= estimate.low <= estimate.value <= estimate.high <= wider.high, part


@settings(max_examples=15)
@given(strategies.generations())
def test_no_interval_is_a_point_however_few_inputs_there_are(generations):
    for part, estimate in everything(compare(*generations, resamples=100)).items():
        if not np.isnan(estimate.value):
            assert estimate.low < estimate.high, part


def close(one, other):
    ours, theirs = everything(one), everything(other)
    assert ours.keys() == theirs.keys()
    for part, estimate in ours.items():
        found = [theirs[part].value, theirs[part].low, theirs[part].high]
        for mine, their in zip((estimate.value, estimate.low, estimate.high), found, strict=True):
            if mine is None:
                assert their is None, part
            else:
                assert mine == pytest.approx(their, rel=1e-9, abs=1e-9, nan_ok=True), part


@settings(max_examples=15)
@given(strategies.generations(), st.randoms(use_true_random=False))
def test_no_bound_depends_on_the_order_of_the_rows(generations, random):
    order = list(range(len(generations[0])))
    random.shuffle(order)
    shuffled = [each.take(order) for each in generations]
    close(compare(*generations, resamples=60), compare(*shuffled, resamples=60))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize(
    ("rows", "classes"), [(3000, 4), (900, 600)], ids=["blocks of rows", "fewer blocks than rows"]
)
def test_no_bound_depends_on_the_order_of_many_rows_or_in_a_few_blocks(rows, classes, kind):
    rng = np.random.default_rng(0)
    truth, old = rng.integers(0, classes, (2, rows))
    old = np.where(rng.random(rows) < 0.8, truth, old)
    new = np.where(rng.random(rows) < 0.9, old, truth)
    ids = rng.permutation(10 * rows)[:rows]
    shared = {
        "ids": ids if kind == "numbers" else [f"row {each}" for each in ids],
        "classes": [f"c{place}" for place in range(classes)],
        "truth": truth,
        "weights": rng.lognormal(size=rows),
        "slices": {"half": np.where(rng.random(rows) < 0.5, "a", "b")},
    }
    pair = [Predictions(labels=labels, **shared) for labels in (old, new)]
    order = rng.permutation(rows)
    one = compare(*pair, resamples=100)
    other = compare(*(each.take(order) for each in pair), resamples=100)
    close(one, other)
    assert one.pairs[0].metrics["cohen_kappa"].low > 0.5


def test_no_bound_depends_on_the_order_of_the_rows_of_files(tmp_path):
    parts = made.generations(rows=2500, weights=np.random.default_rng(1).lognormal(size=2500))
    order = np.random.default_rng(2).permutation(2500)
    found = []
    for name, rows in (("as it was", slice(None)), ("shuffled", order)):
        files = [tmp_path / f"{name} {place}.parquet" for place in (1, 2)]
        write(parts[0].take(np.arange(2500)[rows]), files[0])
        write(parts[1], files[1])  # joined on disk where the orders differ
        found.append(compare(*files, names=["old", "new"], resamples=60))
    close(*found)


@settings(max_examples=15)
@given(strategies.generations(), st.sampled_from([1e-9, 0.5, 3.0, 1e12]))
def test_no_bound_depends_on_the_scale_of_the_weights(generations, scale):
    one = generations[0]
    weights = np.arange(1.0, 1 + len(one)) if one.weights is None else one.weights
    pairs = [
        [
            Predictions(
                ids=each.ids,
                classes=each.classes,
                scores=each.scores,
                labels=each.labels,
                truth=each.truth,
                weights=factor * weights,
            )
            for each in generations
        ]
        for factor in (1, scale)
    ]
    close(*(compare(*pair, resamples=60) for pair in pairs))


def test_equal_weights_change_no_value_and_hardly_a_bound():
    plain = made.generations(rows=400)
    weighted = made.generations(rows=400, weights=np.full(400, 0.25))
    one, other = (everything(compare(*each, resamples=4000)) for each in (plain, weighted))
    for part, estimate in one.items():
        same = other[part]
        assert same.value == pytest.approx(estimate.value, nan_ok=True)
        if estimate.low is not None and np.isfinite(estimate.high):
            room = 0.1 * (estimate.high - estimate.low)
            assert same.low == pytest.approx(estimate.low, abs=room), part
            assert same.high == pytest.approx(estimate.high, abs=room), part


def test_several_levels_come_from_one_pass():
    class Once(made.Blocks):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    parts = made.generations()
    blocks = Once(*parts, step=70)
    found = compare_blocks(blocks, Settings(confidences=[0.8, 0.99], resamples=50))
    assert blocks.passes == 1
    assert found == [compare(*parts, confidence=level, resamples=50) for level in (0.8, 0.99)]


def test_too_few_resamples_for_a_level_give_no_interval_and_say_how_many_it_takes():
    parts = made.generations(rows=60)
    short, full = (compare(*parts, confidence=0.9, resamples=number) for number in (18, 19))
    assert [sum("18 resamples" in note for note in each.notes) for each in (short, full)] == [1, 0]
    few, enough = (each.pairs[0].metrics for each in (short, full))
    assert few["composite"].value == enough["composite"].value
    assert (few["composite"].low, few["composite"].high) == (None, None)
    assert "18 resamples" in few["composite"].reason
    assert "0.9" in few["composite"].reason
    assert "19" in few["composite"].reason
    assert enough["composite"].low < enough["composite"].value < enough["composite"].high
    assert few["lost"] == enough["lost"]  # exact, without draws


def test_the_win_loss_ratio_is_the_odds_of_an_exact_share():
    old = [1] * 9 + [0] * 21
    new = [0] * 6 + [1] * 3 + [1] * 2 + [0] * 19
    pair = [
        Predictions(ids=np.arange(30), classes=["a", "b"], labels=labels, truth=[0] * 30)
        for labels in (old, new)
    ]
    found = compare(*pair).pairs[0].metrics["win_loss_ratio"]
    low, high = clopper_pearson(np.array([6]), np.array([8]), confidence=0.95)
    assert found.value == 3
    assert (found.low, found.high) == pytest.approx(
        (low[0] / (1 - low[0]), high[0] / (1 - high[0]))
    )


def test_a_ratio_without_losses_has_a_low_end_and_no_high_one():
    new = [0] * 20
    pair = [
        Predictions(ids=np.arange(20), classes=["a", "b"], labels=labels, truth=[0] * 20)
        for labels in ([1] + [0] * 19, new)
    ]
    found = compare(*pair).pairs[0].metrics["win_loss_ratio"]
    assert found.value == found.high == np.inf
    assert found.low == pytest.approx(0.025 / 0.975)


# What an input may be: how likely, old scores, new scores; the first class is the true one.
KINDS = (
    (0.86, (0.9, 0.07, 0.03), (0.9, 0.07, 0.03)),  # kept, and nothing moved
    (0.02, (0.6, 0.3, 0.1), (0.2, 0.7, 0.1)),  # lost
    (0.02, (0.1, 0.5, 0.4), (0.8, 0.1, 0.1)),  # gained
    (0.09, (0.2, 0.7, 0.1), (0.2, 0.7, 0.1)),  # wrong, and nothing moved
    (0.01, (0.3, 0.6, 0.1), (0.3, 0.1, 0.6)),  # wrong in another way
)


def population():
    """Every metric of a pair of all inputs that there could be."""
    chance = np.array([each[0] for each in KINDS])
    old, new = (np.array([each[side] for each in KINDS]) for side in (1, 2))
    one, other = old.argmax(axis=1), new.argmax(axis=1)
    true = np.zeros(len(KINDS), int)
    four = metrics.transitions(one, other, truth=true, weights=chance)
    found = {name: getattr(four, name) for name in ("kept", "gained", "lost", "never", "composite")}
    found["accuracy_change"] = four.gained - four.lost
    for name in ("consistency", "churn", "cohen_kappa"):
        found[name] = getattr(metrics, name)(one, other, weights=chance)
    for name in (
        "correct_consistency",
        "neutral_churn",
        "relative_negative_flip_rate",
        "backward_trust_compatibility",
        "backward_error_compatibility",
        "win_loss_ratio",
    ):
        found[name] = getattr(metrics, name)(one, other, truth=true, weights=chance)
    for name in ("pearson", "cosine", "minkowski", "prediction_difference", "jensen_shannon"):
        found[name] = getattr(metrics, name)(old, new, weights=chance)
    found["correct_distance"] = metrics.correct_distance(old, new, truth=true, weights=chance)
    found["top_2_consistency"] = metrics.top_k_consistency(old, new, k=2, weights=chance)
    found["accuracy"] = metrics.accuracy(other, truth=true, weights=chance)
    for name in ("correctness", "expected_calibration_error"):
        found[name] = getattr(metrics, name)(new, truth=true, weights=chance)
    found["top_2_accuracy"] = metrics.top_k_accuracy(new, truth=true, k=2, weights=chance)
    for name in ("fleiss_kappa", "krippendorff_alpha", "ambiguity", "discrepancy"):
        found[name] = getattr(metrics, name)(np.stack([one, other]), weights=chance)
    found["krippendorff_alpha"] = found["fleiss_kappa"]  # the same of infinitely many inputs
    return found


def samples(count, rows, *, weighted, seed=0):
    """Two generations on many samples, one below the other; the slice tells which is which."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(KINDS), count * rows, p=[each[0] for each in KINDS])
    weights = rng.lognormal(sigma=2, size=count * rows) if weighted else None
    old, new = (np.array([each[side] for each in KINDS])[chosen] for side in (1, 2))
    return [
        Predictions(
            ids=np.arange(count * rows),
            classes=["a", "b", "c"],
            scores=scores,
            truth=np.zeros(count * rows, int),
            weights=weights,
            slices={"sample": np.arange(count * rows) // rows},
        )
        for scores in (old, new)
    ]


def held(estimates, true):
    """The share of intervals, where there are any, that hold the true value."""
    found = [one.low - 1e-9 <= true <= one.high + 1e-9 for one in estimates if one.low is not None]
    assert found
    return np.mean(found)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "lognormal weights"])
@pytest.mark.parametrize("rows", [30, 100])
def test_the_intervals_of_every_pair_metric_hold_their_level_where_flips_are_rare(rows, weighted):
    pair = samples(150, rows, weighted=weighted)
    groups = [g for g in compare(*pair, resamples=300).pairs[0].groups if g.kind == "slice"]
    assert len(groups) == 150
    true = population()
    for name in groups[0].metrics:
        assert held([group.metrics[name] for group in groups], true[name]) >= 0.93, name


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "lognormal weights"])
def test_the_intervals_of_calibration_and_kappas_hold_their_level_where_flips_are_rare(weighted):
    rows, count = 30, 40
    whole = samples(count, rows, weighted=weighted, seed=1)
    found = []
    for first in range(0, count * rows, rows):
        parts = (each.slice(first, first + rows) for each in whole)
        one = compare(*parts, resamples=80, metrics=())
        found.append({**one.pairs[0].metrics, **one.generations[1].metrics, **one.agreement})
    true = population()
    assert true.keys() == found[0].keys()
    for name, value in true.items():
        assert held([each[name] for each in found], value) >= 0.93, name
