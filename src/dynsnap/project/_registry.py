"""Generations that are never changed, and one pointer to the deployed one.

A registry of the default kind is a folder (`_mlflow_registry` has the other kind):

    generations/0003/generation.json   the manifest: a SHA-256 for every file
    generations/0003/model.bin         and whatever else belongs to the generation
    deployed.json                      the pointer, and every move that it made

A generation is written aside, flushed, and renamed as a whole folder. The pointer is one small file
that is replaced by renaming, so whoever reads finds one whole generation, before and after a kill
at any instruction. The log of moves is part of the pointer: the two cannot contradict each other.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from dynsnap import _files
from dynsnap._untrusted import (
    DIGEST,
    ListOf,
    MapOf,
    OneOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
    parse_json,
    regular,
)
from dynsnap.errors import FileError

GENERATION = "dynsnap.generation/1"
DEPLOYED = "dynsnap.deployed/1"
GENERATIONS = "generations"
MANIFEST = "generation.json"
POINTER = "deployed.json"
Way: TypeAlias = Literal["retrain", "promote", "rollback"]
_WHAT = "the pointer to the deployed generation"
_LONGEST = 1 << 22  # bytes of a manifest or a pointer
_STAGED = re.compile(r"\.staged-[0-9a-f]{16}")
NUMBER = re.compile(r"\d{4,9}")
FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"

_MANIFEST = Table(
    {
        "schema": OneOf((GENERATION,)),
        "retrain": Text(longest=200),
        "created": Text(longest=40, form=_DATE),
        "model": Text(longest=100, form=FILE_NAME),
        "files": MapOf(
            Table({"sha256": Text(longest=64, form=DIGEST), "bytes": Whole()}),
            key=Text(longest=100, form=FILE_NAME),
            most=1000,
        ),
        "about": Plain(),
    },
    {"number": Whole(1)},
)
MOVE = Table(
    {
        "to": Whole(1),
        "way": OneOf(("retrain", "promote", "rollback")),
        "why": Text(longest=200),
        "date": Text(longest=40, form=_DATE),
    }
)
_POINTER = Table(
    {
        "schema": OneOf((DEPLOYED,)),
        "generation": Whole(1),
        "manifest": Text(longest=64, form=DIGEST),
        "moves": ListOf(MOVE, least=1),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What is known of a generation.

    Attributes:
        number: Its place in the order of training, from 1 on.
        retrain: The retrain that made it.
        created: When, in UTC.
        model: The name of its model file.
        files: The SHA-256 and the size of every file.
        about: What its trainer stated: rows, cost, settings.
    """

    number: int
    retrain: str
    created: str
    model: str
    files: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        own: dict[str, Any] = {"schema": GENERATION}
        own |= {key: getattr(self, key) for key in self.__dataclass_fields__}
        return own | {"files": {name: dict(each) for name, each in self.files.items()}}


