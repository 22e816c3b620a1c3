"""Generations as versions of a registered model in MLflow, and an alias for the deployed one.

    models:/delays/3           generation 3: its files are artifacts of the run that registered it
      dynsnap.retrain          a tag: the retrain that made it
      dynsnap.manifest         a tag: the SHA-256 of `generation.json`, which has those of all files
    models:/delays@champion    the deployed generation
    models:/delays@challenger  the newest one, until it is deployed
    models:/delays             tags: `dynsnap.move.0001` and so on, every move of the champion, and
                               `dynsnap.moves`, how many of them were carried out

The alias is the pointer: MLflow moves it in one transaction, and servers read it. A move is noted
before it is made. A note that the alias does not follow is of a process that was killed in between;
the same command writes it again. An alias that moved without a note was moved in MLflow by hand.
"""

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynsnap import _files
from dynsnap._untrusted import DIGEST, Table, Text, mismatch, parse_json
from dynsnap.errors import FileError
from dynsnap.mlflow import ModelState, ModelVersions, describe_ensemble
from dynsnap.project._registry import (
    MANIFEST,
    MOVE,
    Deployed,
    Generation,
    Move,
    Way,
    changed,
    check_files,
    digest_of,
    read_manifest,
)

CHAMPION, CHALLENGER = "champion", "challenger"
_RETRAIN, _MANIFEST = "dynsnap.retrain", "dynsnap.manifest"
_MOVE, _MOVES = "dynsnap.move.{:04}", "dynsnap.moves"
_NOTE = Table(MOVE.needed, {"manifest": Text(longest=64, form=DIGEST)})
_BY_HAND = "The alias was moved in MLflow."


