"""`dynsnap baseline`: named predictions that later models are held against."""

from pathlib import Path

import click

from dynsnap import _files
from dynsnap.cli import _options as options
from dynsnap.cli._inputs import BASELINES, baselines_option, project_baselines, refuse_run_folder
from dynsnap.cli._outputs import show
from dynsnap.errors import FileError
from dynsnap.predictions import BaselineStore, ColumnNames
from dynsnap.report.document import Cell, Column, Document, Prose, Table


@click.group()
def baseline() -> None:
    """Keep predictions under a name, with a checksum, and hold later models against them.

    \b
        dynsnap baseline set prod predictions.parquet --model-version 1.4
        dynsnap gate baseline:prod new.parquet --rules gate.toml
    """


@baseline.command("set")
@click.argument("name")
@click.argument("file", type=options.PLACE)
@click.option("--model-version", metavar="TEXT", help="What reports call the model.")
@baselines_option
@options.task_options
@options.column_options(with_models=False)
def set_command(
    name: str,
    file: Path | str,
    model_version: str | None,
    baselines: str | None,
    task: options.TaskChoice,
    columns: ColumnNames,
) -> None:
    """Keep a copy of the predictions FILE as the baseline NAME, in place of an earlier one."""
    refuse_run_folder(Path(file))
    store = _store(baselines)
    (kind,) = task.of(1, twin=False)
    made = store.set(name, file, model_version=model_version, columns=columns, task=kind)
    click.echo(f"{made.sentence()} {made.inputs:,} inputs, in {store.place}.")


@baseline.command("list")
@baselines_option
def list_command(baselines: str | None) -> None:
    """List all baselines; those that changed since they were set are marked."""
    store = _store(baselines)
    names = store.names()
    if not names:
        show(Document.of("", Prose(f"No baselines in {store.place}.")))
        return
    table = Table(
        name="baselines",
        title="",
        columns=(
            Column("name"),
            Column("model version"),
            Column("set"),
            Column("inputs", "number"),
            Column("data"),
            Column("state"),
        ),
        rows=tuple(_line(store, name) for name in names),
    )
    show(Document.of("", table))


def _line(store: BaselineStore, name: str) -> tuple[Cell, ...]:
    try:
        found = store.get(name)
        click.get_current_context().with_resource(store.checked(name))
    except FileError as error:
        return (Cell(name), Cell(), Cell(), Cell(), Cell(), Cell(str(error), tone="bad"))
    return (
        Cell(name),
        Cell(found.model_version or ""),
        Cell(found.date),
        Cell(f"{found.inputs:,}"),
        Cell(found.data[:16]),
        Cell("unchanged", tone="good"),
    )


@baseline.command("show")
@click.argument("name")
@baselines_option
def show_command(name: str, baselines: str | None) -> None:
    """Print all that is known of the baseline NAME, as JSON, after its file was checked."""
    store = _store(baselines)
    with store.checked(name) as (found, _):
        click.echo(_files.as_json(found.facts()), nl=False)


@baseline.command("remove")
@click.argument("name")
@baselines_option
def remove_command(name: str, baselines: str | None) -> None:
    """Remove the baseline NAME and its file."""
    store = _store(baselines)
    store.remove(name)
    click.echo(f"Removed {name} from {store.place}.")


def _store(given: str | None) -> BaselineStore:
    return BaselineStore(given or project_baselines() or BASELINES)
