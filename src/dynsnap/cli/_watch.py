"""`dynsnap watch`: two models on live traffic, between retrains."""

import functools
from pathlib import Path

import click

from dynsnap import _files, predictions, report
from dynsnap import watch as watching
from dynsnap.cli import _options as options
from dynsnap.cli._outputs import STDOUT, claim_outputs, show, writing_outputs

_ALARM = 1


@click.command()
@click.argument("deployed", type=options.FILE)
@click.argument("candidate", type=options.FILE)
@click.option(
    "--at-most",
    "limit",
    type=options.Number(0, 1, min_open=True, max_open=True),
    required=True,
    metavar="RATE",
    help="The share of differing labels that is accepted, such as 0.05.",
)
@click.option(
    "--time",
    default=watching.TIME,
    show_default=True,
    metavar="NAME",
    help="The column of times. Folders with a file for each day need none.",
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Watch each value of this column, too. May be repeated.",
)
@click.option(
    "--false-alarms",
    "alpha",
    type=options.Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="The chance of any false alarm, over all days and slices together.",
)
@options.json_option
@options.junit_option
@options.markdown_option
@options.html_option
@options.quiet_option
@options.column_options(with_models=False, with_tasks=False)
@click.pass_context
def watch(
    ctx: click.Context,
    deployed: Path,
    candidate: Path,
    limit: float,
    time: str,
    slices: tuple[str, ...],
    alpha: float,
    json_to: Path | None,
    junit_to: Path | None,
    markdown_to: Path | None,
    html_to: Path | None,
    quiet: bool,
    columns: predictions.ColumnNames,
) -> None:
    """Follow how often the labels of DEPLOYED and CANDIDATE differ on live traffic, day by day.

    Both are prediction logs: a file, or a folder of Parquet files, with a column of times; or a
    folder with a file for each day, such as 2024-05-06.parquet. Truth is not needed. The alarm may
    be looked at every day: the chance that it ever rings for nothing stays below --false-alarms.

    Exit codes: 0 no alarm, 1 alarm, 2 wrong use, 3 a log cannot be read.

    \b
        dynsnap watch logs/deployed logs/candidate --at-most 0.05 --slice region
    """
    outputs = {"--json": json_to, "--junit": junit_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs([deployed, candidate], outputs)
    found = watching.watch(
        deployed, candidate, limit=limit, alpha=alpha, time=time, slices=slices, columns=columns
    )

    @functools.cache
    def document() -> report.Document:
        return report.watch_document(found)

    with writing_outputs() as out:
        out.text(json_to, lambda: _files.as_json(watching.to_json(found)))
        out.text(junit_to, lambda: report.to_junit(document()))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
    if not quiet and STDOUT not in outputs.values():
        show(document())
    ctx.exit(_ALARM if found.alarms else 0)
