"""One method of a study input by input, from its prediction files."""

from collections.abc import Sequence
from pathlib import Path

from dynsnap import comparison, predictions
from dynsnap.cli._looks import read_late_families, read_learned_from, read_looks
from dynsnap.errors import DynSnapError, PlanError, did_you_mean
from dynsnap.report import InputDrilldown
from dynsnap.study import FRESH, INPUTS, Row


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
        notes: Is told what had to be left out.
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
        looks = read_looks(place, compared)
    except DynSnapError as error:
        if inputs is not None:
            raise
        notes.append(f"What was lost, input by input, is left out: {error}")
        return None
    return InputDrilldown(
        method=chosen,
        combination=how,
        comparison=compared,
        looks=looks,
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
