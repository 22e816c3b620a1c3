"""What `dynsnap run --plan` shows: a study before it is run."""

from collections.abc import Iterator

from dynsnap import report, study
from dynsnap.cli._models import check_model
from dynsnap.errors import DataError
from dynsnap.report.document import Bullets, Cell, Column, Document, Table
from dynsnap.study import MethodWorkload, StudyPlan, Workload


def planned(plan: StudyPlan) -> Document:
    """The plan of a study as a report."""
    notes = list(check_model(plan))
    generations = study.growth_of(plan.data).generations
    try:
        stream, found = study.open_stream(plan.data)
    except DataError as error:
        notes.append(f"The data cannot be read yet: {error}")
    else:
        pairs = zip(stream.generations, stream.validation, strict=True)
        sizes = ", ".join(f"{len(rows) - int(held.sum()):,}" for rows, held in pairs)
        sets = ", ".join(f"{len(pool):,} ({name})" for name, pool in stream.evaluation.items())
        notes.append(f"Generations to train on: {sizes} inputs. Held out: {sets}.")
        notes += found
    ahead = study.workload(plan, generations=generations)
    numeric = ("m", "N", "epochs", "rounds", "κ")
    table = Table(
        name="plan",
        title="Certain for each generation; + where pruning may ask for more",
        columns=(
            Column("method"),
            *(Column(name, "number") for name in numeric),
            Column("β"),
            Column("schedule"),
        ),
        rows=tuple(_line(one) for one in ahead.methods),
    )
    together = Bullets.of(
        "All together",
        (
            f"{len(ahead.rounds)} rounds of training ({report.kappa(ahead.cost)} κ of "
            f"{plan.epochs} epochs) are certain: methods share rounds. "
            f"{generations} generations, "
            f"{report.said_replicates(plan.replicates, plan.repeated)}.",
            *_spared(ahead),
            *_rolling(plan),
            *_not_counted(plan),
            *notes,
        ),
    )
    return Document.of(plan.name, table, together)


def _spared(ahead: Workload) -> Iterator[str]:
    if ahead.spared:
        yield (
            f"{ahead.spared} more ({report.kappa(ahead.spared_cost)} κ) need no training: they are "
            "the first windows of longer rounds. The κ of a method above is what it costs on its "
            "own."
        )


def _rolling(plan: StudyPlan) -> Iterator[str]:
    names = ", ".join(one.name for one in plan.methods if one.rolling is not None)
    if names:
        yield (
            f"Of {names} the table shows the first generation. Later ones carry members over, and "
            "train for the rest alone."
        )


def _not_counted(plan: StudyPlan) -> Iterator[str]:
    names = ", ".join(one.name for one in plan.starting_from_members)
    if names:
        yield f"Not counted: rounds that start from members of the generation before ({names})."


def _line(one: MethodWorkload) -> tuple[Cell, ...]:
    plan, recipe = one.method.plan, one.method.recipe
    more = "+" if one.open_ended else ""
    best = "best" if plan.top == 1 else f"best {plan.top}"
    beta = best if plan.top else "mean" if plan.beta == "mean" else f"{plan.beta:g}"
    return (
        Cell(one.name, tone="strong"),
        Cell(str(plan.size)),
        Cell(str(recipe.snapshots)),
        Cell(str(recipe.epochs)),
        Cell(f"{one.rounds}{more}"),
        Cell(f"{report.kappa(one.cost)}{more}"),
        Cell(beta),
        Cell(recipe.schedule.kind),
    )
