"""One fit under way: what watches it, where its rounds are kept, and how it is stopped."""

import contextlib
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from dynsnap import _files
from dynsnap._untrusted import MapOf, Text, Whole, mismatch, parse_json, regular
from dynsnap.engine import ProcessesEngine, cores
from dynsnap.ensemble import (
    Checkpoints,
    Engine,
    Monitor,
    RoundsInMemory,
    RoundSpec,
    RoundStore,
    Trainer,
    round_key,
    serial,
)
from dynsnap.errors import (
    DynSnapError,
    FileError,
    Interrupted,
    PlanError,
    TrainingError,
    one_line,
)
from dynsnap.store import RunFolder

_SEEDS = "seeds.json"  # beside the rounds, where `random_state` is no number
_SEED_FILE = MapOf(Whole(0, 2**31), key=Text(form="[0-9a-f]{32}"), most=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """What a callback is called with after every epoch of every round.

    Attributes:
        generation: Which generation is trained, counted from 1.
        round: Which of its rounds, counted from 0.
        epoch: The epoch that has ended, counted from 0.
        epochs: Epochs of the round.
        accuracy: On the round's validation rows.
    """

    generation: int
    round: int
    epoch: int
    epochs: int
    accuracy: float


class Watch:
    """A monitor made of the caller's monitor and callbacks, a progress bar, and Ctrl-C.

    Args:
        estimator: With its `monitor`, `callbacks` and `verbose`.
    """

    def __init__(self, estimator: Any) -> None:
        self._monitor: Monitor | None = estimator.monitor
        self._called: list[Callable[[EpochEnd], Any]] = []
        self._asked: list[Callable[[], Any]] = []
        self._estimator = estimator
        self._objects: list[Any] = []
        for callback in _listed(estimator.callbacks):
            self._add(callback)
        self._shown = _Progress(estimator.verbose) if estimator.verbose else None
        self._stop = False
        self.interrupted = False

    def _add(self, callback: Any) -> None:
        known = ("on_fit_begin", "on_epoch_end", "on_fit_end", "stopping")
        made = not inspect.isclass(callback)
        if made and any(callable(getattr(callback, name, None)) for name in known):
            self._objects.append(callback)
            if callable(getattr(callback, "on_epoch_end", None)):
                self._called.append(callback.on_epoch_end)
            if callable(getattr(callback, "stopping", None)):
                self._asked.append(callback.stopping)
        elif made and callable(callback):
            self._called.append(callback)
        else:
            raise PlanError(
                f"`callbacks` must hold functions, or objects with {', '.join(known[:-1])} or "
                f"`stopping`, got {callback!r}."
            )

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        if self._monitor is not None:
            self._monitor.epoch_done(spec, epoch, accuracy)
        event = EpochEnd(
            generation=spec.generation,
            round=spec.index,
            epoch=epoch,
            epochs=spec.recipe.epochs,
            accuracy=accuracy,
        )
        for call in self._called:
            try:
                self._stop = call(event) is True or self._stop
            except DynSnapError:
                raise
            except Exception as error:  # whatever the caller's own code raises
                raise TrainingError(
                    f"A callback failed after epoch {epoch} of {spec}: "
                    f"{type(error).__name__}: {one_line(str(error))}."
                ) from error
        if self._shown is not None:
            self._shown.epoch_done(event)

    def stopping(self) -> bool:
        asked = self._monitor is not None and self._monitor.stopping()
        asked = any(bool(ask()) for ask in self._asked) or asked
        return asked or self._stop or self.interrupted

    def plan(self, rounds: int, epochs: int) -> None:
        """So many more rounds are about to be trained."""
        if self._shown is not None:
            self._shown.plan(rounds * epochs)

    def begin(self) -> None:
        for each in self._objects:
            if callable(getattr(each, "on_fit_begin", None)):
                each.on_fit_begin(self._estimator)
        if self._shown is not None:
            self._shown.begin()

    def end(self) -> None:
        if self._shown is not None:
            self._shown.end()

    def fitted(self) -> None:
        """The estimator has become an ensemble."""
        for each in self._objects:
            if callable(getattr(each, "on_fit_end", None)):
                each.on_fit_end(self._estimator)


def _listed(callbacks: Any) -> Sequence[Any]:
    if callbacks is None:
        return ()
    return callbacks if isinstance(callbacks, list | tuple) else (callbacks,)


class _Progress:
    """A bar on a terminal, a line for every round elsewhere; with more, one for every epoch."""

    def __init__(self, verbose: Any) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        if isinstance(verbose, bool | np.integer):
            verbose = int(verbose)
        if not isinstance(verbose, int) or verbose < 0:
            raise PlanError(
                "`verbose` must be 0 (nothing), 1 (a progress bar) or 2 (a line for every epoch), "
                f"got {verbose!r}."
            )
        self._each = verbose > 1
        # FORCE_COLOR, which CI services set, makes no terminal of a log: Rich would draw a bar.
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._console = Console(stderr=True, force_terminal=terminal)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} epochs"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=0)
        self._done, self._total = 0, 0

    def plan(self, epochs: int) -> None:
        self._total = self._done + epochs
        self._bar.update(self._task, total=self._total)

    def begin(self) -> None:
        self._bar.start()

    def end(self) -> None:
        self._bar.stop()

    def epoch_done(self, event: EpochEnd) -> None:
        self._done += 1
        said = f"generation {event.generation}, round {event.round}"
        accuracy = f"accuracy {event.accuracy:.4f}"
        self._bar.update(
            self._task,
            completed=self._done,
            total=max(self._total, self._done),
            description=f"{said}, {accuracy}",
        )
        last = event.epoch + 1 == event.epochs
        if self._each or (last and not self._console.is_terminal):
            line = f"{said}, epoch {event.epoch + 1} of {event.epochs}: {accuracy}"
            self._console.print(line, highlight=False, soft_wrap=True)


