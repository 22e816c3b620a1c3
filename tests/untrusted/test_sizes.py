"""A small file never takes a lot of memory, whatever it says of its own size."""

import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynsnap
from dynsnap import data, theory
from dynsnap._untrusted import ArrayArchive, _limits, array_header
from dynsnap.data._archive import read_members
from dynsnap.data._pickles import plain_dict
from dynsnap.errors import DataError, DynSnapError, FileError
from tests.messages import naming
from tests.untrusted import bombs
from tests.untrusted.bombs import memory_below

GIGABYTE = (1 << 27,)  # numbers of eight bytes
IDS = {"id": np.arange(4), "label": np.array(["a", "b", "a", "b"])}


# --- NPZ ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """An archive of about a megabyte that unpacks to a gigabyte of weights, and to more."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.npz"
    bombs.write_npz(path, bombs={"weight": GIGABYTE}, **IDS)
    assert path.stat().st_size < 1.2 * bombs.MEGABYTE
    return path


def test_an_array_that_unpacks_to_far_more_than_its_file_is_refused_before_memory_is_taken(bomb):
    with memory_below(20), ArrayArchive(bomb) as archive:
        assert archive.headers["weight"].shape == GIGABYTE
        with pytest.raises(FileError, match=r"weight.*1,073\.7 MB.*numpy\.savez"):
            archive.read("weight")
        assert archive.read("id").tolist() == [0, 1, 2, 3]


def test_predictions_members_inputs_and_data_sets_are_read_within_bounds(tmp_path):
    rows = 1 << 24
    path = tmp_path / "bomb.npz"
    bombs.write_npz(path, bombs={"id": (rows,), "inputs": (rows, 1), "scores": (1, rows, 1)})
    readers = (dynsnap.read, theory.read_members, data.read_inputs, lambda p: data.load("npz", p))
    for reader in readers:
        with memory_below(20), pytest.raises(DynSnapError):
            reader(path)


def test_only_the_arrays_that_are_needed_are_unpacked(tmp_path):
    unneeded = {"unneeded": GIGABYTE}
    bombs.write_npz(tmp_path / "said.npz", bombs=unneeded, **IDS)
    bombs.write_npz(tmp_path / "members.npz", bombs=unneeded, scores=np.ones((2, 3, 4)) / 4)
    bombs.write_npz(tmp_path / "inputs.npz", bombs=unneeded, inputs=np.eye(3), labels=[0, 1, 0])
    with memory_below(20):
        assert len(dynsnap.read(tmp_path / "said.npz")) == 4
        assert theory.read_members(tmp_path / "members.npz").scores.shape == (2, 3, 4)
        assert data.read_inputs(tmp_path / "inputs.npz").inputs.shape == (3, 3)
        assert len(data.load("npz", tmp_path / "inputs.npz").train) == 3


@pytest.mark.parametrize(
    "content",
    [
        bombs.header((1 << 40,)),  # values that are not there
        bombs.header((-1, 8)),
        bombs.header((1,), "<U500000000"),
        bombs.header((1,), "|V2000000000"),
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31),  # a header that is not there
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
        b"\x93NUMPY\x09\x09" + bytes(100),
        b"\x93NUMPY",
    ],
)
def test_a_header_that_claims_what_is_not_there_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match=r"."):
        array_header(content, len(content))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("scores.npy", content)
    with memory_below(20), pytest.raises(FileError, match="damaged"):
        theory.read_members(tmp_path / "x.npz")


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_archive_compressed_in_ways_that_take_memory_of_their_own_is_refused(
    tmp_path, compression
):
    bombs.write_npz(tmp_path / "x.npz", bombs={}, compression=compression, **IDS)
    with pytest.raises(FileError, match=naming(r"x\.npz", r"'id\.npy'", "another way")):
        dynsnap.read(tmp_path / "x.npz")


def test_entries_that_share_their_bytes_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(1000))
    content = (tmp_path / "x.npz").read_bytes()
    at = content.index(b"PK\x01\x02")
    entry, end = content[at : content.index(b"PK\x05\x06")], content[content.index(b"PK\x05\x06") :]
    many = b"".join(entry.replace(b"a.npy", f"{sign}.npy".encode()) for sign in "abcdefgh")
    end = bytearray(end)
    end[8:12] = struct.pack("<HH", 8, 8)
    end[12:16] = struct.pack("<I", len(many))
    (tmp_path / "x.npz").write_bytes(content[:at] + many + bytes(end))
    with pytest.raises(FileError, match=naming(r"x\.npz", r"damaged \(", "more bytes")):
        theory.read_members(tmp_path / "x.npz")


