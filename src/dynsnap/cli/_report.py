"""`dynsnap report`: a finished study as tables in the terminal, and as one page."""

import dataclasses
import io
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import click
import numpy as np

from dynsnap import _files, report, study, theory
from dynsnap._types import AnyArray
from dynsnap._untrusted import mismatch, parse_json, read_arrays, regular
from dynsnap.cli import _drilldown
from dynsnap.cli import _options as options
from dynsnap.cli._drilldown import claim_inputs, inputs_option
from dynsnap.cli._outputs import (
    STDOUT,
    claim_outputs,
    kept_in,
    show,
    writing_outputs,
)
from dynsnap.cli._stored import TRAINING, StoredRounds, read_about, truth_of
from dynsnap.ensemble import Method, Round, members, survivors, threshold, wanted
from dynsnap.errors import DynSnapError, FileError
from dynsnap.report import Curve, StudyFindings
from dynsnap.study import Ensemble, HeldAgainst, Row, StudyPlan, SweepRow

FILE = "training.npz"
_SIDES = ("lefts", "rights")  # of a theorem, an array each
_CURVES = 4
_AUDITED = 2000  # inputs that the theorems are computed on
_MEMBERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What there is to see of the rounds of a study.

    Attributes:
        curves: The validation accuracy of some rounds, with their snapshots.
        audits: The theorems on the members of two generations, by what they are about.
    """

    curves: Sequence[Curve] = ()
    audits: Mapping[str, theory.Audit] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, plan: StudyPlan) -> Self:
        """From the rounds in a folder or, where there are none, from what was seen of them."""
        rounds = _Rounds(folder, plan)
        curves = tuple(rounds.curves())
        if not curves and (folder / FILE).is_file():
            return cls.read(folder / FILE)
        return cls(curves=curves, audits=dict(rounds.audits(folder)))

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        audits = dict(enumerate(self.audits.items()))
        header = {
            "curves": [dataclasses.asdict(curve) for curve in self.curves],
            "audits": [
                {**_without_sides(audit), "title": title} for title, audit in audits.values()
            ],
        }
        arrays = {
            f"{side}{number}-{place}": getattr(bound, side)
            for number, (_, audit) in audits.items()
            for place, bound in enumerate(audit.bounds)
            for side in _SIDES
        }
        written = np.frombuffer(json.dumps(header).encode(), np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, header=written, **arrays)
        _files.write_bytes(path, content.getvalue())

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `write` has kept.

        Raises:
            FileError: The file is damaged.
        """
        arrays = read_arrays(path, lambda name: name == "header" or name.startswith(_SIDES))
        try:
            header = parse_json(arrays["header"].astype(np.uint8).tobytes())
            if (problem := mismatch(TRAINING, header)) is not None:
                raise ValueError(problem)
            curves = tuple(_curve(known) for known in header["curves"])
            audits = {
                known.pop("title"): _audit(known, arrays, number)
                for number, known in enumerate(header["audits"])
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path} is damaged ({error}). Publish the study again.") from error
        return cls(curves=curves, audits=audits)


def _curve(known: dict[str, Any]) -> Curve:
    lists = {name: tuple(known[name]) for name in ("accuracy", "epochs", "snapshots")}
    if len(lists["epochs"]) != len(lists["snapshots"]) or any(
        epoch >= len(lists["accuracy"]) for epoch in lists["epochs"]
    ):
        raise ValueError("a curve has snapshots of epochs that it has not")
    return Curve(**{**known, **lists})


def _without_sides(audit: theory.Audit) -> dict[str, Any]:
    known = dataclasses.asdict(audit)
    known["bounds"] = [{"name": bound.name, "claim": bound.claim} for bound in audit.bounds]
    return known


def _audit(known: dict[str, Any], arrays: Mapping[str, AnyArray], number: int) -> theory.Audit:
    bounds = tuple(
        theory.Bound(name=bound["name"], claim=bound["claim"], lefts=lefts, rights=rights)
        for place, bound in enumerate(known["bounds"])
        for lefts, rights in [_sides(arrays, f"{number}-{place}")]
    )
    within, effects = known["accuracy_bounds"], known["effects"]
    return theory.Audit(
        **{
            **known,
            "bounds": bounds,
            "accuracy_bounds": within and theory.Range(**within),
            "standings": tuple(theory.EnsembleVsMembers(**one) for one in known["standings"]),
            "effects": effects and _effects(effects),
            "notes": tuple(known["notes"]),
        }
    )


