"""Inputs on a page: small pictures that any reader of PNG understands, and texts that are text."""

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dynsnap import predictions
from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.report import MOST_BYTES
from dynsnap.report.render.html_table import png_of
from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.comparison.made import generations
from tests.messages import naming
from tests.report.html.reader import read
from tests.report.pages import comparison_page, gate_page

shapes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))


@given(arrays.arrays(np.uint8, shapes))
def test_a_picture_is_read_back_as_it_was(image):
    library = pytest.importorskip("PIL.Image")
    with library.open(io.BytesIO(png_of(image))) as found:
        assert np.array_equal(np.asarray(found).reshape(image.shape), image)


def noise(ids):
    """Pictures that cannot be packed: the largest that a page may have to bear."""
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for name in ids}


@pytest.mark.slow
def test_a_page_with_large_pictures_keeps_its_limit():
    old, new = generations(rows=2000, classes=3)
    found = compare(old, new, resamples=5)
    html = comparison_page(found, excerpts=noise(one.id for one in found.pairs[0].flipped)).html
    assert len(html.encode()) < MOST_BYTES
    shown = read(html)
    assert 10 < len(shown.images) < len(found.pairs[0].flipped)
    assert "Showing" in shown.text


def test_pictures_stand_beside_the_lost_and_the_unstable():
    found = compare(*generations(count=4), resamples=5)
    lost = {one.id for one in found.pairs[-1].flipped}
    unstable = {one.id for one in found.unstable}
    excerpts = {name: np.zeros((2, 2, 1), np.uint8) for name in lost | unstable}
    assert len(read(comparison_page(found, excerpts=excerpts).html).images) == len(lost) + len(
        unstable
    )


def test_texts_are_shown_as_text_and_hostile_ones_too():
    found = compare(*generations(), resamples=5)
    names = [one.id for one in found.pairs[0].flipped]
    excerpts = dict.fromkeys(names, "<script>alert(1)</script>")
    verdict = judge(found, [Rule(metric="churn", at_most=0.99)], min_count=1)
    page = read(gate_page(verdict, found, excerpts=excerpts).html)
    assert page.text.count("<script>alert(1)</script>") == len(names)


def test_without_inputs_there_is_no_column_for_them():
    found = compare(*generations(), resamples=5)
    html = comparison_page(found, excerpts={"someone else": "text"}).html
    table = html[html.index('id="flipped-table"') :]
    assert ">input<" not in table[: table.index("</thead>")]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    file = tmp_path_factory.mktemp("texts") / "texts.csv"
    lines = [f"{name},text of {name}" for name in predictions.read(OLD).ids.tolist()]
    file.write_text("\n".join(["id,text", *lines]) + "\n")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("command", [["compare"], ["gate", "--at-most", "lost=0.9"]])
def test_the_commands_show_inputs_from_a_table(command, texts, tmp_path):
    page = tmp_path / "page.html"
    name, *rules = command
    ran = dynsnap(
        *(name, OLD, NEW, *rules, "-q", "--resamples", "5"),
        *("--html", page, "--inputs", texts),
    )
    assert ran.exit_code == 0, ran.output
    lost = compare(OLD, NEW, resamples=1).pairs[0].flipped
    text = read(page.read_text()).text
    assert all(f"text of {one.id}" in text for one in lost)


def test_inputs_that_are_nowhere_are_refused(tmp_path):
    said = refused(
        *("compare", OLD, NEW, "--resamples", "5"),
        *("--html", tmp_path / "page.html", "--inputs", tmp_path / "nowhere.csv"),
        code=3,
    )
    assert re.search(naming(r"nowhere\.csv", "file, folder or source"), said)
    assert not (tmp_path / "page.html").exists()


def test_inputs_that_nobody_would_see_are_refused(texts):
    said = refused("compare", OLD, NEW, "--inputs", texts, code=2)
    assert re.search(naming("--inputs", "--html"), said)
