"""Results in consoles and notebooks: short, safe, and the same numbers as everywhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynsnap.comparison import compare
from dynsnap.errors import PlanError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from tests.comparison.made import generations
from tests.documents import blocks
from tests.messages import naming
from tests.report.html.reader import Reader

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found():
    made = generations(rows=300, classes=40, slices={"place": ["x", "y", "z"] * 100})
    return compare(*made, resamples=20)


@pytest.fixture(scope="module")
def verdict(found):
    rules = [
        Rule(metric="lost", at_most=0.001, name="few"),
        Rule(metric="consistency", at_least=0.1, class_name="*", min_count=1, allow_odd=True),
    ]
    return judge(found, rules)


def parsed(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_every_result_fits_a_console(found, verdict):
    many = compare(*generations(count=9, rows=60), resamples=5)
    results = [found, many, verdict, *found.pairs, *found.generations, *found.pairs[0].groups]
    for result in results:
        lines = repr(result).splitlines()
        assert 1 <= len(lines) <= 20
        assert max(map(len, lines)) <= 100
    assert f"{found.pairs[0].metrics['lost'].value:.4f}" in repr(found)
    assert repr(verdict).count("failed") >= len(verdict.failed)


def test_a_notebook_has_tiles_flow_and_the_worst_classes(found, verdict):
    shown = parsed(found._repr_html_())
    pair = found.pairs[0]
    assert f"{pair.metrics['lost'].value:.4f}" in shown.text
    assert "svg" in shown.tags
    worst = max(
        (group for group in pair.groups if group.kind == "class"),
        key=lambda group: group.metrics["lost"].value,
    )
    assert worst.name in shown.text
    assert not shown.ids  # several results may be in one notebook
    assert not shown.scripts
    assert len(found._repr_html_()) < 100_000
    said = parsed(verdict._repr_html_()).text
    assert "few" in said
    assert "FAIL" in said


def test_names_are_text_in_a_notebook_too():
    made = Predictions(
        ids=[1, 2, 3], classes=[HOSTILE, "b"], labels=[0, 1, 0], truth=[0, 0, 1],
        slices={"s": [HOSTILE, "x", "y"]},
    )  # fmt: skip
    other = Predictions(ids=[1, 2, 3], classes=[HOSTILE, "b"], labels=[1, 1, 0])
    found = compare(made, other, resamples=5)
    assert HOSTILE not in found._repr_html_()
    assert HOSTILE in parsed(found._repr_html_()).text
    assert HOSTILE not in found.plot("classes")._repr_svg_()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_the_numbers_of_the_result(found, verdict, library):
    frame = found.to_frame(library=library)
    assert type(frame).__module__.startswith(library)
    pair = found.pairs[0]
    rows = zip(*(frame[name].to_list() for name in ("new", "metric", "value")), strict=True)
    values = {(new, metric): value for new, metric, value in rows}
    assert values[pair.new, "lost"] == pair.metrics["lost"].value
    groups = found.to_frame("groups", library=library)
    assert len(groups) == len(pair.groups)
    assert groups["inputs"].to_list() == [group.inputs for group in pair.groups]
    assert len(found.to_frame("flows", library=library)) == len(pair.flows)
    checks = verdict.to_frame(library=library)
    assert checks["status"].to_list() == [outcome.status for outcome in verdict.outcomes]


def test_wrong_wishes_are_refused(found, tmp_path):
    with pytest.raises(PlanError, match=naming("group", '"groups"')):
        found.to_frame("group")
    with pytest.raises(PlanError, match=naming("arrow", "pandas", "polars")):
        found.to_frame(library="arrow")
    with pytest.raises(PlanError, match=naming("flow", "transitions")):
        found.plot("flow")
    with pytest.raises(PlanError, match=naming(r"\.svg", r"\.png", r"\.gif")):
        found.plot().save(tmp_path / "picture.gif")


@pytest.mark.slow
def test_pages_and_pictures_are_written(found, verdict, tmp_path):
    for result in (found, verdict):
        page = result.to_html(tmp_path / "page.html")
        assert page.read_text().startswith("<!doctype html>")
        assert result.plot().save(tmp_path / "one.svg").read_text().startswith("<?xml")
    assert found.plot("classes").save(tmp_path / "one.png").read_bytes()[1:4] == b"PNG"


def test_a_comparison_loads_no_report_until_it_is_shown():
    code = (
        "import sys, dynsnap; p = dynsnap.Predictions(ids=[1, 2], classes=['a', 'b'], "
        "labels=[0, 1], truth=[0, 0]); c = dynsnap.compare(p, p); repr(c); "
        "assert 'dynsnap.report' not in sys.modules; c._repr_html_(); "
        "assert 'dynsnap.report' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


NOTEBOOK = [
    "import dynsnap\n"
    "one = dynsnap.Predictions(ids=range(6), classes=['cat', 'dog'], labels=[0, 1, 0, 1, 0, 1],\n"
    "                          truth=[0, 1, 0, 1, 1, 1])\n"
    "two = dynsnap.Predictions(ids=range(6), classes=['cat', 'dog'], labels=[0, 0, 0, 1, 1, 1])\n"
    "found = dynsnap.compare(one, two, resamples=20)",
    "found",
    "found.plot()",
    "found.to_frame()",
    "dynsnap.gate.judge(found, dynsnap.gate.Rule(metric='lost', at_most=0.1, min_count=1))",
]


@pytest.mark.slow
def test_a_real_notebook_shows_them():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(code) for code in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=None).execute()
    _, found, picture, frame, verdict = (
        [one.data for one in cell.outputs] for cell in notebook.cells
    )
    assert "lost" in parsed(found[0]["text/html"]).text
    assert len(found[0]["text/plain"].splitlines()) <= 20
    assert picture[0]["image/svg+xml"].startswith("<svg")
    assert "<table" in frame[0]["text/html"]
    assert "FAIL" in parsed(verdict[0]["text/html"]).text


def test_the_notebook_of_the_docs_runs(monkeypatch, tmp_path):
    root = Path(__file__).parents[2]
    page = (root / "docs" / "report.md").read_text(encoding="utf-8")
    monkeypatch.chdir(root)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, "docs/report.md", "exec"), names)
    calls = re.findall(r"`found(\.(?:to_html|to_frame|plot)\([^`]*\))`", page)
    assert len(calls) >= 4
    for call in calls:
        call = call.replace('"page.html"', "page")
        eval(f"found{call}", names | {"page": tmp_path / "page.html"})
    assert (tmp_path / "page.html").is_file()
