"""Add the methods of another run to published results of the same study and seed.

    python results/add_methods.py runs/rolling-bagging results/cifar10-rolling-2022

For a study of which some methods are trained later. What both have stays as it is published. What
is measured with a method, such as the noise floor or a kept first generation, comes with it or not
at all. Both have to be of the same recipe, measured on the same inputs, by the same device. The
file `study.toml` is not changed: say in it what was added.
"""

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import _files, predictions
from dynsnap.errors import DynSnapError, InputError
from dynsnap.study import (
    NOISE_FLOOR,
    MethodLabels,
    Row,
    StudyPlan,
    kept_by,
    read_study,
    read_table,
)

NEEDED = ("study.toml", "about.json", "table.csv")
STALE = ("scores.parquet", "replicates.csv")  # of the published methods alone
ADDED_UP = ("rounds", "training_seconds", "training_inputs")
HELD = ("accuracy", "consistency", "correct_consistency")  # against the labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("target", type=Path, help="published results")
    settings = parser.parse_args()
    try:
        run, target = Part.read(settings.run), Part.read(settings.target)
        added = new_methods(run, target)
        usual = most_predictions(run, target)
        check_whole(run, added, usual)
        check_whole(target, target.methods, usual)
        with tempfile.TemporaryDirectory() as name:
            gather_predictions(run, target, added, Path(name))
            with _files.together():
                predictions.write_published(Path(name), target.folder, scored=lambda _: False)
                _files.write_text(target.folder / "table.csv", with_rows(run, target, added))
                _files.write_text(target.folder / "about.json", with_times(run, target))
    except (DynSnapError, OSError, ValueError) as error:
        raise SystemExit(f"{error}\nNothing was written.") from error
    print(f"Added to {target.folder}: {', '.join(added)}.")


@dataclass(frozen=True, slots=True)
class Part:
    """One of the two."""

    folder: Path
    plan: StudyPlan
    about: Mapping[str, Any]
    lines: tuple[str, ...]
    rows: tuple[Row, ...]
    keys: Mapping[predictions.PredictionKey, str]

    @classmethod
    def read(cls, folder: Path) -> "Part":
        if missing := [name for name in NEEDED if not (folder / name).is_file()]:
            raise InputError(f"{folder} has no {missing[0]}.")
        lines = tuple((folder / "table.csv").read_text().splitlines())
        rows = tuple(read_table(folder / "table.csv"))
        if len({(row.method, row.combination, row.metric) for row in rows}) < len(rows):
            raise InputError(f"{folder / 'table.csv'} has a row twice.")
        plan = read_study(folder / "study.toml", stored=True)
        about = _about(folder / "about.json")
        return cls(folder, plan, about, lines, rows, predictions.stored(folder))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.method for row in self.rows))

    def measured_with(self, method: str) -> str:
        """The method that has to be there for this one: itself, or the one that it is about."""
        baseline = self.plan.baseline.name
        return baseline if method == NOISE_FLOOR else kept_by(method, baseline) or method

    @property
    def combinations(self) -> list[str]:
        return sorted({key.combination for key in self.keys})

    @property
    def kinds(self) -> list[str]:
        """The kinds of inputs that methods are measured on."""
        return sorted({key.kind for key in self.keys} - {"twin"})

    @property
    def found(self) -> Counter[tuple[str, str]]:
        """How many predictions there are, by method and kind of inputs."""
        return Counter((key.method, key.kind) for key in self.keys)

    @property
    def alike(self) -> Mapping[str, Any]:
        """What has to be the same in both."""
        plan = self.plan
        return {
            "study": plan.name,
            "seed": plan.seed,
            "data": replace(plan.data, path=None),
            "model": dict(plan.model),
            "training": (plan.epochs, dict(plan.training)),
            "combinations": self.combinations,
            "kinds of inputs": self.kinds,
            "generations": self.about["generations"],
            "replicates": plan.replicates,
            "device": self.about["environment"].get("device"),
            "columns": self.lines[0],
        }


def _about(path: Path) -> Mapping[str, Any]:
    """What is told of a run, with numbers where they are added up."""
    about = json.loads(path.read_text())
    wanted: dict[str, type | tuple[type, ...]] = dict.fromkeys(ADDED_UP, (int, float))
    for name, kind in (wanted | {"generations": list, "environment": dict}).items():
        if not isinstance(about, dict) or not isinstance(about.get(name), kind):
            raise InputError(f"{path} has no {name} as runs tell it.")
    return dict(about)


