import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import ColumnNames, Predictions, _sources, read, write
from dynsnap.predictions import _write as writing
from dynsnap.predictions._schema import interpret
from dynsnap.predictions._tables import checked_rows, parts_of
from dynsnap.predictions._vocabulary import vocabulary_of
from tests.marks import daily
from tests.messages import naming
from tests.strategies import predictions

SUFFIXES = ["parquet", "pq", "arrow", "feather", "ipc", "csv", "csv.gz", "npz"]
every_format = pytest.mark.parametrize("suffix", SUFFIXES)


def same(first, second, *, exact=True):
    """Whether two predictions say the same; without `exact`, as far as CSV can tell."""
    text = [str(each) for each in first.ids]
    assert text == [str(each) for each in second.ids]
    assert first.names_of(first.labels).tolist() == second.names_of(second.labels).tolist()
    assert (first.truth is None) == (second.truth is None)
    if first.truth is not None:
        assert first.names_of(first.truth).tolist() == second.names_of(second.truth).tolist()
    assert (first.scores is None) == (second.scores is None)
    if first.scores is not None:
        assert first.classes == second.classes
        assert np.array_equal(first.scores, second.scores.astype(first.scores.dtype))
    assert (first.weights is None) == (second.weights is None)
    if first.weights is not None:
        assert np.array_equal(first.weights, second.weights)
    assert list(first.slices) == list(second.slices)
    for name, column in first.slices.items():
        other = second.slices[name]
        values = [column.values[code] for code in column.codes]
        assert values == [other.values[code] for code in other.codes]
    if exact:
        assert first.classes == second.classes
        assert first.ids.dtype == second.ids.dtype
        assert first.scores is None or first.scores.dtype == second.scores.dtype


@pytest.mark.parametrize("suffix", daily(SUFFIXES, "parquet", "arrow", "csv.gz", "npz"))
def test_what_is_written_is_read_back(suffix, tmp_path):
    file = tmp_path / f"file.{suffix}"

    @given(predictions())
    def check(made):
        write(made, file)
        same(made, read(file), exact="csv" not in suffix)

    check()
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@every_format
def test_many_batches_are_read_as_one(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_ROWS", 3)
    monkeypatch.setattr(_sources, "_BATCH_ROWS", 2)
    file = tmp_path / f"file.{suffix}"
    scores = np.random.default_rng(0).dirichlet(np.ones(3), 10).astype(np.float32)
    made = Predictions(
        ids=[f"input {place}" for place in range(10)],
        classes=["cat", "dog", "eel"],
        scores=scores,
        truth=["eel"] * 9 + ["cat"],
        slices={"hour": [None] * 9 + [1]},
        weights=np.arange(10),
    )
    write(made, file)
    same(made, read(file), exact="csv" not in suffix)


@every_format
def test_many_classes_are_read_back(suffix, tmp_path):
    file = tmp_path / f"file.{suffix}"
    scores = np.random.default_rng(0).dirichlet(np.ones(300), 4).astype(np.float32)
    made = Predictions(ids=range(4), classes=[f"{n}" for n in range(300)], scores=scores)
    write(made, file)
    same(made, read(file), exact="csv" not in suffix)
    if suffix == "parquet":
        assert pq.read_schema(file).names == ["id", "label", "scores"]


@pytest.mark.parametrize("suffix", ["PARQUET", "Npz", "CSV"])
def test_the_case_of_an_ending_does_not_matter(suffix, tmp_path):
    made = Predictions(ids=[1], classes=["cat"], labels=[0])
    write(made, tmp_path / f"file.{suffix}")
    same(made, read(tmp_path / f"file.{suffix}"))


def test_each_batch_of_a_file_can_be_read_on_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "_BATCH_ROWS", 3)
    file = tmp_path / "file.parquet"
    made = Predictions(
        ids=[f"{n}" for n in range(7)],
        classes=["cat", "dog"],
        labels=[0, 1, 0, 1, 0, 0, 0],
        truth=[0] * 6 + [1],
        slices={"hour": [1, 1, 1, None, 2, 2, 10]},
        weights=[0] * 6 + [1],
    )
    write(made, file)
    with _sources.opened(file, ColumnNames()) as source:
        layout = interpret(source.schema, ColumnNames())
        vocabulary = vocabulary_of(source, layout)
        found = [checked_rows(part, vocabulary) for part in parts_of(source, layout, vocabulary)]
    assert [len(each) for each in found] == [3, 3, 1]
    for place, each in enumerate(found):
        same(each, made.slice(3 * place, 3 * place + 3))
        assert each.slices["hour"].values == ("1", "2", "10", "(none)")


