import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from dynsnap.report import comparison_document, to_terminal, verdict_document
from dynsnap.report.document import Bullets, Cell, Column, Document, Prose, Table
from tests.gate import made
from tests.messages import naming

names = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=12)


def table(*rows, footer="", kinds=()):
    kinds = kinds or ["number"] * (len(rows[0]) - 1)
    heads = (Column(rows[0][0]), *map(Column, rows[0][1:], kinds))
    cells = tuple(tuple(Cell(value) for value in row) for row in rows[1:])
    return Table(name="table", title="A title", columns=heads, rows=cells, footer=footer)


def text(*nodes, **more):
    return to_terminal(Document.of("", *nodes), **more)


def test_every_line_of_a_footer_is_indented():
    drawn = text(table(["a", "b"], ["c", "1"], footer="words " * 8), width=20)
    assert drawn.splitlines()[-3:] == ["  words words words"] * 2 + ["  words words"]


def test_numbers_line_up_under_their_head():
    drawn = text(table(["", "lost", "gained"], ["cat", "0.1", "10.25"], ["a frog", "1.25", "3"]))
    assert drawn.splitlines() == [
        "A title",
        "        lost  gained",
        "────────────────────",
        "cat      0.1   10.25",
        "a frog  1.25       3",
    ]


@given(st.lists(names, min_size=2, max_size=9), st.integers(40, 120))
def test_a_table_that_is_too_wide_is_cut_and_loses_nothing(heads, width):
    rows = [["key", *heads], ["row", *("0.1234" for _ in heads)]]
    drawn = text(table(*rows), width=width)
    assert drawn.count("0.1234") == len(heads)
    assert all(cell_len(line) <= width for line in drawn.splitlines())


def test_columns_that_belong_together_are_not_cut_apart():
    rows = [["key", *["value", "interval"] * 3], ["row", *["0.5000", "[0.4000, 0.6000]"] * 3]]
    drawn = text(table(*rows, kinds=["number", "interval"] * 3), width=60)
    assert drawn.count("row  0.5000  [0.4000, 0.6000]") == 2


@pytest.mark.parametrize("hostile", ["[bold red]x[/]", ":smile:", "[link=http://a]x", "\\[x]", "|"])
def test_markup_in_a_name_is_shown_and_not_obeyed(hostile):
    nodes = (
        Prose(hostile),
        Bullets.of(hostile, [hostile]),
        table([hostile, "n"], [hostile, "1"], footer=hostile),
    )
    document = Document.of(hostile, *nodes)
    assert to_terminal(document).count(hostile) == 7
    assert to_terminal(document, colour=True).count(hostile) == 7


def test_control_characters_never_reach_the_terminal():
    drawn = text(Prose("a\x1b[31mb\nc\u202e"))
    assert drawn == r"a\x1b[31mb\nc\u202e"


