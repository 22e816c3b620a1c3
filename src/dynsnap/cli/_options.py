"""Options that several commands share."""

import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from dynsnap.errors import PlanError
from dynsnap.predictions import ColumnNames
from dynsnap.predictions._locate import is_uri

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


# Whether a file can be read is for its reader to say (exit code 3), not for the command line (2).
FILE = _Named(path_type=Path)
FOLDER = _Named(path_type=Path, file_okay=False)
PLACE = _Place(path_type=Path)


class Number(click.FloatRange):
    """A number within limits; unlike click's own, not a NaN."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


_COLUMNS = {
    "id_column": ("id", "ids"),
    "truth_column": ("truth", "true classes"),
    "label_column": ("label", "predicted classes"),
    "weight_column": ("weight", "weights"),
    "scores_column": ("scores", "lists of scores"),
}


def column_options(command: Command) -> Command:
    """Options for files with other column names; the command gets them as `columns`."""

    @functools.wraps(command)
    def parsed(*args: Any, **options: Any) -> Any:
        named = {role: options.pop(option) for option, (role, _) in _COLUMNS.items()}
        columns = ColumnNames(**named, score_prefix=options.pop("score_prefix"))
        return command(*args, columns=columns, **options)

    decorated: Any = click.option(
        "--score-prefix",
        default="score:",
        show_default=True,
        metavar="TEXT",
        help="What the names of score columns start with.",
    )(parsed)
    for option, (default, holds) in reversed(_COLUMNS.items()):
        decorated = click.option(
            "--" + option.replace("_", "-"),
            default=default,
            show_default=True,
            metavar="NAME",
            help=f"The column that holds {holds}.",
        )(decorated)
    return decorated  # type: ignore[no-any-return]


sha256_option = click.option(
    "--sha256",
    metavar="DIGEST",
    help="Read the ensemble only if its file has this SHA-256.",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Open members that cannot be checked first, for an ensemble whose maker you trust.",
)
output_option = click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="OUT",
    help="The predictions: .parquet, .arrow, .feather, .csv, .csv.gz or .npz.",
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
    "--svg", "svg_to", type=FOLDER, metavar="DIR", help="Write each figure as an SVG file."
)
png_option = click.option(
    "--png",
    "png_to",
    type=FOLDER,
    metavar="DIR",
    help="Write each figure as a PNG file (needs matplotlib, `pip install 'dynsnap[report]'`).",
)
resamples_option = click.option(
    "--resamples",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Bootstrap resamples behind every interval.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the resamples.",
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
