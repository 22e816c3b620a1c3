"""Predictions: ids, classes, scores or labels, truth; read, written, and joined by id."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.predictions._align import Aligned, AlignmentReport, align, names_of_files
from dynsnap.predictions._baselines import Baseline, BaselineStore
from dynsnap.predictions._digest import Verification
from dynsnap.predictions._frames import Table
from dynsnap.predictions._keys import PredictionKey
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._models import OneModel
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._publish import write_published
from dynsnap.predictions._published import LABELS, SCORES
from dynsnap.predictions._read import as_predictions, read, read_models
from dynsnap.predictions._schema import ColumnNames, check_columns_table
from dynsnap.predictions._stabilize import (
    MARGIN,
    deployed_in,
    refuse_own_decisions,
    relabelled,
    stabilize,
    stabilize_scores,
)
from dynsnap.predictions._stored import stored
from dynsnap.predictions._stream import AlignedStream, stream
from dynsnap.predictions._stream_file import Source, models_of
from dynsnap.predictions._study_labels import StudyLabels, study_labels
from dynsnap.predictions._write import write

if not TYPE_CHECKING:  # to type checkers the old names are unknown
    __getattr__ = renamed_functions(
        __name__, {"stand": "stabilize", "standing": "stabilize_scores"}
    )

PUBLISHED = (LABELS, SCORES)  # the files of published predictions

__all__ = [
    "MARGIN",
    "PUBLISHED",
    "Aligned",
    "AlignedStream",
    "AlignmentReport",
    "Baseline",
    "BaselineStore",
    "ColumnNames",
    "OneModel",
    "PredictionKey",
    "Predictions",
    "Slice",
    "Source",
    "StudyLabels",
    "Table",
    "Verification",
    "align",
    "as_predictions",
    "check_columns_table",
    "deployed_in",
    "models_of",
    "names_of_files",
    "read",
    "read_models",
    "refuse_own_decisions",
    "relabelled",
    "stabilize",
    "stabilize_scores",
    "stored",
    "stream",
    "study_labels",
    "write",
    "write_published",
]
