"""Broken files of rules: `python -m tests.fuzz.rules --count 100000`."""

import random
from pathlib import Path

from tests.cli.helpers import NEW, OLD
from tests.fuzz import harness, mutations
from tests.fuzz.harness import Attempt

SOUND = """
[[rule]]
metric = "correct_consistency"
at_least = 0.85

[[rule]]
metric = "lost"
at_most = 0.04
on = "bound"
confidence = 0.9

[[rule]]
name = "no digit is forgotten"
metric = "lost"
at_most = 0.10
class = "*"
min_count = 30

[[rule]]
metric = "accuracy"
at_least = 0.85
slice = {column = "ink", value = "*"}

[[rule]]
metric = "top_2_accuracy"
at_least = 0.5
class = "3"
"""


def case(rng: random.Random, folder: Path) -> Attempt:
    """One file of rules, broken."""
    file = folder / "gate.toml"
    if rng.random() < 0.25:
        kind, broken = mutations.in_bytes(rng, SOUND.encode())
        file.write_bytes(broken)
    else:
        kind, text = mutations.in_toml(rng, SOUND)
        file.write_text(text)
    return Attempt(kind, [["gate", OLD, NEW, "--rules", file, "--resamples", 5, "--json", "-"]])


if __name__ == "__main__":
    harness.main("rules")
