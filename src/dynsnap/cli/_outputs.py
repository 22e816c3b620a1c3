"""Where the output of commands goes: claimed before any work is done, then written or shown."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dynsnap import _files, report
from dynsnap.errors import FileError, PlanError

STDOUT = Path("-")
_KEPT = {".csv", ".toml", ".npz", ".parquet", ".ensemble"}


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
