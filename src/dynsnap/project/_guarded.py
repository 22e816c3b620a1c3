"""What a program that trains may not write: the records that the loop goes by.

A program runs as the user who started the loop, in the project's folder, so it can reach every
file there. Trust goes one way. What a program leaves in the folder of its own attempt is data, read
and checked; the pointer, the manifests, the records of retrains and the results of earlier steps
are the loop's own. They are held in memory while a program runs, and put back when it has ended.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dynsnap import _files
from dynsnap.errors import FileError, TrainingError, some_of
from dynsnap.project import _records as records
from dynsnap.project._registry import GENERATIONS, MANIFEST, NUMBER, POINTER, digest_of
from dynsnap.project._settings import REGISTRY, RETRAINS


@contextmanager
def guarded(project: Path, results: tuple[Path, ...]) -> Iterator[None]:
    """Put back, when the block ends, what a program changed of the loop's own files.

    Args:
        project: The folder of the project.
        results: The folders that earlier and later steps of the retrain leave.

    Raises:
        TrainingError: Something was changed. Where the block ends with an error, that one is
            raised.
    """
    before = _Known.of(project, results)
    try:
        yield
    except BaseException:
        before.put_back()
        raise
    if changed := before.put_back():
        names = some_of(os.path.relpath(path, project) for path in changed)
        raise TrainingError(
            f"The command changed {names}, which only the loop writes. It was put back; the "
            "deployed generation is unchanged. Let the command write to the places that it is "
            "given."
        )


@dataclass(frozen=True, slots=True)
class _Record:
    """A file of the loop: where it leads to, if it is a link, and what it holds.

    What is no file, such as a pipe, holds nothing.
    """

    link: Path | None
    content: bytes | None

    def write(self, path: Path) -> None:
        _files.make_folder(path.parent)
        if self.link is not None:
            path.symlink_to(self.link)
        if self.content is not None:
            _files.write_bytes(path, self.content)  # of a link, where it leads to


@dataclass(frozen=True, slots=True)
class _Known:
    """What was there before a program began: records as they are, steps by their digests."""

    project: Path
    folders: frozenset[Path]
    records: dict[Path, _Record]
    steps: dict[Path, dict[str, str]]

    @classmethod
    def of(cls, project: Path, results: tuple[Path, ...]) -> "_Known":
        folders = frozenset(_folders(project))
        found = {path: _record(path) for path in _records(project, folders)}
        return cls(
            project,
            folders,
            {path: record for path, record in found.items() if record is not None},
            {folder: _digests(folder) for folder in results},
        )

    def put_back(self) -> list[Path]:
        """Make it what it was, and tell what had changed."""
        changed = []
        folders = frozenset(_folders(self.project))
        for path in sorted(folders - self.folders):
            remove(path)
            changed.append(path)
        for path in sorted({*_records(self.project, self.folders), *self.records}):
            known = self.records.get(path)
            if _record(path) == known:
                continue
            remove(path)
            if known is not None:
                known.write(path)
            changed.append(path)
        for folder, sums in self.steps.items():
            if _digests(folder) != sums:  # that step is done again
                remove(folder)
                changed.append(folder)
        return changed


def _folders(project: Path) -> Iterator[Path]:
    """The folders of generations and of retrains, which their names make what they are."""
    yield from records.folders(project)
    place = project / REGISTRY / GENERATIONS
    if place.is_dir():
        yield from (each for each in place.iterdir() if NUMBER.fullmatch(each.name))


def _records(project: Path, folders: frozenset[Path]) -> Iterator[Path]:
    yield project / REGISTRY / POINTER
    for folder in folders:
        of_retrain = folder.parent.name == RETRAINS
        names = (records.PLAN, records.MEASURED, records.RESULT) if of_retrain else (MANIFEST,)
        yield from (folder / name for name in names)


def _record(path: Path) -> _Record | None:
    """What a record is, None where there is none."""
    link = path.readlink() if path.is_symlink() else None
    if link is None and not path.exists():
        return None
    return _Record(link, path.read_bytes() if path.is_file() else None)


def _digests(folder: Path) -> dict[str, str]:
    if folder.is_symlink():
        return {"": ""}
    found = {}
    for path in folder.rglob("*") if folder.is_dir() else ():
        name = str(path.relative_to(folder))
        try:
            found[name] = "" if path.is_dir() else digest_of(path)[0]
        except (OSError, FileError):
            found[name] = "unreadable"
    return found


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, where there is one."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
