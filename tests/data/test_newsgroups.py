"""20 Newsgroups, in each form that it is found in."""

import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from dynsnap.data import load, newsgroups_growth
from dynsnap.errors import DataError
from dynsnap.study import DataPlan, open_stream
from tests.messages import naming

TEXT = Path(__file__).parents[3] / "shared" / "data" / "text"
POSTS = {
    "train": [("sci.med", 9, "caf\xe9 latte"), ("sci.med", 10, "second"), ("alt.x", 9, "first")],
    "test": [("alt.x", 11, "third"), ("sci.med", 12, "fourth")],
}


def write_lines(folder, splits=("train", "test")):
    for split in splits:
        rows = [{"label": group, "id": str(n), "text": text} for group, n, text in POSTS[split]]
        with gzip.open(folder / f"20news_{split}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def write_folder(folder):
    for split, posts in POSTS.items():
        for group, number, text in posts:
            place = folder / f"20news-bydate-{split}" / group
            place.mkdir(parents=True, exist_ok=True)
            (place / str(number)).write_bytes(text.encode("latin-1"))


def write_archive(folder):
    with tarfile.open(folder / "20news-bydate.tar.gz", "w:gz") as archive:
        for split, posts in POSTS.items():
            for group, number, text in posts:
                entry = tarfile.TarInfo(f"20news-bydate-{split}/{group}/{number}")
                content = text.encode("latin-1")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("write", [write_lines, write_folder, write_archive])
def test_every_form_holds_the_same_posts_in_the_same_order(write, tmp_path):
    write(tmp_path)
    found = load("20-newsgroups", tmp_path)
    assert found.train.classes == ("alt.x", "sci.med")
    assert found.train.ids.tolist() == ["alt.x/9", "sci.med/9", "sci.med/10"]
    assert found.train.inputs.tolist() == ["first", "caf\xe9 latte", "second"]
    assert found.test.labels.tolist() == [0, 1]
    assert any(re.search(naming("3 train", "11,314"), note) for note in found.notes)


def test_an_archive_of_another_sum_is_noted(tmp_path):
    write_archive(tmp_path)
    notes = load("20-newsgroups", tmp_path / "20news-bydate.tar.gz").notes
    assert any(re.search(naming(r"20news-bydate\.tar\.gz", "sha256", "8f1b"), n) for n in notes)


def test_what_is_missing_is_named_with_where_it_comes_from(tmp_path):
    with pytest.raises(DataError, match=naming("20-newsgroups", "sha256 8f1b", "qwone")):
        load("20-newsgroups", tmp_path)
    write_lines(tmp_path, splits=["train"])
    with pytest.raises(DataError, match=naming(r"20news_test\.jsonl")):
        load("20-newsgroups", tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"label": "a", "id": "x", "text": "t"}', naming("line 1", "a post", "'x'")),
        ('{"label": "a", "id": "1"}', naming("line 1", "a post", "'text'")),
        ("{", naming("line 1", "a post")),
    ],
)
def test_a_line_that_is_no_post_is_named(line, message, tmp_path):
    write_lines(tmp_path, splits=["test"])
    (tmp_path / "20news_train.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=message):
        load("20-newsgroups", tmp_path)


def test_a_damaged_archive_is_named(tmp_path):
    write_archive(tmp_path)
    file = tmp_path / "20news-bydate.tar.gz"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match=naming(r"bydate\.tar\.gz", "cut short")):
        load("20-newsgroups", tmp_path)


def test_a_label_outside_the_classes_is_named(tmp_path):
    write_lines(tmp_path)
    (tmp_path / "20news_test.jsonl.gz").unlink()
    (tmp_path / "20news_test.jsonl").write_text('{"label": "new", "id": "1", "text": "t"}\n')
    with pytest.raises(DataError, match=naming("label", "'new'", "2")):
        load("20-newsgroups", tmp_path)


@pytest.mark.skipif(not TEXT.is_dir(), reason="20 Newsgroups is not here")
def test_the_real_posts_grow_as_the_paper_grows_cifar():
    stream, notes = open_stream(DataPlan(source="20-newsgroups", path=TEXT))
    assert notes == ()
    sizes = [
        len(rows) - int(counts.sum())
        for rows, counts in zip(stream.generations, stream.validation, strict=True)
    ]
    assert sizes == [5_649, 7_064, 7_298]
    assert [int(counts.sum()) for counts in stream.validation] == [3_571] * 3
    assert len(stream.evaluation["test"]) == 3_571
    assert len(stream.evaluation["late"]) == 390
    assert set(newsgroups_growth().shares) == set(stream.pool.classes)
