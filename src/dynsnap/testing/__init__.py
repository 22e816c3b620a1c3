"""The contracts of dynsnap as reusable checks, and a trainer that needs nothing but numpy.

Whoever writes a trainer, a store or an engine runs the check of its kind in their own tests.
"""

from dynsnap.testing._centroids import CentroidTrainer, score_centroids
from dynsnap.testing._engine import check_engine
from dynsnap.testing._rounds import Notebook, assert_same_round
from dynsnap.testing._store import check_checkpoints, check_store
from dynsnap.testing._trainer import check_backend, check_trainer

__all__ = [
    "CentroidTrainer",
    "Notebook",
    "assert_same_round",
    "check_backend",
    "check_checkpoints",
    "check_engine",
    "check_store",
    "check_trainer",
    "score_centroids",
]
