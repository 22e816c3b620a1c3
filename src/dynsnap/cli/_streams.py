"""Standard streams that may be closed, full, or without a reader."""

import contextlib
import os
import sys
from typing import TextIO

from dynsnap.errors import one_line


def tell(text: str, out: TextIO | None = None) -> None:
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
        mute(stream)


def mute(stream: TextIO) -> None:
    """Point a stream nowhere, so that the interpreter's last flush cannot fail again."""
    with contextlib.suppress(OSError, ValueError):  # in tests there is no file behind it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
