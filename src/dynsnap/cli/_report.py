"""`dynsnap report`: a finished study as tables in the terminal, and as one page."""

import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dynsnap import report, study
from dynsnap._untrusted import regular
from dynsnap.cli import _drilldown
from dynsnap.cli import _options as options
from dynsnap.cli._looks import claim_inputs, inputs_option
from dynsnap.cli._outputs import (
    STDOUT,
    claim_figures,
    claim_outputs,
    delivering,
    kept_in,
    show,
)
from dynsnap.cli._stored import read_about
from dynsnap.cli._training import Training
from dynsnap.errors import DynSnapError, FileError
from dynsnap.report import StudyFindings
from dynsnap.study import Row, SweepRow

Read = TypeVar("Read", Row, SweepRow)


@click.command("report")
@click.argument("folder", type=options.FILE, metavar="RUN")
@click.option(
    "--html",
    "html_to",
    type=options.FILE,
    metavar="PATH|-",
    help="Where the page goes.  [default: RUN/report.html]",
)
@click.option(
    "--method",
    metavar="NAME",
    help="The method that is looked at input by input.  [default: dynsnap-cyc, or the first]",
)
@inputs_option
@options.svg_option
@options.png_option
@options.quiet_option
def report_command(
    folder: Path,
    html_to: Path | None,
    method: str | None,
    inputs: str | None,
    svg_to: Path | None,
    png_to: Path | None,
    quiet: bool,
) -> None:
    """Show the study in the run folder RUN: tables here, and everything on one page.

    RUN is what `dynsnap run` or `dynsnap demo --out` has made. Nothing is trained.

    \b
        dynsnap report runs/mine
        dynsnap report runs/mine --html mine.html --svg figures
        dynsnap report results/cifar10-paper --inputs cifar-10:data --method singlebase
    """
    page_to = html_to or folder / "report.html"
    study.check_finished(folder)
    claim_outputs(kept_in(folder), {"--html": page_to})
    claim_figures(svg_to, png_to)
    claim_inputs(inputs, page_to)
    found = findings(folder, method=method, inputs=inputs)
    document = report.study_document(found)
    with delivering() as out:
        out.text(page_to, lambda: report.to_html(document))
        out.figures(lambda: document, svg_to=svg_to, png_to=png_to)
    if quiet or page_to == STDOUT:
        return
    show(document)
    click.echo(f"\nEverything is on the page {page_to}.")
    if found.drilldown is not None:  # a command is not wrapped: it is there to be copied
        command = shlex.join(["dynsnap", "compare", *found.drilldown.files[-2:]])
        click.echo(f"Class by class, slice by slice, in the terminal:\n{command}")


def findings(
    folder: Path, *, method: str | None = None, inputs: str | None = None
) -> StudyFindings:
    """What a run folder holds about its study; what is missing or damaged is noted."""
    notes: list[str] = []
    about = _about(folder, notes)
    missing = about.get("rounds_missing", 0)
    if missing:
        notes.append(f"{study.missing_rounds(missing)}: what needs a missing round is left out.")
    training = Training()
    replicates: dict[str, int] = {}
    plan = None
    try:
        plan = study.read_study(folder / "study.toml", stored=True)
        replicates = plan.repeated
        if missing:  # so there may be fewer than asked for
            there = study.read_replicates(folder / "replicates.csv")
            replicates = {name: there.get(name, 1) for name in replicates}
        training = Training.of(folder, plan)
        if not training.curves:
            notes.append("No rounds of training are stored here: curves and theorems are left out.")
    except DynSnapError as error:
        notes.append(f"Rounds of training are left out: {error}")
    rows = _with_spread(_table(folder / "table.csv"), folder / "replicates.csv")
    return StudyFindings(
        name=about.get("study") or folder.resolve().name,
        rows=rows,
        sweeps=_sweeps(folder / "sweeps.csv"),
        plan=plan,
        about=about,
        replicates=replicates,
        file=_text(folder / "study.toml"),
        curves=training.curves,
        audits=training.audits,
        drilldown=_drilldown.look(folder, rows, method=method, inputs=inputs, notes=notes),
        notes=notes,
    )


def _about(folder: Path, notes: list[str]) -> dict[str, Any]:
    try:
        return read_about(folder)
    except FileError as error:
        notes.append(f"What the run says about itself is left out: {error}")
        return {}


def _with_spread(rows: list[Row], path: Path) -> list[Row]:
    """The rows of a table that was written before tables told how replicates differ."""
    if not path.is_file() or any(row.spread is not None for row in rows):
        return rows
    each = [[row] for row in _table(path)]
    known = {(row.method, row.combination, row.metric): row for row in study.averaged(each)}
    return [
        dataclasses.replace(row, spread=same.spread)
        if (same := known.get((row.method, row.combination, row.metric))) is not None
        else row
        for row in rows
    ]


def _text(path: Path) -> str:
    try:
        return regular(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _table(path: Path) -> list[Row]:
    return _read(path, study.read_table)


def _sweeps(path: Path) -> list[SweepRow]:
    return _read(path, study.read_sweeps) if path.is_file() else []


def _read(path: Path, reader: Callable[[Path], list[Read]]) -> list[Read]:
    rows = reader(path)
    if not rows:
        raise FileError(f"{path} has no rows. Run the study again.")
    return rows
