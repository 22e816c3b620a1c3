import csv
import doctest
import gzip
import io
import json
import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from dynsnap.data import SOURCES, GrowthPlan, from_arrays, grow, load, split
from dynsnap.errors import DataError, FileError, PlanError
from tests.messages import naming

TEXT = Path(__file__).parents[3] / "shared" / "data" / "text"


def test_arrays_become_a_pool_with_named_classes():
    pool = from_arrays(np.zeros((3, 2)), np.array([10, 9, 10]), name="mine")
    assert pool.classes == ("9", "10")
    assert pool.labels.tolist() == [1, 0, 1]
    assert pool.ids.tolist() == ["mine-0", "mine-1", "mine-2"]
    named = from_arrays(["some text", "more"], [1, 0], classes=["cat", "dog"], ids=["a", "b"])
    assert named.labels.tolist() == [1, 0]
    assert named.inputs.dtype == object


@pytest.mark.parametrize(
    ("inputs", "labels", "options", "message"),
    [
        (
            np.zeros((2, 2)),
            [0.5, 1.0],
            {},
            naming("labels", "whole numbers", "float64"),
        ),
        (np.zeros((2, 2)), [None, "a"], {}, naming("labels", "class names", "object")),
        (np.zeros((2, 2)), [[0], [1]], {}, naming("labels", "int64", r"\(2, 1\)")),
        (np.zeros(2), [0, 1], {}, naming("inputs", "two axes", r"\(2,\)")),
        ([[1, 2], [3]], [0, 1], {}, naming("inputs", "one shape")),
        (np.zeros((2, 2), complex), [0, 1], {}, "but are complex128"),
        (np.array(["a", 1], object), [0, 1], {}, naming("inputs", "one shape", "text")),
        (np.zeros((3, 2)), [0, 1], {}, naming("inputs, labels and ids", "3, 2 and 3")),
        (
            np.zeros((2, 2)),
            ["cat", "cow"],
            {"classes": ["cat"]},
            naming("label 'cow'", "1 classes"),
        ),
        (np.zeros((2, 2)), [0, 1], {"classes": ["cat"]}, naming("labels", "1 classes")),
    ],
)
def test_arrays_that_make_no_pool_are_refused(inputs, labels, options, message):
    with pytest.raises(DataError, match=message):
        from_arrays(inputs, labels, **options)


def test_npz_files_are_read_and_their_classes_united(tmp_path):
    np.savez(
        tmp_path / "train.npz",
        inputs=np.arange(6).reshape(3, 2),
        labels=np.array(["dog", "cat", "dog"]),
        ids=np.array(["x", "y", "z"]),
        **{"slice:week": np.array([1, 1, 2])},
    )
    np.savez(
        tmp_path / "test.npz",
        inputs=np.arange(4).reshape(2, 2),
        labels=np.array([1, 0]),
        classes=np.array(["dog", "ant"]),
    )
    found = load("npz", tmp_path / "train.npz", test=tmp_path / "test.npz")
    assert found.train.classes == found.test.classes == ("ant", "cat", "dog")
    assert [found.train.classes[label] for label in found.train.labels] == ["dog", "cat", "dog"]
    assert [found.test.classes[label] for label in found.test.labels] == ["ant", "dog"]
    assert found.train.ids.tolist() == ["x", "y", "z"]
    assert found.train.slices["week"].tolist() == ["1", "1", "2"]
    assert load("npz", tmp_path / "train.npz").test is None


def test_texts_in_npz_are_texts(tmp_path):
    np.savez(tmp_path / "t.npz", inputs=np.array(["one", "two"]), labels=np.array([0, 1]))
    assert load("npz", tmp_path / "t.npz").train.inputs.tolist() == ["one", "two"]


