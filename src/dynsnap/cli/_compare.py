"""`dynsnap compare`: prediction files in, every consistency metric out."""

import functools
from pathlib import Path

import click

from dynsnap import comparison, predictions, report
from dynsnap.cli import _options as options
from dynsnap.cli._engines import EngineChoice, counting_option
from dynsnap.cli._generations import files_behind, generation_names, lined_up
from dynsnap.cli._named import NamedFiles, named_files_options
from dynsnap.cli._outputs import (
    STDOUT,
    as_json,
    claim_figures,
    claim_outputs,
    delivering,
    show,
)
from dynsnap.errors import PlanError


@click.command()
@click.argument("files", nargs=-1, type=options.PLACE, metavar="OLD NEW [NEWER]...")
@click.option("--names", metavar="A,B,...", help="What to call the generations, with commas.")
@options.rename_option
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
    type=options.FILE,
    metavar="PATH",
    help="Write every input that was lost or gained, with both labels and scores, as Parquet.",
)
@counting_option
@options.quiet_option
@options.column_options
def compare(
    files: tuple[Path | str, ...],
    names: str | None,
    renames: tuple[str, ...],
    noise_floor: Path | str | None,
    confidence: float,
    resamples: int,
    seed: int,
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
    columns: predictions.ColumnNames,
) -> None:
    """Compare the predictions of two or more generations of a classifier, oldest first.

    Files are Parquet, Arrow or Feather, CSV or NPZ, with the columns id, truth, label or
    score:<class>, and weight; other columns with few values are slices. Inputs are matched by id.
    A directory, a quoted pattern or a URI (s3://, gs://, file://) stands for all Parquet files
    there, which hold one generation together. An address, FOLDER::METHOD/COMBINATION/gN/rN, names
    generation N of a study, in a run folder or in published results.

    No other file is read, except those that --study and --inputs name, or `study` and `inputs` in
    the table [tool.dynsnap] of ./pyproject.toml. The report lists what was used.

    For example:

    \b
        dynsnap compare monday.parquet tuesday.parquet
        dynsnap compare g1.csv g2.csv g3.csv --json result.json
        dynsnap compare old.parquet new.parquet --noise-floor twin.parquet --flips flips.parquet
        dynsnap compare s3://models/old 'new/part-*.parquet' --engine processes
        dynsnap compare results/mine::dynsnap-cyc/average/g1/r0 new.parquet
    """
    if len(files) < 2:
        raise PlanError("Name at least two files of predictions, old before new.")
    titles = generation_names(files, names)
    outputs = {"--json": json_to, "--markdown": markdown_to, "--html": html_to, "--flips": flips_to}
    claim_outputs(files_behind([*files, noise_floor]), outputs)
    if flips_to is not None and flips_to.suffix.lower() not in (".parquet", ".pq"):
        raise PlanError(
            f"--flips writes Parquet, so it needs a file such as flips.parquet, got {flips_to}."
        )
    claim_figures(svg_to, png_to)
    named.check(html_to)
    rename = options.parse_renames(renames)
    with delivering() as out:
        with (
            lined_up(files, titles, noise_floor, columns, rename) as blocks,
            engine.for_counting() as spread,
        ):
            settings = comparison.Settings(
                confidences=(confidence,),
                resamples=resamples,
                seed=seed,
                top_k=(*comparison.default_top_k(len(blocks.classes)), *top_k),
                families=named.families(),
                twin=noise_floor is not None,
            )
            (found,) = comparison.compare_blocks(blocks, settings, spread=spread)
            if flips_to is not None:
                comparison.write_flips(blocks, flips_to, twin=noise_floor is not None)
        drawn = html_to or svg_to or png_to
        looks = named.looks(found, id_column=columns.id) if drawn else {}
        learned_from = named.learned_from() if drawn else {}
        noted = named.noted(found)

        @functools.cache
        def document() -> report.Document:
            return report.comparison_document(
                noted,
                by=by or report.BREAKDOWNS,
                limit=limit,
                looks=looks,
                learned_from=learned_from,
            )

        out.text(json_to, lambda: as_json(comparison.to_json(noted)))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
        out.figures(document, svg_to=svg_to, png_to=png_to)
    if not quiet and STDOUT not in outputs.values():
        show(document())
