"""The study files that come with dynsnap: each is read, planned, and held against the paper."""

import csv
import dataclasses
from pathlib import Path

import pytest

from dynsnap import study
from dynsnap.data import SOURCES, grow
from dynsnap.ensemble import METHODS
from dynsnap.study import read_study, workload
from tests.cli.studies import SHIPPED, dynsnap
from tests.data.real import sizes
from tests.data.test_growth import labelled

ROOT = Path(__file__).parents[2]
SETS = {"cifar10": "cifar-10", "cifar100": "cifar-100", "yahoo": "yahoo-answers"}
# With all members that the paper says it trained, or with fewer where GPU time is short.
FULL = {"cifar10": "cifar10-full", "cifar100": "cifar100-full", "yahoo": "yahoo-paper"}


def paper_costs(data):
    """What the paper's Table 2 says that each method costs on a data set, in κ."""
    with (ROOT / "results/paper.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "cost"]
    return {row["method"]: float(row["value"]) for row in rows if row["data"] == data}


def test_the_paper_s_studies_short_ones_and_one_more_text_are_shipped():
    assert set(SHIPPED) >= {
        *("digits", "20news", "20news-sensitivity", "cifar100-sensitivity"),
        *("digits-bagging-3", "20news-bagging-3"),
        *("cifar10-balanced", "cifar10-rolling", "cifar10-distill", "cifar10-stream"),
        *("cifar10-full", "cifar100-full", "cifar100-rolling"),
        *(f"{name}-{kind}" for name in SETS for kind in ("paper", "short")),
    }


# A year of weekly retrains takes long to plan.
LONG = {name: pytest.mark.slow for name in SHIPPED if name.startswith("flights")}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in SHIPPED])
def test_a_shipped_study_is_read_and_its_plan_printed(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNSNAP_DATA", str(tmp_path))
    plan = read_study(SHIPPED[name])
    assert plan.name == name
    assert plan.data.source in SOURCES
    ahead = workload(plan, generations=study.growth_of(plan.data).generations)
    ended = dynsnap("run", name, "--plan")
    assert ended.exit_code == 0, ended.stderr
    for planned in ahead.methods:
        assert planned.name in ended.stdout
    assert f"{len(ahead.rounds)} rounds of training" in ended.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("data", SETS)
def test_the_paper_s_studies_have_its_methods_at_its_cost(data):
    plan = read_study(SHIPPED[FULL[data]])
    assert plan.data.source == SETS[data]
    assert (plan.epochs, plan.data.subsample) == (200, 1.0)
    costs = paper_costs(data)
    found = {one.name: one for one in workload(plan).methods if one.name in METHODS}
    assert set(found) == set(costs)
    for name, planned in found.items():
        if planned.open_ended:  # what pruning leaves decides the rest
            assert planned.cost <= costs[name]
        else:
            assert planned.cost == costs[name]
    for name in ("extbagging", "mcdropout", "snapshot", "dynsnap-cyc", "dynsnap-step"):
        assert found[name].method.plan.size == 20
    for name in ("dynsnap-cyc", "dynsnap-step"):
        assert (found[name].method.plan.snapshots, found[name].method.plan.beta) == (10, "mean")
    assert found["snapshot"].method.recipe.epochs == 400


@pytest.mark.parametrize("name", ["digits", "20news"])
def test_bagging_at_equal_cost_has_the_first_three_networks_of_the_study(name):
    whole, three = (read_study(SHIPPED[one]) for one in (name, f"{name}-bagging-3"))
    assert set(workload(three).rounds) < set(workload(whole).rounds)
    assert three.replicates == whole.replicates
    (method,) = three.methods
    assert (method.name, method.plan.size) == ("extbagging", 3)
    first = [
        one.index for one in workload(three).rounds if one.replicate == one.generation - 1 == 0
    ]
    assert set(first) >= {0, 1, 2}


def test_a_study_of_the_paper_counts_every_shared_round_once():
    # 20 step rounds, 1 with dropout, 1 long and 2 short cyclic ones per generation, and the twin.
    assert len(workload(read_study(SHIPPED["yahoo-paper"])).rounds) == 3 * (20 + 1 + 1 + 2) + 1
    assert workload(read_study(SHIPPED["yahoo-paper"])).cost == 3 * (20 + 1 + 2 + 2) + 1
    # Where prefixes serve, the first short one is half of the long one.
    assert len(workload(read_study(SHIPPED["cifar100-full"])).rounds) == 3 * (20 + 1 + 1 + 1) + 1
    assert workload(read_study(SHIPPED["cifar100-full"])).cost == 3 * (20 + 1 + 2 + 1) + 1
    # 3 step rounds, 1 with dropout, 1 long and 2 short cyclic ones, and the twin.
    assert len(workload(read_study(SHIPPED["cifar100-paper"])).rounds) == 3 * (3 + 1 + 1 + 2) + 1
    assert workload(read_study(SHIPPED["cifar100-paper"])).cost == 3 * (3 + 1 + 2 + 2) + 1
    # Unpruned ensembles of 30 make a third short one certain.
    found = workload(read_study(SHIPPED["cifar10-paper"]))
    assert (len(found.rounds), found.cost) == (3 * (7 + 1 + 1 + 2) + 1, 37)
    assert (found.spared, found.spared_cost) == (3, 3)


def test_the_sensitivity_study_trains_the_points_of_n_once():
    """Of each generation one long round of each window; the others are rounds of their own."""
    found = workload(read_study(SHIPPED["cifar100-sensitivity"]))
    cyclic = [spec for spec in found.rounds if spec.recipe.selection == "window"]
    epochs = {
        window: {
            index: {
                spec.recipe.epochs
                for spec in cyclic
                if spec.recipe.window == window and spec.index == index
            }
            for index in range(4)
        }
        for window in (5, 10, 20)
    }
    assert epochs[5] == {0: {200}, 1: {50}, 2: set(), 3: set()}
    assert epochs[10] == {0: {50}, 1: set(), 2: set(), 3: set()}
    assert epochs[20] == {0: {400}, 1: {200}, 2: set(), 3: set()}  # Snapshot's, and DynSnap-cyc's
    # N = 1, 5, 10 and 20 of windows of 5 epochs, and the first 5 and 10 windows of 20.
    assert found.spared == 3 * 6
    assert found.spared_cost == pytest.approx(3 * (0.025 + 0.125 + 0.25 + 0.5 + 0.5 + 1))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cifar10-paper", ("resnet20", 128)),
        ("cifar100-paper", ("resnet56", 32)),
        ("yahoo-paper", ("fasttext", 16)),
    ],
)
def test_the_paper_s_recipes_are_written_down(name, settings):
    plan = read_study(SHIPPED[name])
    assert (plan.model["name"], plan.training["batch_size"]) == settings
    assert (plan.training["learning_rate"], plan.training["adam"]["eps"]) == (0.001, 1e-7)
    assert plan.training["adam"].get("kernel_penalty") == (None if "yahoo" in name else 1e-4)


