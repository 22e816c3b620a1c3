"""Rounds from elsewhere, held against the data that they are to be measured on."""

from pathlib import Path

from dynsnap.cli._stored import RoundsByName
from dynsnap.data import Stream
from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import FileError


class FittingRounds:
    """A store that refuses rounds which were scored on other inputs than a stream has.

    A round has no ids: one of another protocol would be taken for what its place says.
    """

    def __init__(self, store: RoundsByName, stream: Stream, *, folder: Path) -> None:
        self._store, self._stream, self._folder = store, stream, folder

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        """The round, if it is there."""
        done = self._store.get(key, spec)
        if done is None:
            return None
        for name, held in self._stream.evaluation.items():
            expected = (len(held), len(held.classes))
            found = done.scores[name].shape[1:] if name in done.scores else (0, expected[1])
            if found != expected:
                raise FileError(
                    f"{self._folder} holds rounds of other data: {spec} was scored on "
                    f"{found[0]:,} inputs of {found[1]:,} classes ({name}), but the study has "
                    f"{expected[0]:,} of {expected[1]:,}. Name the study and the data that the "
                    "rounds were trained with."
                )
        return done

    def key_of(self, spec: RoundSpec, /) -> str | None:
        """What the round was called where it was trained."""
        return self._store.key_of(spec)

    def put(self, key: str, done: Round, /) -> None:
        """Keep a round."""
        self._store.put(key, done)
