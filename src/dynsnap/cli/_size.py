"""`dynsnap size`: how many members an ensemble should have, from an existing run."""

import functools
from collections.abc import Iterator
from pathlib import Path

import click

from dynsnap import _files, report, study
from dynsnap.cli import _options as options
from dynsnap.cli._outputs import STDOUT, claim_outputs, kept_in, show, writing_outputs
from dynsnap.cli._stored import StoredRounds, read_about, truth_of
from dynsnap.ensemble import Combination, Method
from dynsnap.errors import FileError, PlanError
from dynsnap.study import FRESH, LAWS, Draw, LawName, StudyPlan


@click.command()
@click.argument("folder", type=options.FILE, metavar="RUN")
@click.option(
    "--method",
    "method_name",
    metavar="NAME",
    help="Which of the study's methods to look at.  [default: dynsnap-cyc, or the first ensemble]",
)
@options.combination_option
@click.option(
    "--at",
    metavar="M,M,...",
    help="Numbers of members to report.  [default: 1, 2, 5, ... and all that are stored]",
)
@click.option(
    "--extrapolate", is_flag=True, help="Report more members than are stored, by the law."
)
@click.option(
    "--tolerance",
    type=options.Number(min=0, max=1, min_open=True, max_open=True),
    default=0.005,
    show_default=True,
    help="Accepted distance from the limit, as a share of the inputs.",
)
@click.option(
    "--draw",
    type=click.Choice(["rounds", "members"]),
    help="Draw whole rounds, as growing an ensemble does, or members one by one, as serving some "
    "of them would.  [default: rounds, where there are several]",
)
@click.option(
    "--law",
    type=click.Choice(LAWS),
    default="power",
    show_default=True,
    help="Which law extrapolates: limit - a/r^b, limit - a/(r + c), or limit - a/r.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Random orders of the members of each generation.",
)
@options.resamples_option
@options.seed_option
@options.json_option
@options.markdown_option
@options.html_option
@options.quiet_option
def size(
    folder: Path,
    method_name: str | None,
    combination: Combination,
    at: str | None,
    extrapolate: bool,
    tolerance: float,
    draw: Draw | None,
    law: LawName,
    draws: int,
    resamples: int,
    seed: int,
    json_to: Path | None,
    markdown_to: Path | None,
    html_to: Path | None,
    quiet: bool,
) -> None:
    """Estimate how many members are enough, from the rounds in the run folder RUN.

    `dynsnap run` or `dynsnap demo --out` makes RUN. Nothing is trained: ensembles of every size are
    drawn from the stored members of every generation, a law is fitted to them, and its error is
    tested on the other half of the rounds.

    \b
        dynsnap size runs/mine
        dynsnap size runs/mine --method extbagging --at 5,10,20 --tolerance 0.002
        dynsnap size runs/mine --at 100 --extrapolate --json size.json
    """
    outputs = {"--json": json_to, "--markdown": markdown_to, "--html": html_to}
    claim_outputs(kept_in(folder), outputs)
    sizes = _sizes(at)
    if not (folder / "study.toml").is_file():
        raise FileError(
            f"{folder} is not the folder of a run: there is no study.toml in it. "
            "`dynsnap run STUDY --out DIR` makes one."
        )
    plan = study.read_study(folder / "study.toml", stored=True)
    method = _method(plan, method_name)
    stored = StoredRounds(folder, study.trained_as(plan))
    if stored.damaged and not stored.sound:
        raise FileError(f"All rounds in {folder} are damaged. Run the study again to train them.")
    if not stored.sound:
        raise FileError(
            f"{folder} holds no rounds of training: published results come without them. Give the "
            "folder of the run, or run the study."
        )
    truth = truth_of(folder)
    found = study.estimate_sizes(
        study.stored_members(plan, method, stored.all_of),
        truth=truth,
        at=sizes,
        extrapolate=extrapolate,
        draw=draw,
        combination=combination,
        law=law,
        tolerance=tolerance,
        draws=draws,
        resamples=resamples,
        seed=seed,
    )
    notes = list(_notes(stored.damaged, truth_known=truth is not None))
    notes += report.bound_notes(found)
    try:
        name = read_about(folder).get("study") or plan.name
    except FileError as error:
        name = plan.name
        notes.append(f"The description of the run is left out: {error}")
    title = f"{name}: {method.name}, {combination.replace('_', ' ')}"

    @functools.cache
    def document() -> report.Document:
        return report.size_document(found, title=title, notes=notes)

    plain = {"study": name, "method": method.name, **found.to_json(), "notes": notes}
    with writing_outputs() as out:
        out.text(json_to, lambda: _files.as_json(plain))
        out.text(markdown_to, lambda: report.to_markdown(document()))
        out.text(html_to, lambda: report.to_html(document()))
    if not quiet and STDOUT not in outputs.values():
        show(document())


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(
            f"--at takes numbers of members with commas between, such as 5,10,20, got {text!r}."
        ) from None


def _method(plan: StudyPlan, name: str | None) -> Method:
    if name is not None:
        return plan.method(name)
    able = [one for one in plan.methods if not one.plan.single and one.rolling is None]
    if not able:
        raise PlanError(f"{plan.name} has no ensembles that start afresh to look at the size of.")
    return next((one for one in able if one.name == FRESH), able[0])


def _notes(damaged: int, *, truth_known: bool) -> Iterator[str]:
    if not truth_known:
        yield (
            "There are no predictions in the folder yet, so the truth is not known: consistency "
            "only. Let the study run to its end."
        )
    if damaged:
        rounds = "1 round is" if damaged == 1 else f"{damaged} rounds are"
        yield f"{rounds} damaged and left out: run the study again to train what is missing."
