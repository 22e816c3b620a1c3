from xml.etree import ElementTree

import pytest

from dynsnap.comparison import compare
from dynsnap.report.figures import Point, Series, chart, png, svg
from dynsnap.report.html import comparison_page
from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.comparison.made import generations


@pytest.fixture(scope="module")
def figures():
    return comparison_page(compare(*generations(count=3), resamples=10)).figures


def test_every_figure_is_an_svg_file_of_its_own(figures):
    assert len(figures) == 6
    for figure in figures:
        root = ElementTree.fromstring(svg(figure))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root[0].text == figure.title
        assert root[1].text == figure.description
        assert "var(--" in svg(figure)
        assert "--ink:#" in svg(figure)


def test_every_figure_is_a_png_file(figures):
    pytest.importorskip("matplotlib")
    for figure in figures:
        assert png(figure, dots_per_inch=50).startswith(b"\x89PNG")


def test_every_figure_has_the_numbers_behind_it(figures):
    for figure in figures:
        assert figure.rows
        assert all(len(row) == len(figure.head) for row in figure.rows)


def test_shapes_stay_within_their_figure(figures):
    for figure in figures:
        for shape in figure.shapes:
            for x in [getattr(shape, "x", None), *(p[0] for p in getattr(shape, "points", ()))]:
                assert x is None or 0 <= x <= figure.width


def test_a_single_point_can_be_drawn():
    one = Series(name="only", points=(Point(x=1, y=0.5),), tone="one")
    made = chart(name="n", title="t", description="d", series=[one], across="x", up="y",
                 logarithmic=True)  # fmt: skip
    ElementTree.fromstring(svg(made))


def test_the_commands_write_pages_and_figures(tmp_path):
    page = tmp_path / "page.html"
    ran = dynsnap("compare", OLD, NEW, "--html", page, "--svg", tmp_path / "figures", "--quiet")
    assert ran.exit_code == 0
    assert ran.output == ""
    assert page.read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "classes.svg",
        "lost-to.svg",
        "transitions.svg",
    ]
    ran = dynsnap("gate", OLD, NEW, "--at-most", "lost=0.001", "--html", page, "--quiet")
    assert ran.exit_code == 1
    assert "FAIL" in page.read_text()
    assert dynsnap("compare", OLD, NEW, "--html", "-").stdout.startswith("<!doctype html>")


def test_without_matplotlib_png_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = refused("compare", "nowhere", "nothing", "--png", tmp_path, code=2)
    assert "dynsnap[report]" in said
