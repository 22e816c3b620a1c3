"""Algorithm 1 around a training loop of the caller's."""

import dataclasses
import hashlib
import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import __version__, _files, study
from dynsnap._types import AnyArray, MemberScores, Scores
from dynsnap.data import SELECTION_SET, Pool, Stream
from dynsnap.ensemble import (
    METHOD_KINDS,
    METHODS,
    ROLLING,
    Beta,
    Combination,
    Method,
    Rolling,
    Round,
    RoundSpec,
    Size,
    method,
    round_key,
)
from dynsnap.errors import FileError, InputError, PlanError, TrainingError
from dynsnap.keeper._ensemble import ScoreSnapshot, SnapshotEnsemble, check_score, saved_as, scored
from dynsnap.keeper._folder import (
    EvaluationSet,
    KeeperManifest,
    ScoredRounds,
    as_set,
    stream_of,
    study_text,
)
from dynsnap.keeper._round import TrainingRound, owner_of, torch_part
from dynsnap.store import RunFolder, environment, save_ensemble
from dynsnap.study import Ensemble, PredictionPaths, RoundManager, StudyPlan

# The folders that loops of this process write to.
_AT_WORK: weakref.WeakValueDictionary[Path, RunFolder] = weakref.WeakValueDictionary()

SUPPORTED = (*(name for name in METHODS if name != "mcdropout"), *ROLLING)