class Session:
    """Everything around the training of one generation; use it in a `with` block.

    Args:
        estimator: With its settings.
        call: What the user called: "fit", "retrain" or "distill".
    """

    def __init__(self, estimator: Any, call: str) -> None:
        self._call = call
        self.watch = Watch(estimator)
        self._memory = RoundsInMemory()
        self._folder: RunFolder | None = None
        if estimator.checkpoint is not None:
            if not isinstance(estimator.checkpoint, str | os.PathLike):
                raise PlanError(
                    f"`checkpoint` must be the path of a folder, got {estimator.checkpoint!r}."
                )
            self._folder = RunFolder(Path(estimator.checkpoint))
        self._trainer: Trainer | None = None
        self._workers = _workers(estimator.n_jobs)
        self._stack = contextlib.ExitStack()
        self.engine: Engine = serial

    @property
    def store(self) -> RoundStore:
        """Keeps finished rounds: in the checkpoint folder, or in memory."""
        return self._memory if self._folder is None else self._folder

    def checkpoints(self) -> Checkpoints | None:
        """Keeps unfinished rounds, where there is a checkpoint folder."""
        if self._folder is None:
            return None
        return self._folder.checkpoints(self._key)

    def _key(self, spec: RoundSpec) -> str:
        assert self._trainer is not None
        return round_key(self._trainer, spec)

    def trains(self, trainer: Trainer) -> None:
        """Note the trainer, whose rounds are trained in this session."""
        self._trainer = trainer
        if self._workers > 1:
            device = getattr(trainer, "device", None)
            if device is not None and device.type != "cpu":
                raise PlanError(
                    f"`n_jobs={self._workers}` spreads rounds over processes of a CPU, and these "
                    f"are trained on {device.type}, side by side where they can. Leave it out."
                )
            self.engine = self._stack.enter_context(ProcessesEngine(self._workers))

    def seed(self, drawn: int, *, fixed: bool, data: str) -> int:
        """The seed of this training: the one drawn, or that of the fit which it resumes.

        Args:
            drawn: What `random_state` gives now.
            fixed: Whether it always gives that.
            data: The fingerprint of the data.
        """
        if self._folder is None or fixed:
            return drawn
        path = self._folder.path / _SEEDS
        known: dict[str, int] = {}
        if path.exists():
            try:
                known = parse_json(regular(path).read_bytes())
            except (OSError, ValueError) as error:
                raise FileError(f"{path} cannot be read: {error}. Name another folder.") from error
            if (problem := mismatch(_SEED_FILE, known)) is not None:
                raise FileError(f"{path} cannot be read: {problem}. Name another folder.")
        if data not in known:
            known[data] = drawn
            _files.write_text(path, json.dumps(known, sort_keys=True) + "\n")
        return known[data]

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._stack.enter_context(self._folder)
            self._stack.enter_context(_stopping_at_ctrl_c(self.watch))
        self.watch.begin()
        self._stack.callback(self.watch.end)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stack.close()
        if not isinstance(error, Interrupted):
            return
        if self._folder is None:
            raise Interrupted(
                f"{error} `{self._call}` stores no rounds, so calling it again starts over. Set "
                "`checkpoint` to a folder to go on instead."
            ) from error
        said = (
            f"{error} Call `{self._call}` again with the same data and settings to go on: "
            f"{self._folder.path} has what was trained."
        )
        raise (KeyboardInterrupt if self.watch.interrupted else Interrupted)(said) from error


def _workers(n_jobs: Any) -> int:
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise PlanError(
            f"`n_jobs` must be a number of processes, -1 for all cores, got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, cores() + 1 + int(n_jobs))


@contextlib.contextmanager
def _stopping_at_ctrl_c(watch: Watch) -> Iterator[None]:
    """Let the first Ctrl-C end the epoch, so that it can be saved; the second ends it at once."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # the caller has a way of its own
        return

    def stop(number: int, frame: Any) -> None:
        if watch.interrupted:
            raise KeyboardInterrupt
        watch.interrupted = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