@pytest.fixture
def colours(monkeypatch):
    """What the environment says about colours is left aside."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.usefixtures("colours")
def test_colour_is_only_where_it_is_asked_for():
    careful = Prose("Careful.", "bad")
    assert "\x1b" not in text(careful)
    assert "\x1b[1;31mCareful." in text(careful, colour=True)


def test_the_environment_takes_colours_away_and_brings_none(colours):
    careful = Prose("Careful.", "bad")
    colours.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in text(careful)
    colours.setenv("NO_COLOR", "1")
    assert "\x1b[1mCareful." in text(careful, colour=True)  # bold, which is no colour


def test_two_generations_read_from_the_four_cases_down():
    groups = (
        made.group("cat", lost=0.1, gained=0.0, consistency=0.9),
        made.group("frog", lost=0.3, gained=0.0, consistency=0.5),
        made.group("north", kind="slice", column="region", lost=0.2),
        made.group("majority", kind="frequency", column="frequency"),
    )
    pair = made.pair(groups=groups, noise_floor=made.estimates(churn=0.1, lost=0.02))
    found = made.comparison(pair, notes=("Ties go to the first.",))
    drawn = to_terminal(comparison_document(found), width=120)
    lines = [line.replace(",", " ").split() for line in drawn.splitlines()]
    in_order = [
        ("old", "→", "new"),
        ("100", "inputs", "2", "classes;", "0.95"),
        ("0.0413",),  # McNemar's test
        ("0.8500",),  # the new accuracy
        ("lost", "0.0500", "[0.0000", "0.1000]", "5", "0.0200"),
        ("correct", "consistency", "ACC-CON", "0.7000"),
        ("churn", "0.2000", "[0.1500", "0.2500]", "0.1000", "[0.0500", "0.1500]"),
        ("frog", "50", "0.3000"),
        ("cat", "50", "0.1000"),
        ("frog", "cat", "lost", "4"),
        ("north", "50"),
        ("·", "Ties", "go"),
    ]
    start = 0
    for words in in_order:
        places = (place for place in range(start, len(lines)) if set(words) <= set(lines[place]))
        start = next(places, None)
        assert start is not None, (words, drawn)


def three_generations():
    floor = made.estimates(churn=0.125)
    places = [("g1", "g2"), ("g1", "g3"), ("g2", "g3")]
    pairs = [made.pair(old, new, noise_floor=floor) for old, new in places]
    return made.comparison(*pairs, names=("g1", "g2", "g3"))


def test_three_generations_have_matrices_and_averages():
    drawn = to_terminal(comparison_document(three_generations()))
    assert "g1 → g2 → g3" in drawn
    assert "g3  0.7000  0.7000  0.9500" in drawn  # its accuracy on the diagonal
    assert "g2 → g3" in drawn
    assert "0.1250" in drawn


def test_long_breakdowns_are_cut_with_a_count_of_the_rest():
    groups = tuple(made.group(f"class {number:02}", lost=number / 100) for number in range(30))
    comparison = made.comparison(made.pair(groups=groups))
    drawn = to_terminal(comparison_document(comparison, limit=4))
    assert [line[:8] for line in drawn.splitlines() if line.startswith("class 2")] == [
        "class 29",
        "class 28",
        "class 27",
        "class 26",
    ]
    assert "and 26 more" in drawn
    assert (
        to_terminal(comparison_document(comparison, limit=0)).count("\nclass ") == 31
    )  # and the head
    assert "\nclass " not in to_terminal(comparison_document(comparison, by=("slice",)))


@pytest.mark.usefixtures("colours")
def test_partial_overlap_is_said_aloud():
    drawn = to_terminal(comparison_document(made.comparison(missing=(0, 25))), colour=True)
    (line,) = (line for line in drawn.splitlines() if "100" in line and "25 ids" in line)
    assert line.startswith("\x1b[1;31m")


def test_without_truth_there_is_still_a_report():
    pair = made.PairResult(old="old", new="new", metrics=made.estimates(consistency=0.8, churn=0.2))
    bare = tuple(made.GenerationResult(name=name, metrics={}) for name in ("old", "new"))
    comparison = made.comparison(pair, generations=bare, has_truth=False, agreement={})
    drawn = to_terminal(comparison_document(comparison))
    assert "consistency  CON" in drawn and "0.8000" in drawn
    assert "accuracy" not in drawn
    assert "lost" not in drawn


def test_a_verdict_puts_failures_first():
    pair = made.pair(groups=(made.group("cat", lost=0.0),), noise_floor=made.estimates(lost=0.03))
    rules = [
        Rule(metric="accuracy", at_least=0.8, on="bound", confidence=0.95),
        Rule(metric="lost", at_most=0.01, name="no more than before"),
        Rule(metric="lost", at_most=0.01, class_name="*"),
    ]
    drawn = to_terminal(verdict_document(judge(made.comparison(pair), rules)))
    lines = [line for line in drawn.splitlines() if line]
    assert lines[0] == "FAIL: old → new"
    assert "1 of 3" in lines[1] and "100 inputs" in lines[1]
    start = next(place for place, line in enumerate(lines) if "─" in line and "│" not in line) + 1
    outcomes = [line.split()[1] for line in lines[start : start + 4]]
    assert outcomes == ["failed", "passed", "passed", "not"]
    assert "≥ 0.8 at 0.95" in lines[start + 1]
    assert re.search(r"no more than\s+before", drawn)
    assert re.search(naming("class frog: 0 inputs", "fewer than 1"), drawn)


def test_one_thing_is_in_the_singular_and_empty_columns_are_left_out():
    said = Predictions(ids=[7], classes=["a"], labels=["a"])
    assert "1 input, 1 class;" in to_terminal(comparison_document(compare(said, said)))
    regions = {"region": ["north", "south"]}
    said = Predictions(ids=[7, 8], classes=["a"], labels=["a", "a"], slices=regions)
    shown = to_terminal(comparison_document(compare(said, said)), width=100)
    (head,) = (line for line in shown.splitlines() if "inputs" in line and "CON" in line)
    assert head.split() == ["region", "inputs", "CON"]  # no p-value without the truth
