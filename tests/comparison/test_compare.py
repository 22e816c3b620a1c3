import math
import re

import numpy as np
import pytest
from hypothesis import given, settings

import dynsnap
from dynsnap import metrics
from dynsnap.comparison import Settings, compare, compare_blocks, to_json
from dynsnap.errors import ComparisonError, FileError, InputError, PlanError
from dynsnap.predictions import Predictions, write
from tests.comparison import made
from tests.messages import naming
from tests.metrics.test_tally import by_the_definitions
from tests.strategies import generations


def values(estimates):
    return {name: estimate.value for name, estimate in estimates.items()}


@settings(max_examples=25)
@given(generations())
def test_every_part_of_the_inputs_has_the_metrics_of_those_inputs_alone(generations):
    found = compare(*generations, resamples=2, metrics=())
    old, new = generations[:2]
    top_k = (2,) if len(old.classes) >= 2 else ()
    parts = [(np.arange(len(old)), found.pairs[0].metrics)]
    for group in found.pairs[0].groups:
        if group.kind == "class":
            rows = old.truth == old.classes.index(group.name)
        elif group.kind == "slice":
            column = old.slices[group.column]
            rows = column.codes == column.values.index(group.name)
        else:
            rows = np.isin(old.truth, [old.classes.index(name) for name in group.classes])
        assert group.inputs == np.count_nonzero(rows)
        weight = np.count_nonzero(rows) if old.weights is None else old.weights[rows].sum()
        assert group.weight == pytest.approx(weight)
        parts.append((np.flatnonzero(rows), group.metrics))
    for rows, measured in parts:
        one, other = old.take(rows), new.take(rows)
        measured = values(measured)
        measured.pop("cohen_kappa", None)
        accuracy = measured.pop("accuracy", None)
        if old.weights is not None and not one.weights.any():
            assert all(math.isnan(value) for value in measured.values())
            continue
        expected = by_the_definitions(one, other, top_k)
        if accuracy is not None:
            now = metrics.accuracy(other.labels, truth=one.truth, weights=one.weights)
            assert accuracy == pytest.approx(now)
        assert measured.keys() == expected.keys()
        for name, value in expected.items():
            assert measured[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name


def test_pairs_come_in_the_order_given_and_averages_are_means_over_them():
    found = compare(*made.generations(count=4), names=list("abcd"), resamples=40)
    order = ["ab", "ac", "ad", "bc", "bd", "cd"]
    assert [pair.old + pair.new for pair in found.pairs] == order
    for name, estimate in found.averages.items():
        results = found.pairs if name in found.pairs[0].metrics else found.generations
        expected = np.mean([each.metrics[name].value for each in results])
        assert estimate.value == pytest.approx(expected)
        assert estimate.low <= estimate.value <= estimate.high
    table = found.matrix("consistency")
    assert table[0, 2] == table[2, 0] == found.pairs[1].metrics["consistency"].value
    assert (np.diag(table) == 1).all()


def test_metrics_come_in_the_order_of_the_catalogue():
    found = compare(*made.generations(classes=8), top_k=(5, 2, 3), resamples=10)
    pair = [name for name in found.pairs[0].metrics if not name.startswith("top_")]
    whole = {name: entry for name, entry in metrics.catalogue.items() if entry.of != "class"}
    wanted = [name for name, entry in whole.items() if entry.scope == "pair"]
    assert pair == [name for name in wanted if not name.startswith("top_")]
    tops = [name for name in found.pairs[0].metrics if name.startswith("top_")]
    assert tops == ["top_2_consistency", "top_3_consistency", "top_5_consistency"]
    alone = {name for name, entry in whole.items() if entry.scope == "generation"}
    assert alone <= set(found.generations[0].metrics)
    many = [name for name, entry in metrics.catalogue.items() if entry.scope == "many"]
    assert list(found.agreement) == many


def test_blocks_give_what_the_whole_gives_to_the_last_bit():
    parts = made.generations(rows=3000, count=3, slices={"half": np.arange(3000) % 2})
    names = ["a", "b", "c"]
    whole = compare(*parts, names=names, resamples=50)
    blocks = made.Blocks(*parts, step=700, names=names)
    (parted,) = compare_blocks(blocks, Settings(resamples=50))
    assert to_json(parted) == to_json(whole)


def test_counts_are_exact():
    old, new = made.generations(rows=5000)
    pair = compare(old, new, resamples=10).pairs[0]
    before, now = old.labels == old.truth, new.labels == old.truth
    assert pair.transitions.lost == np.count_nonzero(before & ~now)
    assert pair.metrics["lost"].value == np.count_nonzero(before & ~now) / 5000
    assert pair.mcnemar == metrics.mcnemar(old.labels, new.labels, truth=old.truth)
    by_class = [group for group in pair.groups if group.kind == "class"]
    assert sum(group.inputs for group in by_class) == 5000
    rows = old.truth == 2
    assert by_class[2].changed == metrics.mcnemar(
        old.labels[rows], new.labels[rows], truth=old.truth[rows]
    )


def test_flows_name_the_changed_labels_most_frequent_first():
    old, new = made.generations(rows=3000, classes=3)
    flows = compare(old, new, resamples=10).pairs[0].flows
    first = flows[0]
    rows = (
        (old.names_of(old.truth) == first.truth)
        & (old.names_of(old.labels) == first.old)
        & (new.names_of(new.labels) == first.new)
    )
    assert first.inputs == np.count_nonzero(rows) == max(flow.inputs for flow in flows)
    assert sum(flow.inputs for flow in flows) == np.count_nonzero(old.labels != new.labels)


def test_majority_classes_cover_the_first_90_percent():
    truth = np.repeat([0, 1, 2, 3], [60, 28, 8, 4])
    pair = [
        Predictions(ids=np.arange(100), classes=list("abcd"), labels=labels, truth=truth)
        for labels in (truth, np.roll(truth, 1))
    ]
    groups = compare(*pair, resamples=10).pairs[0].groups
    found = {group.name: group for group in groups if group.kind == "frequency"}
    # 60 + 28 = 88 inputs are not yet 90, so the third class is needed.
    assert found["majority"].classes == ("a", "b", "c")
    assert found["minority"].classes == ("d",)
    assert (found["majority"].inputs, found["minority"].inputs) == (96, 4)
    only = compare(*pair, minority_share=0.5, resamples=10).pairs[0].groups
    assert [group.classes for group in only if group.name == "majority"] == [("a",)]


def test_one_class_has_no_minority():
    one = Predictions(ids=[1, 2], classes=["a"], labels=[0, 0], truth=[0, 0])
    groups = compare(one, one, resamples=10).pairs[0].groups
    assert {group.kind for group in groups} == {"class"}


def test_whole_weights_count_like_repeated_inputs():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 4, 60)
    old, new = made.generations(rows=60, weights=times.astype(float))
    repeated = [
        Predictions(
            ids=np.arange(times.sum()),
            classes=each.classes,
            scores=np.repeat(each.scores, times, axis=0),
            truth=np.repeat(each.truth, times),
        )
        for each in (old, new)
    ]
    weighted, plain = compare(old, new, resamples=10), compare(*repeated, resamples=10)
    for name, estimate in plain.pairs[0].metrics.items():
        assert weighted.pairs[0].metrics[name].value == pytest.approx(estimate.value, abs=1e-12)
    assert weighted.weighted
    assert weighted.pairs[0].transitions != plain.pairs[0].transitions
    assert sum(vars_of(weighted.pairs[0].transitions)) == 60
    assert any("weighted" in note for note in weighted.notes)


