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
