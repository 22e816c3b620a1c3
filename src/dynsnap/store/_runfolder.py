"""A run folder: rounds under their keys, checkpoints, and one writer at a time."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dynsnap import _files
from dynsnap._files import is_staged
from dynsnap._untrusted import mismatch, parse_json, regular
from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import FileError, InputError
from dynsnap.store import _container, _manifests, _rounds
from dynsnap.store._container import DamagedError

try:
    import fcntl
except ImportError:  # Windows locks bytes of a file instead
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """The right to write to a folder, from `acquire` until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    @property
    def held(self) -> bool:
        """Whether this object has it now."""
        return self._file is not None

    def acquire(self) -> None:
        """Take the lock, or raise while another holder has it."""
        try:
            file = (self._folder / ".lock").open("a+b", buffering=0)
        except OSError as error:
            raise FileError(f"Cannot write to {self._folder}: {error.strerror}.") from error
        file.seek(0)
        try:
            _lock(file)
        except OSError as error:
            holder = file.read(32).decode(errors="replace").strip() or "unknown"
            file.close()
            raise FileError(
                f"Another process (pid {holder}) is at work in {self._folder}. Wait until it has "
                "finished, or name another folder."
            ) from error
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        except OSError as error:  # the disk is full
            file.close()
            raise FileError(f"Cannot write to {self._folder}: {error.strerror}.") from error
        self._file = file

    def release(self) -> None:
        """Let others write."""
        if self._file is not None:
            self._file.close()  # which lets go of the lock, too
            self._file = None


def _lock(file: IO[bytes]) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        # A byte far beyond the pid, which others may still want to read.
        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(0)


_MARK = "dynsnap.json"
_SUM = 64  # characters of a SHA-256 in front of a checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEntry:
    """A line of a run folder's contents.

    Attributes:
        facts: Everything its manifest states, empty where the round is damaged.
        damage: Why it cannot be used, None for a sound round.
    """

    key: str
    bytes: int
    facts: dict[str, Any]
    damage: str | None = None


