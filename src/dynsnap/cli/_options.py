"""Options that several commands share, and where their output goes."""

import contextlib
import functools
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dynsnap import _files, report
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import AlignedStream, ColumnNames, names_of_files, stream
from dynsnap.predictions._locate import is_uri, locate

Command = TypeVar("Command", bound=Callable[..., Any])

STDOUT = Path("-")
_KEPT = {".csv", ".toml", ".npz", ".parquet", ".ensemble"}


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


def generation_names(files: Sequence[Path | str], names: str | None = None) -> tuple[str, ...]:
    """What to call each file's generation: the names given, or what tells the files apart.

    Example:
        >>> generation_names([Path("monday.csv"), Path("tuesday.csv")], "mon,tue")
        ('mon', 'tue')
    """
    if names is not None:
        given = tuple(name.strip() for name in names.split(","))
        if len(given) != len(files) or not all(given) or len(set(given)) < len(given):
            raise PlanError(
                f"--names takes {len(files)} different names with commas between, one for each "
                f"file, got {names!r}."
            )
        return given
    return names_of_files([Path(file) for file in files])


def lined_up(
    files: Sequence[Path | str],
    names: Sequence[str],
    noise_floor: Path | str | None,
    columns: ColumnNames,
    rename: Mapping[str, str],
) -> AlignedStream:
    """The generations of some files, and after them the twin of the first, if there is one."""
    for place in files:
        refuse_run_folder(Path(place))
    if noise_floor is not None:
        files, names = [*files, noise_floor], [*names, "noise floor"]
    return stream(files, names=names, columns=columns, rename=rename)


def refuse_run_folder(place: Path) -> None:
    """Raise for a run folder, whose files of predictions are of many ensembles."""
    folder = place.parent if place.name == "predictions" else place
    if not (folder / "table.csv").is_file():
        return
    some = next(iter(sorted((folder / "predictions").glob("*-g1*.parquet"))), None)
    example = f", such as {some}" if some else ""
    raise PlanError(
        f"{place} is of a study, with the predictions of many ensembles. Name one file of each "
        f"generation{example}; or see all of them with: dynsnap report {folder}"
    )


def files_behind(places: Iterable[Path | str | None]) -> Iterator[Path]:
    """The files of this machine that places of predictions stand for."""
    for place in places:
        if place is None or (isinstance(place, str) and not place.lower().startswith("file:")):
            continue  # another machine's: no output goes there
        with contextlib.suppress(FileError):  # whoever reads it says so
            found = locate(place)
            parts = [found] if isinstance(found, Path) else [file.place for file in found.files]
            yield from (part for part in parts if isinstance(part, Path))


def kept_in(run: Path) -> Iterator[Path]:
    """What a run folder holds that no report can bring back."""
    for path in run.rglob("*"):
        if path.suffix in _KEPT or path.name in ("about.json", "dynsnap.json"):
            yield path


def claim_outputs(inputs: Iterable[Path | str | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs that cannot be written or would destroy something, before any work is done."""
    wanted = {option: path for option, path in outputs.items() if path is not None}
    to_stdout = [option for option, path in wanted.items() if path == STDOUT]
    if len(to_stdout) > 1:
        raise PlanError(f"{' and '.join(to_stdout)} cannot both write to standard output.")
    taken = {path.resolve(): f"the input {path}" for path in inputs if isinstance(path, Path)}
    for option, path in wanted.items():
        if path == STDOUT:
            continue
        place = path.resolve()
        if place in taken:
            raise PlanError(f"{option} {path} would overwrite {taken[place]}. Name another file.")
        taken[place] = f"what {option} writes"
        if path.is_dir():
            raise FileError(f"Cannot write {option} {path}: it is a directory. Name a file in it.")
        if path.exists() and not place.is_file():
            # Renaming over a device or a pipe would destroy it.
            raise FileError(
                f"Cannot write {option} {path}: it is not a regular file. Use - to print."
            )
        if not os.access(place.parent, os.W_OK):
            raise FileError(
                f"Cannot write {option} {path}: its folder does not exist or is not writable. "
                "Name a place that exists."
            )


def deliver(target: Path | None, make: Callable[[], str]) -> None:
    """Make a text and write it to a file, wholly or not at all, or to standard output."""
    if target == STDOUT:
        click.echo(make(), nl=False)
    elif target is not None:
        _files.write_text(target.resolve(), make())  # a link stays a link


def claim_figures(svg_to: Path | None, png_to: Path | None) -> None:
    """Make the folders for figures, and refuse what cannot be drawn, before any work is done."""
    if png_to is not None:
        report.figures.check_png()
    for folder in filter(None, (svg_to, png_to)):
        folder.mkdir(parents=True, exist_ok=True)


def deliver_figures(
    made: Sequence[report.figures.Figure], *, svg_to: Path | None, png_to: Path | None
) -> None:
    """Write each figure to a file of its own, in the folders that were asked for."""
    for figure in made:
        if svg_to is not None:
            _files.write_text(svg_to / f"{figure.name}.svg", report.figures.svg(figure))
        if png_to is not None:
            _files.write_bytes(png_to / f"{figure.name}.png", report.figures.png(figure))


def as_json(values: Any) -> str:
    """Plain values as JSON for people and machines; one value per line."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def show(document: report.Document) -> None:
    """Print a report: in colour and as wide as the terminal, plain and of one width in a pipe."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else report.PIPE_WIDTH
    click.echo(report.text(document, width=width, colour=terminal))
