"""Boosted trees and scikit-learn classifiers, by `dynsnap.boost`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynsnap.data import Stream
from dynsnap.ensemble import Checkpoints, Method, Monitor, Trainer
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.study import TomlTable
from dynsnap.trainers._backend import (
    Backend,
    ScoreMembers,
    check_reference,
    imported,
    needed,
    of_each,
)

BOOSTED = {"xgboost": "xgboost.XGBClassifier", "lightgbm": "lightgbm.LGBMClassifier"}
# The modules of scikit-learn that a model may be named in. Nothing else is imported by its name,
# but for a `factory` of the user's own, by the commands that train.
_SCIKIT = tuple(
    f"sklearn.{module}"
    for module in (
        "calibration",
        "discriminant_analysis",
        "dummy",
        "ensemble",
        "gaussian_process",
        "linear_model",
        "multiclass",
        "naive_bayes",
        "neighbors",
        "neural_network",
        "semi_supervised",
        "svm",
        "tree",
    )
)


class BoostBackend(Backend):
    """Classifiers of XGBoost, LightGBM and scikit-learn."""

    name = "boost"
    settings = frozenset({"class_weight", "selection_metric"})
    warm_start = True
    frames = True

    def takes(self, model: Any) -> bool:
        """Whether this is a classifier that is set up, and not its class."""
        return hasattr(model, "get_params") and not isinstance(model, type)

    def describes(self, model: Mapping[str, Any]) -> bool:
        """Whether the [model] of a study names such a classifier."""
        name = model.get("name")
        return isinstance(name, str) and (name in BOOSTED or name.startswith("sklearn."))

    def trainer(
        self,
        stream: Stream,
        *,
        model: Any,
        settings: Mapping[str, Any],
        monitor: Monitor | None = None,
        checkpoints: Checkpoints | None = None,
        keep_weights: bool = True,
        parents: Callable[[str], bytes] | None = None,
    ) -> Trainer:
        from dynsnap.boost import BoostTrainer

        return BoostTrainer(
            stream,
            model=model,
            monitor=monitor,
            checkpoints=checkpoints,
            keep_weights=keep_weights,
            parents=parents,
            **settings,
        )

    def scorer(
        self,
        learners: Sequence[bytes],
        *,
        model: Any,
        classes: int,
        members: int,
        settings: Mapping[str, Any],
        trust: bool,
    ) -> ScoreMembers:
        if members != len(learners):
            raise FileError(
                f"The ensemble has {members} members, but {len(learners)} learners, and a "
                "classifier that is no module gives 1 member: it is damaged, or was forged."
            )
        score: ScoreMembers = needed("dynsnap.boost", "boost").opened(
            learners, classes=classes, trust=trust
        )
        return score

    def check_weights(self, model: Any) -> None:
        """The trainer checks whether the model takes them."""

    def configure(
        self, model: Mapping[str, Any], training: Mapping[str, Any], *, importing: bool = True
    ) -> tuple[Any, dict[str, Any]]:
        section = TomlTable(training, "[training]", taken=["epochs"])
        every = section.take("checkpoint_every", float, 60.0)
        how = {"checkpoint_every": every, **of_each(section)}
        section.finish()
        if (own := model.get("factory")) is None:
            return _classifier(model), how
        settings = {name: value for name, value in model.items() if name != "factory"}
        if "name" in settings:
            raise PlanError("[model] must say the `name` of a model, or a `factory` of your own.")
        check_reference(own)
        made = _built(own, settings) if importing else None
        return made, how

    def widened(self, learner: bytes, *, model: Any, classes: int, places: Sequence[int]) -> bytes:
        # The round that starts from it adds trees for new classes: it knows how frequent they are.
        made: bytes = needed("dynsnap.boost", "boost").widened(learner, places=places)
        return made

    def check_method(self, model: Any, method: Method) -> None:
        super().check_method(model, method)
        if method.rolling is not None and method.rolling.trains_on:
            raise PlanError(
                f"{method.name} trains on from the members that it carries over, which networks "
                f"can; members of {type(model).__name__} always start afresh. Leave it out, or its "
                "`warm_start` and `finetune_epochs`. One model can go on from the deployed one: "
                "see `single`."
            )
        how = method.retraining
        if how is not None and (how.uses_deployed or how.teacher):
            needed("dynsnap.boost", "boost").check_retraining(model, how)

    def looks_at_names(self, model: Any) -> bool:
        looks: bool = needed("dynsnap.boost", "boost").looks_at_names(model)
        return looks

    def categorical(self, model: Any, names: Sequence[str]) -> Sequence[int]:
        found = needed("dynsnap.boost", "boost").categorical_columns(model, names)
        return () if found is None else tuple(found)

    def allows_nan(self, model: Any) -> bool:
        from sklearn.utils import get_tags

        return bool(get_tags(model).input_tags.allow_nan)


def _built(reference: str, settings: Mapping[str, Any]) -> Any:
    """The classifier that a function of the user's own builds, such as a Pipeline."""
    try:
        made = imported(reference)(**settings)
    except TypeError as error:
        raise PlanError(f"[model]: {reference!r} cannot be called: {error}.") from error
    if isinstance(made, type) or not hasattr(made, "get_params"):
        raise PlanError(
            f"[model]: {reference!r} must build a classifier, as scikit-learn has them, but gave "
            f"{type(made).__name__}."
        )
    return made


def _classifier(model: Mapping[str, Any]) -> Any:
    settings = dict(model)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise PlanError(
            "[model] must say the `name` of a classifier, such as "
            f'"lightgbm" or "sklearn.linear_model.LogisticRegression", got {name!r}.'
        )
    path, _, attribute = BOOSTED.get(name, name).rpartition(".")
    if name not in BOOSTED and path not in _SCIKIT:
        raise PlanError(
            f"[model]: {name!r} is not in a module of scikit-learn that has classifiers. "
            f"{did_you_mean(path, _SCIKIT)}"
        )
    kind = getattr(needed(path, "boost"), attribute, None)
    if not isinstance(kind, type) or not hasattr(kind, "predict_proba"):
        raise PlanError(f"[model]: {name!r} is not a classifier that gives probabilities.")
    known = _parameters(kind)
    for setting in settings:
        # XGBoost and LightGBM take anything, and train without what they do not know.
        if setting not in known:
            raise PlanError(
                f"[model]: {name} has no setting `{setting}`. {did_you_mean(setting, known)}"
            )
    try:
        return kind(**settings)
    except TypeError as error:
        raise PlanError(f"[model]: {name} cannot be set up: {error}.") from error


def _parameters(kind: type) -> set[str]:
    """The keywords that a classifier and its base classes name."""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {
        name
        for parent in kind.__mro__
        if parent is not object
        for name, parameter in inspect.signature(parent).parameters.items()
        if parameter.kind in named
    }
