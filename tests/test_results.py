"""The published results agree with themselves: tables with labels, settings with studies, seeds."""

import dataclasses
import json
import math
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import _seeds
import _students
from dynsnap.errors import InputError
from dynsnap.study import read_study, read_sweeps, read_table, workload
from tests.published import RESULTS, columns

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "src/dynsnap/studies"
PUBLISHED = sorted(path.parent.name for path in RESULTS.glob("*/labels.parquet"))
RUN = sorted(path.parent.name for path in RESULTS.glob("*/study.toml"))
SEEDS = sorted(path.name for path in RESULTS.glob("*-20[0-9][0-9]"))


def labels(folder):
    """Truth, new class or not, and the labels as numbers: {method, combination: {r: {g: said}}}."""
    of = columns(folder)
    found = {}
    for name in (name for name in of if name.count("/") == 3):
        method, how, generation, replicate = name.split("/")
        by = found.setdefault((method, how), {}).setdefault(replicate, {})
        by[int(generation[1:])] = of[name]
    return of["truth"], of["inputs"] == "late", found


def metrics(said, truth, late):
    """What a table of results has of the labels of all generations, by name."""
    old, new = ([one[rows] for one in said] for rows in (~late, late))
    right = [one == truth[~late] for one in old]
    pairs = list(combinations(range(len(said)), 2))
    found = {f"accuracy_{number}": one.mean() for number, one in enumerate(right, start=1)}
    found["accuracy"] = np.mean(right)
    found["consistency"] = np.mean([old[a] == old[b] for a, b in pairs])
    found["correct_consistency"] = np.mean([right[a] & right[b] for a, b in pairs])
    found["lost"] = np.mean([right[a] & ~right[b] for a, b in pairs])
    found["gained"] = np.mean([~right[a] & right[b] for a, b in pairs])
    if late.any():
        found["late_accuracy"] = (new[-1] == truth[late]).mean()
    return found


def whole(replicates):
    """The labels of each replicate that has all generations."""
    most = max(len(one) for one in replicates.values())
    return [[said[g] for g in sorted(said)] for said in replicates.values() if len(said) == most]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_table_has_what_numpy_computes_from_the_labels(name):
    truth, late, found = labels(RESULTS / name)
    table = {
        (row.method, row.combination, row.metric): row
        for row in read_table(RESULTS / name / "table.csv")
    }
    held = 0
    for (method, how), replicates in found.items():
        # Copies for the noise floor, and networks of `dynsnap distill`, have labels and no rows.
        if (method, how, "accuracy") not in table:
            continue
        each = [metrics(said, truth, late) for said in whole(replicates)]
        for metric in each[0]:
            row = table[method, how, metric]
            values = [one[metric] for one in each]
            assert row.value == pytest.approx(np.mean(values), abs=1e-9), (method, how, metric)
            if row.spread is not None:
                assert row.spread == pytest.approx(np.std(values, ddof=1), abs=1e-9)
            held += 1
    assert held >= 6


@pytest.mark.parametrize(
    "name", sorted({path.parent.name for path in RESULTS.glob("*/distill*.json")})
)
def test_students_are_reported_as_numpy_computes_from_their_labels(name):
    truth, late, found = labels(RESULTS / name)
    told = 0
    for path in (RESULTS / name).glob("distill*.json"):
        learners = json.loads(path.read_bytes())
        for one in learners["learners"]:
            twin = f"{learners['student']}-teacher=none"
            column = twin if one["name"] == "untaught" else one["name"]
            replicates = found.get((column, "average"))
            if replicates is None:  # here the labels of the control are not published
                assert (name.partition("-20")[0], column) == ("cifar10-distill", twin)
                continue
            each = [metrics(said, truth, late) for said in whole(replicates)]
            if "fidelity" in one["metrics"]:
                teachers = whole(found[learners["teacher"], "average"])
                for values, mine, other in zip(each, whole(replicates), teachers, strict=True):
                    same = [(a == b)[~late].mean() for a, b in zip(mine, other, strict=True)]
                    values["fidelity"] = np.mean(same)
            assert set(one["metrics"]) - set(each[0]) <= {"seconds", "fidelity"}
            for metric in each[0]:
                mean = np.mean([values[metric] for values in each])
                assert one["metrics"][metric]["value"] == pytest.approx(mean, abs=1e-9), metric
                told += 1
    assert told >= 27


