"""Forged learners, loaded and asked: `python -m tests.fuzz.ensembles --count 100000`.

A forged learner must be refused by an error of dynsnap's own, or answer. It may not end the
process, block it, take much more memory than its size, or let another error through. Where an
array was cut or removed and the learner still answers, its answers must be those of the whole
learner: otherwise it was read beyond its end.
"""

import argparse
import functools
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap.boost import opened
from dynsnap.errors import DynSnapError
from tests.fuzz import forgery, isolation, learners

FUNCTION = "tests.fuzz.ensembles:attempt"


@functools.cache
def document(name: str) -> Any:
    """A learner, taken apart."""
    learner = learners.learner(name)
    return forgery.DOCUMENTS[learner.kind](learner.payload)


@functools.cache
def answers(name: str) -> Any:
    """What the whole learner says."""
    learner = learners.learner(name)
    return opened([learner.packed()], classes=learner.classes)(learner.inputs)


def every(name: str, changes: Sequence[forgery.Change] = forgery.CHANGES) -> list[list[Any]]:
    """All cases of one learner: each of its values, changed in each of these ways."""
    places = range(len(document(name).leaves()))
    return [[name, place, change.name, 0] for place in places for change in changes]


def some(name: str) -> list[list[Any]]:
    """A case for each of its values, with the ways to change it in turn."""
    ways = forgery.CHANGES
    return [
        [name, place, ways[(place * 7 + len(name)) % len(ways)].name, place]
        for place in range(len(document(name).leaves()))
    ]


def drawn(seed: int, number: int) -> list[Any]:
    """Case number so and so of a seed: the same, whatever came before."""
    rng = random.Random(f"ensembles {seed} {number}")
    name = rng.choice(sorted(learners.makers()))
    if rng.random() < 0.1:
        return [name, rng.randrange(2**30), "bytes", rng.randrange(2**30)]
    change = rng.choice(forgery.CHANGES).name
    return [name, rng.randrange(2**30), change, rng.randrange(2**30)]


def forged(name: str, place: int, change: str, at: int) -> bytes:
    """A forged learner with its header."""
    learner = learners.learner(name)
    if change == "bytes":
        return learner.packed(_in_bytes(learner.payload, random.Random(place)))
    leaves = document(name).leaves()
    way = next(one for one in forgery.CHANGES if one.name == change)
    return learner.packed(document(name).forged(leaves[place % len(leaves)], way, at))


def _in_bytes(payload: bytes, rng: random.Random) -> bytes:
    changed = bytearray(payload)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed))
        way = rng.randrange(4)
        if way == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif way == 2:
            del changed[at : at + rng.randrange(1, 20)]
        else:
            changed[at:at] = changed[at - rng.randrange(20) : at]
        if not changed:
            break
    return bytes(changed)


def attempt_trusted(case: list[Any]) -> tuple[str, str]:
    """The same without checks, for comparison: these do end processes."""
    return attempt(case, trust=True)


def attempt(case: list[Any], *, trust: bool = False) -> tuple[str, str]:
    """How one forged learner ends: "refused", or "answered"."""
    name, place, change, at = case
    learner, whole = learners.learner(name), answers(name)
    content = forged(name, place, change, at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ask = opened([content], classes=learner.classes, trust=trust)
            found = ask(learner.inputs)
            again = ask(learner.inputs)
        except DynSnapError as error:
            causes = [error]
            while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
                causes.append(cause)
            if any(isinstance(cause, MemoryError) for cause in causes):
                raise MemoryError("it took too much memory") from error
            return "refused", type(error).__name__
    if not np.array_equal(found, again):
        raise AssertionError("asked twice, it gave two answers")
    same = np.array_equal(found, whole)
    if change in forgery.SHORTER and not same and document(name).is_array(place):
        raise AssertionError("a part of it is missing, and it answers something else")
    return "answered", "alike" if same else "otherwise"


def summary(outcomes: Sequence[isolation.Outcome], seed: int | None = None) -> dict[str, Any]:
    """Counts of what was tried and how it ended, as plain values."""
    by_learner: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        by_learner.setdefault(outcome.case[0], Counter())[outcome.result] += 1
    return {
        "name": "ensembles",
        "seed": seed,
        "cases": len(outcomes),
        "ended": dict(Counter(outcome.result for outcome in outcomes)),
        "learners": {name: dict(counts) for name, counts in sorted(by_learner.items())},
        "failures": [
            {"case": outcome.case, "what": outcome.result, "detail": outcome.detail}
            for outcome in outcomes
            if outcome.failed
        ],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.ensembles", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many cases are drawn")
    parser.add_argument("--begin", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="every value in every way instead")
    parser.add_argument("--learner", action="append", help="only this one")
    parser.add_argument("--trust", action="store_true", help="without checks, to see what they do")
    parser.add_argument("--json", type=Path, help="where the counts go")
    asked = parser.parse_args()
    if asked.every:
        cases = [case for name in asked.learner or learners.makers() for case in every(name)]
    else:
        cases = [drawn(asked.seed, asked.begin + number) for number in range(asked.count)]
        cases = [case for case in cases if not asked.learner or case[0] in asked.learner]
    function = f"{FUNCTION}_trusted" if asked.trust else FUNCTION
    found = summary(list(isolation.run(function, cases)), None if asked.every else asked.seed)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    for failure in found["failures"]:
        print(json.dumps(failure, indent=1))
    print(f"ensembles: {found['cases']:,} forged learners. {found['ended']}")
    sys.exit(1 if found["failures"] else 0)


if __name__ == "__main__":
    main()
