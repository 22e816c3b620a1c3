"""However Arrow packs values, they are the same values."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import Predictions
from dynsnap.predictions._arrow import bare, is_plain, unpacked
from dynsnap.predictions._ids import as_id_column
from dynsnap.predictions._labels import encoded


class Named(pa.ExtensionType):
    """A type of someone's own, around text."""

    def __init__(self):
        super().__init__(pa.string(), "tests.named")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def coded(indices, values=None):
    def pack(column):
        plain = column.dictionary_encode()
        inner = plain.dictionary if values is None else values(plain.dictionary)
        return pa.DictionaryArray.from_arrays(plain.indices.cast(indices), inner)

    return pack


def doubly_coded(column):
    outer, inner = column.dictionary_encode(), column.dictionary_encode().dictionary
    return pa.DictionaryArray.from_arrays(outer.indices, coded(pa.int8())(inner))


def in_runs(values):
    def pack(column):
        runs = pc.run_end_encode(column)
        return pa.RunEndEncodedArray.from_arrays(runs.run_ends, values(runs.values))

    return pack


def cast(kind):
    return lambda column: column.cast(kind)


PACKED = {
    "text": cast(pa.string()),
    "large text": cast(pa.large_string()),
    "view of text": cast(pa.string_view()),
    "bytes": cast(pa.binary()),
    "view of bytes": lambda column: column.cast(pa.binary()).cast(pa.binary_view()),
    **{
        f"dictionary by {kind}": coded(kind)
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        )
    },
    "dictionary of views": coded(pa.uint32(), cast(pa.string_view())),
    "dictionary of bytes": coded(pa.uint8(), cast(pa.binary())),
    "dictionary of a dictionary": doubly_coded,
    "runs": in_runs(cast(pa.string())),
    "runs of views": in_runs(cast(pa.string_view())),
    "a type of one's own": lambda column: pa.ExtensionArray.from_storage(Named(), column),
}
KIND = pa.dictionary(pa.int8(), pa.string())
TEXTS = st.lists(st.sampled_from(["a", "b", "ß", None]), min_size=1, max_size=12)


@pytest.mark.parametrize("way", PACKED)
@given(values=TEXTS, cut=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_values_are_the_same_however_they_are_packed(way, values, cut):
    plain = pa.array(values, pa.string())
    packed = PACKED[way](plain)
    start, stop = cut[0], max(cut[0], len(values) - cut[1])
    plain, packed = (column.slice(start, stop - start) for column in (plain, packed))
    names, codes = encoded(packed)
    assert [None if code < 0 else names[code] for code in codes] == plain.to_pylist()
    assert is_plain(packed.type)
    assert not pa.types.is_dictionary(bare(packed.type))
    unpacked(packed).validate(full=True)
    whole = [value for value in dict.fromkeys(plain.to_pylist()) if value is not None]
    if whole:
        ids = as_id_column(PACKED[way](pa.array(whole, pa.string())))
        assert ids.to_pylist() == whole


@pytest.mark.parametrize("way", PACKED)
def test_predictions_take_columns_of_every_kind(way):
    pack = PACKED[way]
    found = Predictions(
        ids=pack(pa.array(["x", "y", "z"])),
        classes=["a", "b"],
        labels=pack(pa.array(["a", "b", "b"])),
        truth=pa.chunked_array([pack(pa.array(["b", "b"])), pack(pa.array(["a"]))]),
        slices={"side": pack(pa.array(["l", None, "r"]))},
    )
    assert (found.ids.tolist(), found.labels.tolist()) == (["x", "y", "z"], [0, 1, 1])
    assert found.truth.tolist() == [1, 1, 0]
    assert [found.slices["side"].values[code] for code in found.slices["side"].codes] == [
        "l",
        "(none)",
        "r",
    ]


def test_whole_numbers_in_a_dictionary_are_names_and_ids():
    numbers = pa.array([2**63, 5, 2**63], pa.uint64()).dictionary_encode()
    names, codes = encoded(numbers)
    assert [names[code] for code in codes] == [str(2**63), "5", str(2**63)]
    assert as_id_column(numbers[:2]).to_pylist() == [str(2**63), "5"]


def test_chunks_with_many_names_of_their_own_are_one_column():
    chunks = [pa.array([f"c{at}" for at in range(start, start + 100)]) for start in (0, 100, 200)]
    small = pa.chunked_array([chunk.dictionary_encode().cast(KIND) for chunk in chunks])
    found = Predictions(ids=small, classes=["a"], labels=["a"] * 300, slices={"side": small})
    assert found.ids.tolist() == [f"c{at}" for at in range(300)]
    assert len(found.slices["side"].values) == 300
    nothing = pa.chunked_array([], KIND)
    assert as_id_column(nothing).to_pylist() == []
