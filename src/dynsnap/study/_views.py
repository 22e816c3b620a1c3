"""Ensembles as views of stored rounds: any method, any combination, at no further training."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynsnap import predictions
from dynsnap._types import Labels, Scores
from dynsnap.data import Pool, Stream
from dynsnap.ensemble import Combination, Method, combine, cost
from dynsnap.errors import FileError
from dynsnap.predictions import Predictions, standing
from dynsnap.study._cast import UNTOUCHED
from dynsnap.study._ensemble import Ensemble
from dynsnap.study._plan import StudyPlan
from dynsnap.study._waves import Ledger

# Students are made by `dynsnap distill`, and not by a run.
_OURS = re.compile(r"(?!distilled-).+-g\d+(-r\d+)?\.parquet")


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the predictions of a study lie.

    `<method>-<combination>-g<i>.parquet` for generation i, with `-r<k>` behind it for replicate k
    where there are several; the same names under `late/` for the classes that arrive late, and
    under `twin/` for the learner that measures the noise floor.
    """

    folder: Path
    replicates: int

    def path(self, ensemble: Ensemble, combination: Combination, *, late: bool = False) -> Path:
        """The file of one ensemble."""
        replicate = f"-r{ensemble.number}" if self.replicates > 1 else ""
        name = f"{ensemble.method.name}-{combination}-g{ensemble.generation}{replicate}.parquet"
        if late:
            return self.folder / "late" / name
        return self.folder / "twin" / name if ensemble.twin else self.folder / name

    def sweep_up(self, written: Iterable[Path]) -> None:
        """Remove what an earlier form of the study has left: it would be read as a result."""
        known = set(written)
        for folder in (self.folder, self.folder / "late", self.folder / "twin"):
            for path in folder.glob("*.parquet"):
                if path not in known and (_OURS.fullmatch(path.name) or path.name.startswith(".")):
                    path.unlink()


def ensembles_of(plan: StudyPlan, generations: int) -> list[Ensemble]:
    """Every ensemble of a study: its methods, its sweeps, and the twin of the first generation."""
    methods = [*plan.methods, *(method for sweep in plan.sweeps for _, method in sweep.points)]
    found = [
        ensemble
        for method in methods
        for number in range(plan.replicates_of(method))
        for ensemble in generations_of(plan, method, generations, number)
    ]
    for replicate in range(plan.replicates):
        found += noise_floor(plan, replicate)
    return list(dict.fromkeys(found))


def generations_of(
    plan: StudyPlan, method: Method, generations: int, number: int
) -> list[Ensemble]:
    """One repetition of a method, generation by generation."""
    shared = method.name in plan.learners
    return [
        Ensemble(
            method=method,
            generation=generation,
            replicate=0 if shared else number,
            offset=number if shared else 0,
        )
        for generation in range(1, generations + 1)
    ]


def noise_floor(plan: StudyPlan, replicate: int) -> tuple[Ensemble, Ensemble]:
    """The single learner of the first generation, and its twin: the same in all but its seed."""
    first = Ensemble(method=plan.baseline, generation=1, replicate=replicate)
    twin = Ensemble(method=plan.baseline, generation=1, replicate=replicate, twin=1)
    return first, twin


class Answers:
    """What ensembles say. With a margin, on top of what their earlier generations have answered.

    Those answers are kept, so that a long line of generations is gone through once.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._deployed: dict[tuple[Ensemble, str, Combination], Labels] = {}

    def views(
        self, ensemble: Ensemble, pools: Mapping[str, Pool], combinations: Iterable[Combination]
    ) -> Iterator[tuple[str, Combination, Predictions]]:
        """What an ensemble says about each evaluation set, combined in each way."""
        for name, pool in pools.items():
            for how, scores in self._said(ensemble, name, combinations):
                made = Predictions(
                    ids=pool.ids,
                    classes=pool.classes,
                    scores=scores,
                    truth=np.asarray(pool.labels),
                    slices=pool.slices,
                    positions=True,
                )
                yield name, how, made

    def _said(
        self, ensemble: Ensemble, name: str, combinations: Iterable[Combination]
    ) -> Iterator[tuple[Combination, Scores]]:
        casting, margin = self._ledger.casting, ensemble.method.margin
        cast, known = casting.of(ensemble), casting.heeded(ensemble)
        members = casting.scores(cast, name)
        for how in combinations:
            scores = combine(members, how=how, weights=cast.accuracy, known=known)
            # Single precision is what the members were stored with, and half the file.
            scores = scores.astype(np.float32)
            if margin and ensemble.earlier:
                deployed = self._answered(ensemble.earlier[-1], name, how)
                scores = standing(scores, deployed, margin=margin).astype(np.float32)
            if margin:
                self._deployed[ensemble, name, how] = scores.argmax(axis=1)
            yield how, scores

    def _answered(self, ensemble: Ensemble, name: str, how: Combination) -> Labels:
        asked = ensemble, name, how
        if asked not in self._deployed:
            list(self._said(ensemble, name, [how]))
        return self._deployed[asked]


def write_predictions(
    plan: StudyPlan, ledger: Ledger, stream: Stream, shelf: Shelf
) -> Iterator[Path]:
    """Write what every ensemble says about the evaluation sets, file by file."""
    try:
        for folder in (shelf.folder / "late", shelf.folder / "twin"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {shelf.folder}: {error.strerror}.") from error
    pools = {name: pool for name, pool in stream.evaluation.items() if name != UNTOUCHED}
    answers = Answers(ledger)
    for ensemble in ledger.grown:
        if ensemble.method != plan.baseline and ensemble.method not in plan.methods:
            continue  # a point of a sweep
        if ensemble.method.margin and not ledger.has(ensemble.earlier):
            continue  # what it stands on is not there
        asked = {"test": pools["test"]} if ensemble.twin else pools
        for name, how, made in answers.views(ensemble, asked, plan.combinations):
            path = shelf.path(ensemble, how, late=name == "late")
            predictions.write(made, path)
            yield path


@dataclass(frozen=True, slots=True)
class Price:
    """What an ensemble took to train: trainings from scratch (κ), and seconds."""

    kappa: float
    seconds: float


def price(plan: StudyPlan, ledger: Ledger, ensembles: Iterable[Ensemble]) -> Price:
    """The price of a method, averaged over these ensembles of it."""
    each = [
        Price(
            sum(cost(head.spec.recipe, rounds=1, epochs=plan.epochs) for head in rounds),
            sum(head.seconds for head in rounds),
        )
        for ensemble in ensembles
        for rounds in [ledger.rounds(ensemble)]
    ]
    return Price(
        sum(one.kappa for one in each) / len(each), sum(one.seconds for one in each) / len(each)
    )
