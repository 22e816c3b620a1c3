"""What must hold before a model is trained, so that the deployed one can be held against it."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dynsnap import gate
from dynsnap.errors import FileError, PlanError
from dynsnap.project import _records as records
from dynsnap.project._registry import Deployed, Generation, Registry
from dynsnap.project._rows import EARLIER, NEWEST, Cut, Rows, held_out
from dynsnap.project._settings import RETRAINS, Project
from dynsnap.project._trainers import make_trainer

_COLUMN = "rows"  # the only column of slices that a project has
_NEWEST = (_COLUMN, NEWEST)  # the slice of the newest period


def find_deployed(project: Project, registry: Registry) -> Deployed | None:
    """The pointer to the deployed generation, None before the first was deployed.

    Raises:
        FileError: It is gone: a retrain would deploy its model as the first, without a gate.
    """
    pointer = registry.deployed()
    if pointer is None:
        for each in records.results(project.folder):
            if each.decision in ("first", "promoted"):
                raise FileError(
                    f"Nothing is deployed, but the retrain {each.plan.name} deployed generation "
                    f"{each.deployed}: the registry, or its pointer, is gone. Restore it, or "
                    "deploy a generation with: dynsnap project promote PROJECT GENERATION. To "
                    f"begin anew, remove {project.folder / RETRAINS}."
                )
    return pointer


def unseen_rows(
    project: Project, made: Cut, rows: Rows, deployed: Generation | None
) -> tuple[Cut, Rows]:
    """Score only rows that were held out when the deployed generation was trained, too.

    The ids and `test_size` decide which are held out, and both are settings.
    """
    if deployed is None:
        return made, rows
    about, data = deployed.about, project.data
    if about.get("id", data.id) != data.id:
        raise PlanError(
            f"[data]: `id` is {data.id!r}, and was {about['id']!r} when generation "
            f"{deployed.number} was trained. Ids decide which rows are held out, so it has seen "
            "some of those. Name the same column, or begin a new project."
        )
    share = least_share(deployed, data.test_size)
    if share == data.test_size:
        return made, rows
    note = (
        f"`test_size` was {share:g} for generation {deployed.number} or one before it: of the rows "
        "held out now, only those are scored that were held out then."
    )
    scored = made.evaluate & held_out(rows.ids, share)
    return replace(made, evaluate=scored), replace(rows, notes=(*rows.notes, note))


def least_share(deployed: Generation | None, share: float) -> float:
    """The least share of rows that a generation, and those that it goes on from, held out."""
    known = None if deployed is None else deployed.about.get("test_size")
    return min(share, known) if isinstance(known, float) else share


def refuse_unscored(
    project: Project, made: Cut, deployed: Generation | None, rules: Iterable[gate.Rule]
) -> None:
    """Raise where a rule is about rows that the deployed generation cannot score."""
    if deployed is None or make_trainer(project).can_predict:
        return
    about = deployed.about
    if (about.get("period"), about.get("end", made.end)) == (made.period, made.end):
        return  # --again: it scored rows of that period when it was trained
    fresh = [rule for rule in rules if rule.slice == _NEWEST]
    if fresh:
        raise PlanError(
            f"Rule {fresh[0].title!r} is about rows of the newest {project.data.cadence}, which "
            f"generation {deployed.number} has not scored. Set `predict` in [retrain], a program "
            "that scores rows with a model, or remove the rule."
        )


def refuse_few(
    project: Project,
    made: Cut,
    rows: Rows,
    deployed: Generation | None,
    rules: Iterable[gate.Rule],
) -> None:
    """Raise where a rule is about fewer inputs than it asks for, whatever will be predicted.

    The gate counts the same rows, or fewer: those that both generations have scored. Rules whose
    inputs are not known before, such as those of other columns, are left to it.
    """
    if deployed is None:
        return
    for rule in rules:
        fewest = project.gate.min_count if rule.min_count is None else rule.min_count
        if rule.for_every and rule.min_count is None:
            parts = {"all inputs": int(made.evaluate.sum())}  # small parts are judged, too
        else:
            parts = _scored(rule, made, rows)
        where, most = max(parts.items(), key=lambda part: part[1], default=("", fewest))
        if most >= fewest:
            continue
        raise PlanError(
            f"Rule {rule.title!r} cannot be judged, so nothing is trained: {where} has "
            f"{most:,} held-out rows, fewer than {fewest:,} (min_count). Lower `min_count` of the "
            f"rule or in [gate], set a longer `cadence`, or {_more_held_out(project, deployed)}."
        )


def _scored(rule: gate.Rule, made: Cut, rows: Rows) -> dict[str, int]:
    """How many rows are scored of each part that a rule is about; empty where it is not known."""
    if rule.slice is not None:
        column, wanted = rule.slice
        if column != _COLUMN:
            return {}
        newest = made.newest[made.evaluate]
        counts = {NEWEST: int(newest.sum()), EARLIER: int((~newest).sum())}
        start = f"{column} = "
    elif rule.class_name is not None:
        wanted, start = rule.class_name, "class "
        names, sizes = np.unique(rows.labels[made.evaluate].astype(str), return_counts=True)
        counts = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    else:
        return {"all inputs": int(made.evaluate.sum())}
    if wanted != gate.EVERY:
        counts = {wanted: counts.get(wanted, 0)}
    return {start + name: count for name, count in counts.items()}


def _more_held_out(project: Project, deployed: Generation) -> str:
    """The way to more held-out rows: none is one that a generation was trained on."""
    share = least_share(deployed, 1.0)
    if share <= project.data.test_size:
        return "begin a new project with a larger `test_size`"
    return "raise `test_size`" + (f", to {share:g} at most" if share < 1 else "")