# --- compressed tables and texts ------------------------------------------------------------


@pytest.fixture
def low_floor(monkeypatch):
    """Files may unpack to a megabyte, and not to 64, so that tests need not make as much."""
    monkeypatch.setattr(_limits, "_FLOOR", bombs.MEGABYTE)


@pytest.mark.usefixtures("low_floor")
def test_a_table_or_text_that_unpacks_without_end_is_refused(tmp_path):
    line = b'{"text": "a", "label": "b"}\n'
    files = {"x.csv.gz": (b"id,label\n", b"1,a\n" * (1 << 18)), "x.jsonl.gz": (b"", line * 37_000)}
    for name, (start, piece) in files.items():
        bombs.write_gz(tmp_path / name, start, piece, 20)
        assert (tmp_path / name).stat().st_size < bombs.MEGABYTE / 8
    for read in (dynsnap.read, data.read_inputs):
        with pytest.raises(DynSnapError, match=naming("unpacks", r"\d\.\d MB")):
            read(tmp_path / "x.csv.gz")
    with pytest.raises(DynSnapError, match=naming("unpacks", r"\d\.\d MB")):
        data.read_inputs(tmp_path / "x.jsonl.gz")


def test_a_sparse_file_in_a_tar_archive_is_not_read(tmp_path):
    path = tmp_path / "x.tar"
    bombs.write_sparse_tar(path, "batches.meta", 1 << 40)
    with memory_below(20):
        assert read_members(path, {"batches.meta"}, lambda _, handle: handle.read()) == {}


@pytest.mark.usefixtures("low_floor")
def test_a_tar_archive_that_unpacks_without_end_is_refused(tmp_path):
    path = tmp_path / "20news-bydate.tar.gz"
    post = tarfile.TarInfo("20news-bydate/20news-bydate-train/sci.med/1")
    post.size = 50 * bombs.MEGABYTE
    bombs.write_gz(path, post.tobuf(), bytes(bombs.MEGABYTE), 50)
    with memory_below(20), pytest.raises(DataError, match="Cannot read"):
        data.load("20-newsgroups", tmp_path)


# --- pickles of data sets -------------------------------------------------------------------


# A dictionary whose key is a tuple of tuples, each twice in the next.
BY_COPY = b"\x80\x02})" + b"2\x86" * 60 + b"K\x01s."
BY_NUMBER = b"".join(b"h%ch%c\x86q%c" % (n, n, n + 1) for n in range(60))
BY_ORDER = b"".join(b"h%ch%c\x86\x94" % (n, n) for n in range(60))


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}r" + struct.pack("<I", 1 << 28) + b".",  # remembers under a high number
        b"\x80\x02}p268435456\n.",
        BY_COPY,
        b"\x80\x02})q\x00" + BY_NUMBER + b"K\x01s.",
        b"\x80\x04})\x94" + BY_ORDER + b"K\x01s.",
    ],
)
def test_a_pickle_of_a_few_bytes_takes_neither_memory_nor_time(content):
    with memory_below(20), pytest.raises(pickle.UnpicklingError):
        plain_dict(content)


# --- Parquet and Arrow ----------------------------------------------------------------------


