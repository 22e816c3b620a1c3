"""Classes and slices come worst first, and in one order wherever they are shown."""

import html
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import compare, worst_first
from dynsnap.predictions import Predictions
from dynsnap.report import comparison_document, to_terminal
from dynsnap.report.document import Table, select, walk
from dynsnap.report.figures import by_class
from tests.gate import made
from tests.report.pages import comparison_page

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


def in_the_terminal(found, name):
    document = select(comparison_document(found, limit=0), "brief")
    tables = (node for node in walk(document.sections) if isinstance(node, Table))
    (table,) = (table for table in tables if table.name == name)
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
    constant = any(group.whole for group in groups_of(found, "slice"))  # which is no slice
    shown = [] if constant else [("slice", found.slices["place"], "slice-table")]
    if truth:
        shown.append(("class", CLASSES, "class-table"))
    for kind, order, table in shown:
        expected = sorted((standing(one), order.index(one.name)) for one in groups_of(found, kind))
        expected = [order[place] for _, place in expected]
        assert in_the_terminal(found, table) == expected
        assert on_the_page(found, table) == expected


def test_a_small_class_that_lost_a_larger_share_comes_first_in_table_and_picture():
    right, lost = (0, 0, 0, 1.0), (0, 0, 1, 1.0)
    found = compared([right] * 5 + [lost] * 3 + [(2, 2, 2, 1.0), (2, 2, 0, 1.0)])
    assert in_the_terminal(found, "class-table") == ["cat", "dog"]
    figure = by_class(worst_first(groups_of(found, "class")), of=5)
    assert figure.rows == (("cat", "1", "0"), ("dog", "3", "0"))
    assert "dog: 3 lost, 0 gained" in figure.description


def test_a_page_on_which_classes_only_gained_does_not_name_a_worst():
    found = compared([(0, 1, 0, 1.0), (2, 2, 2, 1.0)])
    document = select(comparison_document(found), "full")
    (section,) = (one for one in document.sections if one.name == "classes")
    assert not any(name in section.lead for name in CLASSES)


def test_a_share_of_nothing_comes_last():
    groups = [made.group(name, lost=lost) for name, lost in (("a", float("nan")), ("b", 0.0))]
    for given_in in (groups, groups[::-1]):
        assert [group.name for group in worst_first(given_in)] == ["b", "a"]


def test_a_tiny_p_value_is_said_to_be_less():
    found = compared([(0, 0, 1, 1.0)] * 40 + [(0, 0, 0, 1.0)] * 3)
    document = comparison_document(found, limit=0)
    for said in (to_terminal(document), html.unescape(comparison_page(found).html)):
        assert "p < 0.0001" in " ".join(said.split())
        assert "0.0000" in said  # of shares, but of no p-value
        assert "p = 0.0000" not in said
