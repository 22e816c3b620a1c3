"""`dynsnap run`: a study from a file."""

import dataclasses
from pathlib import Path

import click

from dynsnap import report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._engines import EngineChoice
from dynsnap.cli._progress import Watch


@click.command()
@click.argument("study_file", metavar="STUDY")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where rounds, predictions and tables go.  [default: runs/<name of the study>]",
)
@_execute.data_option
@_execute.engine_option
@_execute.budget_option
@_execute.quiet_option
def run(
    study_file: str,
    out: Path | None,
    data_path: Path | None,
    engine: EngineChoice,
    budget: float | None,
    quiet: bool,
) -> None:
    """Train and compare what a STUDY file says: methods, generations, sweeps, ablations.

    STUDY is a TOML file, or the name of one that comes with dynsnap (digits). What was trained
    before is not trained again, so a study that was stopped, killed or edited goes on with the
    same command.

    \b
        dynsnap run digits
        dynsnap run my-study.toml --out runs/mine --time-budget 540
    """
    file = _execute.find_study(study_file)
    plan = study.read_study(file)
    if data_path is not None:
        plan = dataclasses.replace(plan, data=dataclasses.replace(plan.data, path=data_path))
    folder = out or Path("runs") / plan.name
    with (
        Watch(budget=budget, quiet=quiet) as watch,
        watch.going_on(_execute.same_command(), f"What was done is in {folder}."),
    ):
        result = _execute.execute(plan, file, folder, engine=engine, watch=watch)
    notes = [
        f"{result.rounds} rounds ({result.trained} trained now), {result.seconds:.0f} s of "
        f"training. Replicates: {plan.replicates}.",
        f"Everything is in {folder}: table.csv, predictions/, rounds/.",
    ]
    document = report.study_report(result.rows, title=plan.name, sweeps=result.sweeps, notes=notes)
    _options.show(document)
