"""`dynsnap runs`: what lies in a run folder."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from dynsnap import report
from dynsnap.cli import _options
from dynsnap.cli._outputs import show
from dynsnap.errors import FileError, PlanError
from dynsnap.report.document import Cell, Column, Document, Prose, Table
from dynsnap.store import RoundEntry, RunFolder

_KEY = 10  # characters that are shown of a key; any beginning that is unique will do


@click.command()
@click.argument("folder", type=_options.FILE, metavar="DIR")
@click.argument("action", type=click.Choice(["list", "show", "remove"]), default="list")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--damaged", is_flag=True, help="With remove: all rounds that are damaged.")
def runs(folder: Path, action: str, keys: tuple[str, ...], damaged: bool) -> None:
    """List the rounds of training in the run folder DIR, show some in full, or remove some.

    A KEY may be shortened. What is removed is trained again when the study is run again.

    \b
        dynsnap runs runs/mine
        dynsnap runs runs/mine show 3f2a
        dynsnap runs runs/mine remove 3f2a 91bc
        dynsnap runs runs/mine remove --damaged
    """
    if not (folder / "rounds").is_dir():
        raise FileError(f"{folder} is not a run folder. `dynsnap run` makes one, with --out.")
    store = RunFolder(folder)
    if action != "list" and not keys and not damaged:
        raise PlanError(f"Say which rounds to {action}: give the beginning of their keys.")
    if action == "list":
        if keys or damaged:
            raise PlanError("`list` takes no keys: it lists all rounds.")
        show(_listing(list(store.entries()), store.begun))
    elif action == "show":
        for key in map(store.find, keys):
            entry = store.entry(key)
            click.echo(json.dumps(entry.facts or {"key": key, "damage": entry.damage}, indent=1))
    else:
        doomed = [store.find(key) for key in keys]
        if damaged:
            doomed += [entry.key for entry in store.entries() if entry.damage is not None]
        for key in dict.fromkeys(doomed):
            store.remove(key)
            click.echo(f"Removed {key}.")
        if not doomed:
            click.echo("No round is damaged.")


def _listing(entries: Sequence[RoundEntry], begun: int) -> Document:
    started = f"{begun} begun: `dynsnap run` can go on with {'it' if begun == 1 else 'them'}."
    if not entries:
        return Document.of("", Prose("No rounds yet" + (f", {started}" if begun else ".")))
    numeric = ("epochs", "generation", "replicate", "round", "accuracy", "κ", "seconds", "MB")
    table = Table(
        name="rounds",
        title="",
        columns=(
            Column("key"),
            Column("schedule"),
            *(Column(title, "number") for title in numeric),
            Column("holds"),
        ),
        rows=tuple(_line(entry) for entry in sorted(entries, key=_order)),
        footer=_total(entries) + (f" {started}" if begun else ""),
    )
    return Document.of("", table)


def _line(entry: RoundEntry) -> tuple[Cell, ...]:
    key, size = Cell(entry.key[:_KEY]), Cell(f"{entry.bytes / 1e6:.2f}")
    if entry.damage is not None:
        return (key, *[Cell()] * 8, size, Cell("damaged", tone="bad"))
    facts, spec = entry.facts, entry.facts["spec"]
    recipe, cost = spec["recipe"], facts["cost"]
    weighty = any(name.startswith("weights.") for name in facts["sha256"])
    return (
        key,
        Cell(recipe["schedule"]["kind"]),
        Cell(str(recipe["epochs"])),
        Cell(str(spec["generation"])),
        Cell(str(spec["replicate"])),
        Cell(f"{spec['index']}{' (twin)' if spec['twin'] else ''}"),
        Cell(f"{facts['best_accuracy']:.4f}"),
        Cell("" if cost is None else report.kappa(cost)),
        Cell(f"{facts['seconds']:.1f}"),
        size,
        Cell("weights" if weighty else "scores"),
    )


def _order(entry: RoundEntry) -> tuple[object, ...]:
    spec = entry.facts.get("spec", {})
    recipe = spec.get("recipe", {})
    return (
        recipe.get("schedule", {}).get("kind", ""),
        recipe.get("epochs", 0),
        spec.get("replicate", 0),
        spec.get("generation", 0),
        spec.get("index", 0),
        entry.key,
    )


def _total(entries: Sequence[RoundEntry]) -> str:
    seconds = sum(entry.facts.get("seconds", 0.0) for entry in entries)
    size = sum(entry.bytes for entry in entries) / 1e6
    return f"{len(entries)} rounds, {seconds:.0f} s of training, {size:.1f} MB"
