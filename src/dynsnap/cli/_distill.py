"""`dynsnap distill`: one network that reproduces an ensemble."""

import functools
import math
from pathlib import Path

import click

from dynsnap import _files, data, report, study
from dynsnap.cli import _execute, _options
from dynsnap.cli._models import make_trainer
from dynsnap.cli._outputs import STDOUT, claim_outputs, kept_in, show, writing_outputs
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.ensemble import Combination
from dynsnap.errors import FileError, PlanError
from dynsnap.study import SECOND_TEACHERS, DistillPlan


@click.command()
@click.argument("study_file", metavar="STUDY")
@click.option(
    "--method",
    "method_name",
    default="dynsnap-cyc",
    show_default=True,
    help="The method to distill.",
)
@click.option(
    "--generation",
    "generations",
    type=click.IntRange(min=1),
    multiple=True,
    help="Which generation's ensemble to distil; may be repeated.  [default: all]",
)
@_options.combination_option
@click.option(
    "--weight",
    type=_options.Number(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="Weight of the teacher's scores in the loss; the labels have the rest.",
)
@click.option(
    "--temperature",
    type=_options.Number(0, math.inf, min_open=True, max_open=True),
    default=4.0,
    show_default=True,
    help="Temperature that softens the scores.",
)
@click.option(
    "--second-teacher",
    "second",
    type=click.Choice(SECOND_TEACHERS),
    help="A second teacher: the ensemble of the generation before (previous), or "
    "the network that was made of it (student).",
)
@click.option(
    "--share",
    type=_options.Number(0, 1),
    help="The second teacher's share of the teachers' weight.  [default: 0.3]",
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
@_options.markdown_option
@_options.html_option
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
    markdown_to: Path | None,
    html_to: Path | None,
    quiet: bool,
) -> None:
    """Distill each ensemble of a STUDY into one network, and measure how much of its gain remains.

    The study must have been run with weights kept.

    A student has the same architecture and learns the scores of the ensemble on the rows of its
    generation. It is saved as DIR/ensembles/distilled-METHOD-gN.ensemble, which `dynsnap
    predict` reads, and its predictions on the test set as DIR/predictions/distilled-METHOD-...;
    those of its twin, with --control, as DIR/predictions/distilled-METHOD-teacher=none-....

    \b
        dynsnap run digits
        dynsnap distill digits
        dynsnap distill digits --second-teacher previous --share 0.3 --json -
    """
    if share is not None and second is None:
        raise PlanError("--share is what a second teacher counts for: name it, --second-teacher.")
    file, plan, folder = _execute.read_plan(study_file, data_path=data_path, out=out)
    outputs = {"--json": json_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs([file, *kept_in(folder)], outputs)
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
        ProgressMonitor(budget=budget, quiet=quiet) as watch,
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
            reading = data.reading_options(
                plan.data.source, plan.data.path, plan.data.options, inputs=stream.pool.inputs
            )
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
    listed = ", ".join(f"{path} (sha256 {digest})" for path, digest in saved)

    @functools.cache
    def document() -> report.Document:
        notes = [f"Ready to predict: {listed}."]
        return report.distill_document(found, title=plan.name, notes=notes)

    with writing_outputs() as written:
        written.text(json_to, lambda: _files.as_json(report.distill_json(found, study=plan.name)))
        written.text(markdown_to, lambda: report.to_markdown(document()))
        written.text(html_to, lambda: report.to_html(document()))
    if STDOUT not in outputs.values():
        show(document())
