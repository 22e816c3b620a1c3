"""`dynsnap train`: an ensemble that is ready to predict."""

from pathlib import Path

import click

from dynsnap import data, report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._execute import EngineChoice
from dynsnap.cli._models import make_trainer
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.ensemble import Combination


@click.command()
@click.argument("study_file", metavar="STUDY")
@click.option(
    "--method",
    "method_name",
    default="dynsnap-cyc",
    show_default=True,
    help="Which of the study's methods to train.",
)
@click.option(
    "--generation",
    "generations",
    type=click.IntRange(min=1),
    multiple=True,
    help="Which generation of the data to train on; may be repeated.  [default: the last]",
)
@_options.combination_option
@_execute.out_option
@_execute.data_option
@_execute.engine_option
@_execute.budget_option
@_execute.quiet_option
def train(
    study_file: str,
    method_name: str,
    generations: tuple[int, ...],
    combination: Combination,
    out: Path | None,
    data_path: Path | None,
    engine: EngineChoice,
    budget: float | None,
    quiet: bool,
) -> None:
    """Train one method of a STUDY, and save the ensemble to predict with.

    The ensemble is one file, DIR/ensembles/METHOD-gN.ensemble, whose SHA-256 is printed: `dynsnap
    predict --sha256` insists on it. Rounds that lie in DIR with their weights are not trained
    again.

    \b
        dynsnap train my-study.toml --method dynsnap-cyc --out runs/mine
        dynsnap predict runs/mine/ensembles/dynsnap-cyc-g3.ensemble new.csv -o predictions.parquet
    """
    _, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    method = plan.method(method_name)
    with (
        ProgressMonitor(budget=budget, quiet=quiet) as watch,
        watch.going_on(_execute.same_command(), f"What was done is in {folder}."),
    ):
        workers = engine.opened(plan)
        stream, notes = study.open_stream(plan.data)
        for note in notes:
            watch.say(note)
        study.check_generations(stream, generations)
        reading = data.reading_options(
            plan.data.source, plan.data.path, plan.data.options, inputs=stream.pool.inputs
        )
        rounds = _execute.run_folder(plan, folder, weights=True)
        # Whatever is wrong with the study is said before there is a folder.
        trainer = make_trainer(plan, stream, store=rounds, monitor=watch)
        with rounds, workers as spread:
            made = study.train_ensembles(
                plan,
                method,
                generations or (len(stream.generations),),
                stream=stream,
                trainer=trainer,
                store=rounds,
                engine=spread,
                monitor=watch,
            )
            for trained in made:
                path, digest = _execute.save_trained(
                    rounds,
                    plan,
                    stream,
                    trained,
                    name=method.name,
                    combination=combination,
                    reading=reading,
                )
                click.echo(
                    f"{path}: {len(trained.positions)} members, validation accuracy "
                    f"{trained.accuracy.mean():.4f}, {report.kappa(trained.price.kappa)} κ\n"
                    f"sha256 {digest}"
                )
    if method.stabilized:
        rule = f"--margin {method.margin:g}"
        if method.cost_ratio:
            rule = f"--heldout OLD NEW --rule {method.rule} --cost-ratio {method.cost_ratio:g}"
        click.echo(
            "It predicts without deployed labels. To stabilize its predictions: "
            f"dynsnap stabilize OLD NEW -o OUT {rule}"
        )
