"""`dynsnap predict`: score new inputs with a saved ensemble."""

from pathlib import Path

import click
import numpy as np

from dynsnap import data, predictions, store
from dynsnap.cli import _options
from dynsnap.cli._models import combined_scores, make_scorer
from dynsnap.cli._outputs import claim_outputs
from dynsnap.ensemble import Combination
from dynsnap.errors import InputError
from dynsnap.predictions import Predictions


@click.command()
@click.argument("ensemble_file", type=_options.FILE, metavar="ENSEMBLE")
@click.argument("input_path", type=_options.FILE, metavar="INPUT")
@_options.output_option
@_options.other_combination_option
@click.option("--label-column", "label", metavar="NAME", help="The column of true classes.")
@click.option(
    "--id-column",
    "id_column",
    metavar="NAME",
    help="The column of ids.  [default: id, where the ensemble names no columns]",
)
@click.option("--text-column", "text", metavar="NAME", help="The column of texts.")
@_options.factory_option
@click.option(
    "--trainer",
    metavar="NAME",
    help="The trainer that saved the ensemble, where an installed package provides it.",
)
@_options.sha256_option
@_options.trust_option
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, mps or auto.")
def predict(
    ensemble_file: Path,
    input_path: Path,
    output: Path,
    combination: Combination | None,
    label: str | None,
    id_column: str | None,
    text: str | None,
    factory: str | None,
    trainer: str | None,
    sha256: str | None,
    trust: bool,
    device: str,
) -> None:
    """Score the inputs in INPUT with a saved ENSEMBLE, and write predictions that `dynsnap
    compare` reads.

    INPUT is an NPZ file (inputs, and ids and labels where they are known), a CSV or Parquet table
    with the columns that the ensemble was trained on, JSON lines with a text, or a folder of
    images.

    ENSEMBLE may be untrusted: no code that it names is run. With --sha256 it is read only if it
    has that digest, which `dynsnap train` and `sha256sum` print.

    \b
        dynsnap predict runs/mine/ensembles/dynsnap-cyc-g3.ensemble new.csv -o predictions.parquet
    """
    claim_outputs([ensemble_file, input_path], {"--output": output})
    ensemble = store.load_ensemble(ensemble_file, sha256=sha256)
    asked = {"label": label, "id": id_column, "text": text}
    reading = {name: value for name, value in asked.items() if value is not None}
    found = data.read_inputs(input_path, **{**ensemble.about.get("reading", {}), **reading})
    scorer = make_scorer(ensemble, trainer=trainer, factory=factory, device=device, trust=trust)
    how = combination or ensemble.combination
    try:
        scores = combined_scores(ensemble, scorer, found.inputs, how)
    except InputError as error:
        raise InputError(
            f"{input_path} is not what the ensemble was trained on: {error}"
        ) from error
    # A true class that the ensemble has never met is a class all the same: it gets no votes.
    known = set(ensemble.classes)
    unmet = () if found.labels is None else sorted(set(found.labels.tolist()) - known)
    made = Predictions(
        ids=found.ids,
        classes=(*ensemble.classes, *unmet),
        scores=np.pad(scores, ((0, 0), (0, len(unmet)))),
        truth=found.labels,
    )
    predictions.write(made, output)
    click.echo(f"{output}: {len(made)} inputs, {len(ensemble.positions)} members, {how}")
