"""The contracts of dynsnap as reusable checks, and a trainer that needs nothing but numpy.

Each kind of extension has one: trainers and their backends, stores, engines, metrics, methods, data
sources, rule keys and page sections. Run it in your own tests.
"""

from dynsnap.testing._centroids import CentroidTrainer, score_centroids
from dynsnap.testing._contracts import (
    RecordingMonitor,
    assert_same_round,
    check_checkpoints,
    check_engine,
    check_store,
)
from dynsnap.testing._extensions import (
    check_method,
    check_metric,
    check_rule_key,
    check_section,
    check_source,
)
from dynsnap.testing._trainer import check_backend, check_trainer

__all__ = [
    "CentroidTrainer",
    "RecordingMonitor",
    "assert_same_round",
    "check_backend",
    "check_checkpoints",
    "check_engine",
    "check_method",
    "check_metric",
    "check_rule_key",
    "check_section",
    "check_source",
    "check_store",
    "check_trainer",
    "score_centroids",
]
