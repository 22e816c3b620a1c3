"""`dynsnap demo`: the paper's experiment on a data set that needs no download."""

import contextlib
import dataclasses
import shlex
import tempfile
import time
from pathlib import Path

import click

from dynsnap import report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._execute import EngineChoice
from dynsnap.cli._outputs import STDOUT, claim_outputs, show, writing_outputs
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.cli._report import findings
from dynsnap.cli._weekly import weekly
from dynsnap.errors import PlanError


@click.group(invoke_without_command=True)
@click.option(
    "--out",
    type=_options.FILLED,
    metavar="DIR",
    help="Keep rounds, predictions and tables there; a demo that was stopped goes on from there.",
)
@click.option(
    "--html",
    "html_to",
    type=_options.FILE,
    metavar="PATH",
    help="Where the page goes.  [default: DIR/report.html, or a new temporary folder]",
)
@_execute.engine_option
@_execute.budget_option
@_execute.quiet_option
@click.pass_context
def demo(
    ctx: click.Context,
    out: Path | None,
    html_to: Path | None,
    engine: EngineChoice,
    budget: float | None,
    quiet: bool,
) -> None:
    """Train the paper's six methods on handwritten digits, and compare them.

    Three generations of growing data (9, 9 and 10 digits), four ways to combine the members, three
    replicates: about a minute on two cores. Nothing is downloaded.

    \b
        dynsnap demo
        dynsnap demo --out demo && dynsnap compare demo::singlebase/average/g{1,2}/r0
        dynsnap demo weekly --out weekly
    """
    if ctx.invoked_subcommand is not None:
        if given := [name for name in ctx.params if _given(ctx, name)]:
            option = given[0].replace("html_to", "html").replace("_", "-")
            raise PlanError(
                f"--{option} belongs to `dynsnap demo` alone. Write it behind "
                f"`{ctx.invoked_subcommand}`, if that has it."
            )
        return
    start = time.monotonic()
    file = _execute.find_study("digits")
    plan = study.read_study(file)
    claim_outputs([file], {"--html": html_to})
    with contextlib.ExitStack() as scope:
        if out is None:
            folder = Path(scope.enter_context(tempfile.TemporaryDirectory(prefix="dynsnap-")))
            kept, again = "Nothing was kept, for want of --out.", "dynsnap demo --out DIR"
        else:
            folder, again = out, _execute.same_command()
            kept = f"What was done is in {folder}."
        watch = scope.enter_context(ProgressMonitor(budget=budget, quiet=quiet))
        scope.enter_context(watch.going_on(again, kept))
        result = _execute.execute(plan, file, folder, engine=engine, watch=watch)
        found = findings(folder)
    took = time.monotonic() - start
    notes = [
        f"{result.rounds} rounds of training ({result.trained} of them now), {took:.0f} s in all. "
        f"Values are means over {plan.replicates} replicates."
    ]
    if out is not None:
        notes.append(f"Everything is in {out}: table.csv, predictions/, rounds/.")
    title = "Handwritten digits: six methods, three generations (9, 9 and 10 classes)"
    document = report.study_document(
        dataclasses.replace(found, name=title, notes=[*found.notes, *notes])
    )
    folder = out or Path(tempfile.mkdtemp(prefix="dynsnap-demo-")) if html_to is None else Path()
    page = html_to or folder / "report.html"
    with writing_outputs() as outputs:
        outputs.text(page, lambda: report.to_html(document))
    if page == STDOUT:
        return
    show(document)
    # Commands are not wrapped: they are there to be copied.
    kept_in = shlex.quote(str(out or "demo"))
    first = "" if out is not None else f"dynsnap demo --out {kept_in} && "
    click.echo(f"\nThe page with all of it: {page}\nTry next:")
    click.echo(f"  {first}dynsnap report {kept_in} --method singlebase")
    click.echo(f"  dynsnap size {kept_in}")


def _given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


demo.add_command(weekly)
