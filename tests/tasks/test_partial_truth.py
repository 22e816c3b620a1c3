"""Answers whose truth is not known (yet) count for consistency, and for nothing that needs it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import dynsnap
from dynsnap.comparison import flips
from dynsnap.errors import ComparisonError, FileError
from dynsnap.gate import Rule, check

ROWS = 60
KNOWN = np.arange(ROWS) % 3 > 0
FAST = {"resamples": 50}
TASKS = {
    "regression": {"tolerance": 0.5},
    "multilabel": {},
    "ranking": {"k": 2},
}


def answers(task):
    """The truth and the answers of two generations, as Python values."""
    rng = np.random.default_rng(7)
    if task == "regression":
        truth = rng.normal(10, 3, ROWS)
        return truth.tolist(), *((truth + rng.normal(0, 0.5, ROWS)).tolist() for _ in range(2))
    items = list("abcd")
    truth = [sorted(rng.choice(items, rng.integers(1, 3), replace=False)) for _ in range(ROWS)]
    truth[1] = []  # known to have no label at all, which is another thing than not known
    made = [
        [
            sorted({*each} ^ {str(rng.choice(items))}) if rng.random() < 0.4 else list(each)
            for each in truth
        ]
        for _ in range(2)
    ]
    return truth, *made


def tables(task, *, weighted=False):
    truth, before, now = answers(task)
    rng = np.random.default_rng(1)
    column = "ranking" if task == "ranking" else "label"
    old = {
        "id": list(range(ROWS)),
        "truth": [each if known else None for each, known in zip(truth, KNOWN, strict=True)],
        column: before,
        "side": rng.choice(["left", "right"], ROWS).tolist(),
    }
    if weighted:
        old["weight"] = rng.uniform(0.5, 2, ROWS).tolist()
    return old, {"id": list(range(ROWS)), column: now}


def outcome(task):
    """Which inputs agree, and are right before and now."""
    truth, before, now = answers(task)
    if task == "regression":
        true, old, new = map(np.array, (truth, before, now))
        return abs(old - new) <= 0.5, abs(old - true) <= 0.5, abs(new - true) <= 0.5
    cut = 2 if task == "ranking" else None
    old, new = ([frozenset(each[:cut]) for each in some] for some in (before, now))
    agree = [one == other for one, other in zip(old, new, strict=True)]
    right = [
        [
            bool(each & {*true}) if task == "ranking" else each == {*true}
            for each, true in zip(some, truth, strict=True)
        ]
        for some in (old, new)
    ]
    return tuple(map(np.array, (agree, *right)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_truth_metrics_are_those_of_the_labelled_inputs(task, weighted):
    old, new = tables(task, weighted=weighted)
    found = dynsnap.compare(old, new, task=task, **TASKS[task], **FAST)
    agree, before, now = outcome(task)
    weights = np.array(old.get("weight", np.ones(ROWS)))
    side = np.array(old["side"])
    pair = found.pairs[0]
    parts = [(pair.metrics, np.ones(ROWS, bool))]
    parts += [(each.metrics, side == each.name) for each in pair.groups if each.kind == "slice"]
    assert len(parts) == 3
    for metrics, rows in parts:
        labelled = rows & KNOWN

        def mean(values, chosen):
            return np.average(values[chosen], weights=weights[chosen])

        assert metrics["consistency"].value == pytest.approx(mean(agree, rows))
        assert metrics["churn"].value == pytest.approx(mean(~agree, rows))
        assert metrics["lost"].value == pytest.approx(mean(before & ~now, labelled))
        assert metrics["gained"].value == pytest.approx(mean(~before & now, labelled))
        assert metrics["correct_consistency"].value == pytest.approx(mean(before & now, labelled))
        low, high = metrics["consistency"].low, metrics["consistency"].high
        assert low <= metrics["consistency"].value <= high
    assert found.generations[1].metrics["accuracy"].value == pytest.approx(
        np.average(now[KNOWN], weights=weights[KNOWN])
    )
    assert (found.inputs, found.unlabelled) == (ROWS, (~KNOWN).sum())
    assert found.labelled.weight == pytest.approx(weights[KNOWN].sum())
    assert pair.transitions.lost == (before & ~now)[KNOWN].sum()


@pytest.mark.parametrize("task", TASKS)
def test_files_say_the_same_as_frames(task, tmp_path):
    old, new = tables(task)
    told = dynsnap.compare(old, new, task=task, **TASKS[task], **FAST)
    for name, table in (("old", old), ("new", new)):
        pa.parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        plain = {
            key: [
                json.dumps(each) if isinstance(each, list) else each for each in values
            ]  # "[]" is the empty set, an empty cell is not known
            for key, values in table.items()
        }
        pa.csv.write_csv(pa.table(plain), tmp_path / f"{name}.csv")
    for ending in ("parquet", "csv"):
        files = [tmp_path / f"{name}.{ending}" for name in ("old", "new")]
        found = dynsnap.compare(*files, task=task, **TASKS[task], **FAST)
        assert found.unlabelled == told.unlabelled
        for name, each in told.pairs[0].metrics.items():
            assert found.pairs[0].metrics[name].value == pytest.approx(each.value, nan_ok=True)


@pytest.mark.parametrize("task", TASKS)
def test_unlabelled_inputs_that_differ_are_flips_of_their_own_kind(task):
    old, new = (dynsnap.read(each, task=task, **TASKS[task]) for each in tables(task))
    agree, before, now = outcome(task)
    listed = {row["id"]: row for row in flips(old, new).to_pylist()}
    expected = {
        **dict.fromkeys(np.flatnonzero(KNOWN & before & ~now).tolist(), "lost"),
        **dict.fromkeys(np.flatnonzero(KNOWN & ~before & now).tolist(), "gained"),
        **dict.fromkeys(np.flatnonzero(~KNOWN & ~agree).tolist(), "changed"),
    }
    assert {place: row["kind"] for place, row in listed.items()} == expected
    assert {place for place, row in listed.items() if row["truth"] is None} == {
        place for place, kind in expected.items() if kind == "changed"
    }


@pytest.mark.parametrize("task", TASKS)
def test_another_file_may_know_the_missing_truth(task):
    old, new = tables(task)
    truth, *_ = answers(task)
    new["truth"] = [None if known else each for each, known in zip(truth, KNOWN, strict=True)]
    found = dynsnap.compare(old, new, task=task, **TASKS[task], **FAST)
    _, before, now = outcome(task)
    assert found.unlabelled == 0
    assert found.pairs[0].metrics["lost"].value == pytest.approx((before & ~now).mean())


@pytest.mark.parametrize("task", TASKS)
def test_a_gate_wants_the_truth_or_a_share(task):
    old, new = tables(task)
    rule = Rule(metric="lost", at_most=0.5, min_count=1, allow_odd=True)
    with pytest.raises(ComparisonError, match="--allow-unlabelled"):
        check(old, new, rule, task=task, **TASKS[task])
    verdict = check(old, new, rule, task=task, **TASKS[task], allow_unlabelled=0.4)
    assert verdict.outcomes[0].inputs == KNOWN.sum()
    with pytest.raises(ComparisonError, match=str(ROWS)):
        few = Rule(metric="lost", at_most=0.5, min_count=ROWS, allow_odd=True)
        check(old, new, few, task=task, **TASKS[task], allow_unlabelled=0.4)


def test_labels_of_chosen_inputs_only_are_refused():
    rng = np.random.default_rng(3)
    old = rng.normal(size=2000)
    new = old + np.where(np.arange(2000) < 400, 5.0, 0.1)  # these differ, and only they have truth
    truth = np.where(np.arange(2000) < 400, old, np.nan)
    tables = (
        {"id": np.arange(2000), "truth": truth, "label": old},
        {"id": np.arange(2000), "label": new},
    )
    rule = Rule(metric="gained", at_least=0.0, allow_odd=True)
    with pytest.raises(ComparisonError, match="random sample"):
        check(*tables, rule, task="regression", tolerance=0.5, allow_unlabelled=0.9)


def test_a_number_that_is_none_is_no_gap(tmp_path):
    file = tmp_path / "old.csv"
    file.write_text("id,truth,label\n1,1.5,1\n2,nan,2\n")
    with pytest.raises(FileError, match="finite"):
        dynsnap.read(file, task="regression", tolerance=1)