def test_wide_rows_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "_BATCH_BYTES", 5_000)
    file = tmp_path / "file.parquet"
    scores = np.random.default_rng(0).dirichlet(np.ones(300), 10)
    write(Predictions(ids=range(10), classes=[f"{n}" for n in range(300)], scores=scores), file)
    with _sources.opened(file, ColumnNames()) as source:
        assert {batch.num_rows for batch in source.batches(["scores"])} <= {1, 2}
    assert np.array_equal(read(file).scores, scores)


def csv(folder, text):
    file = folder / "file.csv"
    file.write_text(text, encoding="utf-8")
    return file


def parquet(folder, columns, metadata=None):
    file = folder / "file.parquet"
    table = pa.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata), file)
    return file


def npz(folder, **arrays):
    file = folder / "file.npz"
    np.savez(file, **arrays)
    return file


def test_text_in_csv_stays_as_it_is_written(tmp_path):
    file = csv(tmp_path, "id,label,truth,hour\n007,NA,null,01\n08,1.0,NA,1\n")
    found = read(file)
    assert found.ids.tolist() == ["007", "08"]
    assert found.classes == ("1.0", "NA", "null")
    assert found.slices["hour"].values == ("01", "1")


def test_whole_number_ids_in_csv_are_numbers(tmp_path):
    assert read(csv(tmp_path, "id,label\n10,a\n-9,b\n")).ids.tolist() == [10, -9]


def test_line_breaks_within_quotes_do_not_end_a_row(tmp_path):
    found = read(csv(tmp_path, 'id,label,text\n1,a,"two\nlines"\n2,b,one\n'))
    assert found.ids.tolist() == [1, 2]
    assert not found.slices
    (note,) = found.notes
    assert re.search(naming("50", '"text"'), note)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert read(csv(tmp_path, "\ufeffid,label\n1,a\n")).ids.tolist() == [1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.float64(), pa.string(), pa.binary()])
def test_an_integer_label_is_read_as_its_text(kind, tmp_path):
    labels = pa.array([10, 9, 9]).cast(pa.string() if kind == pa.binary() else kind)
    found = read(parquet(tmp_path, {"id": [1, 2, 3], "label": labels.cast(kind)}))
    assert found.classes == ("9", "10")
    assert found.labels.tolist() == [1, 0, 0]


def test_an_integer_label_belongs_to_the_score_column_of_that_name(tmp_path):
    columns = {"id": [1, 2], "score:9": [0.0, 1.0], "score:3": [1.0, 0.0], "truth": [3, 9]}
    found = read(parquet(tmp_path, columns))
    assert found.classes == ("9", "3")
    assert found.truth.tolist() == found.labels.tolist() == [1, 0]


def test_integers_in_npz_are_names_unless_it_says_that_they_are_positions(tmp_path):
    arrays = {"id": np.arange(2), "label": np.array([2, 1]), "truth": np.array([1, 1])}
    assert read(npz(tmp_path, **arrays)).classes == ("1", "2")
    found = read(npz(tmp_path, **arrays, classes=np.array([2, 1])))
    assert found.names_of(found.labels).tolist() == ["2", "1"]
    animals = {"classes": np.array(["cat", "dog", "eel"]), "positions": np.array(True)}
    found = read(npz(tmp_path, **arrays, **animals))
    assert found.names_of(found.labels).tolist() == ["eel", "dog"]
    assert found.names_of(found.truth).tolist() == ["dog", "dog"]
    with pytest.raises(FileError, match=naming(r"file\.npz", "`label`", "0", "1")):
        read(npz(tmp_path, **arrays, **(animals | {"classes": np.array(["cat", "dog"])})))
    with pytest.raises(FileError, match=naming(r"file\.npz", "`label`", "positions")):
        read(npz(tmp_path, **arrays, classes=np.array(["cat", "dog", "eel"])))


