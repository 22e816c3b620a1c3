"""The smallest learner that keeps the whole contract of a trainer."""

import json
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats, MemberScores, Scores
from dynsnap._untrusted import ListOf, Number, Schema, Table, Whole, mismatch, parse_json
from dynsnap.data import Stream, split
from dynsnap.ensemble import Checkpoints, Monitor, Round, RoundSpec, snapshot_epochs
from dynsnap.errors import FileError, InputError, Interrupted, PlanError, one_line


class CentroidTrainer:
    """Moves one centroid per class towards the rows of its class; the nearest centroid wins.

    Weak, quick and of numpy alone: it stands in for a real trainer where a study, a store or an
    engine is tested, and shows in one screen what a trainer has to do.

    Args:
        stream: The growing data, with inputs of numbers.
        monitor: Receives every epoch, and may stop the training.
        checkpoints: Where a stopped round leaves its state.
        keep_weights: Whether rounds carry their learners, or scores only.
        rate: How far a centroid moves in one epoch, at most.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        monitor: Monitor | None = None,
        checkpoints: Checkpoints | None = None,
        keep_weights: bool = True,
        rate: float = 0.5,
    ) -> None:
        self._stream = stream
        self._monitor = monitor
        self._checkpoints = checkpoints
        self._keep_weights = keep_weights
        self._rate = rate
        flat = _flat(stream.pool.inputs)
        self._scale = float(flat.std()) or 1.0

    @cached_property
    def fingerprint(self) -> str:
        """Text that changes whenever the data or a setting would change a round."""
        return f"centroids/2/{self._rate}/{self._stream.fingerprint}"

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        """The rounds, one after another."""
        return map(self._train, specs)

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners, pass by pass where dropout is left on."""
        return score_centroids(weights, inputs, classes=len(self._stream.pool.classes))

    def _train(self, spec: RoundSpec) -> Round:
        if spec.parent is not None:
            raise PlanError(f"A centroid trainer always starts afresh, but {spec} has a parent.")
        start, name, pool = time.perf_counter(), spec.seed_name(), self._stream.pool
        rows, validation = split(
            self._stream, spec.generation, seeds.generator(spec.seed, name, "split")
        )
        path, curve = self._begin(spec)
        rates = self._rate * spec.recipe.multipliers
        for epoch in range(len(curve), spec.recipe.epochs):
            rng = seeds.generator(spec.seed, name, "epoch", epoch)
            centroids = self._moved(path[-1], rng.choice(rows, len(rows)), rates[epoch])
            path.append(centroids)
            whole = np.ones(centroids.shape[1])
            seen = _nearest(centroids, pool.inputs[validation], whole, self._scale)
            curve.append(float(np.mean(seen.argmax(axis=1) == pool.labels[validation])))
            self._tell(spec, path, curve)
        epochs = snapshot_epochs(spec.recipe, curve)
        # `path` begins with the centroids before the first epoch.
        weights = tuple(self._pack(spec, path[epoch + 1]) for epoch in epochs)
        if self._checkpoints is not None:
            self._checkpoints.drop(spec)
        return Round(
            spec=spec,
            accuracy=np.repeat(np.array(curve)[epochs], spec.recipe.passes),
            epochs=np.repeat(epochs, spec.recipe.passes),
            scores={
                held: self.score(weights, rows.inputs)
                for held, rows in self._stream.evaluation.items()
            },
            curve=np.array(curve),
            weights=weights if self._keep_weights else (),
            seconds=time.perf_counter() - start,
        )

    def _begin(self, spec: RoundSpec) -> tuple[list[Floats], list[float]]:
        state = self._checkpoints.load(spec) if self._checkpoints is not None else None
        if state is not None:
            known = json.loads(state)
            return [np.array(centroids) for centroids in known["path"]], known["curve"]
        rng = seeds.generator(spec.seed, spec.seed_name(), "start")
        flat = _flat(self._stream.pool.inputs)
        shape = (len(self._stream.pool.classes), flat.shape[1])
        return [flat.mean() + self._scale * rng.standard_normal(shape)], []

    def _tell(self, spec: RoundSpec, path: list[Floats], curve: list[float]) -> None:
        if self._monitor is None:
            return
        self._monitor.epoch_done(spec, len(curve) - 1, curve[-1])
        if self._monitor.stopping():
            if self._checkpoints is not None:
                state = {"path": [centroids.tolist() for centroids in path], "curve": curve}
                self._checkpoints.save(spec, json.dumps(state).encode())
            raise Interrupted(f"Stopped in {spec}, after epoch {len(curve) - 1}.")

    def _moved(self, centroids: Floats, rows: AnyArray, rate: float) -> Floats:
        inputs, labels = _flat(self._stream.pool.inputs[rows]), self._stream.pool.labels[rows]
        moved = centroids.copy()
        for label in np.unique(labels):
            moved[label] += rate * (inputs[labels == label].mean(axis=0) - centroids[label])
        return moved

    def _pack(self, spec: RoundSpec, centroids: Floats) -> bytes:
        learner = {
            "centroids": centroids.tolist(),
            "scale": self._scale,
            "dropout": spec.recipe.dropout,
            "passes": spec.recipe.passes,
            "noise": seeds.number(spec.seed, spec.seed_name(), "noise"),
        }
        return json.dumps(learner).encode()


