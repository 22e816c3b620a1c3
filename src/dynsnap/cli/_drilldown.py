"""One method of a study input by input, and what inputs look like on a page."""

from collections.abc import Sequence
from pathlib import Path

import click

from dynsnap import comparison, data, predictions, study
from dynsnap.cli._stored import read_about
from dynsnap.comparison import Comparison
from dynsnap.errors import DataError, DynSnapError, PlanError, did_you_mean
from dynsnap.report import Excerpts, InputDrilldown
from dynsnap.study import FRESH, INPUTS, Row

inputs_option = click.option(
    "--inputs",
    metavar="PLACE",
    help="Show inputs on the page: an NPZ file, a table or JSON lines of ids and texts, a folder "
    "of images, or a source such as cifar-10:PATH.",
)


def claim_inputs(inputs: str | None, html_to: Path | None) -> None:
    """Refuse inputs without a page to show them on, or without a file, before any work is done."""
    if inputs is None:
        return
    if html_to is None:
        raise PlanError("--inputs shows inputs on a page: give --html too.")
    if not Path(inputs).exists() and inputs.partition(":")[0] not in data.SOURCES:
        raise DataError(f"There is no file, folder or source {inputs!r} to read inputs from.")


def excerpts_for(inputs: str | None, found: Comparison, *, id_column: str = "id") -> Excerpts:
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
    """Training rows of each class in the last generation, as a study's folder shows."""
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


def look(
    folder: Path,
    rows: Sequence[Row],
    *,
    method: str | None,
    inputs: str | None,
    notes: list[str],
) -> InputDrilldown | None:
    """The generations of one method side by side, with the inputs that it lost.

    Args:
        folder: The run folder.
        rows: The study's table, in whose order methods are tried.
        method: The method; by default a fresh DynSnap-cyc, or the first there is.
        inputs: Where inputs are kept, if not in the run folder.
        notes: Receives what had to be left out.
    """
    found = _addresses(folder)
    known = list(dict.fromkeys(name for name, _ in found))
    if method is not None and method not in known:
        raise PlanError(
            f"{folder} has no predictions of a method {method!r} in two generations. "
            f"{did_you_mean(method, known) if known else 'It has none at all.'}"
        )
    if not known:
        notes.append("No predictions are stored here: what was lost, input by input, is left out.")
        return None
    order = [method or FRESH, *dict.fromkeys(row.method for row in rows), *known]
    chosen = next(name for name in order if name in known)
    how = next(way for name, way in sorted(found) if name == chosen)  # the average comes first
    files = found[chosen, how]
    try:
        compared = comparison.compare(
            *files.values(),
            names=[f"g{number}" for number in files],
            families=read_late_families(folder),
        )
        kept = folder / INPUTS
        place = inputs or (str(kept) if kept.is_file() else None)
        excerpts = excerpts_for(place, compared)
    except DynSnapError as error:
        if inputs is not None:
            raise
        notes.append(f"What was lost, input by input, is left out: {error}")
        return None
    return InputDrilldown(
        method=chosen,
        combination=how,
        comparison=compared,
        excerpts=excerpts,
        learned_from=read_learned_from(folder),
        files=list(files.values()),
    )


def _addresses(folder: Path) -> dict[tuple[str, str], dict[int, str]]:
    """The predictions of the first replicate, by method and combination and generation."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for key, address in predictions.stored(folder).items():
        if key.kind == "test" and key.replicate == 0:
            found.setdefault((key.method, key.combination), {})[key.generation] = address
    return {key: dict(sorted(one.items())) for key, one in found.items() if len(one) > 1}
