"""What the trainer asks of each library, and how a round is followed, saved and resumed."""

import contextlib
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats, Labels, Positions, Scores
from dynsnap.data import Frame
from dynsnap.ensemble import Checkpoints, Judge, Monitor, Recipe, RoundSpec, snapshot_epochs
from dynsnap.errors import FileError, Interrupted, PlanError, TrainingError

_LOCK = threading.Lock()
_limited = 0  # trainings that are under way
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit OpenMP and BLAS to one thread while it lasts.

    OpenMP keeps a limit for each of the caller's threads. BLAS has one for the whole process, which
    the last training that ends takes back, whichever began first.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    global _limited, _limit
    with _LOCK:
        _limited += 1
        if _limited == 1:
            _limit = threadpool_limits(limits=1, user_api="blas")
    try:
        with threadpool_limits(limits=1, user_api="openmp"):
            yield
    finally:
        with _LOCK:
            _limited -= 1
            if not _limited:
                _limit.restore_original_limits()
                _limit = None


log = logging.getLogger("dynsnap.boost")

State: TypeAlias = Mapping[str, bytes]  # all that a learner needs to go on from an epoch's end
FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RoundStart:
    """Where a round stands when it is taken up.

    Attributes:
        curve: Validation accuracy after every epoch so far.
        judged: The selection metric after every epoch so far, where that is not the accuracy.
        state: What the learner made of the state that was saved; None for a fresh start.
    """

    curve: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    state: Any = None


class RoundCheckpointSaver:
    """Saves one round at the ends of epochs, and brings it back.

    Args:
        spec: The round.
        checkpoints: Where to; None saves nothing.
        every: Least seconds between two checkpoints; 0 saves after every epoch.
        owner: The trainer's fingerprint: another trainer's checkpoint is no use.
    """

    def __init__(
        self, spec: RoundSpec, *, checkpoints: Checkpoints | None, every: float, owner: str
    ) -> None:
        self._spec = spec
        self._checkpoints = checkpoints
        self._every = every
        self._owner = owner
        self._last = time.monotonic()
        self._start = time.perf_counter()

    @property
    def saves(self) -> bool:
        return self._checkpoints is not None

    @property
    def seconds(self) -> float:
        """Time that the round took so far, before it was stopped too."""
        return time.perf_counter() - self._start

    def restore(self, opened: Callable[[State], Any]) -> RoundStart:
        """Where the round's checkpoint has left it, or its start."""
        content = self._checkpoints.load(self._spec) if self._checkpoints is not None else None
        if content is None:
            return RoundStart()
        try:
            head, state = _unpack(content, what=f"The checkpoint of {self._spec}")
            if head["spec"] != self._spec.canonical() or head["owner"] != self._owner:
                raise FileError(f"The checkpoint of {self._spec} was made by another training.")
            begun = RoundStart(
                curve=[float(value) for value in head["curve"]],
                judged=[float(value) for value in head.get("judged", ())],
                state=opened(state),
            )
            seconds = float(head["seconds"])
        except Exception as error:  # each library has its own way to say that a file is damaged
            # Nothing but time is lost, so this is no reason to stop.
            reason = error if isinstance(error, FileError) else f"{self._spec}: {error!r}."
            log.warning("Ignoring an unusable checkpoint. %s Starting that round over.", reason)
            return RoundStart()
        self._start -= seconds
        return begun

    def due(self) -> bool:
        """Whether it is time to save."""
        return self.saves and time.monotonic() - self._last >= self._every

    def save(self, curve: list[float], state: State, judged: Sequence[float] = ()) -> None:
        """Save the round, which stands at the end of an epoch."""
        if self._checkpoints is None:
            return
        payload = b"".join(state.values())
        head = {
            "format": FORMAT,
            "spec": self._spec.canonical(),
            "owner": self._owner,
            "curve": curve,
            **({"judged": list(judged)} if judged else {}),
            "seconds": self.seconds,
            "parts": [[name, len(part)] for name, part in state.items()],
            "sha256": hashlib.sha256(payload).hexdigest(),
        }
        content = json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload
        self._checkpoints.save(self._spec, content)
        self._last = time.monotonic()

    def drop(self) -> None:
        """The round is safe with the caller: its checkpoint is not needed any more."""
        if self._checkpoints is not None:
            self._checkpoints.drop(self._spec)


def _unpack(content: bytes, *, what: str) -> tuple[dict[str, Any], State]:
    line, _, payload = content.partition(b"\n")
    try:
        head = json.loads(line)
        version, parts, expected = head["format"], head["parts"], head["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{what} cannot be read: it is damaged, or was not written by `dynsnap.boost`."
        ) from error
    if version != FORMAT:
        raise FileError(f"{what} has format {version}, but this dynsnap reads format {FORMAT}.")
    # Before a library sees it: LightGBM takes the whole process down over a text cut short.
    if hashlib.sha256(payload).hexdigest() != expected:
        raise FileError(f"{what} fails its checksum: it is damaged.")
    state, at = {}, 0
    for name, size in parts:
        state[name] = payload[at : at + size]
        at += size
    return head, state


