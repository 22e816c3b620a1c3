import dataclasses
import re
from pathlib import Path

import pytest

import dynsnap
from dynsnap import report
from dynsnap.comparison import PairedDifference
from dynsnap.report.document import Table, select, walk
from dynsnap.study import HeldAgainst, Row, SweepRow, read_study
from tests.documents import numbers
from tests.messages import naming

STUDIES = Path(dynsnap.__file__).parent / "studies"


def rows(method, values, *, cost=1.0, combinations=("majority", "average")):
    return [
        Row(
            method=method,
            combination=how,
            metric=metric,
            value=value,
            low=value - 0.01,
            high=value + 0.01,
            cost=cost,
        )
        for how in combinations
        for metric, value in zip(
            ("accuracy", "consistency", "correct_consistency"), values, strict=True
        )
    ]


TABLE = [
    *rows("singlebase", (0.85, 0.86, 0.80)),
    *rows("dynsnap-cyc", (0.88, 0.93, 0.86), cost=3.0, combinations=("majority",)),
    *rows("dynsnap-cyc", (0.89, 0.94, 0.87), cost=3.0, combinations=("average",)),
    *rows("noise-floor", (0.84, 0.87, 0.79)),
    *rows("never-retrain", (0.80, 1.0, 0.80), cost=1 / 3),
]


def document_of(table=TABLE, **more):
    return report.study_document(report.StudyFindings(name="A study", rows=table, **more))


def shown(**more):
    return report.to_terminal(document_of(**more))


def table_of(document, name):
    tables = (node for node in walk(document.sections) if isinstance(node, Table))
    (found,) = (table for table in tables if table.name == name)
    return found


def test_a_study_shows_the_papers_metrics_in_percent_with_intervals_and_cost():
    lines = shown().splitlines()
    (line,) = (line for line in lines if line.startswith("dynsnap-cyc") and "AVG" in line)
    assert line.split() == [
        *("dynsnap-cyc", "AVG", "3.0"),
        *("89.00", "[88.00,", "90.00]", "94.00", "[93.00,", "95.00]", "87.00", "[86.00,", "88.00]"),
    ]


def test_the_page_has_every_combination_and_the_terminal_one():
    brief, full = (select(document_of(), level) for level in ("brief", "full"))
    rows = [row[:2] for row in table_of(brief, "methods-table").rows]
    assert [(name.text, how.text) for name, how in rows] == [
        ("singlebase", "all"),
        ("dynsnap-cyc", "AVG"),
    ]
    ways = [row[1].text for row in table_of(full, "methods-table").rows]
    assert ways == ["all", "MV", "AVG", "all", "all"]  # references are in the frontier's table too


def test_combinations_that_agree_are_one_line():
    lines = [line for line in shown().splitlines() if line.startswith("singlebase")]
    assert lines[0].split()[:3] == ["singlebase", "all", "1.0"]


def test_the_noise_floor_and_never_retraining_are_explained():
    notes = shown().partition("Notes")[2]
    assert "noise-floor: " in notes and "13.00 %" in notes
    assert "never-retrain: " in notes


def test_methods_are_judged_only_where_they_were_held_against_a_reference():
    assert "qualif" not in shown()
    gap = PairedDifference(
        value=-0.01, low=-0.03, high=0.01, detectable=0.042, inputs=9, replicates=1
    )
    held = HeldAgainst(
        method="never-retrain",
        role="fresh",
        reference="dynsnap-cyc",
        cost=9.0,
        accuracies={2: gap},
        late=dataclasses.replace(gap, detectable=0.123),
    )
    said = shown(held={"never-retrain": [held]})
    assert "qualif" in said
    assert "4.2 points" in said and "12.3 points" in said  # what the data would have shown


def test_sweeps_show_their_points_with_cost():
    points = [
        SweepRow(sweep="m", over="members", point=point, row=row)
        for point, value in (("1", 0.5), ("20", 0.6))
        for row in rows("x", (value, value, value), combinations=("average",), cost=4.5)
    ]
    text = shown(sweeps=points)
    assert "Sweep: m" in text
    (line,) = (line for line in text.splitlines() if line.startswith("20"))
    assert line.split()[1:3] == ["4.5", "60.00"]


def test_sweeps_show_new_classes_where_the_study_has_some():
    points = [
        SweepRow(sweep="m", over="members", point=point, row=row)
        for point in ("1", "20")
        for row in rows("x", (0.5, 0.6, 0.4), combinations=("average",))
    ]
    assert len(table_of(document_of(sweeps=points), "sweep-m-table").columns) == 5
    late = dataclasses.replace(points[-1].row, metric="late_accuracy", value=0.125)
    some = [*points, dataclasses.replace(points[-1], row=late)]
    table = table_of(document_of(sweeps=some), "sweep-m-table")
    assert [cells[-1].value for cells in table.rows] == [None, 0.125]
    assert len(table.columns) == 6


def test_a_report_of_a_study_can_be_markdown_too():
    assert "| dynsnap-cyc |" in report.to_markdown(document_of())


