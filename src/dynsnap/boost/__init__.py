"""Rounds of boosted trees and scikit-learn classifiers: the same plans, store and metrics as torch.

Snapshots are prefixes of the boosting iterations (XGBoost, LightGBM, scikit-learn's gradient
boosting), or the learner after an epoch (scikit-learn's MLP and SGD classifiers). Every other
scikit-learn classifier gives one learner per round.
"""

from dynsnap.boost._settings import categorical_columns, looks_at_names
from dynsnap.boost._snapshots import LibraryModel, library_model, opened, score, widened
from dynsnap.boost._soft_labels import soft_label_rows
from dynsnap.boost._trainer import BoostTrainer, check_retraining

__all__ = [
    "BoostTrainer",
    "LibraryModel",
    "categorical_columns",
    "check_retraining",
    "library_model",
    "looks_at_names",
    "opened",
    "score",
    "soft_label_rows",
    "widened",
]