class EpochRecorder:
    """Is shown the validation scores after every epoch of one round, and may stop it there.

    Attributes:
        curve: Validation accuracy after every epoch so far; its length is the epoch that is next.
        judged: The selection metric after every epoch so far; empty where that is the accuracy.
        stopping: Whether the monitor has asked to stop.
    """

    def __init__(
        self,
        spec: RoundSpec,
        *,
        truth: Labels,
        seen: Labels,
        monitor: Monitor | None,
        saver: RoundCheckpointSaver,
        curve: list[float],
        judge: Judge,
        judged: list[float],
        weights: Floats | None,
        inputs: AnyArray,
        classes: int,
    ) -> None:
        self._judge = judge
        self._weights = weights
        self._inputs = inputs
        self._classes = classes
        self.judged = judged
        self._spec = spec
        self._truth = truth
        self._seen = seen
        self._monitor = monitor
        self._saver = saver
        self.curve = curve
        self.stopping = False

    def show(self, scores: Scores) -> Positions:
        """Take the scores after one more epoch, and say which epochs are worth keeping so far."""
        if not np.isfinite(scores).all():
            raise TrainingError(
                f"{self._spec} gave scores that are not finite in epoch {len(self.curve)}. "
                "Training has diverged: lower the learning rate, or scale the inputs."
            )
        # The columns are the classes that the round has seen, in their order.
        # In single precision, as they are stored: what is measured here holds for what is kept.
        narrow = scores.astype(np.float32)
        labels = self._seen[np.argmax(narrow, axis=1)]
        self.curve.append(float(np.mean(labels == self._truth)))
        if not self._judge.plain:
            wide = np.zeros((len(narrow), self._classes), np.float32)
            wide[:, self._seen] = narrow
            self.judged.append(
                self._judge(self._truth, wide, weights=self._weights, inputs=self._inputs)
            )
        return snapshot_epochs(self._spec.recipe, self.deciding)

    @property
    def deciding(self) -> list[float]:
        """The curve that snapshots are chosen by."""
        return self.curve if self._judge.plain else self.judged

    def rest(self, state: Callable[[], State] | None) -> None:
        """The epoch that was shown is over: the place to save the round, and to stop.

        Args:
            state: Gives all that the learner needs to go on from here; None where no file can
                hold it.

        Raises:
            Interrupted: The monitor asked to stop, and epochs are left to train.
        """
        epoch = len(self.curve) - 1
        if self._monitor is not None:
            self._monitor.epoch_done(self._spec, epoch, self.curve[-1])
            self.stopping = self.stopping or self._monitor.stopping()
        if epoch + 1 == self._spec.recipe.epochs:
            return  # the round is as good as finished
        if state is not None and (self.stopping or self._saver.due()):
            self._saver.save(self.curve, state(), self.judged)
        if self.stopping:
            saved = "was saved as it is" if self._saver.saves and state is not None else "is lost"
            raise Interrupted(
                f"Training stopped as asked in {self._spec}, after epoch {epoch}: it {saved}."
            )


