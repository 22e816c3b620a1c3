import re

import pytest

from dynsnap.report import comparison_document, to_markdown
from dynsnap.report.document import Cell, Column, Document, Table
from dynsnap.report.render.markdown import escaped
from tests.gate import made

HOSTILE = "<img src=x onerror=alert(1)>|`x`*b*_i_[l](u)~s~ @team #12 http://a.b www.c.d & $e$"


def test_a_table_is_a_table():
    table = Table(
        name="classes",
        title="Classes",
        columns=(Column(""), Column("lost", "number")),
        rows=((Cell("cat"), Cell("0.1", tone="bad")),),
        footer="and 2 more",
    )
    assert to_markdown(Document.of("", table)) == (
        "### Classes\n\n|  | lost |\n| :--- | ---: |\n| cat | **0.1** |\n\nand 2 more\n"
    )


def test_nothing_in_a_name_is_markdown_or_html():
    words = escaped(HOSTILE)
    without_comments = words.replace("<!-- -->", "")
    assert not re.search(r"(?<!\\)[<>|`*_\[\]~$]", without_comments)
    assert "@team" not in words
    assert "#12" not in words
    assert "http://a" not in words
    assert "www.c" not in words
    assert "& " not in words


@pytest.mark.parametrize("text", ["- a", "+ a", "1. a", "1) a", "# a", "> a", "=== a"])
def test_a_text_that_starts_like_a_block_stays_a_text(text):
    assert re.match(r"\d?\\", escaped(text))


def test_numbers_are_left_alone():
    assert escaped("0.9500") == "0.9500"
    assert escaped("1.5 to 2.5") == "1.5 to 2.5"


def test_line_breaks_in_a_name_stay_in_its_cell():
    table = Table(name="", title="", columns=(Column("a"),), rows=((Cell("x\n| y |"),),))
    assert to_markdown(Document.of("", table)).splitlines()[2] == r"| x\\n\| y \| |"


def test_a_comparison_is_a_page():
    found = made.comparison(made.pair(groups=(made.group("a|b"),)))
    page = to_markdown(comparison_document(found))
    assert page.startswith("## old → new\n")
    assert "| a\\|b | 50 |" in page
    for part in page.split("\n\n"):  # each line of a table has as many cells
        lines = [line.replace("\\|", "") for line in part.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
