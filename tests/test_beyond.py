"""The page on rolling ensembles says what the results say."""

import importlib.util
from pathlib import Path

from dynsnap.study import frontier, read_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_tables_of_the_page_are_those_of_the_results():
    spec = importlib.util.spec_from_file_location("beyond", ROOT / "results" / "beyond.py")
    beyond = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(beyond)
    text = beyond.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- end -->") == 5
    assert beyond.filled(text) == text


def test_what_the_page_claims_of_digits_is_in_the_table():
    found = {
        one.method: one for one in frontier(read_table(ROOT / "results/digits-rolling/table.csv"))
    }
    fresh, rolling = found["dynsnap-cyc"], found["rolling"]
    assert rolling.counts
    assert rolling.lost.value < 0.4 * fresh.lost.value
    assert rolling.retrain.value < 0.5 * fresh.retrain.value
    for old, new in zip(fresh.accuracies, rolling.accuracies, strict=True):
        assert new.value >= old.value
    less, more = (f"{100 * one.lost.value:.1f} %" for one in (rolling, fresh))
    assert f"loses {less} of the answers instead of {more}" in README
    assert not found["rolling-silence-counts"].counts
    assert abs(found["rolling-agreement"].consistency.value - rolling.consistency.value) < 0.002


def test_what_the_page_claims_of_20_newsgroups_is_in_the_table():
    found = {
        one.method: one for one in frontier(read_table(ROOT / "results/20news-rolling/table.csv"))
    }
    fresh, rolling = found["dynsnap-cyc"], found["rolling"]
    assert not rolling.counts and not found["rolling-0.5"].counts
    assert rolling.lost.value < 0.55 * fresh.lost.value
    assert rolling.retrain.value < 0.34 * fresh.retrain.value
