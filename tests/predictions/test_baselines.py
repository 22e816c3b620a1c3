"""Named baselines: found again as they were set, or refused."""

import json
import re
import threading

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import dynsnap
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import BaselineStore, Predictions, _locate, write
from dynsnap.predictions._baselines import data_hash
from tests.messages import naming


def predictions(rows=40, seed=0, **more):
    rng = np.random.default_rng(seed)
    fields = {
        "ids": [f"i{place}" for place in range(rows)],
        "classes": ["cat", "dog"],
        "labels": rng.integers(0, 2, rows),
        "truth": np.arange(rows) % 2,
    }
    return Predictions(**(fields | more))


@pytest.fixture(params=["folder", "file", "mock"])
def store(request, tmp_path, monkeypatch):
    """A store in a folder, behind a file:// URI, and in another file system."""
    root = tmp_path / "kept"
    if request.param == "folder":
        return BaselineStore(root)
    if request.param == "file":
        return BaselineStore(root.as_uri())
    tmp_path.joinpath("far").mkdir()
    far = fs.SubTreeFileSystem(str(tmp_path / "far"), fs.LocalFileSystem())
    monkeypatch.setattr(_locate, "filesystem_of", lambda uri: (far, uri.removeprefix("mock://")))
    return BaselineStore("mock://kept")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "old.parquet"
    write(predictions(), path)
    return path


def kept(tmp_path):
    """The files of a store, wherever it is."""
    return sorted(path for path in tmp_path.rglob("*") if path.is_file() and "kept" in path.parts)


def test_a_baseline_is_found_as_it_was_set(store, file):
    made = store.set("prod", file, model_version="1.4")
    assert store.names() == ["prod"] and store.get("prod") == made
    assert made.inputs == 40 and made.model_version == "1.4" and made.date.endswith("Z")
    with store.checked("prod") as (found, path):
        assert found == made and path.read_bytes() == file.read_bytes()
        assert dynsnap.read(path).ids.tolist() == predictions().ids.tolist()


def test_a_baseline_is_replaced_as_a_whole(store, file, tmp_path):
    first = store.set("prod", file)
    write(predictions(seed=1), file)
    second = store.set("prod", file, model_version="2")
    assert first.sha256 != second.sha256 and first.data == second.data
    assert store.get("prod") == second
    assert [path.name for path in kept(tmp_path)] == sorted([second.file, "prod.json"])
    again = store.set("prod", file, model_version="3")
    assert again.file == second.file and store.get("prod").model_version == "3"
    with store.checked("prod"):
        pass


def test_a_baseline_is_removed_with_its_file(store, file, tmp_path):
    store.set("prod", file)
    store.set("other", file)
    store.remove("prod")
    assert store.names() == ["other"] and len(kept(tmp_path)) == 2
    with pytest.raises(FileError, match=naming("prod", "other")):
        store.remove("prod")


def damaged(path, how):
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        changes = {
            "bit": content[:100] + bytes([content[100] ^ 1]) + content[101:],
            "short": content[:-1],
            "long": content + b"\n",
            "empty": b"",
        }
        path.write_bytes(changes[how])


@pytest.mark.parametrize("how", ["bit", "short", "long", "empty", "gone"])
def test_a_file_that_changed_is_refused(store, file, tmp_path, how):
    made = store.set("prod", file)
    (path,) = (path for path in kept(tmp_path) if path.name == made.file)
    damaged(path, how)
    with pytest.raises(FileError, match=naming("prod", "changed")), store.checked("prod"):
        pass
    store.remove("prod")
    assert store.names() == []


def other(facts, **more):
    return json.dumps(facts | more).encode()


@pytest.mark.parametrize(
    "forge",
    [
        lambda facts: other(facts, model_version="9"),
        lambda facts: other(facts, data="0" * 64),
        lambda facts: other(facts, ending="/../../secret"),
        lambda facts: other(facts, name="test"),
        lambda facts: other(facts, more=1),
        lambda facts: other(facts, schema="dynsnap.baseline/2"),
        lambda facts: json.dumps([facts]).encode(),
        lambda facts: b"",
        lambda facts: b"\xff{",
        lambda facts: b'{"a": NaN}',
        lambda facts: b" " * (1 << 17),
    ],
)
def test_a_manifest_that_changed_is_refused(file, tmp_path, forge):
    store = BaselineStore(tmp_path / "kept")
    store.set("prod", file)
    (path,) = (path for path in kept(tmp_path) if path.suffix == ".json")
    path.write_bytes(forge(json.loads(path.read_bytes())))
    with pytest.raises(FileError, match=naming("prod", "changed", "dynsnap baseline set prod")):
        store.get("prod")
    store.set("prod", file)  # the way out works
    assert store.get("prod").name == "prod"


