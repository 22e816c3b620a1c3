"""The contract of renderers: each takes every kind of node, escapes all texts, and shows the same
numbers."""

import dataclasses
import re
import typing
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import report
from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.report import document as nodes_module
from dynsnap.report.document import (
    Bullets,
    Cell,
    Column,
    Document,
    Prose,
    Section,
    Side,
    Table,
    Tile,
    Tiles,
    select,
    walk,
)
from dynsnap.report.render.markdown import escaped
from tests.comparison.made import generations
from tests.report import nodes
from tests.report.html.reader import read
from tests.report.html.test_study_page import findings

HOSTILE = "<script>a|b*c*</script>[bold]\x1b[31m\u202e&amp;@team"
TEXT = {
    "terminal": lambda document, **more: report.to_terminal(document, width=300, **more),
    "markdown": report.to_markdown,
    "html": report.to_html,
}


@pytest.mark.parametrize("place", range(len(nodes.nodes())))
@pytest.mark.parametrize("render", TEXT.values(), ids=TEXT)
def test_every_renderer_shows_every_kind_of_node(render, place):
    node = nodes.nodes("something")[place]
    # A list leads to a section, which is there.
    document = Document(title="", sections=(Section(name="whole", title="", body=(node,)),))
    said = render(document)
    assert "something" in said
    if render is report.to_html:
        read(said)


def test_junit_has_a_case_for_each_check():
    (suite,) = ElementTree.fromstring(report.to_junit(nodes.whole()).encode())
    assert [case[0].tag for case in suite.iter("testcase")] == ["system-out", "failure", "skipped"]


@pytest.mark.parametrize("render", [report.to_svg, report.to_png])
def test_every_figure_is_drawn(render):
    if render is report.to_png:
        pytest.importorskip("matplotlib")
    for figure in nodes.figures():
        assert render(figure)


def test_every_node_is_frozen_and_says_who_shows_it():
    for kind in typing.get_args(nodes_module.Node):
        assert kind.__dataclass_params__.frozen
        assert "detail" in {one.name for one in dataclasses.fields(kind)}


def test_all_escaping_is_in_the_renderers():
    document = nodes.whole(HOSTILE)
    page = report.to_html(document)
    found = read(page)
    assert "<script>a" not in page
    assert found.scripts == 1
    plain = report.to_terminal(document, width=200)
    assert "\x1b" not in plain and "\u202e" not in plain
    assert "<script>a|b*c*</script>[bold]" in plain  # shown, not obeyed
    markdown = report.to_markdown(document)
    bare = markdown.replace(escaped(HOSTILE), "").replace("    " + HOSTILE, "")
    assert "script" not in re.sub(r"^    .*$", "", bare, flags=re.M)
    ElementTree.fromstring(report.to_junit(document).encode())
    for figure in nodes.figures(HOSTILE):
        ElementTree.fromstring(report.to_svg(figure))


@given(st.text(max_size=20))
def test_whatever_a_text_is_every_renderer_takes_it(text):
    document = nodes.whole(text)
    read(report.to_html(document))
    report.to_terminal(document)
    report.to_markdown(document)
    ElementTree.fromstring(report.to_junit(document).encode("utf-8", "strict"))


def built():
    two = compare(*generations(slices={"place": ["north", "south"] * 100}), resamples=20)
    yield "comparison", report.comparison_document(two, limit=0)
    yield "many", report.comparison_document(compare(*generations(count=4), resamples=20), limit=0)
    rules = [Rule(metric="lost", at_most=0.001), Rule(metric="consistency", at_least=0.1)]
    yield "verdict", report.verdict_document(judge(two, rules), two)
    yield "study", report.study_document(findings())


@pytest.mark.parametrize(("name", "document"), list(built()), ids=[name for name, _ in built()])
def test_terminal_markdown_and_page_have_the_same_numbers(name, document):
    """What all three show is in all three, digit by digit."""
    brief, full = (dict(shown(select(document, level))) for level in ("brief", "full"))
    both = brief.keys() & full.keys()
    assert any(both)
    terminal, markdown, page = (render(document) for render in TEXT.values())
    page = read(page).text
    markdown = markdown.replace("**", "").replace("\\", "")
    for key in both:
        assert brief[key] == full[key]
        for said in (terminal, markdown, page):
            assert brief[key] in said


def shown(document):
    """Every number of a document, by where it stands; nothing where that is not told apart."""
    for node in walk(document.sections):
        if isinstance(node, Table):
            for row in () if node.folded else node.rows:  # the terminal only names folded ones
                for place, (column, cell) in enumerate(zip(node.columns, row, strict=True)):
                    if column.kind == "number" and place:
                        keys = "".join(each.text for each in row[:2])
                        yield (node.name, keys, column.title, column.meaning), cell.text
        elif isinstance(node, Tiles):
            for tile in node.tiles:
                yield (node.title, tile.name), f"{tile.estimate.value:.4f}"


def test_a_level_has_its_own_nodes_columns_rows_and_tiles():
    estimate = nodes.ESTIMATE
    table = Table(
        name="t",
        title="",
        columns=(Column("a"), Column("b", detail="full"), Column("c", detail="brief"), Column("d")),
        rows=tuple((Cell(f"row {i}"), Cell("b"), Cell("c"), Cell()) for i in range(5)),
        full_rows=frozenset({0}),
        brief_rows=2,
        footer="whole",
        brief_footer="part",
    )
    body = (
        Prose("brief", detail="brief"),
        Side((Prose("full", detail="full"),)),
        table,
        Tiles(tiles=(Tile(name="x", estimate=estimate, detail="full"),)),
        Bullets.of("both", ["item"]),
    )
    document = Document.of("", *body)
    (brief,), (full,) = (select(document, level).sections for level in ("brief", "full"))
    assert [type(node) for node in brief.body] == [Prose, Side, Table, Tiles, Bullets]
    assert brief.body[1].nodes == () and len(full.body[0].nodes) == 1
    cut, entire = brief.body[2], full.body[1]
    assert [column.title for column in cut.columns] == ["a", "c"]
    assert [row[0].text for row in cut.rows] == ["row 1", "row 2"]
    assert cut.footer == "and 2 more; part"
    assert [column.title for column in entire.columns] == ["a", "b"]  # "d" is empty
    assert len(entire.rows) == 5 and entire.footer == "whole"
    assert brief.body[3].tiles == () and len(full.body[2].tiles) == 1
