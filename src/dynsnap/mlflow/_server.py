"""The MLflow server: whether it answers, and its errors in one line."""

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dynsnap.errors import FileError, PlanError, one_line
from dynsnap.trainers import needed

_SECONDS = 5.0
_PRINTS = {
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@contextlib.contextmanager
def connected(
    uri: str | None = None,
    *,
    failing: str,
    error: type[PlanError] | type[FileError] = PlanError,
) -> Iterator[Any]:
    """A client of the server, for as long as it is needed.

    Args:
        uri: Of the tracking server; by default the one that MLflow is set to.
        failing: How the message begins if MLflow cannot do what it was asked for.
        error: What is raised then.

    Raises:
        PlanError: The server does not answer.
    """
    mlflow = needed("mlflow", "mlflow")
    from mlflow.exceptions import MlflowException

    for place in {uri} if uri else {mlflow.get_tracking_uri(), mlflow.get_registry_uri()}:
        _reach(place)
    if uri is None and not mlflow.is_tracking_uri_set():
        _refuse_new_database(mlflow.get_tracking_uri())
    try:
        with _quiet():
            yield mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
    except (MlflowException, OSError) as found:
        raise error(f"{failing}: {_first_line(found)}.") from found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars, links and notes of MLflow: a command prints its own result, and errors."""
    logger, before = logging.getLogger("mlflow"), {name: os.environ.get(name) for name in _PRINTS}
    level = logger.level
    logger.setLevel(logging.WARNING)
    os.environ.update(_PRINTS)
    try:
        yield
    finally:
        logger.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _reach(uri: str) -> None:
    """Raise unless the server answers: MLflow itself would try again for minutes."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname):
        return  # the proxy answers
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), timeout=_SECONDS).close()
    except OSError as error:
        raise PlanError(
            f"The MLflow server at {parts.scheme}://{parts.hostname}:{port} does not answer: "
            f"{error.strerror or error}. Start it, or set MLFLOW_TRACKING_URI."
        ) from error


def _refuse_new_database(uri: str) -> None:
    """Raise if MLflow would make an empty database in the current folder to look into."""
    parts = urlsplit(uri)
    if parts.scheme == "sqlite" and not Path(parts.path).exists():
        raise PlanError(
            "No MLflow server is named, and there is no MLflow database here. Set "
            "MLFLOW_TRACKING_URI, such as http://127.0.0.1:5000."
        )


def _first_line(error: Exception) -> str:
    """The first line of an error of MLflow, without its end."""
    return one_line(str(error).strip().partition("\n")[0])[:300].rstrip(".")
