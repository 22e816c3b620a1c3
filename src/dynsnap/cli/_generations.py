"""The generations that a command is given: their files, their names, and how they are lined up."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dynsnap import comparison
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import AlignedStream, ColumnNames, names_of_files, stored, stream
from dynsnap.predictions._locate import files_of, locate
from dynsnap.predictions._same import same_files


def generation_names(files: Sequence[Path | str], names: str | None = None) -> tuple[str, ...]:
    """What to call each file's generation: the names given, or what tells the files apart.

    Example:
        >>> generation_names([Path("monday.csv"), Path("tuesday.csv")], "mon,tue")
        ('mon', 'tue')
    """
    if names is not None:
        given = tuple(name.strip() for name in names.split(","))
        if len(given) != len(files) or not all(given) or len(set(given)) < len(given):
            raise PlanError(
                f"--names takes {len(files)} different names with commas between, one for each "
                f"file, got {names!r}."
            )
        return given
    return names_of_files([Path(file) for file in files])


def lined_up(
    files: Sequence[Path | str],
    names: Sequence[str],
    noise_floor: Path | str | None,
    columns: ColumnNames,
    rename: Mapping[str, str],
) -> AlignedStream:
    """The generations of some files, and after them the twin of the first, if there is one."""
    for place in files:
        refuse_run_folder(Path(place))
    if noise_floor is not None:
        files, names = [*files, noise_floor], [*names, comparison.twin_name(names)]
    return stream(files, names=names, columns=columns, rename=rename)


def refuse_run_folder(place: Path) -> None:
    """Raise for a run folder or published results, with the predictions of many ensembles."""
    folder = place.parent if place.name == "predictions" else place
    if not (folder / "table.csv").is_file():
        return
    with contextlib.suppress(StopIteration):
        some = next(iter(stored(folder).values()))
        raise PlanError(
            f"{place} is of a study, with the predictions of many ensembles. Name one of each "
            f"generation, such as {some}; or see all of them with: dynsnap report {folder}"
        )
    raise PlanError(f"{place} is of a study, and holds no predictions. Name files of predictions.")


def files_behind(places: Iterable[Path | str | None]) -> Iterator[Path]:
    """The files of this machine that places of predictions stand for."""
    for place in places:
        if place is None or (isinstance(place, str) and not place.lower().startswith("file:")):
            continue  # another machine's: no output goes there
        with contextlib.suppress(FileError):  # whoever reads it says so
            yield from (part for part in files_of(locate(place)) if isinstance(part, Path))


def refuse_same_files(places: Mapping[str, Path | str | None]) -> None:
    """Raise if two places have predictions in common, by whatever path: they change nothing at all.

    Args:
        places: Where predictions are, by what the command line calls them.
    """
    for same in same_files(places.keys(), places.values()):
        raise PlanError(
            f"{same.second} and {same.first} are {same.what}. A model that is held against itself "
            "passes whatever it does. Name the predictions of two models."
        )
