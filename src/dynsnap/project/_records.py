"""What a retrain leaves behind for good: plain facts in `retrains/NAME/result.json`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dynsnap import _files
from dynsnap._untrusted import (
    DIGEST,
    AnyOf,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
)
from dynsnap.comparison import Comparison, Estimate, Estimates
from dynsnap.errors import FileError
from dynsnap.project._registry import read_document
from dynsnap.project._rows import NEWEST
from dynsnap.project._settings import RETRAINS

PLAN, MEASURED, RESULT = "plan.json", "measured.json", "result.json"
Decision: TypeAlias = Literal["first", "promoted", "kept", "abandoned"]
Word: TypeAlias = Literal["passed", "failed", "unresolved", "none"]
EXIT = {"passed": 0, "none": 0, "failed": 1, "unresolved": 5}

_SHARES = MapOf(Number(0, 1), key=Text(longest=10_000, free=True))
_FORM = r"\d{4}-\d\d-\d\d(-\d+)?"
_NAME = Text(longest=60, form=_FORM)
_DAY = Text(longest=10, form=r"\d{4}-\d\d-\d\d")
_VALUES = MapOf(ListOf(AnyOf(Null(), Number()), 3, 3))
_PLAN = Table(
    {
        "schema": OneOf(("dynsnap.retrain-plan/1",)),
        "name": _NAME,
        "period": _DAY,
        "skipped": ListOf(_DAY),
        "deployed": AnyOf(Null(), Whole(1)),
        "project": Text(longest=64, form=DIGEST),
        "train": Whole(1),
        "evaluate": Whole(1),
        "newest": Whole(),
        "shares": _SHARES,
        "notes": ListOf(Text()),
    },
    optional={"end": AnyOf(Null(), _DAY), "files": MapOf(Text(longest=64, form=DIGEST))},
)
_MEASURED = Table(
    {
        "schema": OneOf(("dynsnap.retrain-measured/1",)),
        "generation": Whole(1),
        "verdict": OneOf(tuple(EXIT)),
        "held_out": _VALUES,
        "newest": _VALUES,
        "evaluated": Whole(),
        "about": Plain(),
        "notes": ListOf(Text()),
    }
)
_RESULT = Table(
    {
        "schema": OneOf(("dynsnap.retrain/1",)),
        "plan": _PLAN,
        "measured": AnyOf(Null(), _MEASURED),
        "decision": OneOf(("first", "promoted", "kept", "abandoned")),
        "reason": Text(),
        "finished": Text(longest=40),
    }
)
# Of a pair of generations, what a history shows.
_SHOWN = ("accuracy_change", "lost", "gained", "consistency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a retrain is about: settled once, then followed through any number of kills.

    Attributes:
        name: The retrain: its period, with a number where there was one before.
        period: The first day of the newest period.
        end: The first day after it. Weeks and months may begin on one day, and end on others; None
            in a plan of a time when a project had one cadence for good.
        skipped: Periods without rows since the retrain before.
        deployed: The generation that the new one is held against, None for the first.
        project: The SHA-256 of project.toml and of the rules.
        train: Rows that are learned from.
        evaluate: Held-out rows that are scored.
        newest: Labelled rows of the newest period.
        shares: Their class shares.
        notes: What a reader should know.
        files: The SHA-256 of the files with its rows, which a program may read and not change.
    """

    name: str
    period: str
    end: str | None = None
    skipped: tuple[str, ...] = ()
    deployed: int | None = None
    project: str = ""
    train: int = 0
    evaluate: int = 0
    newest: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What scoring the new generation and the deployed one gave.

    Attributes:
        generation: The new generation.
        verdict: Of the gate; "none" where nothing was deployed to hold it against.
        held_out: Metrics on all held-out rows: value and interval.
        newest: The same on those of the newest period.
        evaluated: How many rows both were scored on.
        about: What the trainer stated, such as seconds and cost.
    """

    generation: int
    verdict: Word
    held_out: Mapping[str, Sequence[float | None]]
    newest: Mapping[str, Sequence[float | None]]
    evaluated: int
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A finished retrain.

    Attributes:
        decision: "first" and "promoted" deployed the new generation, "kept" did not; "abandoned"
            was given up before its end.
        reason: Why, in a sentence.
    """

    plan: Plan
    measured: Measured | None
    decision: Decision
    reason: str
    finished: str

    @property
    def deployed(self) -> int | None:
        """The generation that was deployed when it ended."""
        if self.measured is not None and self.decision in ("first", "promoted"):
            return self.measured.generation
        return self.plan.deployed

    @property
    def exit_code(self) -> int:
        """What the command ends with, now and whenever it is asked again."""
        return 0 if self.measured is None else EXIT[self.measured.verdict]


