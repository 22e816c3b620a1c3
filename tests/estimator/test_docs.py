"""The examples in the documentation are run as they stand."""

import re
from pathlib import Path

import torch

DOCS = Path(__file__).parents[2] / "docs" / "estimator.md"

torch.set_num_threads(1)


def test_the_examples_of_the_estimator_s_page_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 7
    names = {}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    consistency, scores, rolled = capsys.readouterr().out.strip().splitlines()
    assert 0.7 < float(consistency) < 1
    assert float(scores.split()[0]) > 0.8
    assert rolled.startswith("[1, 1, 1, 1, 1, 1, 2, 2]")
