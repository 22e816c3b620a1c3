"""Classes that come and go are named, whoever reads the rows and however they are split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import report
from dynsnap.comparison import Settings, compare, compare_blocks, to_json
from dynsnap.predictions import Predictions, write
from tests.comparison.made import Blocks

CLASSES = ["ant", "bee", "cat", "dog"]


def said(labels):
    return Predictions(ids=range(len(labels)), classes=CLASSES, labels=labels)


def changes(found):
    return tuple(
        {each.name: each.generation for each in some}
        for some in (found.new_classes, found.dropped_classes)
    )


labels = st.lists(st.integers(0, 3), min_size=5, max_size=5)


@given(st.lists(labels, min_size=2, max_size=4), st.integers(1, 5))
def test_a_class_is_new_or_dropped_by_who_gives_it(columns, step):
    names = [f"g{place}" for place in range(len(columns))]
    known = [set(column) for column in columns]
    new = {
        CLASSES[label]: next(n for n, k in zip(names, known, strict=True) if label in k)
        for label in set().union(*known) - known[0]
    }
    dropped = {
        CLASSES[label]: [n for n, k in zip(names, known, strict=True) if label in k][-1]
        for label in set().union(*known) - known[-1]
    }
    blocks = Blocks(*map(said, columns), step=step, names=names)
    (found,) = compare_blocks(blocks, Settings(resamples=2))
    assert changes(found) == (new, dropped)


def test_scores_of_zero_tell_that_a_class_is_not_known(tmp_path):
    rng = np.random.default_rng(0)
    old, new = rng.random((3000, 4)), rng.random((3000, 4))
    old[:, 2] = 0  # ant, bee and dog
    new[:, 0] = 0
    new[:2500, 3] = 0  # which a few rows would not tell
    made = [
        Predictions(ids=range(3000), classes=CLASSES, scores=s / s.sum(axis=1, keepdims=True))
        for s in (old, new)
    ]
    expected = ({"cat": "new"}, {"ant": "old"})
    assert changes(compare(*made, names=["old", "new"], resamples=2)) == expected
    files = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    for one, file in zip(made, files, strict=True):
        write(one, file)
    found = compare(*files, resamples=2)
    assert changes(found) == expected
    assert to_json(found)["new_classes"] == [{"name": "cat", "generation": "new"}]


@pytest.mark.parametrize("many", [False, True])
def test_every_report_names_them_at_the_top(many):
    classes = [f"c{place:02d}" for place in range(30)]
    old = Predictions(ids=range(30), classes=classes, labels=[0] * 30, truth=range(30))
    new = Predictions(ids=range(30), classes=classes, labels=list(range(30)))
    found = compare(old, new, *([new] if many else []), resamples=2)
    document = report.comparison_document(found)
    (said,) = (warning for warning in document.warnings if "c01" in warning)
    named = [name for name in classes if name in said]
    assert len(named) + 9 == 29  # what is not named is counted
    assert "9" in said
    for shown in (report.to_terminal(document), report.to_markdown(document)):
        assert shown.index("c01") < shown.index("kept")
    assert "c01" in report.to_html(document).partition("<nav")[0]
