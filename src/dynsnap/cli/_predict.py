"""`dynsnap predict`: score new inputs with a saved ensemble."""

from pathlib import Path

import click
import numpy as np

from dynsnap import data, predictions, store
from dynsnap.cli import _options
from dynsnap.cli._models import make_scorer
from dynsnap.cli._outputs import claim_outputs
from dynsnap.ensemble import COMBINATIONS, Combination, combine
from dynsnap.errors import InputError
from dynsnap.predictions import Predictions

_AT_ONCE = 8192  # inputs; all members' scores of so many are in memory together
_SCORES_AT_ONCE = 1 << 25  # but no more scores than so many
_UNIT = 512  # inputs that are scored together: other cuts could show in the last bits


@click.command()
@click.argument("ensemble_file", type=_options.FILE, metavar="ENSEMBLE")
@click.argument("input_path", type=_options.FILE, metavar="INPUT")
@_options.output_option
@click.option(
    "--combination",
    type=click.Choice(COMBINATIONS),
    help="How members are combined, where it is not as the ensemble says.",
)
@click.option("--label-column", "label", metavar="NAME", help="The column of true classes.")
@click.option("--id-column", "id_column", metavar="NAME", help="The column of ids.")
@click.option("--text-column", "text", metavar="NAME", help="The column of texts.")
@click.option(
    "--model",
    "factory",
    metavar="MODULE:FACTORY",
    help="The function that builds the module, for ensembles of a model of your own.",
)
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

    ENSEMBLE may come from a stranger: no code that it names is run. With --sha256 it is read only
    if it is the file of that digest, which `dynsnap train` and `sha256sum` print.

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
    step = _inputs_at_once(len(ensemble.positions) * len(ensemble.classes))
    try:
        scores = np.concatenate(
            [
                combine(
                    scorer(found.inputs[start : start + step]),
                    how=how,
                    weights=ensemble.accuracy,
                    known=ensemble.known,
                ).astype(np.float32)
                for start in range(0, len(found.inputs), step)
            ]
        )
    except InputError as error:
        raise InputError(
            f"{input_path} is not what the ensemble was trained on: {error}"
        ) from error
    # A true class that the ensemble has never met is a class all the same: nobody votes for it.
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


def _inputs_at_once(scores: int) -> int:
    """How many inputs are scored together, of which each takes so many scores."""
    most = max(1, _SCORES_AT_ONCE // scores)
    return min(_AT_ONCE, most - most % _UNIT or most)
