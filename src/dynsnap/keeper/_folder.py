"""The run folder of a loop: what it states about itself, and scores that are up to date."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import _files
from dynsnap._types import AnyArray, Labels, Scores
from dynsnap._untrusted import (
    ListOf,
    MapOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
    parse_json,
    regular,
)
from dynsnap.data import SELECTION_SET, Pool, Stream
from dynsnap.ensemble import Method, Round, RoundSpec
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.keeper._ensemble import positions_in
from dynsnap.keeper._round import torch_part
from dynsnap.store import RunFolder
from dynsnap.study import ONE_NETWORK, OWN_LOOP

MANIFEST = "keeper.json"
_FORMAT = 1
_DIGEST = Text(form="[0-9a-f]{64}")
_SCHEMA: Schema = Table(
    {
        "format": Whole(1, 1000),
        "settings": MapOf(Plain(), most=100),
        "generations": ListOf(
            Table(
                {
                    "classes": Whole(1, 100_000),
                    "selection_rows": Whole(),
                    "selection_digest": Text(form="[0-9a-f]{0,64}"),
                    "owner": Text(form="[0-9a-f]{32}"),
                }
            ),
            most=1_000_000,
        ),
        "classes": ListOf(Text(free=True), least=1, most=100_000, distinct=True),
        "scored": MapOf(_DIGEST, most=1_000_000),
    }
)


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Inputs that every snapshot is scored on.

    Attributes:
        inputs: What `score` takes: an array, a tensor, a list, or a dict of them.
        truth: The true class of each: names, or positions in `classes`.
        ids: A unique name for each; its number by default.
        slices: Further columns, a value per input, for breakdowns.
    """

    inputs: Any
    truth: Any
    ids: Sequence[Any] | AnyArray | None = None
    slices: Mapping[str, Any] = field(default_factory=dict)

    def pool(self, name: str, classes: tuple[str, ...]) -> Pool:
        """The set as a pool of a study; inputs that a page could not show are left out."""
        count = torch_part().count_of(self.inputs)
        labels = positions_in(classes, _numpy(self.truth), name)
        if len(labels) != count:
            raise InputError(f"`{name}` has {count} inputs, but the truth of {len(labels)}.")
        inputs = np.zeros((count, 1))
        if isinstance(self.inputs, np.ndarray):
            inputs = self.inputs
        elif isinstance(self.inputs, list) and all(isinstance(one, str) for one in self.inputs):
            inputs = np.array(self.inputs, dtype=object)
        return Pool(
            name=name,
            inputs=inputs,
            labels=labels,
            classes=classes,
            ids=np.arange(count) if self.ids is None else np.asarray(self.ids),
            slices={column: np.asarray(values) for column, values in self.slices.items()},
        )

    def digest(self, labels: Labels, ids: AnyArray) -> str:
        """A hash of the inputs, as far as they are arrays, of their ids and their truth."""
        found = hashlib.sha256(repr(ids.tolist()).encode())
        found.update(np.asarray(labels, "<i8").tobytes())
        _hash_inputs(self.inputs, found.update)
        return found.hexdigest()


def _hash_inputs(inputs: Any, update: Callable[[bytes], None]) -> None:
    if isinstance(inputs, Mapping):
        for name in sorted(inputs):
            update(str(name).encode())
            _hash_inputs(inputs[name], update)
        return
    try:
        array = _numpy(inputs)
    except ValueError:  # rows of different lengths
        array = np.array([repr(one) for one in inputs], dtype=object)
    update(f"{array.shape} {array.dtype}".encode())
    update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())


def _numpy(values: Any) -> AnyArray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_set(given: Any) -> EvaluationSet:
    """An evaluation set, also from a plain (inputs, truth)."""
    if isinstance(given, EvaluationSet):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return EvaluationSet(*given)
    raise InputError(
        f"An evaluation set is (inputs, truth), or an `EvaluationSet`, got {type(given).__name__}."
    )