class SnapshotKeeper:
    """Does what an ensemble of snapshots needs around any training loop.

    It gives the learning rate of each epoch, keeps the snapshots that are worth it, decides how
    many rounds to train, scores the snapshots, and writes a run folder that `dynsnap report`,
    `size`, `compare` and `gate` read. A loop that was killed goes on after its last epoch.

    Args:
        folder: The run folder, one for all generations.
        classes: Class names, in the order of the scores. A later generation may have further ones
            behind these.
        score: Scores inputs with the weights of a snapshot: `ModuleScores(build)` for torch
            modules, or a function of weights, inputs and the number of classes.
        test: The inputs that generations are compared on: (inputs, truth), or an `EvaluationSet`.
        selection_holdout: For rolling ensembles only: inputs that no generation trains on, to
            compare members of all generations. Later generations add rows behind these.
        method: "dynsnap-cyc", "dynsnap-step", "snapshot", "extbagging", "singlebase", "rolling"
            or "rolling-bagging".
        generation: Which generation to train, counted from 1.
        epochs: Epochs of one training; the paper's T.
        members: Members of the ensemble, the paper's m, or "auto".
        snapshots: Snapshots of one round; the paper's N.
        beta: How far below its round's best a member may fall, from 0 to 1, or "mean".
        combination: How members are combined.
        rolling: How a rolling ensemble carries members over.
        tolerance: With "auto" members: see `EnsemblePlan`.
        most_rounds: With "auto" members: the most rounds.
        warmup: Epochs at the beginning of a round in which the learning rate grows linearly.
        noise_floor: Whether to train one more round in generation 1, so that the report can say
            how far two trainings on the same data differ.
        seed: The seed of the study; each round has one of its own, `TrainingRound.seed`.
        version: Any text. Change it when the model or the data of this generation change: its
            rounds are trained again. Other generations keep theirs.
        checkpoint_every: Epochs between two checkpoints.
        resamples: How many resamples of the test inputs the intervals come from.

    Example:
        >>> import tempfile
        >>> import torch
        >>> from dynsnap.keeper import ModuleScores
        >>> build = lambda: torch.nn.Linear(1, 2)
        >>> inputs, truth = torch.tensor([[-1.0], [1.0]]), [0, 1]
        >>> keeper = SnapshotKeeper(tempfile.mkdtemp() + "/run", classes=["no", "yes"],
        ...                         score=ModuleScores(build), test=(inputs, truth), epochs=2,
        ...                         snapshots=1, members=1)
        >>> for training in keeper.rounds():
        ...     model = build()
        ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ...     for epoch in training.epochs(model, optimizer):
        ...         torch.nn.functional.cross_entropy(model(inputs), torch.tensor(truth)).backward()
        ...         optimizer.step()
        ...         training.end_epoch(epoch, accuracy=0.5)
        >>> len(keeper.ensemble())
        1
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        classes: Sequence[Any],
        score: ScoreSnapshot,
        test: EvaluationSet | tuple[Any, Any],
        selection_holdout: EvaluationSet | tuple[Any, Any] | None = None,
        method: str = "dynsnap-cyc",
        generation: int = 1,
        epochs: int = 200,
        members: Size = 20,
        snapshots: int = 10,
        beta: Beta = "mean",
        combination: Combination = "average",
        rolling: Rolling | None = None,
        tolerance: float | None = None,
        most_rounds: int | None = None,
        warmup: int = 0,
        noise_floor: bool = False,
        seed: int = 0,
        version: str = "",
        checkpoint_every: int = 1,
        resamples: int = 1000,
    ) -> None:
        names = _class_names(classes)
        check_score(score)
        given: dict[str, Any] = {
            "method": method,
            "epochs": epochs,
            "members": members,
            "snapshots": snapshots,
            "beta": beta,
            "combination": combination,
            "rolling": None if rolling is None else dataclasses.asdict(rolling),
            "tolerance": tolerance,
            "most_rounds": most_rounds,
            "warmup": warmup,
            "seed": seed,
            "resamples": resamples,
        }
        # Numbers of numpy are none to JSON.
        settings = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
        }
        self.folder = Path(folder)
        self.generation = _whole("generation", generation, least=1)
        self.method = _method(settings, rolling)
        _whole("seed", seed, least=0)
        _whole("resamples", resamples, least=1)
        if _whole("warmup", warmup, least=0) > epochs:
            raise PlanError(f"`warmup` must be at most the {epochs} epochs of a round: {warmup}.")
        self.classes = names
        self._score = score
        self._settings = settings
        self._noise_floor = noise_floor
        self._every = _whole("checkpoint_every", checkpoint_every, least=1)
        self._owner = owner_of("own loop", version, settings["warmup"])
        self._scoring_works = False
        self._sets = {"test": as_set(test)}
        if selection_holdout is not None:
            if self.method.rolling is None:
                raise PlanError(
                    "`selection_holdout` is for a rolling method, and would have no effect on "
                    f"{method}. Leave it out."
                )
            self._sets[SELECTION_SET] = as_set(selection_holdout)
        elif self.method.rolling is not None:
            raise PlanError(
                f"{method} compares members of all generations on rows that none was trained on: "
                "hand them in as `selection_holdout`."
            )
        self._store = RunFolder(self.folder, training_epochs=epochs)
        self._manifest = KeeperManifest(self.folder, settings, names)
        width = self._manifest.classes
        self._pools = {name: one.pool(name, width) for name, one in self._sets.items()}
        self._manifest.enter(
            self.generation,
            classes=len(names),
            selection=_prefixes(self._pools.get(SELECTION_SET)),
            owner=self._owner,
        )

    def __repr__(self) -> str:
        return f"<SnapshotKeeper {self.folder}: {self.method.name}, generation {self.generation}>"

    # --- training ---------------------------------------------------------------------------

    def rounds(self) -> Iterator[TrainingRound]:
        """The rounds that the generation still needs, one at a time; then the results are written.

        Pruning decides how many there are. Rounds that lie in the folder are not trained again.
        """
        place = self.folder.resolve()
        if (other := _AT_WORK.get(place)) is not None:
            other.close()  # of a loop in this process that failed, and still is in memory
        _AT_WORK[place] = self._store
        trained = 0
        try:
            self._begin()
            while specs := self._missing():
                for spec in specs:
                    training = self._round(spec)
                    training.settle()
                    if not training.finished:
                        yield training
                    if not training.finished:
                        raise TrainingError(
                            f"{spec} stopped after {training.epochs_done} of "
                            f"{spec.recipe.epochs} epochs. Train and end every epoch: a snapshot "
                            "of each part of the schedule is needed. The next run goes on with it."
                        )
                    trained += 1
            self._publish(trained)
        finally:
            self._store.close()

    def ensemble(self, generation: int | None = None) -> SnapshotEnsemble:
        """The ensemble of a generation; this keeper's by default."""
        number = self.generation if generation is None else generation
        saved = saved_as(
            method=self.method.name,
            combination=self._settings["combination"],
            classes=self._manifest.classes,
            **self._trained(number),
        )
        return SnapshotEnsemble(saved, self._score)

    def _begin(self) -> None:
        text = study_text(self.folder.resolve().name, self.method, self._settings)
        with tempfile.TemporaryDirectory() as aside:  # nothing is begun that commands cannot read
            _files.write_text(Path(aside) / "study.toml", text)
            plan = study.read_study(Path(aside) / "study.toml", stored=True)
        if plan.method(self.method.name).recipe != self.method.recipe:
            raise PlanError(f"{self.method.name} cannot be written as a study.")
        self._store.__enter__()  # takes the lock, and makes the folder
        if self._manifest.replaced:
            # They are of rounds that this version does not use. Before the manifest names the new
            # version: a loop that is killed in between removes them again.
            (self.folder / "table.csv").unlink(missing_ok=True)
            self._store.ensemble_path(self.method.name, self.generation).unlink(missing_ok=True)
        self._manifest.write()  # first: a study without it is taken for one of `dynsnap study`
        _files.write_text(self.folder / "study.toml", text)

    def _missing(self) -> list[RoundSpec]:
        """The rounds of this generation that are certain to be needed and are not stored."""
        _, missing = self._manager.gather(list(self._wanted(self.generation)))
        if older := [spec for spec in missing if spec.generation < self.generation]:
            raise FileError(
                f"{self.folder} lacks {older[0]}, which generation {self.generation} goes on "
                "from. Train that generation first."
            )
        return list(missing)

    def _wanted(self, generation: int) -> Iterable[Ensemble]:
        seed = self._settings["seed"]
        first = 1 if self.method.uses_deployed else generation
        for number in range(first, generation + 1):
            yield Ensemble(method=self.method, generation=number, seed=seed)
        if self._noise_floor and generation == 1:
            yield Ensemble(method=self._plan.baseline, generation=1, seed=seed, twin=1)

    def _round(self, spec: RoundSpec) -> TrainingRound:
        like = next(
            (
                torch_part().weights_of(self._manager.rounds.load(one).weights[0])[0]
                for one in self._manager.rounds.heads
                if one.generation == spec.generation
            ),
            None,
        )
        return TrainingRound(
            spec,
            checkpoints=self._store.checkpoints(lambda one: round_key(self._trainer, one)),
            checkpoint_every=self._every,
            owner=self._owner,
            warmup=self._settings["warmup"],
            finish=self._finish,
            try_scoring=None if self._scoring_works else self._try_scoring,
            parent=None if spec.parent is None else self._store.learners()(spec.parent),
            like=like,
        )

    def _finish(self, done: Round, kept: Mapping[int, Any]) -> None:
        """Store a round whose last epoch is done."""
        learners = tuple(self._learner(kept[epoch]) for epoch in done.epochs.tolist())
        self._manager.rounds.add(dataclasses.replace(done, weights=learners))

    def _learner(self, weights: Any) -> bytes:
        describe = getattr(self._score, "inputs_of", None)
        inputs = None if describe is None else describe(self._sets["test"].inputs)
        found: bytes = torch_part().learner_of(weights, classes=len(self.classes), inputs=inputs)
        return found

    def _try_scoring(self, weights: Any) -> None:
        """Score the first snapshot at once: a mistake would else show when a round is trained."""
        with torch_part().same_random_numbers():
            inputs, width = self._sets["test"].inputs, len(self.classes)
            scored(self._score, self._learner(weights), inputs, width=width)
        self._scoring_works = True

    # --- the run folder ---------------------------------------------------------------------

    @cached_property
    def _plan(self) -> StudyPlan:
        """The study that commands read, with a single network of the same rounds as baseline."""
        return study.read_study(self.folder / "study.toml", stored=True)

    @cached_property
    def _stream(self) -> Stream:
        return stream_of(self._pools, self._manifest.generations, self._manifest.classes)

    @cached_property
    def _trainer(self) -> "_OwnLoop":
        return _OwnLoop(self._owner)

    @cached_property
    def _rounds(self) -> ScoredRounds:
        digests = [
            one.digest(self._pools[name].labels, self._pools[name].ids)
            for name, one in sorted(self._sets.items())
        ]
        whole = hashlib.sha256(repr((digests, self._manifest.classes)).encode()).hexdigest()

        def score(learner: bytes) -> dict[str, Scores]:
            width = len(self._manifest.classes)
            return {
                name: scored(self._score, learner, one.inputs, width=width)
                for name, one in self._sets.items()
            }

        return ScoredRounds(self._store, self._manifest, digest=whole, score=score, key=self._key)

    def _key(self, spec: RoundSpec) -> str:
        """The key of a round, by the version that its generation was trained with."""
        return round_key(_OwnLoop(self._manifest.owner_of(spec.generation)), spec)

    @cached_property
    def _manager(self) -> RoundManager:
        return RoundManager(self._trainer, self._rounds, stream=self._stream)

    def _trained(self, generation: int) -> dict[str, Any]:
        """The members of a generation that has all its rounds."""
        if not 1 <= generation <= len(self._manifest.generations):
            raise PlanError(f"{self.folder} has no generation {generation}.")
        if not (self.folder / "study.toml").exists() or self._lacks(generation):
            raise PlanError(
                f"Generation {generation} in {self.folder} lacks rounds: go through "
                "`keeper.rounds()` to its end first."
            )
        (made,) = study.train_ensembles(
            self._plan,
            self.method,
            (generation,),
            stream=self._stream,
            trainer=self._trainer,
            store=self._rounds,
        )
        return {
            "generation": generation,
            "accuracy": made.accuracy,
            "learners": made.learners,
            "positions": made.positions,
            "known": made.known,
            "about": {
                "study": self._plan.name,
                "dynsnap": __version__,
                "cost": made.price.kappa,
                "seconds": made.price.seconds,
            },
        }

    def _lacks(self, generation: int) -> bool:
        asked = [one for one in self._wanted(generation) if not one.twin]
        return bool(self._manager.gather(asked)[1])

    def _publish(self, trained: int) -> None:
        """Write predictions, tables and the ensemble, as a study does."""
        path = self._store.ensemble_path(self.method.name, self.generation)
        table = self.folder / "table.csv"
        done = [n for n in range(1, len(self._manifest.generations) + 1) if not self._lacks(n)]
        up_to_date = path.exists() and (table.exists() or len(done) < 2)
        if up_to_date and not trained and not self._rounds.rescored:
            return
        save_ensemble(path, self.ensemble()._saved)
        seconds = sum(head.seconds for head in self._manager.rounds.heads.values())
        about: dict[str, Any] = {
            "study": self._plan.name,
            "dynsnap": __version__,
            "environment": environment("own loop"),
            "test_inputs": len(self._pools["test"]),
            "replicates": 1,
            "rounds": len(self._manager.rounds.heads),
            "rounds_missing": 0,
            "rounds_trained_last": trained,
            "training_seconds": seconds,
        }
        if len(done) == len(self._manifest.generations) > 1:
            result = study.run(
                self._plan,
                stream=self._stream,
                trainer=self._trainer,
                store=self._rounds,
                folder=self.folder,
                training=False,
            )
            about |= {"rounds": result.rounds, "training_seconds": result.seconds}
        else:  # one generation has nothing to be compared with: predictions only
            series = study.series_of(self._plan, len(self._manifest.generations))
            asked = list(dict.fromkeys(each for one in series for each in one.ensembles))
            complete, _ = self._manager.gather(asked)
            paths = PredictionPaths(self.folder / "predictions", 1)
            list(study.write_predictions(series, complete, self._stream, paths))
        _files.write_text(self.folder / "about.json", json.dumps(about, indent=1) + "\n")


