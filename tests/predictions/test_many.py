"""Parquet files that hold a generation together: a directory, a pattern, a store."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from dynsnap.errors import FileError
from dynsnap.predictions import Predictions, _locate, names_of_files, read, stream, write
from dynsnap.predictions._sources import ParquetBatches
from tests.messages import naming


def made(rows=50, seed=0):
    rng = np.random.default_rng(seed)
    return Predictions(
        ids=np.arange(rows),
        classes=["cat", "dog", "eel"],
        scores=rng.dirichlet(np.ones(3), rows),
        truth=rng.integers(0, 3, rows),
        weights=rng.random(rows),
        slices={"where": [f"place {row % 4}" for row in range(rows)]},
    )


def cut(predictions, folder, *sizes):
    """Write predictions as so many files."""
    folder.mkdir(parents=True)
    start = 0
    for number, size in enumerate(sizes):
        write(predictions.slice(start, start + size), folder / f"part-{number}.parquet")
        start += size
    assert start == len(predictions)
    return folder


def assert_same(found, expected):
    assert found.classes == expected.classes
    assert found.ids.tolist() == expected.ids.tolist()
    for name in ("scores", "labels", "truth", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.slices["where"].values == expected.slices["where"].values
    np.testing.assert_array_equal(found.slices["where"].codes, expected.slices["where"].codes)


@pytest.fixture
def folder(tmp_path):
    folder = cut(made(), tmp_path / "old", 20, 1, 29)
    nothing = pq.read_table(folder / "part-0.parquet").slice(0, 0)
    pq.write_table(nothing, folder / "part-3.parquet")
    return folder


@pytest.mark.parametrize(
    "place", ["{}", "{}/*.parquet", "{}/part-[0-3].parquet", "file://{}", "file://{}/*.parquet"]
)
def test_all_files_of_a_place_are_read_as_one(place, folder):
    assert_same(read(place.format(folder)), made())


def test_files_are_found_at_any_depth_and_what_is_hidden_is_left_out(tmp_path):
    cut(made(), tmp_path / "old/day=2", 50)
    for name in ("_temporary/x.parquet", ".trash/x.parquet", "_SUCCESS", "notes.txt"):
        file = tmp_path / "old" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("not data")
    assert_same(read(tmp_path / "old"), made())
    assert_same(read(str(tmp_path / "o*/day*/**/*.parquet")), made())


@pytest.mark.parametrize("name", ["[old]", "old [1-3] (copy)", "what?", "all*", "100% {x}", "[!"])
@pytest.mark.parametrize("place", ["", "*.parquet", "part-[0-3].parquet", "**/part-*"])
def test_a_folder_whose_name_looks_like_a_pattern_is_that_folder(name, place, tmp_path):
    other = cut(made(seed=1), tmp_path / "o" / "deep", 50)  # which [old] would match
    folder = cut(made(), tmp_path / name / "deep", 20, 30)
    assert_same(read(folder / place), made())
    assert_same(read(str(tmp_path / name / "d*p" / place)), made())
    assert_same(read(other / place), made(seed=1))


@pytest.mark.parametrize("name", ["[old]", "all*"])
def test_a_file_that_is_not_in_such_a_folder_does_not_exist(name, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(FileError, match=naming("none", "exist")):
        read(tmp_path / name / "none.parquet")


@pytest.mark.parametrize("depth", [1, 3])
def test_a_message_names_the_file_however_long_its_path_is(depth, tmp_path):
    place = tmp_path.joinpath(*["folder" * 30] * depth, "none.parquet")
    with pytest.raises(FileError, match=naming(r"none\.parquet", "exist")):
        read(place)


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    write(made(), tmp_path / "old[1].parquet")
    assert_same(read(tmp_path / "old[1].parquet"), made())


@pytest.fixture
def store(monkeypatch):
    """An object store in memory, at mock://."""
    there = fs._MockFileSystem()

    def found(uri):
        return there, uri.removeprefix("mock://").partition("?")[0]

    monkeypatch.setattr(_locate, "filesystem_of", found)
    there.create_dir("bucket/old/day=1")
    for number, (start, stop) in enumerate([(0, 20), (20, 50)]):
        table = pa.table(
            {
                "id": list(range(start, stop)),
                "label": ["cat" if row % 3 else "dog" for row in range(start, stop)],
            }
        )
        with there.open_output_stream(f"bucket/old/day=1/part-{number}.parquet") as file:
            pq.write_table(table, file)
    with there.open_output_stream("bucket/old/_SUCCESS") as file:
        file.write(b"")
    with there.open_output_stream("bucket/old/notes.txt") as file:
        file.write(b"words")
    return there


@pytest.mark.parametrize(
    "uri",
    [
        "mock://bucket/old",
        "mock://bucket/old/day=1/?region=here",
        "mock://bucket/old/**/*.parquet",
        "mock://bucket/*/day=[0-9]/part-*.parquet",
    ],
)
def test_an_object_store_is_read_through_pyarrow(store, uri):
    found = read(uri)
    assert found.ids.tolist() == list(range(50))
    assert found.classes == ("cat", "dog")
    assert len(read("mock://bucket/old/day=1/part-1.parquet")) == 30


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mock://bucket/new", naming("mock://bucket/new", "not exist", "address")),
        ("mock://bucket/old/x*.parquet", naming(r"x\*\.parquet", "no file", "pattern")),
        ("mock://bucket/old/*.txt", naming(r"notes\.txt", "be Parquet", "one file")),
        ("mock://bucket/old/_SUCCESS/", r"must be Parquet"),
    ],
)
def test_what_a_store_does_not_have_is_said(store, uri, message):
    with pytest.raises(FileError, match=message):
        read(uri)


