"""A hundred classes: all of them are on the page, and families say where lost answers went."""

import re

import numpy as np
import pytest

from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from dynsnap.report import MOST_BYTES, comparison_document, to_terminal, verdict_document
from dynsnap.report.document import Table, select, walk
from dynsnap.report.figures import rules as drawn_rules
from tests.report.html.reader import read
from tests.report.pages import comparison_page, gate_page

NAMES = [f"class_{place:02}" for place in range(100)]
ROWS = 5000


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    truth = np.arange(ROWS) % 100
    slices = {
        "coarse": [f"family_{label // 5:02}" for label in truth],
        "training rows": ["minority" if label < 9 else "majority" for label in truth],
    }
    said = [
        np.where(rng.random(ROWS) < 0.7, truth, (truth + rng.integers(1, 9, ROWS)) % 100)
        for _ in range(3)
    ]
    return compare(
        *(
            Predictions(ids=range(ROWS), classes=NAMES, labels=labels, truth=truth, slices=slices)
            for labels in said
        ),
        resamples=20,
    )


@pytest.fixture(scope="module")
def excerpts(found):
    """Large pictures of all inputs that a page could show, which leave little room for tables."""
    rng = np.random.default_rng(0)
    ids = {one.id for one in (*found.pairs[-1].flipped, *found.unstable)}
    return {name: rng.integers(0, 256, (32, 32, 3), dtype=np.uint8) for name in ids}


def table_of(html, name):
    start = html.index(f'id="{name}"')
    return html[start : html.index("</table>", start)]


@pytest.mark.slow
def test_every_class_is_on_the_page_though_pictures_take_the_room(found, excerpts):
    page = comparison_page(found, excerpts=excerpts, learned_from=dict.fromkeys(NAMES, 500))
    assert len(page.html.encode()) <= MOST_BYTES
    table = table_of(page.html, "class-table")
    assert all(f">{name}<" in table for name in NAMES)
    assert table.count(">500<") == 100
    assert table.count(">family_07<") == 5
    # The numbers say more than majority and minority do.
    assert "minority" not in table


def test_without_numbers_majority_and_minority_are_told(found):
    table = table_of(comparison_page(found).html, "class-table")
    assert table.count(">minority<") == 9


def test_lost_answers_are_drawn_between_families(found):
    page = comparison_page(found)
    names = [figure.name for figure in page.figures]
    assert "lost-between-coarse" in names
    assert not any("training" in name for name in names)  # two families make no picture
    figure = page.figures[names.index("lost-between-coarse")]
    lost = found.pairs[-1].transitions.lost
    assert f"Of {lost:,} inputs lost" in figure.description
    assert len(figure.rows) == 20
    assert sum(int(cell) for row in figure.rows for cell in row[1:] if cell) == lost


def test_no_row_of_the_picture_of_classes_is_empty_and_its_words_stand_beside_it(found):
    page = comparison_page(found)
    figure = next(figure for figure in page.figures if figure.name == "lost-to")
    assert len(figure.rows) == 12
    assert all(any(row[1:]) for row in figure.rows)
    shown = sum(int(cell) for row in figure.rows for cell in row[1:] if cell)
    lost = found.pairs[-1].transitions.lost
    said = f"{shown:,} of {lost:,} lost inputs"
    assert said in figure.description
    section = page.html[page.html.index('id="answers"') :]
    assert section.index("Lost inputs by coarse") < section.index(said)


@pytest.mark.slow
def test_classes_that_the_picture_has_no_room_for_are_counted_whether_they_changed_or_not(found):
    page = comparison_page(found)
    figure = next(figure for figure in page.figures if figure.name == "classes")
    known = sum(group.kind == "class" for group in found.pairs[-1].groups)
    assert f"and {known - len(figure.rows)} more" in page.html


def test_small_slices_that_lost_a_larger_share_come_first(found):
    table = table_of(comparison_page(found).html, "slice-table-1")
    groups = {one.name: one for one in found.pairs[-1].groups if one.column == "training rows"}
    minority, majority = groups["minority"], groups["majority"]
    assert minority.transitions.lost < majority.transitions.lost
    assert minority.metrics["lost"].value > majority.metrics["lost"].value
    assert table.index(">minority<") < table.index(">majority<")


@pytest.mark.slow
def test_each_column_of_slices_has_a_table_of_its_own(found):
    told = read(comparison_page(found).html).text
    terminal = to_terminal(comparison_document(found))
    for title in ("Slices by coarse", "Slices by training rows"):
        assert title in told and title in terminal
    between = terminal[terminal.index("Where lost answers went, by coarse") :]
    assert f"of {found.pairs[-1].transitions.lost:,} stayed within" in between


@pytest.mark.slow
def test_many_columns_of_slices_do_not_burst_page_or_terminal():
    truth = np.arange(300) % 3
    slices = {f"column {n}": [f"value {(row + n) % 40}" for row in range(300)] for n in range(60)}
    said = [
        Predictions(ids=range(300), classes=list("abc"), labels=x, truth=truth, slices=slices)
        for x in (truth, np.roll(truth, 1))
    ]
    found = compare(*said, resamples=10)
    html = comparison_page(found).html
    assert len(html.encode()) <= MOST_BYTES
    assert "left out" in html
    terminal = to_terminal(comparison_document(found, limit=3))
    assert terminal.count("Slices by column") == 3
    assert re.search(r"\b57 more columns", terminal)
    assert to_terminal(comparison_document(found, limit=0)).count("Slices by column") == 60


@pytest.fixture(scope="module")
def verdict():
    rng = np.random.default_rng(2)
    truth = np.arange(ROWS) % 100
    said = [
        np.where(rng.random(ROWS) < 0.8, truth, (truth + 1) % 100),
        np.where(rng.random(ROWS) < 0.9, truth, (truth + 1) % 100),
    ]
    pair = compare(
        *(Predictions(ids=range(ROWS), classes=NAMES, labels=x, truth=truth) for x in said),
        resamples=20,
    )
    rule = Rule(metric="lost", at_most=0.1, class_name="*")
    return judge(pair, [rule, Rule(metric="consistency", at_least=0.5)]), pair


def checks(verdict, **more):
    document = select(verdict_document(verdict, **more), "brief")
    (table,) = (node for node in walk(document.sections) if isinstance(node, Table))
    return table


def test_a_gate_over_a_hundred_classes_shows_failures_worst_first_and_few_others(verdict):
    judged, _ = verdict
    failed = len(judged.failed)
    assert 1 < failed < 60
    table = checks(judged, limit=5)
    values = [float(row[4].text) for row in table.rows if row[1].text == "failed"]
    assert len(values) == failed
    assert values == sorted(values, reverse=True)
    passed = [float(row[4].text) for row in table.rows[failed:] if row[0].text == "lost"]
    assert len(passed) == 5
    assert passed == sorted(passed, reverse=True)
    assert f"{100 - failed - 5} more" in table.footer
    assert len(checks(judged).rows) == 101


def test_the_picture_of_a_hundred_checks_has_room_for_failures(verdict):
    judged, pair = verdict
    page = gate_page(judged, pair)
    assert "of 101 checks" in page.html
    figure = next(figure for figure in page.figures if figure.name == "rules")
    assert figure.height <= 24 * 80 + 8
    assert " of " not in drawn_rules(judged.outcomes[-1:]).title  # nothing is left out
