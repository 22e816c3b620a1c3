"""The sentences about serving follow from the table that was measured."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def serving():
    found = importlib.util.spec_from_file_location("serving", ROOT / "benchmarks" / "serving.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def marked(serving, name):
    return serving.MARKED.search((ROOT / "docs" / name).read_text("utf-8"))[2]


def test_the_pages_say_what_the_table_has(serving):
    both = marked(serving, "benchmarks.md")
    expected = serving.sentences(both, float(serving.GROUPED.search(both)[1]))
    assert both.endswith(expected["benchmarks.md"])
    assert marked(serving, "serving.md") == expected["serving.md"]


def test_ratios_are_those_of_the_numbers(serving):
    times = {"single": (2, 20), "module": (1, 10), "ensemble": (40, 400)}
    times |= {"stacked": (2.5, 370), "onnx": (0.5, 60)}
    table = "\n".join(
        f"| {words} | {times[kind][0]} | {times[kind][1]} | 0 | 0 | 0 | 0 of 9 |"
        for kind, words in serving.KINDS.items()
    )
    assert serving.calls_of(table) == times
    one, many, target, grouped = serving.sentences(table, 3.14)["benchmarks.md"].splitlines()
    assert all(ratio in one for ratio in ("2.5 times", "0.5 times", "20 times"))
    assert all(ratio in many for ratio in ("37 times", "6.0 times", "20 times"))
    met, missed = target.split("missed")
    assert met.count("one input") == 2 and missed.count("256 inputs") == 2
    assert "3.1 times" in grouped