def test_the_paper_s_tables_4_and_5_are_shown_where_they_were_measured():
    more = {
        "top_2_consistency": 0.97,
        "top_2_accuracy": 0.96,
        "pearson": 0.91,
        "late_accuracy": 0.5,
        "gained_1_2": 0.07,
        "lost_1_2": 0.05,
        "composite_1_2": 0.8,
        "gained_2_3": 0.06,
        "lost_2_3": 0.04,
        "composite_2_3": 0.81,
    }
    table = [
        *TABLE,
        *(
            Row(
                method="dynsnap-cyc",
                combination="average",
                metric=metric,
                value=value,
                cost=3.0,
                seconds=12.34,
            )
            for metric, value in more.items()
        ),
    ]
    document = select(document_of(table), "full")
    four, five = (table_of(document, name) for name in ("further-table", "method-pairs-table"))
    assert [column.title for column in four.columns] == [
        *("method", "by", "κ", "s", "CACC-2", "CCON-2", "Pearson")
    ]
    assert [[cell.text for cell in row] for row in four.rows] == [
        ["dynsnap-cyc", "AVG", "3.0", "12.3", "96.00", "97.00", "91.00"]
    ]
    assert [column.title for column in five.columns][3:] == [
        *("gained 1→2", "lost 1→2", "Com 1→2", "gained 2→3", "lost 2→3", "Com 2→3")
    ]
    values = [cell.text for cell in five.rows[0]][3:]
    assert values == ["7.00", "5.00", "80.00", "6.00", "4.00", "81.00"]


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (0, "0.0"),
        (0.025, "0.025"),
        (0.125, "0.125"),
        (0.25, "0.25"),
        (0.0004, "0.0004"),
        (1 / 3, "0.333"),
        (20, "20.0"),
    ],
)
def test_no_point_of_a_sweep_costs_nothing_by_rounding(cost, said):
    swept = [
        SweepRow(sweep="N", over="snapshots", point="1", row=row)
        for row in rows("dynsnap-cyc", (0.6, 0.7, 0.5), cost=cost, combinations=("average",))
    ]
    part = shown(sweeps=swept).partition("Sweep: N")[2]
    (line,) = (line for line in part.splitlines() if line.startswith("1 "))
    assert line.split()[1] == report.kappa(cost) == said


def test_methods_with_replicates_of_their_own_are_named():
    assert report.said_replicates(1, {"singlebase": 1, "rolling": 1}) == "1 replicate"
    said = report.said_replicates(2, {"singlebase": 3, "rolling": 2, "snapshot": 1})
    assert re.search(naming("^2 replicates", "3 of singlebase", "1 of snapshot"), said)
    assert "rolling" not in said


def test_how_rounds_are_trained_is_said_where_a_study_varies_it():
    plan = read_study(STUDIES / "cifar100-sensitivity.toml")
    assert report.said_windows(plan) == {
        "snapshots": ", windows of 5 epochs",
        "window": ", 5 windows a round",
    }
    said = report.said_rounds(plan)
    every = [
        ("dynsnap-cyc", "10", "20"),
        ("no-schedule", "10", "50"),
        ("no-randomness", "20", "5"),
        ("no-randomness-long", "40", "5"),
        ("dynsnap-cyc-short", "10", "5"),
    ]
    for part, (name, *counts) in zip(re.split(r"\. Others: |; ", said), every, strict=True):
        assert re.search(rf"{name}(?![\w-])", part)
        assert numbers(part) == counts
    assert report.rounds_of(plan) == {
        "dynsnap-cyc": "10 × 20",
        "no-schedule": "10 best of 50",
        "no-randomness": "20 × 5",
        "no-randomness-long": "40 × 5",
        "dynsnap-cyc-short": "10 × 5",
    }
    swept = [SweepRow(sweep="snapshots", over="snapshots", point="5", row=row) for row in TABLE[:3]]
    document = document_of(plan=plan, sweeps=swept)
    said = report.said_windows(plan)["snapshots"]
    assert said in table_of(document, "sweep-snapshots-table").title
    (figure,) = (one for one in report.figures_of(document) if one.name == "sweep-snapshots")
    assert said in figure.title
    assert any(said in getattr(shape, "text", "") for shape in figure.shapes)
    text = " ".join(report.to_terminal(document).replace("·", " ").split())
    assert report.said_rounds(plan) in text


@pytest.mark.parametrize(
    "name", ["cifar100-rolling", "cifar10-rolling", "20news-rolling", "cifar10-distill"]
)
def test_of_rounds_that_are_all_alike_nothing_is_said(name):
    """Whole trainings of bagging and single learners are no other cycles."""
    plan = read_study(STUDIES / f"{name}.toml")
    assert report.said_rounds(plan) == ""
    assert report.said_windows(plan) == {}


def test_of_no_study_nothing_is_said():
    assert report.said_rounds(None) == ""
    assert report.said_windows(None) == report.rounds_of(None) == {}


def test_short_trainings_are_told_of_whatever_their_schedule(tmp_path):
    file = tmp_path / "study.toml"
    few = '[[ablation]]\nname = "few"\nschedule = "step"\nepochs = 12\n'
    file.write_text("[training]\nepochs = 20\n" + few)
    assert report.rounds_of(read_study(file)) == {"dynsnap-cyc": "10 × 2", "few": "10 best of 12"}


def test_of_rounds_that_differ_in_what_is_not_told_nothing_is_said():
    plan = read_study(STUDIES / "digits.toml")
    usual = plan.method("dynsnap-cyc")
    other = dataclasses.replace(usual.recipe, dropout=0.5)
    dropping = dataclasses.replace(usual, name="dropping", recipe=other)
    assert report.said_rounds(dataclasses.replace(plan, methods=(usual, dropping))) == ""


def test_methods_with_equal_rounds_are_named_together(tmp_path):
    file = tmp_path / "study.toml"
    same = '[[ablation]]\nname = "{}"\nsnapshots = 1\nepochs = 20\n'
    file.write_text("[training]\nepochs = 20\n" + same.format("one") + same.format("other"))
    said, others = report.said_rounds(read_study(file)).split("Others: ")
    assert "dynsnap-cyc" in said and numbers(said) == ["10", "2"]
    assert others.startswith("one, other: ") and numbers(others) == ["1", "20"]