Cut: TypeAlias = Callable[[int], bytes]  # the learner as it was after an epoch, serialised
Predict: TypeAlias = Callable[[Any], Scores]  # of an array or a `Frame`
# A stored learner that is ready to score, and how many features it takes, where that is known.
Loaded: TypeAlias = tuple[Predict, int | None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FitTask:
    """One round to be trained.

    Attributes:
        labels: Positions among the classes that the round's training rows hold: 0 to k - 1, each
            at least once.
        classes: The names of those classes.
        validation: Inputs to score after every epoch.
        seed: Of 31 bits, which every library takes.
        weights: A weight for each row; None where all count alike.
        categorical: The columns that are categories, by position, if the inputs were a frame.
    """

    recipe: Recipe
    inputs: Any  # an array, or a `Frame` for a learner that takes its columns by name
    labels: Labels
    classes: tuple[str, ...]
    validation: Any
    seed: int
    weights: Floats | None = None
    categorical: tuple[int, ...] | None = None

    @property
    def counts(self) -> Floats:
        """How many rows each class has, by their weights."""
        return np.bincount(self.labels, self.weights, len(self.classes)).astype(float)

    def check_fits(self, features: int | None) -> None:
        """Raise FileError unless a stored learner takes as many features as there are here."""
        found = self.inputs.shape[1] if self.inputs.ndim > 1 else None
        if features != found:
            raise FileError(
                f"A stored learner takes {features} features, but the inputs have {found}."
            )


class Learner(Protocol):
    """One library's classifier, before training.

    Attributes:
        kind: The library.
        by_name: Whether it takes the columns of a frame by their names, not as numbers.
    """

    kind: str
    by_name: bool

    def check_frame(self, frame: Frame | None, /) -> None:
        """Raise, naming the columns, unless this learner can take a frame; None for an array."""
        ...

    @property
    def version(self) -> str:
        """The library's version."""
        ...

    def check(self, recipe: Recipe, /, *, shortened: bool = False) -> None:
        """Raise PlanError unless this learner can follow the recipe.

        Args:
            recipe: How a round trains.
            shortened: Whether it may have other iterations than a training from scratch.
        """
        ...

    def check_continues(self) -> None:
        """Raise PlanError unless a round of this learner can go on from a stored one."""
        ...

    def check_weights(self) -> None:
        """Raise PlanError unless this learner can be given a weight for each row."""
        ...

    def check_copies(self) -> None:
        """Raise PlanError unless rows may come several times, with another label and weight."""
        ...

    def begin(self, payload: bytes, places: Positions, task: FitTask, /, *, trust: bool) -> Any:
        """What `fit` goes on from, of a learner that an earlier round stored.

        Args:
            payload: The stored learner, which may come from a stranger.
            places: Where each class that it knows is among the task's. The others are new: the
                learner is widened by them, at scores that say how frequent they are.
            task: The round, whose trees are added.
            trust: Whether to read a learner that cannot be checked.
        """
        ...

    def open(self, state: State, task: FitTask, /, *, trust: bool) -> Any:
        """What `fit` goes on from, of a state that it gave to `EpochRecorder.rest`.

        The state comes from a file: unless it is trusted, FileError is raised where it is not
        known to be sound, or does not fit the task.
        """
        ...

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any, /) -> Cut:
        """Train from the epoch that the watch gives: from `begun`, or None for a fresh start.

        What an epoch computes may depend on the state before it and on its number alone, so that
        a round that was stopped goes on to the same bits.
        """
        ...


def first_scores(task: FitTask, places: Positions, raw: Scores) -> Floats:
    """Raw scores that classes begin with which a learner does not know; 0 for those that it knows.

    A new class gets the share that it has of the rows, against what the known ones have on average:
    far below, no iteration would ever raise it.

    Args:
        task: The round.
        places: Where each class that the learner knows is among the task's.
        raw: The learner's raw scores on the task's rows, one column for each class that it knows.
    """
    counts, known = task.counts, np.zeros(len(task.classes), dtype=bool)
    known[places] = True
    top = raw.max(axis=1)
    level = float(np.mean(top + np.log(np.exp(raw - top[:, None]).sum(axis=1))))
    # With all its weight on other classes, one may have rows that do not count.
    counts = np.maximum(counts, 1e-6)
    return np.where(known, 0.0, np.log(counts / counts[known].sum()) + level)


def two_raw_columns(raw: Scores) -> Scores:
    """Raw scores with a column per class, also where there is one of the second of two."""
    raw = raw.reshape(len(raw), -1)
    return np.column_stack([np.zeros(len(raw)), raw]) if raw.shape[1] == 1 else raw


def as_numbers(inputs: Any) -> AnyArray:
    """Inputs as libraries of boosted trees take them: the codes of a frame, or the array."""
    return inputs.codes if isinstance(inputs, Frame) else inputs


def seed(task: FitTask, name: int | str) -> int:
    """A seed of 31 bits for a part of a round."""
    return seeds.number(task.seed, name) % 2**31


def rates(recipe: Recipe, base: float) -> Floats:
    """The learning rate in each epoch; never quite zero, which some libraries refuse."""
    return np.maximum(base * recipe.multipliers, 1e-12)


def two_columns(scores: Scores) -> Scores:
    """Scores with a column per class, also where a library gives the second of two only."""
    return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


def describe(model: Any) -> str:
    """A model's class and parameters as text, the same in every process."""
    params = {
        key: _describe_value(value)
        for key, value in model.get_params(deep=True).items()
        # The round's seed replaces the model's, and the number of threads changes nothing.
        if key.rpartition("__")[2] not in ("random_state", "n_jobs", "verbose", "verbosity")
    }
    return f"{_qualified(type(model))}({', '.join(f'{k}={v}' for k, v in sorted(params.items()))})"


def _describe_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_describe_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_describe_value(v)}' for key, v in value.items())}}}"
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.dtype}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return describe(value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return _qualified(value)
    if type(value).__name__ == "make_column_selector":
        rule = ", ".join(f"{key}={rule!r}" for key, rule in sorted(vars(value).items()))
        return f"{_qualified(type(value))}({rule})"
    text = repr(value)
    if " at 0x" in text:  # the address of an object is another in every process
        raise PlanError(
            f"Cannot tell one {type(value).__name__} among the model's parameters from another, so "
            "a round made with it could not be found again. Give it a `__repr__`."
        )
    return text


def _qualified(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
