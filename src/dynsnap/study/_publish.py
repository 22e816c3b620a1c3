"""The results of a finished study in a folder of their own, small enough to be committed."""

import contextlib
import os
import shutil
from pathlib import Path

from dynsnap import _files, predictions
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import PredictionKey
from dynsnap.study._cells import check_shareable

TABLES = ("table.csv", "replicates.csv", "sweeps.csv", "study.toml", "about.json")
SCORED = "average"  # the combination whose scores are kept; of the others labels are enough


def publish(run: Path, target: Path, *, scores: bool = True) -> tuple[Path, ...]:
    """Copy the results of a run folder to a folder of their own, and return its files.

    Tables are copied as they are, unless a cell could do harm where it is opened. The labels of all
    predictions go to `labels.parquet`. The scores of the average in the first replicate go to
    `scores.parquet`, in half precision. Rounds, checkpoints, ensembles and inputs are not copied.
    Earlier results in the folder are replaced by all files together, or not at all.

    Args:
        run: The run folder.
        target: Where the files go.
        scores: Whether scores are kept. Labels are enough for accuracy, consistency and flips.

    Raises:
        FileError: The run has no table: it was not finished, or this is not a run folder. Or a
            table is not one that a study wrote.
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
            if path.suffix == ".csv":
                check_shareable(run / path.name)
            with _files.replacing(path) as aside:
                shutil.copyfile(run / path.name, aside)
        kept += predictions.write_published(
            run, target, scored=lambda key: scores and _is_scored(key)
        )
        earlier = (target / "predictions").rglob("[!.]*.parquet")
        files = (*TABLES, *predictions.PUBLISHED)
        for path in (*earlier, *(target / name for name in files)):
            if path not in kept:  # of an earlier form of the study
                _files.remove(path)
    for name in ("predictions/late", "predictions/twin", "predictions"):
        with contextlib.suppress(OSError):  # it is not there, or holds files of others
            (target / name).rmdir()
    return tuple(kept)


def check_finished(folder: Path) -> None:
    """Raise unless a folder holds the table of a study."""
    if not (folder / "table.csv").is_file():
        raise FileError(
            f"{folder} holds no finished study: there is no table.csv in it. "
            "`dynsnap run STUDY --out DIR` makes one."
        )


def _is_scored(key: PredictionKey) -> bool:
    return key.combination == SCORED and key.replicate == 0