def test_another_baselines_manifest_is_no_manifest(store, file, tmp_path):
    store.set("prod", file)
    (path,) = (path for path in kept(tmp_path) if path.suffix == ".json")
    path.with_name("test.json").write_bytes(path.read_bytes())
    with pytest.raises(FileError, match=naming("test", "prod")):
        store.get("test")


@pytest.mark.parametrize("name", ["", "../prod", "a/b", ".hidden", "a b", "x" * 101, "prod\n"])
def test_a_name_is_no_path(store, file, name):
    with pytest.raises(PlanError, match="name"):
        store.set(name, file)
    with pytest.raises(PlanError, match="name"):
        store.get(name)


def test_what_is_no_prediction_is_not_kept(store, tmp_path):
    text = tmp_path / "notes.parquet"
    text.write_text("no predictions")
    for wrong in (text, tmp_path / "missing.csv", tmp_path):
        with pytest.raises(FileError, match=naming(re.escape(str(wrong)))):
            store.set("prod", wrong)
    with pytest.raises(PlanError, match="baseline"):
        store.set("prod", "baseline:prod")
    assert store.names() == [] and kept(tmp_path) == []


@pytest.mark.parametrize("version", ["", " ", "a\nb", "x" * 201])
def test_a_version_is_a_line(store, file, version):
    with pytest.raises(PlanError, match="version"):
        store.set("prod", file, model_version=version)


def test_a_write_that_fails_leaves_the_old_baseline(tmp_path, file, monkeypatch):
    store = BaselineStore(tmp_path / "kept")
    made = store.set("prod", file)
    write(predictions(seed=1), file)
    with monkeypatch.context() as patch:
        patch.setattr(
            "dynsnap._files.write_bytes", lambda *_: (_ for _ in ()).throw(OSError("full"))
        )
        with pytest.raises(FileError, match="full"):
            store.set("prod", file)
    assert store.get("prod") == made and len(kept(tmp_path)) == 2
    with store.checked("prod"):
        pass


def test_many_files_become_one(store, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    whole = predictions()
    write(whole, folder / "all.parquet")
    table = pq.read_table(folder / "all.parquet").replace_schema_metadata(None)
    (folder / "all.parquet").unlink()
    for part in (0, 1):
        pq.write_table(table.slice(20 * part, 20), folder / f"{part}.parquet")
    made = store.set("prod", folder)
    assert made.inputs == 40 and made.data == data_hash(whole)
    with store.checked("prod") as (_, path):
        assert dynsnap.read(path).labels.tolist() == whole.labels.tolist()


def test_the_hash_of_the_data_is_of_ids_and_truth():
    one = predictions()
    rows = np.random.default_rng(3).permutation(40)
    assert data_hash(one) == data_hash(one.take(rows)) == data_hash(predictions(seed=5))
    assert data_hash(one) != data_hash(predictions(truth=np.zeros(40, int)))
    assert data_hash(one) != data_hash(predictions(truth=None))
    assert data_hash(one) != data_hash(predictions(ids=[f"j{place}" for place in range(40)]))


def test_an_input_without_truth_is_no_input_of_the_last_class():
    def hashed(classes, truth):
        return data_hash(predictions(4, classes=classes, labels=["cat"] * 4, truth=truth))

    some = ["cat", None, "dog", "cat"]
    assert hashed(["cat", "dog"], some) == hashed(["dog", "cat"], some)
    assert hashed(["cat", "dog"], some) != hashed(["cat", "dog"], ["cat", "dog", "dog", "cat"])


def test_readers_and_writers_at_once_find_one_baseline_or_the_other(tmp_path, file):
    other = tmp_path / "other.parquet"
    write(predictions(seed=9), other)
    store = BaselineStore(tmp_path / "kept")
    allowed = {store.set("prod", each).sha256 for each in (file, other)}
    wrong, done = [], threading.Event()

    def change(first):
        for turn in range(12):
            store.set("prod", (file, other)[(first + turn) % 2])

    def look():
        while not done.is_set():
            try:
                with store.checked("prod") as (found, _):
                    assert found.sha256 in allowed
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=look) for _ in range(2)]
    writers = [threading.Thread(target=change, args=(place,)) for place in range(3)]
    for each in (*readers, *writers):
        each.start()
    for each in writers:
        each.join()
    done.set()
    for each in readers:
        each.join()
    assert not wrong
    assert len(kept(tmp_path)) == 2  # the manifest and the one file that it names
    with store.checked("prod"):
        pass


def test_a_store_that_cannot_be_opened_is_named():
    with pytest.raises(FileError, match="nowhere://bucket"):
        BaselineStore("nowhere://bucket")
