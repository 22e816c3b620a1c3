"""docs/serving.md: its blocks run as they stand, in one process and one folder."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # it loads ONNX and torch, and trains

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def test_the_blocks_of_the_page_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert blocks
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert (tmp_path / "iris.onnx").exists()
