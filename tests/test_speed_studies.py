"""The speeds of docs/benchmarks.md: studies are as wide as it says, and logs tell the same."""

# ruff: noqa: E501  sentences of a page are longer than lines of code

import gzip
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from dynsnap.study import read_study, read_table, workload
from tests.documents import tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
AIMS = TEXT.partition("The aims for real studies were ")[2].partition("The goals beyond")[0]


@pytest.fixture(scope="module")
def speeds():
    """The rows of the table: study, model, rounds, speed, and what it was measured over."""
    table = next(t for t in tables(PAGE) if "thousands of images/s" in t[0])
    return {row[0]: row for row in table[1:]}


@pytest.fixture(scope="module")
def read():
    return runpy.run_path(str(ROOT / "benchmarks/epochs.py"))["read"]


@pytest.fixture(scope="module")
def logged(read):
    return {
        name: read(ROOT / f"benchmarks/epochs/{name}.csv.gz")
        for name in ("resnet20", "resnet56-200-epochs", "resnet56")
    }


@pytest.mark.parametrize("name", ["speed_resnet20", "speed_resnet56"])
def test_a_study_for_its_speed_trains_as_many_rounds_as_its_row_says(name, speeds):
    plan = read_study(ROOT / f"benchmarks/{name}.toml")
    rows = [row for row in speeds.values() if f"`{name}.toml`" in row[0]]
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


def test_the_ablation_trains_as_many_rounds_as_its_row_says(speeds, logged):
    plan = read_study(ROOT / "benchmarks/ablation_resnet56.toml")
    rounds = workload(plan).rounds
    floor = [spec for spec in rounds if spec.twin]
    trained = len(rounds) - len(floor)
    row = speeds["`ablation_resnet56.toml`"]
    assert row[1] == f"ResNet-56, {plan.training['batch_size']}"
    assert row[2] == f"{trained} of {len(rounds)} in one process"
    assert logged["resnet56"].rounds == trained
    short = [spec for spec in rounds if spec.recipe.epochs == 50]
    assert len(short) == 24 and "(24 of 50 epochs, and two of 200)" in row[4]
    assert {spec.recipe.epochs for spec in rounds if spec not in short} == {200}


def test_speeds_of_logs_are_those_of_the_page(speeds, logged):
    for row, log in (
        (speeds["`cifar10-distill-2021`"], logged["resnet20"]),
        (speeds["`cifar100-paper-2021`, all but DynSnap-cyc"], logged["resnet56-200-epochs"]),
        (speeds["`ablation_resnet56.toml`"], logged["resnet56"]),
    ):
        assert f"{log.active:,.0f} s with all" in row[4]
        assert f"{log.speed / 1000:.0f} over {log.seconds:,.0f} s, from the first end" in row[4]
        assert f"{log.whole_speed / 1000:.0f} over {log.whole:,.0f} s, building included" in row[4]
    own, other = logged["resnet20"], logged["resnet56"]
    assert (
        f"{own.active_speed / 1000:.0f} in {own.active:.0f} s with all {own.rounds} active"
        in (speeds["`cifar10-distill-2021`"][4])
    )
    assert speeds["`ablation_resnet56.toml`"][3] == f"**{other.active_speed / 1000:.0f}**"
    assert other.active_speed > 110_000
    for log, joined in ((own, " s when the first twelve rounds"), (other, None)):
        first, second = (f"{one:.0f}" for one in log.pauses)
        assert f"no epoch ended for {first}{joined or ' and'}" in AIMS
        assert f"and for {second} s" in AIMS
    first, longest, second = (
        ", ".join(f"{one / 1000:.0f}" for one in (log.active_speed, log.speed, log.whole_speed))
        for log in logged.values()
    )
    assert f"benchmarks/epochs/*.csv.gz` ({first}; {longest}; and {second})" in TEXT


