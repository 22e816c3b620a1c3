"""What must hold before a model is trained, so that the deployed one can be held against it."""

from collections.abc import Iterable
from dataclasses import replace

from dynsnap import gate
from dynsnap.errors import FileError, PlanError
from dynsnap.project import _records as records
from dynsnap.project._registry import Deployed, Generation, Registry
from dynsnap.project._rows import NEWEST, Cut, Rows, held_out
from dynsnap.project._settings import RETRAINS, Project
from dynsnap.project._trainers import make_trainer

_NEWEST = ("rows", NEWEST)  # the slice of the newest period


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
