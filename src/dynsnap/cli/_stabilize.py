"""`dynsnap stabilize`: keep deployed labels unless another class leads by a margin."""

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
    help="By how much another class must lead before the deployed label changes.",
)
@_options.column_options
def stabilize(
    old_file: Path | str,
    new_file: Path | str,
    output: Path,
    margin: float,
    columns: ColumnNames,
) -> None:
    """Write NEW, keeping OLD's label unless another class leads by --margin.

    OLD holds the deployed predictions, labels or scores. NEW holds those of the retrained model,
    with scores. OUT is then deployed, and is OLD for the next retrain.

    \b
        dynsnap stabilize monday.parquet tuesday.parquet -o deployed.parquet
        dynsnap compare monday.parquet deployed.parquet
    """
    claim_outputs([old_file, new_file], {"--output": output})
    for file in (old_file, new_file):
        refuse_run_folder(Path(file))
    old, new = (predictions.read(file, columns=columns) for file in (old_file, new_file))
    made = predictions.stabilize(old, new, margin=margin)
    names = predictions.names_of_files([Path(old_file), Path(new_file), output])
    # Files that contradict each other are refused before anything is written.
    said = _said(predictions.align(old, new, made, names=names).generations)
    predictions.write(made, output)
    for line in said:
        click.echo(line)


def _said(generations: Sequence[Predictions]) -> list[str]:
    before, asked, after = (one.labels for one in generations)
    flips, left = np.sum(before != asked), np.sum(before != after)
    found = [f"Changed labels, of {len(before):,}: {flips:,} → {left:,}."]
    if (truth := generations[0].truth) is not None:
        lost = [np.sum((before == truth) & (said != truth)) for said in (asked, after)]
        right = [np.mean(said == truth) for said in (asked, after)]
        found.append(f"Lost (negative flips, NFR): {lost[0]:,} → {lost[1]:,}.")
        found.append(f"Accuracy: {100 * right[0]:.2f} % → {100 * right[1]:.2f} %.")
    return found
