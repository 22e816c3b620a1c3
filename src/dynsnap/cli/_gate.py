"""`dynsnap gate`: let a retrained model through, or not."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dynsnap import _files, comparison, predictions, report
from dynsnap import gate as gates
from dynsnap.cli import _options as options
from dynsnap.cli._inputs import (
    NamedFiles,
    files_behind,
    generation_names,
    generations_in,
    lined_up,
    named_files_options,
    refuse_same_files,
)
from dynsnap.cli._outputs import (
    STDOUT,
    claim_outputs,
    show,
    writing_outputs,
)
from dynsnap.errors import PlanError
from dynsnap.metrics import GROUPS

_EXIT = {"passed": 0, "failed": 1, "unresolved": 5}


@click.command()
@click.argument("old", type=options.PLACE)
@click.argument("new", type=options.PLACE, required=False)
@click.option("--rules", "rules_file", type=options.FILE, metavar="TOML", help="A file of rules.")
@click.option(
    "--at-least",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="A rule: the metric must not be lower; METRIC[CLASS]=NUMBER in one class, [*] in each. "
    "May be repeated.",
)
@click.option(
    "--at-most",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="A rule: the metric must not be higher; METRIC[CLASS]=NUMBER in one class, [*] in each. "
    "May be repeated.",
)
@click.option(
    "--confidence",
    type=options.Number(0, 1, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Judge rules of the command line by the worse end of their interval of this level, such "
    "as 0.95, instead of by the value.",
)
@click.option(
    "--unresolved",
    type=click.Choice(gates.UNRESOLVED),
    help="Where an interval covers its threshold: fail (pass only if clearly good, the default), "
    "pass (fail only if clearly worse), or report (exit code 5). For rules that do not say it.",
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
    "--allow-unlabelled",
    type=options.Number(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the inputs that may have no truth where others have it.",
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
@options.slice_option
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
@options.task_options
@options.column_options()
@click.pass_context
def gate(
    ctx: click.Context,
    old: Path | str,
    new: Path | str | None,
    rules_file: Path | None,
    at_least: tuple[str, ...],
    at_most: tuple[str, ...],
    confidence: float | None,
    unresolved: gates.Unresolved | None,
    allow_odd_rules: bool,
    allow_missing: float,
    allow_unknown_labels: float | None,
    allow_unlabelled: float,
    min_count: int,
    weights_from: gates.Side,
    slices_from: gates.Side,
    renames: tuple[str, ...],
    slices: tuple[str, ...],
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
    task: options.TaskChoice,
    columns: predictions.ColumnNames,
) -> None:
    """Check a retrained model against rules; the exit code is 0 if it may ship.

    Exit codes: 0 every rule passed, 1 a rule failed, 2 wrong use, 3 the files cannot be read or
    compared, 5 no rule failed, but one that may be unresolved is. A gate never passes because
    something was missing.

    OLD and NEW are files, baselines (baseline:NAME, see `dynsnap baseline`), or addresses in a
    study's folder: FOLDER::METHOD/COMBINATION/gN/rN. No other file is read, except those that an
    option or the table [tool.dynsnap] of ./pyproject.toml names (`study`, `inputs`). The report
    lists what was used.

    For example:

    \b
        dynsnap gate old.parquet new.parquet --rules gate.toml
        dynsnap gate old.csv new.csv --at-least correct_consistency=0.85 --at-most lost=0.02
        dynsnap gate old.csv new.csv --at-least accuracy_change=-0.005 --confidence 0.95
        dynsnap gate old.csv new.csv --noise-floor twin.csv --at-most 'lost=1.2 x noise_floor'
        dynsnap gate old.csv new.csv --at-least f1_macro_change=-0.01 --at-least 'recall[*]=0.7'
    """
    if confidence is not None and not (at_least or at_most):
        raise PlanError(
            "--confidence is about rules of the command line, and there is none. Give --at-least "
            "or --at-most, or write `confidence` in the file of rules."
        )
    inline = functools.partial(gates.inline_rule, allow_odd=allow_odd_rules, confidence=confidence)
    rules = (
        *(gates.read_rules(rules_file) if rules_file else ()),
        *(inline(text, side="at_least") for text in at_least),
        *(inline(text, side="at_most") for text in at_most),
    )
    if not rules:
        raise PlanError("There is no rule to judge by. Give --rules, --at-least or --at-most.")
    _check_asked(rules, unresolved, noise_floor, task)
    named_places = [old] if new is None else [old, new]
    places = [named.located(place) for place in named_places]
    noise_floor = None if noise_floor is None else named.located(noise_floor)
    generations = generations_in(places, columns)
    if len(generations) != 2:
        raise PlanError(
            f"A gate judges two generations, OLD and NEW, and there "
            f"{'is' if len(generations) == 1 else 'are'} {len(generations)}. Name two files, or a "
            "table of two models with --model-column or --label-columns."
        )
    refuse_same_files({"OLD": generations[0], "NEW": generations[1], "--noise-floor": noise_floor})
    titles = generation_names(generations if columns.many_models else named_places)
    outputs = {"--json": json_to, "--junit": junit_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs([*files_behind([*places, noise_floor]), rules_file], outputs)
    named.check(html_to)
    rename = options.parse_renames(renames)
    top_k = gates.top_k(rules)
    if slices:  # and those that rules are about
        slices = (*slices, *(rule.slice[0] for rule in rules if rule.slice is not None))
    with lined_up(generations, titles, noise_floor, columns, rename, slices, task) as blocks:
        if html_to is not None:  # a page shows all that `compare` does
            top_k = (*comparison.default_top_k(len(blocks.classes)), *top_k)
        settings = comparison.Settings(
            resamples=resamples,
            seed=seed,
            top_k=top_k,
            families=named.families(),
            twin=noise_floor is not None,
            # Where rules are on rankings, these are measured however many inputs there are.
            metrics=GROUPS if "ranking" in gates.groups(rules) else None,
        )
        levels = gates.leveled(blocks, rules, settings)
        verdict = gates.judge(
            levels,
            rules,
            allow_missing=allow_missing,
            allow_unknown_labels=allow_unknown_labels,
            allow_unlabelled=allow_unlabelled,
            min_count=min_count,
            weights_from=weights_from,
            slices_from=slices_from,
            unresolved=unresolved or "fail",
        )
        found = levels(gates.confidences(rules)[0])
    drawn = html_to or svg_to or png_to
    excerpts = named.excerpts(found, id_column=columns.id) if drawn else {}
    learned_from = named.learned_from() if drawn else {}
    noted = named.noted(found)
    verdict = replace(verdict, notes=noted.notes, baselines=named.found_baselines)

    @functools.cache
    def document() -> report.Document:
        return report.verdict_document(
            verdict,
            noted,
            limit=limit,
            excerpts=excerpts,
            learned_from=learned_from,
        )

    with writing_outputs() as out:
        out.text(json_to, lambda: _files.as_json(gates.to_json(verdict)))
        out.text(junit_to, lambda: report.to_junit(document()))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
        out.figures(document, svg_to=svg_to, png_to=png_to)
    if not quiet and STDOUT not in outputs.values():
        show(document())
    ctx.exit(_EXIT[verdict.word])


def _check_asked(
    rules: Sequence[gates.Rule],
    unresolved: gates.Unresolved | None,
    noise_floor: Path | str | None,
    task: options.TaskChoice,
) -> None:
    """Refuse options that no rule heeds, and rules that lack an option."""
    if unresolved and not any(rule.on == "bound" and not rule.unresolved for rule in rules):
        raise PlanError(
            "--unresolved has no effect: no rule without an `unresolved` of its own is judged by "
            'its interval. Give --confidence, or on = "bound" in the file of rules.'
        )
    for rule in rules:
        # Several graded answers of OLD to an input are a noise floor of their own.
        if rule.relative_to and noise_floor is None and task.name != "graded":
            raise PlanError(
                f"Rule {rule.title!r} needs the noise floor. Give the predictions of OLD trained "
                "again on the same data: --noise-floor TWIN."
            )
