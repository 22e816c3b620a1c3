"""What inputs look like on a page: where they are kept, and which are shown."""

from pathlib import Path

import click

from dynsnap import data, study
from dynsnap.comparison import Comparison
from dynsnap.errors import DataError, PlanError
from dynsnap.report.html import Looks

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
    """What the inputs look like that a page shows of a comparison."""
    wanted = study.shown_ids(found)
    if inputs is None or not wanted:
        return {}
    return data.read_excerpts(inputs, wanted, id_column=id_column)
