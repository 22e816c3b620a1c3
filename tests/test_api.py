"""docs/api.md: its example runs, and every name that it documents exists."""

import importlib
import re
from pathlib import Path

import pytest

from tests.documents import blocks

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/api.md", "exec"), names)
    assert 0 <= names["comparison"].pairs[0].metrics["lost"].value <= 1


@pytest.mark.parametrize("name", re.findall(r"^::: (\S+)$", PAGE, flags=re.MULTILINE))
def test_a_documented_name_is_public_and_documented(name):
    module, _, last = name.rpartition(".")
    assert last in importlib.import_module(module).__all__
    assert getattr(importlib.import_module(module), last).__doc__
