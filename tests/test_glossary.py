"""docs/glossary.md defines every metric of the catalogue, and its examples are right."""

import re
from pathlib import Path

import pytest

from dynsnap.metrics import aliases, catalogue, metric
from tests.documents import blocks

PAGE = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]]
}


@pytest.fixture(scope="module")
def measured():
    names = {}
    (example,) = blocks(PAGE, "python")
    exec(compile(example, "docs/glossary.md", "exec"), names)
    found = names["comparison"]
    of_class = next(group for group in found.pairs[0].groups if group.name == "dog").metrics
    whole = found.generations[-1].metrics | found.pairs[0].metrics | found.agreement
    return {**of_class, **whole}


def test_the_glossary_has_every_metric():
    assert list(ROWS) == list(catalogue)


@pytest.mark.parametrize("name", catalogue)
def test_the_example_of_a_metric_is_what_is_measured(name, measured):
    symbol, _, _, example = ROWS[name]
    assert symbol == metric(name).symbol
    assert float(example) == pytest.approx(measured[name].value, abs=5e-5)


@pytest.mark.parametrize("alias", aliases)
def test_the_glossary_names_every_alias_that_rules_accept(alias):
    assert f"`{alias}`" in ROWS[aliases[alias]][1]


@pytest.mark.parametrize("short", ["nfr", "pfr", "btc", "bec", "ece"])
def test_the_glossary_names_the_short_forms_that_rules_accept(short):
    symbol, synonyms, _, _ = ROWS[aliases[short]]
    assert re.search(rf"\b{short.upper()}\b", f"{symbol} {synonyms}")
