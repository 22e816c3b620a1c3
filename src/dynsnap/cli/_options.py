"""Options that several commands share."""

import functools
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from dynsnap._untrusted import Plain, Table, Text, mismatch, read_toml
from dynsnap.comparison.intervals import MOST_RESAMPLES
from dynsnap.ensemble import COMBINATIONS
from dynsnap.errors import DynSnapError, PlanError
from dynsnap.gate import read_columns
from dynsnap.metrics import GROUPS
from dynsnap.metrics._ranking import CHEAP_SCORES
from dynsnap.predictions import ColumnNames, check_columns_table, tasks
from dynsnap.predictions._locate import is_uri
from dynsnap.predictions._sources import format_of
from dynsnap.predictions._text import on_one_line

Command = TypeVar("Command", bound=Callable[..., Any])


class _Named(click.Path):
    """A path that has a name: an unset variable of a shell is not the folder one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("its name is empty. If it comes from a variable, set it.", param, ctx)
        return super().convert(value, param, ctx)


class _Place(_Named):
    """Where predictions are: a path, or a URI, which stays text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if is_uri(value) else super().convert(value, param, ctx)


class Written(_Named):
    """A file to write, whose ending must stand for a format that can be written.

    Checked with the other options, before any work is done: `-` has no ending and is refused too.

    Args:
        check: Raises an error of dynsnap's for another ending.
    """

    def __init__(self, check: Callable[[Path], object]) -> None:
        super().__init__(path_type=Path)
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        try:
            if not path.is_dir():  # which is refused as a directory, where outputs are claimed
                self._check(path)
        except DynSnapError as error:
            self.fail(str(error), param, ctx)
        return path


def ends_in(suffix: str) -> Written:
    """A file to write in the one format that there is for it."""

    def check(path: Path) -> None:
        if path.suffix.lower() != suffix:
            raise PlanError(f"{on_one_line(path)} does not end in {suffix}.")

    return Written(check)


class _Filled(_Named):
    """A folder that files are written to. It need not be there yet, but must be possible."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        folder = super().convert(value, param, ctx)
        place = Path(os.path.realpath(folder))  # unlike `Path.resolve`, no error for a loop
        above = (folder, place, *place.parents)  # itself first: it may be a link to nowhere
        there = next(one for one in above if one.exists() or one.is_symlink())
        if not there.is_dir() or not os.access(there, os.W_OK):
            self.fail(
                f"cannot write to {folder}: {there} is not a folder that can be written to. Name "
                "another place.",
                param,
                ctx,
            )
        return folder


# Whether a file can be read is for its reader to say (exit code 3), not for the command line (2).
FILE = _Named(path_type=Path)
FOLDER = _Named(path_type=Path, file_okay=False)
FILLED = _Filled(path_type=Path)
PLACE = _Place(path_type=Path)


class AnyNumber(click.types.FloatParamType):
    """A number; unlike click's own, not a NaN."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


class Number(click.FloatRange, AnyNumber):
    """A number within limits."""


class Whole(click.IntRange):
    """A whole number within limits, which messages name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found: int = super().convert(value, param, ctx)
        except click.BadParameter:
            upward = "on" if self.max is None else f"to {self.max:,}"
            self.fail(f"{value!r} is not a whole number from {self.min} {upward}.", param, ctx)
        return found


_COLUMNS = {
    "id_column": ("id", "ids", "id"),
    "truth_column": ("truth", "true classes", "truth"),
    "label_column": ("label", "predicted classes", "label"),
    "weight_column": ("weight", "weights", "weight"),
    "scores_column": ("scores", "lists of scores", "scores"),
    "model_column": ("model", "models, in a table with a row for each input and model", None),
    "score_column": ("score", "scores of the positive class, with --task binary", "score"),
    "correct_column": ("correct", "grades of answers, with --task graded", "correct"),
}
_OF_MODELS = ("model_column",)
_OF_TASKS = ("score_column", "correct_column")
PROJECT = Path("pyproject.toml")


def column_options(
    *, with_models: bool = True, with_tasks: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options for files with other column names; the command gets them as `columns`.

    What no option names is named by the table `[columns]` of the rules, if the command has rules,
    else by `[tool.dynsnap.columns]` of the project.

    Args:
        with_models: Whether the command reads tables of several models.
        with_tasks: Whether it has `--task`, some of which read columns of their own.
    """
    left_out = (() if with_models else _OF_MODELS) + (() if with_tasks else _OF_TASKS)
    offered = {option: column for option, column in _COLUMNS.items() if option not in left_out}
    return functools.partial(_with_columns, offered=offered, models=with_models)


