"""Ensembles and predictions in MLflow: a model flavour, addresses for the gate, an evaluator.

Needs `dynsnap[mlflow]`. MLflow itself is loaded when a function needs it.
"""

from dynsnap.mlflow._addresses import PREDICTIONS, fetched, log_predictions
from dynsnap.mlflow._flavour import _load_pyfunc, load_model, log_model, save_model
from dynsnap.mlflow._versions import ModelState, ModelVersions, describe_ensemble

__all__ = [
    "PREDICTIONS",
    "ModelState",
    "ModelVersions",
    "_load_pyfunc",  # MLflow calls it by this name
    "describe_ensemble",
    "fetched",
    "load_model",
    "log_model",
    "log_predictions",
    "save_model",
]
