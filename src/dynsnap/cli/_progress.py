"""How a study goes, on the terminal or in a log, and how it is stopped without losing anything."""

import contextlib
import logging
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Protocol, TextIO

from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import Interrupted, one_line

_EVERY = 10.0  # seconds between two lines in a log


class Display(Protocol):
    """Shows how far a study is."""

    def show(self, tally: "Tally", doing: str) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


class Tally:
    """How much of what is known to be needed has been done."""

    def __init__(self) -> None:
        self.rounds = self.rounds_done = self.found = 0
        self.epochs = self.epochs_done = 0
        self.accuracy = 0.0
        self._under_way: dict[RoundSpec, int] = {}
        self._since = time.monotonic()
        self._fresh = 0

    def want(self, specs: Sequence[RoundSpec], found: int) -> None:
        if not self.rounds:  # reading data and loading libraries says nothing about training
            self._since = time.monotonic()
        self.found += found
        self.rounds += len(specs)
        self.epochs += sum(spec.recipe.epochs for spec in specs)

    def epoch(self, spec: RoundSpec, epoch: int, accuracy: float) -> None:
        # A round that goes on from a checkpoint begins with a later epoch.
        gone = epoch + 1 - self._under_way.get(spec, 0)
        self._under_way[spec] = epoch + 1
        self.epochs_done += gone
        self._fresh += 1
        self.accuracy = accuracy

    def done(self, spec: RoundSpec) -> None:
        self.rounds_done += 1
        self.epochs_done += spec.recipe.epochs - self._under_way.pop(spec, 0)

    @property
    def finished(self) -> bool:
        """Whether nothing is left of what is known to be needed."""
        return self.rounds_done >= self.rounds

    @property
    def seconds_left(self) -> float | None:
        """Until what is known to be needed is done, at the speed so far."""
        if not self._fresh:
            return None
        spent = time.monotonic() - self._since
        return spent / self._fresh * (self.epochs - self.epochs_done)


class Lines:
    """For a log: a line now and then, and no more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = time.monotonic()

    def show(self, tally: Tally, doing: str) -> None:
        if time.monotonic() - self._last < _EVERY:
            return
        self._last = time.monotonic()
        if tally.finished:
            self.say(doing)
            return
        left = tally.seconds_left
        self.say(
            f"{doing}: round {tally.rounds_done} of {tally.rounds}, epoch {tally.epochs_done} of "
            f"{tally.epochs}, accuracy {tally.accuracy:.3f}"
            + ("" if left is None else f", {left:.0f} s left")
        )

    def say(self, text: str) -> None:
        print(one_line(text), file=self._out, flush=True)

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

    def show(self, tally: Tally, doing: str) -> None:
        counts = ""
        if not tally.finished:
            left = tally.seconds_left
            counts = (
                f"{tally.rounds_done}/{tally.rounds} rounds · "
                f"{tally.epochs_done}/{tally.epochs} epochs · accuracy {tally.accuracy:.3f}"
                + ("" if left is None else f" · {_clock(left)} left")
            )
        self._bar.update(
            self._task,
            description=doing,
            total=tally.epochs or None,
            completed=tally.epochs_done,
            counts=counts,
        )

    def say(self, text: str) -> None:
        self._bar.console.print(one_line(text))

    def close(self) -> None:
        self._bar.stop()


class Silent:
    """For `--quiet`: nothing but what must be said."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, tally: Tally, doing: str) -> None:
        pass

    def say(self, text: str) -> None:
        print(one_line(text), file=self._out, flush=True)

    def close(self) -> None:
        pass


class Watch:
    """Follows a study, and asks it to stop at Ctrl-C, at SIGTERM, or when its time is up.

    Args:
        budget: Seconds until training is asked to stop, None for as long as it takes.
        quiet: Show no progress.
    """

    def __init__(self, *, budget: float | None = None, quiet: bool = False) -> None:
        out = sys.stderr
        kind = Silent if quiet else Bars if out.isatty() else Lines
        self._display: Display = kind(out)
        self._quiet = quiet
        self._tally = Tally()
        self._doing = "training"
        self._budget = budget
        self._start = time.monotonic()
        self._signal: str | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Watch":
        self._undo.callback(self._display.close)
        self._undo.enter_context(_warnings_said(self._display))
        level = logging.WARNING if self._quiet else logging.INFO
        self._undo.enter_context(_log_said(self._display, level))
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.signal(number, self._asked_to_stop)
                self._undo.callback(signal.signal, number, before)
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @contextlib.contextmanager
    def going_on(self, command: str, kept: str) -> Iterator[None]:
        """Tell whoever is interrupted how to go on."""
        try:
            yield
        except Interrupted as error:
            reason = str(error)
            if self._signal is not None:
                reason = "Stopped as asked."
            elif self._late():
                reason = f"Stopped: the time budget of {self._budget:g} s is spent."
            raise Interrupted(f"{reason} {kept} Go on with: {command}") from error

    # What a study and its trainer tell, and ask.

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        self._tally.want(specs, found)
        stored = f", {found} were found" if found else ""
        if specs:
            noun = "round" if len(specs) == 1 else "rounds"
            self.say(f"{len(specs)} {noun} to train{stored}.")
        self._display.show(self._tally, self._doing)

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self._tally.epoch(spec, epoch, accuracy)
        self._display.show(self._tally, self._doing)

    def round_done(self, done: Round, /) -> None:
        self._tally.done(done.spec)
        self._display.show(self._tally, self._doing)

    def measured(self, method: str, combination: str, /) -> None:
        if self._signal is not None:  # nobody asks here, and all that was trained is stored
            raise Interrupted("Stopped while measuring.")
        self._doing = f"measuring {method}, {combination}"
        self._display.show(self._tally, self._doing)

    def stopping(self) -> bool:
        return self._signal is not None or self._late()

    def say(self, text: str) -> None:
        """Say a sentence beside the progress, unless nobody wants to hear it."""
        if not self._quiet:
            self._display.say(text)

    def _late(self) -> bool:
        return self._budget is not None and time.monotonic() - self._start >= self._budget

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            raise KeyboardInterrupt  # twice: at once
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
