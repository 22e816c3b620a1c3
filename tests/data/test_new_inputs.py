import json
import re

import numpy as np
import pytest

from dynsnap.data import read_inputs, reading_options
from dynsnap.errors import DataError
from tests.messages import naming


def test_arrays_come_with_ids_and_labels_where_they_are_known(tmp_path):
    path = tmp_path / "new.npz"
    inputs = np.arange(6.0).reshape(3, 2)
    np.savez(path, inputs=inputs)
    bare = read_inputs(path)
    assert bare.labels is None
    assert bare.ids.tolist() == [0, 1, 2]
    np.savez(path, inputs=inputs, ids=["a", "b", "c"], labels=[1, 0, 1], classes=["x", "y"])
    full = read_inputs(path)
    assert full.ids.tolist() == ["a", "b", "c"]
    assert full.labels.tolist() == ["y", "x", "y"]
    np.savez(path, inputs=inputs, labels=[7, 8, 7])
    assert read_inputs(path).labels.tolist() == ["7", "8", "7"]


def test_arrays_without_inputs_are_refused(tmp_path):
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 2)))
    with pytest.raises(DataError, match=naming("`inputs`", r"\['x'\]")):
        read_inputs(tmp_path / "new.npz")


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"inputs": np.zeros((0, 2))}, ("no inputs", "rows")),
        ({"ids": np.arange(3)}, ("`ids`", "2 inputs", r"\(3,\)")),
        ({"labels": ["a"]}, ("`labels`", "2 inputs", r"\(1,\)")),
        ({"labels": [0, 2], "classes": ["a", "b"]}, ("labels?", "2 classes", "2 is")),
        ({"labels": [0, -1], "classes": ["a", "b"]}, ("labels?", "2 classes", "-1 is")),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused_by_name(tmp_path, arrays, named):
    np.savez(tmp_path / "new.npz", **{"inputs": np.zeros((2, 2)), **arrays})
    with pytest.raises(DataError, match=naming(r"new\.npz", *named)):
        read_inputs(tmp_path / "new.npz")


def test_a_table_gives_its_features_by_name(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("b,key,a,label\n1,k1,2,007\n3,k2,4,08\n")
    found = read_inputs(path, id="key", features=["a", "b"])
    assert found.inputs.tolist() == [[2, 1], [4, 3]]
    assert found.ids.tolist() == ["k1", "k2"]
    assert found.labels.tolist() == ["007", "08"]  # as they are written


def test_ids_are_no_feature_of_a_model_that_knows_no_names(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("id,width\n007,1\n8,3\n")
    found = read_inputs(file)
    assert found.inputs.tolist() == [[1], [3]]
    assert found.ids.tolist() == ["007", "8"]
    # Who names columns means these.
    assert read_inputs(file, features=["id", "width"]).inputs.tolist() == [[7, 1], [8, 3]]


def test_a_table_of_texts_gives_texts(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("words\nhello there\nhi\n")
    found = read_inputs(path, text="words")
    assert found.inputs.tolist() == ["hello there", "hi"]
    assert found.labels is None


def test_the_features_that_a_source_has_read_are_written_down(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("x,label,y,week,key\n1,a,2,w1,k1\n")
    options = {"slices": ["week"], "id": "key"}
    assert reading_options("table", path, options) == {"id": "key", "features": ["x", "y"]}
    assert reading_options("table", path, {"text": "x"}) == {"text": "x"}
    assert reading_options("images", path, {"grey": True, "test": "t"}) == {"grey": True}
    # Whoever was trained on texts looks for texts in a table, too.
    assert reading_options("ag-news", path, {}) == {"text": "text"}
    assert reading_options("jsonl", path, {"text": "body"}) == {"text": "body"}


def test_json_lines_give_texts(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("one", "two")))
    found = read_inputs(path)
    assert found.inputs.tolist() == ["one", "two"]
    assert found.labels is None
    path.write_text(json.dumps({"text": "one", "label": "cat", "key": "k"}))
    labelled = read_inputs(path, id="key")
    assert labelled.labels.tolist() == ["cat"]
    assert labelled.ids.tolist() == ["k"]


def test_images_lie_in_a_folder_or_in_one_for_each_class(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("flat/b.png", "flat/a.png", "kinds/cat/1.png", "kinds/dog/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("L", (4, 3), 9).save(tmp_path / name)
    flat = read_inputs(tmp_path / "flat", grey=True)
    assert flat.inputs.shape == (2, 3, 4, 1)
    assert flat.ids.tolist() == ["a.png", "b.png"]
    assert flat.labels is None
    kinds = read_inputs(tmp_path / "kinds", size=[6, 8])
    assert kinds.inputs.shape == (2, 6, 8, 3)
    assert kinds.labels.tolist() == ["cat", "dog"]


@pytest.mark.parametrize("name", ["new.txt", "new", "new.json"])
def test_other_files_are_refused(tmp_path, name):
    (tmp_path / name).write_text("hello")
    with pytest.raises(
        DataError,
        match=naming(re.escape(name), "folder of images", r"\.npz, \.csv", r"\.jsonl\.gz"),
    ):
        read_inputs(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "encoding", "named"),
    [
        ("new.csv", "a;b\n1;2\n", "utf-8", '";"'),
        ("new.csv", "a,b\n1,2\n", "utf-16", "UTF-16"),
        ("new.jsonl", '{"text": "a"}\n', "utf-16", "UTF-16"),
    ],
)
def test_tables_as_other_programs_may_write_them_are_recognised(
    tmp_path, name, text, encoding, named
):
    file = tmp_path / name
    file.write_text(text, encoding=encoding)
    with pytest.raises(DataError, match=naming(name, named)):
        read_inputs(file)


def test_json_lines_have_one_encoding_which_their_beginning_shows(tmp_path):
    file = tmp_path / "new.jsonl"
    row = '{"text": "é"}\n'
    file.write_text(row * 2, encoding="utf-8-sig")
    assert read_inputs(file).inputs.tolist() == ["é", "é"]
    file.write_bytes(row.encode() + row.strip().encode("utf-16"))
    with pytest.raises(DataError, match=naming("line 2", "JSON")) as caught:
        read_inputs(file)
    assert "UTF-16" not in str(caught.value)


def test_files_that_are_not_there_are_named(tmp_path):
    for name in ("none.csv", "none.jsonl"):
        with pytest.raises(DataError, match=name):
            read_inputs(tmp_path / name)
