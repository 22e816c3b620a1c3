"""The names of rounds, byte for byte: seeds and keys are hashes of them.

A change here gives every stored round another name, so that finished studies are trained again
and published results can no longer be reproduced.
"""

import hashlib
import json
from pathlib import Path

import pytest

from dynsnap import study
from dynsnap.ensemble import Recipe, RoundSpec, Schedule, method, round_key
from tests.cli.studies import SHIPPED

KNOWN = json.loads(Path(__file__).with_name("canonical.json").read_text())


def certain(name):
    """The names of all rounds that a shipped study is certain to train, in their order."""
    plan = study.read_study(SHIPPED[name])
    generations = study.growth_of(plan.data).generations
    return [spec.canonical() for spec in study.workload(plan, generations=generations).rounds]


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_every_shipped_study_is_known():
    assert set(KNOWN["studies"]) == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_study_trains_the_rounds_that_it_always_trained(name):
    names = certain(name)
    assert {"rounds": len(names), "sha256": digest(names)} == KNOWN["studies"][name]


def spec_of(name, **settings):
    return RoundSpec(recipe=method(name, epochs=200).recipe, generation=1, **settings)


SPECS = {
    "step": spec_of("singlebase"),
    "cyclic": spec_of("dynsnap-cyc", replicate=2, index=3, seed=7),
    "twin": spec_of("singlebase", twin=1),
    "passes": spec_of("mcdropout"),
    "from a member": spec_of("rolling", parent="0123/4"),
    "custom": RoundSpec(
        recipe=Recipe(schedule=Schedule("custom", (1.0, 0.5)), epochs=2, snapshots=1), generation=1
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_round_has_the_name_and_the_key_that_it_always_had(name):
    class Trainer:
        fingerprint = "data, model and optimiser"

    found = {"name": SPECS[name].canonical(), "key": round_key(Trainer(), SPECS[name])}
    assert found == KNOWN["rounds"][name]
