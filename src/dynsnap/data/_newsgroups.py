"""20 Newsgroups, sorted by date: posts to twenty groups of 1993."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

import numpy as np

from dynsnap._untrusted import regular
from dynsnap.data._archive import is_archive, read_files
from dynsnap.data._dataset import DataSet, class_order, data_folder, missing, opened, positions
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, one_line

_ARCHIVE = "20news-bydate.tar.gz"
_SHA256 = "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610"
_FROM = "http://qwone.com/~jason/20Newsgroups/ or https://ndownloader.figshare.com/files/5975967"
_ROWS = {"train": 11_314, "test": 7_532}


class _Post(NamedTuple):
    group: str
    number: int
    text: str


def read_newsgroups(path: str | Path | None = None) -> DataSet:
    """20 Newsgroups by date: 11,314 and 7,532 posts with their headers, twenty classes.

    Posts are ordered by group and number, and an id is both: "sci.med/58111".

    Args:
        path: The archive, its unpacked folder, a folder that holds one of them, or a folder with
            20news_train.jsonl and 20news_test.jsonl (fields label, id, text; .gz may follow); by
            default the folder that $DYNSNAP_DATA names, else `data`.
    """
    root = data_folder(path)
    notes: list[str] = []
    if (root / _ARCHIVE).is_file() or (root.is_file() and is_archive(root)):
        file = root if root.is_file() else root / _ARCHIVE
        posts = _from_archive(file)
        notes += _checked(file)
    elif (place := _folder(root)) is not None:
        posts = {split: list(_from_folder(place / f"20news-bydate-{split}")) for split in _ROWS}
    elif (lines := _lines(root)) is not None:
        posts = {split: list(_from_lines(lines[split])) for split in _ROWS}
    else:
        raise missing(
            "20-newsgroups",
            root,
            get=f"{_ARCHIVE} (sha256 {_SHA256}) from {_FROM}",
            put="it, or the folders in it,",
        )
    for split, expected in _ROWS.items():
        if not posts[split]:
            raise DataError(f"{root} holds no {split} posts. Get {_ARCHIVE} again from {_FROM}.")
        if len(posts[split]) != expected:
            notes.append(
                f"{root} holds {len(posts[split]):,} {split} posts; the official set has "
                f"{expected:,}."
            )
    classes = class_order(post.group for post in posts["train"])
    pools = {split: _pool(split, found, classes) for split, found in posts.items()}
    return DataSet(train=pools["train"], test=pools["test"], notes=tuple(notes))


def _pool(split: str, posts: Iterable[_Post], classes: tuple[str, ...]) -> Pool:
    ordered = sorted(posts, key=lambda post: (post.group, post.number))
    texts = np.empty(len(ordered), dtype=object)
    texts[:] = [post.text for post in ordered]
    return Pool(
        name=split,
        inputs=texts,
        labels=positions([post.group for post in ordered], classes, what=split),
        classes=classes,
        ids=np.array([f"{post.group}/{post.number}" for post in ordered]),
    )


def _folder(root: Path) -> Path | None:
    """The folder of the unpacked archive."""
    for place in (root, root / "20news-bydate"):
        if all((place / f"20news-bydate-{split}").is_dir() for split in _ROWS):
            return place
    return None


def _lines(root: Path) -> dict[str, Path] | None:
    """The files of JSON lines, one for each split."""
    found: dict[str, Path] = {}
    for split in _ROWS:
        for name in (f"20news_{split}.jsonl", f"20news_{split}.jsonl.gz"):
            if (root / name).is_file():
                found.setdefault(split, root / name)
    if len(found) == 1:
        (split,) = found.keys() ^ _ROWS.keys()
        raise DataError(f"{root} holds no file 20news_{split}.jsonl, nor one with .gz behind it.")
    return found or None


def _from_archive(path: Path) -> dict[str, list[_Post]]:
    posts: dict[str, list[_Post]] = {split: [] for split in _ROWS}

    def read(place: PurePosixPath, handle: IO[bytes]) -> None:
        split = place.parts[-3].rpartition("-")[2] if len(place.parts) >= 3 else ""
        if split in posts:
            posts[split].append(_post(place, handle.read(), str(path)))

    for _ in read_files(path, read):
        pass
    return posts


def _from_folder(folder: Path) -> Iterator[_Post]:
    try:
        for file in sorted(folder.glob("*/*")):
            yield _post(PurePosixPath(file.as_posix()), regular(file).read_bytes(), str(folder))
    except OSError as error:
        raise DataError(f"Cannot read {folder}: {error.strerror or error}.") from error


def _post(place: PurePosixPath, content: bytes, where: str) -> _Post:
    if not place.name.isdecimal():
        raise DataError(f"{where}: {place} is not a post: their names are numbers.")
    return _Post(place.parent.name, int(place.name), content.decode("latin-1"))


def _from_lines(path: Path) -> Iterator[_Post]:
    read = 0
    try:
        with opened(path) as handle:
            for line in handle:
                row = json.loads(line)
                yield _Post(str(row["label"]), int(row["id"]), str(row["text"]))
                read += 1
    except OSError as error:
        raise DataError(f"Cannot read {path}: {one_line(str(error))}.") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(
            f"{path}, line {read + 1} is not a post with label, id and text: "
            f"{one_line(str(error))}."
        ) from error


def _checked(path: Path) -> Iterator[str]:
    with regular(path).open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != _SHA256:
        yield f"{path} does not have the official sha256 sum {_SHA256}; it is whole."
