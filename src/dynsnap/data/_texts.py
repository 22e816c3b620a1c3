"""Pools of texts: from JSON lines, and from csv files like those of Yahoo! Answers and AG News."""

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dynsnap._types import AnyArray
from dynsnap.data._archive import Content, file_md5, is_archive, read_members
from dynsnap.data._dataset import (
    DataSet,
    class_order,
    data_folder,
    missing,
    numbered,
    opened,
    positions,
)
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, InputError, PlanError, did_you_mean, one_line


def read_jsonl(
    path: str | Path,
    *,
    test: str | Path | None = None,
    label: str = "label",
    text: str = "text",
    id: str | None = None,  # noqa: A002  the field is called so
    slices: Sequence[str] = (),
) -> DataSet:
    """Texts from JSON lines (plain or .gz): one object with a label and a text on each line.

    Args:
        path: The rows to learn from.
        test: The test rows, in a file of the same kind.
        label: The field of class names; whole numbers are taken as text.
        text: The field of texts.
        id: The field of ids, unique in both files; by default rows are numbered.
        slices: Further fields for breakdowns.
    """
    files = {"train": Path(path)} | ({"test": Path(test)} if test is not None else {})
    fields = [label, text, *slices, *([id] if id is not None else [])]
    columns = {split: json_fields(file, fields, text) for split, file in files.items()}
    classes = class_order(name for found in columns.values() for name in found[label])
    pools = {
        split: Pool(
            name=split,
            inputs=text_array(found[text]),
            labels=positions(found[label], classes, what=split),
            classes=classes,
            ids=numbered(split, len(found[text])) if id is None else np.array(found[id]),
            slices={name: np.array(found[name]) for name in slices},
        )
        for split, found in columns.items()
    }
    return DataSet(train=pools["train"], test=pools.get("test"))


def json_fields(path: Path, names: Sequence[str], text: str) -> dict[str, list[str]]:
    """Fields of JSON lines, as text."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for where, row in json_objects(path):
        for name in names:
            found[name].append(_word(row, name, where, name == text))
    if not found[text]:
        raise DataError(f"{path} has no rows.")
    return found


def json_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of JSON lines, each with the place where it stands."""
    from dynsnap.predictions._declared import refuse_utf16  # not loaded with the package

    try:
        with opened(path) as handle:
            for number, line in enumerate(handle, start=1):
                where = f"{path}, line {number}"
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                    try:
                        refuse_utf16(line)
                    except InputError as error:
                        raise DataError(f"{path}: {error}") from error
                if line.strip():
                    yield where, _json_object(line, where)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {one_line(str(error))}.") from error


def _json_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())  # of bytes, `loads` would guess an encoding for each line
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {one_line(str(error)).rstrip('.')}.") from error
    if not isinstance(row, dict):
        raise DataError(f"{where} is not a JSON object with fields.")
    return row


def _word(row: dict[str, Any], name: str, where: str, text_only: bool) -> str:
    if name not in row:
        raise DataError(f"{where} has no field {name!r}. {did_you_mean(name, row)}")
    value = row[name]
    if not isinstance(value, str) and (text_only or not isinstance(value, int)):
        raise DataError(f"{where}: field {name!r} must be text, but is {type(value).__name__}.")
    return str(value)


def text_array(texts: list[str]) -> AnyArray:
    """Texts of any lengths as an array of objects: one of fixed width could need far more room."""
    made = np.empty(len(texts), dtype=object)
    made[:] = texts
    return made


_YAHOO_FROM = "https://drive.google.com/uc?export=download&id=0Bz8a_Dbh9Qhbd2JNdDBsQUdocVU"
_YAHOO_ARCHIVE = "yahoo_answers_csv.tar.gz"
_YAHOO_MD5 = "f3f9899b997a42beb24157e62e3eea8d"
_AG_NEWS_FROM = "https://github.com/mhjabreel/CharCnn_Keras (data/ag_news_csv)"
_AG_NEWS_MD5 = {
    "train.csv": "b1a00f826fdfbd249f79597b59e1dc12",
    "test.csv": "d52ea96a97a2d943681189a97654912d",
}


