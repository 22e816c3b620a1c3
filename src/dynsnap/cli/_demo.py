"""`dynsnap demo`: the paper's experiment on a data set that needs no download."""

import contextlib
import tempfile
import time
from pathlib import Path

import click

from dynsnap import report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._engines import EngineChoice
from dynsnap.cli._outputs import show
from dynsnap.cli._progress import Watch


@click.command()
@click.option(
    "--out",
    type=_options.FOLDER,
    metavar="DIR",
    help="Keep rounds, predictions and tables there; a demo that was stopped goes on from there.",
)
@_execute.engine_option
@_execute.budget_option
@_execute.quiet_option
def demo(out: Path | None, engine: EngineChoice, budget: float | None, quiet: bool) -> None:
    """Train the paper's six methods on handwritten digits, and compare them.

    Three generations of growing data (9, 9 and 10 digits), four ways to combine the members, three
    replicates: about a minute on two cores. Nothing is downloaded.

    \b
        dynsnap demo
        dynsnap demo --out demo && dynsnap compare demo::singlebase/average/g{1,2}/r0
    """
    start = time.monotonic()
    file = _execute.find_study("digits")
    plan = study.read_study(file)
    with contextlib.ExitStack() as scope:
        if out is None:
            folder = Path(scope.enter_context(tempfile.TemporaryDirectory(prefix="dynsnap-")))
            kept, again = "Nothing was kept, for want of --out.", "dynsnap demo --out DIR"
        else:
            folder, again = out, _execute.same_command()
            kept = f"What was done is in {folder}."
        watch = scope.enter_context(Watch(budget=budget, quiet=quiet))
        scope.enter_context(watch.going_on(again, kept))
        result = _execute.execute(plan, file, folder, engine=engine, watch=watch)
    notes = [
        f"{result.rounds} rounds of training ({result.trained} of them now), "
        f"{time.monotonic() - start:.0f} s in all. Values are means over {plan.replicates} "
        "replicates."
    ]
    if out is not None:
        notes.append(f"Everything is in {out}: table.csv, predictions/, rounds/.")
    title = "Handwritten digits: six methods, three generations (9, 9 and 10 classes)"
    show(report.study_report(result.rows, title=title, notes=notes))
