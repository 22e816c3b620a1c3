"""The examples of the page about inputs are run as they stand."""

from pathlib import Path

import pytest
import torch

from tests.documents import blocks

PAGE = (Path(__file__).parents[2] / "docs/inputs.md").read_text(encoding="utf-8")

torch.set_num_threads(1)


@pytest.mark.slow
def test_the_examples_of_the_page_run(capsys):
    names = {}
    for example in blocks(PAGE, "python"):
        exec(compile(example, "docs/inputs.md", "exec"), names)
    trees, refused, inside, around, points = capsys.readouterr().out.strip().splitlines()[:5]
    assert all(float(score) > 0.85 for score in (trees, inside, around))
    assert "'plan'" in refused and "'tariff'" in refused
    assert points == "[0 1 0 1]"
