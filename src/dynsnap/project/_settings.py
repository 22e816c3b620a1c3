"""`project.toml`: what is retrained, on which data, by what, and under which rules."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dynsnap._untrusted import Text, mismatch, read_toml
from dynsnap.data._time import EXPANDING, length_of_time
from dynsnap.errors import FileError, PlanError, did_you_mean, one_line
from dynsnap.gate import MIN_COUNT, UNRESOLVED, Unresolved
from dynsnap.predictions._sources import format_of
from dynsnap.study import TomlTable

FILE = "project.toml"
REGISTRY, RETRAINS = "registry", "retrains"  # the folders that the loop fills
Unit: TypeAlias = Literal["day", "week", "month"]
_CADENCE = re.compile(r"(?:(\d{1,4}) )?(day|week|month)s?")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
TRAIN_WORDS = ("train", "evaluate", "model", "predictions", "deployed", "seed")
REGISTRIES = ("folder", "mlflow")
PREDICT_WORDS = ("model", "rows", "predictions")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Files of the loop beside what a program writes, and beside its model in a generation.
_TAKEN = ("generation.json", "trained.json")
_PREDICTIONS = "predictions.parquet"


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a model is retrained: a number of calendar days, weeks (from Monday) or months.

    Example:
        >>> Cadence.parse("2 weeks"), str(Cadence.parse("week"))
        (Cadence(unit='week', count=2), 'week')
    """

    unit: Unit = "week"
    count: int = 1

    @staticmethod
    def parse(text: str) -> "Cadence":
        """From the words of a setting."""
        found = _CADENCE.fullmatch(text)
        if found is None or not int(found[1] or 1):
            raise PlanError(
                "[data]: `cadence` must be day, week or month, or a number of them such as "
                f'"2 weeks", got {text!r}.'
            )
        return Cadence(found[2], int(found[1] or 1))  # type: ignore[arg-type]  # as the form has it

    def __str__(self) -> str:
        return self.unit if self.count == 1 else f"{self.count} {self.unit}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """Where rows come from, and which of them are held out.

    Attributes:
        source: "table" for CSV and Parquet files, or "flights".
        path: A file, or a folder of files that grows.
        id: The column of ids, which are unique.
        time: The column of times.
        label: The column of classes; rows without one are not used yet.
        features: The columns of numbers that a built-in method learns from; all that have no other
            role if empty.
        cadence: The period between two retrains.
        label_delay: How long after a row its label is known, such as "1 day".
        window: "expanding" to train on all rows so far, or the length of a sliding window.
        test_size: Share of the rows that no generation is trained on.
        test_periods: From how many of the newest periods held-out rows are scored; 0 for all.
    """

    source: str = "table"
    path: Path | None = None
    id: str = "id"
    time: str = "time"
    label: str = "label"
    features: tuple[str, ...] = ()
    cadence: Cadence = field(default_factory=Cadence)
    label_delay: str = "0 days"
    window: str = EXPANDING
    test_size: float = 0.2
    test_periods: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """A trainer that is a program of the user's own.

    Attributes:
        train: The arguments of the program that trains.
        predict: Those of the program that scores rows with a model; empty where there is none.
        model_file: What the file of a model is called.
        predictions_file: What a file of predictions is called: the ending tells the format.
        rows_format: In which format it gets rows: "parquet" or "csv".
    """

    train: tuple[str, ...]
    predict: tuple[str, ...] = ()
    model_file: str = "model.bin"
    predictions_file: str = "predictions.parquet"
    rows_format: str = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """A built-in method, as for `DynSnapClassifier`.

    Attributes:
        method: Its name.
        settings: Further parameters of the estimator, such as `members`.
        model: The table [model], as in a study.
        training: The table [training], as in a study.
    """

    method: str
    settings: Mapping[str, Any]
    model: Mapping[str, Any]
    training: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """What a new generation must fulfil to be deployed."""

    rules: Path
    unresolved: Unresolved = "fail"
    min_count: int = MIN_COUNT
    resamples: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Where generations are kept.

    Attributes:
        kind: "folder" for a folder of the project, "mlflow" for MLflow's model registry.
        model: The registered model, of MLflow alone.
        uri: The tracking server; None for the one that MLFLOW_TRACKING_URI names.
    """

    kind: str = "folder"
    model: str = ""
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project: a folder and what its `project.toml` states.

    Attributes:
        text: The file itself, which later retrains are held against.
    """

    folder: Path
    name: str
    data: DataSettings
    trainer: CommandSettings | MethodSettings
    gate: GateSettings
    seed: int = 0
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    text: str = ""


def read_project(folder: Path) -> Project:
    """What the project in a folder is.

    Raises:
        FileError: There is no `project.toml`, or it cannot be read.
        PlanError: It has settings that do not exist, or contradict each other.
    """
    path = folder / FILE
    try:
        found, text = read_toml(path), path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(
            f"There is no project in {folder}: it has no {FILE}. Make one with: dynsnap project "
            f"init {shlex.quote(str(folder))}"
        ) from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise PlanError(f"{path} is not valid TOML: {error}.") from error
    whole = TomlTable(found, FILE)
    name = whole.take("name", str, folder.resolve().name)
    data = _data(_section(whole, "data"), folder)
    retrain = _section(whole, "retrain")
    model, training = whole.take("model", dict, {}), whole.take("training", dict, {})
    seed = int(_within(retrain, "seed", 0, 0, 2**32 - 1))
    trainer = _trainer(retrain, model, training)
    if data.features and isinstance(trainer, CommandSettings):
        raise PlanError("[data]: `features` is for built-in methods; a command gets all columns.")
    gate = _gate(_section(whole, "gate"), folder)
    registry = _registry(_section(whole, "registry"), name)
    whole.finish()
    return Project(
        folder=folder,
        name=name,
        data=data,
        trainer=trainer,
        gate=gate,
        seed=seed,
        registry=registry,
        text=text,
    )


def _section(whole: TomlTable, name: str) -> TomlTable:
    return TomlTable(whole.take(name, dict, {}), f"[{name}]")


def _data(table: TomlTable, folder: Path) -> DataSettings:
    source = table.take("source", str, "table")
    if source not in ("table", "flights"):
        raise PlanError(
            f"[data]: there is no source {source!r} of rows with a time. "
            f"{did_you_mean(source, ('table', 'flights'))}"
        )
    path = table.take("path", str, None)
    if path is None and source == "table":
        raise PlanError("[data] must set `path`: a CSV or Parquet file, or a folder of them.")
    made = DataSettings(
        source=source,
        path=None if path is None else _place(folder, path, "[data]: `path`"),
        id=table.take("id", str, "id"),
        time=table.take("time", str, "time"),
        label=table.take("label", str, "label"),
        features=table.take_texts("features", ()),
        cadence=Cadence.parse(table.take("cadence", str, "week")),
        label_delay=table.take("label_delay", str, "0 days"),
        window=table.take("window", str, EXPANDING),
        test_size=_within(table, "test_size", 0.2, 0.01, 0.9),
        test_periods=int(_within(table, "test_periods", 4, 0, 10_000)),
    )
    table.finish()
    length_of_time(made.label_delay, "[data]: `label_delay`", zero=True)
    if made.window != EXPANDING:
        length_of_time(made.window, f'[data]: `window` that is not "{EXPANDING}"')
    roles = (made.id, made.time, made.label, *made.features)
    if len(set(roles)) < len(roles):
        raise PlanError(f"[data]: a column can have one role only, but these were named: {roles}.")
    if odd := next((name for name in roles if mismatch(Text(longest=1000), name)), None):
        raise PlanError(
            f"[data]: the name of the column {one_line(odd)[:40]!r} holds control characters, or "
            "is too long. Rename it."
        )
    return made


def _place(folder: Path, text: str, where: str) -> Path:
    """A path of project.toml, which is relative to the project unless it is absolute."""
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:  # ~somebody
        raise PlanError(f"{where}: there is no home folder for {text!r}.") from error


def _within(table: TomlTable, key: str, default: float, low: float, high: float) -> float:
    found = table.take(key, type(default), default)
    if not low <= found <= high:
        raise PlanError(f"{table.where}: `{key}` must be from {low:g} to {high:g}, got {found!r}.")
    return found


def _trainer(
    table: TomlTable, model: dict[str, Any], training: dict[str, Any]
) -> CommandSettings | MethodSettings:
    command = table.take("command", str, None)
    method = table.take("method", str, None)
    if (command is None) == (method is None):
        raise PlanError(
            "[retrain] must set `command`, a program that trains, or `method`, a built-in method: "
            "one of the two."
        )
    if method is not None:
        if not model:
            raise PlanError(
                "[retrain] names a method, so [model] must say what it trains, such as name = "
                '"lightgbm".'
            )
        return MethodSettings(method=method, settings=table.rest(), model=model, training=training)
    assert command is not None
    for name, found in (("model", model), ("training", training)):
        if found:
            raise PlanError(f"[{name}] is for built-in methods, and [retrain] sets `command`.")
    made = CommandSettings(
        train=_arguments(command, TRAIN_WORDS, "command", needed=("model", "predictions")),
        predict=_arguments(
            table.take("predict", str, ""), PREDICT_WORDS, "predict", needed=PREDICT_WORDS
        ),
        model_file=_file_name(table, "model_file", "model.bin"),
        predictions_file=_file_name(table, "predictions_file", "predictions.parquet"),
        rows_format=table.take("rows_format", str, "parquet"),
    )
    if made.rows_format not in ("parquet", "csv"):
        raise PlanError(
            f"[retrain]: `rows_format` must be parquet or csv, got {made.rows_format!r}."
        )
    try:
        format_of(Path(made.predictions_file))
    except FileError as error:
        raise PlanError(f"[retrain]: `predictions_file`: {error}") from error
    if made.model_file == made.predictions_file:
        raise PlanError(
            f"[retrain]: `model_file` and `predictions_file` are both {made.model_file!r}. Give "
            "each a name of its own."
        )
    table.finish()
    return made


def _arguments(
    text: str, words: tuple[str, ...], key: str, *, needed: tuple[str, ...]
) -> tuple[str, ...]:
    """The arguments of a program, split as a shell does, though none ever sees them."""
    if not text.strip():
        if key == "predict":
            return ()
        raise PlanError(f"[retrain]: `{key}` is empty. Name the program that trains.")
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise PlanError(f"[retrain]: `{key}` cannot be split into words: {error}.") from error
    named = _PLACEHOLDER.findall(text)
    for word in named:
        if word not in words:
            raise PlanError(
                f"[retrain]: `{key}` has an unknown placeholder {{{word}}}. "
                f"{did_you_mean(word, words)}"
            )
    for word in needed:
        if word not in named:
            raise PlanError(
                f"[retrain]: `{key}` must have the placeholder {{{word}}}, which tells the program "
                "where that file is."
            )
    return found


def filled(arguments: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Arguments with their placeholders replaced; what is put in is not looked at again.

    Example:
        >>> filled(("train.py", "--to={model}"), {"model": "a {b}"})
        ['train.py', '--to=a {b}']
    """
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], each) for each in arguments]