class RunFolder:
    """Finished rounds under their keys, and the checkpoints of unfinished ones.

    A round is one file, written aside, flushed and renamed, with a checksum for each of its parts:
    a damaged one is named in a warning and counts as missing. Scores are mapped from the file when
    they are looked at, so holding many rounds costs no memory.

    One process writes to a folder at a time. The right to do so is taken by `with`, or by the
    first write, and ends with the block, with `close`, or with the process.

    Args:
        path: The folder; made where it is missing.
        weights: Keep the learners themselves and not only their scores. A stored round without
            them then counts as missing.
        half: Keep scores in half precision: half the space, three digits.
        training_epochs: Epochs of one training from scratch, the unit of a round's cost κ.
        device: What trains, for the record.

    Example:
        >>> import tempfile
        >>> with RunFolder(Path(tempfile.mkdtemp()) / "run") as folder:
        ...     len(list(folder.entries()))
        0
    """

    def __init__(
        self,
        path: Path | str,
        *,
        weights: bool = True,
        half: bool = False,
        training_epochs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.path = Path(path)
        self._weights = weights
        self._half = half
        self._training_epochs = training_epochs
        self.device = device
        self._lock = FolderLock(self.path)
        self._check_mark()

    def __enter__(self) -> "RunFolder":
        self._open_for_writing()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def keeps_weights(self) -> bool:
        """Whether rounds are stored with their learners."""
        return self._weights

    def close(self) -> None:
        """Let other processes write."""
        self._lock.release()

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        """The round stored under this key, or None where it is missing or damaged."""
        path = self._round(key)
        if not path.exists():
            return None
        try:
            container = _container.read(path)
            _rounds.check_format(container.facts, path)
            done = _rounds.restored(container, spec)
        except DamagedError as error:
            warnings.warn(f"{error} It will be trained again ({spec}).", stacklevel=2)
            return None
        return None if self._weights and not done.weights else done

    def put(self, key: str, done: Round, /) -> None:
        """Keep a finished round, and forget its checkpoint."""
        if self._weights and not done.weights:
            raise InputError(
                f"{done.spec} came without weights, and {self.path} is to keep them. "
                "Let the trainer keep weights, or open the folder with `weights=False`."
            )
        self._open_for_writing()
        _container.write(
            self._round(key),
            _rounds.parts(done, weights=self._weights, half=self._half),
            _rounds.facts(key, done, training_epochs=self._training_epochs, device=self.device),
        )
        self._checkpoint(key).unlink(missing_ok=True)

    def learners(self) -> "StoredLearners":
        """Finds stored learners by name, also in other processes that see this folder."""
        return StoredLearners(self.path)

    @property
    def begun(self) -> int:
        """How many rounds have a checkpoint to go on from."""
        return sum(not spent for _, spent in self._checkpoints())

    def checkpoints(self, key: Callable[[RoundSpec], str]) -> "RoundCheckpoints":
        """The states of unfinished rounds, under the keys that `key` gives them."""
        return RoundCheckpoints(self, key)

    def entries(self) -> Iterator[RoundEntry]:
        """Every round in the folder, each looked at in full, damaged ones too."""
        for path in sorted((self.path / "rounds").glob("[!.]*.npz")):
            yield self.entry(path.stem)

    def entry(self, key: str) -> RoundEntry:
        """What is known about one round of the folder."""
        path = self._round(key)
        try:
            container = _container.read(path)
            _rounds.check_format(container.facts, path)
            container.check(_manifests.ROUND)
            known, damage = dict(container.facts), None
        except DamagedError as error:
            known, damage = {}, str(error)
        return RoundEntry(key=key, bytes=path.stat().st_size, facts=known, damage=damage)

    def find(self, prefix: str) -> str:
        """The one key that begins like this."""
        found = [path.stem for path in (self.path / "rounds").glob("[!.]*.npz")]
        matching = sorted(key for key in found if key.startswith(prefix))
        if not matching or not prefix:
            raise InputError(
                f"No round in {self.path} has a key that begins with {prefix!r}. "
                f"List them with `dynsnap runs {self.path}`."
            )
        if len(matching) > 1:
            raise InputError(
                f"{len(matching)} rounds in {self.path} have keys that begin with {prefix!r}: "
                "give more of the key."
            )
        return matching[0]

    def remove(self, key: str) -> None:
        """Take a round and its checkpoint out of the folder."""
        self._open_for_writing()
        self._round(key).unlink(missing_ok=True)
        self._checkpoint(key).unlink(missing_ok=True)

    def ensemble_path(self, method: str, generation: int) -> Path:
        """Where an ensemble of this run is saved; its folder is made."""
        self._open_for_writing()
        folder = self.path / "ensembles"
        folder.mkdir(exist_ok=True)
        return folder / f"{method}-g{generation}.ensemble"

    def _round(self, key: str) -> Path:
        return self.path / "rounds" / f"{key}.npz"

    def _checkpoint(self, key: str) -> Path:
        return self.path / "checkpoints" / f"{key}.bin"

    def _checkpoints(self) -> Iterator[tuple[Path, bool]]:
        """Every checkpoint, and whether it is spent: its round is there.

        A checkpoint that is younger than its round is of a training that goes on: the round was
        damaged, or is wanted with its weights now.
        """
        for checkpoint in (self.path / "checkpoints").glob("[!.]*.bin"):
            done = self._round(checkpoint.stem)
            try:
                written = checkpoint.stat().st_mtime_ns
                spent = done.exists() and done.stat().st_mtime_ns >= written
            except FileNotFoundError:  # a study at work has just ended the round
                continue
            yield checkpoint, spent

    def _drop_spent_checkpoints(self) -> None:
        """Finish what `put` began where it was killed: the round is there, its checkpoint too."""
        for checkpoint, spent in self._checkpoints():
            if spent:
                checkpoint.unlink(missing_ok=True)

    def _check_mark(self) -> None:
        mark = self.path / _MARK
        if not mark.exists():
            return
        try:
            known = parse_json(regular(mark).read_bytes())
        except (OSError, ValueError) as error:
            raise FileError(f"{mark} cannot be read: {error}. Is this a run folder?") from error
        if not isinstance(known, dict) or known.get("kind") != "run":
            raise FileError(f"{self.path} is not a run folder: {mark} shows otherwise.")
        _rounds.check_format(known, self.path)
        if (problem := mismatch(_manifests.RUN, known)) is not None:
            raise FileError(f"{mark} cannot be read: {problem}. Is this a run folder?")

    def _open_for_writing(self) -> None:
        if self._lock.held:
            return
        folders = (self.path / "rounds", self.path / "checkpoints")
        try:
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"Cannot make the run folder {self.path}: {error.strerror}. Name another place."
            ) from error
        self._lock.acquire()
        # A writer that was killed has left a staged file; the lock shows that none is writing now.
        # Other hidden files (.gitkeep, .nfs...) are not ours.
        for folder in folders:
            for leftover in folder.glob(".*"):
                if is_staged(leftover.name):
                    leftover.unlink(missing_ok=True)
        self._drop_spent_checkpoints()
        mark = self.path / _MARK
        if not mark.exists():
            _files.write_text(mark, json.dumps({"kind": "run", "format": _rounds.FORMAT}) + "\n")


@dataclass(frozen=True, slots=True)
class StoredLearners:
    """The learners in a run folder, by name: the key of their round, a slash, their place there."""

    path: Path

    def __call__(self, name: str) -> bytes:
        """One learner, in its trainer's own format."""
        key, _, place = name.rpartition("/")
        file = self.path / "rounds" / f"{key}.npz"
        part = f"weights.{int(place):04}.bin"
        try:
            return _container.read(file).bytes_of(part)
        except (DamagedError, KeyError) as error:
            raise FileError(
                f"The learner that a round starts from, {part} in {file}, cannot be read: {error} "
                "A run folder that refreshes members keeps weights, and all machines that train "
                "must see it."
            ) from error


class RoundCheckpoints:
    """The states of unfinished rounds in a run folder; made by `RunFolder.checkpoints`."""

    def __init__(self, folder: RunFolder, key: Callable[[RoundSpec], str]) -> None:
        self._folder = folder
        self._key = key

    def load(self, spec: RoundSpec, /) -> bytes | None:
        """The last state saved, or None where there is none or it is damaged."""
        path = self._folder._checkpoint(self._key(spec))
        if not path.exists():
            return None
        content = path.read_bytes()
        state = content[_SUM:]
        if hashlib.sha256(state).hexdigest().encode() != content[:_SUM]:
            warnings.warn(f"{path} is damaged. {spec} starts over.", stacklevel=2)
            return None
        return state

    def save(self, spec: RoundSpec, state: bytes, /) -> None:
        """Replace the state of an unfinished round."""
        self._folder._open_for_writing()
        path = self._folder._checkpoint(self._key(spec))
        _files.write_bytes(path, hashlib.sha256(state).hexdigest().encode() + state)

    def drop(self, spec: RoundSpec, /) -> None:
        """Forget an unfinished round."""
        self._folder._checkpoint(self._key(spec)).unlink(missing_ok=True)
