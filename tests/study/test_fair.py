"""Methods held against fair references: what is read, what is chosen, and what is computed."""

import dataclasses
import functools
import math
import shutil
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import predictions
from dynsnap.comparison import paired_difference
from dynsnap.ensemble import method
from dynsnap.errors import DynSnapError, InputError
from dynsnap.predictions import Predictions, study_labels
from dynsnap.study import (
    LARGE_LOSS,
    DataPlan,
    MethodLabels,
    Row,
    StudyPlan,
    fair_references,
    frontier,
    held_against,
    held_in,
    read_study,
    read_table,
    starts_fresh,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
STUDY = RESULTS / "digits-trees"


def write_run(folder, labels, *, truth, late=None):
    """A run folder with predictions: labels by (method, generation, replicate)."""
    for kind, (said, right) in {"": (labels, truth), "late": late or ({}, ())}.items():
        (folder / "predictions" / kind).mkdir(parents=True, exist_ok=True)
        for (name, generation, replicate), own in said.items():
            ids = [f"{kind}{n}" for n in range(len(right))]
            made = Predictions.from_arrays(ids, None, ["a", "b", "c"], right, labels=own)
            file = f"{name}-average-g{generation}-r{replicate}.parquet"
            predictions.write(made, folder / "predictions" / kind / file)


@pytest.fixture
def run(tmp_path):
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    truth = classes[rng.integers(0, 3, 40)]

    def said(share, right):
        return np.where(
            rng.random(len(right)) < share, right, classes[rng.integers(0, 3, len(right))]
        )

    names = {"singlebase": 2, "rolling": 1}
    keys = [(n, g, r) for n, many in names.items() for g in (1, 2, 3) for r in range(many)]
    late = classes[np.full(12, 2)]
    write_run(
        tmp_path / "run",
        {key: said(0.7, truth) for key in keys},
        truth=truth,
        late=({key: said(0.5, late) for key in keys}, late),
    )
    return tmp_path / "run"


def test_a_run_folder_and_what_is_published_of_it_give_the_same_labels(run, tmp_path):
    (tmp_path / "out").mkdir()
    predictions.write_published(run, tmp_path / "out", scored=lambda key: False)
    for kind in ("test", "late"):
        mine, published = (study_labels(one, kind=kind) for one in (run, tmp_path / "out"))
        assert list(mine.labels) == list(published.labels) and len(mine.labels) == 9
        assert mine.ids.tolist() == published.ids.tolist()
        for key, own in mine.labels.items():
            right = predictions.read(f"{run}::{key}")
            assert ((own == mine.truth) == (right.labels == right.truth)).all()
            other = published.labels[key]
            assert ((own == mine.truth) == (other == published.truth)).all()
    assert study_labels(run, combination="majority") is None
    assert MethodLabels.read(tmp_path) is None


def test_inputs_of_other_studies_are_refused(run, tmp_path):
    file = run / "predictions/rolling-average-g1-r0.parquet"
    other = Predictions.from_arrays(["x", "y"], None, ["a", "b"], ["a", "a"], labels=["a", "b"])
    predictions.write(other, file)
    with pytest.raises(DynSnapError) as error:
        study_labels(run)
    assert "rolling" in str(error.value)
    file.unlink()
    mine, other = MethodLabels.read(run), MethodLabels.read(STUDY)
    with pytest.raises(InputError):
        mine.difference("singlebase", "singlebase", "accuracy_2", elsewhere=other)


def test_damaged_labels_are_one_message(tmp_path):
    shutil.copy(STUDY / "labels.parquet", tmp_path)
    whole = (tmp_path / "labels.parquet").read_bytes()
    (tmp_path / "labels.parquet").write_bytes(whole[:3000] + b"\0" * 60 + whole[3060:])
    with pytest.raises(DynSnapError):
        MethodLabels.read(tmp_path)


@functools.cache
def published():
    """The labels with pyarrow alone, by kind of inputs and column."""
    table = pq.read_table(STUDY / "labels.parquet")
    inputs = np.array(table.column("inputs").to_pylist())
    return {
        kind: {
            name: np.array(table.column(name).to_pylist())[inputs == kind]
            for name in table.column_names
            if name == "truth" or name.startswith(("single/", "singlebase/"))
        }
        for kind in ("test", "late")
    }


def plain(name, generation, replicate, *, inputs="test"):
    """Labels and truth."""
    found = published()[inputs]
    return found[f"{name}/average/g{generation}/r{replicate}"], found["truth"]


def test_the_metrics_of_published_labels_are_those_of_plain_numpy():
    labels = MethodLabels.read(STUDY)
    assert labels.generations == 3 and len(labels.replicates("single")) >= 5
    for replicate in (0, 4):
        said = [plain("single", g, replicate)[0] for g in (1, 2, 3)]
        truth = plain("single", 1, replicate)[1]
        right = [one == truth for one in said]
        late, true = plain("single", 3, replicate, inputs="late")
        expected = {
            "accuracy": np.mean(right),
            "accuracy_3": right[2].mean(),
            "consistency": np.mean([a == b for a, b in combinations(said, 2)]),
            "correct_consistency": np.mean([a & b for a, b in combinations(right, 2)]),
            "lost": np.mean([a & ~b for a, b in pairwise(right)]),
            "gained": np.mean([~a & b for a, b in pairwise(right)]),
            "late_accuracy": (late == true).mean(),
        }
        for metric, value in expected.items():
            assert labels.values("single", metric)[replicate].mean() == pytest.approx(value)
        # Never retraining keeps the first generation, on all inputs.
        kept = labels.values("never-retrain-single", "accuracy_3")[replicate]
        assert kept.tolist() == right[0].tolist()
        assert labels.values("never-retrain-single", "lost")[replicate].sum() == 0
    with pytest.raises(InputError):
        labels.values("single", "sharpness")


def test_a_method_with_fewer_replicates_is_compared_over_those_that_both_have(run):
    labels = MethodLabels.read(run)
    found = labels.difference("singlebase", "rolling", "accuracy_2")
    assert found.replicates == 1
    mine, other = (labels.values(name, "accuracy_2") for name in ("singlebase", "rolling"))
    assert found == paired_difference(mine[0], other[0])
    assert labels.difference("singlebase", "unknown", "accuracy_2") is None
    (run / "predictions/singlebase-average-g3-r1.parquet").unlink()
    again = MethodLabels.read(run)
    assert again.replicates("singlebase") == (0,)  # replicates without all generations are left out


def plan_of(names, **settings):
    """A study of these methods."""
    return StudyPlan(
        name="some",
        data=settings.pop("data", DataPlan()),
        model={},
        training={},
        epochs=20,
        methods=tuple(method(name, epochs=20) for name in names),
        baseline=method("singlebase", epochs=20),
        keep="weights",
        **settings,
    )


def table(**methods):
    return [
        Row(
            method=name.replace("_", "-"),
            combination="average",
            metric=metric,
            value=value,
            cost=cost,
        )
        for name, (cost, later) in methods.items()
        for metric, value in {"accuracy": later, "accuracy_1": 0.8, "accuracy_2": later}.items()
    ]


def test_the_strongest_fresh_method_costs_no_more_in_all():
    known = {
        "singlebase": (1, 0.8),
        "snapshot": (2, 0.85),
        "dynsnap-cyc": (3, 0.88),
        "extbagging": (7, 0.95),
        "rolling": (2.0, 0.9),
    }
    rows = table(**known, **{"never-retrain": (0.5, 0.8)})
    found = fair_references(rows, plan_of(known))
    assert found["rolling"] == {
        "fresh": "dynsnap-cyc",
        "strongest": "snapshot",  # bagging is stronger, and costs more; rolling is not fresh
        "first": "never-retrain-rolling",
    }
    assert "strongest" not in found["singlebase"] and "fresh" not in found["dynsnap-cyc"]
    assert found["extbagging"]["strongest"] == "dynsnap-cyc"
    # What costs less than every fresh method is held against the cheapest.
    assert found["never-retrain"] == {"fresh": "dynsnap-cyc", "strongest": "singlebase"}


def test_methods_that_depend_on_what_is_deployed_are_not_fresh():
    plan = read_study(RESULTS / "digits-single/study.toml", stored=True)
    fresh = {one.name for one in plan.methods if starts_fresh(one)}
    assert fresh == {"singlebase", "single-long", "single-ema", "single-smooth", "single-codistill"}


def test_methods_of_published_results_are_held_against_their_references():
    rows = read_table(STUDY / "table.csv")
    plan = read_study(STUDY / "study.toml", stored=True)
    found = held_in(STUDY, rows, plan)
    labels = MethodLabels.read(STUDY)
    assert found == held_against(rows, plan, labels)
    against = {one.role: one for one in found["single"]}
    assert set(against) == {"strongest", "first"}  # there is no DynSnap-cyc in this study
    assert against["strongest"].reference == "singlebase"
    assert against["strongest"].cost == pytest.approx(3)
    assert against["first"].cost == pytest.approx(1)
    for number, one in against["strongest"].accuracies.items():
        pairs = [
            [np.equal(*plain(name, number, r)) for r in labels.replicates(name)]
            for name in ("single", "singlebase")
        ]
        assert one == paired_difference(*map(np.stack, pairs))
        assert one.detectable <= against["strongest"].detectable
    assert held_in(RESULTS / "cifar10-stream", rows, plan) == {}  # no labels are published


def rows_with(names, metrics):
    return [
        Row(method=name, combination="average", metric=metric, value=0.7, cost=1.0)
        for name in names
        for metric in metrics
    ]


EVERY = ("accuracy", "consistency", "accuracy_1", "accuracy_2", "accuracy_3", "late_accuracy")


def judged_of(run, plan, rows):
    return {one.method: one for one in frontier(rows, held=held_in(run, rows, plan))}


def test_what_the_labels_cannot_compare_is_open(run):
    """Labels of singlebase (two replicates) and rolling; the table has more."""
    plan = plan_of(("singlebase", "dynsnap-cyc", "rolling"))
    some = rows_with(["singlebase", "rolling"], EVERY)
    lacking = judged_of(run, plan, some)
    whole = judged_of(run, plan_of(("singlebase", "rolling")), some)
    for name in ("singlebase", "rolling"):  # the plan's DynSnap-cyc was not measured
        assert lacking[name].verdict in ("open", "no")
        assert any(one.reference == "dynsnap-cyc" and one.missing for one in lacking[name].held)
    assert "dynsnap-cyc" in lacking["rolling"].unsure
    assert whole["singlebase"].verdict is None  # there is nothing fresh to hold it against
    assert "dynsnap-cyc" not in whole["rolling"].unsure
    # The table has it, and its labels are gone.
    more = rows_with(["singlebase", "dynsnap-cyc", "rolling"], EVERY)
    assert "dynsnap-cyc" in judged_of(run, plan, more)["rolling"].unsure


def test_lost_labels_of_new_classes_leave_the_other_replicate_or_an_open_verdict(run):
    late = run / "predictions/late"
    (late / "singlebase-average-g3-r0.parquet").unlink()
    labels = MethodLabels.read(run)
    assert labels.replicates("singlebase") == (0, 1)
    assert set(labels.values("singlebase", "late_accuracy")) == {1}
    assert labels.difference("rolling", "singlebase", "late_accuracy") is None  # r0 alone
    plan = plan_of(("singlebase", "rolling"))
    rows = rows_with(["singlebase", "rolling"], EVERY)
    (against,) = (one for one in held_in(run, rows, plan)["rolling"] if one.role != "first")
    assert against.missing == ("new classes",) and against.late is None
    assert "new classes" in judged_of(run, plan, rows)["rolling"].unsure
    shutil.rmtree(late)
    assert "new classes" in judged_of(run, plan, rows)["rolling"].unsure


def test_a_new_class_of_one_input_leaves_the_verdicts_on_all_others(tmp_path):
    truth, late = np.array(["a", "b"] * 30), np.array(["c"])
    right = {("singlebase", g, 0): truth for g in (1, 2)}
    wrong = {("rolling", g, 0): np.array(["b", "a"] * 30) for g in (1, 2)}
    said = dict.fromkeys((*right, *wrong), late)
    write_run(tmp_path, {**right, **wrong}, truth=truth, late=(said, late))
    plan = plan_of(("singlebase", "rolling"))
    some = [name for name in EVERY if name != "accuracy_3"]
    one = judged_of(tmp_path, plan, rows_with(["singlebase", "rolling"], some))["rolling"]
    assert one.verdict == "no" and "generation 2" in one.shortfall
    assert "new classes" in one.unsure


BY_TIME = DataPlan(growth={"by": "time"})


def test_by_time_the_first_generation_that_is_kept_is_a_method_of_the_table():
    """Generations 1 and 2 are there what is deployed before and after each retrain."""
    names = ("singlebase", "dynsnap-cyc", "rolling", "single", "extbagging")
    kept = {"never-retrain": (0, 0.7), "never-retrain-dynsnap-cyc": (0, 0.7)}
    rows = table(**dict.fromkeys(names, (1, 0.8)), **kept)
    found = fair_references(rows, plan_of(names, data=BY_TIME))
    assert {name: roles.get("first") for name, roles in found.items()} == {
        "singlebase": "never-retrain",
        "single": "never-retrain",
        "dynsnap-cyc": "never-retrain-dynsnap-cyc",
        "rolling": "never-retrain-dynsnap-cyc",
        "extbagging": None,  # no method of the table keeps its first generation
        "never-retrain": None,
        "never-retrain-dynsnap-cyc": None,
    }
    usual = fair_references(rows, plan_of(names))
    assert usual["single"]["first"] == "never-retrain-single"
    # The baseline need not be a method of the study.
    alone = fair_references(rows, plan_of(("single", "snapshot"), data=BY_TIME))
    assert alone["single"]["first"] == "never-retrain"


def test_by_time_no_other_labels_stand_in_for_what_was_never_retrained(run):
    rows = rows_with(["singlebase", "rolling", "never-retrain"], EVERY)
    names = ("singlebase", "rolling")
    usual, by_time = (
        held_in(run, rows, plan_of(names, **more)) for more in ({}, {"data": BY_TIME})
    )
    (held,) = usual["never-retrain"]
    assert held.accuracies and not held.missing
    (held,) = by_time["never-retrain"]
    assert not held.accuracies and held.missing
    (first,) = (one for one in by_time["singlebase"] if one.role == "first")
    assert not first.accuracies and first.missing


def test_a_fresh_method_that_was_not_measured_leaves_verdicts_open_if_it_may_cost_no_more(run):
    rolling = [dataclasses.replace(one, cost=2.0) for one in rows_with(["rolling"], EVERY)]
    some = [*rows_with(["singlebase"], EVERY), *rolling]  # 1 and 2 κ a generation
    plain = judged_of(run, plan_of(("singlebase", "rolling")), some)["rolling"]
    wider = judged_of(run, plan_of(("singlebase", "snapshot", "rolling")), some)["rolling"]
    dearer = judged_of(run, plan_of(("singlebase", "extbagging", "rolling")), some)["rolling"]
    (unknown,) = (one for one in wider.held if one.reference == "snapshot")  # 2 κ
    assert unknown.missing and not unknown.accuracies and math.isnan(unknown.cost)
    assert "snapshot" in wider.unsure and wider.verdict in ("open", "no")
    assert dearer.held == plain.held  # 20 networks cost more
    # One that lacks a row of the table counts as not measured.
    damaged = [*some, *rows_with(["snapshot"], EVERY[:-2])]
    assert (
        "snapshot"
        in judged_of(run, plan_of(("singlebase", "snapshot", "rolling")), damaged)["rolling"].unsure
    )


def test_what_is_clearly_below_stays_so_whatever_else_is_lost(tmp_path):
    truth = np.array(["a", "b"] * 40)
    right = {("singlebase", g, r): truth for g in (1, 2, 3) for r in (0, 1)}
    wrong = {("rolling", g, r): truth[::-1] for g in (1, 2, 3) for r in (0, 1)}
    write_run(tmp_path, {**right, **wrong}, truth=truth)
    rows, plan = (
        rows_with(["singlebase", "rolling"], EVERY[:-1]),
        plan_of(("singlebase", "rolling")),
    )
    whole = judged_of(tmp_path, plan, rows)["rolling"]
    assert whole.verdict == "no" and whole.replicates == 2
    assert "generation 2" in whole.shortfall and "generation 3" in whole.shortfall
    files = tmp_path / "predictions"
    (files / "rolling-average-g3-r1.parquet").unlink()
    less = judged_of(tmp_path, plan, rows)["rolling"]
    assert less.shortfall.count("generation") == 2 and less.replicates == 2  # generation 2 decides
    (files / "rolling-average-g3-r0.parquet").unlink()
    least = judged_of(tmp_path, plan, rows)["rolling"]
    assert least.verdict == "no" and "generation 3" in least.unsure
    assert "generation 3" not in least.shortfall
    # A stray file of a generation that the table does not have changes nothing.
    for g in (1, 2, 3):
        kept = files / f"snapshot-average-g{g}-r0.parquet"
        shutil.copy(files / f"singlebase-average-g{g}-r0.parquet", kept)
    shutil.copy(files / "rolling-average-g2-r0.parquet", files / "rolling-average-g4-r0.parquet")
    assert judged_of(tmp_path, plan, rows)["rolling"].held == least.held


def test_without_labels_of_the_last_generation_nothing_is_judged_by_the_one_before(run):
    names = ("singlebase", "rolling")
    rows, plan = rows_with(names, EVERY), plan_of(names)
    for path in (run / "predictions").rglob("*-g3-*"):
        path.unlink()
    for held in held_in(run, rows, plan)["rolling"]:
        assert held.missing == ("generation 3", "new classes")
        assert set(held.accuracies) == {2} and held.late is None
    assert judged_of(run, plan, rows)["rolling"].verdict != "yes"


def test_rows_that_the_table_lacks_take_no_labels_away(run):
    names = ("singlebase", "rolling")
    whole, less = rows_with(names, EVERY), rows_with(names, EVERY[:-2])  # of generations 1 and 2
    plan = plan_of(names)
    full, part = (held_in(run, rows, plan)["rolling"] for rows in (whole, less))
    for one, other in zip(full, part, strict=True):
        assert one.accuracies == other.accuracies and one.late == other.late
    # A new class is asked for wherever the study has one.
    for path in (run / "predictions/late").glob("rolling-*"):
        path.unlink()
    for held in held_in(run, less, plan)["rolling"]:
        assert held.missing == ("new classes",)


def test_a_method_that_costs_less_in_later_generations_may_be_among_what_a_cheap_one_affords(run):
    plan = plan_of(("singlebase", "rolling", "single"))
    short = dataclasses.replace(
        plan.method("single"),
        name="short",
        retraining=dataclasses.replace(
            plan.method("single").retraining, warm_start=False, distill_weight=0, epochs_share=0.5
        ),
    )
    assert starts_fresh(short)
    plan = dataclasses.replace(plan, methods=(*plan.methods[:2], short))
    rows = [dataclasses.replace(one, cost=0.8) for one in rows_with(["rolling"], EVERY)]
    found = held_in(run, [*rows_with(["singlebase"], EVERY), *rows], plan)["rolling"]
    assert any(one.reference == "short" and one.missing for one in found)


def test_never_retraining_needs_the_first_generation_alone(run):
    for generation in (2, 3):
        for path in (run / "predictions").rglob(f"singlebase-average-g{generation}-*"):
            path.unlink()
    rows = rows_with(["dynsnap-cyc", "rolling", "never-retrain"], EVERY)
    for path in list((run / "predictions").rglob("rolling-*")):
        shutil.copy(path, path.with_name(path.name.replace("rolling", "dynsnap-cyc")))
    found = held_in(run, rows, plan_of(("dynsnap-cyc", "rolling")))
    for held in found["never-retrain"]:
        assert set(held.accuracies) == {2, 3} and held.late is not None and not held.missing


def test_a_dynsnap_cyc_that_keeps_labels_is_judged_and_no_reference(run):
    plan = plan_of(("singlebase", "dynsnap-cyc"))
    kept = dataclasses.replace(plan.method("dynsnap-cyc"), margin=0.9)
    plan = dataclasses.replace(plan, methods=(plan.method("singlebase"), kept))
    for path in list((run / "predictions").rglob("rolling-*")):
        path.rename(path.with_name(path.name.replace("rolling", "dynsnap-cyc")))
    rows = rows_with(["singlebase", "dynsnap-cyc"], EVERY)
    found = judged_of(run, plan, rows)
    assert found["dynsnap-cyc"].judged and found["singlebase"].verdict is None


def test_equally_strong_references_are_chosen_whatever_the_order():
    known = {"singlebase": (1, 0.8), "snapshot": (2, 0.85), "dynsnap-step": (2, 0.85)}
    rows = table(**known, rolling=(3, 0.9))
    orders = (list(known), list(reversed(known)))
    chosen = {
        fair_references(rows, plan_of((*one, "rolling")))["rolling"]["strongest"] for one in orders
    }
    assert len(chosen) == 1


def test_the_first_generation_costs_what_it_took():
    rows = table(singlebase=(1, 0.8), rolling=(5 / 3, 0.8))
    for row in rows:
        if row.method == "rolling":
            rows.append(dataclasses.replace(row, metric="retrain_cost", value=1.0))
            break
    labels = MethodLabels(study_labels(STUDY))
    plan = plan_of(("singlebase", "rolling"))
    (first,) = (one for one in held_against(rows, plan, labels)["rolling"] if one.role == "first")
    assert first.cost == pytest.approx(2 * 5 / 3 - 1)  # of two generations, less one retrain


@given(n=st.integers(2, 80), often=st.integers(1, 4))
def test_how_many_inputs_a_new_class_needs_is_as_documented(n, often):
    """Where a method answers all of them as its reference does."""
    page = (ROOT / "docs/report.md").read_text(encoding="utf-8")
    needed = {1: 56, 2: 28, 3: 19}
    assert (
        f"{needed[1]} with one replicate, {needed[2]} with two and {needed[3]} with three" in page
    )
    same = paired_difference(np.ones((often, n)), np.ones((often, n)))
    if often in needed:
        assert (same.low >= -LARGE_LOSS) == (n >= needed[often])
