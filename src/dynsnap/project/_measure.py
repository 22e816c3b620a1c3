"""The new generation and the deployed one on the same rows: truth, comparison, gate, report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dynsnap import gate, predictions, report
from dynsnap.errors import FileError, InputError, TrainingError
from dynsnap.predictions import Predictions, Verification
from dynsnap.predictions._ids import as_text
from dynsnap.project import _records as records
from dynsnap.project._records import Measured
from dynsnap.project._rows import NEWEST
from dynsnap.project._settings import GateSettings

PREDICTED_NOW = Verification(False, "predicted by this retrain", file=False)
STORED = Verification(True, "SHA-256 of the registry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is measured of a new generation.

    Attributes:
        measured: What is kept of it.
        document: The report.
        verdict: The verdict as plain values.
    """

    measured: Measured
    document: report.Document
    verdict: dict[str, Any]


def measure_first(
    new: Predictions, generation: int, about: Mapping[str, Any], *, name: str
) -> Findings:
    """A generation with nothing to compare it to: its accuracy alone."""
    assert new.truth is not None
    right = np.asarray(new.labels == new.truth)
    column = new.slices["rows"]
    newest = np.asarray([column.values[code] == NEWEST for code in column.codes.tolist()], bool)
    accuracy = float(right.mean())
    measured = Measured(
        generation=generation,
        verdict="none",
        held_out={"accuracy_new": [accuracy, None, None]},
        newest={"accuracy_new": [float(right[newest].mean()), None, None]} if newest.any() else {},
        evaluated=len(new),
        about=about,
    )
    text = (
        f"Generation {generation} is the first: nothing is deployed to compare it to. "
        f"Accuracy on {len(new):,} held-out rows: {accuracy:.4f}."
    )
    document = report.Document.of(f"{name}: the first generation", report.document.Prose(text))
    return Findings(
        measured=measured,
        document=document,
        verdict={"verdict": "none", "generation": generation, "accuracy": accuracy},
    )


def measure_pair(
    old: Predictions,
    new: Predictions,
    numbers: tuple[int, int],
    about: Mapping[str, Any],
    rules: Sequence[gate.Rule],
    *,
    settings: GateSettings,
    rescored: bool,
) -> Findings:
    """The deployed generation and a new one, held against the rules of the project.

    Args:
        old: Predictions of the deployed generation.
        new: Predictions of the new one.
        numbers: Of the two generations.
        about: What the training states of itself.
        rules: What they are held against.
        settings: How rules are judged.
        rescored: Whether the deployed generation scored the rows in this retrain, not in its own.
    """
    notes = []
    if len(old) < len(new):
        notes.append(
            f"Without a `predict` command the deployed generation has predictions for "
            f"{len(old):,} of {len(new):,} rows; the two are compared on those."
        )
        new = new.take(np.isin(_ids(new), _ids(old)))
    names = [f"generation {number}" for number in numbers]
    verdict, found = gate.judge_pair(
        old,
        new,
        rules,
        names=names,
        min_count=settings.min_count,
        unresolved=settings.unresolved,
        resamples=settings.resamples,
    )
    verdict = replace(
        verdict,
        verification={names[0]: PREDICTED_NOW if rescored else STORED, names[1]: PREDICTED_NOW},
    )
    held_out, newest = records.of_pair(found)
    measured = Measured(
        generation=numbers[1],
        verdict=verdict.word,
        held_out=held_out,
        newest=newest,
        evaluated=len(new),
        about=about,
        notes=tuple(notes),
    )
    found = replace(found, notes=(*found.notes, *notes))
    document = report.verdict_document(verdict, found)
    return Findings(measured=measured, document=document, verdict=gate.to_json(verdict))


def _ids(said: Predictions) -> Any:
    return np.asarray(as_text(said.id_column).to_numpy(zero_copy_only=False), object)


def with_truth(file: Path, truth: Path, who: str, *, some: bool = False) -> Predictions:
    """Predictions in the order of the rows, with the truth that the project knows.

    A truth or slices in the file itself are not used: what a training wrote does not judge itself.

    Args:
        file: The predictions.
        truth: The rows, with their true classes.
        who: Whose predictions these are, for messages.
        some: Whether rows may be missing: those are left out.
    """
    try:
        said = predictions.read(file)
    except (FileError, InputError) as error:
        raise TrainingError(f"{who} left predictions that cannot be used: {error}") from error
    rows = pq.read_table(truth)
    wanted = rows.column("id").to_pylist()
    place = {name: at for at, name in enumerate(_ids(said).tolist())}
    there = [at for at, name in enumerate(wanted) if name in place]
    if not there or (len(there) < len(wanted) and not some):
        missing = next(name for name in wanted if name not in place)
        raise TrainingError(
            f"{who} has no predictions for {len(wanted) - len(there):,} of {len(wanted):,} rows, "
            f"such as id {missing!r}. Score every row of the file that it is given."
        )
    chosen = np.array([place[wanted[at]] for at in there])
    true = [rows.column("truth")[at].as_py() for at in there]
    unmet = sorted(set(true) - set(said.classes))
    names = (*said.classes, *unmet)
    scores = None if said.scores is None else said.scores[chosen]
    if scores is not None:
        scores = np.pad(scores, ((0, 0), (0, len(unmet))))
    return Predictions(
        ids=[wanted[at] for at in there],
        classes=names,
        scores=scores,
        labels=said.names_of(said.labels[chosen]),
        truth=np.array(true, dtype=object),
        slices={"rows": [rows.column("rows")[at].as_py() for at in there]},
        positions=False,
    )
