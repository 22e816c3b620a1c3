"""Predictions: ids, classes, scores or labels, truth; read, written, and joined by id."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.predictions._align import Aligned, align, names_of_files
from dynsnap.predictions._digest import Verification
from dynsnap.predictions._keys import PredictionKey
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._publish import write_published
from dynsnap.predictions._published import LABELS, SCORES
from dynsnap.predictions._read import read
from dynsnap.predictions._report import AlignmentReport
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._stabilize import MARGIN, stabilize, stabilize_scores
from dynsnap.predictions._stored import stored
from dynsnap.predictions._stream import AlignedStream, stream
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
    "ColumnNames",
    "PredictionKey",
    "Predictions",
    "Slice",
    "Verification",
    "align",
    "names_of_files",
    "read",
    "stabilize",
    "stabilize_scores",
    "stored",
    "stream",
    "write",
    "write_published",
]