@pytest.mark.parametrize(
    ("data", "sizes", "held"),
    [
        ("cifar10", (24_400, 30_500, 32_500), 4_500),
        ("cifar100", (37_500, 46_875, 47_375), 4_950),
        ("yahoo", (683_200, 768_600, 910_000), 10_000),
    ],
)
def test_generations_have_the_sizes_of_the_paper(data, sizes, held):
    growth = study.growth_of(read_study(SHIPPED[f"{data}-paper"]).data)
    rows, tested = {"cifar10": (5_000, 1_000), "cifar100": (500, 100), "yahoo": (140_000, 6_000)}[
        data
    ]
    classes = 100 if data == "cifar100" else 10
    shares = [*growth.shares.values(), *[1.0] * (classes - len(growth.shares))]
    (late,) = growth.late
    late_share = growth.shares.get(late, 1.0)
    for number, fraction in enumerate(growth.fractions, start=1):
        used = sum(shares) - (0 if number >= growth.late[late] else late_share)
        assert round(used * fraction * rows) == sizes[number - 1]
    validated = classes if growth.late_validation == "always" else classes - 1
    assert round(validated * growth.validation * tested) == held


def test_the_sensitivity_study_has_the_points_and_ablations_of_the_paper():
    paper = read_study(SHIPPED["cifar100-paper"])
    assert [sweep.name for sweep in paper.sweeps] == ["members", "beta", "snapshots", "unpruned"]
    # N with the paper's windows, for which nothing is trained that the methods do not need.
    swept = dataclasses.replace(
        paper, sweeps=[one for one in paper.sweeps if one.over != "snapshots"]
    )
    assert workload(paper).rounds == workload(swept).rounds
    assert {method.recipe.window for _, method in paper.sweeps[2].points} == {20}
    plan = read_study(SHIPPED["cifar100-sensitivity"])
    points = {sweep.name: [point for point, _ in sweep.points] for sweep in plan.sweeps}
    assert points["snapshots"] == ["1", "5", "10", "20", "40"]
    assert points["window"] == ["5", "10", "20"]
    found = {one.name: one for one in workload(plan).methods}
    # All points of N have windows of 5 epochs, where the paper has 20.
    assert [found[f"snapshots={n}"].cost * 4 for n in (1, 5, 10, 20, 40)] == [0.1, 0.5, 1, 2, 4]
    # Those of the window have one round of five, where the paper has two of ten.
    assert [found[f"window={w}"].cost * 8 for w in (5, 10, 20)] == [1, 2, 4]
    assert {found[f"window={w}"].method.plan.snapshots for w in (5, 10, 20)} == {5}
    names = ("dynsnap-cyc-short", "no-schedule", "no-randomness", "no-randomness-long")
    recipes = {name: found[name].method.recipe for name in names}
    assert recipes["no-schedule"].schedule.kind == "constant"
    assert recipes["no-schedule"].selection == "top"
    assert recipes["no-schedule"].epochs == recipes["dynsnap-cyc-short"].epochs == 50
    assert recipes["no-randomness"] == found["snapshots=20"].method.recipe
    assert recipes["no-randomness-long"] == found["snapshots=40"].method.recipe
    assert [found[name].cost for name in names] == [0.5, 0.5, 0.5, 1]
    assert {found[name].method.plan.size for name in names} == {20}


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        # Single, Snapshot's, the second cyclic one; the twin.
        ("cifar100-sensitivity", 3 * (1 + 1 + 1) + 1),
        ("cifar100-rolling", 3 * (1 + 1 + 1) + 1),
        ("cifar100-full", 3 * (3 + 1 + 1 + 1) + 1),
    ],
)
def test_studies_of_cifar_100_share_their_rounds_with_the_paper_s(name, shared):
    paper, more = read_study(SHIPPED["cifar100-paper"]), read_study(SHIPPED[name])
    for one in ("seed", "data", "model", "training", "epochs", "prefixes"):
        assert getattr(more, one) == getattr(paper, one), one
    assert len(set(workload(paper).rounds) & set(workload(more).rounds)) == shared