def test_thirteen_rounds_of_200_epochs_have_the_speed_of_their_log_and_of_their_clocks(
    speeds, logged
):
    log, row = logged["resnet56-200-epochs"], speeds["`cifar100-paper-2021`, all but DynSnap-cyc"]
    assert (row[2], row[3]) == (f"{log.rounds} in one process", f"{log.active_speed / 1000:.0f}")
    whole, other = (
        json.loads((ROOT / f"results/cifar100-{name}-2021/about.json").read_bytes())
        for name in ("paper", "rolling")
    )
    # The study's other rounds are DynSnap-cyc's, three of four of the rolling study.
    table = read_table(ROOT / "results/cifar100-rolling-2021/table.csv")
    (single,) = (
        3 * one.value
        for one in table
        if (one.method, one.combination, one.metric) == ("singlebase", "average", "seconds")
    )
    images = whole["training_inputs"] - 3 / 4 * other["training_inputs"]
    seconds = whole["training_seconds"] - (other["training_seconds"] - single)
    rounds = whole["rounds"] - 3 / 4 * other["rounds"]
    told = f"{images / 1e6:.0f} million images in {seconds:,.0f} s"
    assert f"{images / seconds / 1000:.0f} by the rounds' own clocks, {told};" in row[4]
    assert rounds == log.rounds and images == pytest.approx(log.whole * log.whole_speed)
    process = whole["wall_seconds_last"]
    told = f"{images / process / 1000:.0f} over the {process:,.0f} s of the process"
    assert row[4].endswith(told) and whole["rounds_trained_last"] == log.rounds
    assert f"With thirteen, three of them MCDropout's, it has {row[3]}" in AIMS
    assert f"no epoch ended for {log.pauses[0]:.0f} s, when the five rounds" in AIMS


def test_the_speed_by_clocks_is_that_of_the_study(speeds, logged):
    folder = ROOT / "results/cifar10-distill-2021"
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    row = speeds["`cifar10-distill-2021`"]
    speed = about["training_inputs"] / about["training_seconds"]
    assert speed == pytest.approx(about["inputs_per_second"]) and speed > 350_000
    assert row[3] == f"**{speed / 1000:.0f}**"
    assert row[2] == f"{logged['resnet20'].rounds} in one process, six of them controls"
    assert row[4].startswith(
        f"{about['training_inputs'] / 1e6:.0f} million images in {about['training_seconds']:.0f} s, "
        f"by the clocks of the {about['rounds']} rounds"
    )
    assert read_study(folder / "study.toml").epochs == 200
    # Each of the 36 trains on as much as the one of its generation that the study is made of.
    whole = about["training_inputs"] * logged["resnet20"].rounds / about["rounds"]
    seconds = about["wall_seconds_last"]
    told = f"{whole / seconds / 1000:.0f} over the {seconds:.0f} s of the process"
    assert f"{told} ({whole / 1e6:.0f} million images of all 36)" in row[4]
    assert f"building and measuring, it has {whole / seconds / 1000:.0f}." in AIMS


def test_the_aims_are_held_against_the_numbers_of_the_table(speeds):
    for study, value, over, told in (
        ("`cifar10-distill-2021`", "372", "by the clocks", "372 by the clocks of 24 of its 36"),
        ("`cifar10-distill-2021`", "372", "465 s with all", "374 for the 465 s in which all"),
        ("`cifar10-distill-2021`", "372", "332 over 629 s", "it has 332"),
        (
            "`ablation_resnet56.toml`",
            "111",
            "429 s with all",
            "of them of 50 epochs, have 111 over 429 s",
        ),
        ("`cifar100-rolling-2021`, `-2022`", "95", "with all rounds", "at most 95, with twelve"),
        ("`speed_resnet56.toml`, 8 members", "113", "first 50 s", "113 for the first 50 s"),
        ("`speed_resnet56.toml`", "121", "134 s", "and 121 for 134 s"),
    ):
        assert speeds[study][3].strip("*") == value and over in speeds[study][4], study
        assert told in AIMS, study
    longest = [
        float(row[3].strip("*"))
        for name, row in speeds.items()
        if row[1] == "ResNet-56, 32" and ".toml" not in name
    ]
    assert max(longest) == 95 and "and in no study of the paper's length.**" in AIMS
    about = json.loads((ROOT / "results/cifar100-rolling-2021/about.json").read_bytes())
    assert about["rounds"] == 12  # and the same for 24
    twice = round(2 * about["training_inputs"] / 95e3 / 60)
    assert f"{2e-6 * about['training_inputs']:.0f} million images" in AIMS
    assert "37 minutes at that speed" in AIMS and twice == 37


