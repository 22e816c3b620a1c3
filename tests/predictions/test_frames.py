"""What polars and pandas write is read, and so are the columns of their frames."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dynsnap import Predictions, compare, read
from dynsnap.data import read_table
from dynsnap.errors import DynSnapError, FileError, InputError
from dynsnap.predictions import stream

N = 6
LABELS, TRUTHS = list("abaaba"), list("abbaba")
SIDES = ["left", "right", None] * 2
PLAIN = {"id": pl.Series(range(N)), "label": pl.Series(LABELS), "truth": pl.Series(TRUTHS)}

WAYS = {
    **{
        f"parquet {packing}": (
            ".parquet",
            lambda frame, path, packing=packing: frame.write_parquet(path, compression=packing),
        )
        for packing in ("uncompressed", "snappy", "gzip", "brotli", "lz4", "zstd")
    },
    "parquet in groups": (
        ".parquet",
        lambda frame, path: frame.write_parquet(path, row_group_size=2),
    ),
    **{
        f"ipc {packing}": (
            ".arrow",
            lambda frame, path, packing=packing: frame.write_ipc(path, compression=packing),
        )
        for packing in ("uncompressed", "lz4", "zstd")
    },
    "ipc of old": (
        ".feather",
        lambda frame, path: frame.write_ipc(path, compat_level=pl.CompatLevel.oldest()),
    ),
    "ipc stream": (".arrow", lambda frame, path: frame.write_ipc_stream(path)),
    "csv": (".csv", lambda frame, path: frame.write_csv(path)),
}
FEW = {
    name: WAYS[name] for name in ("parquet zstd", "ipc uncompressed", "ipc of old", "ipc stream")
}


def written(frame, way, folder, name="frame"):
    ending, write = WAYS[way]
    path = folder / f"{name}{ending}"
    write(frame, path)
    return path


def assert_plain(found):
    """It is what the plain columns say."""
    assert found.classes == ("a", "b")
    assert [found.classes[place] for place in found.labels] == LABELS
    assert [found.classes[place] for place in found.truth] == TRUTHS


def sides(found):
    column = found.slices["side"]
    return [column.values[code] for code in column.codes]


@pytest.mark.parametrize("kind", ["String", "Categorical", "Enum"])
@pytest.mark.parametrize("way", WAYS)
def test_names_of_every_kind_are_read_from_every_file(kind, way, tmp_path):
    names, places = (
        {"String": pl.String, "Categorical": pl.Categorical, "Enum": pl.Enum(values)}[kind]
        for values in (["unused", "b", "a"], ["right", "left", "unused"])
    )
    frame = pl.DataFrame(
        {
            "id": pl.Series([f"i{row}" for row in range(N)]).cast(
                pl.String if kind == "Enum" else names
            ),
            "label": PLAIN["label"].cast(names),
            "truth": PLAIN["truth"].cast(names),
            "side": pl.Series(SIDES).cast(places),
        }
    )
    found = read(written(frame, way, tmp_path))
    assert_plain(found)
    assert found.ids.tolist() == [f"i{row}" for row in range(N)]
    assert sides(found) == ["left", "right", "(none)"] * 2


@pytest.mark.parametrize("way", FEW)
def test_frames_in_chunks_with_names_of_their_own_are_read(way, tmp_path):
    halves = [
        pl.DataFrame({name: column[rows] for name, column in PLAIN.items()}).with_columns(
            pl.col("label", "truth").cast(pl.Categorical)
        )
        for rows in (slice(0, 1), slice(1, N))
    ]
    frame = pl.concat(halves, rechunk=False)
    assert frame.n_chunks() == 2
    path = written(frame, way, tmp_path)
    assert_plain(read(path))
    other = written(pl.DataFrame(PLAIN).reverse(), "parquet zstd", tmp_path, "other")
    with stream([path, other], rows_at_once=2) as blocks:
        assert [len(block[0]) for block in blocks] == [2, 2, 2]
    assert compare(path, other).pairs[0].metrics["consistency"].value == 1


IDS = {
    "UInt8": pl.Series(range(N), dtype=pl.UInt8),
    "UInt64": pl.Series(range(N), dtype=pl.UInt64),
    "Int16": pl.Series(range(-3, N - 3), dtype=pl.Int16),
    "beyond int64": pl.Series([2**63 + row for row in range(N)], dtype=pl.UInt64),
    "Binary": pl.Series([f"i{row}".encode() for row in range(N)]),
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_kind_are_read(kind, way, tmp_path):
    frame = pl.DataFrame({**PLAIN, "id": IDS[kind]})
    expected = [one.decode() if isinstance(one, bytes) else one for one in IDS[kind].to_list()]
    if kind == "beyond int64":
        expected = list(map(str, expected))
    assert read(written(frame, way, tmp_path)).ids.tolist() == expected
    made = Predictions(ids=IDS[kind], classes=["a", "b"], labels=LABELS)
    assert made.ids.tolist() == expected


SLICES = {
    "Boolean": ([True, False, None] * 2, ["true", "false", "(none)"]),
    "UInt32": (pl.Series([7, 8, None] * 2, dtype=pl.UInt32), ["7", "8", "(none)"]),
    "UInt64": (pl.Series([2**63, 8, None] * 2, dtype=pl.UInt64), [str(2**63), "8", "(none)"]),
    "Binary": ([b"x", b"y", None] * 2, ["x", "y", "(none)"]),
    "Decimal": (
        [decimal.Decimal("1.5"), decimal.Decimal("2.0"), None] * 2,
        ["1.5", "2.0", "(none)"],
    ),
    "Date": (
        [datetime.date(2026, 1, 2), datetime.date(2026, 1, 3), None] * 2,
        ["2026-01-02", "2026-01-03", "(none)"],
    ),
}


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize("kind", SLICES)
def test_slices_of_every_kind_are_read(kind, way, tmp_path):
    values, expected = SLICES[kind]
    frame = pl.DataFrame({**PLAIN, "side": values})
    assert sides(read(written(frame, way, tmp_path))) == expected * 2


@pytest.mark.parametrize("way", FEW)
def test_truth_values_are_classes(way, tmp_path):
    frame = pl.DataFrame({"id": range(N), "label": [True, False] * 3, "truth": [True] * N})
    found = read(written(frame, way, tmp_path))
    assert found.classes == ("false", "true")
    assert found.labels.tolist() == [1, 0] * 3
    assert found.truth.tolist() == [1] * N


@pytest.mark.parametrize("way", FEW)
def test_columns_that_hold_no_names_are_no_slices(way, tmp_path):
    others = {
        "lists": pl.Series([[1]] * N),
        "arrays": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
        "structs": pl.Series([{"a": 1}] * N),
        "nothing": pl.Series([None] * N),
    }
    found = read(written(pl.DataFrame({**PLAIN, **others}), way, tmp_path))
    assert_plain(found)
    assert not found.slices
    assert all(any(f'"{name}"' in note for note in found.notes) for name in others)


@pytest.mark.parametrize("way", FEW)
@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("id", pl.Series([["a"]] * N), "Ids must be whole numbers or text.*list"),
        ("id", pl.Series([datetime.date(2026, 1, 1 + row) for row in range(N)]), "Ids must.*date"),
        ("id", pl.Series([1, 1] * 3, dtype=pl.UInt8), "unique"),
        ("label", pl.Series([{"a": 1}] * N), "struct.*cannot be read as names"),
        ("truth", pl.Series([["a"]] * N), "list.*cannot be read as names"),
        ("id", pl.Series(range(N), dtype=pl.Int128), "other types of columns"),
        ("label", pl.Series(["a", None] * 3).cast(pl.Categorical), "`label` is missing for 3 of 6"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(column, values, message, way, tmp_path):
    path = written(pl.DataFrame({**PLAIN, column: values}), way, tmp_path)
    with pytest.raises(FileError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert "cut off" not in str(caught.value)


@pytest.mark.parametrize("way", FEW)
def test_scores_of_every_kind_are_read(way, tmp_path):
    for kind in (pl.Float32, pl.Float64, pl.Decimal(10, 2)):
        frame = pl.DataFrame(
            {
                "id": PLAIN["id"],
                "score:a": pl.Series([0.75, 0.25] * 3).cast(kind),
                "score:b": pl.Series([0.25, 0.75] * 3).cast(kind),
                "label": pl.Series(["a", "b"] * 3).cast(pl.Categorical),
            }
        )
        assert (
            read(written(frame, way, tmp_path)).scores.tolist() == [[0.75, 0.25], [0.25, 0.75]] * 3
        )
    for kind in (pl.List(pl.Float32), pl.Array(pl.Float32, 2)):
        scores = pl.Series([[0.75, 0.25], [0.25, 0.75]] * 3, dtype=kind)
        frame = pl.DataFrame({"id": PLAIN["id"], "scores": scores})
        assert read(written(frame, way, tmp_path)).labels.tolist() == [0, 1] * 3


@pytest.mark.parametrize("frame", ["polars", "pandas"])
def test_columns_of_frames_are_predictions(frame):
    for kind in ("string", "category"):
        if frame == "polars":
            cast = pl.String if kind == "string" else pl.Categorical
            given = [pl.Series(values).cast(cast) for values in (LABELS, TRUTHS, SIDES)]
            given += [column.to_arrow() for column in given]
        else:
            given = [pd.Series(values, dtype=kind) for values in (LABELS, TRUTHS, SIDES)]
        for labels, truth, side in zip(*[iter(given)] * 3, strict=True):
            found = Predictions(
                ids=pl.Series(range(N)) if frame == "polars" else pd.Series(range(N)),
                classes=["a", "b"],
                labels=labels,
                truth=truth,
                slices={"side": side},
            )
            assert_plain(found)
            assert sides(found) == ["left", "right", "(none)"] * 2


@pytest.mark.parametrize(
    "column", [pd.Series(["x", 3]), pd.Series([1.5, 2]), pl.Series([[1], [2]])]
)
def test_columns_that_are_no_ids_are_refused(column):
    with pytest.raises(InputError, match="Ids must be"):
        Predictions(ids=column, classes=["a"], labels=["a", "a"])


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_what_pandas_writes_is_read(ending, tmp_path):
    frame = pd.DataFrame(
        {
            "id": pd.array(range(N), dtype="UInt32"),
            "label": pd.Categorical(LABELS),
            "truth": pd.array(TRUTHS, dtype="string"),
            "side": pd.Categorical(SIDES, categories=["right", "left", "unused"]),
        }
    )
    path = tmp_path / f"frame.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        getattr(frame, f"to_{ending}")(path)
    found = read(path)
    assert_plain(found)
    assert sides(found) == ["left", "right", "(none)"] * 2


def test_an_index_that_pandas_wrote_down_is_no_slice(tmp_path):
    frame = pd.DataFrame({"id": range(N), "label": LABELS}, index=list("uvwxyz"))
    frame.to_parquet(tmp_path / "frame.parquet")
    found = read(tmp_path / "frame.parquet")
    assert not found.slices
    assert "__index_level_0__" in found.notes[0]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["b", "a"])])
def test_a_table_that_polars_wrote_is_data(kind, tmp_path):
    frame = pl.DataFrame(
        {
            "size": pl.Series(range(N), dtype=pl.UInt16),
            "label": PLAIN["label"].cast(kind),
            "name": pl.Series([f"i{row}" for row in range(N)]).cast(pl.Categorical),
        }
    )
    frame.write_parquet(tmp_path / "table.parquet")
    pool = read_table(tmp_path / "table.parquet", id="name").train
    assert [pool.classes[place] for place in pool.labels] == LABELS
    assert pool.ids.tolist() == [f"i{row}" for row in range(N)]
    assert pool.inputs.tolist() == [[row] for row in range(N)]
    frame.with_columns(pl.lit([1]).alias("list")).write_parquet(tmp_path / "table.parquet")
    with pytest.raises(DynSnapError, match=r"'list'.*not numbers"):
        read_table(tmp_path / "table.parquet", id="name")


def test_numbers_in_categories_are_checked_like_other_numbers(tmp_path):
    frame = pd.DataFrame({"id": range(2), "label": pd.Categorical(np.array([0.5, 1.0]))})
    frame.to_parquet(tmp_path / "frame.parquet")
    with pytest.raises(FileError, match="not whole"):
        read(tmp_path / "frame.parquet")