class MlflowRegistry:
    """A registry in MLflow. One process writes at a time: the project's lock sees to it.

    Args:
        model: The registered model.
        uri: The tracking server; None for the one that MLFLOW_TRACKING_URI names.
    """

    def __init__(self, model: str, uri: str | None = None) -> None:
        self._model = ModelVersions(model, uri)
        self._downloads: Any = None  # goes with this object

    def numbers(self) -> list[int]:
        """The generations that are there; other versions of the model are left alone."""
        return sorted(self._tags())

    def get(self, number: int) -> Generation:
        """What is known of a generation; its files are not looked at.

        Raises:
            FileError: It is gone, or its manifest was changed.
        """
        with tempfile.TemporaryDirectory(prefix="dynsnap-") as folder:
            return self._read(number, Path(folder))[0]

    def checked(self, number: int) -> tuple[Generation, Path]:
        """A generation and a folder with its files, each checked against its SHA-256.

        The files are downloaded each time, since those of the server are what is checked.

        Raises:
            FileError: It is gone, or one of its files changed after it was registered.
        """
        if self._downloads is None:
            self._downloads = tempfile.TemporaryDirectory(prefix="dynsnap-")
        folder = Path(self._downloads.name) / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        found, _ = self._verified(number, folder, self.deployed())
        return found, folder

    def register(
        self, retrain: str, files: Mapping[str, Path], *, model: str, about: Mapping[str, Any]
    ) -> Generation:
        """Keep a new generation; the one that this retrain made before, if it did."""
        made = self._registered(retrain, files)
        if made is None:
            with tempfile.TemporaryDirectory(prefix="dynsnap-") as place:
                staged = Path(place)
                for name, source in files.items():
                    shutil.copyfile(source, staged / name)
                describe_ensemble(staged)
                made = self._new(retrain, staged, model, about)
        self._point_challenger(made.number)
        return made

    def deployed(self) -> Deployed | None:
        """The pointer, None before anything was deployed.

        Raises:
            FileError: The alias is gone, or a note of its moves cannot be read.
        """
        return self._deployed(self._model.state())

    def deploy(self, number: int, *, way: Way, why: str) -> Deployed:
        """Move the alias to a generation, after all of its files were checked."""
        state = self._model.state()
        before = self._deployed(state)
        with tempfile.TemporaryDirectory(prefix="dynsnap-") as folder:
            _, digest = self._verified(number, Path(folder), before)
        moves = () if before is None else before.moves
        made = Deployed(
            generation=number,
            manifest=digest,
            moves=(*moves, Move(number, way, why, _files.timestamp())),
        )
        notes = {
            _MOVE.format(place): move.facts()
            for place, move in enumerate(made.moves, 1)
            if place > _carried_out(state)
        }
        notes[_MOVE.format(len(made.moves))]["manifest"] = digest
        self._model.tag({name: json.dumps(note) for name, note in notes.items()})
        self._model.point(CHAMPION, number)
        self._point_challenger(number)
        self._model.tag({_MOVES: str(len(made.moves))})
        return made

    # --- generations ------------------------------------------------------------------------

    def _tags(self) -> dict[int, dict[str, str]]:
        found = self._model.tags_of_all()
        return {number: tags for number, tags in found.items() if {_RETRAIN, _MANIFEST} <= {*tags}}

    def _registered(self, retrain: str, files: Mapping[str, Path]) -> Generation | None:
        """The generation that a retrain of this name made of the same files.

        A project that is set up anew for a model that had one before uses names again.
        """
        sums = {name: digest_of(file)[0] for name, file in files.items()}
        for number, tags in reversed(self._tags().items()):
            if tags[_RETRAIN] != retrain:
                continue
            with contextlib.suppress(FileError):  # another one's damage is not in the way here
                known = self.get(number)
                if sums == {name: known.files.get(name, {}).get("sha256") for name in files}:
                    return known
        return None

    def _new(self, retrain: str, staged: Path, model: str, about: Mapping[str, Any]) -> Generation:
        sums = {}
        for file in sorted(staged.iterdir()):
            digest, size = digest_of(file)
            sums[file.name] = {"sha256": digest, "bytes": size}
        made = Generation(
            number=0,
            retrain=retrain,
            created=_files.timestamp(),
            model=model,
            files=sums,
            about=about,
        )
        facts = made.facts()
        del facts["number"]  # MLflow gives it
        _files.write_text(staged / MANIFEST, _files.as_json(facts))
        tags = {_RETRAIN: retrain, _MANIFEST: digest_of(staged / MANIFEST)[0]}
        return replace(made, number=self._model.add(retrain, staged, tags))

    def _read(self, number: int, folder: Path) -> tuple[Generation, str]:
        tags = self._model.tags_of(number)
        if tags is None or _MANIFEST not in tags:
            there = ", ".join(map(str, self.numbers())) or "none"
            raise FileError(
                f"Generation {number} is not in {self._model}: it was removed, or never there. "
                f"Generations there: {there}."
            )
        self._fetch(number, [MANIFEST], folder)
        path = folder / MANIFEST
        found, digest = read_manifest(path, number, self._model, numbered=False)
        if digest != tags[_MANIFEST]:
            raise changed(number, f"{MANIFEST} is not the one that was registered", self._model)
        return found, digest

    def _verified(
        self, number: int, folder: Path, pointer: Deployed | None
    ) -> tuple[Generation, str]:
        """Download the files of a generation to a folder, and check them."""
        found, digest = self._read(number, folder)
        if pointer is not None and pointer.generation == number and pointer.manifest != digest:
            raise changed(number, f"{MANIFEST} is not the one that was deployed", self._model)
        self._fetch(number, found.files, folder)
        check_files(found, folder, self._model)
        return found, digest

    def _fetch(self, number: int, files: Iterable[str], folder: Path) -> None:
        try:
            self._model.fetch(number, files, folder)
        except FileError as error:
            raise changed(number, str(error).rstrip("."), self._model) from error

    # --- the pointer ------------------------------------------------------------------------

    def _deployed(self, state: ModelState) -> Deployed | None:
        current, done = state.aliases.get(CHAMPION), _carried_out(state)
        if current is None:
            if done:
                raise FileError(
                    f"{self._model} has no alias {CHAMPION} any more. Set it in MLflow to the "
                    f"generation that is deployed; it was {self._note(state, done)['to']}."
                )
            return None
        notes = [self._note(state, place) for place in range(1, done + 1)]
        last, place = done, done + 1
        while _MOVE.format(place) in state.tags:  # made, if the alias is where they lead to
            notes.append(self._note(state, place))
            last = place if notes[-1]["to"] == current else last
            place += 1
        notes = notes[:last]
        manifest = notes[-1].get("manifest", "") if notes else ""
        moves = [Move(*(note[key] for key in Move.__slots__)) for note in notes]
        if not moves or moves[-1].to != current:
            back: Way = "rollback" if current in [move.to for move in moves] else "promote"
            date = datetime.fromtimestamp(state.updated / 1000, UTC)
            moves.append(Move(current, back, _BY_HAND, _files.timestamp(date)))
            manifest = self._tags().get(current, {}).get(_MANIFEST, "")
        return Deployed(generation=current, manifest=manifest, moves=tuple(moves))

    def _note(self, state: ModelState, place: int) -> dict[str, Any]:
        tag = _MOVE.format(place)
        try:
            found = parse_json(state.tags.get(tag, "").encode())
            problem = mismatch(_NOTE, found)
        except ValueError as error:
            problem = str(error)
        if problem is not None:
            raise FileError(f"The tag {tag} of {self._model} was changed: {problem}.")
        return dict(found)

    def _point_challenger(self, number: int) -> None:
        """Let `challenger` name a new generation, and no longer the one that is deployed."""
        aliases = self._model.state().aliases
        if aliases.get(CHAMPION) != number:
            if aliases.get(CHALLENGER) != number:
                self._model.point(CHALLENGER, number)
        elif aliases.get(CHALLENGER) == number:
            self._model.point(CHALLENGER, None)


def _carried_out(state: ModelState) -> int:
    """How many moves were noted as carried out."""
    found = state.tags.get(_MOVES, "0")
    return int(found) if re.fullmatch(r"\d{1,9}", found) else 0
