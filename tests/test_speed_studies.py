"""The studies of `benchmarks/` whose speed is on docs/benchmarks.md are as wide as it says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dynsnap.study import read_study, workload
from tests.documents import tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["speed_resnet20", "speed_resnet56"])
def test_a_study_for_its_speed_trains_as_many_rounds_as_its_row_says(name):
    plan = read_study(ROOT / f"benchmarks/{name}.toml")
    rows = [row for table in tables(PAGE) for row in table if f"`{name}.toml`" in row[0]]
    assert f"`{name}.toml`" in [row[0] for row in rows]  # as it is
    for row in rows:
        model, batch = re.fullmatch(r"(ResNet-\d+), (\d+)", row[1]).groups()
        assert model.lower().replace("-", "") == plan.model["name"]
        assert int(batch) == plan.training["batch_size"]
        told = re.search(r", (\d+) members$", row[0])
        (bagging,) = plan.methods
        members = int(told[1]) if told else bagging.plan.size
        bagging = replace(bagging, plan=replace(bagging.plan, size=members))
        # With the noise floor's, which was left out.
        planned = len(workload(replace(plan, methods=(bagging,))).rounds)
        assert row[2] == f"{3 * members} of {planned} in one process"
        assert f"{plan.epochs} epochs" in row[4]


def test_the_aims_are_held_against_the_numbers_of_the_table():
    table = next(t for t in tables(PAGE) if "thousands of images/s" in t[0])
    speed = {row[0]: (row[3].strip("*"), row[4]) for row in table[1:]}
    text = " ".join(PAGE.split()).partition("The aims for real studies were ")[2]
    text = text.partition("That of 24 stood still")[0]
    for study, words, told in (
        ("`cifar10-full`", ("343", "270 s with all"), "at best 343 there, over 270 s"),
        (
            "`cifar10-paper-2022`",
            ("307", "by the rounds' own clocks"),
            "307 and 297 by the rounds'",
        ),
        (
            "`cifar10-rolling-2022`, rolling bagging",
            ("305", "297 by"),
            "307 and 297 by the rounds'",
        ),
        ("`speed_resnet20.toml`", ("358", "12 epochs"), "12 epochs, made for its speed, has 358"),
        ("`speed_resnet20.toml`", ("358", "282 over its 67 s"), "and 282 over its 67 s"),
        ("`cifar100-rolling-2021`, `-2022`", ("95", "with all rounds"), "at most 95 in a study"),
        ("`speed_resnet56.toml`, 8 members", ("113", "first 50 s"), "113 for the first 50 s"),
        ("`speed_resnet56.toml`", ("121", "134 s"), "and 121 for 134 s"),
    ):
        value, over = speed[study]
        assert value == words[0] and words[1] in over, study
        assert told in text, study
    long = [
        float(speed[row[0]][0])
        for row in table[1:]
        if row[1].startswith("ResNet-20") and "speed" not in row[0]
    ]
    assert max(long) == 343 < 350 and "Neither is reached in a study of the paper's length" in text