def test_score_lists_take_their_class_names_from_the_metadata(tmp_path):
    scores = [[0.25, 0.75], [1.0, 0.0]]
    metadata = {"dynsnap.classes": json.dumps(["dog", "cat"])}
    found = read(parquet(tmp_path, {"id": [1, 2], "scores": scores}, metadata))
    assert found.classes == ("dog", "cat")
    assert found.scores.tolist() == scores
    assert found.labels.tolist() == [1, 0]


def test_score_lists_without_class_names_are_numbered_and_that_is_said(tmp_path):
    scores = np.array([[0.25, 0.75], [1.0, 0.0]], np.float16)
    for file in [
        parquet(tmp_path, {"id": [1, 2], "scores": scores.tolist(), "truth": [1, 5]}),
        npz(tmp_path, id=np.arange(2), scores=scores, truth=np.array([1, 5])),
    ]:
        found = read(file)
        assert found.classes == ("0", "1", "5")
        assert found.truth.tolist() == [1, 2]
        assert found.scores.tolist() == [[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]
        assert re.search(naming("positions", '"scores"'), found.notes[0])
    assert found.scores.dtype == np.float32


def test_truth_may_name_classes_that_the_model_does_not_have(tmp_path):
    text = "id,score:dog,score:cat,truth\n1,0.5,0.5,cat\n2,1,0,yak\n3,0,1,eel\n"
    found = read(csv(tmp_path, text))
    assert found.classes == ("dog", "cat", "eel", "yak")
    assert found.scores.tolist() == [[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert found.truth.tolist() == [1, 3, 2]
    assert found.labels.tolist() == [0, 0, 1]
    (note,) = found.notes
    assert re.search(naming("[Tt]ruth", '"eel"', '"yak"'), note)


def test_other_columns_with_at_most_50_values_are_slices(tmp_path):
    rows = 200
    columns = {
        "id": range(rows),
        "label": ["a"] * rows,
        "fifty": [place % 50 for place in range(rows)],
        "more": [place % 51 for place in range(rows)],
        "share": [(0.5, 1.0, None)[place % 3] for place in range(rows)],
        "rain": [place % 2 == 0 for place in range(rows)],
        "nested": [[1]] * rows,
        "price": pa.array([1] * rows, pa.decimal32(4, 2)),
        "nothing": [None] * rows,
        "day": pa.array([19000] * rows, pa.date32()),
        "sort": pa.array(["x"] * rows).dictionary_encode(),
    }
    found = read(parquet(tmp_path, columns))
    assert list(found.slices) == ["fifty", "share", "rain", "day", "sort"]
    assert found.slices["fifty"].values == tuple(str(place) for place in range(50))
    assert found.slices["share"].values == ("0.5", "1", "(none)")
    assert found.slices["rain"].values == ("false", "true")
    assert found.slices["day"].values == ("2022-01-08",)
    ignored = ('"nested"', '"nothing"', '"more"', '"price"')
    assert re.search(naming(*ignored), found.notes[0])
    assert not any(name in found.notes[0] for name in found.slices)


def test_columns_may_be_called_otherwise(tmp_path):
    text = "image,said,really,p_dog,p_cat,visits,label\n7,cat,dog,0.5,0.5,3,x\n"
    names = ColumnNames(
        id="image", label="said", truth="really", score_prefix="p_", weight="visits"
    )
    found = read(csv(tmp_path, text), columns=names)
    assert found.classes == ("dog", "cat")
    assert (found.labels[0], found.truth[0], found.weights[0]) == (1, 0, 3)
    assert list(found.slices) == ["label"]
    with pytest.raises(FileError, match=naming("slice", '"label"')):
        write(found, tmp_path / "again.csv")
    write(found, tmp_path / "again.csv", columns=names)
    same(found, read(tmp_path / "again.csv", columns=names))


@pytest.mark.parametrize("names", [{"id": ""}, {"id": "label"}, {"truth": 3}])
def test_column_names_that_contradict_themselves_are_refused(names):
    with pytest.raises(PlanError, match=naming("column", "named?")):
        ColumnNames(**names)


def test_classes_are_renamed_and_merged_while_reading(tmp_path):
    file = csv(tmp_path, "id,score:cat,score:kitten,score:dog\n1,0.3,0.3,0.4\n2,0,0,1\n")
    found = read(file, rename={"dog": "hound"})
    assert found.classes == ("cat", "kitten", "hound")
    assert found.labels.tolist() == [2, 2]
    found = read(file, rename={"kitten": "cat"})
    assert found.classes == ("cat", "dog")
    assert np.allclose(found.scores, [[0.6, 0.4], [0, 1]])
    assert found.labels.tolist() == [0, 1]
    (note,) = found.notes
    assert re.search(naming('"cat"', '"kitten"'), note)
    with pytest.raises(PlanError, match=naming('"kiten"', r"file\.csv", '"kitten"')):
        read(file, rename={"kiten": "cat"})


def test_arrow_streams_and_newer_text_are_read(tmp_path):
    table = pa.table({"id": ["a", "b"], "label": ["x", "y"], "hour": ["1", "2"]})
    table = table.cast(pa.schema([(name, pa.string_view()) for name in table.column_names]))
    file = tmp_path / "file.arrow"
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    found = read(file)
    assert found.ids.tolist() == ["a", "b"]
    assert found.names_of(found.labels).tolist() == ["x", "y"]
    assert found.slices["hour"].values == ("1", "2")


def test_unsigned_ids_beyond_int64_in_one_batch_make_all_text(tmp_path):
    ids = pa.chunked_array([pa.array([1], pa.uint64()), pa.array([2**64 - 1], pa.uint64())])
    file = tmp_path / "file.arrow"
    with pa.ipc.new_file(file, pa.schema({"id": pa.uint64(), "label": pa.int8()})) as writer:
        writer.write_table(pa.table({"id": ids, "label": pa.array([1, 2], pa.int8())}))
    assert read(file).ids.tolist() == ["1", str(2**64 - 1)]


def test_big_endian_and_byte_arrays_are_read_from_npz(tmp_path):
    found = read(
        npz(
            tmp_path,
            id=np.array([b"a", b"b"]),
            label=np.array([1, 2], ">i4"),
            weight=np.array([1, 2], ">f4"),
            picture=np.zeros((2, 4, 4)),
            note=np.array("single"),
        )
    )
    assert found.ids.tolist() == ["a", "b"]
    assert found.weights.tolist() == [1, 2]
    assert 'ignored: "picture", "note"' in found.notes[0]


def refused(file, match, **options):
    with pytest.raises(FileError, match=match) as caught:
        read(file, **options)
    message = str(caught.value)
    assert str(file) in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "name,label\n1,a\n",
            r'no column "id"; .* are "name", "label"\. .*--id-column NAME',
        ),
        (
            "id,x\n1,a\n",
            r'neither a column "label" nor .* "id", "x"\. .*--label-column NAME',
        ),
        ("id,label\n1,a\n1,b\n", 'unique, but 1 of 2 rows .*"1"'),
        ("id,label\n1,a\n2,\n", "`label` is missing for 1 of 2 rows"),
        ("id,label\n", "no row"),
        ("", "it is empty"),
        ("id,score:a,score:b\n1,2,3\n", "sum to 5.*softmax"),
        ("id,score:a,score:b\n1,,1\n", 'class "a" in row 0 .* NaN or missing'),
        ("id,score:a,score:b\n1,x,1\n", "cannot be read as CSV: .*'x'"),
        ("id,score:a,score:a\n1,0,1\n", '"score:a" occurs more than once'),
        ("id,id,label\n1,1,a\n", '"id" occurs more than once'),
        ("id,score:a,score:b,label\n1,0,1,c\n", '`label` names "c", but that is none of the 2'),
        ("id,label,weight\n1,a,-1\n", "A weight must be 0 or a number .* is -1"),
        ("id,label,weight\n1,a,0\n", "All weights are zero"),
        ('id,label\n1,"a\nb"\n', r'class name "a\\nb" holds control characters'),
        ('id,label\n"1\n2",a\n', "control characters"),
        ("id,label\n1,a,b\n", "Expected 2 columns, got 3"),
        ("id,score:\n1,1\n", "neither a column"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(text, match, tmp_path):
    refused(csv(tmp_path, text), match)


@pytest.mark.parametrize(
    ("columns", "metadata", "match"),
    [
        (
            {"id": [1, 2], "scores": [[0.5, 0.5], [1.0]]},
            None,
            "2 scores per row.* holds 1 in row 1",
        ),
        ({"id": [1, 2], "scores": [[0.5, 0.5], None]}, None, '"scores" is missing for 1 rows'),
        ({"id": [1], "scores": [["a"]]}, None, "must be of numbers"),
        ({"id": [1], "scores": [[1.0]]}, {"dynsnap.classes": "{"}, "JSON list of class names"),
        ({"id": [1], "scores": [[1.0]]}, {"dynsnap.classes": "[1]"}, "class name must be text"),
        ({"id": [1], "scores": [[1.0]]}, {"dynsnap.classes": '["a", "b"]'}, "2 scores per row"),
        ({"id": [1], "scores": [[1.0]], "score:a": [1.0]}, None, "Scores are given twice"),
        ({"id": [1], "score:a": ["x"]}, None, "must be numbers, but is of the type string"),
        ({"id": [1], "label": ["a"], "weight": ["x"]}, None, '"weight" must be numbers'),
        ({"id": [1], "label": [0.5]}, None, "not whole, such as"),
        ({"id": [0.5], "label": [1]}, None, "Ids must be whole numbers or text"),
        ({"id": [[1]], "label": [1]}, None, "Ids must be whole numbers or text"),
        ({"id": [1], "label": [[1]]}, None, naming("label", "lists", "--task multilabel")),
        ({"id": [1], "label": [{"a": 1}]}, None, "cannot be read as names. Convert them to text"),
        ({"id": [1], "label": pa.array([None], pa.string())}, None, "no row has a label"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_one_line(columns, metadata, match, tmp_path):
    refused(parquet(tmp_path, columns, metadata), match)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"id": [1, 2], "label": [1]}, '"label" must have one value for each of the 2 ids'),
        ({"id": [1], "scores": [[[1.0]]]}, "three axes.*dynsnap audit"),
        ({"id": [1], "scores": [[1.0], [1.0]]}, r"\(inputs, classes\) with 1 inputs"),
        ({"id": [1], "scores": [1.0]}, "neither a column"),
        ({"id": [1], "label": [0], "classes": [["a"]]}, "must be a list of class names"),
        ({"id": [1], "label": [0], "classes": [0.5]}, "names or positions"),
        ({"id": [1], "label": [1j]}, "complex128 and cannot be read"),
        ({"label": [1]}, 'no column "id"'),
    ],
)
def test_what_is_wrong_with_an_archive_is_said_in_one_line(arrays, match, tmp_path):
    refused(npz(tmp_path, **{name: np.array(values) for name, values in arrays.items()}), match)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_table_with_other_marks_between_values_is_recognised(mark, tmp_path):
    file = csv(tmp_path, "id,truth,label\n1,a,a\n".replace(",", mark))
    refused(file, "values seem to be separated by ")


def test_text_in_another_encoding_is_recognised(tmp_path):
    (tmp_path / "file.csv").write_bytes("id,label\n1,café\n".encode("latin-1"))
    refused(tmp_path / "file.csv", r"its text is not UTF-8\. Write it in UTF-8\.")
    for name, text in {"file.csv": "id,label\n1,café\n", "file.jsonl": '{"id": 1}\n'}.items():
        (tmp_path / name).write_text(text, encoding="utf-16")
        refused(tmp_path / name, "UTF-16.*UTF-8")


def test_a_table_without_rows_is_said_so(tmp_path):
    refused(csv(tmp_path, "id,truth,label\n"), "There are no rows")


def test_a_mapped_column_must_be_there(tmp_path):
    file = csv(tmp_path, "id,label\n1,a\n")
    refused(file, 'no column "said"', columns=ColumnNames(label="said"))
    refused(file, 'no column that starts with "p_"', columns=ColumnNames(score_prefix="p_"))


def test_a_missing_file_a_directory_and_an_unknown_ending_are_named(tmp_path):
    refused(tmp_path / "none.parquet", "does not exist")
    (tmp_path / "folder.parquet").mkdir()
    refused(tmp_path / "folder.parquet", "is a directory")
    (tmp_path / "file.xlsx").write_text("x")
    refused(tmp_path / "file.xlsx", r'"\.xlsx".* Use one of \.parq')
    made = Predictions(ids=[1], classes=["cat"], labels=[0])
    with pytest.raises(FileError, match=naming(r'"\.txt"', r"\.parquet, \.pq", r"\.npz")):
        write(made, tmp_path / "file.txt")
    with pytest.raises(FileError, match=naming(r"folder\.parquet", "directory")):
        write(made, tmp_path / "folder.parquet")
    with pytest.raises(FileError, match=naming(r"nowhere/file\.csv", "No such file", "a place")):
        write(made, tmp_path / "nowhere" / "file.csv")


def test_a_file_under_the_ending_of_another_format_is_recognised(tmp_path):
    made = Predictions(ids=[1], classes=["cat"], labels=[0])
    write(made, tmp_path / "file.parquet")
    content = (tmp_path / "file.parquet").read_bytes()
    for suffix in ("csv", "arrow"):
        file = tmp_path / f"wrong.{suffix}"
        file.write_bytes(content)
        refused(file, r"looks like a \.parquet file\. Give it that ending")
    (tmp_path / "wrong.npz").write_bytes(content)
    refused(tmp_path / "wrong.npz", r"is a Parquet file, not an NPZ archive.* its own ending")
    (tmp_path / "zipped.csv").write_bytes(gzip.compress(b"id,label\n1,a\n"))
    refused(tmp_path / "zipped.csv", r"Call it zipped\.csv\.gz")


def test_control_characters_in_a_path_do_not_reach_the_terminal(tmp_path):
    with pytest.raises(FileError, match=naming(r"a\\x1bb\.csv", "not exist")):
        read(tmp_path / "a\x1bb.csv")


@every_format
def test_a_failed_write_leaves_the_old_file_alone(suffix, tmp_path, monkeypatch):
    file = tmp_path / f"file.{suffix}"
    made = Predictions(ids=["a"], classes=["cat"], labels=[0])
    write(made, file)
    before = file.read_bytes()

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing._files.os, "fsync", lambda _: None)
    monkeypatch.setattr(writing._files, "flush", fail)
    with pytest.raises(FileError, match=naming(r"file\.", "No space", "has room")):
        write(made, file)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@given(st.permutations(["10", "9", "b2", "b10", "a"]))
def test_classes_that_no_column_orders_come_in_natural_order(tmp_path_factory, names):
    file = tmp_path_factory.mktemp("order") / "file.csv"
    rows = "".join(f"{place},{name}\n" for place, name in enumerate(names))
    file.write_text(f"id,label\n{rows}")
    assert read(file).classes == ("9", "10", "a", "b2", "b10")
