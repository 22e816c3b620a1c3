"""The files of a run folder and of published results, for commands that read them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from dynsnap import predictions
from dynsnap._types import Labels
from dynsnap._untrusted import (
    AnyOf,
    ListOf,
    MapOf,
    Null,
    Number,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
    parse_json,
    regular,
)
from dynsnap.data import Stream
from dynsnap.ensemble import Round, RoundSpec, beginning
from dynsnap.errors import FileError
from dynsnap.store import RunFolder, environment
from dynsnap.study import Ensemble, TrainedAs

_NAME = Text(free=True)  # of a class
_SHARE = Number(0, 1)

# All keys may be missing: older versions wrote fewer of them.
ABOUT: Schema = Table(
    {},
    {
        "study": Text(),
        "dynsnap": Text(),
        "environment": MapOf(Text(), most=1000),
        "hardware": MapOf(AnyOf(Null(), Whole(), Text()), most=1000),
        "engine": Text(),
        "generations": ListOf(Whole(), most=1_000_000),
        "training_rows": MapOf(ListOf(Whole(), least=1, most=1_000_000), key=_NAME),
        "test_inputs": Whole(),
        "replicates": Whole(),
        "rounds": Whole(),
        "rounds_missing": Whole(),
        "rounds_trained_last": Whole(),
        "training_seconds": Number(0),
        "training_inputs": Whole(),
        "inputs_per_second": Number(0),
        "wall_seconds_last": Number(0),
    },
)

_CURVE = Table(
    {
        "method": Text(),
        "name": Text(),
        "accuracy": ListOf(_SHARE, least=1, most=1_000_000),
        "epochs": ListOf(Whole(0, 1_000_000), most=1_000_000),
        "snapshots": ListOf(_SHARE, most=1_000_000),
        "threshold": AnyOf(Null(), _SHARE),
    }
)
_EFFECT = Table({"change": Number(-1, 1), "low": Number(-1, 1), "high": Number(-1, 1)})
_AUDIT = Table(
    {
        "title": Text(),
        "members": Whole(1),
        "inputs": Whole(1),
        "classes": Whole(1),
        "order": Number(1),
        "bounds": ListOf(Table({"name": Text(), "claim": Text()}), most=1000),
        "accuracy_bounds": AnyOf(
            Null(),
            Table(
                {"name": Text(), "claim": Text(), "low": _SHARE, "value": _SHARE, "high": _SHARE}
            ),
        ),
        "standings": ListOf(
            Table(
                {
                    "metric": Text(),
                    "ensemble": _SHARE,
                    "mean_member": _SHARE,
                    "best_member": _SHARE,
                    "best_position": Whole(),
                }
            ),
            most=1000,
        ),
        "effects": AnyOf(
            Null(),
            Table(
                {
                    "whole": _SHARE,
                    "members": ListOf(_EFFECT, most=1_000_000),
                    "mean": _EFFECT,
                    "confidence": _SHARE,
                    "resamples": Whole(1),
                }
            ),
        ),
        "honest": Text(),
        "notes": ListOf(Text(), most=1000),
    }
)
TRAINING: Schema = Table({"curves": ListOf(_CURVE, most=1000), "audits": ListOf(_AUDIT, most=1000)})


class StoredRounds:
    """The rounds of a run folder, found by what they are, not by their keys.

    Args:
        folder: The run folder.
        trained_as: Says of a round which one is stored for it, as `study.trained_as` does.

    Attributes:
        sound: How many rounds can be used.
        damaged: How many cannot.
        environments: By key, the versions and the device that a usable round was trained with.
    """

    def __init__(self, folder: Path, trained_as: TrainedAs = lambda spec: spec) -> None:
        self._store = RunFolder(folder, weights=False)
        self._trained_as = trained_as
        self._keys: dict[str, str] = {}  # by all that names a round
        self._indices: set[int] = set()
        self.sound = self.damaged = 0
        self.environments: dict[str, dict[str, str]] = {}
        age: dict[str, float] = {}
        for entry in self._store.entries():
            if entry.damage is not None:
                self.damaged += 1
                continue
            self.sound += 1
            self.environments[entry.key] = entry.facts["environment"]
            spec = entry.facts["spec"]
            name = json.dumps(spec, sort_keys=True)
            written = (folder / "rounds" / f"{entry.key}.npz").stat().st_mtime
            # A study that was edited may have left older rounds of the same name.
            if written >= age.get(name, 0.0):
                age[name] = written
                self._keys[name] = entry.key
                self._indices.add(spec["index"])

    def key_of(self, spec: RoundSpec) -> str | None:
        """The key of a stored round, None where it is not there."""
        return self._keys.get(json.dumps(spec.facts(), sort_keys=True))

    def get(self, spec: RoundSpec) -> Round | None:
        """A round, None where it is not there or damaged."""
        whole = self._trained_as(spec)
        key = self.key_of(whole)
        done = None if key is None else self._store.get(key, whole)
        return None if done is None else beginning(done, spec)

    def all_of(self, ensemble: Ensemble) -> list[Round]:
        """All rounds that an ensemble could be made of, also those that it does not need."""
        own = sorted(index - ensemble.offset for index in self._indices)
        specs = [ensemble.spec(index) for index in own if index >= 0]
        return [done for spec in specs if (done := self.get(spec)) is not None]


class RoundsByName:
    """A store that has the rounds of a folder under any key: they may come from another machine.

    A key also shows where a round was trained (the device, the precision); a study that is only
    measured, or that goes on elsewhere, takes what there is. But a round has no ids: one that was
    scored on other inputs than the stream has would be taken for what its place states, so it is
    refused.

    Args:
        folder: Where the rounds lie.
        stream: What they have to be scored on.
        own: Keeps new rounds in the same folder; None where nothing is trained.
    """

    def __init__(self, folder: Path, stream: Stream, *, own: RunFolder | None = None) -> None:
        self._stored, self._stream, self._folder = StoredRounds(folder), stream, folder
        self._own = own
        self._taken: set[str] = set()  # keys: other studies may have left rounds in the folder

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        """The round of this name, the one of this key before all others."""
        found: str | None = key
        done = self._own.get(key, spec) if self._own else None
        if done is None:
            found, done = self.key_of(spec), self._stored.get(spec)
        if found is not None and done is not None:
            self._check(done)
            self._taken.add(found)
        return done

    def _check(self, done: Round) -> None:
        for name, held in self._stream.evaluation.items():
            expected = (len(held), len(held.classes))
            found = done.scores[name].shape[1:] if name in done.scores else (0, expected[1])
            if found != expected:
                raise FileError(
                    f"{self._folder} holds rounds of other data: {done.spec} was scored on "
                    f"{found[0]:,} inputs of {found[1]:,} classes ({name}), but the study has "
                    f"{expected[0]:,} of {expected[1]:,}. Name the study and the data that the "
                    "rounds were trained with."
                )

    def put(self, key: str, done: Round, /) -> None:
        """Keep a round that was trained here."""
        assert self._own is not None, "nothing is trained, so nothing is stored"
        self._own.put(key, done)
        self._stored.environments[key] = environment(self._own.device)
        self._taken.add(key)

    def key_of(self, spec: RoundSpec, /) -> str | None:
        """What the round was called where it was trained: members that were trained on name it."""
        return self._stored.key_of(spec)

    def environment(self) -> dict[str, str]:
        """The versions and the device of the rounds taken, the most frequent first."""
        found: dict[str, Counter[str]] = {}
        for key in sorted(self._taken):
            for name, value in self._stored.environments[key].items():
                found.setdefault(name, Counter())[value] += 1
        return {name: "; ".join(v for v, _ in many.most_common()) for name, many in found.items()}


def read_about(folder: Path) -> dict[str, Any]:
    """What a run folder states about itself; nothing where there is nothing.

    Raises:
        FileError: What it states is damaged, or is nothing that dynsnap would write.
    """
    path = folder / "about.json"
    try:
        known: dict[str, Any] = parse_json(regular(path).read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}.") from error
    if (problem := mismatch(ABOUT, known)) is not None:
        raise FileError(f"{path} is damaged: {problem}.")
    return known


def truth_of(
    folder: Path, *, method: str | None = None, generation: int | None = None
) -> Labels | None:
    """The true classes of the test inputs, from some predictions; None where there are none."""
    for key, place in predictions.stored(folder).items():
        wanted = method in (None, key.method) and generation in (None, key.generation)
        if wanted and key.kind == "test":
            return predictions.read(place).truth
    return None