def test_five_of_fifty_validation_images_of_each_class_of_cifar_100_stay_aside():
    """Which is not as in the paper; what is trained on has the paper's sizes."""
    growth = study.growth_of(read_study(SHIPPED["cifar100-paper"]).data)
    classes = [*growth.shares, "bowl", *(f"other {i}" for i in range(90))]
    train, test = (labelled(classes, rows, name) for rows, name in ((500, "train"), (100, "test")))
    stream = grow(train, growth, test=test)
    assert sizes(stream) == [37_500, 46_875, 47_375]
    validated = [classes.index(name) for name in classes if name != "bowl"]
    for counts in stream.validation:
        assert counts[validated].tolist() == [45] * 99
    assert stream.evaluation["untouched"].counts[validated].tolist() == [5] * 99
    assert stream.evaluation["untouched"].count("bowl") == 0
    assert len(stream.evaluation["test"]) == 99 * 50


@pytest.mark.parametrize("data", SETS)
def test_a_short_study_is_the_paper_s_in_small(data):
    paper, short = read_study(SHIPPED[f"{data}-paper"]), read_study(SHIPPED[f"{data}-short"])
    assert short.data.source == paper.data.source
    assert [one.name for one in short.methods] == [one.name for one in paper.methods]
    share = short.data.subsample * short.epochs / paper.epochs
    assert share * workload(short).cost < 0.005 * workload(paper).cost


def test_20_newsgroups_has_every_figure_and_ablation():
    plan = read_study(SHIPPED["20news"])
    assert [one.name for one in plan.methods] == list(METHODS)
    assert [sweep.name for sweep in plan.sweeps] == ["members", "beta", "unpruned"]
    assert plan.replicates == 3
    more = read_study(SHIPPED["20news-sensitivity"])
    assert [one.name for one in more.methods][2:] == ["no-schedule", "no-randomness"]
    assert [sweep.over for sweep in more.sweeps] == ["snapshots", "window"]
    found = {one.name: one for one in workload(more).methods}
    assert found["no-randomness"].method.recipe == found["snapshots=40"].method.recipe
    assert (plan.seed, plan.model, plan.training) == (more.seed, more.model, more.training)
