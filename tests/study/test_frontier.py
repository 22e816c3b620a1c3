import re
from dataclasses import replace

import pytest

from dynsnap.comparison import PairedDifference
from dynsnap.ensemble import method
from dynsnap.report import frontier_table
from dynsnap.report.build.frontier import frontier_section, rule
from dynsnap.report.document import Side
from dynsnap.study import DataPlan, HeldAgainst, Row, StudyPlan, frontier
from tests.documents import numbers
from tests.messages import naming


def rows(method, *, last=0.88, consistency=0.92, how="average"):
    values = {
        "accuracy": 0.88,
        "accuracy_1": 0.87,
        "accuracy_10": last,  # the tenth comes after the second, whatever letters say
        "accuracy_2": 0.88,
        "consistency": consistency,
        "late_accuracy": 0.9,
    }
    return [
        Row(method=method, combination=how, metric=metric, value=value, cost=3.0)
        for metric, value in values.items()
    ]


def gap(value, doubt=0.01):
    return PairedDifference(
        value=value,
        low=value - doubt,
        high=value + doubt,
        detectable=1.5 * doubt,
        inputs=1000,
        replicates=3,
    )


def held(method, *gaps, late=None, role="fresh", reference="dynsnap-cyc"):
    return HeldAgainst(
        method=method,
        role=role,
        reference=reference,
        cost=9.0,
        accuracies=dict(enumerate(map(gap, gaps), 2)),
        late=None if late is None else gap(late, 0.1),
    )


def summaries(*others, **against):
    return {one.method: one for one in frontier([*rows("dynsnap-cyc"), *others], held=against)}


@pytest.mark.parametrize(
    ("gaps", "late", "verdict"),
    [
        ((0.0, 0.0), None, "yes"),
        ((-0.009, -0.009), 0.06, "yes"),  # lower, but not clearly, and not by much
        ((-0.009, -0.009), -0.09, "open"),  # new classes may be 19 points lower
        ((0.02, 0.02), 0.04, "open"),  # or 6
        ((-0.011, 0.02), None, "no"),  # every later generation is judged, not the last alone
        ((0.0, -0.011), None, "no"),
        ((0.0, -0.011), 0.0, "no"),  # whatever else is open
        ((0.02, 0.02), -0.11, "no"),
    ],
)
def test_a_method_qualifies_unless_it_is_clearly_below_or_may_be_by_far(gaps, late, verdict):
    one = summaries(*rows("rolling"), rolling=[held("rolling", *gaps, late=late)])["rolling"]
    assert one.judged
    assert one.verdict == verdict
    assert one.qualifies is (verdict == "yes")
    assert bool(one.shortfall) is (verdict == "no")


def test_what_is_open_says_how_much_could_be_lost():
    fresh = held("rolling", 0.0, 0.0, late=-0.05)
    one = summaries(*rows("rolling"), rolling=[fresh, fresh])["rolling"]
    assert re.search(naming("new classes", "dynsnap-cyc"), one.unsure)
    assert numbers(one.unsure) == ["5.0", "15.0", "5.0"]  # the value and its interval
    assert "; " not in one.unsure  # once


def test_a_verdict_of_one_replicate_says_so_and_the_rule_names_what_was_compared():
    alone = replace(gap(0.02), replicates=1)
    one = replace(held("rolling", 0.0, role="strongest"), accuracies={2: alone})
    found = summaries(*rows("rolling"), *rows("other"), rolling=[one], other=[held("other", 0.0)])
    assert [found[name].replicates for name in ("rolling", "other")] == [1, 3]
    shown = frontier_table(tuple(found.values()))
    place = [column.title for column in shown.columns].index("qualifies")
    cells = {row[0].text: row[place].text for row in shown.rows}
    assert cells == {"dynsnap-cyc": "reference", "rolling": "yes (n = 1)", "other": "yes (n = 3)"}
    text = rule([found["rolling"]])
    assert "strongest fresh" in text and "own first generation" not in text
    assert "n = 1" in text and "n = 1" not in rule([found["other"]])


def test_what_is_open_is_marked_in_pictures():
    (section,) = frontier_section(
        [*rows("dynsnap-cyc"), *rows("rolling"), *rows("single")],
        {"rolling": [held("rolling", 0.0, late=-0.05)], "single": [held("single", -0.5)]},
    )
    (side,) = (node for node in section.body if isinstance(node, Side))
    said = str(side)
    assert "rolling ?" in said and "single ×" in said and "dynsnap-cyc ?" not in said


@pytest.mark.parametrize(
    ("gaps", "named"),
    [
        ({"rolling": 0.0, "single": -0.5}, "are open: rolling"),  # whatever is higher
        ({"rolling": -0.5, "single": -0.5}, "none is open"),
        ({}, "that are retrained: single"),  # no labels, so nothing was judged
    ],
)
def test_the_best_of_a_picture_is_one_that_may_be_chosen(gaps, named):
    known = {"dynsnap-cyc": 0.8, "rolling": 0.7, "single": 0.9}
    table = [
        replace(row, value=known[row.method]) if row.metric == "accuracy" else row
        for name in known
        for row in rows(name)
    ]
    against = {name: [held(name, value)] for name, value in gaps.items()}
    (section,) = frontier_section(table, against)
    (side,) = (node for node in section.body if isinstance(node, Side))
    pictures = [one for one in side.nodes if "ACC in percent" in one.description]
    assert pictures and all(named in one.description for one in pictures)


