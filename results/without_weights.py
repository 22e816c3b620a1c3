"""Copy a run folder without the learners themselves: what is measured takes their scores alone.

    python results/without_weights.py runs/cifar10-rolling runs/brought

Small enough for the way home from a GPU: `dynsnap run STUDY --out runs/brought --no-training` then
measures what the rounds say, and finds members that were trained on too.
"""

import argparse
import shutil
from pathlib import Path

from dynsnap.store import _container


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("target", type=Path, help="where the copy goes")
    settings = parser.parse_args()
    (settings.target / "rounds").mkdir(parents=True, exist_ok=True)
    for name in ("dynsnap.json", "study.toml", "about.json"):
        if (settings.run / name).is_file():
            shutil.copy(settings.run / name, settings.target)
    for path in sorted((settings.run / "rounds").glob("*.npz")):
        held = _container.read(path)
        kept = {name: held.bytes_of(name) for name in held.spans if not name.startswith("weights.")}
        facts = {name: value for name, value in held.facts.items() if name != "sha256"}
        _container.write(settings.target / "rounds" / path.name, kept, facts)


if __name__ == "__main__":
    main()
