"""Run numbered cases in a child process, so that a crash is an outcome and not the end.

The child says which case it begins, and then how it ended. Where it dies, the case that it was at
has crashed, and another child goes on behind it. Time and memory of a case are bounded by the
system: by time on the processor, not by the clock, so that a busy machine changes nothing.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 60  # of the processor's time for one case
BYTES = 3 * 2**30  # that a child may take beyond what it has when it begins


@dataclass(frozen=True)
class Outcome:
    """How one case ended.

    Attributes:
        case: Its number, or whatever names it.
        result: What the case gave; "crashed", "blocked" or "escaped" where it gave nothing.
        detail: What else is known: the signal, the traceback, or what the case said.
    """

    case: Any
    result: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        return self.result in ("crashed", "blocked", "escaped")


def run(function: str, cases: Sequence[Any], *, seconds: int = SECONDS) -> Iterator[Outcome]:
    """Outcomes of a function, `package.module:name`, that takes a case and gives its result.

    Args:
        function: It may return a text, or a result and a detail.
        cases: What it is called with, as JSON holds it.
        seconds: Of the processor's time for one case.
    """
    left = list(cases)
    while left:
        done = 0
        with _child(function, left, seconds) as child:
            begun = None
            for line in child.stdout:
                said = json.loads(line)
                if "begin" in said:
                    begun = said["begin"]
                else:
                    yield Outcome(left[begun], said["result"], said["detail"])
                    done, begun = begun + 1, None
            status = child.wait()
        if begun is None and done == len(left):
            return
        if begun is None:
            raise RuntimeError(f"{function} ended with {status} before it began a case")
        blocked = -status in (signal.SIGXCPU, signal.SIGKILL)
        name = signal.Signals(-status).name if status < 0 else f"exit {status}"
        yield Outcome(left[begun], "blocked" if blocked else "crashed", name)
        left = left[begun + 1 :]


@contextlib.contextmanager
def _child(function: str, cases: Sequence[Any], seconds: int) -> Iterator[Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": ""}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.isolation", function, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=environment,
        text=True,
    )
    try:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(list(cases)))
            child.stdin.close()
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _serve(function: str, seconds: int) -> None:
    """What the child does."""
    cases = json.loads(sys.stdin.read())
    talk = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print what they like
    module, _, name = function.partition(":")
    attempt: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))
    for number, case in enumerate(cases):
        print(json.dumps({"begin": number}), file=talk)
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        try:
            found = attempt(case)
            result, detail = found if isinstance(found, tuple) else (found, "")
        except BaseException:
            result, detail = "escaped", traceback.format_exc()[-2000:]
        print(json.dumps({"result": result, "detail": detail}), file=talk)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
