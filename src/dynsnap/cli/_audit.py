"""`dynsnap audit`: the theorems on the members of two real ensembles."""

import functools
from pathlib import Path
from typing import Any

import click

from dynsnap import _files, report, theory
from dynsnap.cli import _options as options
from dynsnap.cli._inputs import generation_names
from dynsnap.cli._outputs import STDOUT, claim_outputs, show, writing_outputs


@click.command()
@click.argument("old", type=options.FILE)
@click.argument("new", type=options.FILE)
@click.option(
    "--order",
    type=options.Number(min=1),
    default=2,
    show_default=True,
    help="Order of the Minkowski distance, from 1 to inf.",
)
@options.seed_option
@options.json_option
@options.markdown_option
@options.html_option
@options.quiet_option
@click.pass_context
def audit(
    ctx: click.Context,
    old: Path,
    new: Path,
    order: float,
    seed: int,
    json_to: Path | None,
    markdown_to: Path | None,
    html_to: Path | None,
    quiet: bool,
) -> None:
    """Compute both sides of the paper's theorems on the members of two ensembles.

    OLD and NEW are NPZ files with the arrays scores (members, inputs, classes) and, where known,
    truth (class positions or names), ids and classes. The exit code is 1 if a theorem does not
    hold.

    For example:

    \b
        dynsnap audit old-members.npz new-members.npz
    """
    outputs = {"--json": json_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs([old, new], outputs)
    before, after = theory.line_up(theory.read_members(old), theory.read_members(new))
    found = theory.audit(before.scores, after.scores, truth=before.truth, order=order, seed=seed)
    first, second = generation_names([old, new])
    about: dict[str, Any] = {"old": first, "new": second, "ids": before.ids}

    @functools.cache
    def document() -> report.Document:
        return report.audit_document(found, **about)

    with writing_outputs() as out:
        out.text(json_to, lambda: _files.as_json(report.audit_json(found, **about)))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
    if not quiet and STDOUT not in outputs.values():
        show(document())
    ctx.exit(0 if found.holds else 1)
