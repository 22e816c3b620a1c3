"""`dynsnap publish`: the results of a finished study, small enough to share."""

from collections.abc import Iterator
from pathlib import Path

import click

from dynsnap import study
from dynsnap.cli import _options
from dynsnap.cli._training import FILE, Training


@click.command()
@click.argument("run", type=_options.FILE, metavar="RUN")
@click.argument("target", type=_options.FOLDER, metavar="DIR")
def publish(run: Path, target: Path) -> None:
    """Copy what is worth keeping of the run folder RUN to DIR: tables and predictions, made small.

    Scores are kept for the average alone, in half precision; of the other combinations labels. Of
    the rounds stays what a page shows: some curves, and the theorems. `dynsnap compare` reads the
    files, and `dynsnap report` the folder.

    \b
        dynsnap publish runs/mine results/mine
        dynsnap report results/mine
    """
    kept = [*study.publish(run, target), *_training(run, target)]
    size = sum(path.stat().st_size for path in kept) / 1e6
    click.echo(f"{len(kept)} files, {size:.1f} MB, in {target}.")


def _training(run: Path, target: Path) -> Iterator[Path]:
    """What is seen of the rounds, as far as they are there."""
    if not (run / "study.toml").is_file():
        return
    seen = Training.of(run, study.read_study(run / "study.toml"))
    if seen.curves:
        seen.write(target / FILE)
        yield target / FILE
