"""Rounds under way as bytes: one line of JSON, then parts in the libraries' own safe formats."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dynsnap.ensemble import Checkpoints, RoundSpec
from dynsnap.errors import FileError

log = logging.getLogger("dynsnap.boost")

State: TypeAlias = Mapping[str, bytes]  # all that a learner needs to go on from an epoch's end
FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Begun:
    """Where a round stands when it is taken up.

    Attributes:
        curve: Validation accuracy after every epoch so far.
        state: What the learner made of the state that was saved; None for a fresh start.
    """

    curve: list[float] = field(default_factory=list)
    state: Any = None


class RoundCheckpointSaver:
    """Saves one round at the ends of epochs, and brings it back.

    Args:
        spec: The round.
        checkpoints: Where to; None saves nothing.
        every: Least seconds between two checkpoints; 0 saves after every epoch.
        owner: The trainer's fingerprint: another trainer's checkpoint is no use.
    """

    def __init__(
        self, spec: RoundSpec, *, checkpoints: Checkpoints | None, every: float, owner: str
    ) -> None:
        self._spec = spec
        self._checkpoints = checkpoints
        self._every = every
        self._owner = owner
        self._last = time.monotonic()
        self._start = time.perf_counter()

    @property
    def saves(self) -> bool:
        return self._checkpoints is not None

    @property
    def seconds(self) -> float:
        """Time that the round took so far, before it was stopped too."""
        return time.perf_counter() - self._start

    def restore(self, opened: Callable[[State], Any]) -> Begun:
        """Where the round's checkpoint has left it, or its start."""
        content = self._checkpoints.load(self._spec) if self._checkpoints is not None else None
        if content is None:
            return Begun()
        try:
            head, state = _unpack(content, what=f"The checkpoint of {self._spec}")
            if head["spec"] != self._spec.canonical() or head["owner"] != self._owner:
                raise FileError(f"The checkpoint of {self._spec} was made by another training.")
            begun = Begun(curve=[float(value) for value in head["curve"]], state=opened(state))
            seconds = float(head["seconds"])
        except Exception as error:  # each library has its own way to say that a file is damaged
            # Nothing but time is lost, so this is no reason to stop.
            reason = error if isinstance(error, FileError) else f"{self._spec}: {error!r}."
            log.warning("Ignoring an unusable checkpoint. %s Starting that round over.", reason)
            return Begun()
        self._start -= seconds
        return begun

    def due(self) -> bool:
        """Whether it is time to save."""
        return self.saves and time.monotonic() - self._last >= self._every

    def save(self, curve: list[float], state: State) -> None:
        """Save the round, which stands at the end of an epoch."""
        if self._checkpoints is None:
            return
        payload = b"".join(state.values())
        head = {
            "format": FORMAT,
            "spec": self._spec.canonical(),
            "owner": self._owner,
            "curve": curve,
            "seconds": self.seconds,
            "parts": [[name, len(part)] for name, part in state.items()],
            "sha256": hashlib.sha256(payload).hexdigest(),
        }
        content = json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload
        self._checkpoints.save(self._spec, content)
        self._last = time.monotonic()

    def drop(self) -> None:
        """The round is safe with the caller: its checkpoint is not needed any more."""
        if self._checkpoints is not None:
            self._checkpoints.drop(self._spec)


def _unpack(content: bytes, *, what: str) -> tuple[dict[str, Any], State]:
    line, _, payload = content.partition(b"\n")
    try:
        head = json.loads(line)
        version, parts, expected = head["format"], head["parts"], head["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{what} cannot be read: it is damaged, or was not written by `dynsnap.boost`."
        ) from error
    if version != FORMAT:
        raise FileError(f"{what} has format {version}, but this dynsnap reads format {FORMAT}.")
    # Before a library sees it: LightGBM takes the whole process down over a text cut short.
    if hashlib.sha256(payload).hexdigest() != expected:
        raise FileError(f"{what} fails its checksum: it is damaged.")
    state, at = {}, 0
    for name, size in parts:
        state[name] = payload[at : at + size]
        at += size
    return head, state
