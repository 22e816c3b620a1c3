import numpy as np
import pytest

from dynsnap import data
from dynsnap.errors import DataError
from tests.messages import naming


def test_a_picture_is_shrunk_to_the_means_of_what_its_pixels_stand_for():
    image = np.zeros((130, 200, 3), np.uint8)
    image[:, 100:] = 200
    small = data.excerpts(image[None], ["a"])["a"]
    assert small.shape == (32, 50, 3)
    assert small[0, 0].tolist() == [0, 0, 0]
    assert small[-1, -1].tolist() == [200, 200, 200]


@pytest.mark.parametrize("shape", [(1, 500), (500, 1), (65, 64), (64, 64), (1000, 63)])
def test_pictures_of_any_shape_fit(shape):
    small = data.excerpts(np.ones((1, *shape, 1), np.uint8), [0])["0"]
    assert max(small.shape) <= 64
    assert min(small.shape) >= 1
    assert (small == 1).all()


def test_small_pictures_stay_as_they_are():
    images = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8)
    found = data.excerpts(images, ["a", "b"])
    assert np.array_equal(found["b"][..., 0], images[1])


def test_a_text_is_cut_and_its_blanks_are_one():
    text = data.excerpts(np.array(["a\n\n  b " + "word " * 500], dtype=object), ["t"])["t"]
    assert text.startswith("a b word word")
    assert text.endswith("…")
    assert len(text) == 400


def test_nothing_is_to_be_seen_of_numbers():
    assert data.excerpts(np.eye(3), range(3)) == {}
    assert data.excerpts(np.zeros((2, 4, 4, 3), np.float32), range(2)) == {}


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_what_is_written_is_read_again(kind, tmp_path):
    path = tmp_path / "inputs.npz"
    if kind == "pictures":
        inputs = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    else:
        inputs = np.array(["one", "two", "thrée"], dtype=object)
    data.write_excerpts(path, data.excerpts(inputs, ["a", "b", "c"]))
    found = data.read_excerpts(path, ["b", "c", "x"])
    assert sorted(found) == ["b", "c"]
    assert np.array_equal(found["c"], inputs[2])


def test_texts_come_from_tables_and_lines(tmp_path):
    table, lines = tmp_path / "texts.csv", tmp_path / "texts.jsonl"
    table.write_text("key,words\n007,hello\n8,there\n")
    assert data.read_excerpts(table, ["007"], id_column="key") == {"007": "hello"}
    lines.write_text('{"id": "a", "text": "hello"}\n{"id": "b", "text": "there"}\n')
    assert data.read_excerpts(lines, ["b"]) == {"b": "there"}


def test_a_table_that_does_not_say_which_column_holds_the_texts_is_refused(tmp_path):
    table = tmp_path / "texts.csv"
    table.write_text("id,title,body\n1,a,b\n")
    with pytest.raises(DataError, match=naming("column", "'text'")):
        data.read_excerpts(table, ["1"])


def test_images_are_found_by_their_paths_and_only_within_their_folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "test"
    (folder / "cat").mkdir(parents=True)
    image.new("RGB", (128, 64), (255, 0, 0)).save(folder / "cat" / "1.png")
    image.new("RGB", (4, 4)).save(tmp_path / "secret.png")
    wanted = ["cat/1.png", "test/cat/1.png", "../secret.png", "\x00.png", "cat/2.png"]
    found = data.read_excerpts(folder, wanted)
    assert sorted(found) == ["cat/1.png", "test/cat/1.png"]
    assert found["cat/1.png"].shape == (32, 64, 3)


def test_other_ids_are_refused_and_named(tmp_path):
    path = tmp_path / "inputs.npz"
    np.savez(path, inputs=np.zeros((1, 2, 2, 1), np.uint8), ids=["a"])
    with pytest.raises(DataError, match=naming("2", "'b'")):
        data.read_excerpts(path, ["c", "b"])
    with pytest.raises(DataError, match=naming("nowhere", "file, folder", "source")):
        data.read_excerpts(tmp_path / "nowhere", ["a"])


def test_a_source_is_asked_by_its_name():
    found = data.read_excerpts("digits", ["digits-3"])
    assert found["digits-3"].shape == (8, 8, 1)