def _with_columns(
    command: Command, *, offered: dict[str, tuple[str, str, str | None]], models: bool
) -> Command:
    @functools.wraps(command)
    def parsed(*args: Any, **options: Any) -> Any:
        given = {role: options.pop(option) for option, (role, *_) in offered.items()}
        given["score_prefix"] = options.pop("score_prefix")
        labels = options.pop("label_columns", None)
        if labels is not None:
            given["labels"] = tuple(name.strip() for name in labels.split(","))
        named = project_table().get("columns", {})
        named = {**check_columns_table(named, f"[tool.dynsnap.columns] of {PROJECT}")}
        if (rules := options.get("rules_file")) is not None:
            named |= read_columns(rules)
        named |= {role: name for role, name in given.items() if name is not None}
        return command(*args, columns=ColumnNames(**named), **options)

    decorated: Any = parsed
    if models:
        decorated = click.option(
            "--label-columns",
            metavar="A,B,...",
            help="In a table with a column of labels for each model: those columns, oldest first.",
        )(decorated)
    decorated = click.option(
        "--score-prefix",
        metavar="TEXT",
        help="What the names of score columns start with.  [default: score:]",
    )(decorated)
    for option, (_, holds, default) in reversed(offered.items()):
        shown = "" if default is None else f"  [default: {default}]"
        decorated = click.option(
            "--" + option.replace("_", "-"),
            metavar="NAME",
            help=f"The column that holds {holds}.{shown}",
        )(decorated)
    return decorated  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChoice:
    """The task that a command line names, and what it sets of it."""

    name: str | None
    settings: dict[str, Any]

    def of(self, generations: int, *, twin: bool) -> tuple[tasks.Task | None, ...]:
        """The task of each generation, and after them of the twin of the first."""
        return tasks.tasks_of(self.name, self.settings, generations=generations, twin=twin)


def task_options(command: Command) -> Command:
    """Options for answers that are no classes; the command gets them as `task`."""

    @functools.wraps(command)
    def parsed(*args: Any, **options: Any) -> Any:
        settings = {name: options.pop(f"task_{name}") for name in _TASK_SETTINGS}
        settings["threshold"] = list(settings["threshold"])
        choice = TaskChoice(name=options.pop("task_name"), settings=settings)
        return command(*args, task=choice, **options)

    decorated: Any = parsed
    for name, (kind, metavar, about) in reversed(_TASK_SETTINGS.items()):
        decorated = click.option(
            "--" + name.replace("_", "-"),
            f"task_{name}",
            type=kind,
            multiple=name == "threshold",
            metavar=metavar,
            help=about,
        )(decorated)
    option = click.option(
        "--task",
        "task_name",
        type=click.Choice(tasks.NAMES),
        help="What the answers are, if not classes: docs/tasks.md.",
    )
    made: Any = option(decorated)
    return made  # type: ignore[no-any-return]


_TASK_SETTINGS: dict[str, tuple[Any, str, str]] = {
    "threshold": (
        AnyNumber(),
        "SCORE",
        "--task binary, multilabel or graded: from which score a label is given, or an answer is "
        "right; 0.5 for the first two. Repeat it to give each file its own.",
    ),
    "positive": (str, "CLASS", "--task binary: the class that the score is of."),
    "tolerance": (
        AnyNumber(),
        "NUMBER",
        "--task regression: by how much two predictions may differ that agree.",
    ),
    "truth_tolerance": (
        AnyNumber(),
        "NUMBER",
        "--task regression: by how much a prediction may be off that is right; --tolerance if "
        "left out.",
    ),
    "k": (int, "PLACES", "--task ranking: how many places of a ranking count; 10 if left out."),
    "separator": (
        str,
        "TEXT",
        "--task multilabel or ranking: what stands between labels in text; | if left out.",
    ),
}


_KEYS = Table({}, {"study": Text(), "inputs": Text(), "baselines": Text(), "columns": Plain()})


