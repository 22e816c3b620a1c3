"""`dynsnap demo weekly`: ten weeks of flights, retrained, gated and deployed one after another."""

import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import click

from dynsnap import project as projects
from dynsnap import report
from dynsnap.cli import _options
from dynsnap.cli._outputs import show
from dynsnap.cli._signals import write_line
from dynsnap.errors import one_line
from dynsnap.project import STEPS


class _Progress:
    """A bar on a terminal, a line for each week elsewhere."""

    def __init__(self, weeks: int, *, quiet: bool) -> None:
        self._weeks, self._quiet, self._bar = weeks, quiet, None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                BarColumn(bar_width=24),
                TextColumn("{task.completed:.0f}/{task.total:.0f} weeks"),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=Console(file=sys.stderr, highlight=False, markup=False),
                transient=True,
            )
            self._task = self._bar.add_task("reading the flights of 2013", total=weeks)

    def __enter__(self) -> "_Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def week(self, number: int) -> Callable[[str], None]:
        """What a retrain tells of its steps."""
        passed = [0]

        def say(text: str) -> None:
            if self._bar is not None:
                passed[0] = min(passed[0] + 1, len(STEPS))
                done = number + passed[0] / (len(STEPS) + 1)
                self._bar.update(self._task, completed=done, description=one_line(text))

        return say

    def ended(self, number: int, text: str) -> None:
        """A week is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=number + 1)
            self._bar.console.print(one_line(text))
        elif not self._quiet:
            write_line(text)


@click.command()
@click.option(
    "--out",
    type=_options.FILLED,
    metavar="DIR",
    help="The project; a demo that was stopped goes on from there.  [default: a new temporary "
    "folder]",
)
@click.option(
    "--weeks",
    type=click.IntRange(1, 46),
    default=10,
    show_default=True,
    help="How many weeks are retrained on.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def weekly(out: Path | None, weeks: int, quiet: bool) -> None:
    """Retrain a model of flight delays every week, gate it, and deploy it or keep the old one.

    Flights from New York in 2013, how late each arrives, LightGBM: a minute on two cores. Needs
    `pip install 'dynsnap[boost,flights]'`; nothing is downloaded.

    \b
        dynsnap demo weekly --out weekly
    """
    start = time.monotonic()
    folder = out or Path(tempfile.mkdtemp(prefix="dynsnap-weekly-"))
    with _Progress(weeks, quiet=quiet) as progress:
        for number, week in enumerate(projects.flights_project(folder, weeks=weeks)):
            loop = projects.Retrain(
                project=projects.read_project(folder), until=week.until, say=progress.week(number)
            )
            result = loop.run()
            assert result is not None  # every week has flights
            progress.ended(number, f"{result.plan.period}: {_sentence(result)}")
    project = projects.read_project(folder)
    projects.write_history(project)
    if not quiet:
        show(report.history_document(projects.history_findings(project)))
    place = shlex.quote(str(folder))
    click.echo(f"\n{weeks} weeks in {time.monotonic() - start:.0f} s. Try next:")
    click.echo(f"  dynsnap project status {place}")
    click.echo(f"  dynsnap project rollback {place}")
    click.echo(f"The history of all weeks: {folder / projects.HISTORY}")


def _sentence(result: projects.Result) -> str:
    measured = result.measured
    values = {} if measured is None else measured.held_out
    change, lost = (values.get(name, (None,))[0] for name in ("accuracy_change", "lost"))
    if change is None or lost is None:
        return result.reason
    return f"{result.reason} Accuracy {100 * change:+.2f} points, lost {100 * lost:.2f} %."
