"""docs/your-own-loop.md and docs/ecosystem.md: code is run, versions are those installed."""

import contextlib
import importlib.metadata
import re
from pathlib import Path

import pytest
import torch

from tests.cli.studies import dynsnap
from tests.documents import blocks, commands, tables

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "your-own-loop.md").read_text(encoding="utf-8")
BY_HAND = PAGE.partition("## What the keeper does")[0]

torch.set_num_threads(1)


@pytest.mark.slow
def test_the_loop_of_the_page_runs_and_commands_read_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = blocks(BY_HAND, "python")
    names = {}
    for example in examples:
        exec(compile(example, "docs/your-own-loop.md", "exec"), names)
    assert 0 <= float(capsys.readouterr().out) < 0.2
    assert Path("digits.ensemble").exists()
    for command in commands(BY_HAND):
        ended = dynsnap(*command)
        assert ended.exit_code == 0, ended.stderr


def test_the_loop_of_the_page_takes_ten_lines():
    (loop,) = re.findall(r"    for training in .*?    return", blocks(BY_HAND, "python")[1], re.S)
    assert len(loop.splitlines()) <= 10


def parts(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_libraries_are_said_to_be_tried_with_no_later_version_than_is_installed():
    (table,) = tables((DOCS / "ecosystem.md").read_text(encoding="utf-8"))
    seen = set()
    for library, tried, what, page in table[1:]:
        pages = re.findall(r"\(([^)#]*)(?:#[^)]*)?\)", page)
        assert pages and all((DOCS / name).is_file() for name in pages)
        if "`make test-" in what:
            continue  # tried in an environment of its own
        versions = re.findall(r"(?<![\w.])\d+(?:\.\d+)*", tried.partition("(")[0])
        named = dict(zip(library.split(", "), versions, strict=True))
        # Other libraries that take part stand in brackets: (skl2onnx 1.20, onnxscript 0.7).
        named |= dict(re.findall(r"[(,] ?(\w+) (\d+(?:\.\d+)*)", tried + what))
        for each, version in named.items():
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                installed = importlib.metadata.version(each)
                # A later release, of which the page says nothing, is tried by these tests.
                assert parts(installed) >= parts(version), (each, installed)
                seen.add(each)
    assert seen >= {"torch", "lightning", "transformers", "skorch", "keras", "onnx", "onnxruntime"}
    assert seen >= {"skl2onnx", "onnxmltools", "onnxscript"}
