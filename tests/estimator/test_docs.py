"""The examples in the documentation are run: with less training, and as they stand."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dynsnap.study import MethodLabels, frontier, read_table
from tests.documents import IN_SMALL, blocks, smaller, tables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/estimator.md").read_text(encoding="utf-8")

torch.set_num_threads(1)


@pytest.mark.slow
@pytest.mark.parametrize("size", IN_SMALL)
def test_the_examples_of_the_estimator_s_page_run(size, capsys):
    examples = blocks(PAGE, "python")
    assert len(examples) == 10
    if size == "in small":
        examples[0] = smaller(examples[0], {"epochs=40": "epochs=10", "[1400:]": "[1600:]"})
        examples[1] = smaller(examples[1], {"epochs=12": "epochs=6"})
        examples[4] = smaller(examples[4], {"epochs=20": "epochs=8", "depth=4": "depth=3"})
    names = {}
    for example in examples:
        exec(compile(example, "docs/estimator.md", "exec"), names)
    consistency, scores, weighted, rolled, retrained = capsys.readouterr().out.strip().splitlines()
    assert 0.7 < float(consistency) < 1
    assert float(scores.split()[0]) > 0.8
    assert float(weighted) > 0.7
    assert rolled.startswith("[1, 1, 1, 1, 1, 1, 2, 2]")
    assert retrained == "1 0.25"


def test_its_table_of_retrained_trees_is_that_of_the_results():
    found = {
        one.method: one for one in frontier(read_table(ROOT / "results/digits-trees/table.csv"))
    }
    # Of a retrain, so of consecutive generations alone: the study's table averages all pairs.
    labels = MethodLabels.read(ROOT / "results/digits-trees")
    lost = {
        name: 100 * np.mean([one.mean() for one in labels.values(name, "lost").values()])
        for name in labels.methods
    }
    (table,) = (table for table in tables(PAGE) if "ACC-CON" in table[0])
    for name, *cells in table[1:]:
        one = found[name]
        rows = (*one.accuracies, one.consistency, one.correct_consistency)
        values = [cell.partition(" ± ")[0] for cell in cells[:7]]
        assert values[:5] == [f"{100 * row.value:.1f}" for row in rows]
        assert values[5:] == [f"{lost[name]:.1f}", f"{100 * one.late.value:.1f}"]
        assert float(cells[7]) == one.retrain.value
    assert {name for name, *_ in table[1:]} == {*found} - {"noise-floor", "never-retrain"}
    assert 0.15 < lost["single"] / lost["singlebase"] < 0.19
    assert lost["single"] / lost["single-long"] < 0.25