def test_a_store_that_pyarrow_does_not_know_is_named():
    with pytest.raises(FileError, match=naming("s4://bucket/old", "Unrecognized", "address")):
        read("s4://bucket/old")


def test_a_damaged_file_of_a_store_is_named(store):
    with store.open_output_stream("bucket/old/day=1/part-2.parquet") as file:
        file.write(b"PAR1 but cut off")
    with pytest.raises(
        FileError, match=naming(r"^mock://bucket/old/day=1/part-2\.parquet", "as Parquet")
    ):
        read("mock://bucket/old")


def test_a_directory_without_parquet_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("words")
    with pytest.raises(FileError, match=naming("directory", "no Parquet")):
        read(tmp_path)
    with pytest.raises(FileError, match=naming(r"notes\.txt", "Parquet")):
        read(str(tmp_path / "*"))
    with pytest.raises(FileError, match=naming(r"\*\.parquet", "pattern")):
        read(str(tmp_path / "*.parquet"))


def damaged(file):
    file.write_bytes(file.read_bytes()[:-20])


def without_weight(file):
    pq.write_table(pq.read_table(file).drop(["weight"]), file)


def with_more(file):
    table = pq.read_table(file)
    pq.write_table(table.append_column("colour", pa.array(["red"] * len(table))), file)


def with_another_class(file):
    table = pq.read_table(file)
    names = ["score:cow" if name == "score:eel" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), file)


def in_single_precision(file):
    table = pq.read_table(file)
    place = table.column_names.index("score:cat")
    column = table.column(place).cast(pa.float32())
    pq.write_table(table.set_column(place, "score:cat", column), file)


def with_bad_scores(file):
    table = pq.read_table(file)
    place = table.column_names.index("score:cat")
    scores = table.column(place).to_numpy().copy()
    scores[7] = -1
    pq.write_table(table.set_column(place, "score:cat", pa.array(scores)), file)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damaged, naming(r"^.*part-2\.parquet", "as Parquet")),
        (without_weight, naming(r"part-2\.parquet and .*part-0\.parquet", 'second has "weight"')),
        (with_more, naming("columns", 'first has "colour"')),
        (with_another_class, naming('second has "score:eel"', 'first has "score:cow"')),
        (in_single_precision, naming("types", '"score:cat"', "float and double")),
        (with_bad_scores, r"^.*part-2\.parquet: .* row 7 \(counted from 0\)"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_one_file_is_said_with_its_name(spoil, message, folder):
    spoil(folder / "part-2.parquet")
    with pytest.raises(FileError, match=message), stream([folder, folder]) as blocks:
        list(blocks)


def test_an_id_in_two_files_is_refused_with_both_names(folder):
    write(made().slice(3, 5), folder / "part-9.parquet")
    files = r"part-0\.parquet and .*part-9\.parquet"
    with pytest.raises(FileError, match=naming("old: Ids", "2 of 52", '"3", "4"', files)):
        stream([folder, folder])


def test_weights_may_be_zero_in_one_file_but_not_in_all(tmp_path):
    said = made()
    weights = np.where(np.arange(50) < 20, 0.0, 1.0)
    plain = Predictions(ids=said.ids, classes=said.classes, labels=said.labels, weights=weights)
    cut(plain, tmp_path / "old", 20, 30)
    assert read(tmp_path / "old").weights.tolist() == weights.tolist()
    (tmp_path / "old/part-1.parquet").unlink()
    with pytest.raises(FileError, match=naming("old:", "weights", "zero")):
        stream([tmp_path / "old", tmp_path / "old"])


def test_a_file_that_changes_while_it_is_read_is_refused(folder):
    with stream([folder, folder]) as blocks:
        write(made(60), folder / "part-0.parquet")
        with pytest.raises(FileError, match=naming(r"part-0\.parquet", "changed")):
            list(blocks)


@pytest.mark.parametrize("kept_open", [True, False])
def test_some_rows_of_a_file_are_those_of_the_whole(kept_open, tmp_path):
    file = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": list(range(100))}), file, row_group_size=7)
    source = ParquetBatches.looked_at(str(file))
    assert source.rows == 100
    for start, stop in [(0, 100), (0, 0), (3, 4), (6, 8), (14, 21), (50, 99), (99, 100)]:
        found = []
        with source.kept_open() as held:
            for batch in (held if kept_open else source).batches(["id"], start=start, stop=stop):
                found += batch.column(0).to_pylist()
        assert found == list(range(start, stop))


def test_patterns_are_called_by_their_folders():
    files = [Path("old/*.parquet"), Path("new/*.parquet")]
    assert names_of_files(files) == ("old", "new")
    assert names_of_files([Path("a-*.parquet"), Path("b-*.parquet")]) == ("a-*", "b-*")
