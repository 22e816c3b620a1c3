"""Threads that run at the same time, and change as often as Python lets them."""

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


@contextmanager
def changing_often() -> Iterator[None]:
    """Let threads take turns after every few instructions.

    They do so within functions of C, too: there where the collector of garbage runs.
    """
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def give_way(*_: object) -> None:
        time.sleep(0)

    sys.setswitchinterval(1e-6)
    gc.callbacks.append(give_way)
    gc.set_threshold(7, 10_000, 10_000)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(give_way)
        sys.setswitchinterval(interval)


def together(*jobs: Callable[[], object]) -> None:
    """Run jobs at the same time, each on a thread of its own; raise what one of them raises."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def work(job: Callable[[], object]) -> None:
        try:
            start.wait()
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def wrong_answers(estimator: Any, parts: list[Any], alone: list[bytes], calls: int) -> list[Any]:
    """The thread and the number of every answer that is not the bits that one thread got.

    Args:
        estimator: What is asked, from as many threads as there are parts.
        parts: Inputs, which every thread asks for in turn.
        alone: The answers to them of one thread.
        calls: How often each thread asks.
    """
    wrong = []

    def ask(thread: int) -> None:
        for call in range(calls):
            which = (thread + call) % len(parts)
            if estimator.predict_proba(parts[which]).tobytes() != alone[which]:
                wrong.append((thread, call))

    together(*(partial(ask, thread) for thread in range(len(parts))))
    return wrong