def test_what_is_clearly_below_counts_the_replicates_that_show_it():
    few = replace(gap(0.02), replicates=1)
    one = replace(held("rolling", -0.5), late=few)
    assert summaries(*rows("rolling"), rolling=[one])["rolling"].replicates == 3
    other = replace(held("rolling", 0.5), late=few)
    assert summaries(*rows("rolling"), rolling=[other])["rolling"].replicates == 1


def test_every_reference_counts_and_one_reason_is_said_once():
    same = [held("rolling", 0.0, -0.02, role=role) for role in ("fresh", "strongest")]
    own = held("rolling", -0.03, 0.0, role="first", reference="never-retrain-rolling")
    one = summaries(*rows("rolling"), rolling=[*same, own])["rolling"]
    last, first = one.shortfall.split("; ")
    assert re.search(naming("generation 3", "dynsnap-cyc"), last)
    assert numbers(last) == ["3", "2.0", "1.0", "3.0"]  # the value and its interval, in points
    assert re.search(naming("generation 2", "never-retrain-rolling"), first)


def test_the_fresh_ensemble_and_whatever_has_no_reference_are_not_judged():
    own = held("dynsnap-cyc", -0.5, role="strongest", reference="singlebase")
    others = {"single": [held("single", 0.0)]}
    found = summaries(*rows("noise-floor"), *rows("single"), **{"dynsnap-cyc": [own]}, **others)
    assert found["single"].judged
    for name in ("noise-floor", "dynsnap-cyc"):
        one = found[name]
        assert not one.judged and one.verdict is None and not one.qualifies
    # Where no method is held against it, it is a method as any other.
    assert summaries(**{"dynsnap-cyc": [own]})["dynsnap-cyc"].verdict == "no"


def test_without_labels_nobody_is_judged():
    found = summaries(*rows("rolling", last=0.1))
    assert not any(one.judged for one in found.values())
    own = held("rolling", 0.1, role="first", reference="never-retrain-rolling")
    assert not summaries(*rows("rolling"), rolling=[own])["rolling"].judged  # nothing fresh


def test_generations_are_in_order_and_other_combinations_are_left_out():
    (one,) = frontier([*rows("rolling"), *rows("rolling", last=0.1, how="majority")])
    assert [row.metric for row in one.accuracies] == ["accuracy_1", "accuracy_2", "accuracy_10"]
    assert one.accuracies[-1].value == 0.88
    assert one.cost == 3.0 and one.total_cost == 9.0


def test_the_cost_is_that_of_a_retrain_where_it_is_known():
    more = Row(
        method="never-retrain", combination="average", metric="retrain_cost", value=0.0, cost=1.0
    )
    assert summaries(*rows("never-retrain"), more)["never-retrain"].cost == 0.0


def plan_of(*methods):
    usual = {"epochs": 12, "members": 6, "snapshots": 4}
    made = [method(name, **{**usual, **settings}) for name, settings in methods]
    return StudyPlan(
        name="served",
        data=DataPlan(),
        model={},
        training={},
        epochs=12,
        methods=tuple(made),
        baseline=made[0],
        keep="weights",
    )


def test_serving_costs_networks_per_input_and_stabilized_labels_need_stored_answers():
    plan = plan_of(
        ("singlebase", {"margin": 0.2}),
        ("single-distill", {"cost_ratio": 2.0}),
        ("mcdropout", {"snapshots": 1}),
        ("dynsnap-cyc", {"snapshots": 4}),
        ("rolling", {"snapshots": 4}),
    )
    table = [row for one in plan.methods for row in rows(one.name)]
    table += [*rows("noise-floor"), *rows("never-retrain-dynsnap-cyc"), *rows("strange")]
    found = {one.method: (one.networks, one.needs) for one in frontier(table, plan=plan)}
    assert found == {
        "singlebase": (1, "stored labels"),
        "single-distill": (1, "stored scores"),
        "mcdropout": (6, ""),
        "dynsnap-cyc": (6, ""),
        "rolling": (6, ""),
        "noise-floor": (1, ""),
        "never-retrain-dynsnap-cyc": (6, ""),
        "strange": (None, ""),
    }
    shown = frontier_table(frontier(table, plan=plan))
    assert {"networks", "needs"} <= {column.title for column in shown.columns}
    (section,) = frontier_section(table, {}, plan)
    figures = {each.name for node in section.body if isinstance(node, Side) for each in node.nodes}
    assert {"accuracy-cost", "accuracy-inference"} <= figures


def test_without_the_plan_or_with_one_network_for_all_there_is_no_frontier_over_inference():
    plan = plan_of(("singlebase", {}), ("single", {}))
    table = [*rows("singlebase"), *rows("single")]
    for known in (None, plan):
        (section,) = frontier_section(table, {}, known)
        (side,) = (node for node in section.body if isinstance(node, Side))
        assert not [each.name for each in side.nodes if "inference" in each.name]
    titles = [column.title for column in frontier_table(frontier(table)).columns]
    assert "networks" not in titles
