"""Who trains and who scores, by the kind of model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from dynsnap._types import AnyArray, MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import ROLLING, Trainer
from dynsnap.errors import FileError, InputError, PlanError

Backend: TypeAlias = Literal["torch", "boost"]
ScoreMembers: TypeAlias = Callable[[AnyArray], MemberScores]

# Settings of the estimator that only torch modules have a use for.
TORCH_SETTINGS = (
    "batch_size",
    "learning_rate",
    "optimizer",
    "loss",
    "augment",
    "prepare",
    "device",
    "precision",
)

# Settings that only some methods have a use for, by those methods.
_OF_METHODS = {
    "dropout": ("mcdropout",),
    "carry": ROLLING,
    "lag": ROLLING,
    "untouched": ROLLING,
    "beta": ("dynsnap-cyc", "dynsnap-step", "rolling"),
}


def check_settings(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise PlanError for a setting away from its usual value that would have no effect.

    `members`, `snapshots` and `epochs` are read by every method in its own way.
    """
    model = settings["model"]
    if backend_of(model) == "boost":
        refuse_torch_settings(settings, usual, type(model).__name__)
    for name, methods in _OF_METHODS.items():
        if settings["method"] not in methods and _differs(settings[name], usual[name]):
            raise PlanError(
                f"`{name}={settings[name]!r}` is for {', '.join(methods)}, and would have no "
                f"effect on {settings['method']}. Leave it out."
            )


def refuse_torch_settings(given: Mapping[str, Any], usual: Mapping[str, Any], model: str) -> None:
    """Raise PlanError if one of torch's settings is given for another kind of model."""
    for name in TORCH_SETTINGS:
        if name in given and _differs(given[name], usual[name]):
            raise PlanError(
                f"`{name}={given[name]!r}` is for torch modules, and would have no effect on "
                f"{model}, which has parameters of its own. Leave it out."
            )


def _differs(value: Any, usual: Any) -> bool:
    if value is usual:
        return False
    try:
        return bool(value != usual)
    except (TypeError, ValueError):  # of what cannot be compared, as an array cannot
        return True


def backend_of(model: Any) -> Backend:
    """Which library a model belongs to: a classifier that is set up, or a module factory."""
    if hasattr(model, "get_params") and not isinstance(model, type):
        return "boost"
    if not callable(model):
        raise PlanError(
            "`model` must be a function that builds a torch module, or a scikit-learn, XGBoost or "
            f"LightGBM classifier that is set up but not fitted, got {type(model).__name__}."
        )
    return "torch"


def allows_nan(model: Any) -> bool:
    """Whether a model has a way with missing values."""
    if not hasattr(model, "get_params") or isinstance(model, type):
        return False
    from sklearn.utils import get_tags

    return bool(get_tags(model).input_tags.allow_nan)


def trainer(model: Any, stream: Stream, *, monitor: Any, settings: Mapping[str, Any]) -> Trainer:
    """The trainer for a model; `settings` are those of torch, by name."""
    if backend_of(model) == "boost":
        from dynsnap.boost import BoostTrainer

        return BoostTrainer(stream, model=model, monitor=monitor)
    try:
        from dynsnap.train import TorchTrainer
    except ImportError as error:
        raise PlanError("Training a module needs torch. Install dynsnap[torch].") from error
    given = {name: value for name, value in settings.items() if value is not None}
    return TorchTrainer(stream, model=model, monitor=monitor, **given)


def scoring(
    weights: Sequence[bytes],
    *,
    backend: Backend,
    model: Any,
    classes: int,
    settings: Mapping[str, Any],
    passes: int,
    trust: bool,
) -> ScoreMembers:
    """Stored learners, ready to score inputs.

    Args:
        weights: The learners.
        backend: Whose they are.
        model: The factory of their module.
        classes: How many classes they know.
        settings: Those of torch, by name.
        passes: Members that each of them gives.
        trust: Whether to open learners that cannot be checked before their library reads them.
    """
    if backend == "boost":
        from dynsnap.boost import opened

        if passes != 1:
            raise FileError(f"A classifier that is no module gives 1 member, not {passes}.")
        return opened(weights, classes=classes, trust=trust)
    if model is None or backend_of(model) != "torch":
        raise InputError(
            "The members are torch modules, whose code no file holds: pass the function that "
            "builds them, as in `DynSnapClassifier.load(path, model=...)`."
        )
    from dynsnap.train import Predictor

    own = settings["prepare"]
    return Predictor(
        weights,
        model=model,
        prepare=None if own is None or isinstance(own, str) else own,
        device=settings["device"],
        members=len(weights) * passes,
        classes=classes,
    )
