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

from dynsnap.cli import _signals
from dynsnap.cli._headway import Headway
from dynsnap.cli._streams import tell
from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import Interrupted, TrainingError, one_line

_EVERY = 10.0  # seconds between two lines in a log


class Display(Protocol):
    """Shows how far a study is."""

    def show(self, headway: Headway, doing: str) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


class Lines:
    """For a log: a line now and then, and no more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = time.monotonic()

    def show(self, headway: Headway, doing: str) -> None:
        if time.monotonic() - self._last < _EVERY:
            return
        self._last = time.monotonic()
        if headway.finished:
            self.say(doing)
            return
        left = headway.seconds_left
        self.say(
            f"{doing}: round {headway.rounds_done} of {headway.rounds}, epoch "
            f"{headway.epochs_done} of {headway.epochs}, accuracy {headway.accuracy:.3f}"
            + ("" if left is None else f", {left:.0f} s left")
        )

    def say(self, text: str) -> None:
        tell(text, self._out)

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

    def show(self, headway: Headway, doing: str) -> None:
        counts = ""
        if not headway.finished:
            left = headway.seconds_left
            counts = (
                f"{headway.rounds_done}/{headway.rounds} rounds · "
                f"{headway.epochs_done}/{headway.epochs} epochs · accuracy {headway.accuracy:.3f}"
                + ("" if left is None else f" · {_clock(left)} left")
            )
        self._bar.update(
            self._task,
            description=doing,
            total=headway.epochs or None,
            completed=headway.epochs_done,
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

    def show(self, headway: Headway, doing: str) -> None:
        pass

    def say(self, text: str) -> None:
        tell(text, self._out)

    def close(self) -> None:
        pass


class Watch:
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
        self._headway = Headway()
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
        except TrainingError as error:
            raise TrainingError(f"{error} {kept}") from error

    # What a study and its trainer tell, and ask.

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        self._headway.want(specs)
        stored = f", {found} were found" if found else ""
        if specs:
            noun = "round" if len(specs) == 1 else "rounds"
            self.say(f"{len(specs)} {noun} to train{stored}.")
        self._display.show(self._headway, self._doing)

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self._headway.epoch(spec, epoch, accuracy)
        self._display.show(self._headway, self._doing)

    def round_done(self, done: Round, /) -> None:
        self._headway.done(done.spec)
        self._display.show(self._headway, self._doing)

    def measured(self, method: str, combination: str, /) -> None:
        if self._signal is not None:  # nobody asks here, and all that was trained is stored
            raise Interrupted("Stopped while measuring.")
        self._doing = f"measuring {method}, {combination}"
        self._display.show(self._headway, self._doing)

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
