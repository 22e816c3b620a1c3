"""Runs commands on files that were broken on purpose, and counts how they end.

A fuzzer is a function `case(random, folder)` that writes broken files to an empty folder and
returns an `Attempt`: what was broken, and the commands to try on it. Case number n of a seed is
always the same, whatever came before it, so that a failure can be looked at on its own:

    python -m tests.fuzz.rules --count 100000 --json rules.json
    python -m tests.fuzz.rules --begin 4711 --count 1 --keep broken

A command may end well or refuse its input: exit codes 0 to 4 and at most a line of its own. A
traceback, any other exit code, a signal, or an appetite for memory or CPU time is a failure.
"""

import argparse
import importlib
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dynsnap.cli import cli
from tests.fuzz import isolation

EXIT_CODES = {0, 1, 2, 3, 4}
MOST_MEMORY = 1 << 29  # bytes that one case may take more than all before it
MOST_CPU = 60  # seconds of the processor, which do not pass while others have it


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was broken, in a word or two, and the command lines that are tried on it."""

    broken: str
    commands: Sequence[Sequence[object]]


Cases = Callable[[random.Random, Path], Attempt]
# What was broken, how its commands ended, and what should not have happened.
Outcome = tuple[str, list[str], list[dict[str, Any]]]


@dataclass(slots=True)
class Counts:
    """What was tried, and how it ended.

    Attributes:
        broken: How many cases there were, by what was broken.
        ended: How many commands there were, by command and exit code.
        failures: What should not have happened.
    """

    name: str
    seed: int
    broken: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one more case."""
        broken, ended, failures = outcome
        self.broken[broken] += 1
        self.ended.update(ended)
        self.failures += failures

    @property
    def cases(self) -> int:
        """How many cases were tried."""
        return sum(self.broken.values())

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "name": self.name,
            "seed": self.seed,
            "cases": self.cases,
            "commands": sum(self.ended.values()),
            "broken": dict(sorted(self.broken.items())),
            "ended": dict(sorted(self.ended.items())),
            "failures": self.failures,
        }


def run(
    name: str, cases: Cases, count: int, seed: int, *, begin: int = 0, keep: Path | None = None
) -> Counts:
    """Try `count` cases in this process, and say how they ended.

    Args:
        name: What the fuzzer is called, a part of what its cases are drawn from.
        cases: Makes a case.
        count: How many.
        seed: Of all cases together.
        begin: The number of the first case.
        keep: Where the files of failures go.
    """
    found = Counts(name, seed)
    for number in range(begin, begin + count):
        found.add(_case(name, cases, seed, number, keep))
    return found


def run_apart(
    name: str, count: int, seed: int, *, begin: int = 0, keep: Path | None = None
) -> Counts:
    """As `run` for the fuzzer `tests.fuzz.NAME`, in a process of its own: see `isolation`."""
    found = Counts(name, seed)
    place = None if keep is None else str(keep)
    numbers = range(begin, begin + count)
    for outcome in isolation.run(
        "tests.fuzz.harness:attempt", [[name, seed, number, place] for number in numbers]
    ):
        if outcome.failed:
            what = f"it {outcome.result}: {outcome.detail}"
            found.add(("(ended the process)", [], [{"case": outcome.case[2], "what": what}]))
        else:
            found.add(json.loads(outcome.detail))
    return found


def attempt(case: list[Any]) -> tuple[str, str]:
    """One case of a fuzzer, as `isolation.run` calls it; its outcome as JSON."""
    name, seed, number, keep = case
    cases: Cases = importlib.import_module(f"tests.fuzz.{name}").case
    return "done", json.dumps(_case(name, cases, seed, number, keep and Path(keep)))


def main(name: str) -> None:
    """The command line of a fuzzer."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}")
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0, help="the number of the first case")
    parser.add_argument("--json", type=Path, help="where the counts go")
    parser.add_argument("--keep", type=Path, help="where the files of failures go")
    asked = parser.parse_args()
    found = run_apart(name, asked.count, asked.seed, begin=asked.begin, keep=asked.keep).to_json()
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    for failure in found["failures"]:
        print(json.dumps(failure, indent=1))
    print(
        f"{name}: {found['cases']:,} cases, {found['commands']:,} commands, "
        f"{len(found['failures']):,} failures. {found['ended']}"
    )
    sys.exit(1 if found["failures"] else 0)


def _case(name: str, cases: Cases, seed: int, number: int, keep: Path | None) -> Outcome:
    ended: list[str] = []
    failures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="dynsnap-fuzz-") as place:
        folder = Path(place)
        attempt = cases(random.Random(f"{name} {seed} {number}"), folder)
        for command in attempt.commands:
            words = [str(word) for word in command]
            code, problems = _command(words)
            ended.append(f"{words[0]} {code}")
            failures += [
                {"case": number, "broken": attempt.broken, "command": words, "what": problem}
                for problem in problems
            ]
        if failures and keep is not None:
            shutil.copytree(folder, keep / f"{name}-{seed}-{number}", dirs_exist_ok=True)
    return attempt.broken, ended, failures


class _TooLongError(BaseException):
    """A command has used more of the processor than any broken file is worth."""


def _command(words: Sequence[str]) -> tuple[int | str, list[str]]:
    """Run a command; its exit code, and what was wrong with how it ended."""
    problems: list[str] = []
    before = _peak()
    with _limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = CliRunner().invoke(cli, list(words), prog_name="dynsnap")
        except _TooLongError:
            return "too long", [f"more than {MOST_CPU} s of the processor"]
    code: int | str = result.exit_code
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        code = type(error).__name__
        problems.append("".join(traceback.format_exception(error))[-3000:])
    elif code not in EXIT_CODES:
        problems.append(f"exit code {code}: {result.output[-500:]}")
    if "Traceback (most recent call last)" in result.output:
        problems.append(result.output[-3000:])
    if code in (2, 3) and not result.stderr.startswith("dynsnap: "):
        problems.append(f"no line says why: {result.stderr[-500:]!r}")
    if "not enough memory" in result.stderr or _peak() - before > MOST_MEMORY:
        problems.append(f"too much memory: {result.stderr[-300:]}")
    return code, problems


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _limited:  # noqa: N801 (used like a function)
    """Raises where a block uses the processor for too long."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGPROF, self._stop)
        signal.setitimer(signal.ITIMER_PROF, MOST_CPU)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    @staticmethod
    def _stop(*_: object) -> None:
        raise _TooLongError
