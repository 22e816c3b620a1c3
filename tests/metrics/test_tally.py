import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import metrics
from dynsnap.errors import InputError
from dynsnap.metrics._catalogue import metrics_of_cases
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_formulas import (
    agreement_metrics,
    cohen_kappa,
    generation_metrics,
    pair_metrics,
)
from dynsnap.metrics._tally_layout import TallyLayout
from tests.messages import naming
from tests.metrics import reference
from tests.strategies import generations


def layout_of(generations, **changes):
    one = generations[0]
    settings = {
        "rows": len(one),
        "classes": len(one.classes),
        "scored": tuple(each.scores is not None for each in generations),
        "truth": one.truth is not None,
        "weighted": one.weights is not None,
        "slices": {name: len(column.values) for name, column in one.slices.items()},
        "top_k": tuple(k for k in (1, 2, 4) if k <= len(one.classes)),
        "pairs": tuple(itertools.combinations(range(len(generations)), 2)),
    }
    return TallyLayout(**(settings | changes))


def tallied(generations, *, compiled=False, **changes):
    tally = Tally(layout_of(generations, **changes), compiled=compiled)
    tally.add(generations, start=0)
    return tally


def values_of_pair(tally, place):
    layout = tally.layout
    columns = layout.pair_columns(layout.pairs[place])
    return pair_metrics(tally.pair_sums(place).sum(axis=0), columns, truth=layout.truth)


def by_the_definitions(old, new, top_k):
    """Every metric of a pair from the pure functions, or its entry on cases counted one by one."""
    w = {"weights": old.weights}
    labels = (old.labels, new.labels)
    found = {"consistency": metrics.consistency(*labels, **w), "churn": metrics.churn(*labels, **w)}
    if old.truth is not None:
        t = {"truth": old.truth, **w}
        four = metrics.transitions(*labels, **t)
        found |= {name: getattr(four, name) for name in ("kept", "gained", "lost", "never")}
        found["composite"] = four.composite
        for name in (
            "correct_consistency",
            "neutral_churn",
            "relative_negative_flip_rate",
            "backward_trust_compatibility",
            "backward_error_compatibility",
            "win_loss_ratio",
        ):
            found[name] = getattr(metrics, name)(*labels, **t)
    if old.scores is not None and new.scores is not None:
        scores = (old.scores, new.scores)
        for name in ("pearson", "cosine", "minkowski", "prediction_difference", "jensen_shannon"):
            found[name] = getattr(metrics, name)(*scores, **w)
        for k in top_k:
            found[f"top_{k}_consistency"] = metrics.top_k_consistency(*scores, k=k, **w)
        if old.truth is not None:
            found["correct_distance"] = metrics.correct_distance(*scores, **t)
    counted = reference.cases(
        *(each if each is None else each.tolist() for each in (*labels, old.truth)), old.weights
    )
    others = metrics_of_cases(truth=old.truth is not None)
    return found | {name: of(counted) for name, of in others.items() if name not in found}


def same(found, expected, slack=1e-12):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=slack, abs=slack, nan_ok=True), name


@given(generations())
def test_the_tally_gives_every_pair_metric_as_it_is_defined(generations):
    tally = tallied(generations)
    for place, (old, new) in enumerate(tally.layout.pairs):
        expected = by_the_definitions(generations[old], generations[new], tally.layout.top_k)
        same(values_of_pair(tally, place), expected)


@given(generations())
def test_the_tally_gives_every_generation_metric_as_it_is_defined(generations):
    tally = tallied(generations)
    for g, each in enumerate(generations):
        sums = tally.generations[g]
        found = generation_metrics(
            sums.means.sum(axis=0), sums.gaps.sum(axis=0), tally.layout.generation_columns(g)
        )
        expected = {}
        if each.truth is not None:
            t = {"truth": each.truth, "weights": each.weights}
            expected["accuracy"] = metrics.accuracy(each.labels, **t)
            if each.scores is not None:
                expected["correctness"] = metrics.correctness(each.scores, **t)
                expected["expected_calibration_error"] = metrics.expected_calibration_error(
                    each.scores, **t
                )
                for k in tally.layout.top_k:
                    expected[f"top_{k}_accuracy"] = metrics.top_k_accuracy(each.scores, k=k, **t)
        same(found, expected)


