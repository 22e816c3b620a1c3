"""Broken study files: `python -m tests.fuzz.studies --count 100000`. Nothing is trained."""

import random
import re
from pathlib import Path

from tests.cli.studies import SHIPPED
from tests.fuzz import harness, mutations
from tests.fuzz.harness import Attempt

DOCS = Path(__file__).parents[2] / "docs/studies.md"
# Studies whose data comes with scikit-learn, and the one in the docs, which has nearly every key.
SOUND = [
    *(path.read_text() for name, path in SHIPPED.items() if name.startswith("digits")),
    re.search(r"```toml\n(\[study\].*?)```", DOCS.read_text(), re.DOTALL)[1],
]


def case(rng: random.Random, folder: Path) -> Attempt:
    """One study file, broken."""
    file, sound = folder / "study.toml", rng.choice(SOUND)
    if rng.random() < 0.2:
        kind, broken = mutations.in_bytes(rng, sound.encode())
        file.write_bytes(broken)
    else:
        kind, text = mutations.in_toml(rng, sound)
        file.write_text(text)
    return Attempt(kind, [["run", file, "--plan"]])


if __name__ == "__main__":
    harness.main("studies")