def new_methods(run: Part, target: Part) -> list[str]:
    """The methods that only the run has, if they can be added."""
    for what, mine in run.alike.items():
        if mine != (theirs := target.alike[what]):
            raise InputError(f"Another {what}: {mine} and {theirs}.")
    plans = [{one.name: one for one in part.plan.methods} for part in (run, target)]
    for name in plans[0].keys() & plans[1].keys() & {*target.methods}:
        if plans[0][name] != plans[1][name]:
            raise InputError(f"Another {name} in both study files.")
    for name in STALE:
        if (target.folder / name).is_file():
            raise InputError(
                f"{target.folder / name} would lack the new methods. Publish one run of all."
            )
    added = [one for one in run.methods if run.measured_with(one) not in target.methods]
    if not added:
        raise InputError(f"{run.folder} has no method that {target.folder} lacks.")
    return added


def most_predictions(*parts: Part) -> dict[str, float]:
    """The most predictions of a method and replicate, for each kind of inputs."""
    return {
        kind: max(
            often / _often(part, method)
            for part in parts
            for (method, other), often in part.found.items()
            if other == kind
        )
        for kind in parts[0].kinds
    }


def check_whole(part: Part, methods: Sequence[str], usual: Mapping[str, float]) -> None:
    """Refuse a method that lacks predictions, or whose table is not of these predictions."""
    own = [one for one in methods if part.measured_with(one) == one]
    found = part.found
    for kind, most in usual.items():
        for method in own:
            whole = round(most * _often(part, method))
            if found[method, kind] != whole:
                raise InputError(
                    f"{part.folder} has {found[method, kind]} of the {whole} predictions of "
                    f"{method} on {kind} inputs."
                )
    told = {(row.method, row.combination, row.metric): row.value for row in part.rows}
    for how in part.combinations:
        labels = MethodLabels.read(part.folder, combination=how)
        if labels is None:
            raise InputError(f"{part.folder} has no true classes.")
        for method in own:
            for metric in HELD:
                each = [one.mean() for one in labels.values(method, metric).values()]
                found_there = float(np.mean(each))
                value = told.get((method, how, metric))
                if value is None or not abs(found_there - value) <= 1e-9:  # nor NaN
                    raise InputError(
                        f"{part.folder}/table.csv has the {metric} {value} of {method} by {how}, "
                        f"and its predictions have {found_there}."
                    )


def _often(part: Part, method: str) -> int:
    return part.plan.repeated.get(method, part.plan.replicates)


def gather_predictions(run: Part, target: Part, added: list[str], whole: Path) -> None:
    """The predictions of both as those of one run: to publish it checks that inputs are equal."""
    kept = {
        key: at
        for key, at in run.keys.items()
        if key.method in added and (key.kind != "twin" or NOISE_FLOOR in added)
    }
    for key, address in {**target.keys, **kept}.items():
        place = whole / "predictions" / ("" if key.kind == "test" else key.kind)
        place.mkdir(parents=True, exist_ok=True)
        file = f"{key.method}-{key.combination}-g{key.generation}-r{key.replicate}.parquet"
        predictions.write(predictions.read(address), place / file)


def with_rows(run: Part, target: Part, added: list[str]) -> str:
    more = [line for line in run.lines[1:] if line.partition(",")[0] in added]
    return "\n".join([*target.lines, *more, ""])


def with_times(run: Part, target: Part) -> str:
    """What training took, in the text of about.json, which keeps its lines."""
    sums = {name: target.about[name] + run.about[name] for name in ADDED_UP}
    if "inputs_per_second" in target.about:
        sums["inputs_per_second"] = sums["training_inputs"] / sums["training_seconds"]
    text = (target.folder / "about.json").read_text()
    for name, value in sums.items():
        text, often = re.subn(rf'("{name}"\s*:\s*)[^,\s}}]+', rf"\g<1>{value}", text)
        if often != 1:
            raise InputError(f"{target.folder / 'about.json'} has {often} of {name}.")
    return text


if __name__ == "__main__":
    main()
