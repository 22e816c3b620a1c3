"""All retrains of a project as one page."""

from collections.abc import Sequence

from dynsnap import _files, report
from dynsnap.project import _records as records
from dynsnap.project._records import Result
from dynsnap.project._retrain import open_registry
from dynsnap.project._rows import drift
from dynsnap.project._settings import Project
from dynsnap.report import HistoryFindings, RetrainRow

PAGE = "history.html"


def history_findings(project: Project) -> HistoryFindings:
    """What the page of all retrains shows."""
    found = [each for each in records.results(project.folder) if each.measured is not None]
    pointer = open_registry(project).deployed()
    moves = () if pointer is None else pointer.moves
    by_hand = tuple(
        f"{move.date}: {move.way} to generation {move.to}. {move.why}".strip()
        for move in moves
        if move.way != "retrain"
    )
    return HistoryFindings(
        name=project.name,
        cadence=str(project.data.cadence),
        deployed=None if pointer is None else pointer.generation,
        rows=tuple(_rows(found)),
        advice=records.advice(found),
        by_hand=by_hand,
    )


def _rows(found: Sequence[Result]) -> list[RetrainRow]:
    made: list[RetrainRow] = []
    made_in: dict[int, dict[str, float]] = {}  # class shares of the week of each generation
    for each in found:
        assert each.measured is not None
        plan, measured = each.plan, each.measured
        shares = dict(plan.shares)
        before = None if plan.deployed is None else made_in.get(plan.deployed)
        made.append(
            RetrainRow(
                period=plan.period,
                name=plan.name,
                generation=measured.generation,
                held_against=plan.deployed,
                decision=each.decision,
                verdict=measured.verdict,
                train=plan.train,
                evaluated=measured.evaluated,
                held_out=measured.held_out,
                newest=measured.newest,
                shares=shares,
                drift=None if before is None else drift(before, shares),
                seconds=_number(measured.about.get("seconds")),
                cost=_number(measured.about.get("cost")),
                skipped=plan.skipped,
            )
        )
        made_in[measured.generation] = shares
    return made


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def write_history(project: Project) -> None:
    """Write the page of all retrains to the project's folder."""
    document = report.history_document(history_findings(project))
    _files.write_text(project.folder / PAGE, report.to_html(document))
