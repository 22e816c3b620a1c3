"""Whatever happens to a file, its reader gives rows or one clear line."""

import gzip
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dynsnap.data import DataSet, load
from dynsnap.errors import DynSnapError
from tests.data.cifar_files import cifar10_binary, in_folder, in_tar
from tests.data.test_sources import ROWS, YAHOO, paint
from tests.data.test_time import write_flights

LINES = b'{"label": 1, "text": "some"}\n' * 40


def npz(folder):
    arrays = {"inputs": np.zeros((5, 3)), "labels": np.array(list("abcab"))}
    np.savez_compressed(folder / "rows.npz", **arrays)
    return folder / "rows.npz", "npz", folder / "rows.npz", {}


def parquet(folder):
    table = pa.table({"label": ["a", "b"] * 9, "x": [1.0, 2.0] * 9})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet", "table", folder / "rows.parquet", {}


def comma_separated(folder):
    (folder / "rows.csv").write_text(ROWS)
    options = {"slices": ["city", "key", "kind"]}
    return folder / "rows.csv", "table", folder / "rows.csv", options


def json_lines(folder):
    (folder / "rows.jsonl").write_bytes(LINES)
    return folder / "rows.jsonl", "jsonl", folder / "rows.jsonl", {}


def zipped_csv(folder):
    # Long enough that damage shows before the checksum at the end is looked at.
    rows = "".join(f"{place},{place * 7919 % 1009}\n" for place in range(3000))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(f"label,x\n{rows}".encode(), mtime=0))
    return folder / "rows.csv.gz", "table", folder / "rows.csv.gz", {}


def zipped_json_lines(folder):
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(LINES, mtime=0))
    return folder / "rows.jsonl.gz", "jsonl", folder / "rows.jsonl.gz", {}


def text_csv(folder):
    in_folder(YAHOO, folder)
    return folder / "train.csv", "text-csv", folder, {}


def zipped_class_names(folder):
    in_folder(YAHOO, folder)
    names = (folder / "classes.txt").read_bytes()
    (folder / "classes.txt").unlink()
    (folder / "classes.txt.gz").write_bytes(gzip.compress(names, mtime=0))
    return folder / "classes.txt.gz", "text-csv", folder, {}


def zipped_weather(folder):
    made = write_flights(folder / "data") / "weather.csv.gz"
    made.write_bytes(gzip.compress(gzip.decompress(made.read_bytes()), mtime=0))
    return made, "flights", folder / "data", {}


def image(folder):
    paint(folder / "cat" / "a.png")
    return folder / "cat" / "a.png", "images", folder, {}


def archive(folder):
    made = in_tar(cifar10_binary(), folder / "cifar.tar.gz")
    return made, "cifar-10", made, {"subset": True}


def harmed(content: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(3)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    harm = bytearray(content)
    if kind == 1:
        for _ in range(rng.randrange(1, 8)):
            harm[rng.randrange(len(harm))] = rng.randrange(256)
        return bytes(harm)
    at = rng.randrange(len(harm))
    return bytes(harm[:at]) + rng.randbytes(20) + bytes(harm[at + rng.randrange(30) :])


MAKERS = (
    npz,
    parquet,
    comma_separated,
    zipped_csv,
    json_lines,
    zipped_json_lines,
    text_csv,
    zipped_class_names,
    zipped_weather,
    image,
    archive,
)


@pytest.mark.parametrize("make", MAKERS)
def test_a_harmed_file_is_read_or_refused_in_one_line(make, tmp_path):
    file, source, path, options = make(tmp_path)
    content, rng = file.read_bytes(), random.Random(make.__name__)
    load(source, path, **options)
    refused = 0
    for _ in range(60):
        file.write_bytes(harmed(content, rng))
        try:
            assert isinstance(load(source, path, **options), DataSet)
        except DynSnapError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 5
