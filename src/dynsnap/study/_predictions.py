"""Predictions of a study's ensembles: views of stored rounds, at no further training."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dynsnap import gate, predictions
from dynsnap._types import Labels, Positions, Scores
from dynsnap.data import SELECTION_SET, Pool, Stream
from dynsnap.ensemble import Combination, combine
from dynsnap.errors import ComparisonError, FileError
from dynsnap.predictions import Predictions, stabilize_scores
from dynsnap.stabilizing import Belief, Rule, choose_cost_rule, choose_margin
from dynsnap.study._ensembles import Ensemble, MethodSeries
from dynsnap.study._members import check_selection_holdout
from dynsnap.study._pending import EnsembleRounds, Price

_GATE_RESAMPLES = 100  # rules judge measured values; intervals are not looked at
# `dynsnap distill` writes the files of students, not a run.
_OURS = re.compile(r"(?!distilled-).+-g\d+(-r\d+)?\.parquet")


@dataclass(frozen=True, slots=True)
class PredictionPaths:
    """Where the prediction files of a study are.

    `<method>-<combination>-g<i>.parquet` for generation i, with `-r<k>` behind it for replicate k
    where there are several; the same names under `late/` for the classes that are new in a later
    generation, and under `twin/` for the learner that measures the noise floor.

    By time there are two files of each method: for the inputs of every period but the first, the
    answers of the model before that period's retrain (g1), and of the one after it (g2).

    Attributes:
        replicates: The most replicates that a method has.
    """

    folder: Path
    replicates: int

    def of_series(
        self, series: MethodSeries, combination: Combination, *, by_time: bool
    ) -> list[Path]:
        """The files that a series is measured from, the oldest first."""
        if not by_time:
            return [self.path(one, combination) for one in series.ensembles]
        lines = lines_by_time(series)
        if len(lines) == 2:  # learners and their twins, after the same retrain
            return [self.by_time(line, combination)[1] for line in lines]
        return list(self.by_time(lines[0], combination))

    def by_time(self, line: Sequence[Ensemble], combination: Combination) -> tuple[Path, Path]:
        """The files of a method by time: before each retrain, and after it."""
        before, after = (
            self.path(replace(line[0], generation=number), combination) for number in (1, 2)
        )
        return before, after

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


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """Labels and scores of one ensemble on one evaluation set."""

    labels: Labels
    scores: Scores


class EnsemblePredictor:
    """Predictions of complete ensembles on evaluation sets, combined in any way.

    Where a method is stabilized, labels of the generation before are kept as its rule decides.
    Those answers are kept in memory, so that each generation is combined once.

    Args:
        ensembles: The complete ensembles.
        stream: The study's data; rules with a cost ratio are chosen on its selection holdout.
    """

    def __init__(
        self, ensembles: Mapping[Ensemble, EnsembleRounds], stream: Stream | None = None
    ) -> None:
        self._ensembles = ensembles
        self._stream = stream
        self._deployed: dict[tuple[Ensemble, str, Combination], _Answers] = {}
        self._rules: dict[tuple[Ensemble, Combination], Rule] = {}
        self._verdicts: dict[tuple[Ensemble, Combination], bool] = {}

    def predictions(
        self, ensemble: Ensemble, pools: Mapping[str, Pool], combinations: Iterable[Combination]
    ) -> Iterator[tuple[str, Combination, Predictions]]:
        """The predictions of an ensemble on each evaluation set, combined in each way."""
        for name, pool in pools.items():
            for how, answers in self._answers(ensemble, name, combinations):
                made = Predictions(
                    ids=pool.ids,
                    classes=pool.classes,
                    labels=answers.labels,
                    scores=answers.scores,
                    truth=np.asarray(pool.labels),
                    slices=pool.slices,
                    positions=True,
                )
                yield name, how, made

    def _answers(
        self, ensemble: Ensemble, name: str, combinations: Iterable[Combination]
    ) -> Iterator[tuple[Combination, _Answers]]:
        for how, answers in self._unstabilized(ensemble, name, combinations):
            if ensemble.method.stabilized:
                if ensemble.earlier:
                    answers = self._stabilized(ensemble, name, how, answers.scores)
                self._deployed[ensemble, name, how] = answers
            yield how, answers

    def _unstabilized(
        self, ensemble: Ensemble, name: str, combinations: Iterable[Combination]
    ) -> Iterator[tuple[Combination, _Answers]]:
        found = self._ensembles[ensemble]
        weights, known, members = found.members.accuracy, found.known_classes, found.scores(name)
        for how in combinations:
            scores = combine(members, how=how, weights=weights, known=known)
            # Members are stored in single precision too, and the file is half as large.
            scores = scores.astype(np.float32)
            yield how, _Answers(scores.argmax(axis=1), scores)

    def _stabilized(
        self, ensemble: Ensemble, name: str, how: Combination, scores: Scores
    ) -> _Answers:
        before = self._answer(ensemble.earlier[-1], name, how)
        if ensemble.method.every > 1:
            new = _Answers(scores.argmax(axis=1), scores)
            return new if ensemble.method.retrains(ensemble.generation) else before
        if ensemble.method.margin:
            margin = ensemble.method.margin
            scores = stabilize_scores(scores, before.labels, margin=margin).astype(np.float32)
            return _Answers(scores.argmax(axis=1), scores)
        if ensemble.method.gate:
            passes = self._passes(ensemble, how)
            return _Answers(scores.argmax(axis=1), scores) if passes else before
        rule = self._rule(ensemble, how)
        after = rule.decide(self._classes, Belief(before.labels, before.scores), scores)
        return _Answers(after.labels, after.posterior.astype(np.float32))

    def _answer(self, ensemble: Ensemble, name: str, how: Combination) -> _Answers:
        key = ensemble, name, how
        if key not in self._deployed:
            list(self._answers(ensemble, name, [how]))
        return self._deployed[key]

    def _rule(self, ensemble: Ensemble, how: Combination) -> Rule:
        """The rule of a generation, chosen on the rows that have arrived by then."""
        key = ensemble, how
        if key not in self._rules:
            before, new = self._on_holdout(ensemble, how)
            of = ensemble.method
            choose = choose_margin if of.rule == "margin" else choose_cost_rule
            self._rules[key] = choose(
                before, new, ratio=of.cost_ratio, known=self._learned(ensemble.generation - 1)
            ).rule
        return self._rules[key]

    def _passes(self, ensemble: Ensemble, how: Combination) -> bool:
        """Whether a generation passes its gate, on the rows that have arrived by then."""
        key = ensemble, how
        if key not in self._verdicts:
            before, new = self._on_holdout(ensemble, how)
            rules = [
                gate.Rule(metric=metric, **{bound: value})  # type: ignore[arg-type]
                for metric, bound, value in ensemble.method.gate
            ]
            # Classes are the stream's own: a label that is no true class here is not astray.
            try:
                verdict = gate.check(
                    before, new, rules, resamples=_GATE_RESAMPLES, allow_unknown_labels=1.0
                )
            except ComparisonError as error:
                raise ComparisonError(
                    f"The gate of {ensemble.method.name!r} cannot judge generation "
                    f"{ensemble.generation} on the selection holdout: {error}"
                ) from error
            self._verdicts[key] = verdict.passed
        return self._verdicts[key]

    def _on_holdout(self, ensemble: Ensemble, how: Combination) -> tuple[Predictions, Predictions]:
        """What is deployed and what is new, on the selection holdout that has arrived by then."""
        assert self._stream is not None
        check_selection_holdout(self._stream)
        rows = self._stream.selection_holdout[ensemble.generation - 1]
        before = self._answer(ensemble.earlier[-1], SELECTION_SET, how)
        ((_, new),) = self._unstabilized(ensemble, SELECTION_SET, [how])
        return self._held_out(rows, before), self._held_out(rows, new)

    def _held_out(self, rows: Positions, answers: _Answers) -> Predictions:
        assert self._stream is not None
        pool = self._stream.evaluation[SELECTION_SET]
        return Predictions(
            ids=rows,
            classes=pool.classes,
            labels=answers.labels[rows],
            scores=answers.scores[rows],
            truth=np.asarray(pool.labels)[rows],
            positions=True,
        )

    def _learned(self, generation: int) -> frozenset[str]:
        """The classes that any generation up to this one was trained on."""
        assert self._stream is not None
        numbers = range(1, generation + 1)
        seen = np.any([self._stream.learned(number) for number in numbers], axis=0)
        return frozenset(name for name, one in zip(self._classes, seen, strict=True) if one)

    @property
    def _classes(self) -> tuple[str, ...]:
        assert self._stream is not None
        return self._stream.pool.classes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MethodRun:
    """A complete series of a study: all that its rows in a table are made from.

    Attributes:
        series: The ensembles.
        test: By combination, the predictions of each generation on the test set, or their file.
        late: By combination, the predictions of the last generation on the new classes, or their
            file; empty where the study has none.
        price: What one generation took.
        retrain_cost: The cost (κ) of a generation that is not the first; None where the series is
            not one of generations, and for points of sweeps.
        members: The members of each generation, where they are counted.
    """

    series: MethodSeries
    test: Mapping[Combination, Sequence[Path | Predictions]]
    late: Mapping[Combination, Path | Predictions] = field(default_factory=dict)
    price: Price
    retrain_cost: float | None = None
    members: tuple[int, ...] = ()

    def predictions(self, combination: Combination) -> list[Predictions]:
        """The predictions of each generation on the test set."""
        return [_read(found) for found in self.test[combination]]

    def on_new_classes(self, combination: Combination) -> Predictions | None:
        """The predictions of the last generation on the new classes."""
        return _read(self.late[combination]) if combination in self.late else None


def _read(found: Path | Predictions) -> Predictions:
    return predictions.read(found) if isinstance(found, Path) else found


def write_predictions(
    series: Sequence[MethodSeries],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    stream: Stream,
    paths: PredictionPaths,
) -> Iterator[Path]:
    """Write the predictions of every complete ensemble, except those of sweeps; give the files."""
    paths.make_folders()
    if stream.by_time:
        yield from _write_by_time(series, ensembles, stream, paths)
        return
    pools = {name: pool for name, pool in stream.evaluation.items() if name != SELECTION_SET}
    predictor = EnsemblePredictor(ensembles, stream)
    combinations = {
        ensemble: one.combinations
        for one in series
        if one.kind != "point"
        for ensemble in one.ensembles
    }
    for ensemble in ensembles:
        if ensemble not in combinations:
            continue
        if ensemble.method.stabilized and not all(one in ensembles for one in ensemble.earlier):
            continue  # the answers that it may keep are not known
        asked = {"test": pools["test"]} if ensemble.twin else pools
        for name, how, made in predictor.predictions(ensemble, asked, combinations[ensemble]):
            path = paths.path(ensemble, how, late=name == "late")
            predictions.write(made, path)
            yield path


def lines_by_time(series: MethodSeries) -> list[tuple[Ensemble, ...]]:
    """The models that follow each other in a series by time; twins are a line of their own."""
    if series.kind == "noise-floor":
        half = len(series.ensembles) // 2
        return [series.ensembles[:half], series.ensembles[half:]]
    if series.kind == "never-retrain":
        named = replace(series.ensembles[0].method, name=series.name)
        return [tuple(replace(one, method=named) for one in series.ensembles)]
    return [series.ensembles]


def before_and_after(
    line: Sequence[Ensemble],
    predictor: EnsemblePredictor,
    stream: Stream,
    combination: Combination,
) -> tuple[Predictions, Predictions]:
    """The answers before and after each retrain, on the period that follows it.

    Both are on the same inputs: those of every period but that of the first generation, which
    follows no retrain. Model i - 1 answers in the first on the inputs of which model i answers in
    the second.
    """
    pool = stream.evaluation["test"]
    asked = np.sort(np.concatenate(stream.test_rows[1:]))
    labels = np.empty((2, len(asked)), np.intp)
    scores = np.empty((2, len(asked), len(pool.classes)), np.float32)
    before: tuple[Ensemble, Predictions] | None = None
    for ensemble, rows in zip(line, stream.test_rows, strict=True):
        if before is not None and before[0] == ensemble:  # never retrained
            new = before[1]
        else:
            ((_, _, new),) = predictor.predictions(ensemble, {"test": pool}, [combination])
        if before is not None:
            places = np.searchsorted(asked, rows)
            for side, made in enumerate((before[1], new)):
                assert made.scores is not None
                labels[side, places] = made.labels[rows]
                scores[side, places] = made.scores[rows]
        before = ensemble, new
    compared = pool.take(asked)
    old, new = (
        Predictions(
            ids=compared.ids,
            classes=compared.classes,
            labels=labels[side],
            scores=scores[side],
            truth=np.asarray(compared.labels),
            slices=compared.slices,
            positions=True,
        )
        for side in (0, 1)
    )
    return old, new


def _write_by_time(
    series: Sequence[MethodSeries],
    ensembles: Mapping[Ensemble, EnsembleRounds],
    stream: Stream,
    paths: PredictionPaths,
) -> Iterator[Path]:
    """Write the answers before and after each retrain, of every complete series."""
    predictor = EnsemblePredictor(ensembles, stream)
    written: set[Path] = set()
    for one in series:
        if one.kind == "point" or not _complete(one, ensembles):
            continue
        for line in lines_by_time(one):
            # Of what is never retrained only the name of the method is another.
            trained = [replace(each, method=one.ensembles[0].method) for each in line]
            for how in one.combinations:
                files = paths.by_time(line, how)
                if written.issuperset(files):
                    continue
                made = before_and_after(trained, predictor, stream, how)
                for path, answers in zip(files, made, strict=True):
                    predictions.write(answers, path)
                    yield path
                written.update(files)


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
    late = _has_new_classes(stream)
    return [
        MethodRun(
            series=one,
            test={
                how: paths.of_series(one, how, by_time=stream.by_time) for how in one.combinations
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
            if one.kind == "method" and not stream.by_time
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
    """The complete points of sweeps, one at a time: their predictions are not written.

    Each has the new classes, too: a share carried over, or a margin, is paid for there first.
    """
    predictor = EnsemblePredictor(ensembles, stream)

    def said(ensemble: Ensemble, name: str, how: Combination) -> Predictions:
        return next(predictor.predictions(ensemble, {name: stream.evaluation[name]}, [how]))[2]

    late = _has_new_classes(stream)
    for one in series:
        if one.kind == "point" and _complete(one, ensembles):
            yield MethodRun(
                series=one,
                test={
                    how: before_and_after(one.ensembles, predictor, stream, how)
                    if stream.by_time
                    else [said(each, "test", how) for each in one.ensembles]
                    for how in one.combinations
                },
                late={how: said(one.ensembles[-1], "late", how) for how in one.combinations}
                if late
                else {},
                price=_price(one.trained, ensembles, epochs, generations=one.generations),
            )


def _has_new_classes(stream: Stream) -> bool:
    return len(stream.evaluation.get("late", ())) > 0


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