@given(generations())
def test_the_tally_gives_the_agreement_of_all_generations_as_it_is_defined(generations):
    tally = tallied(generations)
    labels = np.stack([each.labels for each in generations])
    weights = generations[0].weights
    used = [sums.labels.sum(axis=0) for sums in tally.generations]
    churns = [values_of_pair(tally, place)["churn"] for place in range(len(tally.pairs))]
    total = tally.generations[0].means[:, 0].sum()
    ambiguity = churns[0] if len(generations) == 2 else tally.ambiguous.sum() / total
    found = agreement_metrics(churns, used, ambiguity=ambiguity, values=labels.size)
    same(
        found,
        {
            name: getattr(metrics, name)(labels, weights=weights)
            for name in ("fleiss_kappa", "krippendorff_alpha", "ambiguity", "discrepancy")
        },
    )
    expected = metrics.cohen_kappa(labels[0], labels[1], weights=weights)
    assert cohen_kappa(churns[0], *used[:2]) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def everything(tally):
    return [*tally._arrays(), *(flows.most(10**6) for flows in tally.flows)]


def agree(one, other, slack=1e-12):
    for mine, theirs in zip(everything(one), everything(other), strict=True):
        if isinstance(mine, list):
            assert mine == theirs
        else:
            np.testing.assert_allclose(mine, theirs, rtol=slack, atol=slack)


@pytest.mark.slow
@given(generations(max_inputs=300, width=np.float32))
def test_the_compiled_kernel_counts_like_numpy(generations):
    agree(tallied(generations, compiled=True), tallied(generations))


@pytest.mark.parametrize("rows", [900, 2000])
def test_the_compiled_kernel_keeps_the_same_blocks_where_there_are_fewer_than_usual(rows):
    many = random_generations(rows=rows, classes=600)
    found = tallied(many, compiled=True)
    assert found.layout.label_blocks < found.layout.blocks
    assert found.layout.groupings[1].blocks < found.layout.blocks
    agree(found, tallied(many))


@pytest.mark.slow
def test_the_compiled_kernel_counts_double_precision_and_mixed_scores_like_numpy():
    mixed = random_generations(rows=3000, classes=7, kinds=(np.float64, np.float32, np.float64))
    agree(tallied(mixed, compiled=True), tallied(mixed))


