"""Inputs without a true class count for metrics of labels and scores, and for no others."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynsnap
from dynsnap.comparison import flips, to_json
from dynsnap.metrics import metric
from dynsnap.predictions import Predictions, write
from dynsnap.predictions._predictions import changed

CLASSES = ("a", "b", "c", "d")
FAST = {"resamples": 60, "confidence": 0.9}


def generations(rng, rows, *, count=2, scored=False, weighted=False, gaps=0.4):
    """Generations of random predictions with slices, some truth missing."""
    truth = rng.integers(0, len(CLASSES), rows)
    known = rng.random(rows) >= gaps
    known[:1] = True
    names = np.where(known, np.array(CLASSES, object)[truth], None)
    slices = {"side": rng.choice(["left", "right", "up"], rows).tolist()}
    weights = rng.integers(1, 5, rows).astype(float) if weighted else None
    made = []
    for _ in range(count):
        said = np.where(rng.random(rows) < 0.7, truth, rng.integers(0, len(CLASSES), rows))
        scores = None
        if scored:
            scores = rng.dirichlet(np.ones(len(CLASSES)), rows)
            scores[np.arange(rows), said] += 1
            scores /= scores.sum(axis=1, keepdims=True)
        made.append(
            Predictions(
                ids=np.arange(rows) * 7,
                classes=CLASSES,
                labels=said,
                scores=scores,
                truth=list(names),
                slices=slices,
                weights=weights,
                positions=True,
            )
        )
    return made


def said(ids, labels, truth=None):
    return Predictions(ids=ids, classes=["a", "b"], labels=list(labels), truth=truth)


def needs_truth(name):
    return "truth" in metric(name).needs


def estimates(found):
    """Every estimate of a comparison by what it is about."""
    for place, pair in enumerate(found.pairs):
        for name, one in pair.metrics.items():
            yield ("pair", place, name), one
        for group in pair.groups:
            for name, one in group.metrics.items():
                yield ("group", place, group.key, name), one
    for name, one in found.agreement.items():
        yield ("all", name), one
    for each in found.generations:
        for name, one in each.metrics.items():
            yield ("generation", each.name, name), one


def near(one, other):
    """Equal, but for the last digits that another order of sums gives."""
    return one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 50),
    count=st.integers(2, 3),
    scored=st.booleans(),
    weighted=st.booleans(),
    gaps=st.sampled_from([0.1, 0.5, 0.95]),
)
def test_each_metric_is_measured_where_it_can_be(seed, rows, count, scored, weighted, gaps):
    rng = np.random.default_rng(seed)
    made = generations(rng, rows, count=count, scored=scored, weighted=weighted, gaps=gaps)
    holds(made)


@pytest.mark.parametrize("scored", [False, True])
def test_the_same_holds_where_rows_share_blocks(scored):
    made = generations(np.random.default_rng(1), 3_000, scored=scored, weighted=True)
    holds(made)


def holds(made):
    known = made[0].truth >= 0
    found = dynsnap.compare(*made, **FAST)
    assert (found.inputs, found.unlabelled) == (len(known), int((~known).sum()))
    without = dynsnap.compare(*(changed(each, truth=None) for each in made), **FAST)
    labelled = dynsnap.compare(*(each.take(known) for each in made), **FAST)
    blind, seen = dict(estimates(without)), dict(estimates(labelled))
    for key, one in estimates(found):
        if not needs_truth(key[-1]):
            if key in blind:  # true classes are groups of labelled inputs alone
                for end in ("value", "low", "high"):
                    mine, other = getattr(one, end), getattr(blind[key], end)
                    assert mine is other or near(mine, other)
            continue
        if key not in seen:  # a slice without a labelled input
            assert math.isnan(one.value)
            continue
        assert near(one.value, seen[key].value)
        if not found.weighted and metric(key[-1]).interval == "share" and len(made) == 2:
            assert one.low is seen[key].low or near(one.low, seen[key].low)
            assert one.high is seen[key].high or near(one.high, seen[key].high)
    moved = sum(flow.inputs for flow in found.pairs[0].flows)
    assert moved == (made[0].labels != made[1].labels).sum()
    for pair, expected in zip(found.pairs, labelled.pairs, strict=True):
        assert pair.transitions == expected.transitions
        assert pair.mcnemar == expected.mcnemar


@pytest.mark.parametrize("rows", [40, 2_500])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scored", [False, True])
def test_files_give_what_memory_gives(rows, weighted, scored, tmp_path):
    made = generations(np.random.default_rng(rows), rows, scored=scored, weighted=weighted)
    # The newer one knows the truth of some inputs that the older one lacks, and its order differs.
    fewer = np.where(np.arange(rows) % 3 == 0, -1, made[0].truth)
    made[0] = changed(made[0], truth=fewer)
    made[1] = made[1].take(np.random.default_rng(0).permutation(rows))
    for each, name in zip(made, ("old", "new"), strict=True):
        write(each, tmp_path / f"{name}.parquet")
    names = {"names": ["old", "new"]}
    memory = to_json(dynsnap.compare(*made, **names, **FAST))
    files = to_json(
        dynsnap.compare(tmp_path / "old.parquet", tmp_path / "new.parquet", **names, **FAST)
    )
    assert 0 < memory["unlabelled"] < rows
    assert json.dumps(files) == json.dumps(memory)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "npz"])
def test_a_missing_truth_is_written_and_read(ending, tmp_path):
    made = generations(np.random.default_rng(3), 30)[0]
    write(made, tmp_path / f"file.{ending}")
    found = dynsnap.read(tmp_path / f"file.{ending}")
    assert found.names_of(np.maximum(found.truth, 0))[found.truth >= 0].tolist() == (
        made.names_of(np.maximum(made.truth, 0))[made.truth >= 0].tolist()
    )
    assert (found.truth < 0).tolist() == (made.truth < 0).tolist()


def test_truth_is_filled_from_whichever_generation_has_it():
    old = Predictions(
        ids=[1, 2, 3], classes=["a", "b"], labels=list("aab"), truth=["a", None, None]
    )
    new = Predictions(
        ids=[3, 2, 1], classes=["a", "b"], labels=list("bba"), truth=["b", None, None]
    )
    found = dynsnap.compare(old, new)
    assert found.unlabelled == 1
    assert found.pairs[0].transitions.kept == 2
    other = Predictions(
        ids=[1, 2, 3], classes=["a", "b"], labels=list("aab"), truth=["b", None, None]
    )
    with pytest.raises(dynsnap.errors.ComparisonError):
        dynsnap.compare(old, other)


@pytest.mark.filterwarnings("error")
def test_where_no_labelled_input_has_weight_what_needs_the_truth_is_undefined():
    rng = np.random.default_rng(3)
    old, new = (
        Predictions(
            ids=np.arange(40),
            classes=["a", "b"],
            scores=rng.dirichlet([1, 1], 40),
            truth=[None, "a"] * 20,
            weights=[1.0, 0.0] * 20,
        )
        for _ in range(2)
    )
    found = dynsnap.compare(old, new, **FAST).pairs[0].metrics
    assert math.isnan(found["lost"].value) and 0 < found["consistency"].value < 1


def test_where_no_shared_input_is_labelled_there_is_no_truth():
    old = Predictions(
        ids=[1, 2, 3], classes=["a", "b"], labels=list("aab"), truth=["a", None, None]
    )
    new = said([2, 3, 4], "abb")
    found = dynsnap.compare(old, new)
    assert (found.has_truth, found.unlabelled) == (False, 0)
    assert "lost" not in found.pairs[0].metrics


def test_where_every_shared_input_is_labelled_nothing_is_said_of_gaps():
    old = said([1, 2, 3], "aab", truth=["a", "a", None])
    new = said([1, 2], "ab")
    found = dynsnap.compare(old, new)
    assert (found.labelled, found.unlabelled) == (None, 0)
    assert found.pairs[0].metrics["lost"].value == 0.5


def test_flips_lists_changes_of_unlabelled_inputs():
    old = Predictions(
        ids=[1, 2, 3], classes=["a", "b"], labels=list("aab"), truth=["a", None, None]
    )
    new = said([1, 2, 3], "bbb")
    rows = flips(old, new).select(["id", "kind", "truth"]).to_pylist()
    assert rows == [
        {"id": 1, "kind": "lost", "truth": "a"},
        {"id": 2, "kind": "changed", "truth": None},
    ]