def of_pair(found: Comparison) -> tuple[dict[str, list[float | None]], ...]:
    """The metrics of a comparison that are kept: on all rows, and on those of the newest period.

    The latter are empty where no row of the newest period is held out.
    """
    old, new = found.generations
    pair = found.pairs[0]
    held_out = {
        "accuracy_old": _triple(old.metrics["accuracy"]),
        "accuracy_new": _triple(new.metrics["accuracy"]),
        **_chosen(pair.metrics),
    }
    for group in pair.groups:
        if (group.kind, group.column, group.name) == ("slice", "rows", NEWEST):
            newest = {"accuracy_new": _triple(group.metrics["accuracy"]), **_chosen(group.metrics)}
            change = group.metrics["accuracy_change"].value
            newest["accuracy_old"] = [group.metrics["accuracy"].value - change, None, None]
            return held_out, newest
    return held_out, {}


def _chosen(metrics: Estimates) -> dict[str, list[float | None]]:
    return {name: _triple(metrics[name]) for name in _SHOWN if name in metrics}


def _triple(one: Estimate) -> list[float | None]:
    return [one.value, one.low, one.high]


def write_plan(folder: Path, plan: Plan) -> None:
    """Keep the plan of a retrain."""
    _files.write_text(folder / PLAN, _files.as_json(_facts(plan, "dynsnap.retrain-plan/1")))


def write_measured(folder: Path, measured: Measured) -> None:
    """Keep what a retrain measured."""
    _files.write_text(
        folder / MEASURED, _files.as_json(_facts(measured, "dynsnap.retrain-measured/1"))
    )


def write_result(folder: Path, result: Result) -> None:
    """Keep the result of a retrain: it is finished then."""
    measured = result.measured
    facts = {
        "schema": "dynsnap.retrain/1",
        "plan": _facts(result.plan, "dynsnap.retrain-plan/1"),
        "measured": None if measured is None else _facts(measured, "dynsnap.retrain-measured/1"),
        "decision": result.decision,
        "reason": result.reason,
        "finished": result.finished,
    }
    _files.write_text(folder / RESULT, _files.as_json(facts))


def _facts(one: Plan | Measured, schema: str) -> dict[str, Any]:
    own: dict[str, Any] = {"schema": schema}
    for key in one.__dataclass_fields__:
        value = getattr(one, key)
        own[key] = list(value) if isinstance(value, tuple) else value
    return own


def read_plan(folder: Path) -> Plan:
    """The plan of a retrain."""
    found = _read(folder, PLAN, _PLAN, "the plan of a retrain")
    return _named(_plan(found), folder)


def read_measured(folder: Path) -> Measured:
    """What a retrain measured."""
    return _measured(read_document(folder / MEASURED, _MEASURED, "what a retrain measured"))


def read_result(folder: Path) -> Result:
    """The result of a retrain."""
    found = _read(folder, RESULT, _RESULT, "the result of a retrain")
    measured = found["measured"]
    return Result(
        plan=_named(_plan(found["plan"]), folder),
        measured=None if measured is None else _measured(measured),
        decision=found["decision"],
        reason=found["reason"],
        finished=found["finished"],
    )


