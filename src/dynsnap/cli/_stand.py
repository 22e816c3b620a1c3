"""`dynsnap stand`: let deployed answers stand, unless another one is clearly better."""

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from dynsnap import predictions
from dynsnap.cli import _options
from dynsnap.cli._generations import refuse_run_folder
from dynsnap.cli._outputs import claim_outputs
from dynsnap.predictions import MARGIN, ColumnNames, Predictions


@click.command()
@click.argument("old_file", type=_options.PLACE, metavar="OLD")
@click.argument("new_file", type=_options.PLACE, metavar="NEW")
@_options.output_option
@click.option(
    "--margin",
    type=_options.Number(0, 1),
    default=MARGIN,
    show_default=True,
    help="By how much another class must be ahead of the deployed one.",
)
@_options.column_options
def stand(
    old_file: Path | str,
    new_file: Path | str,
    output: Path,
    margin: float,
    columns: ColumnNames,
) -> None:
    """Write the predictions NEW with every answer of OLD that no other class is clearly ahead of.

    OLD is what is deployed, labels or scores; NEW is what the retrained model says, with scores.
    Close calls then stay as they were, in a single model as well as in an ensemble. Next time OUT
    is what is deployed.

    \b
        dynsnap stand monday.parquet tuesday.parquet -o deployed.parquet
        dynsnap compare monday.parquet deployed.parquet
    """
    claim_outputs([old_file, new_file], {"--output": output})
    for file in (old_file, new_file):
        refuse_run_folder(Path(file))
    old, new = (predictions.read(file, columns=columns) for file in (old_file, new_file))
    made = predictions.stand(old, new, margin=margin)
    names = predictions.names_of_files([Path(old_file), Path(new_file), output])
    # Files that contradict each other are refused before anything is written.
    said = _said(predictions.align(old, new, made, names=names).generations)
    predictions.write(made, output)
    for line in said:
        click.echo(line)


def _said(generations: Sequence[Predictions]) -> list[str]:
    before, asked, after = (one.labels for one in generations)
    flips, left = np.sum(before != asked), np.sum(before != after)
    found = [f"{flips:,} of {len(before):,} answers were about to change, {left:,} do."]
    if (truth := generations[0].truth) is not None:
        lost = [np.sum((before == truth) & (said != truth)) for said in (asked, after)]
        right = [np.mean(said == truth) for said in (asked, after)]
        found.append(
            f"Of those that were right, {lost[0]:,} were about to be lost, {lost[1]:,} are; "
            f"{right[0]:.2%} of all were about to be right, {right[1]:.2%} are."
        )
    return found
