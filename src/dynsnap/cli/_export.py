"""`dynsnap export`: a saved ensemble as one ONNX model."""

from pathlib import Path
from typing import Any

import click

from dynsnap import data, export, store, trainers
from dynsnap._types import AnyArray
from dynsnap.cli import _options
from dynsnap.cli._models import restored_model
from dynsnap.cli._outputs import claim_outputs
from dynsnap.ensemble import Combination
from dynsnap.errors import InputError
from dynsnap.export import ExportableEnsemble
from dynsnap.store import SavedEnsemble


@click.command(name="export")
@click.argument("ensemble_file", type=_options.FILE, metavar="ENSEMBLE")
@click.option(
    "--onnx",
    "output",
    type=_options.ends_in(".onnx"),
    required=True,
    metavar="FILE.onnx",
    help="Where to write the ONNX model.",
)
@click.option(
    "--check",
    "check_path",
    type=_options.FILE,
    metavar="INPUT",
    help="Real inputs to compare the model on, beside random ones; formats as for `predict`.",
)
@_options.other_combination_option
@click.option("--label-column", "label", metavar="NAME", help="INPUT's column of true classes.")
@click.option("--id-column", "id_column", metavar="NAME", help="INPUT's column of ids.")
@_options.factory_option
@_options.sha256_option
@_options.trust_option
def export_command(
    ensemble_file: Path,
    output: Path,
    check_path: Path | None,
    combination: Combination | None,
    label: str | None,
    id_column: str | None,
    factory: str | None,
    sha256: str | None,
    trust: bool,
) -> None:
    """Write a saved ENSEMBLE as one ONNX model: members, combination, preparation of inputs.

    The model's input is `images` or `features`, its outputs are `label` (class names) and
    `scores`. The class names are also in its metadata. It is written only if it answers as the
    ensemble does: labels equal, scores within 1e-5.

    \b
        dynsnap export runs/mine/ensembles/dynsnap-cyc-g3.ensemble --onnx model.onnx --check new.csv
    """
    claim_outputs([ensemble_file, check_path], {"--onnx": output})
    saved = store.load_ensemble(ensemble_file, sha256=sha256)
    asked = {"label": label, "id": id_column}
    reading = {name: value for name, value in asked.items() if value is not None}
    ensemble = _opened(ensemble_file, saved, factory, combination, sha256=sha256, trust=trust)
    inputs: AnyArray | None = None
    if check_path is not None:
        known = saved.about.get("reading", {})
        inputs = data.read_inputs(check_path, **{**known, **reading}).inputs
    try:
        made = export.save_onnx(ensemble, output, inputs=inputs)
    except InputError as error:
        where = ensemble_file if check_path is None else check_path
        raise InputError(f"{where} is not what the ensemble was trained on: {error}") from error
    found = made.checked
    shape = ", ".join(map(str, ("batch", *made.shape)))
    given = f" and {found.given:,} given" if found.given else ""
    ties = f" ({found.ties:,} ties left out)" if found.ties else ""
    click.echo(
        f"{output}: {len(ensemble.learners)} members, {ensemble.combination}\n"
        f"input {made.input}: {made.dtype} ({shape}); outputs label, scores\n"
        f"checked on {found.random} random{given} inputs: labels equal{ties}, scores within "
        f"{found.difference:.1e}"
    )


def _opened(
    path: Path,
    saved: SavedEnsemble,
    factory: str | None,
    combination: Combination | None,
    *,
    sha256: str | None,
    trust: bool,
) -> ExportableEnsemble:
    backend = trainers.named(trainers.trainer_name(saved.model))
    if "estimator" not in saved.about:
        model = restored_model(saved, backend, factory)
        return export.exportable(saved, model=model, combination=combination, trust=trust)
    from dynsnap.estimator import DynSnapClassifier

    model = None
    if backend.name == "torch" or factory is not None:
        model = restored_model(saved, backend, factory)
    settings: dict[str, Any] = {} if combination is None else {"combination": combination}
    return DynSnapClassifier.load(
        path, model=model, sha256=sha256, trust=trust, **settings
    ).exportable()
