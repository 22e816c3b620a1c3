"""From a saved ensemble to what scores inputs."""

from collections.abc import Callable

from dynsnap._types import AnyArray, MemberScores
from dynsnap.cli._models import built_in, is_boosted, needed, own_factory
from dynsnap.errors import FileError, PlanError
from dynsnap.store import SavedEnsemble


def make_scorer(
    ensemble: SavedEnsemble, *, factory: str | None, device: str, trust: bool = False
) -> Callable[[AnyArray], MemberScores]:
    """What scores inputs with the members of a saved ensemble.

    Args:
        ensemble: The ensemble, which may come from a stranger: no name in it is imported. Its model
            is one of those that come with dynsnap, or `factory`.
        factory: The caller's own factory of the model, MODULE:NAME.
        device: Where to compute.
        trust: Whether to open members that cannot be checked before their library reads them.
    """
    if is_boosted(ensemble.model):
        if device not in ("auto", "cpu"):
            raise PlanError(
                f"The members are no torch modules and are scored on the CPU, but --device is "
                f"{device!r}. Leave it out."
            )
        return _of_boosted(ensemble, factory=factory, trust=trust)
    settings = dict(ensemble.model)
    settings.pop("backend", None)
    own, name = settings.pop("factory", None), settings.pop("name", None)
    if factory is not None:
        build = own_factory(factory, settings)
    elif name is not None:
        needed("dynsnap.train", "torch")  # what is not installed is no fault of the file's
        try:
            build = built_in(name, settings)
        except PlanError as error:
            raise FileError(f"The ensemble's model cannot be built: {error}") from error
    else:
        its = f", {own!r}," if own is not None else ""
        raise PlanError(
            f"This ensemble was trained with a model of its maker's own{its} whose code no file "
            "holds. Name its factory with --model MODULE:FACTORY if you trust it."
        )
    predictor = needed("dynsnap.train", "torch").Predictor(
        ensemble.learners,
        model=build,
        device=device,
        members=len(ensemble.positions),
        classes=len(ensemble.classes),
    )

    def scored(inputs: AnyArray) -> MemberScores:
        scores: MemberScores = predictor(inputs)[ensemble.positions]
        return scores

    return scored


def _of_boosted(
    ensemble: SavedEnsemble, *, factory: str | None, trust: bool
) -> Callable[[AnyArray], MemberScores]:
    if factory is not None:
        raise PlanError("The members are no torch modules: leave --model out.")
    if len(ensemble.learners) != len(ensemble.positions):
        raise FileError(
            f"The ensemble has {len(ensemble.positions)} members, but "
            f"{len(ensemble.learners)} learners: it is damaged, or was forged."
        )
    opened = needed("dynsnap.boost", "boost").opened
    score = opened(ensemble.learners, classes=len(ensemble.classes), trust=trust)

    def scored(inputs: AnyArray) -> MemberScores:
        scores: MemberScores = score(inputs)[ensemble.positions]
        return scores

    return scored
