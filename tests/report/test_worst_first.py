"""Classes and slices come worst first, and in one order wherever they are shown."""

import html
import re

import numpy as np
from dynsnap.report.html import comparison_page
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import compare, worst_first
from dynsnap.predictions import Predictions
from dynsnap.report import Table, comparison_report, text
from dynsnap.report.figures import by_class
from tests.gate import made

CLASSES = ["dog", "ant", "cat", "bee", "elk"]  # not in the order of the alphabet


def compared(rows, *, truth=True):
    """Rows are the true class, the old label, the new one, and the weight."""
    true, old, new, weights = (np.array(column) for column in zip(*rows, strict=True))
    shared = {
        "ids": range(len(rows)),
        "classes": CLASSES,
        "truth": true if truth else None,
        "weights": weights,
        "slices": {"place": [CLASSES[label] for label in true]},
    }
    return compare(*(Predictions(labels=said, **shared) for said in (old, new)), resamples=2)


def groups_of(found, kind):
    return [group for group in found.pairs[0].groups if group.kind == kind]


def standing(group):
    """The smaller the worse."""
    lost = group.metrics.get("lost")
    return group.metrics["consistency"].value if lost is None else -lost.value


def in_the_terminal(found, title):
    tables = [block for block in comparison_report(found, limit=0) if isinstance(block, Table)]
    (table,) = (table for table in tables if table.title == title)
    return [row[0].text for row in table.rows]


def on_the_page(found, name):
    page = comparison_page(found).html
    start = page.index(f'id="{name}"')
    body = page[page.index("<tbody", start) : page.index("</table>", start)]
    return re.findall(r"<th[^>]*>(?:<[^>]*>)*([^<]+)<", body)


labels = st.integers(0, len(CLASSES) - 1)
rows = st.lists(
    st.tuples(labels, labels, labels, st.sampled_from([0.5, 1.0])), min_size=2, max_size=40
)


@given(rows, st.booleans())
def test_terminal_and_page_have_one_order_and_equals_stay_in_that_of_the_classes(rows, truth):
    found = compared(rows, truth=truth)
    shown = [("slice", found.slices["place"], "Slices by place, worst first", "slice-table")]
    if truth:
        shown.append(("class", CLASSES, "Classes, worst first", "class-table"))
    for kind, order, title, table in shown:
        expected = sorted((standing(one), order.index(one.name)) for one in groups_of(found, kind))
        expected = [order[place] for _, place in expected]
        assert in_the_terminal(found, title) == expected
        assert on_the_page(found, table) == expected


def test_a_small_class_that_lost_a_larger_share_comes_first_but_is_drawn_where_its_inputs_are():
    right, lost = (0, 0, 0, 1.0), (0, 0, 1, 1.0)
    found = compared([right] * 5 + [lost] * 3 + [(2, 2, 2, 1.0), (2, 2, 0, 1.0)])
    assert in_the_terminal(found, "Classes, worst first") == ["cat", "dog"]
    page = comparison_page(found)
    assert "Largest share lost first: 1 of 2 inputs of class cat." in page.html
    figure = by_class(groups_of(found, "class"), of=5)
    assert figure.rows == (("dog", "3", "0"), ("cat", "1", "0"))
    assert figure.description == (
        "The 2 classes that lost most inputs, most first. "
        "The class that lost most is dog: 3 lost, 0 gained."
    )


def test_a_page_on_which_classes_only_gained_does_not_name_a_worst():
    found = compared([(0, 1, 0, 1.0), (2, 2, 2, 1.0)])
    assert "No class lost an input." in comparison_page(found).html


def test_a_share_of_nothing_comes_last():
    groups = [made.group(name, lost=lost) for name, lost in (("a", float("nan")), ("b", 0.0))]
    for given_in in (groups, groups[::-1]):
        assert [group.name for group in worst_first(given_in)] == ["b", "a"]


def test_a_tiny_p_value_is_said_to_be_less():
    found = compared([(0, 0, 1, 1.0)] * 40 + [(0, 0, 0, 1.0)] * 3)
    said = "McNemar's exact test of lost against gained: p {} 0.0001"
    assert said.format("<") in text(comparison_report(found, limit=0))
    page = html.unescape(comparison_page(found).html)
    assert said.format("<") in page