def project_table() -> dict[str, Any]:
    """The table `[tool.dynsnap]` of the project in the current directory."""
    if not PROJECT.is_file():
        return {}
    try:
        tools = read_toml(PROJECT).get("tool", {})
    except OSError as error:
        raise PlanError(f"Cannot read {PROJECT}: {error.strerror}.") from error
    except ValueError as error:
        raise PlanError(f"{PROJECT} is not valid TOML: {error}.") from error
    found = tools.get("dynsnap", {}) if isinstance(tools, dict) else {}
    if (problem := mismatch(_KEYS, found, "tool.dynsnap")) is not None:
        raise PlanError(f"{PROJECT}: {problem}.")
    return dict(found)


factory_option = click.option(
    "--model",
    "factory",
    metavar="MODULE:FACTORY",
    help="The function that builds the module, for ensembles of a model of your own.",
)
sha256_option = click.option(
    "--sha256",
    metavar="DIGEST",
    help="Read the ensemble only if its file has this SHA-256.",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Open members that cannot be checked first. Only for a file from a source that you trust.",
)
output_option = click.option(
    "-o",
    "--output",
    type=Written(format_of),
    required=True,
    metavar="OUT",
    help="The predictions: .parquet, .arrow, .feather, .csv, .tsv, .jsonl or .npz.",
)
combination_option = click.option(
    "--combination",
    type=click.Choice(COMBINATIONS),
    default="average",
    show_default=True,
    help="How members are combined.",
)
other_combination_option = click.option(
    "--combination",
    type=click.Choice(COMBINATIONS),
    help="How members are combined, if not as stored in the ensemble.",
)
rename_option = click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="Read class OLD as NEW in every file. May be repeated.",
)
noise_floor_option = click.option(
    "--noise-floor",
    type=PLACE,
    metavar="TWIN",
    help="Predictions of the first model trained again on the same data: what retraining alone "
    "changes is shown beside every flip rate.",
)
json_option = click.option(
    "--json", "json_to", type=FILE, metavar="PATH|-", help="Write everything as JSON."
)
junit_option = click.option(
    "--junit", "junit_to", type=FILE, metavar="PATH|-", help="Write JUnit XML for CI."
)
markdown_option = click.option(
    "--markdown", "markdown_to", type=FILE, metavar="PATH|-", help="Write the report as Markdown."
)
html_option = click.option(
    "--html",
    "html_to",
    type=FILE,
    metavar="PATH|-",
    help="Write everything as one self-contained page.",
)
svg_option = click.option(
    "--svg", "svg_to", type=FILLED, metavar="DIR", help="Write each figure as an SVG file."
)


def _drawable(ctx: click.Context, param: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None:
        from dynsnap import report  # slow to import, and few ask for it

        report.check_png()
    return folder


png_option = click.option(
    "--png",
    "png_to",
    type=FILLED,
    callback=_drawable,
    metavar="DIR",
    help="Write each figure as a PNG file (needs matplotlib, `pip install 'dynsnap[report]'`).",
)
resamples_option = click.option(
    "--resamples",
    type=Whole(min=1, max=MOST_RESAMPLES),
    default=1000,
    show_default=True,
    help="Bootstrap resamples behind every interval.",
)
metrics_option = click.option(
    "--metrics",
    "groups",
    type=click.Choice(list(GROUPS)),
    multiple=True,
    help="Measure this group of metrics beside consistency. May be repeated. If left out: "
    f"classification and, up to {CHEAP_SCORES:,} inputs times classes, ranking.",
)
seed_option = click.option(
    "--seed",
    type=Whole(min=0),
    default=0,
    show_default=True,
    help="Seed of the resamples.",
)
slice_option = click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN[:BINS][*COLUMN]",
    help="Break results down by this column only: region as it is, age:10 in ten quantile bins, "
    "time:week by week (or day, month), region*age:4 crossed. May be repeated; by default, every "
    "column with at most 50 values.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no report.")


def parse_renames(texts: Iterable[str]) -> dict[str, str]:
    """`OLD=NEW` pairs as a mapping.

    Example:
        >>> parse_renames(["automobile=car"])
        {'automobile': 'car'}
    """
    renames: dict[str, str] = {}
    for text in texts:
        old, sign, new = text.partition("=")
        if not (old and sign and new):
            raise PlanError(f"--rename takes OLD=NEW, such as automobile=car, got {text!r}.")
        if renames.setdefault(old, new) != new:
            raise PlanError(f"--rename gives class {old!r} two new names. Give it one.")
    return renames
