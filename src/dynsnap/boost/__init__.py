"""Rounds of boosted trees and scikit-learn classifiers: the same plans, store and metrics as torch.

Snapshots are prefixes of the boosting iterations (XGBoost, LightGBM, scikit-learn's gradient
boosting), or the learner after an epoch (scikit-learn's MLP and SGD classifiers). Every other
scikit-learn classifier gives one learner per round.
"""

from dynsnap.boost._snapshots import opened, score
from dynsnap.boost._trainer import BoostTrainer

__all__ = ["BoostTrainer", "opened", "score"]