def _file_name(table: TomlTable, key: str, default: str) -> str:
    found = table.take(key, str, default)
    if _FILE_NAME.fullmatch(found) is None:
        raise PlanError(
            f"[retrain]: `{key}` must be a plain file name such as {default}, got {found!r}."
        )
    if found in _TAKEN or (key == "model_file" and found == _PREDICTIONS):
        raise PlanError(
            f"[retrain]: `{key}` is {found!r}, which the loop writes itself. Name another, such as "
            f"{default}."
        )
    return found


def _gate(table: TomlTable, folder: Path) -> GateSettings:
    rules = _place(folder, table.take("rules", str, "gate.toml"), "[gate]: `rules`")
    unresolved = table.take("unresolved", str, "fail")
    if unresolved not in UNRESOLVED:
        raise PlanError(
            f"[gate]: `unresolved` must be one of {', '.join(UNRESOLVED)}, got {unresolved!r}."
        )
    made = GateSettings(
        rules=rules,
        unresolved=unresolved,
        min_count=int(_within(table, "min_count", MIN_COUNT, 1, 1_000_000_000)),
        resamples=int(_within(table, "resamples", 1000, 1, 1_000_000)),
    )
    table.finish()
    return made


def _registry(table: TomlTable, project: str) -> RegistrySettings:
    kind = table.take("kind", str, "folder")
    if kind not in REGISTRIES:
        raise PlanError(
            f"[registry]: there is no registry {kind!r}. {did_you_mean(kind, REGISTRIES)}"
        )
    made = RegistrySettings()
    if kind == "mlflow":
        made = RegistrySettings(
            kind=kind, model=table.take("model", str, project), uri=table.take("uri", str, None)
        )
    table.finish()
    return made
