"""From the words of a study file to its trainer, and from a saved ensemble to what scores inputs.

What a word means is for the backend to say, which `dynsnap.trainers` finds.
"""

from collections.abc import Iterator
from typing import Any

from dynsnap import trainers
from dynsnap._types import AnyArray, MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import Monitor, Trainer, round_key
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.store import RunFolder, SavedEnsemble
from dynsnap.study import StudyPlan
from dynsnap.trainers import Backend, ScoreMembers


def make_trainer(plan: StudyPlan, stream: Stream, *, store: RunFolder, monitor: Monitor) -> Trainer:
    """The trainer that a study file asks for, with its checkpoints in the run folder."""
    backend = trainers.named(trainers.trainer_name(plan.model))
    model, settings = _configured(backend, plan)
    trainer = backend.trainer(
        stream,
        model=model,
        settings=settings,
        monitor=monitor,
        checkpoints=store.checkpoints(lambda spec: round_key(trainer, spec)),
        keep_weights=store.keeps_weights,
        parents=store.learners() if store.keeps_weights else None,
    )
    store.device = getattr(trainer, "hardware", "CPU")
    return trainer


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
            yield f"The rounds are trained by {name!r}, which only the commands that train import."
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
    if plan.starting_from_members and not backend.warm_start:
        raise PlanError(
            f"{plan.starting_from_members[0].name} trains on from stored members, which networks "
            f"can; the models of the trainer {backend.name!r}, such as boosted trees, always start "
            "afresh. Leave `warm_start` and `finetune_epochs` out."
        )
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
    score = backend.scorer(
        ensemble.learners,
        model=backend.restore(_without_trainer(ensemble.model), factory=factory),
        classes=len(ensemble.classes),
        members=len(ensemble.positions),
        settings={"device": device},
        trust=trust,
    )

    def scored(inputs: AnyArray) -> MemberScores:
        scores: MemberScores = score(inputs)[ensemble.positions]
        return scores

    return scored


def _without_trainer(model: Any) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key not in ("trainer", "backend")}
