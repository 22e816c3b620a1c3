"""The paper's methods as a scikit-learn estimator."""

from dynsnap.estimator._classifier import DynSnapClassifier
from dynsnap.estimator._fitted import Member

__all__ = ["DynSnapClassifier", "Member"]
