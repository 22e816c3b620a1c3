"""Signals that ask a program to end, and standard streams that may be closed or full."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn, TextIO

from dynsnap.errors import one_line


def write_line(text: str, out: TextIO | None = None) -> None:
    """Write one line to standard error, or nothing where that is no longer possible.

    A terminal that was closed, or a log without a reader, is no reason to end hours of training,
    and must not change an exit code.
    """
    stream = sys.stderr if out is None else out
    if stream is None:  # closed before the program began
        return
    try:
        print(one_line(text), file=stream, flush=True)
    except (OSError, ValueError):
        silence(stream)


def silence(stream: TextIO) -> None:
    """Point a stream nowhere, so that the interpreter's last flush cannot fail again."""
    with contextlib.suppress(OSError, ValueError):  # in tests there is no file behind it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


# A terminal that is closed sends SIGHUP; Windows has none.
ENDING = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
)


class Signalled(KeyboardInterrupt):
    """A signal other than Ctrl-C has asked the program to end.

    It is a KeyboardInterrupt, so that whatever is undone at Ctrl-C is undone here, too.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def as_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this block as Ctrl-C does.

    A signal that the program was started to ignore, as by `nohup`, stays ignored. After the block
    signals have their default effect: nothing is left to clean up, and the end of the interpreter
    is no place for a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which alone may have handlers
        return
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)


def leave(stop: KeyboardInterrupt) -> NoReturn:
    """End the program because of a signal: say so, and exit as a shell reports it."""
    with _ignored():
        if (files := sys.modules.get("dynsnap._files")) is not None:
            files.discard_staged()  # a second signal may have cut the first cleanup short
    number = stop.number if isinstance(stop, Signalled) else signal.SIGINT
    cause = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    write_line(f"dynsnap: Stopped{cause}.")
    sys.exit(128 + number)


@contextlib.contextmanager
def _ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Signalled(number)
