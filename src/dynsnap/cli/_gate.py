"""`dynsnap gate`: let a retrained model through, or not."""

import functools
from pathlib import Path

import click

from dynsnap import comparison, predictions, report
from dynsnap import gate as gates
from dynsnap.cli import _options as options
from dynsnap.cli._generations import (
    files_behind,
    generation_names,
    lined_up,
    refuse_same_files,
)
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
@click.argument("old", type=options.PLACE)
@click.argument("new", type=options.PLACE)
@click.option("--rules", "rules_file", type=options.FILE, metavar="TOML", help="A file of rules.")
@click.option(
    "--at-least",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="A rule: the metric must not be lower. May be repeated.",
)
@click.option(
    "--at-most",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="A rule: the metric must not be higher. May be repeated.",
)
@click.option(
    "--allow-odd-rules",
    is_flag=True,
    help="Take rules of the command line that nothing can fail, or that ask for a worse value.",
)
@click.option(
    "--allow-missing",
    type=options.Number(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of all ids that one file may lack.",
)
@click.option(
    "--allow-unknown-labels",
    type=options.Number(0, 1),
    metavar="SHARE",
    help="Share of a file's labels that may be no true class of any input. "
    f"{gates.UNKNOWN_LABELS:g} if left out, but then none that differs from a true class only by "
    "case or spaces.",
)
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    default=gates.MIN_COUNT,
    show_default=True,
    help="Fewest inputs for a rule without a min_count of its own.",
)
@click.option(
    "--weights-from",
    type=click.Choice(["old", "new"]),
    default="old",
    show_default=True,
    help="Whose weights count: OLD's, which NEW may repeat, or those that NEW alone has.",
)
@click.option(
    "--slices-from",
    type=click.Choice(["old", "new"]),
    default="old",
    show_default=True,
    help="Whose slices rules may be about: OLD's, which NEW may repeat, or those of NEW alone.",
)
@options.rename_option
@options.noise_floor_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Of each rule, most checks to print besides the failures; 0 prints all.",
)
@options.resamples_option
@options.seed_option
@options.json_option
@click.option(
    "--junit", "junit_to", type=options.FILE, metavar="PATH|-", help="Write JUnit XML for CI."
)
@options.markdown_option
@options.html_option
@named_files_options
@options.svg_option
@options.png_option
@options.quiet_option
@options.column_options
@click.pass_context
def gate(
    ctx: click.Context,
    old: Path | str,
    new: Path | str,
    rules_file: Path | None,
    at_least: tuple[str, ...],
    at_most: tuple[str, ...],
    allow_odd_rules: bool,
    allow_missing: float,
    allow_unknown_labels: float | None,
    min_count: int,
    weights_from: gates.Side,
    slices_from: gates.Side,
    renames: tuple[str, ...],
    noise_floor: Path | str | None,
    limit: int,
    resamples: int,
    seed: int,
    json_to: Path | None,
    junit_to: Path | None,
    markdown_to: Path | None,
    html_to: Path | None,
    svg_to: Path | None,
    png_to: Path | None,
    quiet: bool,
    named: NamedFiles,
    columns: predictions.ColumnNames,
) -> None:
    """Hold a retrained model against rules; the exit code says whether it may ship.

    Exit codes: 0 every rule passed, 1 a rule failed, 2 wrong use, 3 the files cannot be read or
    compared. A gate never passes because something was missing.

    OLD and NEW are files, or addresses in a study's folder: FOLDER::METHOD/COMBINATION/gN/rN. No
    other file is read, except those that an option or the table [tool.dynsnap] of ./pyproject.toml
    names (`study`, `inputs`). The report lists what was used.

    For example:

    \b
        dynsnap gate old.parquet new.parquet --rules gate.toml
        dynsnap gate old.csv new.csv --at-least correct_consistency=0.85 --at-most lost=0.02
    """
    odd = allow_odd_rules
    rules = (
        *(gates.read_rules(rules_file) if rules_file else ()),
        *(gates.inline_rule(text, side="at_least", allow_odd=odd) for text in at_least),
        *(gates.inline_rule(text, side="at_most", allow_odd=odd) for text in at_most),
    )
    if not rules:
        raise PlanError("There is no rule to judge by. Give --rules, --at-least or --at-most.")
    refuse_same_files({"OLD": old, "NEW": new, "--noise-floor": noise_floor})
    titles = generation_names([old, new])
    outputs = {"--json": json_to, "--junit": junit_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs([*files_behind([old, new, noise_floor]), rules_file], outputs)
    claim_figures(svg_to, png_to)
    named.check(html_to)
    rename = options.parse_renames(renames)
    top_k = gates.top_k(rules)
    with lined_up([old, new], titles, noise_floor, columns, rename) as blocks:
        if html_to is not None:  # a page shows all that `compare` does
            top_k = (*comparison.default_top_k(len(blocks.classes)), *top_k)
        settings = comparison.Settings(
            confidences=gates.confidences(rules),
            resamples=resamples,
            seed=seed,
            top_k=top_k,
            families=named.families(),
            twin=noise_floor is not None,
        )
        compared = comparison.compare_blocks(blocks, settings)
        parts = gates.apart(compared[0], rules)
        compared = comparison.measure_apart(compared, blocks, parts, settings)
    drawn = html_to or svg_to or png_to
    looks = named.looks(compared[0], id_column=columns.id) if drawn else {}
    learned_from = named.learned_from() if drawn else {}
    compared = [named.noted(compared[0]), *compared[1:]]
    verdict = gates.judge(
        compared,
        rules,
        allow_missing=allow_missing,
        allow_unknown_labels=allow_unknown_labels,
        min_count=min_count,
        weights_from=weights_from,
        slices_from=slices_from,
    )

    @functools.cache
    def document() -> report.Document:
        return report.verdict_document(
            verdict,
            compared[0],
            limit=limit,
            looks=looks,
            learned_from=learned_from,
        )

    with delivering() as out:
        out.text(json_to, lambda: as_json(gates.to_json(verdict)))
        out.text(junit_to, lambda: report.to_junit(document()))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
        out.figures(document, svg_to=svg_to, png_to=png_to)
    if not quiet and STDOUT not in outputs.values():
        show(document())
    ctx.exit(0 if verdict.passed else 1)
