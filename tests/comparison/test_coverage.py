"""The benchmark of coverage, in small, and what the page says that it found."""

from pathlib import Path

import pytest
from benchmarks import coverage

from dynsnap.comparison.intervals import BayesianBootstrap
from dynsnap.metrics import catalogue

PAGE = Path(__file__).parents[2] / "docs/benchmarks.md"


@pytest.mark.parametrize("weights", ["none", "σ = 2, dependent"])
def test_every_metric_holds_its_level_in_the_benchmark(weights, monkeypatch):
    monkeypatch.setattr(coverage, "POPULATION", 8 * 1024)
    rows = coverage.population(coverage.FLIPS["rare"], *coverage.WEIGHTS[weights])
    bootstrap = BayesianBootstrap(resamples=80)
    weighted = weights != "none"
    found = coverage.simulate(rows, 30, 150, bootstrap, weighted=weighted)
    ranking = {name for name, entry in catalogue.items() if entry.group == "ranking"}
    assert found.keys() == catalogue.keys() - ranking
    few = coverage.simulate(rows, 100, 30, bootstrap, weighted=weighted, ranked=30)
    assert {name.removesuffix(coverage.OF_A_CLASS) for name in few} == catalogue.keys()
    for name, held in few.items():  # of 30 samples, 4 beyond their intervals are an accident
        assert held.judged, name
        assert held.below + held.above <= 4, name
    for name, held in found.items():
        assert held.judged, name
        if catalogue[name].group == "consistency":
            assert held.coverage >= 0.93, name


def test_the_page_has_every_metric_at_93_percent_or_more():
    part = PAGE.read_text().partition("## Intervals")[2].partition("\n## ")[0]
    lines = [line.split("|") for line in part.splitlines() if line.startswith("| `")]
    # In the order of the catalogue; what joined it since is held by the test above.
    listed = [line[1].strip(" `") for line in lines]
    assert listed == [name for name in catalogue if name in listed]
    assert len(listed) >= 29
    for line in lines:
        cells = [cell.strip() for cell in line[2:-3]]
        assert len(cells) == len(coverage.WEIGHTS)
        for cell in cells:
            found = [float(each) for each in cell.split(" · ")]
            assert len(found) == len(coverage.SIZES)
            assert min(found) >= 93, line[1]


def test_the_page_has_every_classification_and_ranking_metric_at_93_percent_or_more():
    part = PAGE.read_text().partition("## Classification and ranking")[2].partition("\n## ")[0]
    lines = [line.split("|") for line in part.splitlines() if line.startswith("| `")]
    listed = {line[1].strip(" `").removesuffix(coverage.OF_A_CLASS) for line in lines}
    assert listed == {
        name for name, entry in catalogue.items() if entry.group != "consistency" or entry.change_of
    }
    for line in lines:
        cells = [cell.strip() for cell in line[2:-3]]
        assert len(cells) == len(coverage.WEIGHTS)
        for cell in cells:
            found = [float(each) for each in cell.split(" · ")]
            assert len(found) == 2
            assert min(found) >= 93, line[1]