def test_npz_files_that_cannot_be_read_are_refused(tmp_path):
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return Path.touch, (marker,)

    path = tmp_path / "x.npz"
    np.savez(path, inputs=np.array([Evil()], dtype=object), labels=np.array([0]))
    with pytest.raises(FileError, match="never loaded"):
        load("npz", path)
    assert not marker.exists()
    path.write_bytes(pickle.dumps({"inputs": 1}))
    with pytest.raises(FileError, match="NPZ archive"):
        load("npz", path)
    np.savez(path, inputs=np.zeros((2, 2)))
    with pytest.raises(DataError, match=naming(r"\['labels'\]", r"\['inputs'\]")):
        load("npz", path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileError, match="is damaged"):
        load("npz", path)
    with pytest.raises(FileError, match="Cannot read"):
        load("npz", tmp_path / "none.npz")


ROWS = "key,kind,width,height,city,label\nk1,a,1.5,2,Rome,007\nk2,b,2.5,3,Oslo,08\n"


@pytest.fixture(params=["csv", "csv.gz", "parquet", "views.parquet"])
def table(request, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    if request.param.endswith("parquet"):
        text = pa.string_view() if "views" in request.param else pa.string()
        columns = {
            "key": pa.array(["k1", "k2"], text),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "width": [1.5, 2.5],
            "height": [2, 3],
            "city": pa.array(["Rome", "Oslo"], text),
            "label": pa.array(["007", "08"], text),
        }
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif request.param == "csv.gz":
        path.write_bytes(gzip.compress(ROWS.encode()))
    else:
        path.write_text(ROWS)
    return path


def test_a_table_gives_features_ids_and_slices(table):
    found = load("table", table, test=table, id=None, slices=["city", "kind", "key"])
    assert found.train.classes == ("007", "08")
    assert found.train.inputs.tolist() == [[1.5, 2.0], [2.5, 3.0]]
    assert found.train.inputs.dtype == np.float32
    assert found.train.slices["city"].tolist() == ["Rome", "Oslo"]
    assert found.train.slices["kind"].tolist() == ["a", "b"]
    assert found.test.ids.tolist() == ["test-0", "test-1"]
    named = load("table", table, id="key", features=["height"], label="kind").train
    assert named.ids.tolist() == ["k1", "k2"]
    assert named.inputs.tolist() == [[2.0], [3.0]]


def test_a_table_gives_texts(table):
    pool = load("table", table, text="city").train
    assert pool.inputs.tolist() == ["Rome", "Oslo"]
    assert pool.inputs.dtype == object


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "lable"}, naming("column 'lable'", '"label"')),
        ({}, naming("column 'key'", "string", "`features`", "`slices`", "`id`")),
        ({"features": ["widht"]}, naming("column 'widht'", '"width"')),
        ({"label": "width"}, naming("column 'width'", "whole numbers", "double")),
    ],
)
def test_columns_that_do_not_fit_are_refused(options, message, tmp_path):
    path = tmp_path / "rows.parquet"
    columns = {"key": ["k1", "k2"], "width": [1.5, 2.5], "label": [1, 0]}
    pyarrow.parquet.write_table(pa.table(columns), path)
    with pytest.raises(DataError, match=message):
        load("table", path, **options)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("label,a\n", {}, "has no rows"),
        ("", {}, "Cannot read"),
        ("label,a,a\nx,1,2\n", {}, "two columns named 'a'"),
        ("label,a\nx,1\ny\n", {}, naming(r"rows\.csv", "2 columns")),
        ("label,a\nx,1\ny,\n", {}, naming("column 'a'", "1 rows", "`allow_missing`")),
        ("label,a\nx,1\ny,inf\n", {}, "beyond float32"),
        ("label\nx\n", {}, "no feature columns.*`text`"),
        ("label,a\nx,1\n", {"id": "a", "features": ["a"], "slices": ["a"]}, "one role only"),
        ("label,a\nx,1\n", {"text": "a", "features": ["a"]}, naming("`text`", "`features`")),
        ("key,label,a\nk,x,1\nk,y,2\n", {"id": "key"}, naming("ids", "unique", "'k'")),
    ],
)
def test_tables_that_make_no_pool_are_refused(content, options, message, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises((DataError, PlanError), match=message):
        load("table", path, **options)


def test_missing_numbers_are_admitted_when_asked(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,a\nx,1\ny,\n")
    assert np.isnan(load("table", path, allow_missing=True).train.inputs[1, 0])


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    path = tmp_path / "rows.parquet"
    columns = {"label": ["x", "y"], "a": [1, 2], "__index_level_0__": [7, 8]}
    pyarrow.parquet.write_table(pa.table(columns), path)
    assert load("table", path).train.inputs.tolist() == [[1], [2]]


def test_files_that_are_no_tables_are_refused(tmp_path):
    with pytest.raises(DataError, match=naming(r"\.csv", "end")):
        load("table", tmp_path / "rows.xlsx")
    with pytest.raises(DataError, match=r"rows\.csv\.$"):
        load("table", tmp_path / "rows.csv")
    (tmp_path / "bad.csv").write_bytes(b"label,a\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="UTF8"):
        load("table", tmp_path / "bad.csv")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="Cannot read"):
        load("table", tmp_path / "rows.parquet")


def paint(path, size=(4, 6), colour=(10, 20, 30), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size[::-1], colour if mode == "RGB" else colour[0]).save(path)


def test_folders_of_images_are_read_class_by_class(tmp_path):
    paint(tmp_path / "train" / "dog" / "b.png")
    paint(tmp_path / "train" / "dog" / "a.png", colour=(1, 2, 3))
    paint(tmp_path / "train" / "cat" / "a.png", mode="L")
    paint(tmp_path / "test" / "cow" / "a.png")
    (tmp_path / "train" / "dog" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / ".hidden").mkdir()
    found = load("images", tmp_path)
    assert found.train.classes == found.test.classes == ("cat", "cow", "dog")
    assert found.train.ids.tolist() == ["train/cat/a.png", "train/dog/a.png", "train/dog/b.png"]
    assert found.train.labels.tolist() == [0, 2, 2]
    assert found.train.inputs.shape == (3, 4, 6, 3)
    assert found.train.inputs[1, 0, 0].tolist() == [1, 2, 3]
    (note,) = found.notes
    assert re.search(naming(re.escape(str(tmp_path / "train")), "1 files", "no images"), note)
    elsewhere = load("images", tmp_path / "train", test=tmp_path / "test", grey=True)
    assert elsewhere.test.inputs.shape == (1, 4, 6, 1)


def test_images_of_several_sizes_need_one(tmp_path):
    paint(tmp_path / "cat" / "a.png")
    paint(tmp_path / "cat" / "b.png", size=(8, 8))
    with pytest.raises(DataError, match=naming(r"b\.png", "8", "4", "6", "`size`")):
        load("images", tmp_path)
    assert load("images", tmp_path, size=[5, 7]).train.inputs.shape == (2, 5, 7, 3)
    with pytest.raises(PlanError, match=naming("`size`", r"\(height, width\)")):
        load("images", tmp_path, size=[5])
    with pytest.raises(PlanError, match="in pixels, got 5"):
        load("images", tmp_path, size=5)


def test_images_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.$"):
        load("images", tmp_path / "none")
    with pytest.raises(DataError, match="holds no images"):
        load("images", tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(b"not a picture")
    with pytest.raises(DataError, match=naming(r"a\.png", "image")):
        load("images", tmp_path)


def zhang(rows):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


YAHOO = {
    "classes.txt": b"Society & Culture\nHealth\n",
    "train.csv": zhang([[1, "Why?", "a\\nb", 'say "hi"'], [2, "How, so?", "", "line\nbreak"]]),
    "test.csv": zhang([[2, "When?", "", "now"]]),
}


def test_a_folder_of_zhangs_csv_is_read(tmp_path):
    for name, content in YAHOO.items():
        zipped = name.startswith("train")
        path = tmp_path / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(content) if zipped else content)
    for found in (load("text-csv", tmp_path), load("yahoo-answers", tmp_path)):
        assert found.train.classes == ("Society & Culture", "Health")
        assert found.train.inputs.tolist() == ['Why? a\nb say "hi"', "How, so?  line\nbreak"]
        assert found.train.labels.tolist() == [0, 1]
        assert found.test.labels.tolist() == [1]
    assert load("text-csv", tmp_path, columns=1).test.inputs.tolist() == ["When?"]
    (tmp_path / "classes.txt").unlink()
    assert load("text-csv", tmp_path).train.classes == ("1", "2")


def test_zhangs_archive_is_read_and_an_unknown_checksum_noted(tmp_path):
    archive = tmp_path / "yahoo_answers_csv.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for name, content in YAHOO.items():
            member = tarfile.TarInfo(f"yahoo_answers_csv/{name}")
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    for path in (archive, tmp_path):
        found = load("yahoo-answers", path)
        assert found.test.inputs.tolist() == ["When?  now"]
        assert "official md5 sum f3f9899b" in found.notes[0]


def test_ag_news_breaks_lines_at_backslashes(tmp_path):
    folder = tmp_path / "ag_news_csv"
    folder.mkdir()
    (folder / "train.csv").write_bytes(zhang([[1, "Title", "social\\network"], [2, "b", "c"]]))
    (folder / "classes.txt").write_text("World\nSports\n")
    found = load("ag-news", tmp_path)
    assert found.train.inputs[0] == "Title social\nnetwork"
    assert found.test is None
    assert re.search(naming(r"train\.csv", "md5", "b1a00f82"), found.notes[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Cannot read"),
        (b'"one","a"\n', "Cannot read .*int64"),
        (b'"1"\n', naming(r"train\.csv", "class number", "one text")),
        (b'"1","a"\n"2","b","c"\n', naming(r"train\.csv", "2 columns")),
        (b'"3","a"\n', naming(r"train\.csv", "classes 3 to 3", "1 to 2")),
        (b'"0","a"\n', "has classes 0 to 0"),
        (b'"1","\xff\xfe"\n', "Cannot read"),
    ],
)
def test_damaged_text_csv_is_refused(content, message, tmp_path):
    (tmp_path / "train.csv").write_bytes(content)
    (tmp_path / "classes.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=message):
        load("text-csv", tmp_path)


@given(mtime=st.integers(0, 2**32 - 1))  # gzip writes one into the file
@example(mtime=int.from_bytes(b"\n\n\n\n"))
@example(mtime=int.from_bytes(b'","\n'))
@example(mtime=int.from_bytes(b"[{}]"))
@pytest.mark.parametrize(
    ("source", "name", "content"),
    [
        ("table", "rows.csv", ROWS.encode()),
        ("jsonl", "rows.jsonl", b'{"label": 1, "text": "a"}\n'),
        ("text-csv", "train.csv", YAHOO["train.csv"]),
    ],
)
def test_a_packed_file_is_called_packed_whatever_its_bytes(
    source, name, content, mtime, tmp_path_factory
):
    folder = tmp_path_factory.getbasetemp() / f"packed-{source}"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(gzip.compress(content, mtime=mtime))
    with pytest.raises(DataError, match=naming(re.escape(name), "gzip", re.escape(f"{name}.gz"))):
        load(source, folder if source == "text-csv" else folder / name)


def test_text_csv_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=naming(r"train\.csv")):
        load("text-csv", tmp_path)
    with pytest.raises(DataError, match=naming("folder or archive", r"none\.$")):
        load("text-csv", tmp_path / "none")
    with pytest.raises(PlanError, match=naming("`columns`", "1", "0")):
        load("text-csv", tmp_path, columns=0)
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(b'"1","a"\n' * 999)[:-9])
    with pytest.raises(DataError, match="Cannot read"):
        load("text-csv", tmp_path)
    with pytest.raises(DataError, match=naming("md5 f3f9899b", "https://")):
        load("yahoo-answers", tmp_path / "none")
    with pytest.raises(DataError, match=r"train\.csv \(md5 b1a00f82.*with classes\.txt"):
        load("ag-news", tmp_path / "none")


def test_json_lines_are_read(tmp_path):
    rows = [{"label": "b", "id": 1, "text": "one", "week": 3}, {"label": 0, "id": 2, "text": "zwö"}]
    rows[1]["week"] = "4"
    plain, zipped = tmp_path / "train.jsonl", tmp_path / "test.jsonl.gz"
    lines = "\n\n".join(json.dumps(row) for row in rows).encode()
    plain.write_bytes(lines)
    zipped.write_bytes(gzip.compress(lines))
    found = load("jsonl", plain, test=zipped, slices=["week"])
    for pool in (found.train, found.test):
        assert pool.classes == ("0", "b")
        assert pool.labels.tolist() == [1, 0]
        assert pool.inputs.tolist() == ["one", "zwö"]
        assert pool.slices["week"].tolist() == ["3", "4"]
    assert load("jsonl", plain, id="id").train.ids.tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no rows"),
        (b"\n\n", "has no rows"),
        (b'{"label": 1, "text": "a"}\n{"label": 1', "line 2 is not JSON"),
        (b"[1]\n", naming("line 1", "JSON object")),
        (b'{"lable": 1, "text": "a"}', naming("line 1", "field 'label'", '"lable"')),
        (b'{"label": 1, "text": 5}', naming("line 1", "'text'", "int")),
        (b'{"label": null, "text": "a"}', naming("line 1", "'label'", "NoneType")),
        (b'{"label": "\xff", "text": "a"}', "line 1 is not JSON"),
        (b"[" * 100_000, "line 1 is not JSON"),
    ],
)
def test_damaged_json_lines_are_refused(content, message, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load("jsonl", path)
    zipped = tmp_path / "rows.jsonl.gz"
    zipped.write_bytes(gzip.compress(b'{"label": 1, "text": "a"}\n' * 500)[:-12])
    with pytest.raises(DataError, match="Cannot read"):
        load("jsonl", zipped)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cifer-10", {}, naming("'cifer-10'", '"cifar-10"')),
        ("cifar-10", {"subste": True}, naming("option 'subste'", '"subset"')),
        ("digits", {"size": 8}, naming("option 'size'", "none")),
        ("digits", {"path": "x"}, "takes no path"),
        ("npz", {}, "needs a path"),
    ],
)
def test_a_source_that_was_named_wrongly_is_refused(name, options, message):
    with pytest.raises(PlanError, match=message):
        load(name, **options)