@pytest.mark.parametrize(
    "name", sorted({path.parent.name for path in RESULTS.glob("*/distill*.json")})
)
def test_a_student_costs_its_teacher_and_its_own_training(name):
    table = {
        row.method: row.cost
        for row in read_table(RESULTS / name / "table.csv")
        if (row.combination, row.metric) == ("average", "accuracy")
    }
    plan = read_study(RESULTS / name / "study.toml", stored=True)
    for path in (RESULTS / name).glob("distill*.json"):
        learners = json.loads(path.read_bytes())
        own = learners["epochs"] / plan.epochs
        for one in learners["learners"]:
            expected = {
                learners["student"]: table[learners["teacher"]] + own,
                "untaught": own,
            }.get(one["name"], table.get(one["name"]))
            assert one["cost"] == pytest.approx(expected), one["name"]


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in RESULTS.glob("*-rolling*/sweeps.csv"))
)
def test_margins_that_are_methods_too_have_the_same_rows(name):
    table = {
        (row.method, row.metric): row.value for row in read_table(RESULTS / name / "table.csv")
    }
    same = {"0": "dynsnap-cyc", "0.2": "standing"}
    held = [
        one.row.value == table[same[one.point], one.row.metric]
        for one in read_sweeps(RESULTS / name / "sweeps.csv")
        if one.over == "margin" and one.point in same and one.row.metric != "members"
    ]
    assert len(held) > 20 and all(held)


@pytest.mark.parametrize("name", [one for one in PUBLISHED if not one.startswith("flights")])
def test_a_study_states_as_many_inputs_and_replicates_as_there_are(name):
    about = json.loads((RESULTS / name / "about.json").read_bytes())
    _, late, _ = labels(RESULTS / name)
    plan = read_study(RESULTS / name / "study.toml", stored=True)
    assert (about["test_inputs"], about["replicates"]) == ((~late).sum(), plan.replicates)


@pytest.mark.parametrize("name", RUN)
def test_results_were_run_from_the_study_that_is_shipped(name):
    base = name[:-5] if name in SEEDS else name
    path = SHIPPED / f"{base}.toml"
    if not path.is_file():  # of `dynsnap distill`: an example
        path = ROOT / f"examples/{base}.toml"
    ran, shipped = read_study(RESULTS / name / "study.toml", stored=True), read_study(path)
    if name not in SEEDS:
        assert ran == shipped
        return
    # A further seed: other random numbers, more or fewer methods and replicates, and nothing else.
    assert ran.seed == int(name[-4:]) != shipped.seed
    for method in ran.methods:
        assert method == shipped.method(method.name)
    free = {"seed", "replicates", "learners", "methods", "sweeps"}
    if all(method.name != "snapshot" for method in ran.methods):
        free.add("prefixes")  # of Snapshot's rounds, which are not there
    alike = {one: getattr(shipped, one) for one in free}
    assert dataclasses.replace(ran, **alike) == shipped


@pytest.mark.parametrize("name", sorted({one[:-5] for one in SEEDS}))
def test_seeds_count_as_many_replicates_as_they_have_labels_of(name):
    pooled = _seeds.labels_of(RESULTS / name)
    often = _seeds.replicates(RESULTS / name)
    for method in pooled.methods:
        if method in often:
            assert len(pooled.replicates(method)) == often[method], method


@pytest.mark.parametrize("name", [one for one in RUN if not one.startswith("flights")])
def test_what_is_paid_is_what_the_study_plans(name):
    plan = read_study(RESULTS / name / "study.toml", stored=True)
    rows = {
        (row.method, row.metric): row
        for row in read_table(RESULTS / name / "table.csv")
        if row.combination == "average"
    }
    held = 0
    for planned in workload(plan).methods:
        if (planned.name, "retrain_cost") not in rows or planned.open_ended:
            continue  # what pruning leaves decides it
        mean, retrain = (
            rows[planned.name, "accuracy"].cost,
            rows[planned.name, "retrain_cost"].value,
        )
        many = sum((planned.name, f"accuracy_{number}") in rows for number in range(1, 20))
        first = many * mean - (many - 1) * retrain
        assert first == pytest.approx(planned.cost), planned.name
        held += 1
    assert held


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob("*-rolling*")))
def test_a_shared_first_generation_costs_what_the_fresh_ensemble_s_does(name):
    _, _, found = labels(RESULTS / name)
    rows = {(row.method, row.metric): row for row in read_table(RESULTS / name / "table.csv")}
    held = 0
    for method, how in found:
        mine, other = (
            {r: said[1] for r, said in found[key].items()}
            for key in ((method, how), ("dynsnap-cyc", how))
        )
        if mine.keys() == other.keys() and all((mine[r] == other[r]).all() for r in mine):
            first = 3 * rows[method, "accuracy"].cost - 2 * rows[method, "retrain_cost"].value
            assert first == pytest.approx(3 * rows["never-retrain-dynsnap-cyc", "accuracy"].cost)
            held += method != "dynsnap-cyc"
    assert held >= 2


