"""Predictions that were logged to MLflow, by the addresses of runs and registered models."""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from dynsnap import predictions
from dynsnap.errors import PlanError
from dynsnap.mlflow._server import connected
from dynsnap.predictions import Predictions
from dynsnap.trainers import needed

PREDICTIONS = "dynsnap/predictions.parquet"  # where predictions are among a run's artifacts
TAG = "dynsnap.predictions"  # of a run or a model version: the address of its predictions
_RUN = re.compile(r"runs:/([0-9A-Za-z_-]{1,64})(?:/(.+))?")
_MODEL = re.compile(r"models:/([^/@]+)(?:@([^/@]+)|/(\d+))")


def log_predictions(
    found: Predictions, artifact: str = PREDICTIONS, *, version: str | None = None
) -> str:
    """Log predictions as an artifact of the active run, for later gates; their address.

    The tag `dynsnap.predictions` of the run has the address, too.

    Args:
        found: The predictions.
        artifact: Where among the run's artifacts; the suffix decides the format.
        version: The model version that made them, such as "models:/churn/7", where another run
            has logged it: its tag `dynsnap.predictions` gets the address.
    """
    mlflow = needed("mlflow", "mlflow")
    with (
        connected(failing="Cannot log the predictions to MLflow") as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        named = None if version is None else _version(client, version)
        file = Path(folder) / PurePosixPath(artifact).name
        predictions.write(found, file)
        run = (mlflow.active_run() or mlflow.start_run()).info.run_id
        client.log_artifact(run, str(file), parent_of(artifact))
        address = f"runs:/{run}/{artifact}"
        client.set_tag(run, TAG, address)
        if named is not None:
            client.set_model_version_tag(named.name, named.version, TAG, address)
    return address


@contextlib.contextmanager
def fetched(address: Path | str) -> Iterator[Path]:
    """The file of the predictions at an address, for as long as it lasts. No model is loaded.

    Args:
        address: `runs:/ID/ARTIFACT`, `runs:/ID`, `models:/NAME@ALIAS` or `models:/NAME/VERSION`. A
            run and a model version stand for the address in their tag `dynsnap.predictions`;
            without it, for the artifact `dynsnap/predictions.parquet` of the run.

    Raises:
        PlanError: This is no address, the server does not answer, or it has no such run, model or
            artifact.
    """
    with tempfile.TemporaryDirectory(prefix="dynsnap-") as folder:
        with connected(failing=f"MLflow has no predictions at {address}") as client:
            run, artifact = _resolved(client, str(address))
            names = [each.path for each in client.list_artifacts(run, parent_of(artifact))]
            if artifact not in names:
                raise PlanError(
                    f"MLflow has no predictions at {address}: the run {run} has no artifact "
                    f"{artifact}. Log it in that run with `dynsnap.mlflow.log_predictions`."
                )
            got = client.download_artifacts(run, artifact, folder)
        yield Path(got)


def parent_of(artifact: str) -> str | None:
    """The folder of an artifact; None for one that lies in no folder."""
    parent = str(PurePosixPath(artifact).parent)
    return None if parent == "." else parent


def _resolved(client: Any, address: str) -> tuple[str, str]:
    """The run and the artifact that an address stands for."""
    if (found := _RUN.fullmatch(address)) is not None:
        run, artifact = found.groups()
        if artifact:
            return run, artifact
        return _tagged(client.get_run(run).data.tags, run)
    version = _version(client, address)
    if TAG not in version.tags and not version.run_id:
        raise PlanError(
            f"{address} was registered without a run, so it has no logged predictions. Log them "
            f'with `dynsnap.mlflow.log_predictions(..., version="{address}")`.'
        )
    if TAG in version.tags:
        return _tagged(version.tags, version.run_id)
    return _tagged(client.get_run(version.run_id).data.tags, version.run_id)


def _tagged(tags: dict[str, str], run: str) -> tuple[str, str]:
    """The run and the artifact that a tag names; the usual ones without it."""
    if TAG not in tags:
        return run, PREDICTIONS
    found = _RUN.fullmatch(tags[TAG])
    if found is None or not found[2]:
        raise PlanError(
            f"The tag {TAG} must be an address such as runs:/ID/{PREDICTIONS}, got {tags[TAG]!r}."
        )
    return found[1], found[2]


def _version(client: Any, address: str) -> Any:
    """The model version of an address."""
    if (model := _MODEL.fullmatch(address)) is None:
        raise PlanError(
            f"{address} is no address of MLflow. Use runs:/ID/ARTIFACT, models:/NAME@ALIAS or "
            "models:/NAME/VERSION."
        )
    name, alias, number = model.groups()
    if alias is not None:
        return client.get_model_version_by_alias(name, alias)
    return client.get_model_version(name, number)
