"""Every task from files to report, page, JSON, flips and gate, as a user runs it."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from dynsnap.cli import cli
from tests.tasks import files


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.mark.parametrize("kind", files.COMMANDS)
def test_compare_writes_everything(kind, tmp_path):
    pair = files.pair(tmp_path, kind)
    outputs = {
        "--json": tmp_path / "found.json",
        "--html": tmp_path / "page.html",
        "--markdown": tmp_path / "found.md",
        "--flips": tmp_path / "flips.parquet",
        "--svg": tmp_path / "figures",
    }
    wanted = [word for option, path in outputs.items() for word in (option, path)]
    done = run("compare", *pair, *files.COMMANDS[kind], *wanted, "--resamples", 40)
    assert done.exit_code == 0, done.output
    assert "lost" in done.output and "region" in done.output
    found = json.loads(outputs["--json"].read_text())
    names = {"binary": "classification", "repeated": "graded"}
    assert found["task"] == names.get(kind, kind)
    transitions = found["pairs"][0]["transitions"]
    assert sum(transitions.values()) == files.ROWS
    flips = pq.read_table(outputs["--flips"]).to_pydict()
    assert {"id", "kind", "old_label", "new_label", "weight", "slice:region"} <= set(flips)
    if kind != "repeated":  # there, cases are expectations
        for case in ("lost", "gained"):
            assert flips["kind"].count(case) == transitions[case]
    assert (found["pairs"][0]["noise_floor"] is not None) == (kind == "repeated")
    page = outputs["--html"].read_text()
    assert "<html" in page[:200].lower()
    assert ('id="answers"' in page) == (kind == "binary")  # where labels went


@pytest.mark.parametrize("kind", files.COMMANDS)
def test_a_gate_passes_and_fails_on_the_whole_and_on_slices(kind, tmp_path):
    pair = files.pair(tmp_path, kind, weights=False)
    rules = tmp_path / "gate.toml"
    text = (
        '[[rule]]\nmetric = "lost"\nat_most = {0}\nmin_count = 10\nallow_odd = true\n'
        '[[rule]]\nmetric = "lost"\nat_most = {0}\nslice = {{column = "region", value = "*"}}\n'
        "min_count = 5\nallow_odd = true\n"
        '[[rule]]\nmetric = "accuracy"\nat_least = 0.01\non = "bound"\nmin_count = 10\n'
        "allow_odd = true\n"
    )
    for threshold, code in ((0.9, 0), (0.0001, 1)):
        rules.write_text(text.format(threshold))
        page = tmp_path / "gate.html"
        done = run(
            "gate",
            *pair,
            *files.COMMANDS[kind],
            "--rules",
            rules,
            "--html",
            page,
            "--resamples",
            40,
        )
        assert done.exit_code == code, done.output
        assert "region = north" in done.output
        assert page.stat().st_size > 1000


def test_a_gate_judges_labels_and_the_metrics_of_a_task(tmp_path):
    sets = files.pair(tmp_path, "multilabel", weights=False)
    rules = tmp_path / "gate.toml"
    rules.write_text(
        '[[rule]]\nmetric = "lost"\nat_most = 0.6\nclass = "*"\n'
        '[[rule]]\nmetric = "jaccard_accuracy"\nat_least = 0.1\nclass = "a"\nmin_count = 5\n'
    )
    done = run("gate", *sets, "--task", "multilabel", "--rules", rules, "--resamples", 40)
    assert done.exit_code == 0, done.output
    assert "class c" in done.output
    numbers = files.pair(tmp_path, "regression", weights=False)
    for threshold, code in ((2, 0), (0.01, 1)):
        rule = f"mean_absolute_change={threshold}"
        done = run("gate", *numbers, *files.COMMANDS["regression"], "--at-most", rule)
        assert done.exit_code == code, done.output


def test_three_generations_and_a_twin(tmp_path):
    paths = [
        files.write(tmp_path / f"{name}.csv", files.rows_of("regression", seed))
        for seed, name in enumerate(("one", "two", "three", "twin"))
    ]
    out = tmp_path / "found.json"
    done = run(
        "compare",
        *paths[:3],
        *files.COMMANDS["regression"],
        *("--noise-floor", paths[3], "--json", out, "--html", tmp_path / "page.html"),
        *("--resamples", 40),
    )
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert len(found["pairs"]) == 3 and found["restless"]
    assert found["pairs"][0]["noise_floor"]["mean_absolute_change"]["value"] > 0


def test_without_truth_answers_agree_or_not(tmp_path):
    pair = []
    for path, seed in zip(("old.csv", "new.csv"), (1, 2), strict=True):
        rows = files.rows_of("multilabel", seed)
        pair.append(
            files.write(tmp_path / path, [{"id": r["id"], "label": r["label"]} for r in rows])
        )
    out = tmp_path / "found.json"
    done = run(
        "compare", *pair, "--task", "multilabel", "--json", out, "--html", tmp_path / "p.html"
    )
    assert done.exit_code == 0, done.output
    (found,) = json.loads(out.read_text())["pairs"]
    assert found["transitions"] is None and "jaccard_consistency" in found["metrics"]
    assert {group["name"] for group in found["groups"]} == {"a", "b", "c"}
