"""Add the methods of another run to published results of the same study and seed.

    python results/add_methods.py runs/rolling-bagging results/cifar10-rolling-2022

For a study of which some methods are trained later. What both have, such as the noise floor, stays
as it is published; a noise floor is never added, since it was measured with the run's own single
learners. Both have to be measured on the same inputs, by the same device, as often. The file
`study.toml` is not changed: say in it what was added.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynsnap import _files, predictions
from dynsnap.errors import DynSnapError
from dynsnap.study import NEVER_RETRAIN, NOISE_FLOOR, read_study

NEEDED = ("study.toml", "about.json", "table.csv")
STALE = ("scores.parquet", "replicates.csv")  # of the published methods alone
ADDED_UP = ("rounds", "training_seconds", "training_inputs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("target", type=Path, help="published results")
    settings = parser.parse_args()
    try:
        run, target = Part.read(settings.run), Part.read(settings.target)
        added = new_methods(run, target)
        with tempfile.TemporaryDirectory() as name:
            gather_predictions(run, target, added, Path(name))
            with _files.together():
                predictions.write_published(Path(name), target.folder, scored=lambda _: False)
                _files.write_text(target.folder / "table.csv", with_rows(run, target, added))
                _files.write_text(target.folder / "about.json", with_times(run, target))
    except (DynSnapError, OSError) as error:
        raise SystemExit(f"{error}\nNothing was written.") from error
    print(f"Added to {target.folder}: {', '.join(added)}.")


@dataclass(frozen=True, slots=True)
class Part:
    """One of the two."""

    folder: Path
    name: str
    seed: int
    about: Mapping[str, Any]
    rows: tuple[str, ...]
    keys: Mapping[predictions.PredictionKey, str]

    @classmethod
    def read(cls, folder: Path) -> "Part":
        if missing := [name for name in NEEDED if not (folder / name).is_file()]:
            raise SystemExit(f"{folder} has no {missing[0]}. Nothing was written.")
        plan = read_study(folder / "study.toml", stored=True)
        about = json.loads((folder / "about.json").read_text())
        rows = tuple((folder / "table.csv").read_text().splitlines())
        return cls(folder, plan.name, plan.seed, about, rows, predictions.stored(folder))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.partition(",")[0] for row in self.rows[1:]))

    @property
    def combinations(self) -> list[str]:
        return sorted({key.combination for key in self.keys})

    @property
    def alike(self) -> Mapping[str, Any]:
        """What has to be the same in both."""
        about = self.about
        return {
            "study": self.name,
            "seed": self.seed,
            "generations": about["generations"],
            "replicates": about["replicates"],
            "combinations": self.combinations,
            "device": about["environment"].get("device"),
            "columns": self.rows[0],
        }


def new_methods(run: Part, target: Part) -> list[str]:
    """The methods that only the run has, if they can be added."""
    for what, mine in run.alike.items():
        if mine != (theirs := target.alike[what]):
            raise SystemExit(f"Another {what}: {mine} and {theirs}. Nothing was written.")
    for name in STALE:
        if (target.folder / name).is_file():
            raise SystemExit(
                f"{target.folder / name} would lack the new methods. Publish one run of all."
            )
    added = [one for one in run.methods if one not in (*target.methods, NOISE_FLOOR)]
    if not added:
        raise SystemExit(f"{run.folder} has no method that {target.folder} lacks.")
    whole = len(run.about["generations"]) * run.about["replicates"] * len(run.combinations)
    for part, methods in ((run, added), (target, target.methods)):
        test = [key.method for key in part.keys if key.kind == "test"]
        for method in methods:
            found = test.count(method)
            if found != whole and not method.startswith((NEVER_RETRAIN, NOISE_FLOOR)):
                raise SystemExit(
                    f"{part.folder} has {found} of the {whole} predictions of {method} on test "
                    "inputs. Nothing was written."
                )
    return added


def gather_predictions(run: Part, target: Part, added: list[str], whole: Path) -> None:
    """The predictions of both as those of one run: to publish it checks that inputs are equal."""
    kept = {key: at for key, at in run.keys.items() if key.method in added}
    for key, address in {**target.keys, **kept}.items():
        place = whole / "predictions" / ("" if key.kind == "test" else key.kind)
        place.mkdir(parents=True, exist_ok=True)
        file = f"{key.method}-{key.combination}-g{key.generation}-r{key.replicate}.parquet"
        predictions.write(predictions.read(address), place / file)


def with_rows(run: Part, target: Part, added: list[str]) -> str:
    more = [row for row in run.rows[1:] if row.partition(",")[0] in added]
    return "\n".join([*target.rows, *more, ""])


def with_times(run: Part, target: Part) -> str:
    """What training took, in the text of about.json, which keeps its lines."""
    sums = {name: target.about[name] + run.about[name] for name in ADDED_UP if name in target.about}
    if "inputs_per_second" in target.about:
        sums["inputs_per_second"] = sums["training_inputs"] / sums["training_seconds"]
    text = (target.folder / "about.json").read_text()
    for name, value in sums.items():
        text, often = re.subn(rf'("{name}"\s*:\s*)[^,\s}}]+', rf"\g<1>{value}", text)
        assert often == 1, name
    return text


if __name__ == "__main__":
    main()
