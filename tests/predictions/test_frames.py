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
from tests.cli.helpers import dynsnap
from tests.messages import naming

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
        (
            "id",
            pl.Series([["a"]] * N),
            naming("Ids", "whole numbers", "list", r"str\(\) or int\(\)"),
        ),
        ("id", pl.Series([datetime.date(2026, 1, 1 + row) for row in range(N)]), "Ids must.*date"),
        ("id", pl.Series([1, 1] * 3, dtype=pl.UInt8), "unique"),
        ("label", pl.Series([{"a": 1}] * N), naming("struct", "names", "to text")),
        ("truth", pl.Series([["a"]] * N), naming("list", "names", "to text")),
        (
            "id",
            pl.Series(range(N), dtype=pl.Int128),
            naming("64 bits|[Dd]ecimal|bits", "types of columns"),
        ),
        ("label", pl.Series(["a", None] * 3).cast(pl.Categorical), naming("`label`", "3 of 6")),
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


def both(values, **roles):
    return {"id": range(len(values)), "label": ["0"] * len(values), "side": values, **roles}


def test_zero_has_no_sign():
    for kind in (np.float16, np.float32, np.float64):
        signed, plain = np.array([0, 1, 0], kind), np.array([-0.0, 1, 0], kind)
        old, new = both(signed, label=signed), both(plain, label=plain)
        assert compare(old, new).pairs[0].metrics["consistency"].value == 1
        assert read(new).slices["side"].values == ("0", "1")
        assert Predictions.from_arrays([1], [[1.0, 0.0]], plain[:2]).classes == ("0", "1")


def test_a_period_of_pandas_is_read_as_it_is_written():
    months = pd.Series(pd.period_range("2020-01", periods=3, freq="M"))
    months[1] = pd.NaT
    frame = pd.DataFrame(both(months))
    assert read(frame).slices["side"].values == ("2020-01", "2020-03", "(none)")
    assert frame.dtypes["side"] == months.dtype  # the caller's frame stays as it was


@pytest.mark.parametrize("kind", [">i4", ">i8", ">f4", ">f8", ">u2"])
def test_the_order_of_bytes_does_not_matter(kind):
    ids, labels = np.array([3, 1, 2], ">i8"), np.array([1, 2, 1], kind)
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], ">f8")
    made = [
        read(table({"id": ids, "label": labels, "truth": labels, "side": labels, "weight": labels}))
        for table in (dict, pd.DataFrame)
    ]
    made.append(Predictions.from_arrays(ids, scores, labels[:2], labels, slices={"side": labels}))
    for each in made:
        assert each.ids.tolist() == [3, 1, 2] and each.classes == ("1", "2")
        assert each.names_of(each.labels).tolist() == ["1", "2", "1"]
        assert each.names_of(each.truth).tolist() == ["1", "2", "1"]
        assert each.slices["side"].values == ("1", "2")
    assert compare(*made).pairs[0].metrics["consistency"].value == 1


def test_numbers_that_numpy_lacks_are_read_in_a_dict():
    wide = pl.Series([1, 2, 1], dtype=pl.Int128)
    made = read({"id": pl.Series([1, 2, 3], dtype=pl.Int128), "label": wide})
    assert made.classes == ("1", "2")
    assert Predictions.from_arrays([1], [[1.0, 0.0]], wide[:2], wide[:1]).truth.tolist() == [0]


@pytest.mark.parametrize("role", ["id", "label", "truth"])
def test_a_column_of_several_kinds_is_called_so(role):
    frame = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", "a"], "truth": ["a", "b", "a"]})
    frame[role] = pd.Series([1, "b", 3], dtype=object)
    with pytest.raises(InputError, match=naming("several kinds")) as found:
        read(frame)
    assert "struct" not in str(found.value)


NAMES = [("1.5", "1.7"), ("v1.0", "v2"), ("a/b/", "b"), ("</b>", "s3://x/y"), ("m.csv", "..")]


@pytest.mark.parametrize("models", NAMES)
def test_a_model_keeps_its_name(models, tmp_path):
    wide = pd.DataFrame({"id": [1, 2], models[0]: ["a", "b"], models[1]: ["a", "a"]})
    long = wide.melt("id", var_name="model", value_name="label")
    for table, columns in ((wide, {"labels": models}), (long, {"model": "model"})):
        found = compare(table, columns=columns, resamples=2)
        assert tuple(each.name for each in found.generations) == models
    file = tmp_path / "long.csv"
    long.to_csv(file, index=False)
    said = dynsnap("compare", file, "--model-column", "model", "--resamples", 2)
    assert f"{models[0]} → {models[1]}" in said.output


def test_models_of_one_name_in_two_tables_are_told_apart():
    table = {"id": [1, 2], "model": ["m", "m"], "label": ["a", "b"]}
    found = compare(table, table, columns={"model": "model"}, resamples=2)
    assert len({each.name for each in found.generations}) == 2


def test_columns_with_a_role_are_no_scores_whatever_they_start_with():
    frame = pd.DataFrame(
        {"pid": [1, 2], "p0": [0.8, 0.4], "p1": [0.2, 0.6], "pred": [1, 1], "pw": [1, 2]}
    )
    made = Predictions.from_frame(frame, id="pid", label="pred", scores="p", weight="pw")
    assert made.classes == ("0", "1") and made.labels.tolist() == [1, 1]
    assert made.scores.tolist() == [[0.8, 0.2], [0.4, 0.6]] and made.weights.tolist() == [1, 2]
    with pytest.raises(InputError, match=naming("scores", "5")):
        Predictions.from_frame(frame, id="pid", scores=5)


def test_slices_name_a_column_once():
    twice = pd.DataFrame([[1, "a", "b"], [2, "b", "a"]], columns=["id", "side", "side"])
    with pytest.raises(InputError, match=naming("side", "more than once")):
        Predictions(ids=[1, 2], classes=["a"], labels=["a", "a"], slices=twice)
