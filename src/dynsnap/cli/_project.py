"""`dynsnap retrain` and `dynsnap project`: the retrain loop, and what is deployed."""

import functools
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from dynsnap import _files, report
from dynsnap import project as projects
from dynsnap.cli import _options as options
from dynsnap.cli._outputs import STDOUT, claim_outputs, show, writing_outputs
from dynsnap.cli._signals import write_line
from dynsnap.errors import FileError, PlanError
from dynsnap.report.document import Cell, Column, Document, Node, Prose, Table

_DAMAGED = 3
_FOLDER = click.argument("folder", type=options.FOLDER, metavar="PROJECT")


@click.command()
@_FOLDER
@click.option(
    "--until",
    metavar="DAY",
    help="Take this day, such as 2013-05-06, for today: rows of weeks that were not over by then "
    "are not used.",
)
@click.option(
    "--again", is_flag=True, help="Retrain for a week that has a finished retrain already."
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would happen. Nothing is trained or written."
)
@click.option(
    "--json", "json_to", type=options.FILE, metavar="PATH|-", help="Write the result as JSON."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def retrain(
    ctx: click.Context,
    folder: Path,
    until: str | None,
    again: bool,
    dry_run: bool,
    json_to: Path | None,
    quiet: bool,
) -> None:
    """Retrain the model of a PROJECT on the data that has arrived, and deploy it if it may ship.

    Trains the next generation from the deployed one, scores both on held-out rows, compares and
    gates them, and moves the pointer to the new generation if every rule passed. The page, JSON,
    Markdown and JUnit are in PROJECT/retrains. What was killed goes on with the same command.

    Exit codes: 0 deployed, or nothing to do; 1 the gate failed; 2 wrong use; 3 something could not
    be read, trained or compared; 5 the gate is unresolved. All but the first leave the deployed
    generation as it is.

    \b
        dynsnap retrain delays --dry-run
        dynsnap retrain delays
    """
    if dry_run and json_to is not None:
        raise click.UsageError("--json writes a result, and --dry-run has none.")
    project = projects.read_project(folder)
    claim_outputs(_kept_in(project), {"--json": json_to})
    made = projects.Retrain(
        project=project,
        until=None if until is None else projects.parse_until(until),
        again=again,
        say=(lambda _: None) if quiet else write_line,
    )
    if dry_run:
        outlook = made.outlook()
        if not quiet:
            for line in outlook.sentences:
                click.echo(line)
        return
    result = made.run()
    if result is not None:
        try:
            projects.write_history(made.project)
        except FileError as error:  # the verdict stands, and so does what is deployed
            write_line(f"dynsnap: {error} The retrain is finished.")
    pointer = projects.open_registry(made.project).deployed()
    deployed = None if pointer is None else pointer.generation
    with writing_outputs() as out:
        out.text(json_to, lambda: _files.as_json(_facts(result, deployed)))
    if result is None:
        return
    if not quiet and json_to != STDOUT:
        click.echo(result.reason)
        if result.deployed not in (None, deployed):  # a later retrain or a person moved it since
            click.echo(f"Since then the deployed generation has changed: it is {deployed} now.")
        click.echo(f"Report: {folder / projects.RETRAINS / result.plan.name / 'report.html'}")
    ctx.exit(result.exit_code)


def _kept_in(project: projects.Project) -> Iterator[Path]:
    """What a project holds that no report may overwrite."""
    yield project.folder / projects.FILE
    yield project.gate.rules
    data = project.data.path
    if data is not None:
        yield from data.iterdir() if data.is_dir() else (data,)
    for name in (projects.REGISTRY, projects.RETRAINS):
        yield from (project.folder / name).rglob("*")


def _facts(result: projects.Result | None, deployed: int | None) -> dict[str, object]:
    """The result as plain values; of a retrain that there was no reason for, what is deployed."""
    measured = None if result is None else result.measured
    return {
        "retrain": None if result is None else result.plan.name,
        "decision": "nothing" if result is None else result.decision,
        "verdict": None if measured is None else measured.verdict,
        "generation": None if measured is None else measured.generation,
        "held_against": None if result is None else result.plan.deployed,
        "deployed": deployed,
        "reason": "No period has ended." if result is None else result.reason,
        "exit_code": 0 if result is None else result.exit_code,
    }


@click.group("project")
def project_group() -> None:
    """Set up a project, see what is deployed, and move the deployed generation by hand.

    \b
        dynsnap project init delays --data rows/
        dynsnap retrain delays
        dynsnap project status delays
        dynsnap project rollback delays
    """


@project_group.command()
@click.argument("folder", type=options.FILLED, metavar="PROJECT")
@click.option(
    "--data",
    default="data",
    show_default=True,
    metavar="PATH",
    help="The rows: a CSV or Parquet file, or a folder of them. If it does not exist here, it is "
    "relative to PROJECT.",
)
@click.option(
    "--command",
    metavar="TEXT",
    help="A program that trains, such as 'python train.py {train} {evaluate} {model} "
    "{predictions}'.  [default: a built-in method]",
)
def init(folder: Path, data: str, command: str | None) -> None:
    """Write project.toml and gate.toml, to be edited, into PROJECT."""
    if not (folder / data).exists() and Path(data).exists():
        # project.toml names paths from its own folder, and a shell completes those from here.
        data = os.path.relpath(Path(data).resolve(), folder.resolve())
    made = projects.write_template(folder, data=data, command=command)
    projects.read_project(folder)
    for file in made:
        click.echo(f"Wrote {file}.")
    if not (folder / data).exists():
        click.echo(f"There are no rows yet: put them at {folder / data}.")
    click.echo(f"Next: dynsnap retrain {shlex.quote(str(folder))} --dry-run")


@project_group.command()
@_FOLDER
@click.option("--json", "as_text", is_flag=True, help="Print JSON.")
@click.pass_context
def status(ctx: click.Context, folder: Path, as_text: bool) -> None:
    """Show the deployed generation, all generations, and whether their files are unchanged.

    Exit codes: 0, or 3 if the deployed generation is changed or gone.
    """
    project = projects.read_project(folder)
    registry = projects.open_registry(project)
    pointer = projects.find_deployed(project, registry)
    lines, rows = [], []
    for number in registry.numbers():
        problem = ""
        try:
            found, _ = registry.checked(number)
        except FileError as error:
            problem = str(error)
            rows.append((number, "", "", problem))
            lines.append({"generation": number, "unchanged": False, "problem": problem})
            continue
        rows.append((number, found.retrain, found.created, ""))
        lines.append(
            {
                "generation": number,
                "retrain": found.retrain,
                "created": found.created,
                "unchanged": True,
                "model": found.model,
                "sha256": found.files[found.model]["sha256"],
            }
        )
    deployed = None if pointer is None else pointer.generation
    whole = {number for number, _, _, problem in rows if not problem}
    code = 0 if deployed is None or deployed in whole else _DAMAGED
    if as_text:
        click.echo(_files.as_json({"deployed": deployed, "generations": lines}), nl=False)
        ctx.exit(code)
    said = "Nothing is deployed." if deployed is None else f"Deployed: generation {deployed}."
    nodes: list[Node] = [Prose(said)]
    if rows:
        nodes.append(
            Table(
                name="generations",
                title="",
                columns=(
                    Column("generation", "number"),
                    Column("retrain"),
                    Column("created"),
                    Column("state"),
                ),
                rows=tuple(
                    (
                        Cell(str(number), number),
                        Cell(name),
                        Cell(created),
                        Cell(problem, tone="bad")
                        if problem
                        else Cell("deployed" if number == deployed else "unchanged", tone="good"),
                    )
                    for number, name, created, problem in rows
                ),
            )
        )
    if deployed is not None and deployed not in registry.numbers():
        nodes.append(Prose(f"Generation {deployed} is deployed, and gone.", "bad"))
    show(Document.of("", *nodes))
    ctx.exit(code)


@project_group.command()
@_FOLDER
@options.html_option
@options.markdown_option
@options.quiet_option
def history(folder: Path, html_to: Path | None, markdown_to: Path | None, quiet: bool) -> None:
    """Show all retrains: accuracy, lost, gained, verdicts, cost, class shares, and advice."""
    outputs = {"--html": html_to, "--markdown": markdown_to}
    project = projects.read_project(folder)
    claim_outputs(_kept_in(project), outputs)
    found = projects.history_findings(project)

    @functools.cache
    def document() -> report.Document:
        return report.history_document(found)

    with writing_outputs() as out:
        out.text(html_to, lambda: report.to_html(document()))
        out.text(markdown_to, lambda: report.to_markdown(document()))
    if not quiet and STDOUT not in outputs.values():
        show(document())


@project_group.command()
@_FOLDER
@click.option("--to", "number", type=int, metavar="GENERATION", help="Which; the one before.")
@click.option("--why", default="", metavar="TEXT", help="A reason, which the history shows.")
def rollback(folder: Path, number: int | None, why: str) -> None:
    """Deploy the generation that was deployed before, after its files were checked."""
    project = projects.read_project(folder)
    with projects.alone(project):
        registry = projects.open_registry(project)
        pointer = projects.find_deployed(project, registry)
        if pointer is None:
            raise PlanError("Nothing is deployed, so there is nothing to roll back.")
        target = pointer.before if number is None else number
        if target is None:
            raise PlanError(
                f"No generation was deployed before generation {pointer.generation}. Name one with "
                "--to."
            )
        _move(project, registry, pointer, target, "rollback", why)


@project_group.command()
@_FOLDER
@click.argument("number", type=int, metavar="GENERATION")
@click.option("--why", default="", metavar="TEXT", help="A reason, which the history shows.")
def promote(folder: Path, number: int, why: str) -> None:
    """Deploy a GENERATION by hand, after its files were checked; no gate is asked."""
    project = projects.read_project(folder)
    with projects.alone(project):
        registry = projects.open_registry(project)
        _move(project, registry, registry.deployed(), number, "promote", why)


def _move(
    project: projects.Project,
    registry: projects.Registry,
    pointer: projects.Deployed | None,
    number: int,
    way: projects.Way,
    why: str,
) -> None:
    if number < 1:
        raise PlanError(f"Generations are counted from 1 on, got {number}.")
    if len(why) > 200 or not why.isprintable():
        raise PlanError("--why takes one line of at most 200 characters.")
    if pointer is not None and pointer.generation == number:
        click.echo(f"Generation {number} is deployed already.")
        return
    registry.checked(number)  # what cannot be deployed ends no retrain
    projects.Retrain(project=project, say=write_line).settle()
    registry.deploy(number, way=way, why=why)
    try:
        projects.write_history(project)
    except FileError as error:  # of what was long ago; the pointer has moved
        write_line(f"dynsnap: {error} The generation is deployed all the same.")
    before = "none" if pointer is None else f"generation {pointer.generation}"
    click.echo(f"Deployed: generation {number}. Before: {before}.")