def written(table, *, compression="zstd", kind=pa.ipc.new_file):
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with kind(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue()


@pytest.mark.parametrize("kind", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, kind):
    rows = 10_000_000
    ids = pa.array(np.zeros(rows, np.int64))
    labels = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["a"])
    (tmp_path / "x.arrow").write_bytes(written(pa.table({"id": ids, "label": labels}), kind=kind))
    before = pa.total_allocated_bytes()
    with pytest.raises(
        FileError, match=naming(r"x\.arrow", r"90\.0 MB", "without compression", "Parquet")
    ):
        dynsnap.read(tmp_path / "x.arrow")
    assert pa.total_allocated_bytes() <= before


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
@pytest.mark.parametrize("kind", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_honest_arrow_file_is_read_however_it_is_compressed(tmp_path, kind, compression):
    labels = pa.array(["a", "b"] * 500).dictionary_encode()
    table = pa.table({"id": np.arange(1000), "label": labels})
    (tmp_path / "x.arrow").write_bytes(written(table, compression=compression, kind=kind))
    assert len(dynsnap.read(tmp_path / "x.arrow")) == 1000


def test_a_parquet_file_that_claims_more_rows_than_fit_into_it_is_refused(tmp_path):
    rows = 5_000_000
    labels = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["a"])
    table = pa.table({"id": np.arange(rows), "label": labels})
    path = tmp_path / "x.parquet"
    encoding = {"id": "DELTA_BINARY_PACKED"}
    pq.write_table(table, path, use_dictionary=["label"], column_encoding=encoding)
    if path.stat().st_size > rows // 64:  # it depends on the writer's blocks
        pq.write_table(
            table, path, use_dictionary=["label"], column_encoding=encoding, compression="zstd"
        )
    for read in (dynsnap.read, data.read_inputs):
        with pytest.raises(DynSnapError, match="5,000,000 rows"):
            read(path)


def test_lists_of_two_thousand_million_scores_are_no_classes(tmp_path):
    kind = pa.list_(pa.float32(), 2**31 - 1)
    table = pa.table({"id": pa.array([], pa.int64()), "scores": pa.array([], kind)})
    pq.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "x.arrow").write_bytes(written(table))
    for name in ("x.parquet", "x.arrow"):
        with memory_below(20), pytest.raises(FileError, match="25,000 classes"):
            dynsnap.read(tmp_path / name)


def test_a_batch_is_as_large_as_its_values_are_in_memory_and_not_in_the_file(tmp_path):
    from dynsnap.predictions._sources import ParquetBatches

    rows, classes = 3_000, 1_000
    scores = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * classes)), classes)
    pq.write_table(pa.table({"id": np.arange(rows), "scores": scores}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < bombs.MEGABYTE
    found = ParquetBatches.looked_at(str(tmp_path / "x.parquet"))
    assert found.rows_at_once * classes * 8 <= 64 * bombs.MEGABYTE


def test_one_long_id_for_every_row_is_not_written_out(tmp_path):
    rows, long = 200_000, "x" * 100_000
    ids = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [long])
    table = pa.table({"id": ids, "label": ["a"] * rows})
    (tmp_path / "x.arrow").write_bytes(written(table, compression=None))
    with pytest.raises(FileError, match=naming(r"x\.arrow", "Ids", "unique", "200,000")):
        dynsnap.read(tmp_path / "x.arrow")


def test_texts_that_share_their_bytes_are_not_written_out(tmp_path):
    rows, long = 10_000, b"x" * 100_000
    views = np.zeros((rows, 4), np.int32)
    views[:, 0] = len(long)
    views[:, 1] = np.frombuffer(long[:4], np.int32)[0]
    shared = pa.Array.from_buffers(
        pa.string_view(), rows, [None, pa.py_buffer(views), pa.py_buffer(long)]
    )
    table = pa.table({"id": np.arange(rows), "label": shared})
    (tmp_path / "x.arrow").write_bytes(written(table, compression=None))
    with (
        memory_below(50),
        pytest.raises(FileError, match=naming(r"x\.arrow", r"1,000\.0 MB", "plain text")),
    ):
        dynsnap.read(tmp_path / "x.arrow")


# --- wide tables ----------------------------------------------------------------------------


def test_a_table_of_hundreds_of_thousands_of_columns_is_refused_by_its_first_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,label" + ",c" * 300_000 + "\n1,a" + "," * 300_000 + "\n")
    for read in (dynsnap.read, data.read_inputs):
        with memory_below(20), pytest.raises(DynSnapError, match="300,002 columns"):
            read(path)


def test_columns_beyond_a_thousand_are_no_slices(tmp_path):
    names = [f"c{place}" for place in range(1_200)]
    text = ",".join(["id", "label", *names]) + "\n" + ",".join(["1", "a", *["x"] * 1_200]) + "\n"
    (tmp_path / "x.csv").write_text(text)
    found = dynsnap.read(tmp_path / "x.csv")
    assert list(found.slices) == names[:1_000]
    assert any("200" in note or '"c1000"' in note for note in found.notes)
