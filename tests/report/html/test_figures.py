import itertools
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import compare
from dynsnap.report import to_png, to_svg
from dynsnap.report.figures import Level, Point, Series, chart, tones
from dynsnap.report.figures._drawing import Dot, Stroke, Text
from dynsnap.report.figures._labels import beside, stacked
from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.comparison.made import generations
from tests.report.pages import comparison_page


@pytest.fixture(scope="module")
def figures():
    return comparison_page(compare(*generations(count=3), resamples=10)).figures


def test_every_figure_is_an_svg_file_of_its_own(figures):
    assert len(figures) == 7
    for figure in figures:
        root = ElementTree.fromstring(to_svg(figure))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root[0].text == figure.title
        assert root[1].text == figure.description
        assert "var(--" in to_svg(figure)
        assert "--ink:#" in to_svg(figure)


def test_every_figure_is_a_png_file(figures):
    pytest.importorskip("matplotlib")
    for figure in figures:
        assert to_png(figure, dots_per_inch=50).startswith(b"\x89PNG")


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
    ElementTree.fromstring(to_svg(made))


def test_the_key_shows_series_and_levels_as_they_are_drawn():
    points = (Point(x=1, y=0.5), Point(x=2, y=0.7))
    series = [
        Series(name="line", points=points, tone="one"),
        Series(name="marks", points=points, tone="two", joined=False),
    ]
    made = chart(name="n", title="t", description="d", series=series, across="x", up="y",
                 levels=[Level(y=0.6, name="level")])  # fmt: skip
    key = [shape for shape in made.shapes if getattr(shape, "y", 0) in (30, 34)]
    assert [type(shape).__name__ for shape in key] == ["Text", "Dot", "Text", "Text"]
    assert [shape.text for shape in key if hasattr(shape, "text")] == ["line", "marks", "level"]
    assert sum(getattr(shape, "dashed", False) for shape in made.shapes) == 2


def test_names_stand_clear_of_intervals_where_there_is_room():
    # The second point's interval runs right of the first point, where its name would stand.
    points = [("first", 100.0, 100.0), ("second", 120.0, 200.0)]
    bounds = (0.0, 0.0, 400.0, 300.0)
    crossing = [(119.0, 50.0, 121.0, 250.0)]
    assert next(beside(points, bounds)).anchor == "start"
    assert next(beside(points, bounds, lines=crossing)).anchor == "end"


def test_names_stay_in_the_picture_even_if_they_cross_an_interval():
    points = [("a name that is rather long", 390.0, 100.0)]
    crossing = [(300.0, 50.0, 302.0, 250.0)]
    (name,) = beside(points, (0.0, 0.0, 400.0, 300.0), lines=crossing)
    assert (name.anchor, name.x) == ("end", 381.0)


def test_a_line_leads_to_a_name_that_had_to_go_far():
    points = [(f"point {number}", 200.0, 150.0 + number / 10) for number in range(12)]
    shapes = list(beside(points, (100.0, 0.0, 300.0, 300.0)))
    texts = [shape for shape in shapes if isinstance(shape, Text)]
    lines = [shape for shape in shapes if isinstance(shape, Stroke)]
    assert len(texts) == len(points) and 0 < len(lines) < len(points)
    assert {line.points[0] for line in lines} <= {(x, y) for _, x, y in points}
    far = [text for text in texts if abs(text.y - 4 - 150.6) > 26]
    assert {line.points[1][1] for line in lines} >= {text.y - 4 for text in far}


@given(st.lists(st.floats(0, 300), min_size=1, max_size=20))
def test_names_beside_the_ends_of_lines_come_in_their_order_and_do_not_touch(heights):
    points = [(str(place), 50.0, y) for place, y in enumerate(heights)]
    texts = list(stacked(points, (0.0, 0.0, 200.0, 300.0)))
    assert [text.text for text in texts] == [
        str(place) for place in np.argsort(heights, kind="stable")
    ]
    assert all(after.y - before.y > 13.99 for before, after in itertools.pairwise(texts))
    assert all(10 < text.y < 297.01 for text in texts)


def test_series_of_one_colour_have_marks_of_different_shapes():
    names = [f"method {number}" for number in range(18)]
    series = [Series(name=name, points=(Point(x=1, y=1),), tone=tone)
              for name, tone in tones(names).items()]  # fmt: skip
    made = chart(name="n", title="t", description="d", series=series, across="x", up="y",
                 named_points=True)  # fmt: skip
    marks = [(shape.tone, shape.shape) for shape in made.shapes if isinstance(shape, Dot)]
    assert len(set(marks)) == 18


def test_generations_are_told_apart_however_long_their_names_are():
    names = [f"a-model-with-a-rather-long-name-{number}" for number in (1, 2, 3)]
    page = comparison_page(compare(*generations(count=3), names=names, resamples=5))
    matrix = next(figure for figure in page.figures if figure.name == "consistency")
    texts = {getattr(shape, "text", "") for shape in matrix.shapes}
    assert {"1", "2", "3"} <= texts


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
