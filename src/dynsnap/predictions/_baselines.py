"""Named baselines: predictions that later models are held against, kept with a checksum.

A store is a folder of this machine, or one behind a URI that pyarrow opens. For each name it has a
manifest, `NAME.json`, and the predictions, in a file whose name ends in the beginning of their
checksum. A new baseline is a new file; the manifest takes its place last, so that whoever reads
meanwhile finds the old baseline or the new one, and never half of either.
"""

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from dynsnap import _files
from dynsnap._types import AnyArray
from dynsnap._untrusted import DIGEST, AnyOf, Null, OneOf, Table, Text, Whole, mismatch, parse_json
from dynsnap._untrusted import regular as regular_file
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.predictions import _locate
from dynsnap.predictions._ids import as_text
from dynsnap.predictions._locate import is_uri, locate
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._read import read
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._sources import FORMATS
from dynsnap.predictions._text import on_one_line, shown
from dynsnap.predictions._write import write
from dynsnap.predictions.tasks import Task

PREFIX = "baseline:"
SCHEMA = "dynsnap.baseline/1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CHUNK = 1 << 20
_LONGEST = 1 << 16  # bytes of a manifest
_SHOWN = 16  # characters of a checksum that names and sentences have

_FACTS = Table(
    {
        "schema": OneOf((SCHEMA,)),
        "name": Text(longest=100, form=_NAME.pattern),
        "ending": OneOf(tuple(FORMATS)),
        "sha256": Text(longest=64, form=DIGEST),
        "bytes": Whole(),
        "inputs": Whole(1),
        "classes": Whole(0),  # numbers and grades are of none
        "data": Text(longest=64, form=DIGEST),
        "model_version": AnyOf(Null(), Text(longest=200)),
        "date": Text(longest=40, form=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        "checksum": Text(longest=64, form=DIGEST),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What is known of a baseline.

    Attributes:
        name: What it is called.
        ending: That of the file that was set, which shows its format.
        sha256: The checksum of the file.
        bytes: Its size.
        inputs: How many inputs it has predictions for.
        classes: How many classes it knows.
        data: A hash of the ids and, where the file has it, the truth: the same for any model on
            the same evaluation data, in any order.
        model_version: What the model was called when the baseline was set.
        date: When that was, in UTC.
    """

    name: str
    ending: str
    sha256: str
    bytes: int
    inputs: int
    classes: int
    data: str
    model_version: str | None
    date: str

    @property
    def file(self) -> str:
        """The name of its file in the store."""
        return f"{self.name}-{self.sha256[:_SHOWN]}{self.ending}"

    def facts(self) -> dict[str, Any]:
        """All of it as plain values, with a checksum of its own."""
        own: dict[str, Any] = {"schema": SCHEMA}
        own |= {key: getattr(self, key) for key in self.__dataclass_fields__}
        return own | {"checksum": _checksum(own)}

    def sentence(self) -> str:
        """The baseline in a line, for reports."""
        version = self.model_version or "not given"
        return (
            f"Baseline {self.name}: model version {version}, data {self.data[:_SHOWN]}, set "
            f"{self.date}, sha256 {self.sha256[:_SHOWN]}."
        )


def baseline_name(place: object) -> str | None:
    """The name in `baseline:NAME`, None for any other place.

    Example:
        >>> baseline_name("baseline:prod"), baseline_name("old.parquet")
        ('prod', None)
    """
    text = str(place)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else None


class BaselineStore:
    """The baselines of a folder.

    Args:
        place: A folder, or a URI of one: file://, s3://, gs:// and others that pyarrow opens.

    Example:
        >>> made = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=["dog", "cat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "new.parquet")
        ...     write(made, file)
        ...     store = BaselineStore(Path(folder, "baselines"))
        ...     _ = store.set("prod", file, model_version="1.4")
        ...     print(store.names(), store.get("prod").inputs, store.get("prod").model_version)
        ['prod'] 2 1.4
    """

    def __init__(self, place: str | Path) -> None:
        self.place = on_one_line(place)
        self._folder: _Folder
        if isinstance(place, str) and is_uri(place):
            parts = urlsplit(place)
            if parts.scheme.lower() == "file":
                self._folder = _LocalFolder(Path(unquote(parts.path)))
            else:
                self._folder = _RemoteFolder(place)
        else:
            self._folder = _LocalFolder(Path(place))

    def set(
        self,
        name: str,
        place: str | Path,
        *,
        model_version: str | None = None,
        columns: ColumnNames | None = None,
        task: Task | None = None,
    ) -> Baseline:
        """Keep a copy of predictions under a name; an earlier baseline of that name is replaced.

        A file is copied as it is. Many files, or an address in a study, become one Parquet file.

        Args:
            name: Letters, digits, dots, hyphens and underscores.
            place: The predictions, as `dynsnap.read` takes them.
            model_version: What reports call the model.
            columns: What the columns are called, where it is not as usual.
            task: What answers are, where they are no classes; whoever reads it names it again.

        Raises:
            FileError: The predictions cannot be read, or the store cannot be written.
            PlanError: The name or the version cannot be used.
        """
        _check_name(name)
        if baseline_name(place) is not None:
            raise PlanError(f"{on_one_line(place)} is a baseline already. Name a file.")
        if model_version is not None and (
            not model_version.strip()
            or (problem := mismatch(Text(longest=200), model_version, "model_version"))
        ):
            why = problem if model_version.strip() else "it is empty"
            raise PlanError(f"The model version cannot be used: {why}.")
        found = locate(place)
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(found, Path):
                ending = next((each for each in FORMATS if found.name.lower().endswith(each)), "")
                copy = Path(folder, f"copy{ending}")
                _copied(found, copy)  # and the copy is what is read: it cannot change meanwhile
                try:
                    said = read(copy if ending else found, columns=columns, task=task)
                except FileError as error:  # of the copy, whose name means nothing to the reader
                    said_so = str(error).replace(on_one_line(copy), on_one_line(found))
                    raise FileError(said_so) from error
            elif task is not None:
                raise PlanError(
                    f"A baseline of the task {task.name} is one file, and {on_one_line(place)} is "
                    "not. Write its predictions to one."
                )
            else:
                ending, copy = ".parquet", Path(folder, "copy.parquet")
                said = read(place, columns=columns)
                write(said, copy, columns=columns)
            with copy.open("rb") as file:
                digest, size = _files.digest_and_size(file)
            made = Baseline(
                name=name,
                ending=ending,
                sha256=digest,
                bytes=size,
                inputs=len(said),
                classes=len(said.classes),
                data=data_hash(said),
                model_version=model_version,
                date=_files.timestamp(),
            )
            facts = _files.as_json(made.facts())
            # Whoever sets the same name meanwhile waits: else each could remove the other's file.
            with self._reachable(), self._folder.alone():
                before = self._old_file(name)
                with _files.together():
                    self._folder.put(made.file, copy)
                    self._folder.put_bytes(f"{name}.json", facts.encode())
                    if before is not None and before != made.file:
                        self._folder.remove(before)
        return made

    def names(self) -> list[str]:
        """What baselines there are."""
        with self._reachable():
            found = self._folder.files()
        stems = (file.removesuffix(".json") for file in found if file.endswith(".json"))
        return sorted(stem for stem in stems if _NAME.fullmatch(stem))

    def get(self, name: str) -> Baseline:
        """What is known of a baseline. Its file is not looked at: `checked` does.

        Raises:
            FileError: There is no such baseline, or its manifest was changed.
        """
        _check_name(name)
        try:
            with self._reachable():
                content = self._folder.read(f"{name}.json", _LONGEST)
        except FileNotFoundError:
            known = self.names()
            hint = did_you_mean(name, known) if known else "It has none."
            raise FileError(
                f"There is no baseline {shown(name)} in {self.place}. {hint} `dynsnap baseline set "
                f"{name} FILE` makes one."
            ) from None
        try:
            facts = parse_json(content, most=_LONGEST)
            problem = mismatch(_FACTS, facts)
        except ValueError as error:
            facts, problem = {}, str(error)
        if problem is None and facts["name"] != name:
            problem = f"it is of the baseline {shown(facts['name'])}"
        if problem is None:
            own = {key: value for key, value in facts.items() if key != "checksum"}
            if _checksum(own) != facts["checksum"]:
                problem = "it does not match its own checksum"
        if problem is not None:
            raise _changed(name, self.place, f"of its manifest, {problem}")
        del facts["schema"], facts["checksum"]
        return Baseline(**facts)

    @contextlib.contextmanager
    def checked(self, name: str) -> Iterator[tuple[Baseline, Path]]:
        """A baseline and a file of this machine with its predictions, checked byte for byte.

        A file that is elsewhere is fetched, and goes when the block ends.

        Raises:
            FileError: There is no such baseline, or it changed since it was set.
        """
        with tempfile.TemporaryDirectory() as folder:
            yield self._checked(name, Path(folder))

    def _checked(self, name: str, into: Path) -> tuple[Baseline, Path]:
        found, before = self.get(name), None
        while found != before:  # else it was replaced since its manifest was read: there is another
            try:
                with self._reachable():
                    path = self._folder.here(found.file, into)
                    with regular_file(path).open("rb") as file:
                        digest, size = _files.digest_and_size(file)
                break
            except FileNotFoundError:
                found, before = self.get(name), found
        else:
            raise _changed(name, self.place, f"its file {found.file} is missing")
        if (digest, size) != (found.sha256, found.bytes):
            raise _changed(
                name,
                self.place,
                f"its file has sha256 {digest[:_SHOWN]} and {size:,} bytes, and had "
                f"{found.sha256[:_SHOWN]} and {found.bytes:,}",
            )
        return found, path

    def remove(self, name: str) -> None:
        """Remove a baseline, a damaged one too."""
        _check_name(name)
        if name not in self.names():
            self.get(name)  # raises an error that names those there are
        with self._reachable(), self._folder.alone():
            file = self._old_file(name)
            with _files.together():
                self._folder.remove(f"{name}.json")
                if file is not None:
                    self._folder.remove(file)

    def _old_file(self, name: str) -> str | None:
        """The file of a baseline that is replaced or removed; None where it is not known."""
        with contextlib.suppress(FileError):
            return self.get(name).file
        return None

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = on_one_line(" ".join(str(error).split()), limit=160).rstrip(".")
            raise FileError(
                f"The baselines in {self.place} cannot be used: {reason}. Name another place with "
                "--baselines."
            ) from error


def data_hash(said: Predictions) -> str:
    """A hash of ids and truth, the same in any order of the inputs.

    Example:
        >>> one = Predictions(ids=["a", "b"], classes=["x", "y"], labels=[0, 1], truth=[0, 0])
        >>> two = Predictions(ids=["b", "a"], classes=["y", "x"], labels=[0, 0], truth=[1, 1])
        >>> data_hash(one) == data_hash(two)
        True
    """
    ids = np.asarray(as_text(said.id_column).to_numpy(zero_copy_only=False), object)
    order = np.argsort(ids, kind="stable")
    whole = hashlib.sha256()
    for first in range(0, len(order), 1 << 16):
        some = order[first : first + (1 << 16)]
        rows: list[list[Any]] = [ids[some].tolist()]
        if said.truth is not None:
            rows.append(_truths(said, said.truth[some]))
        whole.update(json.dumps(rows).encode())
    return whole.hexdigest()


def _truths(said: Predictions, truth: AnyArray) -> list[Any]:
    """Some truths, whatever places classes have; None for those that are not known."""
    if said.task is None:
        return [None if place < 0 else said.classes[place] for place in truth.tolist()]
    known = said.task.known(truth).tolist()
    if truth.dtype.kind == "f":
        return [value if has else None for value, has in zip(truth.tolist(), known, strict=True)]
    return [
        sorted(said.classes[place] for place in row if place >= 0) if has else None
        for row, has in zip(truth.tolist(), known, strict=True)
    ]


def _check_name(name: str) -> None:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise PlanError(
            "A baseline's name has letters, digits, dots, hyphens and underscores, at most 100, "
            f"and begins with a letter or digit; got {shown(str(name))}."
        )


def _changed(name: str, place: str, what: str) -> FileError:
    return FileError(
        f"The baseline {shown(name)} in {place} changed since it was set: {what}. Set it again: "
        f"dynsnap baseline set {name} FILE"
    )


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _copied(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(regular_file(source), target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"Cannot read {on_one_line(source)}: {reason}. Name a file of predictions."
        ) from error


class _Folder(Protocol):
    """Where the files of a store are."""

    def files(self) -> list[str]: ...
    def read(self, name: str, most: int) -> bytes: ...
    def here(self, name: str, into: Path) -> Path: ...
    def put(self, name: str, source: Path) -> None: ...
    def put_bytes(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def alone(self) -> contextlib.AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class _LocalFolder:
    path: Path

    def files(self) -> list[str]:
        return [each.name for each in self.path.iterdir()] if self.path.is_dir() else []

    def read(self, name: str, most: int) -> bytes:
        with regular_file(self.path / name).open("rb") as file:
            return file.read(most + 1)

    def here(self, name: str, into: Path) -> Path:
        return regular_file(self.path / name)

    def put(self, name: str, source: Path) -> None:
        _files.make_folder(self.path)
        with _files.replacing(self.path / name) as aside:
            shutil.copyfile(source, aside)

    def put_bytes(self, name: str, content: bytes) -> None:
        _files.write_bytes(self.path / name, content)

    def remove(self, name: str) -> None:
        _files.remove(self.path / name)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        _files.make_folder(self.path)
        return _files.alone_in(self.path)


class _RemoteFolder:
    """A folder behind one of pyarrow's file systems."""

    def __init__(self, uri: str) -> None:
        try:
            self._filesystem, root = _locate.filesystem_of(uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = on_one_line(" ".join(str(error).split()), limit=160).rstrip(".")
            raise FileError(
                f"{on_one_line(uri)} cannot be opened: {reason}. Check the address."
            ) from error
        self._root = PurePosixPath(root)

    def files(self) -> list[str]:
        from pyarrow import fs

        where = fs.FileSelector(str(self._root), allow_not_found=True)
        found = self._filesystem.get_file_info(where)
        return [each.base_name for each in found if each.type == fs.FileType.File]

    def read(self, name: str, most: int) -> bytes:
        with self._filesystem.open_input_stream(self._at(name)) as file:
            return bytes(file.read(most + 1))

    def here(self, name: str, into: Path) -> Path:
        path = into / name
        with (
            self._filesystem.open_input_stream(self._at(name)) as file,
            path.open("wb") as copy,
        ):
            shutil.copyfileobj(file, copy, _CHUNK)
        return path

    def put(self, name: str, source: Path) -> None:
        with source.open("rb") as file:
            self._written(name, file)

    def put_bytes(self, name: str, content: bytes) -> None:
        import io

        self._written(name, io.BytesIO(content))

    def _written(self, name: str, content: BinaryIO) -> None:
        """Write beside, then move: what is there is whole, in stores and on disks alike."""
        self._filesystem.create_dir(str(self._root), recursive=True)
        aside = self._at(f".{name}.part")
        with self._filesystem.open_output_stream(aside) as file:
            shutil.copyfileobj(content, file, _CHUNK)
        self._filesystem.move(aside, self._at(name))

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(self._at(name))

    def alone(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # stores have no locks

    def _at(self, name: str) -> str:
        return str(self._root / name)