def read_text_csv(
    path: str | Path,
    *,
    train: str = "train.csv",
    test: str = "test.csv",
    classes: str = "classes.txt",
    columns: int | None = None,
    line_break: str = "\\n",
) -> DataSet:
    """Texts as Zhang et al. published theirs: rows of a class number (from 1) and text columns.

    Args:
        path: A folder, or a tar archive that holds the files in any folder.
        train: File of the training rows; `.gz` may follow its name in a folder.
        test: File of the test rows, likewise.
        classes: File with one class name per line. Without it the numbers are the names.
        columns: How many of the columns after the class are text; by default all.
        line_break: What stands for a line break in the texts.
    """
    if columns is not None and columns < 1:
        raise PlanError(f"`columns` must be at least 1, got {columns}.")

    def read(name: str, handle: IO[bytes]) -> "_NumberedTexts | tuple[str, ...]":
        if name == classes:
            try:
                lines = handle.read().decode("utf-8", errors="replace").splitlines()
            except OSError as error:
                raise DataError(f"Cannot read {path}: {name}: {one_line(str(error))}.") from error
            return tuple(line.strip() for line in lines if line.strip())
        return _rows(handle, f"{path}: {name}", columns, line_break)

    wanted = (train, test, classes)
    if is_archive(Path(path)):
        found = read_members(Path(path), wanted, read)
    else:
        found = _read_folder(Path(path), wanted, read)
    tables = {name: rows for name, rows in found.items() if isinstance(rows, _NumberedTexts)}
    if train not in tables:
        raise DataError(f"{path} holds no file {train}. It must have {train} and {test}.")
    names = found.get(classes)
    if not isinstance(names, tuple):
        most = max(int(rows.numbers.max()) for rows in tables.values())
        names = tuple(str(number) for number in range(1, most + 1))
    for name, rows in tables.items():
        if not 1 <= rows.numbers.min() <= rows.numbers.max() <= len(names):
            raise DataError(
                f"{path}: {name} has classes {rows.numbers.min()} to {rows.numbers.max()}, but "
                f"there are names for 1 to {len(names)}."
            )
    pools = {
        split: Pool(
            name=split,
            inputs=tables[name].texts,
            labels=tables[name].numbers - 1,
            classes=names,
            ids=numbered(split, len(tables[name].texts)),
        )
        for split, name in (("train", train), ("test", test))
        if name in tables
    }
    return DataSet(train=pools["train"], test=pools.get("test"))


def read_yahoo_answers(path: str | Path | None = None) -> DataSet:
    """Yahoo! Answers topics: 1,400,000 and 60,000 texts, ten classes.

    Args:
        path: The archive, its unpacked folder, or a folder that holds one of them; by default the
            folder that $DYNSNAP_DATA names, else `data`.
    """
    root = data_folder(path)
    for place in (root, root / "yahoo_answers_csv", root / _YAHOO_ARCHIVE):
        if place.is_file():
            found = read_text_csv(place)
            if file_md5(place) == _YAHOO_MD5:
                return found
            note = f"{place} does not have the official md5 sum {_YAHOO_MD5}; it is whole."
            return DataSet(train=found.train, test=found.test, notes=(note,))
        if any(place.glob("train.csv*")):
            return read_text_csv(place)
    raise missing(
        "yahoo-answers",
        root,
        get=f"{_YAHOO_ARCHIVE} (md5 {_YAHOO_MD5}) from {_YAHOO_FROM}",
        put="it, or the folder in it,",
    )


def read_ag_news(path: str | Path | None = None) -> DataSet:
    """AG News topics: 120,000 and 7,600 texts, four classes.

    Args:
        path: The folder with train.csv, test.csv and classes.txt, or one that holds it as
            `ag_news_csv`; by default the folder that $DYNSNAP_DATA names, else `data`.
    """
    root = data_folder(path)
    for place in (root, root / "ag_news_csv"):
        if any(place.glob("train.csv*")):
            # A lone backslash is this set's line break: "\n" in it may begin a word like "news".
            found = read_text_csv(place, line_break="\\")
            notes = [
                f"{place / name} does not have the official md5 sum {known}; it is whole."
                for name, known in _AG_NEWS_MD5.items()
                if (place / name).is_file() and file_md5(place / name) != known
            ]
            return DataSet(train=found.train, test=found.test, notes=tuple(notes))
    sums = " and ".join(f"{name} (md5 {known})" for name, known in _AG_NEWS_MD5.items())
    raise missing(
        "ag-news", root, get=f"{sums} from {_AG_NEWS_FROM}", put="them, with classes.txt,"
    )


@dataclass(frozen=True, eq=False)
class _NumberedTexts:
    numbers: npt.NDArray[np.int64]  # classes, from 1
    texts: AnyArray


def _read_folder(
    path: Path, names: tuple[str, ...], read: Callable[[str, IO[bytes]], Content]
) -> dict[str, Content]:
    if not path.is_dir():
        raise DataError(f"There is no folder or archive {path}.")
    found = {}
    for name in names:
        for file in (path / name, path / f"{name}.gz"):
            if file.is_file() and name not in found:
                with opened(file) as handle:
                    found[name] = read(name, handle)
    return found


def _rows(handle: IO[bytes], where: str, columns: int | None, line_break: str) -> _NumberedTexts:
    """Class numbers, and texts: the text columns joined by a space, line breaks as such."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    every_text = {f"f{place}": pa.string() for place in range(1, 64)}
    try:
        table = csv.read_csv(
            handle,
            read_options=csv.ReadOptions(
                autogenerate_column_names=True,
                block_size=1 << 24,  # no row may be longer
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types={"f0": pa.int64(), **every_text}),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {where}: {one_line(str(error).strip())}.") from error
    texts = table.columns[1:][:columns]
    if not texts or not table.num_rows or table.column("f0").null_count:
        raise DataError(f"{where} must have rows of a class number and at least one text.")
    joined = pc.replace_substring(
        pc.binary_join_element_wise(*texts, " "), pattern=line_break, replacement="\n"
    )
    return _NumberedTexts(table.column("f0").to_numpy(), joined.to_numpy())
