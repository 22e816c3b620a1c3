"""`dynsnap stabilize`: keep deployed labels unless another class leads by a margin."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from dynsnap import _files, predictions, stabilizing
from dynsnap._types import AnyArray
from dynsnap.cli import _options
from dynsnap.cli._inputs import refuse_run_folder
from dynsnap.cli._outputs import claim_outputs
from dynsnap.errors import PlanError
from dynsnap.predictions import MARGIN, ColumnNames, Predictions
from dynsnap.predictions._same import same_files


@click.command()
@click.argument("old_file", type=_options.PLACE, metavar="OLD")
@click.argument("new_file", type=_options.PLACE, metavar="NEW")
@_options.output_option
@click.option(
    "--margin",
    type=_options.Number(0, 1),
    help="By how much another class must lead before the deployed label changes; "
    f"{MARGIN:g} by default.",
)
@click.option(
    "--heldout",
    type=(_options.PLACE, _options.PLACE),
    metavar="OLD_HELDOUT NEW_HELDOUT",
    help="Choose the rule on labelled rows that neither model was trained on: the predictions "
    "of both.",
)
@click.option(
    "--rule",
    type=click.Choice(["margin", "cost"]),
    help="What to choose on --heldout: margins, or the Bayesian rule with a cost of lost answers.",
)
@click.option(
    "--cost-ratio",
    type=_options.Number(1, math.inf, max_open=True),
    help="What a lost right answer costs, in missed gains, with --heldout; "
    f"{stabilizing.COST_RATIO:g} by default.",
)
@click.option(
    "--rescore",
    type=(click.IntRange(1), _options.ends_in(".csv")),
    metavar="COUNT FILE.csv",
    help="Write the ids of the COUNT most uncertain inputs to FILE.csv: those to score first "
    "with the next model.",
)
@_options.column_options(with_models=False, with_tasks=False)
def stabilize(
    old_file: Path | str,
    new_file: Path | str,
    output: Path,
    margin: float | None,
    heldout: tuple[Path | str, Path | str] | None,
    rule: str | None,
    cost_ratio: float | None,
    rescore: tuple[int, Path] | None,
    columns: ColumnNames,
) -> None:
    """Write NEW, keeping OLD's label unless another class leads by --margin.

    OLD holds the deployed predictions, labels or scores. NEW holds those of the retrained model,
    with scores. OUT is then deployed, and is OLD for the next retrain.

    \b
        dynsnap stabilize monday.parquet tuesday.parquet -o deployed.parquet
        dynsnap compare monday.parquet deployed.parquet

    With --heldout the rule is chosen on labelled rows that neither model was trained on.
    """
    _refuse_mixture(margin, heldout, rule, cost_ratio)
    given = [old_file, new_file, *(heldout or ())]
    claim_outputs(given, {"--output": output, "--rescore": rescore[1] if rescore else None})
    for file in given:
        refuse_run_folder(Path(file))
    _refuse_reported(given)
    old, new, *held = (predictions.read(file, columns=columns) for file in given)
    told = []
    if held:
        choose = stabilizing.choose_cost_rule if rule == "cost" else stabilizing.choose_margin
        # Few held-out rows may lack a class that OLD answers with: it is not new for that.
        known = {*old.names_of(np.unique(old.labels))}
        choice = choose(*held, ratio=cost_ratio or stabilizing.COST_RATIO, known=known)
        made = stabilizing.update(old, new, choice.rule, confusion=choice.old_confusion)
        told = _told(choice)
    else:
        made = predictions.stabilize(old, new, margin=MARGIN if margin is None else margin)
    names = predictions.names_of_files([Path(old_file), Path(new_file), output])
    # Files that contradict each other are refused before anything is written.
    said = _said(predictions.align(old, new, made, names=names).generations)
    with _files.together():
        predictions.write(made, output)
        if rescore:
            _write_ids(stabilizing.rescore_first(made, rescore[0]), rescore[1])
    for line in told + said:
        click.echo(line)


def _refuse_mixture(
    margin: float | None, heldout: object, rule: str | None, cost_ratio: float | None
) -> None:
    if heldout is None and (rule or cost_ratio):
        option = "--rule" if rule else "--cost-ratio"
        raise PlanError(
            f"{option} needs --heldout: the rule is chosen on labelled rows that neither model was "
            "trained on."
        )
    if heldout is not None and margin is not None:
        raise PlanError("--margin and --heldout cannot both be given: --heldout chooses the rule.")


def _refuse_reported(given: Sequence[Path | str]) -> None:
    """Raise where a rule would be chosen on the rows that it is applied to and reported on."""
    names = ("OLD", "NEW", "--heldout OLD_HELDOUT", "--heldout NEW_HELDOUT")
    for same in same_files(names[: len(given)], given):
        if same.first in names[:2] and same.second in names[2:]:
            raise PlanError(
                f"{same.second} and {same.first} are {same.what}. A rule looks better than it is "
                "on the rows that it was chosen on. Name predictions of other rows."
            )


def _told(choice: stabilizing.Choice) -> list[str]:
    rule = choice.rule
    if isinstance(rule, stabilizing.MarginRule):
        found = [f"Margin: {rule.margin:g}, chosen on {choice.rows:,} held-out rows."]
        found += [f"Margin of {name}: {margin:g}." for name, margin in rule.by_class.items()]
    else:
        found = [
            f"Cost ratio: {rule.ratio:g}. Exponents, chosen on {choice.rows:,} held-out rows: "
            f"{rule.old_weight:g} (before), {rule.new_weight:g} (new scores)."
        ]
    if rule.free:
        found.append(f"New classes that need no lead: {', '.join(sorted(rule.free))}.")
    found.append(
        f"Held-out rows: lost {choice.lost_before:,} → {choice.lost:,}, "
        f"gained {choice.gained_before:,} → {choice.gained:,}."
    )
    return found


def _write_ids(ids: AnyArray, path: Path) -> None:
    with _files.replacing(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id"])
        rows.writerows([one] for one in ids)


def _said(generations: Sequence[Predictions]) -> list[str]:
    before, asked, after = (one.labels for one in generations)
    flips, left = np.sum(before != asked), np.sum(before != after)
    found = [f"Changed labels, of {len(before):,}: {flips:,} → {left:,}."]
    if (truth := generations[0].truth) is not None:
        weights = generations[0].weights
        counts = np.ones(len(truth)) if weights is None else weights
        known = (truth >= 0) & (counts > 0)
        lost = [np.sum((before == truth) & (said != truth)) for said in (asked, after)]
        found.append(f"Lost (negative flips, NFR): {lost[0]:,} → {lost[1]:,}.")
        if known.any():
            right = [
                np.average((said == truth)[known], weights=counts[known]) for said in (asked, after)
            ]
            found.append(f"Accuracy: {100 * right[0]:.2f} % → {100 * right[1]:.2f} %.")
    return found
