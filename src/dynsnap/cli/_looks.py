"""What inputs look like on a page: where they are kept, and which are shown."""

from pathlib import Path

import click

from dynsnap import data, predictions, study
from dynsnap.cli._stored import read_about
from dynsnap.comparison import Comparison
from dynsnap.errors import DataError, DynSnapError, PlanError
from dynsnap.report import Looks

inputs_option = click.option(
    "--inputs",
    metavar="PLACE",
    help="Show inputs on the page: an NPZ file, a table or JSON lines of ids and texts, a folder "
    "of images, or a source such as cifar-10:PATH.",
)


def claim_inputs(inputs: str | None, html_to: Path | None) -> None:
    """Refuse inputs that nobody would see, or that are nowhere, before any work is done."""
    if inputs is None:
        return
    if html_to is None:
        raise PlanError("--inputs shows inputs on a page: give --html too.")
    if not Path(inputs).exists() and inputs.partition(":")[0] not in data.SOURCES:
        raise DataError(f"There is no file, folder or source {inputs!r} to read inputs from.")


def read_looks(
    inputs: str | None,
    found: Comparison,
    *,
    id_column: str = "id",
    beside: Path | str | None = None,
) -> Looks:
    """What the inputs look like that a page shows of a comparison.

    Args:
        inputs: Where they are kept.
        found: The comparison.
        id_column: What the column of ids is called, in a table.
        beside: A file of predictions: where it lies in a run folder that keeps inputs, they are
            shown unasked.
    """
    wanted = study.shown_ids(found)
    if not wanted:
        return {}
    if inputs is not None:
        return data.read_excerpts(inputs, wanted, id_column=id_column)
    kept = None if beside is None else _kept_with(Path(beside))
    try:
        return {} if kept is None else data.read_excerpts(kept, wanted)
    except DynSnapError:  # of other inputs, or damaged; nobody has asked for it
        return {}


def read_learned_from(folder: Path | str) -> dict[str, int]:
    """Training rows of each class in the last generation, as a run folder or its files tell.

    Args:
        folder: The run folder, or a file of predictions in it.
    """
    place = Path(folder)
    run = place.parent.parent if place.parent.name == "predictions" else place
    try:
        rows_of = read_about(run)["training_rows"]
        return {name: rows[-1] for name, rows in rows_of.items()}
    except (LookupError, DynSnapError):
        return {}  # made elsewhere, or before runs told it


def read_late_families(file: Path | str) -> dict[str, dict[str, str]]:
    """For each slice, the value of classes that arrived late, as a run folder tells.

    Test inputs may lack these classes, and then do not tell which superclass they belong to.

    Args:
        file: A file of predictions: in a run folder those of late classes lie below it.
    """
    place = Path(file)
    late = place.parent / "late" / place.name
    if place.parent.name != "predictions" or not late.is_file():
        return {}
    try:
        said = predictions.read(late)
    except DynSnapError:  # nobody has asked for it
        return {}
    found: dict[str, dict[str, str]] = {}
    for label, name in enumerate(said.classes if said.truth is not None else ()):
        for column, values in said.slices.items():
            codes = set(values.codes[said.truth == label].tolist())
            if len(codes) == 1 and min(codes) >= 0:
                found.setdefault(column, {})[name] = values.values[codes.pop()]
    return found


def _kept_with(file: Path) -> Path | None:
    """The inputs that the run folder keeps in which a file of predictions lies."""
    kept = file.parent.parent / study.INPUTS
    return kept if file.parent.name == "predictions" and kept.is_file() else None
