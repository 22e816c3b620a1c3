"""The paper's methods as a scikit-learn estimator."""

from dynsnap.estimator._classifier import DynSnapClassifier
from dynsnap.estimator._fitted import Member
from dynsnap.estimator._session import EpochEnd

__all__ = ["DynSnapClassifier", "EpochEnd", "Member"]
