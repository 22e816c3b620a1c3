"""`dynsnap run`: a study from a file, or with `--plan` what it would train."""

from collections.abc import Iterator
from pathlib import Path

import click

from dynsnap import data, report, study
from dynsnap.cli import _execute
from dynsnap.cli._execute import EngineChoice
from dynsnap.cli._models import check_model
from dynsnap.cli._options import Number
from dynsnap.cli._outputs import show
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.cli._report import held_in
from dynsnap.errors import DataError, some_of
from dynsnap.report.document import Bullets, Cell, Column, Document, Table
from dynsnap.study import MethodWorkload, StudyPlan, StudyResult, Workload, missing_rounds


def planned(plan: StudyPlan, *, speed: float | None = None) -> Document:
    """The plan of a study as a report.

    Args:
        plan: The study.
        speed: Inputs that the device trains on in a second, all rounds together.
    """
    notes = list(check_model(plan))
    try:
        found = study.load_data(plan.data)
    except DataError as error:
        ahead, extent = _without_data(plan)
        notes.append(f"The data cannot be read yet: {error}")
        if speed is not None:
            notes.append("How many minutes the training takes depends on the data.")
    else:
        stream, read = study.cut_stream(plan.data, found)
        ahead = study.workload(plan, generations=len(stream.generations))
        extent = _extent(plan, ahead, len(stream.generations))
        sizes = ", ".join(f"{each:,}" for each in data.training_rows(stream).sum(axis=1).tolist())
        sets = ", ".join(f"{len(pool):,} ({name})" for name, pool in stream.evaluation.items())
        notes.append(f"Generations to train on: {sizes} inputs. Held out: {sets}.")
        notes += read
        notes += _time(study.trained_inputs(ahead.rounds, stream), speed)
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
        (*extent, *_rolling(plan), *_not_counted(plan), *notes),
    )
    return Document.of(plan.name, table, together)


def _extent(plan: StudyPlan, ahead: Workload, generations: int) -> tuple[str, ...]:
    """How much is certain to be trained for so many generations."""
    often = report.said_replicates(plan.replicates, plan.repeated)
    return (f"{_certain(plan, ahead)} {generations} generations, {often}.", *_spared(ahead))


def _certain(plan: StudyPlan, ahead: Workload) -> str:
    return (
        f"{len(ahead.rounds)} rounds of training ({report.kappa(ahead.cost)} κ of "
        f"{plan.epochs} epochs) are certain: methods share rounds."
    )


def _without_data(plan: StudyPlan) -> tuple[Workload, tuple[str, ...]]:
    """What a study would train whose data cannot be read, and how much of it is certain."""
    growth = study.growth_of(plan.data)
    if not isinstance(growth, data.TimeGrowth):
        ahead = study.workload(plan, generations=growth.generations)
        return ahead, _extent(plan, ahead, growth.generations)
    often = report.said_replicates(plan.replicates, plan.repeated)
    if growth.retrains is None:
        return study.workload(plan, generations=1), (
            "The data decides how many generations there are, and so how many rounds are "
            f"trained. {often}.",
        )
    ahead = study.workload(plan, generations=growth.retrains)
    return ahead, (
        f"At most {growth.retrains} generations, {often}: the data may have fewer. If it has all, "
        f"{_certain(plan, ahead)}",
        *_spared(ahead),
    )


def _time(inputs: int, speed: float | None) -> Iterator[str]:
    """How many inputs are trained on, and how long that takes at a measured speed."""
    if speed is None:
        yield (
            f"{inputs:,} inputs are trained on, epoch by epoch. With a measured "
            "--inputs-per-second this is minutes."
        )
    else:
        yield (
            f"{inputs:,} inputs at {speed:,.0f} a second: {inputs / speed / 60:,.1f} minutes of "
            "training, without building networks, validation and scoring."
        )


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


_NAMED = 12  # missing rounds that are named


@click.command()
@click.argument("study_file", metavar="STUDY")
@_execute.out_option
@_execute.data_option
@_execute.engine_option
@_execute.budget_option
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be trained, and stop.")
@click.option(
    "--inputs-per-second",
    "speed",
    type=Number(min=0, min_open=True, max=1e12),
    metavar="NUMBER",
    help="With --plan: what the device was measured to train on. Tells the minutes ahead.",
)
@click.option(
    "--no-training",
    is_flag=True,
    help="Measure what the rounds in the folder allow, wherever they were trained.",
)
@click.option(
    "--from-anywhere",
    is_flag=True,
    help="Go on with rounds that another machine trained, and train the missing ones here.",
)
@_execute.quiet_option
def run(
    study_file: str,
    out: Path | None,
    data_path: Path | None,
    engine: EngineChoice,
    budget: float | None,
    only_plan: bool,
    speed: float | None,
    no_training: bool,
    from_anywhere: bool,
    quiet: bool,
) -> None:
    """Train and compare the methods, generations, sweeps and ablations of a STUDY file.

    STUDY is a TOML file, or the name of one that comes with dynsnap (digits). Stored
    rounds are not trained again, so the same command resumes a study that was stopped, killed or
    edited.

    \b
        dynsnap run digits
        dynsnap run cifar10-paper --data cifar-10-batches-py --plan
        dynsnap run my-study.toml --out runs/mine --time-budget 540
        dynsnap run my-study.toml --out runs/from-the-cluster --no-training
    """
    if speed is not None and not only_plan:
        raise click.UsageError("--inputs-per-second belongs to --plan, which is missing.")
    file, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    if only_plan:
        show(planned(plan, speed=speed))
        return
    with (
        ProgressMonitor(budget=budget, quiet=quiet) as watch,
        watch.going_on(_execute.same_command(), f"What was done is in {folder}."),
    ):
        result = _execute.execute(
            plan,
            file,
            folder,
            engine=engine,
            watch=watch,
            training=not no_training,
            anywhere=from_anywhere,
        )
    notes = [
        f"{result.rounds} rounds ({result.trained} trained now), {_speed(result)}. "
        f"{report.said_replicates(plan.replicates, plan.repeated)}.",
        f"Everything is in {folder}: table.csv, predictions/, rounds/.",
        *_missing(plan, result),
    ]
    found = report.StudyFindings(
        name=plan.name,
        rows=result.rows,
        sweeps=result.sweeps,
        plan=plan,
        held=held_in(folder, result.rows, plan, notes),
        notes=notes,
    )
    show(report.study_document(found))


def _speed(result: StudyResult) -> str:
    speed = result.inputs_per_second
    said = "" if speed is None else f": {result.inputs:,} inputs, {speed:,.0f} a second"
    return f"{result.seconds:.0f} s of training{said}"


def _missing(plan: StudyPlan, result: StudyResult) -> Iterator[str]:
    """What a study that trained nothing had to leave out, and for want of which rounds."""
    if not result.missing:
        return
    wanted = {method.name for method in plan.methods} - {row.method for row in result.rows}
    left_out = f"Left out: {', '.join(sorted(wanted))}. " if wanted else ""
    names = some_of(result.missing, _NAMED, between="; ")
    many = missing_rounds(len(result.missing))
    some = " Means are over replicates that have all of theirs." if plan.replicates > 1 else ""
    yield f"{left_out}{many}: {names}.{some}"
