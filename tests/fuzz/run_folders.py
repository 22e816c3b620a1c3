"""Broken run folders and published results: `python -m tests.fuzz.run_folders --count 100000`."""

import functools
import hashlib
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynsnap import study
from dynsnap.store import RunFolder
from dynsnap.testing import CentroidTrainer
from tests.cli.helpers import dynsnap
from tests.cli.studies import TINY
from tests.fuzz import harness, mutations
from tests.fuzz.harness import Attempt

MANIFEST = "manifest.json"


@functools.cache
def sound() -> dict[str, bytes]:
    """A run folder, `run/...`, and what was published of it, `published/...`, by name."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file = folder / "run" / "study.toml"
        file.parent.mkdir()
        file.write_text((DATA + TINY).replace("[methods]", SWEEP + "[methods]"))
        plan = study.read_study(file)
        stream, _ = study.open_stream(plan.data)
        with RunFolder(folder / "run", weights=False, training_epochs=plan.epochs) as store:
            study.run(
                plan,
                stream=stream,
                trainer=CentroidTrainer(stream),
                store=store,
                folder=folder / "run",
            )
        about = {
            "study": plan.name,
            "dynsnap": "0.1.0",
            "environment": {"python": "3.11"},
            "hardware": {"cores": 2, "processor": "a processor"},
            "generations": [len(rows) for rows in stream.generations],
            "training_rows": {name: [1, 2] for name in stream.pool.classes},
            "test_inputs": len(stream.evaluation["test"]),
            "replicates": plan.replicates,
            "rounds": 7,
            "rounds_missing": 0,
            "rounds_trained_last": 7,
            "training_seconds": 1.5,
            "wall_seconds_last": 2.5,
        }
        (folder / "run" / "about.json").write_text(json.dumps(about))
        dynsnap("publish", folder / "run", folder / "published")
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


DATA = """
[data]
source = "digits"
subsample = 0.3
"""
SWEEP = """
[[sweep]]
over = "members"
values = [1, 2]

"""


def case(rng: random.Random, folder: Path) -> Attempt:
    """A folder with one broken file, and a command that reads it."""
    root = rng.choice(("run", "run", "published"))
    names = [name for name in sound() if name.startswith(f"{root}/")]
    # Small files that people and scripts write count for as much as the many large ones.
    few = [name for name in names if name.count("/") == 1]
    bad = rng.choice(few if rng.random() < 0.7 else names)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(sound()[name])
    kind = _break(rng, folder / bad)
    there = folder / root
    commands: dict[str, list[Any]] = {
        "report": ["report", there, "--html", folder / "page.html"],
        "publish": ["publish", there, folder / "elsewhere"],
        "size": ["size", there, "--draws", 3, "--resamples", 3],
        "runs": ["runs", there],
        "show": ["runs", there, "show", Path(bad).stem],
        "measure": ["run", there / "study.toml", "--out", there, "--no-training", "-q"],
        "compare": [
            *("compare", there / "predictions/singlebase-average-g1.parquet"),
            *(there / "predictions/singlebase-average-g2.parquet", "--resamples", 3),
            *("--html", folder / "page.html"),
        ],
    }
    tried = ["report", "publish"] if root == "published" else list(commands)
    if "/rounds/" in bad:
        tried = ["report", "size", "runs", "show", "measure"]
    return Attempt(f"{Path(bad).suffix} {kind}", [commands[rng.choice(tried)]])


def _break(rng: random.Random, file: Path) -> str:
    content = file.read_bytes()
    kinds: dict[str, Callable[[random.Random, str], tuple[str, str]]] = {
        ".csv": mutations.in_csv,
        ".toml": mutations.in_toml,
        ".json": mutations.in_json,
    }
    if rng.random() < 0.1:
        file.unlink()
        if rng.random() < 0.3:
            file.mkdir()
            return "a folder instead"
        return "lost"
    if rng.random() < 0.25 or not content:
        kind, broken = mutations.in_bytes(rng, content)
    elif file.suffix in kinds:
        kind, text = kinds[file.suffix](rng, content.decode())
        broken = text.encode()
    elif file.suffix == ".npz":
        kind, broken = _other_parts(rng, content)
    else:
        kind, broken = mutations.in_bytes(rng, content)
    file.write_bytes(broken)
    return kind


def _other_parts(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """An archive with another part, or another manifest, whose checksums hold."""
    members = mutations.members_of(content)
    if MANIFEST not in members:
        return mutations.in_archive(rng, content)
    facts = json.loads(members[MANIFEST])
    if rng.random() < 0.4:
        _, broken = mutations.in_archive(rng, mutations.archive_of(members))
        members = mutations.members_of(broken)
        sums = {name: hashlib.sha256(part).hexdigest() for name, part in members.items()}
        sums.pop(MANIFEST, None)
        members[MANIFEST] = json.dumps({**facts, "sha256": sums}).encode()
        return "parts", mutations.archive_of(members)
    sums = facts.pop("sha256")
    facts = mutations.in_value(rng, facts)
    members[MANIFEST] = json.dumps({**facts, "sha256": sums}).encode()
    return "manifest", mutations.archive_of(members)


if __name__ == "__main__":
    harness.main("run_folders")
