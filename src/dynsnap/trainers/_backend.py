"""What a family of models must provide so that dynsnap can train it, store it and score with it."""

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dynsnap._types import MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import SELECTION_METRICS, Checkpoints, Method, Monitor, Trainer
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.study import TomlTable

ScoreMembers: TypeAlias = Callable[[Any], MemberScores]  # of an array or a `Frame`

# The parameters of `DynSnapClassifier` that are about training and not about the method.
SETTINGS = (
    "batch_size",
    "learning_rate",
    "optimizer",
    "loss",
    "augment",
    "prepare",
    "device",
    "precision",
    "warmup",
    "class_weight",
    "selection_metric",
)


class Backend(ABC):
    """A family of models: how a trainer for one is made, and how its stored learners are opened.

    An adapter subclasses this, sets `name`, and implements `trainer` and `scorer`. The estimator
    and the commands ask nothing else of it.

    Attributes:
        name: What callers write, as in `DynSnapClassifier(trainer="toy")`.
        settings: Those of `SETTINGS` that have an effect; the estimator refuses the others.
        warm_start: Whether a round can start from a stored learner, which `parents` finds.
        frames: Whether models can take a `dynsnap.data.Frame` with categories or texts.
        items: Whether models can take dicts of arrays and rows of a `Dataset`.
        codistill: Whether a round can train two networks that learn from one another.
        averages: Whether a round can average weights and smooth labels, as its recipe states.
    """

    name: ClassVar[str]
    settings: ClassVar[frozenset[str]] = frozenset()
    warm_start: ClassVar[bool] = False
    frames: ClassVar[bool] = False
    items: ClassVar[bool] = False
    codistill: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    @abstractmethod
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
        """A trainer, as `dynsnap.testing.check_trainer` checks it.

        Args:
            stream: The growing data.
            model: The `model` of an estimator, or what `configure` made of a study file.
            settings: Settings by name: those of an estimator, or what `configure` made.
            monitor: Receives the progress of every epoch, and may stop the training.
            checkpoints: Keeps unfinished rounds.
            keep_weights: Whether rounds carry their learners.
            parents: Finds a stored learner by its key, for a round that starts from one.
        """

    @abstractmethod
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
        """Stored learners, opened once to score many inputs.

        The learners may come from a stranger: they choose nothing that is imported, and are
        checked before they are used.

        Args:
            learners: The learners, as `trainer` stored them.
            model: The `model` of an estimator, or what `restore` made of a saved ensemble.
            classes: The number of columns.
            members: The number of members that the learners give; more than one each with dropout.
            settings: Settings of an estimator by name, "device" among them.
            trust: Whether to open learners that cannot be checked.
        """

    def configure(
        self, model: Mapping[str, Any], training: Mapping[str, Any], *, importing: bool = True
    ) -> tuple[Any, dict[str, Any]]:
        """The model and the settings that a study file describes; refuses what it does not know.

        Args:
            model: The table [model], without `trainer`.
            training: The table [training], without `epochs`.
            importing: Whether code that the study names may be imported. A command that only looks
                at a study does not import it, and the model may then be None.
        """
        TomlTable(training, "[training]", taken=["epochs"]).finish()
        return dict(model), {}

    def restore(self, model: Mapping[str, Any], *, factory: str | None) -> Any:
        """The model that `scorer` needs, from a saved ensemble. No name in it may be imported.

        Args:
            model: What the ensemble file states of its model; it may come from a stranger.
            factory: The caller's own factory, MODULE:NAME, which may be imported.
        """
        if factory is not None:
            raise PlanError(
                f"--model names a torch module, and the members were trained by {self.name}: leave "
                "--model out."
            )
        return dict(model)

    def widened(self, learner: bytes, *, model: Any, classes: int, places: Sequence[int]) -> bytes:
        """A stored learner with room for classes that are new, for a round that starts from it.

        Needed where `warm_start` is true.

        Args:
            learner: The learner, which may come from a stranger.
            model: The `model` of an estimator.
            classes: How many classes there are by now.
            places: Where each class that it knows is among them.
        """
        raise PlanError(
            f"The trainer {self.name!r} cannot start from a learner that knows fewer classes. "
            "Start anew with `fit`."
        )

    def check_method(self, model: Any, method: Method) -> None:
        """Raise PlanError where models cannot be trained as a method asks.

        Args:
            model: The `model` of an estimator, or what `configure` made of a study file.
            method: The method, which may start from members of the generation before, or train two
                networks together.
        """
        if method.recipe.codistill and not self.codistill:
            raise PlanError(
                f"{method.name} trains two networks that learn from one another, which models of "
                f"the trainer {self.name!r} cannot. It is for torch modules. Use another method, "
                "such as singlebase."
            )
        if (method.recipe.average or method.recipe.smoothing) and not self.averages:
            raise PlanError(
                f"{method.name} averages weights or smooths labels (`average`, `smoothing`), which "
                f"models of the trainer {self.name!r} cannot. They are for torch modules. Use "
                "another method, such as singlebase."
            )
        how = method.retraining
        taught = how is not None and bool(how.teacher)
        if (method.starts_from_members or taught) and not self.warm_start:
            raise PlanError(
                f"{method.name} starts from the deployed model or learns from it, which models of "
                f"the trainer {self.name!r} cannot. Use another method, such as singlebase."
            )

    def check_weights(self, model: Any) -> None:
        """Raise PlanError unless rounds honour the weights of rows, `Pool.weights`.

        Args:
            model: The `model` of an estimator.
        """
        raise PlanError(
            f"The trainer {self.name!r} takes no weights of rows: leave `sample_weight` out."
        )

    def allows_nan(self, model: Any) -> bool:
        """Whether a model can handle missing values."""
        return False

    def looks_at_names(self, model: Any) -> bool:
        """Whether a model looks at the names of columns, so that a frame must stay one."""
        return False

    def categorical(self, model: Any, names: Sequence[str]) -> Sequence[int]:
        """The columns that a model's own parameters call categories, by position."""
        return ()


