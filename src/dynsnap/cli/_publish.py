"""`dynsnap publish`: the results of a finished study, small enough to share."""

from pathlib import Path

import click

from dynsnap import study


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("target", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def publish(run: Path, target: Path) -> None:
    """Copy what is worth keeping of the run folder RUN to DIR: tables and predictions, made small.

    Scores are kept for the average alone, in half precision; of the other combinations labels.
    `dynsnap compare` reads the files, and `dynsnap report` the folder.

    \b
        dynsnap publish runs/mine results/mine
        dynsnap report results/mine
    """
    kept = study.publish(run, target)
    size = sum(path.stat().st_size for path in kept) / 1e6
    click.echo(f"{len(kept)} files, {size:.1f} MB, in {target}.")
