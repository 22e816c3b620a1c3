"""Slices that are families of classes, and what was lost between them."""

import numpy as np
import pytest

from dynsnap.comparison import Settings, compare, compare_blocks, default_top_k, to_json
from dynsnap.predictions import Predictions, write
from tests.comparison.made import Blocks, generations

CLASSES = 30


@pytest.fixture(scope="module")
def made():
    said = generations(rows=900, classes=CLASSES, count=2, seed=3)
    truth = said[0].truth
    slices = {"family": [f"f{label // 6}" for label in truth], "day": ["mon", "tue", "wed"] * 300}
    return generations(rows=900, classes=CLASSES, count=2, seed=3, slices=slices)


def test_a_slice_of_whole_classes_is_a_family_and_no_other(made):
    found = compare(*made, resamples=10)
    expected = {f"c{place}": f"f{place // 6}" for place in range(CLASSES)}
    assert found.families == {"family": expected}
    assert to_json(found)["families"] == {"family": expected}


def test_what_is_lost_between_families_is_what_was_lost(made):
    found = compare(*made, resamples=10)
    old, new = made
    lost = np.flatnonzero((old.labels == old.truth) & (new.labels != old.truth))
    cells = np.unique(np.stack([old.truth[lost] // 6, new.labels[lost] // 6]), axis=1)
    flows = found.pairs[0].lost_between["family"]
    assert {(flow.truth, flow.new) for flow in flows} == {(f"f{a}", f"f{b}") for a, b in cells.T}
    assert sum(flow.inputs for flow in flows) == len(lost) == found.pairs[0].transitions.lost
    counts = [flow.inputs for flow in flows]
    assert counts == sorted(counts, reverse=True)


def test_blocks_and_files_give_the_same_families(made, tmp_path):
    whole = compare(*made, names=["a", "b"], resamples=10)
    blocks = Blocks(*made, step=70, names=["a", "b"])
    (parts,) = compare_blocks(blocks, Settings(resamples=10))
    files = [tmp_path / f"{name}.parquet" for name in "ab"]
    for each, file in zip(made, files, strict=True):
        write(each, file)
    read = compare(*files, resamples=10)
    for other in (parts, read):
        assert other.families == whole.families
        assert other.pairs[0].lost_between == whole.pairs[0].lost_between


def test_a_column_with_a_value_for_each_class_or_with_gaps_is_no_family():
    truth = [0, 1, 2, 0, 1, 2]
    slices = {"name": list("abcabc"), "gaps": ["x", "x", "y", None, "x", "y"]}
    said = Predictions(ids=range(6), classes=list("abc"), labels=truth, truth=truth, slices=slices)
    assert compare(said, said, resamples=10).families == {}


def test_labels_whose_family_nobody_knows_are_left_out():
    slices = {"family": ["x", "x", "y", "y"] * 5}
    truth = [0, 1, 2, 2] * 5
    old = Predictions(ids=range(20), classes=list("abcd"), labels=truth, truth=truth, slices=slices)
    new = Predictions(ids=range(20), classes=list("abcd"), labels=[1, 3, 2, 2] * 5)
    pair = compare(old, new, resamples=10).pairs[0]
    assert pair.transitions.lost == 10
    assert [(one.truth, one.new, one.inputs) for one in pair.lost_between["family"]] == [
        ("x", "x", 5)
    ]


def test_the_family_of_a_class_without_inputs_may_be_told_from_elsewhere():
    slices = {"family": ["x", "x", "y", "y"] * 5}
    truth = [0, 1, 2, 2] * 5
    old = Predictions(ids=range(20), classes=list("abcd"), labels=truth, truth=truth, slices=slices)
    new = Predictions(ids=range(20), classes=list("abcd"), labels=[1, 3, 2, 2] * 5)
    # Of classes that do occur the inputs tell it, and other values or slices make no family.
    told = {"family": {"d": "y", "a": "y", "nobody": "x"}, "day": {"d": "monday"}}
    found = compare(old, new, resamples=10, families=told)
    assert found.families == {"family": {"a": "x", "b": "x", "c": "y", "d": "y"}}
    flows = found.pairs[0].lost_between["family"]
    assert {(one.truth, one.new): one.inputs for one in flows} == {("x", "x"): 5, ("x", "y"): 5}
    strange = compare(old, new, resamples=10, families={"family": {"d": "z"}})
    assert strange.families == {"family": {"a": "x", "b": "x", "c": "y"}}


def test_with_many_classes_every_way_to_lose_is_named():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 100, 3000)
    first = np.where(np.arange(3000) < 200, truth, (truth + rng.integers(1, 100, 3000)) % 100)
    said = [
        Predictions(ids=range(3000), classes=[f"c{i}" for i in range(100)], labels=x, truth=truth)
        for x in (first, (first + rng.integers(1, 100, 3000)) % 100)
    ]
    pair = compare(*said, resamples=10).pairs[0]
    lost = [flow for flow in pair.flows if flow.truth == flow.old]
    assert sum(flow.inputs for flow in lost) == pair.transitions.lost == 200


def test_the_top_five_are_measured_where_there_are_many_classes():
    assert default_top_k(20) == (2,)
    many = compare(*generations(rows=100, classes=21), resamples=10)
    assert "top_5_consistency" in many.pairs[0].metrics
    assert "top_5_accuracy" in many.generations[0].metrics
    few = compare(*generations(rows=100, classes=20), resamples=10)
    assert "top_5_consistency" not in few.pairs[0].metrics
    assert (
        "top_5_consistency"
        not in compare(*generations(rows=100, classes=21), top_k=(2,), resamples=10)
        .pairs[0]
        .metrics
    )
