"""docs/stabilize.md and one-network.md: code runs, tables are those of the published results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("stabilize.md", "one-network.md")
]
CODE = [code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]


@pytest.mark.parametrize("code", CODE)
def test_the_code_of_the_pages_runs(code, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "docs", "exec"), {})


@pytest.mark.slow
def test_the_table_is_that_of_the_results():
    script = ROOT / "results" / "stabilizing.py"
    found = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
