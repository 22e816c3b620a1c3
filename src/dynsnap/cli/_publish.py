"""`dynsnap publish`: the results of a finished study, small enough to share."""

from pathlib import Path

import click

from dynsnap import _files, study
from dynsnap.cli import _options
from dynsnap.cli._report import FILE, Training


@click.command()
@click.argument("run", type=_options.FILE, metavar="RUN")
@click.argument("target", type=_options.FILLED, metavar="DIR")
@click.option(
    "--scores/--no-scores",
    default=True,
    show_default=True,
    help="Whether to keep scores. Labels are enough for accuracy, consistency and flips.",
)
def publish(run: Path, target: Path, scores: bool) -> None:
    """Copy the tables and predictions of the run folder RUN to DIR, in small files.

    labels.parquet holds the labels of all ensembles. scores.parquet holds the scores of the average
    in replicate 0, in half precision: small scores may tie, so top-k may differ a little from the
    table's. Of the rounds, what a page shows is kept: some curves, and the theorems.

    \b
        dynsnap publish runs/mine results/mine
        dynsnap report results/mine
        dynsnap compare results/mine::singlebase/average/g1/r0 new.parquet
    """
    # Read before anything is written: a study file that is damaged must not be copied first.
    file = run / "study.toml"
    seen = Training.of(run, study.read_study(file, stored=True)) if file.is_file() else Training()
    with _files.together():
        kept = list(study.publish(run, target, scores=scores))
        if seen.curves:
            seen.write(target / FILE)
            kept.append(target / FILE)
        else:  # what is there is of another study
            _files.remove(target / FILE)
    size = sum(path.stat().st_size for path in kept) / 1e6
    click.echo(f"{len(kept)} files, {size:.1f} MB, in {target}.")
