"""Broken files of predictions: `python -m tests.fuzz.predictions --count 100000`."""

import functools
import io
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from dynsnap import predictions
from dynsnap.predictions import Predictions
from tests.fuzz import harness, mutations
from tests.fuzz.harness import Attempt

SUFFIXES = ("parquet", "arrow", "csv", "csv.gz", "npz")


@functools.cache
def sound() -> dict[str, bytes]:
    """Small files of every format, by name."""
    rng = np.random.default_rng(0)
    size = 30
    truth = rng.integers(0, 3, size)
    kinds = {
        "scores": {"scores": rng.dirichlet(np.ones(3), size).astype(np.float32)},
        "labels": {"labels": rng.integers(0, 3, size)},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, said in kinds.items():
            made = Predictions(
                ids=[f"input {number}" for number in range(size)],
                classes=["cat", "=dog", "-3"],
                truth=truth,
                slices={"hour": [str(number % 4) for number in range(size)]},
                weights=rng.random(size) + 0.1,
                positions=True,
                **said,
            )
            for suffix in SUFFIXES:
                predictions.write(made, Path(folder, f"{name}.{suffix}"))
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


@functools.cache
def beside() -> dict[str, bytes]:
    """What else commands read: the members of two ensembles, and the inputs behind predictions."""
    rng = np.random.default_rng(0)
    names = [f"input {number}" for number in range(30)]
    members = io.BytesIO()
    scores = rng.dirichlet(np.ones(3), (4, 30))
    np.savez(members, scores=scores, truth=rng.integers(0, 3, 30), ids=np.array(names))
    pictures = io.BytesIO()
    np.savez(pictures, inputs=rng.integers(0, 255, (30, 8, 8), np.uint8), ids=np.array(names))
    return {
        "members.npz": members.getvalue(),
        "inputs.npz": pictures.getvalue(),
        "inputs.csv": "".join(["id,text\n", *(f"{name},hello\n" for name in names)]).encode(),
        "inputs.jsonl": "".join(
            json.dumps({"id": name, "text": "hello", "label": "a"}) + "\n" for name in names
        ).encode(),
    }


def case(rng: random.Random, folder: Path) -> Attempt:
    """A sound file and a broken one, in either order, and a command that takes two."""
    if rng.random() < 0.15:
        return _case_beside(rng, folder)
    names = sorted(sound())
    good, bad = folder / rng.choice(names), folder / f"bad-{rng.choice(names)}"
    good.write_bytes(sound()[good.name])
    kind, content = _broken(rng, bad.name, sound()[bad.name.removeprefix("bad-")])
    bad.write_bytes(content)
    files = [good, bad] if rng.random() < 0.5 else [bad, good]
    compare = ["compare", *files, "--resamples", 3, "--json", folder / "found.json"]
    command = rng.choice(
        (
            [*compare, "--html", folder / "page.html"],
            [*compare, "--markdown", folder / "found.md", "--flips", folder / "flips.parquet"],
            ["gate", *files, "--at-most", "lost=0.5", "--resamples", 3, "--junit", "-"],
            ["stabilize", *files, "-o", folder / f"out.{rng.choice(SUFFIXES)}"],
        )
    )
    return Attempt(f"{bad.name.partition('.')[2]} {kind}", [command])


def _case_beside(rng: random.Random, folder: Path) -> Attempt:
    name = rng.choice(sorted(beside()))
    bad = folder / f"bad-{name}"
    kind, content = _broken(rng, name, beside()[name])
    bad.write_bytes(content)
    if name == "members.npz":
        good = folder / name
        good.write_bytes(beside()[name])
        command = ["audit", *rng.sample((good, bad), 2), "--json", "-"]
    else:
        files = [folder / "scores.parquet", folder / "labels.csv"]
        for file in files:
            file.write_bytes(sound()[file.name])
        command = ["compare", *files, "--resamples", 3, "-q", "--html", folder / "page.html"]
        command += ["--inputs", bad]
    return Attempt(f"{name} {kind}", [command])


def _broken(rng: random.Random, name: str, content: bytes) -> tuple[str, bytes]:
    suffix = name.partition(".")[2]
    if rng.random() < 0.5:
        return mutations.in_bytes(rng, content)
    if suffix == "npz":
        return mutations.in_archive(rng, content)
    if suffix == "csv":
        kind, text = mutations.in_csv(rng, content.decode())
        return kind, text.encode()
    if suffix in ("parquet", "arrow"):
        return _other_table(rng, suffix, content)
    return mutations.in_bytes(rng, content)


def _other_table(rng: random.Random, suffix: str, content: bytes) -> tuple[str, bytes]:
    """A table that is whole, with a column that should not be as it is."""
    source = io.BytesIO(content)
    if suffix == "parquet":
        table = pa.parquet.read_table(source)
    else:
        table = pa.ipc.open_file(source).read_all()
    columns = dict(zip(table.column_names, table.columns, strict=True))
    name = rng.choice(sorted(columns))
    kind = rng.choice(("values", "values", "values", "lost", "renamed", "metadata", "rows"))
    if kind == "lost":
        del columns[name]
    elif kind == "renamed":
        columns[rng.choice(("id", "truth", "scores", "score:", "weight", ""))] = columns.pop(name)
    elif kind == "values":
        columns[name] = _column(rng, table.num_rows)
    made = pa.table(columns)
    if kind == "rows":
        made = rng.choice((made.slice(0, 0), made.slice(0, 1), pa.concat_tables([made, made])))
    elif kind == "metadata":
        word = rng.choice(
            (*mutations.WORDS, mutations.DEEP, '["cat", "cat"]', "[1]", '["\\ud800"]')
        )
        made = made.replace_schema_metadata({b"dynsnap.classes": word.encode()})
    else:
        made = made.replace_schema_metadata(table.schema.metadata)
    target = io.BytesIO()
    if suffix == "parquet":
        pa.parquet.write_table(made, target)
    else:
        with pa.ipc.new_file(target, made.schema) as writer:
            writer.write_table(made)
    return f"table {kind}", target.getvalue()


def _column(rng: random.Random, rows: int) -> pa.Array:
    some = np.arange(rows)
    makers: tuple[Any, ...] = (
        lambda: pa.nulls(rows),
        lambda: pa.array([None, *[1.0] * (rows - 1)]),
        lambda: pa.array(np.full(rows, np.nan)),
        lambda: pa.array(np.full(rows, np.inf)),
        lambda: pa.array(np.full(rows, -1e308)),
        lambda: pa.array(np.full(rows, 1e308)),
        lambda: pa.array(np.zeros(rows)),
        lambda: pa.array(some.astype(np.float16)),
        lambda: pa.array(some % 2 == 0),
        lambda: pa.array(some.astype(np.uint64) + 2**63),
        lambda: pa.array([rng.choice(mutations.WORDS) for _ in range(rows)]),
        lambda: pa.array([b"\xff\xfe"] * rows),
        lambda: pa.array([b"\xff\xfe"] * rows).view(pa.string()),
        lambda: pa.array([[1.0, 2.0]] * rows),
        lambda: pa.array([[1.0] * number for number in range(rows)]),
        lambda: pa.array([{"a": 1}] * rows),
        lambda: pa.array(some, pa.timestamp("ns")),
        lambda: pa.array(some.astype(np.int32), pa.date32()),
        lambda: pa.array([1] * rows, pa.decimal128(38, 10)),
        lambda: pa.array(["a"] * rows).dictionary_encode(),
        lambda: pa.DictionaryArray.from_arrays(pa.array([None] * rows, pa.int8()), pa.array(["a"])),
        lambda: pa.array([f"label {number}" for number in range(rows)]),
    )
    return rng.choice(makers)()


if __name__ == "__main__":
    harness.main("predictions")
