"""Rounds to store, made of random numbers."""

import numpy as np

from dynsnap.ensemble import Recipe, Round, RoundSpec, Schedule

RECIPE = Recipe(schedule=Schedule("step"), epochs=6, snapshots=3)


def a_spec(**changes):
    return RoundSpec(**{"recipe": RECIPE, "generation": 1, "seed": 7, **changes})


def a_round(spec=None, *, inputs=5, classes=4, learners=3):
    spec = spec or a_spec()
    rng = np.random.default_rng([spec.generation, spec.index, spec.replicate])
    members = spec.recipe.members
    return Round(
        spec=spec,
        accuracy=rng.random(members),
        epochs=rng.permutation(spec.recipe.epochs)[:members],
        scores={
            "test": rng.dirichlet(np.ones(classes), (members, inputs)).astype(np.float32),
            "late": rng.dirichlet(np.ones(classes), (members, 2)).astype(np.float32),
        },
        curve=rng.random(spec.recipe.epochs),
        weights=tuple(rng.bytes(20 + j) for j in range(learners)),
        seconds=1.5,
    )


def assert_same_round(found, expected):
    assert found.spec == expected.spec
    for name in ("accuracy", "epochs", "curve"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.scores.keys() == expected.scores.keys()
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(found.scores[name], scores)
    assert found.weights == expected.weights
    assert found.seconds == expected.seconds