def score_centroids(learners: Sequence[bytes], inputs: AnyArray, *, classes: int) -> MemberScores:
    """Scores of learners that a `CentroidTrainer` stored, also where the trainer is gone.

    Raises:
        FileError: A learner is damaged, or of another number of classes.
        InputError: The inputs are of another width.
    """
    rows: list[Scores] = []
    for content in learners:
        centroids, learner = _opened(content, classes)
        if _flat(inputs[:1]).shape[1] != centroids.shape[1]:
            raise InputError(
                f"The inputs have {_flat(inputs[:1]).shape[1]} numbers each, but the learner was "
                f"trained on {centroids.shape[1]}."
            )
        for attempt in range(learner["passes"]):
            kept = np.ones(centroids.shape[1])
            if learner["passes"] > 1:
                noise = seeds.generator(learner["noise"], "pass", attempt)
                kept = (noise.random(centroids.shape[1]) >= learner["dropout"]).astype(float)
            rows.append(_nearest(centroids, inputs, kept, learner["scale"]))
    return np.stack(rows)


# What a learner may hold. It may come from a stranger, so that it is checked before it is used.
_LEARNER: Schema = Table(
    {
        "centroids": ListOf(ListOf(Number(), least=1), least=2),
        "scale": Number(1e-300),
        "dropout": Number(0, 1),
        "passes": Whole(1, 10_000),
        "noise": Whole(0, 2**128),
    }
)


def _opened(content: bytes, classes: int) -> tuple[Floats, dict[str, Any]]:
    try:
        learner: dict[str, Any] = parse_json(content)
        if (problem := mismatch(_LEARNER, learner)) is not None:
            raise ValueError(problem)
        centroids = np.array(learner["centroids"], np.float64)
        if centroids.shape[0] != classes:
            raise ValueError(f"it knows {centroids.shape[0]} classes, not {classes}")
    except ValueError as error:
        raise FileError(f"A stored learner cannot be read: {one_line(str(error))}.") from error
    return centroids, learner


def _nearest(centroids: Floats, inputs: AnyArray, kept: Floats, scale: float) -> Scores:
    apart = (_flat(inputs)[:, np.newaxis] - centroids) / scale
    closeness = -((apart**2) * kept).mean(axis=2) * 8
    raised = np.exp(closeness - closeness.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _flat(inputs: AnyArray) -> Floats:
    return np.asarray(inputs, np.float64).reshape(len(inputs), -1)
