"""Columns are named once, tables hold several models, and some rows have no truth."""

import json
import re

import polars as pl
import pytest

from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.messages import naming

LABELS = {"v1": ["cat", "dog"] * 30, "v2": ["cat", "dog"] * 27 + ["dog", "cat"] * 3}
NAMES = {"id": "image", "truth": "y", "label": "said"}
OPTIONS = ("--id-column", "image", "--truth-column", "y", "--label-column", "said")


@pytest.fixture(params=["csv", "tsv", "jsonl", "parquet"])
def files(request, tmp_path, monkeypatch):
    """Two files with columns of other names, one of them with gaps in the truth."""
    monkeypatch.chdir(tmp_path)
    truth = [None if place % 10 == 0 else name for place, name in enumerate(["cat", "dog"] * 30)]
    common = {"image": range(60), "y": truth}
    for name, labels in LABELS.items():
        save(pl.DataFrame(common | {"said": labels}), tmp_path / f"{name}.{request.param}")
    save(pl.DataFrame(common | LABELS), tmp_path / f"wide.{request.param}")
    long = [pl.DataFrame(common | {"said": labels, "m": [name] * 60}) for name, labels in
            LABELS.items()]  # fmt: skip
    save(pl.concat(long), tmp_path / f"long.{request.param}")
    return tmp_path, request.param


def save(frame, path):
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


def compared(*arguments):
    found = dynsnap("compare", *arguments, "-q", "--json", "found.json", "--resamples", "50")
    assert found.exit_code == 0, found.output
    with open("found.json") as file:  # noqa: PTH123
        result = json.load(file)
    return result["unlabelled"], result["pairs"][0]["transitions"]


@pytest.mark.slow
def test_every_way_to_name_columns_gives_the_same(files):
    folder, ending = files
    pair = (f"v1.{ending}", f"v2.{ending}")
    expected = (6, {"kept": 48, "gained": 0, "lost": 6, "never": 0})
    assert compared(*pair, *OPTIONS) == expected
    assert compared(f"wide.{ending}", *OPTIONS[:4], "--label-columns", "v1,v2") == expected
    assert compared(f"long.{ending}", *OPTIONS, "--model-column", "m") == expected
    named = "\n".join(f'{role} = "{name}"' for role, name in NAMES.items())
    (folder / "pyproject.toml").write_text(f"[tool.dynsnap.columns]\n{named}\n")
    assert compared(*pair) == expected
    (folder / "pyproject.toml").write_text('[tool.dynsnap.columns]\nid = "another"\n')
    assert compared(*pair, *OPTIONS) == expected  # an option goes before the project
    (folder / "gate.toml").write_text(
        f'[columns]\n{named}\n[[rule]]\nmetric = "lost"\nat_most = 0.2\n'
    )
    rules = ("--rules", "gate.toml", "-q")
    assert dynsnap("gate", *pair, *rules, "--allow-unlabelled", "0.1").exit_code == 0
    message = refused("gate", *pair, *rules, code=3)
    assert re.search(naming("6", "60", "--allow-unlabelled 0.1"), message)
    gate = ("gate", f"wide.{ending}", *OPTIONS[:4], "--label-columns", "v1,v2", "-q")
    assert dynsnap(*gate, "--at-most", "lost=0.05", "--allow-unlabelled", "0.5").exit_code == 1


@pytest.mark.slow
def test_flips_are_written_in_every_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, labels in LABELS.items():
        scores = {"score:cat": [0.9 if label == "cat" else 0.1 for label in labels]}
        scores["score:dog"] = [1 - score for score in scores["score:cat"]]
        truth = {"truth": [None, *["cat"] * 59]}
        save(pl.DataFrame({"id": range(60), **truth, **scores}), tmp_path / f"{name}.csv")
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}
    read["tsv"] = lambda file: pl.read_csv(file, separator="\t")
    for ending, reader in read.items():
        done = dynsnap("compare", "v1.csv", "v2.csv", "-q", "--flips", f"f.{ending}")
        assert done.exit_code == 0, done.output
        found = reader(f"f.{ending}")
        assert found["id"].to_list() == list(range(54, 60))
        assert set(found["kind"].cast(pl.String)) == {"lost", "gained"}
        assert "old_scores" in found.columns or "old_score:cat" in found.columns


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ('ids = "x"', ("ids", "id")),
        ("id = 3", ("id", "3")),
        ('labels = "v1"', ("labels", "v1")),
        ('id = "x"\ntruth = "x"', ('"x"', "`id`", "`truth`")),
    ],
)
def test_a_table_of_columns_that_makes_no_sense_is_refused(table, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.dynsnap.columns]\n{table}\n")
    (tmp_path / "rules.toml").write_text(
        f'[columns]\n{table}\n[[rule]]\nmetric = "churn"\nat_most = 0.5\n'
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("id,label\n1,a\n2,b\n")
    for command in (("compare",), ("gate", "--at-most", "churn=0.5")):
        message = refused(command[0], "a.csv", "b.csv", *command[1:], code=2)
        assert all(part in message for part in named)
    (tmp_path / "pyproject.toml").unlink()
    message = refused("gate", "a.csv", "b.csv", "--rules", "rules.toml", code=2)
    assert all(part in message for part in named)


def test_a_table_of_models_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,label\n1,a\n2,b\n")
    assert "model" in refused("compare", "a.csv", "--model-column", "model", code=3)
    assert "--model-column" in refused("compare", "a.csv", code=2)
    assert "--label-columns" in refused("gate", "a.csv", "--at-most", "churn=0.5", code=2)
    both = ("--model-column", "label", "--label-columns", "label,id")
    assert refused("compare", "a.csv", *both, code=2)
    for labels in ("v1,label", "v1,v1"):
        message = refused("compare", "a.csv", "--label-columns", labels, code=2)
        assert re.search(naming(f'"{labels[3:]}"', "`labels`"), message)


def test_a_column_of_predictions_may_hold_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,prediction\n1,a\n2,b\n")
    found = refused("compare", "a.csv", "a.csv", code=3)
    assert re.search(naming("--label-column prediction", "--task regression"), found)


def test_only_commands_that_use_a_column_have_an_option_for_it():
    for command in (["stabilize"], ["watch"], ["baseline", "set"]):
        options = dynsnap(*command, "--help").stdout
        assert "--label-column " in options
        assert "--label-columns" not in options and "--model-column" not in options
        assert ("--score-column" in options) == ("--task" in options)


@pytest.mark.parametrize("name", ["f.npz", "f.xlsx", "f"])
def test_flips_in_another_format_are_refused_with_those_there_are(name):
    found = refused("compare", OLD, NEW, "--flips", name, code=2)
    assert ".parquet" in found and name in found and ".npz" not in found.replace(name, "")
