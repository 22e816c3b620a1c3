"""Predictions: ids, classes, scores or labels, truth; read, written, and joined by id."""

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
from dynsnap.predictions._stand import MARGIN, stand, standing
from dynsnap.predictions._stored import stored
from dynsnap.predictions._stream import AlignedStream, stream
from dynsnap.predictions._write import write

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
    "stand",
    "standing",
    "stored",
    "stream",
    "write",
    "write_published",
]