def of_each(section: TomlTable) -> dict[str, Any]:
    """The settings of [training] that trainers of all models of dynsnap take."""
    found: dict[str, Any] = {}
    metric = section.take("selection_metric", str, "accuracy")
    if metric != "accuracy":
        if metric not in SELECTION_METRICS:
            raise PlanError(
                f"{section.where}: there is no selection metric {metric!r}. "
                f"{did_you_mean(metric, SELECTION_METRICS)}"
            )
        found["selection_metric"] = metric
    weights = section.take_any("class_weight")
    if weights is not None:
        if weights != "balanced" and not isinstance(weights, dict):
            raise PlanError(
                f'{section.where}: `class_weight` must be "balanced", or a table with a weight for '
                f"each class, got {weights!r}."
            )
        found["class_weight"] = weights
    return found


def score_by_classes(
    learners: Sequence[bytes],
    learned: Sequence[Sequence[int]],
    classes: int,
    opened: Callable[[Sequence[bytes], int], ScoreMembers],
) -> ScoreMembers:
    """What scores inputs with learners of several generations, which know different classes.

    Args:
        learners: The learners.
        learned: Of each, the classes that it knows: the positions of its scores among all. Empty
            where all know all.
        classes: The number of columns.
        opened: Opens learners that know so many classes.
    """
    if not learned:
        return opened(learners, classes)
    # Learners of one generation have the same classes, and are opened together.
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, columns in enumerate(learned):
        groups.setdefault(tuple(columns), []).append(place)
    parts = [
        (places, columns, opened([learners[place] for place in places], len(columns)))
        for columns, places in groups.items()
    ]

    def score(inputs: Any) -> MemberScores:
        scores = np.zeros((len(learners), len(inputs), classes), np.float32)
        for places, columns, score_part in parts:
            scores[np.ix_(places, range(len(inputs)), columns)] = score_part(inputs)
        return scores

    return score


def check_reference(text: Any) -> tuple[str, str]:
    """The module and the name that a reference has, MODULE:NAME."""
    module, _, name = str(text).partition(":")
    if not (isinstance(text, str) and module and name):
        raise PlanError(f"A model factory is named as MODULE:NAME, got {text!r}.")
    return module, name


def imported(reference: Any) -> Callable[..., Any]:
    """A function of the user's own, `package.module:name`, found as Python would find it.

    This imports, and so runs, what the reference names: it must come from the user.
    """
    module, name = check_reference(reference)
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it, and a console script has not
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PlanError(f"The model factory {reference!r} cannot be imported: {error}.") from error
    if not callable(found):
        raise PlanError(f"The model factory {reference!r} is not a function.")
    made: Callable[..., Any] = found
    return made


class NotInstalledError(PlanError):
    """A library is missing."""


def needed(module: str, extra: str) -> Any:
    """A module of dynsnap, or of a library that is an extra of it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotInstalledError(
            f"This needs {error.name or module}, which is not installed. "
            f"Install it with: pip install 'dynsnap[{extra}]'"
        ) from error
