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


def read_looks(inputs: str | None, found: Comparison, *, id_column: str = "id") -> Looks:
    """What the inputs look like that a page shows of a comparison.

    Args:
        inputs: Where they are kept.
        found: The comparison.
        id_column: What the column of ids is called, in a table.
    """
    wanted = study.shown_ids(found)
    if not wanted or inputs is None:
        return {}
    return data.read_excerpts(inputs, wanted, id_column=id_column)


def read_learned_from(folder: Path) -> dict[str, int]:
    """Training rows of each class in the last generation, as a study's folder tells."""
    try:
        rows_of = read_about(folder)["training_rows"]
        return {name: rows[-1] for name, rows in rows_of.items()}
    except (LookupError, DynSnapError):
        return {}  # of an older version


def read_late_families(folder: Path) -> dict[str, dict[str, str]]:
    """For each slice, the value of classes that are new in a later generation.

    Test inputs may lack these classes, and then do not tell which superclass they belong to.

    Args:
        folder: A run folder, or published results. All methods predict the same inputs.
    """
    late = next(
        (place for key, place in predictions.stored(folder).items() if key.kind == "late"), None
    )
    if late is None:
        return {}
    said = predictions.read(late)
    found: dict[str, dict[str, str]] = {}
    for label, name in enumerate(said.classes if said.truth is not None else ()):
        for column, values in said.slices.items():
            codes = set(values.codes[said.truth == label].tolist())
            if len(codes) == 1 and min(codes) >= 0:
                found.setdefault(column, {})[name] = values.values[codes.pop()]
    return found
