"""What trains a generation: a program of the user's own, or a built-in method."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dynsnap import data, predictions, trainers
from dynsnap._untrusted import Text, mismatch
from dynsnap.ensemble import METHOD_KINDS
from dynsnap.errors import DataError, DynSnapError, PlanError, TrainingError, did_you_mean, one_line
from dynsnap.project._rows import EVALUATE, TRAIN
from dynsnap.project._settings import (
    CommandSettings,
    DataSettings,
    MethodSettings,
    Project,
    filled,
)
from dynsnap.store import load_ensemble

_TAIL = 4096  # bytes of a log that are looked at for its last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training left: two files, and what it cost.

    Attributes:
        model: The model file.
        predictions: Its predictions on the rows to evaluate.
        about: Plain facts that are kept with the generation.
    """

    model: Path
    predictions: Path
    about: Mapping[str, Any]


class GenerationTrainer(Protocol):
    """Trains generations of one project, and scores rows with them."""

    can_predict: bool
    rows_format: str

    def check(self, *, importing: bool) -> None:
        """Refuse settings that cannot be used, before any work is done."""
        ...

    def check_rows(self, rows: Path, deployed: Mapping[str, Any] | None) -> None:
        """Refuse rows that it cannot train on, or that a deployed generation cannot score."""
        ...

    def train(self, rows: Path, into: Path, deployed: Path | None) -> Trained:
        """Train on the rows in a folder, from the deployed model, and leave files in another."""
        ...

    def predict(self, model: Path, rows: Path, into: Path) -> Path:
        """Score the rows of a file with a model: a file of predictions in the folder."""
        ...

    def sentence(self) -> str:
        """What it does, for `--dry-run`."""
        ...


def make_trainer(project: Project) -> GenerationTrainer:
    """The trainer that `project.toml` names. Nothing is run or imported for a program."""
    if isinstance(project.trainer, CommandSettings):
        return CommandTrainer(project.trainer, folder=project.folder, seed=project.seed)
    return MethodTrainer(project.trainer, project.data, seed=project.seed)


class CommandTrainer:
    """Runs a program of the user's own: no shell, the arguments of `project.toml`, that folder."""

    def __init__(self, settings: CommandSettings, *, folder: Path, seed: int) -> None:
        self._settings, self._folder, self._seed = settings, folder.resolve(), seed
        self.can_predict = bool(settings.predict)
        self.rows_format = settings.rows_format

    def check(self, *, importing: bool) -> None:
        """Nothing to refuse: a program is looked for when it is started."""

    def check_rows(self, rows: Path, deployed: Mapping[str, Any] | None) -> None:
        """Nothing to refuse: which columns it needs, the program knows."""

    def train(self, rows: Path, into: Path, deployed: Path | None) -> Trained:
        model, made = (into / name for name in self._names())
        with _lent(deployed, into) as copy:
            began = time.monotonic()
            self._run(
                self._settings.train,
                {
                    "train": str((rows / f"{TRAIN}.{self.rows_format}").resolve()),
                    "evaluate": str((rows / f"{EVALUATE}.{self.rows_format}").resolve()),
                    "model": str(model.resolve()),
                    "predictions": str(made.resolve()),
                    "deployed": "" if copy is None else str(copy.resolve()),
                    "seed": str(self._seed),
                },
                log=rows / "train.log",
                wanted={"model": model, "predictions": made},
            )
        about = {"trainer": "command", "seconds": round(time.monotonic() - began, 3)}
        return Trained(model=model, predictions=made, about=about)

    def predict(self, model: Path, rows: Path, into: Path) -> Path:
        made = into / self._names()[1]
        with _lent(model, into) as copy:
            assert copy is not None
            values = {"model": copy, "rows": rows, "predictions": made}
            self._run(
                self._settings.predict,
                {name: str(path.resolve()) for name, path in values.items()},
                log=rows.parent / "predict.log",
                wanted={"predictions": made},
            )
        return made

    def sentence(self) -> str:
        also = f" Score with: {shlex.join(self._settings.predict)}" if self.can_predict else ""
        return f"Train with: {shlex.join(self._settings.train)}{also}"

    def _names(self) -> tuple[str, str]:
        return self._settings.model_file, self._settings.predictions_file

    def _run(
        self,
        words: tuple[str, ...],
        values: Mapping[str, str],
        *,
        log: Path,
        wanted: Mapping[str, Path],
    ) -> None:
        arguments, said = filled(words, values), shlex.join(words)
        log.unlink(missing_ok=True)  # one that outlives a killed loop goes on in its own
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(
                    arguments,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that it ends with all that it has started
                )
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise TrainingError(
                    f"Cannot start {arguments[0]!r}, which project.toml names: {reason}. The "
                    "deployed generation is unchanged."
                ) from error
            try:
                code = process.wait()
            except BaseException:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        last = _last_line(log)
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise TrainingError(
                f"The command failed with {how}: {said}. {last}All that it said: {log}. The "
                "deployed generation is unchanged; the same command goes on."
            )
        for what, path in wanted.items():
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                raise TrainingError(
                    f"The command wrote no {what} to {path.name}: {said}. {last}The deployed "
                    "generation is unchanged."
                )


