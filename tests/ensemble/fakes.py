"""A trainer without training: what the algorithm needs to be tried on."""

from collections.abc import Iterator, Sequence

import numpy as np

from dynsnap import seeds
from dynsnap.ensemble import Recipe, Round, RoundSpec, Schedule


def step_recipe(snapshots: int = 10) -> Recipe:
    return Recipe(schedule=Schedule("step"), epochs=50, snapshots=snapshots)


def made_round(spec: RoundSpec, accuracy=None, inputs: int = 4, classes: int = 3) -> Round:
    """A round as accurate as its seed, or the caller, says."""
    rng = seeds.generator(spec.seed, spec.canonical())
    members = spec.recipe.members
    if accuracy is None:
        accuracy = rng.integers(0, 5, members) / 10  # coarse, so that ties occur
    return Round(
        spec=spec,
        accuracy=np.asarray(accuracy, dtype=float),
        epochs=np.arange(members),
        scores={"test": rng.dirichlet(np.ones(classes), (members, inputs))},
        curve=np.zeros(spec.recipe.epochs),
    )


class FakeTrainer:
    """Stands in for torch, and remembers what it was asked."""

    fingerprint = "fake"

    def __init__(self) -> None:
        self.asked: list[RoundSpec] = []

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        self.asked += specs
        for spec in reversed(specs):  # any order is allowed
            yield made_round(spec)

    def score(self, weights, inputs, /):
        raise NotImplementedError
