"""Add the methods of another run to published results of the same study and seed.

    python results/add_methods.py runs/rolling-bagging results/cifar10-rolling-2022

For a study of which some rounds are trained later, or elsewhere. Both have to be measured on the
same inputs, and no method may be in both. `study.toml` is left as it is: say in it what was added.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from dynsnap import _files, predictions
from dynsnap.study import read_study

ADDED_UP = ("rounds", "training_seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("target", type=Path, help="published results")
    settings = parser.parse_args()
    plans = [read_study(one / "study.toml", stored=True) for one in (settings.run, settings.target)]
    if len({(plan.name, plan.seed) for plan in plans}) > 1:
        raise SystemExit("They are not of one study and seed: nothing was written.")
    with tempfile.TemporaryDirectory() as name:
        gather_predictions(settings.run, settings.target, Path(name))
        with _files.together():
            predictions.write_published(Path(name), settings.target, scored=lambda _: False)
            add_rows(settings.run, settings.target)
            add_times(settings.run, settings.target)


def gather_predictions(run: Path, target: Path, whole: Path) -> None:
    """The predictions of both as those of one run: to publish it checks that inputs are equal."""
    known = predictions.stored(target)
    added = {key.method for key in predictions.stored(run)}
    if both := sorted({key.method for key in known} & added):
        raise SystemExit(f"{', '.join(both)}: in both. Nothing was written.")
    shutil.copytree(run / "predictions", whole / "predictions")
    for key, address in known.items():
        place = whole / "predictions" / ("" if key.kind == "test" else key.kind)
        place.mkdir(exist_ok=True)
        file = f"{key.method}-{key.combination}-g{key.generation}-r{key.replicate}.parquet"
        predictions.write(predictions.read(address), place / file)


def add_rows(run: Path, target: Path) -> None:
    (head, *kept), (other, *more) = (
        (one / "table.csv").read_text().splitlines() for one in (target, run)
    )
    if head != other:
        raise SystemExit("The tables have different columns: nothing was written.")
    _files.write_text(target / "table.csv", "\n".join([head, *kept, *more, ""]))


def add_times(run: Path, target: Path) -> None:
    text = (target / "about.json").read_text()
    about, more = (json.loads(one) for one in (text, (run / "about.json").read_text()))
    if about["generations"] != more["generations"]:
        raise SystemExit("They have different generations: nothing was written.")
    for name in ADDED_UP:  # in the text, which keeps its lines
        text = text.replace(f'"{name}": {about[name]}', f'"{name}": {about[name] + more[name]}')
    _files.write_text(target / "about.json", text)


if __name__ == "__main__":
    main()
