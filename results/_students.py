"""What `dynsnap distill --json` wrote of a study, over the replicates of all its seeds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _seeds import Part, folders, plan_of, pooled
from dynsnap.errors import InputError
from dynsnap.report.build.distill import SCHEMA
from dynsnap.study import Row

# What two seeds must have in common. The name of the study is none of it: that may have changed.
_SETTINGS = (
    "teacher",
    "student",
    "combination",
    "epochs",
    "weight",
    "temperature",
    "second_teacher",
    "share",
    "generations",
)


@dataclass(frozen=True, slots=True)
class Learner:
    """A teacher, a student, its control or the single learner.

    Attributes:
        networks: How many networks score one input.
        cost: Trainings from scratch (κ) of one generation, a student's teacher included.
        teacher: The method that teaches it, if it is a student.
        metrics: Its metrics.
    """

    networks: int
    cost: float
    teacher: str | None
    metrics: dict[str, Row]


def learners_of(folder: Path) -> dict[str, Learner]:
    """Every learner of all files and seeds, by name; nothing if the study was not distilled.

    Raises:
        InputError: A seed has distilled other students than the first, or files are of another
            number of replicates than the study: its rows would be means of something else.
    """
    parts: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    found = {one: _files(one) for one in folders(folder)}
    wanted = _alike(found[folder])
    for one, files in found.items():
        if _alike(files) != wanted:
            raise InputError(
                f"{folder.name} and {one.name} have not distilled the same students in one way. "
                f"Run the commands of {folder.name} for both, or give one folder another name."
            )
        plan = plan_of(one)
        for name, told in files.items():
            if plan is not None and told["replicates"] != plan.replicates:
                raise InputError(
                    f"{one.name}/{name} is of {told['replicates']} replicates, and the study has "
                    f"{plan.replicates}. Distil all of them."
                )
        # Each file has the teacher too: the first one counts.
        seen: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for told in files.values():
            for learner in told["learners"]:
                seen.setdefault(learner["name"], (learner, told))
        for name, part in seen.items():
            parts.setdefault(name, []).append(part)
    return {name: _together(seeds) for name, seeds in parts.items()}


def _files(folder: Path) -> dict[str, Any]:
    return {path.name: _read(path) for path in sorted(folder.glob("distill*.json"))}


def _read(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(
            f"{path} is no JSON: {error}. Run `dynsnap distill --json` again."
        ) from None
    schema = told.get("schema") if isinstance(told, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path} is not what `dynsnap distill --json` writes: its schema is {schema!r} and not "
            f"{SCHEMA!r}. Run that command again."
        )
    return dict(told)


def _alike(files: Mapping[str, Any]) -> dict[str, Any]:
    """What the files of two seeds must have in common: settings, learners, what is measured."""
    return {
        name: (
            [told.get(key) for key in _SETTINGS],
            {
                learner["name"]: (learner["networks"], set(_measured(learner)))
                for learner in told["learners"]
            },
        )
        for name, told in files.items()
    }


def _measured(learner: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a learner that have a value."""
    return {name: row for name, row in learner["metrics"].items() if row["value"] is not None}


def _together(seeds: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Learner:
    """One learner of several seeds, each with what its file tells of all learners."""
    learner, first = seeds[0]
    teacher = first["teacher"] if learner["name"] == first.get("student") else None
    metrics = {
        metric: pooled(
            [
                Part(
                    Row(
                        method=one["name"],
                        combination=told["combination"],
                        metric=metric,
                        value=one["metrics"][metric]["value"],
                        cost=one["cost"],
                        spread=one["metrics"][metric]["spread"],
                    ),
                    told["replicates"],
                )
                for one, told in seeds
            ]
        )
        for metric in _measured(learner)
    }
    return Learner(learner["networks"], metrics["accuracy"].cost, teacher, metrics)
