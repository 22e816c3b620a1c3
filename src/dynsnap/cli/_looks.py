"""What inputs look like on a page: where they are kept, and which are shown."""

import click

from dynsnap import data, study
from dynsnap.comparison import Comparison
from dynsnap.report.html import Looks

inputs_option = click.option(
    "--inputs",
    metavar="PLACE",
    help="Show inputs on the page: an NPZ file, a table or JSON lines of ids and texts, a folder "
    "of images, or a source such as cifar-10:PATH.",
)


def read_looks(inputs: str | None, found: Comparison, *, id_column: str = "id") -> Looks:
    """What the inputs look like that a page shows of a comparison."""
    wanted = study.shown_ids(found)
    if inputs is None or not wanted:
        return {}
    return data.read_excerpts(inputs, wanted, id_column=id_column)