def study_text(name: str, method: Method, settings: Mapping[str, Any]) -> str:
    """The study that a loop amounts to, as the file that commands read in a run folder."""
    recipe = method.recipe
    lines = [
        "# Written by SnapshotKeeper: a loop of your own trains the rounds of this study.",
        "[study]",
        f"name = {json.dumps(name)}",
        f"seed = {settings['seed']}",
        'keep = "weights"',
        f"resamples = {settings['resamples']}",
        "\n[data]",
        f'source = "{OWN_LOOP}"',
        "\n[model]",
        f'trainer = "{OWN_LOOP}"',
        "\n[training]",
        f"epochs = {settings['epochs']}",
        f"warmup = {settings['warmup']}",
        "\n[methods]",
        f"names = [{json.dumps(method.name)}]",
        f"combinations = [{json.dumps(settings['combination'])}]",
    ]
    lines += [
        f"{setting} = {json.dumps(settings[setting])}"
        for setting in ("members", "snapshots", "beta", "tolerance", "most_rounds")
        if settings[setting] is not None
    ]
    if method.rolling is not None:
        lines.append(f"\n[methods.{method.name}]")
        lines += [
            f"{setting} = {json.dumps(value)}"
            for setting, value in dataclasses.asdict(method.rolling).items()
        ]
    if not method.plan.single:
        lines += [
            "\n[[ablation]]",
            f'name = "{ONE_NETWORK}"',
            f'schedule = "{recipe.schedule.kind}"',
            f"epochs = {recipe.epochs}",
            f"snapshots = {recipe.snapshots}",
            "members = 1",
            "beta = 0.0",
        ]
    return "\n".join(lines) + "\n"


