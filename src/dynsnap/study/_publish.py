"""The results of a finished study in a folder of their own, small enough to be committed."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from dynsnap import _files, predictions
from dynsnap.ensemble import COMBINATIONS
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import Predictions

TABLES = ("table.csv", "replicates.csv", "sweeps.csv", "study.toml", "about.json")
SCORED = "average"  # the combination whose scores are kept; of the others labels are enough
_NAME = re.compile(rf"(.+)-({'|'.join(sorted(COMBINATIONS, reverse=True))})-g(\d+)(?:-r(\d+))?")


def publish(run: Path, target: Path) -> tuple[Path, ...]:
    """Copy the results of a run folder to a folder of their own, and return its files.

    Tables are copied as they are. Predictions become
    `predictions/<method>-<combination>-g<i>-r<k>.parquet` with ids, truth and labels, and scores in
    half precision for the average alone. Rounds, checkpoints, ensembles and inputs are not copied.
    Earlier results in the folder are replaced by all files together, or not at all.

    Raises:
        FileError: The run has no table: it was not finished, or this is not a run folder.
    """
    check_finished(run)
    inside = Path(os.path.realpath(run))  # unlike `Path.resolve`, no error for a link to itself
    if Path(os.path.realpath(target)).is_relative_to(inside):
        raise PlanError(f"{target} lies in the run folder itself: name another place.")
    if (target / "rounds").is_dir():
        raise PlanError(f"{target} is a run folder itself: name another place for the results.")
    with _files.together():
        _files.make_folder(target)
        kept = [target / name for name in TABLES if (run / name).is_file()]
        for path in kept:
            if not Path(os.path.realpath(run / path.name)).is_relative_to(inside):
                raise FileError(
                    f"{run / path.name} is a link to a file outside of {run}, which is not "
                    "copied. Put the file itself there."
                )
            with _files.replacing(path) as aside:
                shutil.copyfile(run / path.name, aside)
        for folder in ("", "late", "twin"):
            kept += _predictions(run / "predictions" / folder, target / "predictions" / folder)
        found = (target / "predictions").rglob("[!.]*.parquet")
        for path in (*found, *(target / name for name in TABLES)):
            if path not in kept:  # of an earlier form of the study
                _files.remove(path)
    return tuple(kept)


def check_finished(folder: Path) -> None:
    """Raise unless a folder holds the table of a study."""
    if not (folder / "table.csv").is_file():
        raise FileError(
            f"{folder} holds no finished study: there is no table.csv in it. "
            "`dynsnap run STUDY --out DIR` makes one."
        )


def _predictions(source: Path, target: Path) -> Iterator[Path]:
    for path in sorted(source.glob("[!.]*.parquet")):
        found = _NAME.fullmatch(path.stem)
        if found is None:
            continue
        method, combination, generation, replicate = found.groups()
        _files.make_folder(target)
        kept = target / f"{method}-{combination}-g{generation}-r{replicate or 0}.parquet"
        read = predictions.read(path)
        if combination != SCORED:
            read = _labels_of(read)
        predictions.write(read, kept, compact=True)
        yield kept


def _labels_of(found: Predictions) -> Predictions:
    return Predictions(
        ids=found.id_column,
        classes=found.classes,
        labels=found.labels,
        truth=found.truth,
        slices={
            name: [column.values[code] for code in column.codes]
            for name, column in found.slices.items()
        },
        weights=found.weights,
        positions=True,
    )
