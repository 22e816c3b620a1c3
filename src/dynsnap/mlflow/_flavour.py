"""Ensembles as MLflow models: the ensemble file beside an MLmodel, nothing pickled."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynsnap import __version__, trainers
from dynsnap.errors import FileError, PlanError
from dynsnap.mlflow._server import connected
from dynsnap.store import load_ensemble
from dynsnap.trainers import needed

if TYPE_CHECKING:
    from dynsnap.estimator import DynSnapClassifier

FILE = "model.ensemble"
_MODEL = "DYNSNAP_MODEL"  # the factory of torch members, MODULE:NAME, set by whoever loads


def save_model(ensemble: "DynSnapClassifier", path: str | os.PathLike[str], **given: Any) -> None:
    """Write a fitted ensemble as an MLflow model with the flavour `python_function`.

    Args:
        ensemble: The ensemble.
        path: A folder that does not exist yet.
        given: Further arguments of `mlflow.pyfunc.save_model`, such as `signature`.
    """
    mlflow = needed("mlflow", "mlflow")
    with tempfile.TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(os.fspath(path), **_arguments(ensemble, folder, given))


def log_model(ensemble: "DynSnapClassifier", name: str, **given: Any) -> Any:
    """Log a fitted ensemble to the active run; MLflow's `ModelInfo`.

    Args:
        ensemble: The ensemble.
        name: The model's name.
        given: Further arguments of `mlflow.pyfunc.log_model`, such as `registered_model_name`.
    """
    mlflow = needed("mlflow", "mlflow")
    with (
        connected(failing="Cannot log the model to MLflow"),
        tempfile.TemporaryDirectory() as folder,
    ):
        return mlflow.pyfunc.log_model(name=name, **_arguments(ensemble, folder, given))


def load_model(uri: str, *, model: Any = None) -> "DynSnapClassifier":
    """An ensemble from MLflow, as an estimator.

    Args:
        uri: Of the model, such as models:/churn@champion, or a folder that `save_model` wrote.
        model: The factory of torch members, whose code no file holds.
    """
    from dynsnap.estimator import DynSnapClassifier

    mlflow = needed("mlflow", "mlflow")
    if Path(uri).is_dir():  # what `save_model` wrote needs no server
        return DynSnapClassifier.load(_file_in(Path(uri)), model=model)
    with tempfile.TemporaryDirectory() as folder:
        with connected(failing=f"MLflow has no model at {uri}"):
            place = mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder)
        return DynSnapClassifier.load(_file_in(Path(place)), model=model)


def _arguments(ensemble: Any, folder: str, given: dict[str, Any]) -> dict[str, Any]:
    file = Path(folder) / FILE
    ensemble.save(file)
    extras = sorted({"mlflow", ensemble.backend_} & {"mlflow", *trainers.BACKENDS.own})
    return {
        "loader_module": "dynsnap.mlflow",
        "data_path": str(file),
        "pip_requirements": [f"dynsnap[{','.join(extras)}]=={__version__}"],
        **given,
    }


def _file_in(folder: Path) -> Path:
    found = sorted(folder.rglob(FILE))
    if len(found) != 1:
        raise FileError(f"The MLflow model holds {len(found)} files called {FILE}, not one.")
    return found[0]


def _load_pyfunc(path: str) -> "PyFuncEnsemble":
    """What MLflow calls to load the model.

    No name in the model is imported: the factory of torch members comes from the environment of
    whoever loads it.
    """
    from dynsnap.estimator import DynSnapClassifier

    place = Path(path)
    file = place if place.is_file() else _file_in(place)
    saved = load_ensemble(file).model
    factory, model = os.environ.get(_MODEL), None
    if trainers.trainer_name(saved) == "torch" and "name" not in saved:  # not one of dynsnap's own
        if factory is None:
            raise PlanError(
                "The members are torch modules, whose code no file holds: set the environment "
                f"variable {_MODEL}=MODULE:FACTORY, or call `dynsnap.mlflow.load_model(uri, "
                "model=...)`."
            )
        settings = {key: value for key, value in saved.items() if key != "backend"}
        model = trainers.named("torch").restore(settings, factory=factory)
    return PyFuncEnsemble(DynSnapClassifier.load(file, model=model))


class PyFuncEnsemble:
    """An ensemble as MLflow calls it: a table of labels and scores for a table or an array."""

    def __init__(self, ensemble: "DynSnapClassifier") -> None:
        self.ensemble = ensemble

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """A frame with the columns `label` and `score:<class>`, as prediction files have them."""
        import pandas as pd  # type: ignore[import-untyped]

        inputs, index = model_input, None
        if isinstance(inputs, pd.DataFrame | pd.Series):
            index = inputs.index
            if not hasattr(self.ensemble, "feature_names_in_"):
                inputs = inputs.to_numpy()
        scores = self.ensemble.predict_proba(inputs)
        classes = self.ensemble.classes_
        names = [f"score:{name}" for name in classes]
        found = pd.DataFrame(scores, columns=names, index=index)
        found.insert(0, "label", np.asarray(classes)[scores.argmax(axis=1)])
        return found
