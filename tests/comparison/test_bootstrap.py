import numpy as np
import pytest

from dynsnap import metrics
from dynsnap.comparison import compare, compare_at_levels
from dynsnap.comparison._bootstrap import Bootstrap, Sampled, _draws
from dynsnap.predictions import Predictions
from tests.comparison import made


def test_up_to_1024_inputs_every_resample_draws_whole_inputs():
    old, new = made.generations(rows=90)
    draws = _draws(90, 300, 7)
    assert (draws.sum(axis=1) == 90).all()
    pair = compare(old, new, resamples=300, seed=7, confidence=0.9).pairs[0]
    for name, by_weight in {
        "cohen_kappa": lambda w: metrics.cohen_kappa(old.labels, new.labels, weights=w),
        "jensen_shannon": lambda w: metrics.jensen_shannon(old.scores, new.scores, weights=w),
        "win_loss_ratio": lambda w: metrics.win_loss_ratio(
            old.labels, new.labels, truth=old.truth, weights=w
        ),
    }.items():
        samples = np.sort([by_weight(draw) for draw in draws])
        low, high = samples[int(0.05 * 299)], samples[int(np.ceil(0.95 * 299))]
        estimate = pair.metrics[name]
        assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-9), name


def test_blocks_of_many_inputs_give_the_intervals_of_single_inputs():
    old, new = made.generations(rows=20_000)
    pair = compare(old, new).pairs[0]
    for name in ("consistency", "lost", "kept"):
        estimate = pair.metrics[name]
        share = estimate.value
        expected = 2 * 1.96 * np.sqrt(share * (1 - share) / 20_000)
        assert estimate.high - estimate.low == pytest.approx(expected, rel=0.15)
    spread = metrics.distances(old.scores, new.scores).std() / np.sqrt(20_000)
    distance = pair.metrics["minkowski"]
    assert distance.high - distance.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_sorted_inputs_get_the_same_intervals_as_shuffled_ones():
    rows = 30_000
    flipped = np.arange(rows) < rows // 5
    for order in (np.arange(rows), np.random.default_rng(0).permutation(rows)):
        new = flipped[order].astype(int)
        pair = [
            Predictions(ids=np.arange(rows), classes=["a", "b"], labels=labels)
            for labels in (np.zeros(rows, int), new)
        ]
        churn = compare(*pair).pairs[0].metrics["churn"]
        expected = 2 * 1.96 * np.sqrt(0.2 * 0.8 / rows)
        assert churn.high - churn.low == pytest.approx(expected, rel=0.15)


def test_the_seed_names_the_resamples():
    parts = made.generations()
    one, again, other = (compare(*parts, seed=seed, resamples=50) for seed in (1, 1, 2))
    assert one == again
    assert one.pairs[0].metrics["lost"] != other.pairs[0].metrics["lost"]


def test_a_higher_confidence_widens_every_interval():
    parts = made.generations()
    wide, narrow = (compare(*parts, confidence=level).pairs[0].metrics for level in (0.99, 0.8))
    for name in wide:
        assert wide[name].low <= narrow[name].low <= narrow[name].high <= wide[name].high


def test_several_levels_come_from_one_pass():
    class Once(made.Blocks):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    parts = made.generations()
    blocks = Once(*parts, step=70)
    found = compare_at_levels(blocks, [0.8, 0.99], resamples=50)
    assert blocks.passes == 1
    assert found == [compare(*parts, confidence=level, resamples=50) for level in (0.8, 0.99)]


def test_intervals_hold_their_level():
    # 200 samples of 400 inputs from a churn of 0.1: about 190 of the intervals should hold it.
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        new = (rng.random(400) < 0.1).astype(int)
        pair = [
            Predictions(ids=np.arange(400), classes=["a", "b"], labels=labels)
            for labels in (np.zeros(400, int), new)
        ]
        churn = compare(*pair, resamples=200).pairs[0].metrics["churn"]
        held += churn.low <= 0.1 <= churn.high
    assert 180 <= held <= 199


def test_a_share_of_none_or_all_has_the_exact_binomial_bound_instead_of_a_point():
    one = Predictions(ids=np.arange(40), classes=["a", "b"], labels=[0] * 40, truth=[0] * 40)
    pair = compare(one, one).pairs[0].metrics
    reach = 1 - 0.025 ** (1 / 40)
    assert (pair["lost"].low, pair["lost"].high) == pytest.approx((0, reach))
    assert (pair["consistency"].low, pair["consistency"].high) == pytest.approx((1 - reach, 1))
    trust = pair["backward_trust_compatibility"]
    assert (trust.low, trust.high) == pytest.approx((1 - reach, 1))


@pytest.mark.parametrize("rows", [1, 5, 50, 300, 3000])
def test_one_more_input_lost_never_lowers_the_upper_end(rows):
    before = 0.0
    for lost in range(min(rows, 25) + 1):
        labels = (np.arange(rows) < lost).astype(int)
        pair = [
            Predictions(ids=np.arange(rows), classes=["a", "b"], labels=said, truth=[0] * rows)
            for said in ([0] * rows, labels)
        ]
        found = compare(*pair, resamples=200, seed=lost).pairs[0].metrics["lost"]
        assert 0 <= found.low <= lost / rows <= found.high <= 1
        assert found.high >= before
        before = found.high


def test_intervals_of_rare_cases_hold_their_level():
    # 300 samples of 200 inputs, of which 2 % change: about 285 of the intervals should hold it.
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        new = (rng.random(200) < 0.02).astype(int)
        pair = [
            Predictions(ids=np.arange(200), classes=["a", "b"], labels=labels)
            for labels in (np.zeros(200, int), new)
        ]
        churn = compare(*pair, resamples=100).pairs[0].metrics["churn"]
        held += churn.low <= 0.02 <= churn.high
    assert held >= 280


def test_every_interval_holds_its_value():
    for rows in (3, 20, 400):
        old, new = made.generations(rows=rows)
        found = compare(old, new, resamples=50)
        parts = [each.metrics for each in (*found.generations, *found.pairs)]
        parts += [group.metrics for group in found.pairs[0].groups]
        for metrics_of_part in parts:
            for name, estimate in metrics_of_part.items():
                if estimate.low is not None:
                    assert estimate.low <= estimate.value <= estimate.high, name


def test_there_is_no_interval_where_most_resamples_are_undefined():
    samples = np.full((100, 2), np.nan)
    samples[:60, 0] = np.linspace(0, 1, 60)
    samples[:40, 1] = 0.5
    sampled = Sampled({"pearson": np.array([0.5, 0.5])}, {"pearson": samples})
    first, second = Bootstrap(confidence=0.5).estimates(sampled, wholes={})
    assert 0.2 < first["pearson"].low < first["pearson"].high < 0.8
    assert (second["pearson"].low, second["pearson"].high) == (None, None)


def test_infinite_resamples_are_an_infinite_bound():
    samples = np.concatenate([np.ones((90, 1)), np.full((10, 1), np.inf)])
    sampled = Sampled({"win_loss_ratio": np.array([2.0])}, {"win_loss_ratio": samples})
    (found,) = Bootstrap().estimates(sampled, wholes={})
    assert (found["win_loss_ratio"].low, found["win_loss_ratio"].high) == (1.0, np.inf)
