import re

import pytest
from dynsnap.report._markdown import escaped

from dynsnap.report import (
    Bullets,
    Cell,
    Column,
    Heading,
    Paragraph,
    Table,
    comparison_report,
    markdown,
)
from tests.gate import made

HOSTILE = "<img src=x onerror=alert(1)>|`x`*b*_i_[l](u)~s~ @team #12 http://a.b www.c.d & $e$"


def test_a_table_is_a_table():
    table = Table(
        title="Classes",
        columns=(Column(""), Column("lost", numeric=True)),
        rows=((Cell("cat"), Cell("0.1", "bad")),),
        footer="and 2 more",
    )
    assert markdown((table,)) == (
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


def test_every_block_escapes_what_it_holds():
    table = Table(
        title=HOSTILE, columns=(Column(HOSTILE),), rows=((Cell(HOSTILE),),), footer=HOSTILE
    )
    page = markdown((Heading(HOSTILE), Paragraph(HOSTILE), Bullets(HOSTILE, (HOSTILE,)), table))
    assert "<img" not in page.replace("\\<img", "")
    assert page.count(escaped(HOSTILE)) == 8


def test_line_breaks_in_a_name_stay_in_its_cell():
    table = Table(title="", columns=(Column("a"),), rows=((Cell("x\n| y |"),),))
    assert markdown((table,)).splitlines()[2] == r"| x\\n\| y \| |"


def test_a_comparison_is_a_page():
    page = markdown(comparison_report(made.comparison(made.pair(groups=(made.group("a|b"),)))))
    assert page.startswith("## old → new\n")
    assert "| a\\|b | 50 |" in page
    widths = {line.replace("\\|", "").count("|") for line in page.splitlines() if "CtoC" in line}
    assert widths <= {7, 5}
