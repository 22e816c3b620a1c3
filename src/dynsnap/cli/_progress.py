"""How a study goes, on the terminal or in a log, and how it is stopped without losing anything."""

import contextlib
import logging
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Protocol, TextIO

from dynsnap.cli import _signals
from dynsnap.cli._signals import write_line
from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import Interrupted, TrainingError, one_line


class TrainingProgress:
    """How much of what is known to be needed has been done.

    Args:
        clock: A clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.rounds = self.rounds_done = 0
        self.epochs = self.epochs_done = 0
        self.accuracy = 0.0
        self._under_way: dict[RoundSpec, int] = {}
        self._clock = clock
        self._began: float | None = None  # when something was first wanted
        self._told = 0.0  # when the last epoch was told of
        self._settled = False  # whether all rounds under way have told of one
        self._spent, self._counted = 0.0, 0  # seconds of epochs, and how many those were

    def want(self, specs: Sequence[RoundSpec]) -> None:
        """Rounds that are to be trained."""
        if self._began is None:
            self._began = self._clock()
        self.rounds += len(specs)
        self.epochs += sum(spec.recipe.epochs for spec in specs)

    def epoch(self, spec: RoundSpec, epoch: int, accuracy: float) -> None:
        """An epoch of a round has ended."""
        now = self._clock()
        if self._under_way:
            # Rounds that are side by side end their first epochs together: those do not count.
            self._settled |= spec in self._under_way
            self._spent += now - self._told
            self._counted += self._settled
        else:  # what came before contains nothing about epochs: reading data, building a network
            self._settled = False
        self._told = now
        # A round that goes on from a checkpoint begins with a later epoch.
        gone = epoch + 1 - self._under_way.get(spec, 0)
        self._under_way[spec] = epoch + 1
        self.epochs_done += gone
        self.accuracy = accuracy

    def done(self, spec: RoundSpec) -> None:
        """A round has ended."""
        self.rounds_done += 1
        self.epochs_done += spec.recipe.epochs - self._under_way.pop(spec, 0)

    @property
    def finished(self) -> bool:
        """Whether nothing is left of what is known to be needed."""
        return self.rounds_done >= self.rounds

    @property
    def seconds_left(self) -> float | None:
        """Until what is known to be needed is done, at the speed so far; None while unknown."""
        left = self.epochs - self.epochs_done
        if self._counted:
            return self._spent / self._counted * left
        if self.rounds_done and self._began is not None:  # rounds that tell of one epoch alone
            return (self._clock() - self._began) / self.epochs_done * left
        return None


_EVERY = 10.0  # seconds between two lines in a log


class Display(Protocol):
    """Shows how far a study is."""

    def show(self, progress: TrainingProgress, doing: str) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


class Lines:
    """For a log: a line now and then, and no more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = time.monotonic()

    def show(self, progress: TrainingProgress, doing: str) -> None:
        if time.monotonic() - self._last < _EVERY:
            return
        self._last = time.monotonic()
        if progress.finished:
            self.say(doing)
            return
        left = progress.seconds_left
        self.say(
            f"{doing}: round {progress.rounds_done} of {progress.rounds}, epoch "
            f"{progress.epochs_done} of {progress.epochs}, accuracy {progress.accuracy:.3f}"
            + ("" if left is None else f", {left:.0f} s left")
        )

    def say(self, text: str) -> None:
        write_line(text, self._out)

    def close(self) -> None:
        pass


class Bars:
    """For a terminal: one bar that moves."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counts]}"),
            console=Console(file=out, highlight=False, markup=False),
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None, counts="")
        self._bar.start()

    def show(self, progress: TrainingProgress, doing: str) -> None:
        counts = ""
        if not progress.finished:
            left = progress.seconds_left
            counts = (
                f"{progress.rounds_done}/{progress.rounds} rounds · "
                f"{progress.epochs_done}/{progress.epochs} epochs · "
                f"accuracy {progress.accuracy:.3f}"
                + ("" if left is None else f" · {_clock(left)} left")
            )
        self._bar.update(
            self._task,
            description=doing,
            total=progress.epochs or None,
            completed=progress.epochs_done,
            counts=counts,
        )

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal was closed
            self._bar.console.print(one_line(text))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._bar.stop()


class Silent:
    """For `--quiet`: nothing but what must be said."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, progress: TrainingProgress, doing: str) -> None:
        pass

    def say(self, text: str) -> None:
        write_line(text, self._out)

    def close(self) -> None:
        pass


