"""Frames: the same values from pandas, polars and Arrow, and columns that are kept by name."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap._untrusted import mismatch
from dynsnap.data import (
    COLUMNS,
    Frame,
    Pool,
    as_frame,
    frame_type_from_json,
    frame_type_to_json,
    is_frame,
    selection_rows,
)
from dynsnap.errors import InputError
from tests.messages import naming

CITIES = st.sampled_from(["Bern", "Oslo", "Rome", "Nice", "Lyon"])
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.floats(-1e6, 1e6, width=32)),
        st.one_of(st.none(), CITIES),
        st.one_of(st.none(), st.text(max_size=5)),
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: [(1.5, "Bern", "first"), *rows])  # so that every column has a type


def frames(rows):
    """The same rows as a frame of pandas, of polars and of Arrow."""
    size, city, note = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "size": pa.array(size, pa.float64()),
        "city": pa.array(city, pa.string()).dictionary_encode(),
        "note": pa.array(note, pa.string()),
    }
    return (
        pd.DataFrame({"size": size, "city": pd.Categorical(city), "note": note}).astype(
            {"size": float, "note": object}
        ),
        pl.DataFrame(
            {"size": size, "city": city, "note": note},
            schema={"size": pl.Float64, "city": pl.Categorical, "note": pl.String},
        ),
        pa.table(columns),
    )


@given(rows=ROWS)
def test_pandas_polars_and_arrow_give_the_same_rows(rows):
    found = [as_frame(one) for one in frames(rows)]
    contents = [list(one.contents()) for one in found]
    assert contents[0] == contents[1] == contents[2]
    assert all(one.named("category") == ["city"] and len(one) == len(rows) for one in found)
    for place, (size, city, note) in enumerate(rows):
        for one in found:
            column = one.columns["city"]
            code = int(column.values[place])
            assert (None if code < 0 else column.names[code]) == city
            assert one.columns["note"].values[place] == note
            assert size is None or one.columns["size"].values[place] == size


@given(rows=ROWS, later=ROWS)
def test_categories_keep_their_codes_and_unknown_ones_count_as_none(rows, later):
    first = as_frame(frames(rows)[0][["size", "city"]])
    for other in frames(later)[:2]:
        then = as_frame(other[["city", "size"]]).conformed(first.type)
        known = first.columns["city"].names
        assert list(then.columns) == ["size", "city"]
        assert then.columns["city"].names[: len(known)] == known
        for code, (_, city, _) in zip(then.codes[:, 1], later, strict=True):
            assert np.isnan(code) if city not in known else known[int(code)] == city
        joined = first.join(then)
        assert [*first.contents(), *then.contents()] == list(joined.contents())
        names = joined.columns["city"].names
        for code, row in zip(joined.codes[:, 1], [*rows, *later], strict=True):
            assert np.isnan(code) if row[1] is None else names[int(code)] == row[1]


@given(rows=ROWS)
def test_what_a_file_holds_of_columns_is_read_back(rows):
    columns = as_frame(frames(rows)[0]).type
    held = frame_type_to_json(columns)
    assert mismatch(COLUMNS, held) is None
    assert frame_type_from_json(held) == columns


def test_rows_are_held_out_by_content_whatever_their_codes():
    cities = np.array(["Bern", "Oslo", "Rome"])[np.arange(300) % 3]
    frame = pd.DataFrame({"n": np.arange(300.0), "city": pd.Categorical(cities)})
    turned = frame.assign(city=pd.Categorical(cities, categories=["Rome", "Oslo", "Bern", "x"]))
    assert (selection_rows(as_frame(frame), 0.2) == selection_rows(as_frame(turned), 0.2)).all()
    pools = [
        Pool(
            name="p",
            inputs=as_frame(one),
            labels=np.arange(300) % 2,
            classes=("a", "b"),
            ids=np.arange(300),
        )
        for one in (frame, frame.assign(n=0.0))
    ]
    assert pools[0].fingerprint != pools[1].fingerprint
    assert pools[0].fingerprint == pools[0].take(np.arange(300)).fingerprint


def test_numbers_may_be_categories_and_texts_are_matched_with_them():
    frame = as_frame(pd.DataFrame({"zip": [3000, 1000, 3000]})).with_categories(["zip"])
    assert frame.columns["zip"].names == (1000, 3000)
    later = as_frame(pd.DataFrame({"zip": ["3000", None, "9"]})).conformed(frame.type)
    assert np.isnan(later.codes[1:, 0]).all() and later.codes[0, 0] == 1


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (pd.DataFrame({"size": [1.0]}), ["city", "missing"]),
        (pd.DataFrame({"size": [1.0], "town": ["x"]}), ["city", "town", "new"]),
        (pd.DataFrame({"size": ["big"], "city": ["x"]}), ["size", "numbers", "texts"]),
        (pd.DataFrame({"size": [1.0], "city": [7.0]}), ["city", "Bern", "numbers"]),
    ],
)
def test_changed_columns_are_named(frame, named):
    known = as_frame(pd.DataFrame({"size": [1.0], "city": pd.Categorical(["Bern"])})).type
    with pytest.raises(InputError, match=naming(*named)):
        as_frame(frame).conformed(known)


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), ["day", "timestamp"]),
        (pd.DataFrame({"tags": [["a", "b"]]}), ["tags", "list"]),
        (pd.DataFrame({"mix": [1, "a"]}), ["mix"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ["a"]),
        (pd.DataFrame({"span": pd.cut([1, 2], 2)}), ["span"]),
    ],
)
def test_columns_that_no_model_takes_are_named(frame, named):
    with pytest.raises(InputError, match=naming(*named)):
        as_frame(frame)


def test_what_is_a_frame():
    assert is_frame(pd.DataFrame()) and is_frame(pl.DataFrame()) and is_frame(pa.table({"a": [1]}))
    assert not any(map(is_frame, (np.zeros((2, 2)), {"a": [1]}, [[1]], pd.Series([1]), "text")))
    assert isinstance(as_frame(pa.table({"a": [True, None]})).columns["a"].values[1], float)
    assert isinstance(as_frame(Frame({})), Frame)
