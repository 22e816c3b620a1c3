"""The examples in the documentation are run: with less training, and as they stand."""

from pathlib import Path

import pytest
import torch

from tests.documents import IN_SMALL, blocks, smaller

PAGE = (Path(__file__).parents[2] / "docs/estimator.md").read_text(encoding="utf-8")

torch.set_num_threads(1)


@pytest.mark.parametrize("size", IN_SMALL)
def test_the_examples_of_the_estimator_s_page_run(size, capsys):
    examples = blocks(PAGE, "python")
    assert len(examples) == 7
    if size == "in small":
        examples[0] = smaller(examples[0], {"epochs=40": "epochs=10", "[1400:]": "[1600:]"})
        examples[1] = smaller(examples[1], {"epochs=12": "epochs=6"})
        examples[2] = smaller(examples[2], {"epochs=20": "epochs=8", "depth=4": "depth=3"})
    names = {}
    for example in examples:
        exec(compile(example, "docs/estimator.md", "exec"), names)
    consistency, scores, rolled = capsys.readouterr().out.strip().splitlines()
    assert 0.7 < float(consistency) < 1
    assert float(scores.split()[0]) > 0.8
    assert rolled.startswith("[1, 1, 1, 1, 1, 1, 2, 2]")