def vars_of(counts):
    return [counts.kept, counts.gained, counts.lost, counts.never]


def test_what_needs_truth_or_scores_is_left_out_and_said_so():
    bare = compare(*made.generations(truth=False, scores=False), resamples=10)
    assert list(bare.pairs[0].metrics) == ["consistency", "churn", "cohen_kappa"]
    assert bare.generations[0].metrics == {}
    assert bare.pairs[0].transitions is None
    assert bare.pairs[0].mcnemar is None
    assert not bare.has_truth
    assert not bare.has_scores
    assert bare.pairs[0].groups == ()
    assert bare.pairs[0].flows[0].truth is None
    assert any(re.search(naming("true classes", "lost"), note) for note in bare.notes)
    assert any(re.search(naming("No generation", "scores"), note) for note in bare.notes)

    scored, bare = made.generations(count=1) + made.generations(count=1, scores=False)
    mixed = compare(scored, bare, names=["full", "bare"], resamples=10)
    assert "pearson" not in mixed.pairs[0].metrics
    assert "correctness" in mixed.generations[0].metrics
    assert "correctness" not in mixed.generations[1].metrics
    assert "correctness" not in mixed.averages
    assert not mixed.has_scores
    assert any(re.search(naming("^bare", "scores"), note) for note in mixed.notes)
    expected = metrics.correctness(scored.scores, truth=scored.truth)
    assert mixed.generations[0].metrics["correctness"].value == pytest.approx(expected)


