"""`dynsnap run`: a study from a file."""

from collections.abc import Iterator
from pathlib import Path

import click

from dynsnap import report
from dynsnap.cli import _execute
from dynsnap.cli._engines import EngineChoice
from dynsnap.cli._outputs import show
from dynsnap.cli._planned import planned
from dynsnap.cli._progress import Watch
from dynsnap.study import StudyPlan, StudyResult, missing_rounds

_NAMED = 12  # missing rounds that are named


@click.command()
@click.argument("study_file", metavar="STUDY")
@_execute.out_option
@_execute.data_option
@_execute.engine_option
@_execute.budget_option
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be trained, and stop.")
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
    no_training: bool,
    from_anywhere: bool,
    quiet: bool,
) -> None:
    """Train and compare what a STUDY file says: methods, generations, sweeps, ablations.

    STUDY is a TOML file, or the name of one that comes with dynsnap (digits). What was trained
    before is not trained again, so a study that was stopped, killed or edited goes on with the
    same command.

    \b
        dynsnap run digits
        dynsnap run cifar10-paper --data cifar-10-batches-py --plan
        dynsnap run my-study.toml --out runs/mine --time-budget 540
        dynsnap run my-study.toml --out runs/from-the-cluster --no-training
    """
    file, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    if only_plan:
        show(planned(plan))
        return
    with (
        Watch(budget=budget, quiet=quiet) as watch,
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
        f"{result.rounds} rounds ({result.trained} trained now), {result.seconds:.0f} s of "
        f"training. {report.said_replicates(plan.replicates, plan.repeated)}.",
        f"Everything is in {folder}: table.csv, predictions/, rounds/.",
        *_missing(plan, result),
    ]
    found = report.StudyFindings(
        name=plan.name, rows=result.rows, sweeps=result.sweeps, plan=plan, notes=notes
    )
    show(report.study_document(found))


def _missing(plan: StudyPlan, result: StudyResult) -> Iterator[str]:
    """What a study that trained nothing had to leave out, and for want of which rounds."""
    if not result.missing:
        return
    wanted = {method.name for method in plan.methods} - {row.method for row in result.rows}
    left_out = f"Left out: {', '.join(sorted(wanted))}. " if wanted else ""
    names = [str(spec) for spec in result.missing[:_NAMED]]
    names += [f"and {len(result.missing) - _NAMED} more"] if len(result.missing) > _NAMED else []
    many = missing_rounds(len(result.missing))
    some = " Means are over replicates that have all of theirs." if plan.replicates > 1 else ""
    yield f"{left_out}{many}: {'; '.join(names)}.{some}"