class KeeperManifest:
    """What a run folder states about the loop that trains its rounds.

    Attributes:
        generations: Of each generation, how many classes it knows, which rows select members, and
            what its rounds depend on beside their specs.
        replaced: Whether a generation was entered with another version than it was trained with.
        scored: By the key of a round, what it was scored on.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], classes: tuple[str, ...]) -> None:
        self._path = folder / MANIFEST
        self._settings = json.loads(json.dumps(dict(settings)))
        self.classes = classes
        self.generations: list[dict[str, Any]] = []
        self.scored: dict[str, str] = {}
        self.replaced = False
        if self._path.exists():
            self._read()
        elif (folder / "study.toml").exists():
            raise FileError(
                f"{folder} is the folder of another run: it has a study.toml, but no {MANIFEST}. "
                "Name another folder."
            )

    def _read(self) -> None:
        try:
            known = parse_json(regular(self._path).read_bytes())
            problem = mismatch(_SCHEMA, known)
        except (OSError, ValueError) as error:
            problem = str(error)
        if problem is not None:
            raise FileError(f"{self._path} is damaged: {problem}. Name another folder.")
        for name, value in self._settings.items():
            before = known["settings"].get(name)
            if before != value:
                raise PlanError(
                    f"{self._path.parent} was begun with {name} = {before!r}, but {name} is "
                    f"{value!r} now. Use the same settings, or name another folder."
                )
        before = tuple(known["classes"])
        if self.classes[: len(before)] != before and before[: len(self.classes)] != self.classes:
            raise PlanError(
                f"{self._path.parent} was begun with the classes {', '.join(before[:10])}, but "
                f"they are {', '.join(self.classes[:10])} now. New classes go behind the old ones."
            )
        self.classes = max(before, self.classes, key=len)
        self.generations, self.scored = known["generations"], known["scored"]

    def owner_of(self, generation: int) -> str:
        """What the rounds of a generation depend on beside their specs."""
        found: str = self.generations[generation - 1]["owner"]
        return found

    def enter(self, generation: int, *, classes: int, selection: Sequence[str], owner: str) -> None:
        """Note what a generation knows, or check that it is what was noted.

        Args:
            generation: The generation, counted from 1.
            classes: How many of the classes it is trained on.
            selection: A digest of the first n rows of the selection holdout, for every n.
            owner: What its rounds depend on beside their specs, such as a version.
        """
        if not 1 <= generation <= len(self.generations) + 1:
            raise PlanError(
                f"Generation {generation} follows generation {generation - 1}, and "
                f"{self._path.parent} has {len(self.generations)} so far. Train that one first."
            )
        own = {
            "classes": classes,
            "selection_rows": len(selection),
            "selection_digest": selection[-1] if selection else "",
            "owner": owner,
        }
        if generation <= len(self.generations):
            before = self.generations[generation - 1]
            if before["classes"] != classes:
                raise PlanError(
                    f"Generation {generation} of {self._path.parent} was begun with "
                    f"{before['classes']} classes, but has {classes} now."
                )
            self.replaced = before["owner"] != owner
            before["owner"] = owner
        else:
            self.generations.append(own)
        for number, one in enumerate(self.generations[:generation], start=1):
            rows = one["selection_rows"]
            found = selection[rows - 1] if 0 < rows <= len(selection) else ""
            if one["selection_digest"] != found:
                raise PlanError(
                    f"`selection_holdout` must begin with the {rows} rows that it had in "
                    f"generation {number}, in their order: members of all generations are "
                    "compared on rows that none was trained on."
                )

    def write(self) -> None:
        """Replace the file."""
        known = {
            "format": _FORMAT,
            "settings": self._settings,
            "generations": self.generations,
            "classes": list(self.classes),
            "scored": self.scored,
        }
        _files.write_text(self._path, json.dumps(known, indent=1) + "\n")


def stream_of(
    pools: Mapping[str, Pool], generations: Sequence[Mapping[str, Any]], classes: tuple[str, ...]
) -> Stream:
    """The data of a loop as far as a study asks: evaluation sets, and classes by generation.

    The rows that a loop trains on are its own. Two rows stand for each class, one to train and one
    to validate on: all that is asked of them is which classes a generation knows.
    """
    labels = np.repeat(np.arange(len(classes)), 2)
    known = [one["classes"] for one in generations]
    selection = tuple(np.arange(one["selection_rows"]) for one in generations)
    return Stream(
        pool=Pool(
            name="own loop",
            inputs=np.zeros((len(labels), 1)),
            labels=labels,
            classes=classes,
            ids=np.arange(len(labels)),
        ),
        generations=tuple(np.arange(2 * count) for count in known),
        validation=tuple((np.arange(len(classes)) < count).astype(np.intp) for count in known),
        evaluation=pools,
        selection_holdout=selection if SELECTION_SET in pools else (),
    )


class ScoredRounds:
    """The rounds of a run folder, scored again where the evaluation sets are others by now.

    Args:
        folder: Keeps the rounds.
        manifest: Notes what each was scored on.
        digest: A hash of the evaluation sets and classes.
        score: The scores of one stored snapshot on every set.
        key: The key of a round: a study knows no versions, and asks for others.
    """

    def __init__(
        self,
        folder: RunFolder,
        manifest: KeeperManifest,
        *,
        digest: str,
        score: Callable[[bytes], Mapping[str, Scores]],
        key: Callable[[RoundSpec], str],
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._digest = digest
        self._score = score
        self.key_of = key
        self.rescored = 0

    def get(self, _: str, spec: RoundSpec, /) -> Round | None:
        """A round with scores on today's sets; None where it is missing."""
        key = self.key_of(spec)
        done = self._folder.get(key, spec)
        if done is not None and self._manifest.scored.get(key) != self._digest:
            self.rescored += 1
            self.put(key, done)
            done = self._folder.get(key, spec)
        return done

    def put(self, _: str, done: Round, /) -> None:
        """Score the snapshots of a round, and keep it."""
        key = self.key_of(done.spec)
        each = [self._score(learner) for learner in done.weights]
        scores = {name: np.stack([one[name] for one in each]) for name in each[0]}
        self._folder.put(key, dataclasses.replace(done, scores=scores))
        self._manifest.scored[key] = self._digest
        self._manifest.write()
