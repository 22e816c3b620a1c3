"""The tables of docs/size.md are what the stored sizes and sweeps say."""

import csv
import json
from pathlib import Path

import pytest

from tests.documents import tables
from tests.published import RESULTS

PAGE = (Path(__file__).parents[1] / "docs/size.md").read_text(encoding="utf-8").replace("−", "-")
METRICS = {"ACC": "accuracy", "CON": "consistency", "ACC-CON": "correct_consistency"}
STUDIES = {
    "digits": "digits-size",
    "20 Newsgroups": "20news-size",
    "CIFAR-100": "cifar100-paper",
}


def table(head):
    """The rows of the table whose first line has a cell that begins so."""
    (found,) = (one for one in tables(PAGE) if any(cell.startswith(head) for cell in one[0]))
    return found


def size(study, name="size"):
    return json.loads((RESULTS / study / f"{name}.json").read_text())


def swept(study):
    with (RESULTS / study / "sweeps.csv").open(newline="") as file:
        return {(row["point"], row["metric"]): row for row in csv.DictReader(file)}


@pytest.mark.parametrize(("study", "first"), [("digits-size", 1), ("20news-size", 4)])
def test_drawn_and_trained_sizes_are_those_that_are_stored(study, first):
    drawn, trained = (
        {
            point["members"]: point["value"]
            for point in size(study, name)["curves"]["consistency"]["points"]
        }
        for name in ("size", "size-members")
    )
    for cells in table("digits: `--draw rounds`")[1:]:
        row = swept(study)[cells[0], "consistency"]
        assert cells[first : first + 3] == [
            f"{100 * drawn[int(cells[0])]:.2f}",
            f"{100 * float(row['value']):.2f} ± {100 * float(row['spread']):.2f}",
            f"{100 * trained[int(cells[0])]:.2f}",
        ]
    often = {3: "three", 10: "ten"}[size(study)["replicates"]]
    assert f"`{study}` ({often}" in PAGE


def test_errors_of_laws_are_those_that_are_stored():
    rows = table("power")[1:]
    files = [("digits-size", "size"), ("digits-size", "size-extbagging"), ("20news-size", "size")]
    starts = [place for place, row in enumerate(rows) if "→" in row[1]]
    for start, (study, name) in zip(starts, files, strict=True):
        for row, curve in zip(rows[start : start + 3], METRICS.values(), strict=True):
            trials = size(study, name)["curves"][curve]["trials"]
            assert [float(cell) for cell in row[3:]] == [
                float(f"{100 * one['error']:.2f}") for one in trials
            ]
            if row[1]:
                assert row[1] == f"{trials[0]['fitted_to']} → {trials[0]['tested_at']}"


def test_limits_are_those_that_are_stored():
    for what, law, shifted, near, settled in table("limit of the shifted law")[1:]:
        data, metric = what.split(": ")
        curve = size(STUDIES[data])["curves"][METRICS[metric]]
        assert curve["law"]["name"] == "power"
        limit, scale, bend = (curve["law"][one] for one in ("limit", "scale", "bend"))
        assert law == f"{100 * limit:.2f} - {100 * scale:.1f} / r^{bend:.2f}"
        assert shifted == f"{100 * curve['limits']['shifted']:.2f}"
        assert [near, settled] == [
            str(curve["enough_members"]),
            f"{curve['settled_members']} members",
        ]


def test_disagreement_of_twins_is_that_which_is_stored():
    files = {
        "dynsnap-cyc, digits": ("digits-size", "size"),
        "extbagging, digits": ("digits-size", "size-extbagging"),
        "dynsnap-cyc, 20 Newsgroups": ("20news-size", "size"),
    }
    head, *rows = table("rounds of each twin")
    for name, *cells, exponent in rows:
        twins = size(*files[name])["twins"]
        stored = dict(zip(twins["rounds"], twins["disagreement"], strict=True))
        for rounds, cell in zip(head[1:], cells, strict=False):
            share, _, other = cell.partition(" % (")
            if cell:
                at = int(other.split()[0]) if other else int(rounds)
                assert share.removesuffix(" %") == f"{100 * stored[at]:.1f}"
        assert exponent == f"{twins['exponent']:.2f}"


def test_what_the_tolerance_gives_on_20_newsgroups_is_that_which_is_stored():
    found = [
        f"{100 * float(swept('20news-size')['auto', metric]['value']):.2f}"
        for metric in METRICS.values()
    ]
    cost = float(swept("20news-size")["auto", "accuracy"]["cost"])
    told = ", ".join(f"{head} {one}" for head, one in zip(METRICS, found, strict=True))
    assert f"takes {cost:.1f} rounds: {told}." in PAGE
