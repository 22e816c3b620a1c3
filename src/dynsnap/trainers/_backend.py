"""What a family of models must provide so that dynsnap can train it, store it and score with it."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from dynsnap._types import AnyArray, MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import Checkpoints, Monitor, Trainer
from dynsnap.errors import PlanError
from dynsnap.study import TomlTable

ScoreMembers: TypeAlias = Callable[[AnyArray], MemberScores]

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
)


class Backend(ABC):
    """A family of models: how a trainer for one is made, and how its stored learners are opened.

    An adapter subclasses this, sets `name`, and implements `trainer` and `scorer`. The estimator
    and the commands ask nothing else of it.

    Attributes:
        name: What callers write, as in `DynSnapClassifier(trainer="toy")`.
        settings: Those of `SETTINGS` that have an effect; the estimator refuses the others.
        warm_start: Whether a round can start from a stored learner, which `parents` finds.
    """

    name: ClassVar[str]
    settings: ClassVar[frozenset[str]] = frozenset()
    warm_start: ClassVar[bool] = False

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

    def allows_nan(self, model: Any) -> bool:
        """Whether a model can handle missing values."""
        return False


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