class _OwnLoop:
    """Stands for the caller's loop where rounds are looked up: it names them, and trains none."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def train(self, specs: Sequence[RoundSpec], /) -> Iterable[Round]:
        raise FileError(f"{specs[0]} was removed while the results were written. Train it again.")

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        raise AssertionError("snapshots are scored by the caller's `score`")


def _method(settings: Mapping[str, Any], rolling: Rolling | None) -> Method:
    name = settings["method"]
    kind = METHOD_KINDS.find(name)
    if rolling is not None and not kind.rolling:
        raise PlanError(f"`rolling` is for a rolling method, and would have no effect on {name}.")
    made = method(
        name,
        epochs=settings["epochs"],
        members=settings["members"],
        snapshots=settings["snapshots"],
        beta=settings["beta"],
        rolling=rolling,
        tolerance=settings["tolerance"],
        most_rounds=settings["most_rounds"],
    )
    recipe = made.recipe
    if made.retraining is not None or recipe.passes > 1 or not recipe.plain:
        raise PlanError(
            f"{name} changes what a loop does within an epoch, which a loop of your own has to do "
            f"itself. The keeper takes {', '.join(SUPPORTED)}."
        )
    return dataclasses.replace(made, combinations=(settings["combination"],))


def _class_names(classes: Any) -> tuple[str, ...]:
    try:
        # The items of an array or a tensor are no names yet.
        given = classes.tolist() if hasattr(classes, "tolist") else list(classes)
        names = tuple(str(name) for name in given)
    except TypeError:
        raise InputError(
            f"`classes` must name the classes, as in `range(10)`, got {classes!r}."
        ) from None
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"`classes` must name two classes or more, each once, got {names}.")
    return names


def _whole(name: str, value: Any, *, least: int) -> int:
    number = value.item() if isinstance(value, np.integer) else value
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise PlanError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
    return number


def _prefixes(pool: Pool | None) -> list[str]:
    """A digest of the first n rows of a set, for every n from 1."""
    found: list[str] = []
    digest = hashlib.sha256()
    rows = () if pool is None else zip(pool.ids.tolist(), pool.labels.tolist(), strict=True)
    for name, label in rows:
        digest.update(f"{name!r}:{label};".encode())
        found.append(digest.copy().hexdigest())
    return found
