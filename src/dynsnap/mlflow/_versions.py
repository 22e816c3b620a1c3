"""The versions of one registered model: their files, their tags, and the aliases to them."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynsnap.errors import FileError, PlanError
from dynsnap.mlflow._addresses import PREDICTIONS, parent_of
from dynsnap.mlflow._flavour import FILE
from dynsnap.mlflow._server import connected

FOLDER = parent_of(PREDICTIONS)  # so gates find them
_NAME = re.compile(r"[^/:@'\"`\x00-\x1f\x7f]{1,200}")
_KEY = "dynsnap.key"  # of a run: what its files are for
_MISSING = "RESOURCE_DOES_NOT_EXIST"


@dataclass(frozen=True, slots=True)
class ModelState:
    """What is known of a registered model.

    Attributes:
        tags: Its tags.
        aliases: The versions that its aliases name.
        updated: When it was changed last, in milliseconds of Unix time.
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, int] = field(default_factory=dict)
    updated: int = 0


class ModelVersions:
    """The versions of a registered model.

    Args:
        name: The model; it is made with its first version, and so is an experiment of that name.
        uri: The tracking server; by default the one that MLflow is set to.
    """

    def __init__(self, name: str, uri: str | None = None) -> None:
        if _NAME.fullmatch(name) is None:
            raise PlanError(f"A model of MLflow cannot be called {name!r}: no / : @ or quotes.")
        self.name, self._uri = name, uri
        self._runs: dict[int, str] = {}  # of versions; it never changes

    def __str__(self) -> str:
        return f"models:/{self.name}"

    def state(self) -> ModelState:
        """Tags and aliases; none of either before there is such a model."""
        with self._asked() as client, _missing():
            found = client.get_registered_model(self.name)
            aliases = {name: int(number) for name, number in found.aliases.items()}
            return ModelState(dict(found.tags), aliases, found.last_updated_timestamp or 0)
        return ModelState()

    def tags_of_all(self) -> dict[int, dict[str, str]]:
        """The tags of every version, in order."""
        found: dict[int, dict[str, str]] = {}
        token: str | None = None
        with self._asked() as client:
            while True:
                some = client.search_model_versions(
                    f"name = '{self.name}'", max_results=200, page_token=token
                )
                found |= {int(each.version): dict(each.tags) for each in some}
                token = some.token
                if not token:
                    return dict(sorted(found.items()))

    def tags_of(self, number: int) -> dict[str, str] | None:
        """The tags of a version, None if there is no such version."""
        with self._asked() as client, _missing():
            return dict(client.get_model_version(self.name, str(number)).tags)
        return None

    def add(self, key: str, folder: Path, tags: Mapping[str, str]) -> int:
        """Register a new version with the files of a folder; its number.

        Files are logged to a run before the version is made. A run of the same key that has no
        version, which a killed process leaves, is used again.

        Args:
            key: What the files are for.
            folder: The files.
            tags: Of the version; they are there as soon as it is.
        """
        with self._asked() as client:
            from mlflow.exceptions import MlflowException

            try:
                client.create_registered_model(self.name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
            run = self._run_of(client, key)
            for file in sorted(folder.iterdir()):
                client.log_artifact(run.info.run_id, str(file), FOLDER)
            made = client.create_model_version(
                self.name,
                source=f"{run.info.artifact_uri}/{FOLDER}",
                run_id=run.info.run_id,
                tags=dict(tags),
            )
            client.set_terminated(run.info.run_id)
            return int(made.version)

    def fetch(self, number: int, files: Iterable[str], into: Path) -> None:
        """Download files of a version to a folder.

        Raises:
            FileError: The version has no such file.
        """
        for file in files:
            with self._asked(FileError, f"{file} cannot be read") as client:
                if number not in self._runs:
                    self._runs[number] = client.get_model_version(self.name, str(number)).run_id
                run = self._runs[number]
                got = client.download_artifacts(run, f"{FOLDER}/{file}", str(into))
                Path(got).replace(into / file)

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags of the model, one after another."""
        with self._asked() as client:
            for name, value in tags.items():
                client.set_registered_model_tag(self.name, name, value)

    def point(self, alias: str, number: int | None) -> None:
        """Let an alias name a version, or none."""
        with self._asked() as client:
            if number is None:
                client.delete_registered_model_alias(self.name, alias)
            else:
                client.set_registered_model_alias(self.name, alias, str(number))

    def _run_of(self, client: Any, key: str) -> Any:
        experiment = client.get_experiment_by_name(self.name)
        number = client.create_experiment(self.name) if experiment is None else None
        number = number or experiment.experiment_id
        begun = client.search_runs(
            [number], f"tags.`{_KEY}` = '{key}' and attributes.status = 'RUNNING'"
        )
        if begun:
            return begun[0]
        return client.create_run(number, run_name=key, tags={_KEY: key})

    def _asked(
        self, error: type[PlanError] | type[FileError] = PlanError, failing: str = ""
    ) -> Any:
        failing = failing or f"MLflow cannot do what was asked of {self}"
        return connected(self._uri, failing=failing, error=error)


@contextlib.contextmanager
def _missing() -> Iterator[None]:
    """Go on behind the block if MLflow does not know what was asked for."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code != _MISSING:
            raise


def describe_ensemble(folder: Path) -> None:
    """Write `MLmodel` beside the file of an ensemble: MLflow loads the folder as its model then."""
    if not (folder / FILE).is_file():
        return
    import mlflow
    from mlflow.models import Model

    made = Model()
    mlflow.pyfunc.add_to_model(made, loader_module="dynsnap.mlflow", data=FILE)
    made.save(str(folder / "MLmodel"))