def relabelled(path, change):
    """Labels with another column."""
    table = pq.read_table(path)
    name, column = change(table)
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)


@pytest.fixture
def seeds(tmp_path):
    """A study and a further seed of it."""
    for name in ("digits-trees", "digits-trees-2031"):
        shutil.copytree(RESULTS / "digits-trees", tmp_path / name)
    return tmp_path / "digits-trees"


def test_a_seed_is_paired_with_the_same_seed_of_another_study(seeds):
    alone = _seeds.labels_of(seeds)
    shutil.copytree(RESULTS / "digits-trees", seeds.parent / "digits-trees-2030")
    more = _seeds.labels_of(seeds)
    assert set(alone.replicates("single")) < set(more.replicates("single"))
    assert 2 * len(more.replicates("single")) == 3 * len(alone.replicates("single"))


@pytest.fixture
def distilled(tmp_path):
    """A study whose ensembles were distilled, and a further seed of it."""
    for name in ("distill-digits", "distill-digits-2031"):
        (tmp_path / name).mkdir()
        for path in (RESULTS / "distill-digits").glob("distill*.json"):
            shutil.copy(path, tmp_path / name)
        shutil.copy(RESULTS / "distill-digits/study.toml", tmp_path / name)
    return tmp_path / "distill-digits"


def test_students_of_two_seeds_are_pooled_by_how_many_there_are(distilled):
    path = distilled.parent / "distill-digits-2031/distill-1-control.json"
    alone = _students.learners_of(RESULTS / "distill-digits")
    study = path.with_name("study.toml")
    study.write_text(study.read_text().replace("replicates = 10", "replicates = 5"))
    for other in path.parent.glob("*.json"):
        told = json.loads(other.read_text())
        told["replicates"] = 5
        for learner in told["learners"]:
            learner["cost"] += 3
            for values in learner["metrics"].values():
                values["value"] += 0.03
        other.write_text(json.dumps(told))
    both = _students.learners_of(distilled)
    assert list(both) == list(alone)
    for name, one in both.items():
        assert one.cost == pytest.approx(alone[name].cost + 1)  # 10 of 15, and 5 with 3 more
        for metric, row in one.metrics.items():
            known = alone[name].metrics[metric]
            assert row.value == pytest.approx(known.value + 0.01)
            if known.spread is not None:
                squares = 9 * known.spread**2 + 4 * known.spread**2
                apart = 10 * 0.01**2 + 5 * 0.02**2
                assert row.spread == pytest.approx(math.sqrt((squares + apart) / 14))


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(temperature=2.0),
        lambda told: told.update(generations=[3]),
        lambda told: told.update(replicates=3),
        lambda told: told["learners"].pop(),
        lambda told: told["learners"][0].update(networks=9),
        lambda told: told["learners"][0]["metrics"]["accuracy"].update(value=None),
    ],
)
def test_other_students_are_no_further_replicates(distilled, change):
    path = distilled.parent / "distill-digits-2031/distill-1-control.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    with pytest.raises(InputError, match="distill-digits-2031"):
        _students.learners_of(distilled)
    path.unlink()
    with pytest.raises(InputError, match="distill-digits-2031"):
        _students.learners_of(distilled)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"schema": "dynsnap.distill/9"}', b'{"schema": "dyn', b"\xff"]
)
def test_what_distill_has_not_written_is_refused_by_its_name(distilled, content):
    path = distilled.parent / "distill-digits-2031/distill-1-control.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"distill-1-control\.json"):
        _students.learners_of(distilled)


@pytest.mark.parametrize("kind", ["test", "late"])
def test_a_seed_on_other_inputs_is_no_further_replicate(seeds, kind):
    def other(table):
        ids = [
            f"new {i}" if one == kind else i
            for i, one in zip(
                table.column("id").to_pylist(), table.column("inputs").to_pylist(), strict=True
            )
        ]
        return "id", pa.array([str(one) for one in ids])

    relabelled(seeds.parent / "digits-trees-2031/labels.parquet", other)
    with pytest.raises(InputError, match="digits-trees-2031 was measured on other inputs"):
        _seeds.labels_of(seeds)


def test_a_seed_with_other_true_classes_is_refused(seeds):
    def other(table):
        return "truth", pa.array([str(one) for one in table.column("truth").to_pylist()][::-1])

    relabelled(seeds.parent / "digits-trees-2031/labels.parquet", other)
    with pytest.raises(InputError, match="true classes"):
        _seeds.labels_of(seeds)


def test_a_seed_without_labels_is_no_further_replicate(seeds):
    (seeds.parent / "digits-trees-2031/labels.parquet").unlink()
    with pytest.raises(InputError, match="digits-trees-2031 has no labels"):
        _seeds.labels_of(seeds)