def test_undefined_metrics_are_nan_without_an_interval_and_named_in_the_notes():
    one = Predictions(ids=[1, 2, 3], classes=["a", "b"], labels=[0, 1, 0], truth=[0, 1, 0])
    found = compare(one, one, resamples=10)
    ratio = found.pairs[0].metrics["win_loss_ratio"]
    assert math.isnan(ratio.value)
    assert (ratio.low, ratio.high) == (None, None)
    assert any("win_loss_ratio is undefined (0/0)" in note for note in found.notes)


def test_bare_labels_are_answered_with_what_to_make_of_them():
    labels = np.array([0, 1])
    with pytest.raises(
        InputError, match=naming("generation", "ndarray", r"`Predictions\.from_arrays\(")
    ):
        compare(labels, labels)


def test_a_model_that_is_compared_with_itself_is_noticed():
    old, new = made.generations(rows=20)
    same = naming("score", "same", "monday → again")
    found = compare(old, old, new, names=["monday", "again", "new"], resamples=10)
    assert sum(bool(re.search(same, note)) for note in found.notes) == 1
    assert not any("same" in note for note in compare(old, new, resamples=10).notes)


def test_partial_overlap_is_compared_on_the_shared_ids_and_counted():
    old, new = made.generations(rows=50)
    found = compare(old, new.take(np.arange(10, 50)), names=["old", "new"], resamples=10)
    assert found.inputs == 40
    assert found.alignment.missing == (0, 10)
    assert re.findall(r"\d+", found.notes[0])[:2] == ["40", "50"]  # shared ids, of all


def test_the_noise_floor_is_the_pair_of_the_first_generation_and_its_twin():
    old, new, newer, twin = made.generations(count=4)
    found = compare(old, new, newer, noise_floor=twin, resamples=30)
    expected = compare(old, twin, resamples=30).pairs[0].metrics
    assert len(found.pairs) == 3
    assert len(found.generations) == 3
    assert all(pair.noise_floor == expected for pair in found.pairs)
    assert found.agreement == compare(old, new, newer, resamples=30).agreement


def test_top_k_beyond_the_classes_is_left_out_and_said_so():
    found = compare(*made.generations(classes=3), top_k=(2, 9), resamples=10)
    assert "top_9_consistency" not in found.pairs[0].metrics
    assert any(re.search(naming("k = 9", "3"), note) for note in found.notes)


