"""Predictions that were logged to MLflow, by the addresses of runs and registered models."""

import contextlib
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dynsnap import predictions
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import Predictions
from dynsnap.trainers import needed

PREDICTIONS = "dynsnap/predictions.parquet"  # where predictions are among a run's artifacts
_TAG = "dynsnap.predictions"  # of a model version whose predictions are elsewhere in its run
_RUN = re.compile(r"runs:/([0-9A-Za-z_-]{1,64})(?:/(.+))?")
_MODEL = re.compile(r"models:/([^/@]+)(?:@([^/@]+)|/(\d+))")
_SECONDS = 5.0


def is_address(place: Path | str) -> bool:
    """Whether a place is a run or a registered model version of MLflow.

    Example:
        >>> is_address("models:/churn@champion"), is_address("runs:/1f2e"), is_address("old.csv")
        (True, True, False)
    """
    return str(place).startswith(("models:/", "runs:/"))


def log_predictions(found: Predictions, artifact: str = PREDICTIONS) -> str:
    """Log predictions as an artifact of the active run, for later gates; the run's address.

    Args:
        found: The predictions.
        artifact: Where among the run's artifacts; the suffix decides the format.
    """
    mlflow = needed("mlflow", "mlflow")
    place = PurePosixPath(artifact)
    with _reaching(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / place.name
        predictions.write(found, file)
        run = mlflow.active_run() or mlflow.start_run()
        mlflow.log_artifact(str(file), str(place.parent) if len(place.parts) > 1 else None)
    return f"runs:/{run.info.run_id}/{artifact}"


@contextlib.contextmanager
def fetched(address: Path | str) -> Iterator[Path]:
    """The file of the predictions at an address, for as long as it lasts. No model is loaded.

    Args:
        address: `runs:/ID/ARTIFACT`, `runs:/ID`, `models:/NAME@ALIAS` or `models:/NAME/VERSION`. A
            model stands for the predictions that the run which made it has logged.

    Raises:
        FileError: The server does not answer, or there is no such run, model or artifact.
        PlanError: This is no address.
    """
    mlflow = needed("mlflow", "mlflow")
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory(prefix="dynsnap-") as folder:
        try:
            with _reaching():
                run, artifact = _resolved(mlflow.MlflowClient(), str(address))
                got = mlflow.artifacts.download_artifacts(
                    run_id=run, artifact_path=artifact, dst_path=folder
                )
        except (MlflowException, OSError) as error:
            raise FileError(
                f"MLflow has no predictions at {address}: {_first_line(error)}. Log them in the "
                f"run with `dynsnap.mlflow.log_predictions`, which stores {PREDICTIONS}."
            ) from error
        yield Path(got)


def _resolved(client: Any, address: str) -> tuple[str, str]:
    """The run and the artifact that an address stands for."""
    if (run := _RUN.fullmatch(address)) is not None:
        return run[1], run[2] or PREDICTIONS
    if (model := _MODEL.fullmatch(address)) is None:
        raise PlanError(
            f"{address} is no address of MLflow. Use runs:/ID/ARTIFACT, models:/NAME@ALIAS or "
            "models:/NAME/VERSION."
        )
    name, alias, number = model.groups()
    if alias is not None:
        found = client.get_model_version_by_alias(name, alias)
    else:
        found = client.get_model_version(name, number)
    if not found.run_id:
        raise FileError(
            f"{address} was registered without a run, so it has no logged predictions. Name a run: "
            "runs:/ID/ARTIFACT."
        )
    return found.run_id, found.tags.get(_TAG, PREDICTIONS)


@contextlib.contextmanager
def _reaching() -> Iterator[None]:
    """Make sure that the tracking server answers: MLflow itself tries again for minutes."""
    mlflow = needed("mlflow", "mlflow")
    for uri in {mlflow.get_tracking_uri(), mlflow.get_registry_uri()}:
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            continue
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname, port), timeout=_SECONDS).close()
        except OSError as error:
            raise FileError(
                f"The MLflow server at {parts.scheme}://{parts.hostname}:{port} does not answer: "
                f"{error.strerror or error}. Start it, or set MLFLOW_TRACKING_URI."
            ) from error
    yield


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")[:300]