def _read(folder: Path, name: str, schema: Schema, what: str) -> dict[str, Any]:
    try:
        return read_document(folder / name, schema, what)
    except FileError as error:
        raise FileError(
            f"{error} Restore the file, or take the folder away: its retrain is in no history "
            "then, and what is deployed stays."
        ) from error


def _named(plan: Plan, folder: Path) -> Plan:
    if plan.name != folder.name:
        raise FileError(f"{folder} was changed: what it holds is of the retrain {plan.name}.")
    for day in filter(None, (plan.period, plan.end)):
        try:
            date.fromisoformat(day)
        except ValueError:
            raise FileError(f"{folder} was changed: {day} is no day of a calendar.") from None
    return plan


def _plan(found: dict[str, Any]) -> Plan:
    own = {key: value for key, value in found.items() if key != "schema"}
    return Plan(**{**own, "skipped": tuple(own["skipped"]), "notes": tuple(own["notes"])})


def _measured(found: dict[str, Any]) -> Measured:
    own = {key: value for key, value in found.items() if key != "schema"}
    return Measured(**{**own, "notes": tuple(own["notes"])})


def folders(project: Path) -> list[Path]:
    """The folders of all retrains, in the order in which they were begun."""
    place = project / RETRAINS
    if not place.is_dir():
        return []
    # Nothing else there is the loop's to read, or to tidy up.
    found = (each for each in place.iterdir() if re.fullmatch(_FORM, each.name))
    return sorted((each for each in found if each.is_dir() and not each.is_symlink()), key=_order)


def _order(folder: Path) -> tuple[str, int]:
    day, number = folder.name[:10], folder.name[11:]
    return day, int(number) if number.isdigit() else 1


def results(project: Path) -> Iterator[Result]:
    """All finished retrains, oldest first: by the end of the rows that they are about."""
    found = [read_result(each) for each in folders(project) if (each / RESULT).exists()]
    yield from sorted(found, key=lambda each: each.plan.end or each.plan.period)


def advice(history: Sequence[Result], *, last: int = 3) -> str:
    """Whether the cadence fits, from the last few retrains that were held against a deployed one.

    A retrain *mattered* if it was promoted and the whole interval of its change of accuracy, on
    held-out rows, is above zero. If none of the last three mattered, the cadence is too fast; if
    all did, it fits or is too slow; else nothing is advised.

    Example:
        >>> advice([])
        'Too few retrains to judge the cadence by: 0 of 3.'
    """
    judged = [each for each in history if each.measured and each.measured.verdict != "none"]
    if len(judged) < last:
        return f"Too few retrains to judge the cadence by: {len(judged)} of {last}."
    mattered = [_mattered(each) for each in judged[-last:]]
    if not any(mattered):
        changes = ", ".join(_change(each) for each in judged[-last:])
        return (
            f"The last {last} retrains changed nothing that matters (accuracy: {changes} points, "
            "none of them clearly above zero and deployed). Retrain less often, or when `dynsnap "
            "watch` or the class shares show a change."
        )
    if all(mattered):
        return f"Each of the last {last} retrains clearly gained accuracy: keep the cadence."
    return f"{sum(mattered)} of the last {last} retrains clearly gained accuracy: keep the cadence."


def _mattered(one: Result) -> bool:
    assert one.measured is not None
    low = one.measured.held_out.get("accuracy_change", (None, None, None))[1]
    return one.decision == "promoted" and low is not None and low > 0


def _change(one: Result) -> str:
    assert one.measured is not None
    value = one.measured.held_out.get("accuracy_change", (None,))[0]
    return "–" if value is None else f"{100 * value:+.2f}"


def unfinished(project: Path) -> Iterator[Path]:
    """The folders of retrains that were begun and have no result yet."""
    for folder in folders(project):
        if (folder / PLAN).exists() and not (folder / RESULT).exists():
            yield folder


def unfinished_of(project: Path, period: str) -> Path | None:
    """The folder of a retrain of this period that has no result yet."""
    return next((each for each in unfinished(project) if each.name[:10] == period), None)