@dataclass(frozen=True, slots=True)
class Move:
    """One move of the pointer: to a generation, in one of three ways, for a reason."""

    to: int
    way: Way
    why: str
    date: str

    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {key: getattr(self, key) for key in Move.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The pointer: the deployed generation, and every move that led there."""

    generation: int
    manifest: str
    moves: tuple[Move, ...]

    def made_by(self, retrain: str) -> bool:
        """Whether the last move was that of a retrain: the reason of a move by hand is any text."""
        return self.moves[-1].way == "retrain" and self.moves[-1].why == retrain

    @property
    def before(self) -> int | None:
        """The generation that a rollback leads to, None where there is none.

        Example:
            >>> moves = [Move(1, "retrain", "", ""), Move(2, "retrain", "", ""),
            ...          Move(3, "retrain", "", ""), Move(2, "rollback", "", "")]
            >>> Deployed(generation=2, manifest="", moves=tuple(moves)).before
            1
        """
        stack: list[int] = []
        for move in self.moves:
            if move.way == "rollback" and move.to in stack:
                while stack[-1] != move.to:
                    stack.pop()
            elif not stack or stack[-1] != move.to:
                stack.append(move.to)
        return stack[-2] if len(stack) > 1 else None


class Registry(Protocol):
    """Where generations are kept, and which of them is deployed."""

    def numbers(self) -> list[int]:
        """The generations that are there."""
        ...

    def get(self, number: int) -> Generation:
        """What is known of a generation; its files are not looked at."""
        ...

    def checked(self, number: int) -> tuple[Generation, Path]:
        """A generation and a folder with its files, each checked against its SHA-256."""
        ...

    def register(
        self, retrain: str, files: Mapping[str, Path], *, model: str, about: Mapping[str, Any]
    ) -> Generation:
        """Keep a new generation; the one that this retrain made before, if it did."""
        ...

    def deployed(self) -> Deployed | None:
        """The pointer, None before anything was deployed."""
        ...

    def deploy(self, number: int, *, way: Way, why: str) -> Deployed:
        """Move the pointer to a generation whose files were checked."""
        ...


class FolderRegistry:
    """A registry in a folder. One process writes at a time: the project's lock sees to it.

    Args:
        path: The folder; made with the first generation.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def numbers(self) -> list[int]:
        """The generations that are there."""
        try:
            names = [entry.name for entry in (self.path / GENERATIONS).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if NUMBER.fullmatch(name))

    def get(self, number: int) -> Generation:
        """What is known of a generation; its files are not looked at.

        Raises:
            FileError: It is gone, or its manifest was changed.
        """
        return self._read(number)[0]

    def checked(self, number: int) -> tuple[Generation, Path]:
        """A generation and its folder, after each file was checked against its SHA-256.

        Raises:
            FileError: It is gone, or one of its files changed after it was registered.
        """
        found, digest = self._read(number)
        pointer = self.deployed()
        if pointer is not None and pointer.generation == number and pointer.manifest != digest:
            raise changed(found.number, f"{MANIFEST} is not the one that was deployed", self.path)
        folder = self._folder(number)
        check_files(found, folder, self.path)
        return found, folder

    def register(
        self, retrain: str, files: Mapping[str, Path], *, model: str, about: Mapping[str, Any]
    ) -> Generation:
        """Keep a new generation; the one that this retrain made before, if it did."""
        for number in self.numbers():
            with contextlib.suppress(FileError):  # another one's damage is not in the way here
                if (known := self.get(number)).retrain == retrain:
                    return known
        kept = self.path / GENERATIONS
        _files.make_folder(kept)
        for leftover in kept.iterdir():  # of one that was killed: the lock says that none writes
            if _STAGED.fullmatch(leftover.name):
                shutil.rmtree(leftover, ignore_errors=True)
        pointer = self.deployed()
        # The number of a generation that was deployed and is gone is not given again.
        used = () if pointer is None else (move.to for move in pointer.moves)
        made = Generation(
            number=max([*used, *self.numbers()], default=0) + 1,
            retrain=retrain,
            created=_files.timestamp(),
            model=model,
            files={},
            about=about,
        )
        staged = kept / f".staged-{os.urandom(8).hex()}"
        try:
            staged.mkdir()
            sums = {}
            for name, source in files.items():
                with _files.replacing(staged / name) as aside:
                    shutil.copyfile(source, aside)
                digest, size = digest_of(staged / name)
                sums[name] = {"sha256": digest, "bytes": size}
            made = replace(made, files=sums)
            _files.write_text(staged / MANIFEST, _files.as_json(made.facts()))
            for name in (*files, MANIFEST):  # against accidents; the checksums see the rest
                (staged / name).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
            staged.rename(self._folder(made.number))
        except OSError as error:
            raise FileError(
                f"Cannot write the generation to {kept}: {error.strerror or error}. The deployed "
                "generation is unchanged."
            ) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        with contextlib.suppress(OSError):  # some systems cannot flush a folder
            _files.flush(kept)
        return made

    def deployed(self) -> Deployed | None:
        """The pointer, None before anything was deployed.

        Raises:
            FileError: It cannot be read.
        """
        path = self.path / POINTER
        if not (path.exists() or path.is_symlink()):
            return None
        try:
            found, _ = _document(path, _POINTER, _WHAT)
            if found["moves"][-1]["to"] != found["generation"]:
                raise FileError(f"{path}, {_WHAT}, was changed: its last move is to another one.")
        except FileError as error:
            raise FileError(
                f"{error} Restore it; or remove it, and deploy a generation with: dynsnap project "
                "promote PROJECT GENERATION"
            ) from error
        return Deployed(
            generation=found["generation"],
            manifest=found["manifest"],
            moves=tuple(Move(**move) for move in found["moves"]),
        )

    def deploy(self, number: int, *, way: Way, why: str) -> Deployed:
        """Move the pointer to a generation, after all of its files were checked."""
        self.checked(number)
        before = self.deployed()
        moves = () if before is None else before.moves
        made = Deployed(
            generation=number,
            manifest=self._read(number)[1],
            moves=(*moves, Move(number, way, why, _files.timestamp())),
        )
        facts = {
            "schema": DEPLOYED,
            "generation": made.generation,
            "manifest": made.manifest,
            "moves": [move.facts() for move in made.moves],
        }
        try:
            _files.write_text(self.path / POINTER, _files.as_json(facts))
        except FileError as error:
            still = "none" if before is None else f"generation {before.generation}"
            raise FileError(f"{error} Still deployed: {still}.") from error
        return made

    def _folder(self, number: int) -> Path:
        return self.path / GENERATIONS / f"{number:04}"

    def _read(self, number: int) -> tuple[Generation, str]:
        path = self._folder(number) / MANIFEST
        if not path.exists():
            there = ", ".join(map(str, self.numbers())) or "none"
            raise FileError(
                f"Generation {number} is not in {self.path}: it was removed, or never there. "
                f"Generations there: {there}."
            )
        return read_manifest(path, number, self.path)


def read_manifest(
    path: Path, number: int, place: object, *, numbered: bool = True
) -> tuple[Generation, str]:
    """A generation and the SHA-256 of its manifest, a file that is held against its schema.

    Args:
        path: The manifest.
        number: The generation that it must be of.
        place: The registry, for messages.
        numbered: Whether it has the number; a server gives it after the manifest was written.
    """
    facts, digest = _document(path, _MANIFEST, f"the manifest of generation {number}")
    if facts.pop("number", None if numbered else number) != number:
        raise changed(number, "its manifest is of another generation", place)
    del facts["schema"]
    made = Generation(number=number, **facts)
    if made.model not in made.files:
        raise changed(number, f"its manifest lists no {made.model}", place)
    return made, digest


def check_files(found: Generation, folder: Path, place: object) -> None:
    """Raise unless every file of a generation has the SHA-256 that its manifest states."""
    for name, known in found.files.items():
        try:
            digest, size = digest_of(folder / name)
        except OSError as error:
            reason = f"{name} cannot be read ({error.strerror})"
            raise changed(found.number, reason, place) from error
        if (digest, size) != (known["sha256"], known["bytes"]):
            reason = f"{name} has sha256 {digest[:16]}, and had {known['sha256'][:16]}"
            raise changed(found.number, reason, place)


def digest_of(path: Path) -> tuple[str, int]:
    """The SHA-256 and the size of a file."""
    with regular(path).open("rb") as file:
        return _files.digest_and_size(file)


def _document(path: Path, schema: Schema, what: str) -> tuple[dict[str, Any], str]:
    try:
        content = regular(path).read_bytes()
        found = parse_json(content, most=_LONGEST)
        problem = mismatch(schema, found)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}, {what}, cannot be read: {error}.") from error
    if problem is not None:
        raise FileError(f"{path}, {what}, was changed: {problem}.")
    return found, hashlib.sha256(content).hexdigest()


def changed(number: int, reason: str, place: object) -> FileError:
    """What to raise for a generation that is not what was registered."""
    return FileError(
        f"Generation {number} in {place} changed after it was registered: {reason}. It is not "
        "used. Restore its files, or deploy another with: dynsnap project promote GENERATION"
    )


def read_document(path: Path, schema: Schema, what: str) -> dict[str, Any]:
    """A JSON file of a project, held against its schema."""
    return _document(path, schema, what)[0]