def test_files_are_read_and_called_by_their_names(tmp_path):
    paths = [tmp_path / name for name in ("monday.parquet", "tuesday.csv")]
    for each, path in zip(made.generations(), paths, strict=True):
        write(each, path)
    found = dynsnap.compare(str(paths[0]), paths[1], resamples=10)
    assert [each.name for each in found.generations] == ["monday", "tuesday"]
    with pytest.raises(FileError, match=naming(r"nowhere\.csv", "exist")):
        compare(paths[0], tmp_path / "nowhere.csv")


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = [tmp_path / day / "p.npz" for day in ("mon", "tue")]
    for each, path in zip(made.generations(), paths, strict=True):
        path.parent.mkdir()
        write(each, path)
    found = compare(*paths, resamples=10)
    assert [each.name for each in found.generations] == ["mon/p", "tue/p"]
    again = compare(paths[0], paths[0], resamples=10)
    assert len({each.name for each in again.generations}) == 2


def test_ten_thousand_classes_work():
    rng = np.random.default_rng(0)
    scores = rng.random((300, 10_000), np.float32)
    scores /= scores.sum(axis=1, keepdims=True)
    truth = rng.integers(0, 10_000, 300)
    old, new = (
        Predictions(
            ids=np.arange(300),
            classes=[f"c{place}" for place in range(10_000)],
            scores=each,
            truth=truth,
        )
        for each in (scores, np.roll(scores, 1, axis=1))
    )
    pair = compare(old, new, resamples=20).pairs[0]
    assert pair.metrics["jensen_shannon"].value == pytest.approx(
        metrics.jensen_shannon(old.scores, new.scores), abs=1e-12
    )
    assert len([group for group in pair.groups if group.kind == "class"]) == len(set(truth))


def test_wrong_settings_are_refused_by_name():
    old, new = made.generations(rows=10)
    for wrong, message in [
        ({"confidence": 1.0}, naming("`confidence`", "0 and 1", "got 1")),
        ({"resamples": 0}, naming("`resamples`", "1 and 100,000", r"got 0\.")),
        ({"resamples": 3_000_000}, naming("`resamples`", "1 and 100,000", "got 3,000,000")),
        ({"minority_share": 0}, naming("`minority_share`", "0 and 1", "got 0")),
        ({"names": ["a", "a"]}, r"`names` must be different"),
        ({"names": ["a"]}, naming("2 generations", "1 names")),
        ({"top_k": (0,)}, naming("`top_k`", "at least 1", "got 0")),
        ({"rename": {"nothing": "c1"}}, r"nothing"),
    ]:
        with pytest.raises(PlanError, match=message):
            compare(old, new, **wrong)
    with pytest.raises(PlanError, match=naming("two generations", "got 1")):
        compare(old)


def test_contradictions_and_no_shared_ids_are_refused():
    old, _ = made.generations(rows=10)
    other = Predictions(ids=["x"], classes=["c0"], labels=[0])
    with pytest.raises(
        ComparisonError,
        match=naming('"generation 1", "generation 2"', '"i0", "i1", "i2"', '"x"', "the same ids"),
    ):
        compare(old, other)
    contrary = Predictions(
        ids=old.ids.tolist(), classes=old.classes, labels=old.labels, truth=(old.truth + 1) % 5
    )
    with pytest.raises(ComparisonError, match="different truths"):
        compare(old, contrary)


def test_blocks_that_end_early_are_refused():
    blocks = made.Blocks(*made.generations(rows=50), step=20)
    blocks.step = 60
    assert [each.inputs for each in compare_blocks(blocks, Settings(resamples=5))] == [50]

    class Short(made.Blocks):
        def __iter__(self):
            yield next(super().__iter__())

    with pytest.raises(ComparisonError, match=naming("50 inputs", "20")):
        compare_blocks(Short(*made.generations(rows=50), step=20))

    class Long(made.Blocks):
        def __iter__(self):
            yield from (*super().__iter__(), *super().__iter__())

    with pytest.raises(InputError, match=naming("tally", "50 rows")):
        compare_blocks(Long(*made.generations(rows=50), step=20))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("confidences", []),
        ("confidences", [0.9, 1.0]),
        ("resamples", 0),
        ("top_k", [2, 0]),
        ("minority_share", 0.0),
        ("minority_share", 1.5),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_before_anything_is_counted(setting, value):
    with pytest.raises(PlanError, match=setting.removesuffix("s")):
        Settings(**{setting: value})