def test_every_source_is_documented_and_the_page_is_true():
    page = Path(__file__).parents[2] / "docs" / "data.md"
    text = page.read_text()
    assert [name for name in SOURCES if f"`{name}`" not in text] == []
    run = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert run.attempted > 5
    assert run.failed == 0


def test_a_library_that_is_not_there_is_named_with_the_way_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    paint_free = tmp_path / "cat"
    paint_free.mkdir()
    (paint_free / "a.png").write_bytes(b"")
    with pytest.raises(DataError, match=naming("PIL", "pip install", r"'dynsnap\[torch\]'")):
        load("images", tmp_path)


needs_real_text = pytest.mark.skipif(
    not TEXT.is_dir(), reason="the real AG News and 20 Newsgroups are not beside the project"
)


@needs_real_text
def test_real_ag_news_is_read():
    found = load(
        "text-csv",
        TEXT,
        train="ag_news_train_subset.csv",
        test="ag_news_test.csv",
        classes="ag_news_classes.txt",
        columns=2,
        line_break="\\",
    )
    assert (len(found.train), found.test.counts.tolist()) == (18_206, [1_900] * 4)
    assert found.test.classes == ("World", "Sports", "Business", "Sci/Tech")
    assert found.test.inputs[0].startswith("Fears for T N pension after talks Unions")
    assert "o-lora" not in found.train.inputs[0]


@needs_real_text
def test_real_newsgroups_are_read_and_grow():
    found = load("jsonl", TEXT / "20news_train.jsonl.gz", test=TEXT / "20news_test.jsonl.gz")
    assert (len(found.train), len(found.test), len(found.train.classes)) == (11_314, 7_532, 20)
    plan = GrowthPlan(late={"sci.space": 2}, late_validation="arrival")
    stream = grow(found.train, plan, test=found.test)
    train, _ = split(stream, 1, np.random.default_rng(0))
    assert "sci.space" not in {stream.pool.classes[label] for label in stream.pool.labels[train]}
