"""`dynsnap run`: a study from a file."""

from pathlib import Path

import click

from dynsnap import report
from dynsnap.cli import _execute, _options
from dynsnap.cli._engines import EngineChoice
from dynsnap.cli._planned import planned
from dynsnap.cli._progress import Watch


@click.command()
@click.argument("study_file", metavar="STUDY")
@_execute.out_option
@_execute.data_option
@_execute.engine_option
@_execute.budget_option
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be trained, and stop.")
@_execute.quiet_option
def run(
    study_file: str,
    out: Path | None,
    data_path: Path | None,
    engine: EngineChoice,
    budget: float | None,
    only_plan: bool,
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
    """
    file, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    if only_plan:
        _options.show(planned(plan))
        return
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
