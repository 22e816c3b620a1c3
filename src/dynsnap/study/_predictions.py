"""Predictions of a study's ensembles: views of stored rounds, at no further training."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dynsnap import predictions
from dynsnap._types import Labels, Scores
from dynsnap.data import SELECTION_SET, Pool, Stream
from dynsnap.ensemble import Combination, combine
from dynsnap.errors import FileError
from dynsnap.predictions import Predictions, stabilize_scores
from dynsnap.study._ensembles import Ensemble, MethodSeries
from dynsnap.study._pending import EnsembleRounds, Price

# `dynsnap distill` writes the files of students, not a run.
_OURS = re.compile(r"(?!distilled-).+-g\d+(-r\d+)?\.parquet")


@dataclass(frozen=True, slots=True)
class PredictionPaths:
    """Where the prediction files of a study are.

    `<method>-<combination>-g<i>.parquet` for generation i, with `-r<k>` behind it for replicate k
    where there are several; the same names under `late/` for the classes that are new in a later
    generation, and under `twin/` for the learner that measures the noise floor.

    Attributes:
        replicates: The most replicates that a method has.
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

    def make_folders(self) -> None:
        """Make the folders that files go to."""
        try:
            for name in ("late", "twin"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder {self.folder}: {error.strerror}.") from error

    def remove_stale(self, written: Iterable[Path]) -> None:
        """Remove the files of an earlier form of the study: they would be read as results."""
        known = set(written)
        for folder in (self.folder, self.folder / "late", self.folder / "twin"):
            for path in folder.glob("*.parquet"):
                if path not in known and (_OURS.fullmatch(path.name) or path.name.startswith(".")):
                    path.unlink()


class EnsemblePredictor:
    """Predictions of complete ensembles on evaluation sets, combined in any way.

    Where a method has a margin, labels of the generation before are kept unless another class leads
    by it. Those labels are kept in memory, so that each generation is combined once.
    """

    def __init__(self, ensembles: Mapping[Ensemble, EnsembleRounds]) -> None:
        self._ensembles = ensembles
        self._deployed: dict[tuple[Ensemble, str, Combination], Labels] = {}

    def predictions(
        self, ensemble: Ensemble, pools: Mapping[str, Pool], combinations: Iterable[Combination]
    ) -> Iterator[tuple[str, Combination, Predictions]]:
        """The predictions of an ensemble on each evaluation set, combined in each way."""
        for name, pool in pools.items():
            for how, scores in self._scores(ensemble, name, combinations):
                made = Predictions(
                    ids=pool.ids,
                    classes=pool.classes,
                    scores=scores,
                    truth=np.asarray(pool.labels),
                    slices=pool.slices,
                    positions=True,
                )
                yield name, how, made

    def _scores(
        self, ensemble: Ensemble, name: str, combinations: Iterable[Combination]
    ) -> Iterator[tuple[Combination, Scores]]:
        found, margin = self._ensembles[ensemble], ensemble.method.margin
        weights, known, members = found.members.accuracy, found.known_classes, found.scores(name)
        for how in combinations:
            scores = combine(members, how=how, weights=weights, known=known)
            # Members are stored in single precision too, and the file is half as large.
            scores = scores.astype(np.float32)
            if margin and ensemble.earlier:
                deployed = self._labels(ensemble.earlier[-1], name, how)
                scores = stabilize_scores(scores, deployed, margin=margin).astype(np.float32)
            if margin:
                self._deployed[ensemble, name, how] = scores.argmax(axis=1)
            yield how, scores

    def _labels(self, ensemble: Ensemble, name: str, how: Combination) -> Labels:
        key = ensemble, name, how
        if key not in self._deployed:
            list(self._scores(ensemble, name, [how]))
        return self._deployed[key]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MethodRun:
    """A complete series of a study: all that its rows in a table are made from.

    Attributes:
        series: The ensembles.
        test: By combination, the predictions of each generation on the test set, or their file.
        late: By combination, the file of the last generation on the new classes; empty where the
            study has none.
        price: What one generation took.
        retrain_cost: The cost (κ) of a generation that is not the first; None where the series is
            not one of generations, and for points of sweeps.
        members: The members of each generation, where they are counted.
    """

    series: MethodSeries
    test: Mapping[Combination, Sequence[Path | Predictions]]
    late: Mapping[Combination, Path] = field(default_factory=dict)
    price: Price
    retrain_cost: float | None = None
    members: tuple[int, ...] = ()

    def predictions(self, combination: Combination) -> list[Predictions]:
        """The predictions of each generation on the test set."""
        return [
            predictions.read(found) if isinstance(found, Path) else found
            for found in self.test[combination]
        ]


def write_predictions(
    series: Sequence[MethodSeries],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    stream: Stream,
    paths: PredictionPaths,
) -> Iterator[Path]:
    """Write the predictions of every complete ensemble, except those of sweeps; give the files."""
    paths.make_folders()
    pools = {name: pool for name, pool in stream.evaluation.items() if name != SELECTION_SET}
    predictor = EnsemblePredictor(ensembles)
    combinations = {
        ensemble: one.combinations
        for one in series
        if one.kind != "point"
        for ensemble in one.ensembles
    }
    for ensemble in ensembles:
        if ensemble not in combinations:
            continue
        if ensemble.method.margin and not all(one in ensembles for one in ensemble.earlier):
            continue  # the labels that it may keep are not known
        asked = {"test": pools["test"]} if ensemble.twin else pools
        for name, how, made in predictor.predictions(ensemble, asked, combinations[ensemble]):
            path = paths.path(ensemble, how, late=name == "late")
            predictions.write(made, path)
            yield path


def method_runs(
    series: Iterable[MethodSeries],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    stream: Stream,
    paths: PredictionPaths,
    *,
    epochs: int,
) -> list[MethodRun]:
    """The complete series of a study, except points of sweeps, with their prediction files.

    Args:
        series: All series.
        ensembles: The complete ensembles.
        stream: The study's data.
        paths: Where predictions were written.
        epochs: Epochs of one training from scratch: what a cost of one κ buys.
    """
    late = len(stream.evaluation.get("late", ())) > 0
    return [
        MethodRun(
            series=one,
            test={
                how: [paths.path(each, how) for each in one.ensembles] for how in one.combinations
            },
            late={
                how: paths.path(one.ensembles[-1], how, late=True)
                for how in one.combinations
                if late and one.retrained is not None
            },
            price=_price(one.trained, ensembles, epochs, generations=one.generations),
            retrain_cost=None
            if one.retrained is None
            else _price(one.retrained, ensembles, epochs).kappa,
            members=tuple(len(ensembles[each].members) for each in one.ensembles)
            if one.kind == "method"
            else (),
        )
        for one in series
        if one.kind != "point" and _complete(one, ensembles)
    ]


def point_runs(
    series: Iterable[MethodSeries],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    stream: Stream,
    *,
    epochs: int,
) -> Iterator[MethodRun]:
    """The complete points of sweeps, one at a time: their predictions are not written."""
    pools = {"test": stream.evaluation["test"]}
    predictor = EnsemblePredictor(ensembles)
    for one in series:
        if one.kind == "point" and _complete(one, ensembles):
            yield MethodRun(
                series=one,
                test={
                    how: [
                        next(predictor.predictions(each, pools, [how]))[2] for each in one.ensembles
                    ]
                    for how in one.combinations
                },
                price=_price(one.trained, ensembles, epochs, generations=one.generations),
            )


def _complete(series: MethodSeries, ensembles: Mapping[Ensemble, EnsembleRounds]) -> bool:
    return all(ensemble in ensembles for ensemble in series.ensembles)


def _price(
    trained: Sequence[Ensemble],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    epochs: int,
    *,
    generations: int | None = None,
) -> Price:
    """What ensembles took for each generation; there are as many of these by default."""
    each = [ensembles[one].price(epochs) for one in trained]
    count = generations or len(each) or 1
    return Price(sum(one.kappa for one in each) / count, sum(one.seconds for one in each) / count)