@contextmanager
def _lent(model: Path | None, into: Path) -> Iterator[Path | None]:
    """A copy of the deployed model: a program that trains on in place must not change the original.

    It goes again when the program has ended.
    """
    if model is None:
        yield None
        return
    place = into / ".lent"
    place.mkdir()
    try:
        yield Path(shutil.copyfile(model, place / model.name))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = file.read().decode(errors="replace").split("\n")
    found = [line.strip() for line in lines if line.strip()]
    return f"It said last: {one_line(found[-1])[:200]!r}. " if found else "It said nothing. "


class MethodTrainer:
    """Trains by a built-in method: `DynSnapClassifier`, kept as an ensemble file."""

    can_predict = True
    rows_format = "parquet"
    _model_file = "model.ensemble"

    def __init__(self, settings: MethodSettings, rows: DataSettings, *, seed: int) -> None:
        self._settings, self._rows, self._seed = settings, rows, seed

    def check(self, *, importing: bool) -> None:
        """Refuse a method, a model or settings that do not exist."""
        if self._settings.method not in METHOD_KINDS:
            raise PlanError(
                f"[retrain]: there is no method {self._settings.method!r}. "
                f"{did_you_mean(self._settings.method, METHOD_KINDS)}"
            )
        if importing:
            self._estimator()

    def check_rows(self, rows: Path, deployed: Mapping[str, Any] | None) -> None:
        """Refuse columns that are no numbers, and others than those of the deployed generation.

        A model takes its columns by position: renamed or in another order they would be scored as
        if they were the old ones.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = rows / f"{TRAIN}.{self.rows_format}"
        found, types = self._features(file), pq.read_schema(file)
        if odd := next((name for name in found if mismatch(Text(), name)), None):
            raise DataError(
                f"The name of the column {one_line(odd)[:40]!r} holds control characters, or is "
                "too long. Rename it."
            )
        numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        for name in found:
            if name in types.names and not any(fits(types.field(name).type) for fits in numbers):
                raise DataError(
                    f"Column {name!r} is {types.field(name).type}, not numbers. Name the columns "
                    "to learn from, without it: `features` in [data]."
                )
        known = None if deployed is None else deployed.get("features")
        if known and known != found:
            other = sorted({*known} ^ {*found})
            how = f"other columns: {', '.join(other[:5])}" if other else "another order of columns"
            raise DataError(
                f"The rows have {how} than those that the deployed generation was trained on. "
                "Name the same columns with `features` in [data], or begin a new project."
            )

    def train(self, rows: Path, into: Path, deployed: Path | None) -> Trained:
        file, asked = (rows / f"{name}.{self.rows_format}" for name in (TRAIN, EVALUATE))
        pool = data.read_table(
            file,
            label=self._rows.label,
            id=self._rows.id,
            features=self._features(file),
            allow_missing=True,
        ).train
        inputs, labels = pool.inputs, np.array(pool.classes, dtype=object)[pool.labels].astype(str)
        if len(known := set(labels)) < 2:
            raise TrainingError(
                f"All {len(labels):,} rows to train on are of one class, {str(min(known))!r}; a "
                "classifier needs two. Wait for more rows, or set a longer `window`. The deployed "
                "generation is unchanged."
            )
        began = time.monotonic()
        fresh = self._estimator()
        if deployed is None:
            made = fresh.fit(inputs, labels)
        else:
            made = self._successor(deployed, inputs, labels)
        seconds = time.monotonic() - began
        model = into / self._model_file
        _save_named(made, self._features(file), model)
        about = {
            "trainer": self._settings.method,
            "features": self._features(file),
            "seconds": round(seconds, 3),
            "cost": float(made.cost_),
            "members": len(made.members_),
        }
        return Trained(model=model, predictions=self._score(made, asked, into), about=about)

    def predict(self, model: Path, rows: Path, into: Path) -> Path:
        return self._score(self._served(model), rows, into)

    def sentence(self) -> str:
        return f"Train by the method {self._settings.method}."

    def _successor(self, deployed: Path, inputs: Any, labels: Any) -> Any:
        """The next generation: from the deployed one where the method carries something over."""
        if not self._goes_on():
            return self._estimator().fit(inputs, labels)
        before = self._opened(deployed)
        if gone := sorted(set(before.classes_.tolist()) - set(labels.tolist())):
            raise TrainingError(
                f"No row to train on is of the class {gone[0]!r} any more, which the deployed "
                f"generation knows, and {self._settings.method} goes on from that. Set a longer "
                "`window` in [data], or a method that trains afresh, such as singlebase. The "
                "deployed generation is unchanged."
            )
        # Rows are in the order of time, and the window decides which: "earlier" is all but one.
        return before.retrain(inputs[-1:], labels[-1:], earlier=(inputs[:-1], labels[:-1]))

    def _goes_on(self) -> bool:
        kind = METHOD_KINDS[self._settings.method]
        return bool(kind.rolling or kind.retrained)

    def _estimator(self) -> Any:
        from dynsnap.estimator import DynSnapClassifier

        model, settings = self._configured()
        known = DynSnapClassifier(model)._get_param_names()
        given = {**settings, **self._settings.settings}
        for name in given:
            if name == "random_state":
                raise PlanError("[retrain]: `random_state` is called `seed` here. Set that one.")
            if name not in known or name in ("model", "method", "keep_data", "monitor"):
                raise PlanError(f"[retrain] has no setting `{name}`. {did_you_mean(name, known)}")
        return DynSnapClassifier(
            model,
            method=self._settings.method,
            random_state=self._seed,
            keep_data=False,
            **given,
        )

    def _configured(self) -> tuple[Any, dict[str, Any]]:
        name = trainers.trainer_name(self._settings.model)
        backend = trainers.named(name)
        table = {key: value for key, value in self._settings.model.items() if key != "trainer"}
        training = dict(self._settings.training)
        own = {key: training.pop(key) for key in ("epochs",) if key in training}
        model, settings = backend.configure(table, training)
        kept = {key: value for key, value in settings.items() if key != "checkpoint_every"}
        return model, {**kept, **own}

    def _served(self, path: Path) -> Any:
        """The deployed model by its own settings, not by those that project.toml has by now."""
        trained_by = trainers.trainer_name(load_ensemble(path).model)
        # No file holds the code of a network: that of project.toml is all there is.
        return _load(path, **({} if trained_by == "boost" else {"model": self._estimator().model}))

    def _opened(self, path: Path) -> Any:
        # It goes on by the model and all settings of project.toml, not by what the file says.
        return _load(path, **self._estimator().get_params(deep=False))

    def _features(self, file: Path) -> list[str]:
        if self._rows.features:
            return list(self._rows.features)
        import pyarrow.parquet as pq

        taken = {self._rows.id, self._rows.time, self._rows.label}
        return [name for name in pq.read_schema(file).names if name not in taken]

    def _score(self, estimator: Any, rows: Path, into: Path) -> Path:
        found = data.read_inputs(
            rows, id=self._rows.id, features=self._features(rows), allow_missing=True
        )
        to = into / "predictions.parquet"
        predictions.write(estimator.predictions(found.inputs, ids=found.ids), to)
        return to


def _load(path: Path, **given: Any) -> Any:
    from dynsnap.estimator import DynSnapClassifier

    try:
        return _unnamed(DynSnapClassifier.load(path, **given))
    except DynSnapError as error:
        raise TrainingError(f"The deployed model cannot be opened: {error}") from error


def _save_named(made: Any, features: list[str], path: Path) -> None:
    """Keep the names of the columns with a model: a server may bring them in another order."""
    made.feature_names_in_ = np.array(features, dtype=object)
    made.save(path)
    _unnamed(made)


def _unnamed(made: Any) -> Any:
    """The same estimator for arrays: `check_rows` has seen that the columns are those it knows."""
    vars(made).pop("feature_names_in_", None)
    return made