def test_clocks_that_are_stored_are_those_of_the_table(speeds):
    for name, folder in (
        ("`cifar10-distill`", "cifar10-distill"),
        ("`cifar100-paper`", "cifar100-paper"),
    ):
        about = json.loads((ROOT / f"results/{folder}/about.json").read_bytes())
        assert (
            f" in {about['training_seconds']:,.0f} s, by the rounds' own clocks" in speeds[name][4]
        )
    both = [
        json.loads((ROOT / f"results/cifar100-rolling-{seed}/about.json").read_bytes())
        for seed in (2021, 2022)
    ]
    first, second = (f"{one['inputs_per_second'] / 1000:.0f}" for one in both)
    one, two = (f"{one['training_seconds']:,.0f}" for one in both)
    millions = {f"{one['training_inputs'] / 1e6:.0f}" for one in both}
    row = speeds["`cifar100-rolling-2021`, `-2022`"][4]
    assert f"{first} and {second} by the rounds' own clocks" in row
    assert f"{millions.pop()} million images in {one} and {two} s" in row and not millions
    assert f"{first} and {second} follow from `about.json`" in TEXT


def log_of(path, rows, head="seconds,round,generation,epoch,images"):
    with gzip.open(path, "wt") as file:
        file.write("\n".join([head, *rows]) + "\n")
    return path


def test_the_speeds_of_a_small_log_by_hand(read, tmp_path):
    # Round 0 ends epochs of 100 images at 10, 20 and 30; round 1 of 50 images at 15, 25 and 45.
    rows = ["10,0,1,1,100", "15,1,1,1,50", "20,0,1,2,100", "25,1,1,2,50", "30,0,1,3,100"]
    found = read(log_of(tmp_path / "log.csv.gz", [*rows, "45,1,1,3,50"]))
    assert (found.rounds, found.active, found.seconds, found.whole) == (2, 15, 35, 45)
    # From 15 to 30: one and a half epochs of round 0, and one and a quarter of round 1.
    assert found.active_speed == pytest.approx((150 + 62.5) / 15)
    assert found.speed == pytest.approx((200 + 100) / 35)
    assert found.whole_speed == pytest.approx(450 / 45)
    assert found.pauses == (5, 15)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ["10,0,1,1,100", "20,0,1,3,100"],
        ["10,0,1,1,100", "5,0,1,2,100"],
        ["nan,0,1,1,100", "5,0,1,2,100"],
        ["10,0,1,1,100", "20,0,1,2,900"],
        ["10,0,1,1,-1", "20,0,1,2,-1"],
        ["10,0,1,1,many", "20,0,1,2,many"],
        ["10,0,1,1"],
        ["10,0,1,1,100", "20,0,1,2,100", "30,1,1,1,100"],
    ],
)
def test_what_is_no_log_of_epochs_is_refused_by_its_name(read, tmp_path, rows):
    with pytest.raises(SystemExit, match=r"log\.csv\.gz: "):
        read(log_of(tmp_path / "log.csv.gz", rows))


def test_other_files_are_no_logs_of_epochs(read, tmp_path):
    (tmp_path / "plain.csv.gz").write_text("seconds,round,generation,epoch,images\n")
    log_of(tmp_path / "other.csv.gz", ["1,2"], head="round,seconds")
    for name in ("plain", "missing", "other"):
        with pytest.raises(SystemExit, match=rf"{name}\.csv\.gz: "):
            read(tmp_path / f"{name}.csv.gz")
