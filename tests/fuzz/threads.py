"""Counts answers of estimators under many threads, and those that differ from the ones alone.

python -m tests.fuzz.threads --calls 50 --json counts/threads.json
"""

import argparse
import json
from pathlib import Path

from tests.estimator.test_threads import KINDS, made
from tests.threads import wrong_answers

THREADS = 8


def failures(kind: str, calls: int) -> int:
    """How many of the answers of one kind of estimator were not the bits that it gives alone."""
    estimator, pool = made(kind)
    parts = [pool.inputs[start : start + 3] for start in range(THREADS)]
    alone = [estimator.predict_proba(part).tobytes() for part in parts]
    wrong = wrong_answers(estimator, parts, alone, calls)
    after = [estimator.predict_proba(part).tobytes() for part in parts]
    return len(wrong) + sum(one != other for one, other in zip(after, alone, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.threads")
    parser.add_argument("--calls", type=int, default=50, help="of each thread")
    parser.add_argument("--json", type=Path, required=True, help="where the counts go")
    asked = parser.parse_args()
    wrong = {kind: failures(kind, asked.calls) for kind in KINDS}
    each = THREADS * asked.calls
    found = {
        "name": "threads",
        "cases": each * len(KINDS),
        "ended": {f"{kind}, {THREADS} threads": each for kind in KINDS},
        "failures": [{"kind": kind, "wrong": often} for kind, often in wrong.items() if often],
    }
    asked.json.write_text(json.dumps(found, indent=1) + "\n")
    raise SystemExit(1 if found["failures"] else 0)


if __name__ == "__main__":
    main()
