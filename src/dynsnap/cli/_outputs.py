"""Where the output of commands goes: claimed before any work is done, then written or shown."""

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click

from dynsnap import _files, report
from dynsnap.errors import PlanError

STDOUT = Path("-")
_KEPT = {".csv", ".toml", ".npz", ".parquet", ".ensemble"}


def kept_in(run: Path) -> Iterator[Path]:
    """What a run folder holds that no report can bring back."""
    for path in run.rglob("*"):
        if path.suffix in _KEPT or path.name in ("about.json", "dynsnap.json"):
            yield path


def claim_outputs(inputs: Iterable[Path | str | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse files that cannot be written or would destroy something, before any work is done.

    Folders are refused by the type of their option, `_options.FILLED`.
    """
    wanted = {option: path for option, path in outputs.items() if path is not None}
    to_stdout = [option for option, path in wanted.items() if path == STDOUT]
    if len(to_stdout) > 1:
        raise PlanError(f"{' and '.join(to_stdout)} cannot both write to standard output.")
    files = {option: path for option, path in wanted.items() if path != STDOUT}
    if not files:
        return  # inputs may be all that a project holds, which nobody need look through then
    taken = {_real(path): f"the input {path}" for path in inputs if isinstance(path, Path)}
    for option, path in files.items():
        place = _real(path)
        if place in taken:
            raise PlanError(f"{option} {path} would overwrite {taken[place]}. Name another file.")
        taken[place] = f"what {option} writes"
        if path.is_dir():
            raise PlanError(f"Cannot write {option} {path}: it is a directory. Name a file in it.")
        if path.is_symlink() and place.is_symlink():
            raise PlanError(f"Cannot write {option} {path}: it is a link to itself. Name a file.")
        if (stream := _stream_at(path)) is not None:
            # Renaming over the file that a stream writes to would lose what goes there.
            raise PlanError(f"{option} {path} is {stream}. Use - to print, or name another file.")
        if (path.exists() and not place.is_file()) or _is_device(path):
            # Renaming over a device or a pipe would destroy it.
            raise PlanError(f"Cannot write {option} {path}: it is not a regular file. Name one.")
        if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
            raise PlanError(
                f"Cannot write {option} {path}: its folder does not exist or is not writable. "
                "Name a place that exists."
            )


def _stream_at(path: Path) -> str | None:
    """Which of the streams of this process writes to the file, by whatever name it goes."""
    for stream, name in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
        with contextlib.suppress(OSError, ValueError):  # no such file, or no file behind a stream
            if os.path.samestat(path.stat(), os.fstat(stream.fileno())):
                return name
    return None


def _real(path: Path) -> Path:
    """Where a path leads. Unlike `Path.resolve`, no error for a link to itself."""
    return Path(os.path.realpath(path))


def _is_device(path: Path) -> bool:
    """Whether a path names one of this process's open files, such as /dev/stdout."""
    return path.absolute().parts[:2] in (("/", "dev"), ("/", "proc"))


class Outputs:
    """What a command writes. Made by `writing_outputs`."""

    def __init__(self) -> None:
        self.printed: list[str] = []

    def text(self, target: Path | None, make: Callable[[], str]) -> None:
        """Make a text for a file, or for standard output."""
        if target == STDOUT:
            self.printed.append(make())
        elif target is not None:
            _files.write_text(target, make())

    def figures(
        self,
        make: Callable[[], report.Document],
        *,
        svg_to: Path | None,
        png_to: Path | None,
    ) -> None:
        """Make a file of each figure of a report, in the folders that were asked for."""
        if svg_to is None and png_to is None:
            return
        for folder in filter(None, (svg_to, png_to)):
            _files.make_folder(folder)
        taken: Counter[str] = Counter()
        for figure in report.figures_of(make()):
            taken[figure.name] += 1  # two names of a study may be one to a file system
            number = taken[figure.name]
            name = figure.name if number == 1 else f"{figure.name}-{number}"
            if svg_to is not None:
                _files.write_text(svg_to / f"{name}.svg", report.to_svg(figure))
            if png_to is not None:
                _files.write_bytes(png_to / f"{name}.png", report.to_png(figure))


@contextlib.contextmanager
def writing_outputs() -> Iterator[Outputs]:
    """Put all that is written in this block in place when it ends well, or nothing of it.

    What goes to standard output comes last: a reader that leaves does not take the files along.
    """
    outputs = Outputs()
    with _files.together():
        yield outputs
    for text in outputs.printed:
        click.echo(text, nl=False)


def show(document: report.Document) -> None:
    """Print a report: in colour and as wide as the terminal, plain and of one width in a pipe."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else report.PIPE_WIDTH
    click.echo(report.to_terminal(document, width=width, colour=terminal))