def random_generations(*, rows, classes, kinds=(np.float32, np.float32), seed=0, **parts):
    from dynsnap.predictions import Predictions, align

    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((rows, classes)) * 3
    made = []
    for kind in kinds:
        scores = np.exp(logits + rng.standard_normal((rows, classes)))
        scores = (scores / scores.sum(axis=1, keepdims=True)).astype(kind)
        made.append(
            Predictions(
                ids=np.arange(rows),
                classes=[f"c{place}" for place in range(classes)],
                scores=scores,
                truth=rng.integers(0, classes, rows),
                **parts,
            )
            if not made
            else Predictions(ids=np.arange(rows), classes=made[0].classes, scores=scores)
        )
    return align(*made).generations


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nearly_flat_rows_that_do_not_quite_sum_to_one_keep_their_correlation(compiled):
    from dynsnap.predictions import Predictions

    rng = np.random.default_rng(3)
    flat = [1.009 / 6 + rng.uniform(-1e-7, 1e-7, (200, 6)) for _ in range(2)]
    pair = [Predictions(ids=np.arange(200), classes=list("abcdef"), scores=rows) for rows in flat]
    found = values_of_pair(tallied(pair, compiled=compiled), 0)["pearson"]
    assert found == pytest.approx(metrics.pearson(*flat), abs=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_generation_compared_with_itself_has_not_moved(compiled):
    one, _ = random_generations(rows=500, classes=10)
    found = values_of_pair(tallied([one, one], compiled=compiled), 0)
    assert found["jensen_shannon"] == found["minkowski"] == found["prediction_difference"] == 0
    assert found["cosine"] == found["pearson"] == found["consistency"] == 1


@given(generations(), st.integers(1, 29))
def test_two_tallies_of_different_rows_add_up_to_the_tally_of_all(generations, cut):
    rows = len(generations[0])
    cut = min(cut, rows)
    whole = tallied(generations)
    first, rest = (Tally(whole.layout, compiled=False) for _ in range(2))
    first.add([each.slice(0, cut) for each in generations], start=0)
    rest.add([each.slice(cut, rows) for each in generations], start=cut)
    first.merge(rest)
    agree(first, whole)
    assert first.rows == whole.rows == rows


@given(generations(), st.integers(1, 29))
def test_two_tallies_know_the_heaviest_row_of_each_group_of_both(generations, cut):
    whole = tallied(generations)
    rows = len(generations[0])
    parts = [Tally(whole.layout, compiled=False) for _ in range(2)]
    cut = min(cut, rows)
    parts[0].add([each.slice(0, cut) for each in generations], start=0)
    parts[1].add([each.slice(cut, rows) for each in generations], start=cut)
    parts[0].merge(parts[1])
    one = generations[0]
    for grouping in whole.layout.groupings:
        found = parts[0].heaviest_of(grouping)
        assert found.tolist() == whole.heaviest_of(grouping).tolist()
        if one.weights is None:
            assert set(found.tolist()) == {1.0}
        elif grouping.name == "truth":
            for place, weight in enumerate(found.tolist()):
                assert weight == one.weights[one.truth == place].max(initial=0)


def test_rows_beyond_a_chunk_and_many_classes_are_counted_once():
    many = random_generations(rows=70_000, classes=3, weights=np.tile([1.0, 3.0], 35_000))
    tally = tallied(many)
    for grouping in tally.layout.groupings:
        assert tally.case_counts(0, grouping).sum() == 70_000
    assert tally.pair_sums(0)[:, :5].sum() == 140_000

    wide = random_generations(rows=1100, classes=1000)
    tally = tallied(wide, compiled=False)
    assert tally.layout.groupings[0].name == "all"
    expected = by_the_definitions(*wide, tally.layout.top_k)
    same(values_of_pair(tally, 0), expected)
    by_class = tally.group_sums(0, tally.layout.groupings[1])
    np.testing.assert_allclose(by_class.sum(axis=(0, 1)), tally.pair_sums(0).sum(axis=0))


def test_flows_are_the_counts_of_changed_labels():
    old, new = random_generations(rows=2000, classes=4)
    tally = tallied([old, new])
    expected = {}
    for key in zip(old.truth.tolist(), old.labels.tolist(), new.labels.tolist(), strict=True):
        if key[1] != key[2]:
            expected[key] = expected.get(key, 0) + 1
    assert dict(tally.flows[0].most(1000)) == expected
    counts = [count for _, count in tally.flows[0].most(5)]
    assert counts == sorted(expected.values(), reverse=True)[:5]


def test_sparse_flows_count_like_dense_ones_and_say_when_rare_ones_were_given_up(monkeypatch):
    from dynsnap.metrics import _flows

    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 125, 50) for _ in range(9)]
    dense, sparse, other = (_flows.Flows(classes=5) for _ in range(3))
    sparse._table = other._table = None
    monkeypatch.setattr(_flows, "_BATCH", 100)
    for part in parts:
        dense.add(part)
    for part in parts[:6]:
        sparse.add(part)
    for part in parts[6:]:
        other.add(part)
    sparse.merge(other)
    assert sparse.most(125) == dense.most(125)
    assert sparse.complete

    monkeypatch.setattr(_flows, "_MOST", 20)
    sparse.add(np.full(200, 124))
    assert sparse.most(1)[0][0] == (4, 4, 4)
    assert len(sparse.most(125)) == 10
    assert not sparse.complete


def test_more_rows_than_planned_are_refused():
    pair = random_generations(rows=30, classes=3)
    tally = Tally(layout_of(pair, rows=20))
    with pytest.raises(InputError, match=naming("tally", "20 rows")):
        tally.add(pair, start=0)


def test_top_k_beyond_the_classes_is_refused():
    with pytest.raises(InputError, match=naming("`top_k`", "1", "3")):
        TallyLayout(rows=1, classes=3, scored=(True, True), truth=True, top_k=(4,))
