"""Boosted trees and scikit-learn classifiers, by `dynsnap.boost`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynsnap.data import Stream
from dynsnap.ensemble import Checkpoints, Monitor, Trainer
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.study import TomlTable
from dynsnap.trainers._backend import Backend, ScoreMembers, needed

_BOOSTED = {"xgboost": "xgboost.XGBClassifier", "lightgbm": "lightgbm.LGBMClassifier"}
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

    def takes(self, model: Any) -> bool:
        """Whether this is a classifier that is set up, and not its class."""
        return hasattr(model, "get_params") and not isinstance(model, type)

    def describes(self, model: Mapping[str, Any]) -> bool:
        """Whether the [model] of a study names such a classifier."""
        name = model.get("name")
        return isinstance(name, str) and (name in _BOOSTED or name.startswith("sklearn."))

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

    def configure(
        self, model: Mapping[str, Any], training: Mapping[str, Any], *, importing: bool = True
    ) -> tuple[Any, dict[str, Any]]:
        section = TomlTable(training, "[training]", taken=["epochs"])
        every = section.take("checkpoint_every", float, 60.0)
        section.finish()
        return _classifier(model), {"checkpoint_every": every}

    def allows_nan(self, model: Any) -> bool:
        from sklearn.utils import get_tags

        return bool(get_tags(model).input_tags.allow_nan)


def _classifier(model: Mapping[str, Any]) -> Any:
    settings = dict(model)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise PlanError(
            "[model] must say the `name` of a classifier, such as "
            f'"lightgbm" or "sklearn.linear_model.LogisticRegression", got {name!r}.'
        )
    path, _, attribute = _BOOSTED.get(name, name).rpartition(".")
    if name not in _BOOSTED and path not in _SCIKIT:
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
