"""Predictions: ids, classes, scores or labels, truth; read, written, and joined by id."""

from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._report import AlignmentReport

__all__ = ["AlignmentReport", "Predictions", "Slice"]
