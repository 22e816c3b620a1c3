"""From the words of a study file to its trainer, and from a saved ensemble to what scores inputs.

What a word means is for the backend to say, which `dynsnap.trainers` finds.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import predictions, trainers
from dynsnap._types import AnyArray, MemberScores, Scores
from dynsnap._untrusted import regular
from dynsnap.data import Stream
from dynsnap.ensemble import (
    GIVEN,
    Combination,
    Monitor,
    TeacherScores,
    Trainer,
    combine,
    round_key,
)
from dynsnap.errors import FileError, InputError, PlanError, did_you_mean
from dynsnap.predictions import Predictions
from dynsnap.store import RunFolder, SavedEnsemble, load_ensemble
from dynsnap.study import StudyPlan
from dynsnap.trainers import Backend, ScoreMembers

_AT_ONCE = 8192  # inputs; all members' scores of so many are in memory together
_SCORES_AT_ONCE = 1 << 25  # but no more scores than so many
_UNIT = 512  # inputs that are scored together: other cuts could show in the last bits


def make_trainer(plan: StudyPlan, stream: Stream, *, store: RunFolder, monitor: Monitor) -> Trainer:
    """The trainer that a study file asks for, with its checkpoints in the run folder."""
    backend = trainers.named(trainers.trainer_name(plan.model))
    model, settings = _configured(backend, plan)
    stored = store.learners() if store.keeps_weights else None
    given = {key: _teacher(key, path, stream) for key, path in plan.teachers.items()}
    trainer = backend.trainer(
        stream,
        model=model,
        settings=settings,
        monitor=monitor,
        checkpoints=store.checkpoints(lambda spec: round_key(trainer, spec)),
        keep_weights=store.keeps_weights,
        parents=_WithTeachers(stored, given) if given else stored,
    )
    store.device = getattr(trainer, "hardware", "CPU")
    return trainer


@dataclass(frozen=True, slots=True)
class _WithTeachers:
    """Finds stored learners, and the scores of teachers that a study names by digests."""

    stored: Callable[[str], bytes] | None
    given: Mapping[str, bytes]

    def __call__(self, key: str) -> bytes:
        if (found := self.given.get(key)) is not None:
            return found
        if self.stored is None:
            raise FileError(f"There is no stored learner {key}: this run keeps no weights.")
        return self.stored(key)


def _teacher(key: str, path: Path, stream: Stream) -> bytes:
    """The scores of a teacher for the rows of a pool: of a saved ensemble, or from its predictions.

    The file must have the digest that the study names it by, so it is the file that was meant.
    """
    pool = stream.pool
    with _meant(key, path) as copy:
        if path.suffix == ".ensemble":
            ensemble = load_ensemble(copy)
            scorer = make_scorer(ensemble, trainer=None, factory=None, device="cpu")
            try:
                scores = combined_scores(ensemble, scorer, pool.inputs)
            except InputError as error:
                raise InputError(
                    f"{path} was trained on other inputs than these: {error}"
                ) from error
            said = Predictions(ids=pool.ids, classes=ensemble.classes, scores=scores)
        else:
            said = predictions.read(copy)
    given = TeacherScores.of(
        said, name=str(path), ids=pool.ids, classes=pool.classes, labels=pool.labels
    )
    for rows in stream.generations[1:]:
        given.check(rows, pool.labels)
    return given.to_bytes()


@contextlib.contextmanager
def _meant(key: str, path: Path) -> Iterator[Path]:
    """A copy, of this process alone, of the file of a teacher, if it has the digest of the study.

    The file is read once: what was digested is what is parsed, whoever writes it meanwhile.
    """
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise FileError(f"The teacher {path} cannot be read: {error.strerror}.") from error
    digest = hashlib.sha256(content).hexdigest()
    if key != GIVEN + digest:
        raise FileError(
            f"The teacher {path} has another digest than the study names. Found {digest}: if this "
            "is the file that you mean, write it as `teacher_sha256`."
        )
    with tempfile.TemporaryDirectory(prefix="dynsnap-") as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(content)
        del content
        try:
            yield copy
        except FileError as error:  # about the user's file, not about the copy
            raise FileError(str(error).replace(str(copy), str(path))) from error


def combined_scores(
    ensemble: SavedEnsemble,
    score: ScoreMembers,
    inputs: AnyArray,
    how: Combination | None = None,
) -> Scores:
    """Scores of a saved ensemble, combined as it stores unless `how` says otherwise."""
    step = _inputs_at_once(len(ensemble.positions) * len(ensemble.classes))
    return np.concatenate(
        [
            combine(
                score(inputs[start : start + step]),
                how=how or ensemble.combination,
                weights=ensemble.accuracy,
                known=ensemble.votes,
            ).astype(np.float32)
            for start in range(0, len(inputs), step)
        ]
    )


def _inputs_at_once(scores: int) -> int:
    """How many inputs are scored together, of which each takes so many scores."""
    most = max(1, _SCORES_AT_ONCE // scores)
    return min(_AT_ONCE, most - most % _UNIT or most)


def check_model(plan: StudyPlan) -> Iterator[str]:
    """Refuse a model and settings that do not exist; say what is not installed.

    What a setting may be is for the trainer to say, which knows the data. Code that the study
    names, a factory or a trainer of another package, is not imported: who looks at a plan has not
    decided to run it.
    """
    name = trainers.trainer_name(plan.model)
    if name not in trainers.BACKENDS.own:
        if name not in trainers.names():
            hint = did_you_mean(name, trainers.names())
            yield f"The model cannot be made yet: there is no trainer {name!r}. {hint}"
        else:
            yield (
                f"The rounds are trained by {name!r}, which only the commands that train import: "
                "[model] and [training] are not checked yet."
            )
        return
    try:
        _configured(trainers.named(name), plan, importing=False)
    except trainers.NotInstalledError as error:
        yield f"The model cannot be made yet: {error}"
    if (own := plan.model.get("factory")) is not None:
        yield f"The model is built by your code, {own!r}, which only `dynsnap run` imports."


def _configured(
    backend: Backend, plan: StudyPlan, *, importing: bool = True
) -> tuple[Any, dict[str, Any]]:
    found = backend.configure(_without_trainer(plan.model), plan.training, importing=importing)
    points = [one for sweep in plan.sweeps for _, one in sweep.points]
    for method in (*plan.methods, *points):
        backend.check_method(found[0], method)
    return found


def make_scorer(
    ensemble: SavedEnsemble,
    *,
    trainer: str | None,
    factory: str | None,
    device: str,
    trust: bool = False,
) -> ScoreMembers:
    """What scores inputs with the members of a saved ensemble.

    Args:
        ensemble: The ensemble, which may come from a stranger: no name in it is imported. Its model
            is one of those that come with dynsnap, or `factory`.
        trainer: The trainer that the caller names, for an ensemble of one that is not dynsnap's.
        factory: The caller's own factory of the model, MODULE:NAME.
        device: Where to compute.
        trust: Whether to open members that cannot be checked before their library reads them.
    """
    name = trainers.trainer_name(ensemble.model)
    backend = trainers.saved_by(name, asked=trainer, option="--trainer NAME")
    if "device" not in backend.settings and device not in ("auto", "cpu"):
        raise PlanError(
            f"The members were trained by {backend.name!r} and are scored on the CPU, but --device "
            f"is {device!r}. Leave it out."
        )
    model = restored_model(ensemble, backend, factory)
    passes = 1 if ensemble.learned else len(ensemble.positions) / len(ensemble.learners)
    score = trainers.score_by_classes(
        ensemble.learners,
        ensemble.learned,
        len(ensemble.classes),
        lambda learners, classes: backend.scorer(
            learners,
            model=model,
            classes=classes,
            members=round(passes * len(learners)),
            settings={"device": device},
            trust=trust,
        ),
    )

    def scored(inputs: AnyArray) -> MemberScores:
        scores: MemberScores = score(inputs)[ensemble.positions]
        return scores

    return scored


def restored_model(ensemble: SavedEnsemble, backend: Backend, factory: str | None) -> Any:
    """The model of a saved ensemble: one that comes with dynsnap, or the caller's own."""
    return backend.restore(_without_trainer(ensemble.model), factory=factory)


def _without_trainer(model: Any) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key not in ("trainer", "backend")}
