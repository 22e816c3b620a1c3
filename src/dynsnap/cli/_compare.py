"""`dynsnap compare`: prediction files in, every consistency metric out."""

import functools
from pathlib import Path

import click

from dynsnap import _files, comparison, predictions, report
from dynsnap.cli import _options as options
from dynsnap.cli._execute import EngineChoice, counting_option
from dynsnap.cli._inputs import (
    NamedFiles,
    files_behind,
    generation_names,
    generations_in,
    lined_up,
    named_files_options,
)
from dynsnap.cli._outputs import (
    STDOUT,
    claim_outputs,
    show,
    writing_outputs,
)
from dynsnap.errors import PlanError


@click.command()
@click.argument("files", nargs=-1, type=options.PLACE, metavar="OLD NEW [NEWER]...")
@click.option("--names", metavar="A,B,...", help="What to call the generations, with commas.")
@options.rename_option
@options.slice_option
@options.noise_floor_option
@click.option(
    "--confidence",
    type=options.Number(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of every interval.",
)
@options.resamples_option
@options.seed_option
@options.metrics_option
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    multiple=True,
    help="Add the top-k metrics for this k to those for 2 and, with more than 20 classes, 5. "
    "May be repeated.",
)
@click.option(
    "--by",
    type=click.Choice(report.BREAKDOWNS),
    multiple=True,
    help="Print this breakdown only. May be repeated; all are printed by default.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Most rows to print of a breakdown, worst first; 0 prints all.",
)
@options.json_option
@options.markdown_option
@options.html_option
@named_files_options
@options.svg_option
@options.png_option
@click.option(
    "--flips",
    "flips_to",
    type=options.Written(comparison.flips_format),
    metavar="PATH",
    help="Write every input that was lost or gained, with both labels and scores: .parquet, "
    ".arrow, .csv, .tsv or .jsonl.",
)
@counting_option
@options.quiet_option
@options.task_options
@options.column_options()
def compare(
    files: tuple[Path | str, ...],
    names: str | None,
    renames: tuple[str, ...],
    slices: tuple[str, ...],
    noise_floor: Path | str | None,
    confidence: float,
    resamples: int,
    seed: int,
    groups: tuple[str, ...],
    top_k: tuple[int, ...],
    by: tuple[str, ...],
    limit: int,
    json_to: Path | None,
    markdown_to: Path | None,
    html_to: Path | None,
    svg_to: Path | None,
    png_to: Path | None,
    flips_to: Path | None,
    engine: EngineChoice,
    quiet: bool,
    named: NamedFiles,
    task: options.TaskChoice,
    columns: predictions.ColumnNames,
) -> None:
    """Compare the predictions of two or more generations of a classifier, oldest first.

    Files are Parquet, Arrow or Feather, CSV, TSV, JSON Lines or NPZ, with the columns id, truth,
    label or score:<class>, and weight; other columns with few values are slices. Inputs are matched
    by id; those without truth count for metrics of labels and scores alone.
    A directory, a quoted pattern or a URI (s3://, gs://, file://) stands for all Parquet files
    there, which hold one generation together. An address, FOLDER::METHOD/COMBINATION/gN/rN, names
    generation N of a study, in a run folder or in published results; baseline:NAME names what
    `dynsnap baseline set` has kept.

    With --task, answers are no classes but numbers (regression), sets (multilabel, ranking), one
    score and a threshold (binary), or grades (graded, with several answers to an input if you
    like).

    No other file is read, except those that --study and --inputs name, or `study` and `inputs` in
    the table [tool.dynsnap] of ./pyproject.toml. The report lists what was used. The table
    [tool.dynsnap.columns] names columns, as the options do.

    For example:

    \b
        dynsnap compare monday.parquet tuesday.parquet
        dynsnap compare g1.csv g2.csv g3.csv --json result.json
        dynsnap compare old.parquet new.parquet --noise-floor twin.parquet --flips flips.parquet
        dynsnap compare all.csv --label-columns v1,v2
        dynsnap compare s3://models/old 'new/part-*.parquet' --engine processes
        dynsnap compare old.csv new.csv --task regression --tolerance 0.5
        dynsnap compare old.parquet new.parquet --metrics classification --metrics ranking
        dynsnap compare results/mine::dynsnap-cyc/average/g1/r0 new.parquet
    """
    if not files:
        raise PlanError("Name at least two files of predictions, old before new.")
    places = tuple(map(named.located, files))
    noise_floor = None if noise_floor is None else named.located(noise_floor)
    generations = generations_in(places, columns)
    if len(generations) < 2:
        raise PlanError(
            "Name at least two files of predictions, old before new; or one table of several "
            "models with --model-column or --label-columns."
        )
    titles = generation_names(generations if columns.many_models else files, names)
    outputs = {"--json": json_to, "--markdown": markdown_to, "--html": html_to, "--flips": flips_to}
    claim_outputs(files_behind([*places, noise_floor]), outputs)
    named.check(html_to)
    rename = options.parse_renames(renames)
    with writing_outputs() as out:
        with (
            lined_up(generations, titles, noise_floor, columns, rename, slices, task) as blocks,
            engine.for_counting() as parallel,
        ):
            settings = comparison.Settings(
                confidences=(confidence,),
                resamples=resamples,
                seed=seed,
                top_k=(*comparison.default_top_k(len(blocks.classes)), *top_k),
                families=named.families(),
                twin=noise_floor is not None,
                metrics=groups or None,
            )
            (found,) = comparison.compare_blocks(blocks, settings, parallel=parallel)
            if flips_to is not None:
                comparison.write_flips(blocks, flips_to, twin=noise_floor is not None)
        drawn = html_to or svg_to or png_to
        excerpts = named.excerpts(found, id_column=columns.id) if drawn else {}
        learned_from = named.learned_from() if drawn else {}
        noted = named.noted(found)

        @functools.cache
        def document() -> report.Document:
            return report.comparison_document(
                noted,
                by=by or report.BREAKDOWNS,
                limit=limit,
                excerpts=excerpts,
                learned_from=learned_from,
            )

        out.text(json_to, lambda: _files.as_json(comparison.to_json(noted)))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
        out.figures(document, svg_to=svg_to, png_to=png_to)
    if not quiet and STDOUT not in outputs.values():
        show(document())