def _sides(arrays: Mapping[str, AnyArray], place: str) -> tuple[AnyArray, AnyArray]:
    lefts, rights = (arrays[f"{side}{place}"] for side in _SIDES)
    for side in (lefts, rights):
        sound = side.ndim == 1 and len(side) and side.dtype == np.float64
        if not sound or side.shape != lefts.shape or not np.isfinite(side).all():
            raise ValueError(f"the sides of theorem {place} are not numbers, one for each input")
    return lefts, rights


def _effects(known: dict[str, Any]) -> theory.MemberEffects:
    each = tuple(theory.Effect(**one) for one in known["members"])
    mean = theory.Effect(**known["mean"])
    return theory.MemberEffects(**{**known, "members": each, "mean": mean})


class _Rounds:
    """The stored rounds of a study."""

    def __init__(self, folder: Path, plan: StudyPlan) -> None:
        self._plan = plan
        self._stored = StoredRounds(folder, study.trained_as(plan))

    def of(self, method: Method, generation: int) -> list[Round]:
        """The rounds of an ensemble, as far as they are there."""
        found: list[Round] = []
        while wanted(method.plan, found):
            done = self._get(method, generation, len(found))
            if done is None:
                break
            found.append(done)
        return found

    def firsts(self, method: Method) -> list[Round]:
        """The first round of every generation that a method has rounds of."""
        found: list[Round] = []
        while (done := self._get(method, len(found) + 1, 0)) is not None:
            found.append(done)
        return found

    def _get(self, method: Method, generation: int, index: int) -> Round | None:
        ensemble = Ensemble(
            method=method,
            generation=generation,
            seed=self._plan.seed,
            by_time=self._plan.data.by_time,
        )
        if ensemble.starts_from_members:  # from members that only a run knows
            return None
        return self._stored.get(ensemble.spec(index))

    def curves(self) -> Iterator[Curve]:
        """The first round of some ensembles, of the last generation; what they share, once."""
        ensembles = [one for one in self._plan.methods if one.recipe.snapshots > 1]
        asked = [one for one in ensembles if not one.plan.single and one.plan.top is None]
        shown = {(one.recipe, one.plan.beta): one for one in reversed(asked)}  # the first of each
        for method in [one for one in asked if one in shown.values()][:_CURVES]:
            firsts = self.firsts(method)
            if not firsts:
                continue
            done = firsts[-1]
            pruned = len(survivors(done.judged, beta=method.plan.beta)) < len(done.accuracy)
            pruned = pruned and done.selection is None  # else the bar is of another metric
            yield Curve(
                method=method.name,
                name=f"first round of generation {len(firsts)}",
                accuracy=tuple(done.curve.tolist()),
                epochs=tuple(done.epochs.tolist()),
                snapshots=tuple(done.accuracy.tolist()),
                threshold=threshold(done.accuracy, beta=method.plan.beta) if pruned else None,
            )

    def audits(self, folder: Path) -> Iterator[tuple[str, theory.Audit]]:
        """The theorems on the last two generations of a DynSnap, or of the largest ensemble."""
        # A rolling ensemble is not made of the rounds of its own generation alone.
        full = [one for one in self._plan.methods if not one.plan.single and one.rolling is None]
        full.sort(key=lambda one: not one.name.startswith("dynsnap"))
        for method in full[:1]:
            count = len(self.firsts(method))
            if count < 2:
                return
            old, new = (members(method.plan, self.of(method, g)) for g in (count - 1, count))
            if len(old) != len(new):
                return
            truth = truth_of(folder, method=method.name, generation=count)
            inputs = old.scores["test"].shape[1]
            step = max(1, -(-inputs // _AUDITED))
            yield (
                f"{method.name}, generation {count - 1} → {count}",
                theory.audit(
                    np.asarray(old.scores["test"][:_MEMBERS, ::step], float),
                    np.asarray(new.scores["test"][:_MEMBERS, ::step], float),
                    truth=None if truth is None or len(truth) != inputs else truth[::step],
                ),
            )


Read = TypeVar("Read", Row, SweepRow)


@click.command("report")
@click.argument("folder", type=options.FILE, metavar="RUN")
@click.option(
    "--html",
    "html_to",
    type=options.FILE,
    metavar="PATH|-",
    help="Where the page goes.  [default: RUN/report.html]",
)
@click.option(
    "--method",
    metavar="NAME",
    help="The method that is looked at input by input.  [default: dynsnap-cyc, or the first]",
)
@inputs_option
@options.svg_option
@options.png_option
@options.quiet_option
def report_command(
    folder: Path,
    html_to: Path | None,
    method: str | None,
    inputs: str | None,
    svg_to: Path | None,
    png_to: Path | None,
    quiet: bool,
) -> None:
    """Show the study in the run folder RUN: tables here, and everything on one page.

    `dynsnap run` or `dynsnap demo --out` makes RUN. Nothing is trained.

    \b
        dynsnap report runs/mine
        dynsnap report runs/mine --html mine.html --svg figures
        dynsnap report results/cifar10-paper --inputs cifar-10:data --method singlebase
    """
    page_to = html_to or folder / "report.html"
    study.check_finished(folder)
    claim_outputs(kept_in(folder), {"--html": page_to})
    claim_inputs(inputs, page_to)
    found = findings(folder, method=method, inputs=inputs)
    document = report.study_document(found)
    with writing_outputs() as out:
        out.text(page_to, lambda: report.to_html(document))
        out.figures(lambda: document, svg_to=svg_to, png_to=png_to)
    if quiet or page_to == STDOUT:
        return
    show(document)
    click.echo(f"\nEverything is on the page {page_to}.")
    if found.drilldown is not None:  # a command is not wrapped: it is there to be copied
        command = shlex.join(["dynsnap", "compare", *found.drilldown.files[-2:]])
        click.echo(f"Class by class, slice by slice, in the terminal:\n{command}")


def findings(
    folder: Path, *, method: str | None = None, inputs: str | None = None
) -> StudyFindings:
    """What a run folder holds about its study; what is missing or damaged is noted."""
    notes: list[str] = []
    about = _about(folder, notes)
    missing = about.get("rounds_missing", 0)
    if missing:
        notes.append(f"{study.missing_rounds(missing)}: what needs a missing round is left out.")
    training = Training()
    replicates: dict[str, int] = {}
    plan = None
    try:
        plan = study.read_study(folder / "study.toml", stored=True)
        replicates = plan.repeated
        if missing:  # so there may be fewer than asked for
            there = study.read_replicates(folder / "replicates.csv")
            replicates = {name: there.get(name, 1) for name in replicates}
        training = Training.of(folder, plan)
        if not training.curves:
            notes.append("No rounds of training are stored here: curves and theorems are left out.")
    except DynSnapError as error:
        lost = "Rounds of training" if plan else "Rounds of training and verdicts on methods"
        notes.append(f"{lost} are left out: {error}")
    rows = _with_spread(_table(folder / "table.csv"), folder / "replicates.csv")
    held = {} if plan is None else held_in(folder, rows, plan, notes)
    return StudyFindings(
        name=about.get("study") or folder.resolve().name,
        rows=rows,
        sweeps=_sweeps(folder / "sweeps.csv"),
        plan=plan,
        about=about,
        replicates=replicates,
        file=_text(folder / "study.toml"),
        curves=training.curves,
        audits=training.audits,
        drilldown=_drilldown.look(folder, rows, method=method, inputs=inputs, notes=notes),
        held=held,
        notes=notes,
    )


def held_in(
    folder: Path, rows: Sequence[Row], plan: StudyPlan, notes: list[str]
) -> dict[str, tuple[HeldAgainst, ...]]:
    """Every method minus its references; a folder with damaged labels is noted."""
    if not rows:
        return {}
    try:
        return study.held_in(folder, rows, plan, combination=report.preferred(rows))
    except DynSnapError as error:
        notes.append(f"Which methods qualify is left out: {error}")
        return {}


def _about(folder: Path, notes: list[str]) -> dict[str, Any]:
    try:
        return read_about(folder)
    except FileError as error:
        notes.append(f"What the run states about itself is left out: {error}")
        return {}


def _with_spread(rows: list[Row], path: Path) -> list[Row]:
    """The rows of a table that was written before tables told how replicates differ."""
    if not path.is_file() or any(row.spread is not None for row in rows):
        return rows
    each = [[row] for row in _table(path)]
    known = {(row.method, row.combination, row.metric): row for row in study.averaged(each)}
    return [
        dataclasses.replace(row, spread=same.spread)
        if (same := known.get((row.method, row.combination, row.metric))) is not None
        else row
        for row in rows
    ]


def _text(path: Path) -> str:
    try:
        return regular(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _table(path: Path) -> list[Row]:
    return _read(path, study.read_table)


def _sweeps(path: Path) -> list[SweepRow]:
    return _read(path, study.read_sweeps) if path.is_file() else []


def _read(path: Path, reader: Callable[[Path], list[Read]]) -> list[Read]:
    rows = reader(path)
    if not rows:
        raise FileError(f"{path} has no rows. Run the study again.")
    return rows
