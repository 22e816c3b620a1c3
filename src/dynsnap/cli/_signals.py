"""Signals that ask a program to end, as one exception that unwinds it."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from dynsnap.cli._streams import tell

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
        if (aside := sys.modules.get("dynsnap._aside")) is not None:
            aside.discard_all()  # a second signal may have cut the cleaning of the first one short
    number = stop.number if isinstance(stop, Signalled) else signal.SIGINT
    cause = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    tell(f"dynsnap: Stopped{cause}.")
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
