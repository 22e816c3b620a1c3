"""Whom to hand in where nobody trains, and where nothing outlives the process."""

from collections.abc import Iterable, Sequence

from dynsnap._types import AnyArray, MemberScores
from dynsnap.ensemble._protocols import Round, RoundSpec


class NoTrainer:
    """Stands where a trainer is expected and nothing is to be trained."""

    fingerprint = ""

    def train(self, specs: Sequence[RoundSpec], /) -> Iterable[Round]:
        raise AssertionError("nothing is to be trained")

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        raise AssertionError("nothing is to be scored")


class RoundsInMemory:
    """A store whose rounds are gone with it."""

    def __init__(self) -> None:
        self._rounds: dict[str, Round] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        return self._rounds.get(key)

    def put(self, key: str, done: Round, /) -> None:
        self._rounds[key] = done


class CheckpointsInMemory:
    """Unfinished rounds that are gone with the process."""

    def __init__(self) -> None:
        self._states: dict[RoundSpec, bytes] = {}

    def load(self, spec: RoundSpec, /) -> bytes | None:
        return self._states.get(spec)

    def save(self, spec: RoundSpec, state: bytes, /) -> None:
        self._states[spec] = state

    def drop(self, spec: RoundSpec, /) -> None:
        self._states.pop(spec, None)
