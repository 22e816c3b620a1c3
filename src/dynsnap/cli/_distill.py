"""`dynsnap distill`: one network that says what an ensemble says."""

from pathlib import Path

import click

from dynsnap import data, report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._models import make_trainer
from dynsnap.cli._outputs import STDOUT, as_json, claim_outputs, delivering, kept_in, show
from dynsnap.cli._progress import Watch
from dynsnap.ensemble import COMBINATIONS, Combination
from dynsnap.errors import FileError, PlanError
from dynsnap.study import SECOND_TEACHERS, DistillPlan


@click.command()
@click.argument("study_file", metavar="STUDY")
@click.option(
    "--method",
    "method_name",
    default="dynsnap-cyc",
    show_default=True,
    help="Which of the study's methods teaches.",
)
@click.option(
    "--generation",
    "generations",
    type=click.IntRange(min=1),
    multiple=True,
    help="Which generation's ensemble to distil; may be repeated.  [default: all]",
)
@click.option(
    "--combination",
    type=click.Choice(COMBINATIONS),
    default="average",
    show_default=True,
    help="How the teacher's members are combined.",
)
@click.option(
    "--weight",
    type=_options.Number(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="What the teacher counts for; the labels have the rest.",
)
@click.option(
    "--temperature",
    type=_options.Number(0, min_open=True),
    default=4.0,
    show_default=True,
    help="How soft scores are made before they are compared.",
)
@click.option(
    "--second-teacher",
    "second",
    type=click.Choice(SECOND_TEACHERS),
    help="Who teaches beside the ensemble: the ensemble of the generation before (previous), or "
    "the network that was made of it (student).",
)
@click.option(
    "--share",
    type=_options.Number(0, 1),
    help="What the second teacher counts for.  [default: 0.3]",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Epochs of a student's training.  [default: those of the study]",
)
@click.option(
    "--control",
    is_flag=True,
    help="Train each student's twin by the labels alone, to see what teaching gave.",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many replicates of the study.  [default: all]",
)
@_execute.out_option
@_execute.data_option
@_execute.budget_option
@_options.json_option
@_execute.quiet_option
def distill(
    study_file: str,
    method_name: str,
    generations: tuple[int, ...],
    combination: Combination,
    weight: float,
    temperature: float,
    second: study.SecondTeacher | None,
    share: float | None,
    epochs: int | None,
    control: bool,
    replicates: int | None,
    out: Path | None,
    data_path: Path | None,
    budget: float | None,
    json_to: Path | None,
    quiet: bool,
) -> None:
    """Make one network of each ensemble of a STUDY that was run with weights kept, and measure
    what is left of it.

    A student is of the same architecture, and learns on its generation's rows to say what the
    ensemble says. It is saved as DIR/ensembles/distilled-METHOD-gN.ensemble, which `dynsnap
    predict` reads, and what it says on the test set as DIR/predictions/distilled-METHOD-....

    \b
        dynsnap run digits
        dynsnap distill digits
        dynsnap distill digits --second-teacher previous --share 0.3 --json -
    """
    if share is not None and second is None:
        raise PlanError("--share is what a second teacher counts for: name it, --second-teacher.")
    file, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    claim_outputs([file, *kept_in(folder)], {"--json": json_to})
    how = DistillPlan(
        method=plan.method(method_name),
        combination=combination,
        epochs=epochs or plan.epochs,
        weight=weight,
        temperature=temperature,
        second=second,
        share=0.3 if share is None else share,
        control=control,
    )
    if not (folder / "rounds").is_dir():
        raise FileError(
            f"{folder} holds no run to distil: `dynsnap run {study_file} --out {folder}` makes one."
        )
    with (
        Watch(budget=budget, quiet=quiet) as watch,
        watch.going_on(_execute.same_command(), f"What was done is in {folder}."),
    ):
        stream, notes = study.open_stream(plan.data)
        for note in notes:
            watch.say(note)
        study.check_generations(stream, generations)
        rounds = _execute.run_folder(plan, folder, weights=True)
        trainer = make_trainer(plan, stream, store=rounds, monitor=watch)
        with rounds:
            found = study.distill(
                plan,
                how,
                generations or range(1, len(stream.generations) + 1),
                stream=stream,
                trainer=trainer,
                store=rounds,
                folder=folder,
                checkpoints=rounds.checkpoints,
                monitor=watch,
                replicates=replicates,
            )
            reading = data.reading_options(plan.data.source, plan.data.path, plan.data.options)
            saved = [
                _execute.save_trained(
                    rounds,
                    plan,
                    stream,
                    made,
                    name=how.name,
                    combination=combination,
                    reading=reading,
                )
                for made in found.students
            ]
    with delivering() as delivery:
        delivery.text(json_to, lambda: as_json(report.distill_json(found, study=plan.name)))
    if json_to != STDOUT:
        listed = ", ".join(f"{path} (sha256 {digest})" for path, digest in saved)
        show(
            report.distill_document(found, title=plan.name, notes=[f"Ready to predict: {listed}."])
        )