class ProgressMonitor:
    """Follows a study, and asks it to stop at Ctrl-C, SIGTERM, SIGHUP, or when its time is up.

    Args:
        budget: Seconds until training is asked to stop, None for as long as it takes.
        quiet: Show no progress.
    """

    def __init__(self, *, budget: float | None = None, quiet: bool = False) -> None:
        out = sys.stderr
        kind = Silent if quiet else Bars if out.isatty() else Lines
        self._display: Display = kind(out)
        self._quiet = quiet
        self._progress = TrainingProgress()
        self._doing = "training"
        self._budget = budget
        self._start = time.monotonic()
        self._signal: str | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "ProgressMonitor":
        self._undo.callback(self._display.close)
        self._undo.enter_context(_warnings_said(self._display))
        level = logging.WARNING if self._quiet else logging.INFO
        self._undo.enter_context(_log_said(self._display, level))
        if threading.current_thread() is threading.main_thread():
            for number in _signals.ENDING:
                before = signal.getsignal(number)
                if before is signal.SIG_IGN:  # as `nohup` has asked for
                    continue
                signal.signal(number, self._asked_to_stop)
                self._undo.callback(signal.signal, number, before)
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @contextlib.contextmanager
    def going_on(self, command: str, kept: str) -> Iterator[None]:
        """Print how to resume."""
        try:
            yield
        except Interrupted as error:
            reason = str(error)
            if self._signal is not None:
                reason = "Stopped as asked."
            elif self._late():
                reason = f"Stopped: the time budget of {self._budget:g} s is spent."
            raise Interrupted(f"{reason} {kept} Go on with: {command}") from error
        except TrainingError as error:
            raise TrainingError(f"{error} {kept}") from error

    # What a study and its trainer tell, and ask.

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        self._progress.want(specs)
        stored = f", {found} were found" if found else ""
        if specs:
            noun = "round" if len(specs) == 1 else "rounds"
            self.say(f"{len(specs)} {noun} to train{stored}.")
        self._display.show(self._progress, self._doing)

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self._progress.epoch(spec, epoch, accuracy)
        self._display.show(self._progress, self._doing)

    def round_done(self, done: Round, /) -> None:
        self._progress.done(done.spec)
        self._display.show(self._progress, self._doing)

    def measured(self, method: str, combination: str, /) -> None:
        if self._signal is not None:  # all that was trained is stored
            raise Interrupted("Stopped while measuring.")
        self._doing = f"measuring {method}, {combination}"
        self._display.show(self._progress, self._doing)

    def stopping(self) -> bool:
        return self._signal is not None or self._late()

    def say(self, text: str) -> None:
        """Print a sentence beside the progress, unless quiet."""
        if not self._quiet:
            self._display.say(text)

    def _late(self) -> bool:
        return self._budget is not None and time.monotonic() - self._start >= self._budget

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            raise _signals.Signalled(number)  # twice: at once
        self._signal = signal.Signals(number).name
        self._display.say("Stopping at the next checkpoint. Press Ctrl-C again to stop at once.")


@contextlib.contextmanager
def _warnings_said(display: Display) -> Iterator[None]:
    """Warnings as one line each, without the place in the code that raised them."""

    def said(message: Any, category: Any, *_: Any, **__: Any) -> None:
        display.say(f"dynsnap: {message}")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="dynsnap")
        warnings.showwarning = said
        yield


@contextlib.contextmanager
def _log_said(display: Display, level: int) -> Iterator[None]:
    """What the library logs, as one line each."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            display.say(record.getMessage())

    logger, handler = logging.getLogger("dynsnap"), Handler(level)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
