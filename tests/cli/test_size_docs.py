"""What docs/size.md shows is run here, and its numbers are those of results/."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from dynsnap import study
from dynsnap.cli import cli
from tests.documents import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/size.md").read_text()
RESULTS = ROOT / "results"
AT_BOUND = {("cifar100-paper", "ACC"), ("cifar100-paper", "CON")}
METRICS = {"ACC": "accuracy", "CON": "consistency", "ACC-CON": "correct_consistency"}


def found(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def swept(study_name):
    with (RESULTS / study_name / "sweeps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["sweep"], row["point"], row["metric"]): row for row in rows}


def percent(value):
    return f"{100 * float(value):.2f}"


def with_spread(row):
    """A row of a sweep in percent, and its standard deviation over replicates."""
    return f"{percent(row['value'])} ± {percent(row['spread'])}"


def rows_with(first):
    """The rows of a table that begin like this, as cells."""
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_documented_commands_have_options_that_exist():
    (lines,) = blocks(PAGE, "console")
    commands = [shlex.split(line)[3:] for line in lines.splitlines() if "dynsnap size" in line]
    assert len(commands) == 3
    for arguments in commands:
        cli.get_command(None, "size").make_context(
            "size", arguments
        )  # raises where an option is wrong


def test_the_documented_python_runs(capsys):
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "docs/size.md", "exec"), {})
    members, rounds = map(int, capsys.readouterr().out.split())
    assert members >= rounds >= 2


def test_the_documented_study_is_read(tmp_path):
    (text,) = blocks(PAGE, "toml")
    (tmp_path / "auto.toml").write_text(text)
    assert study.read_study(tmp_path / "auto.toml").method("dynsnap-cyc").plan.automatic


@pytest.mark.parametrize("members", [5, 10, 20, 40])
def test_what_was_foreseen_and_what_was_trained_is_as_documented(members):
    def at(name):
        points = found(name)["curves"]["consistency"]["points"]
        return percent(next(p["value"] for p in points if p["members"] == members))

    known = []
    for name in ("digits-size", "20news-size"):
        row = swept(name)["members", str(members), "consistency"]
        known += [at(f"{name}/size"), with_spread(row), at(f"{name}/size-members")]
    ((_, *cells),) = rows_with(members)
    assert cells == known


def test_the_errors_of_the_laws_are_as_documented():
    error = r" \| ([+−][\d.]+)"
    said = re.findall(rf"\| (ACC|CON|ACC-CON){3 * error} \|", PAGE)
    known = []
    for file in ("digits-size/size", "digits-size/size-extbagging", "20news-size/size"):
        for name, metric in METRICS.items():
            trials = found(file)["curves"][metric]["trials"]
            errors = [f"{100 * trial['error']:+.2f}".replace("-", "−") for trial in trials]
            known.append((name, *errors))
    assert said == known


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("name", "data"),
    [("digits-size", "digits"), ("20news-size", "20 Newsgroups"), ("cifar100-paper", "CIFAR-100")],
)
def test_the_laws_and_how_many_are_enough_are_as_documented(name, data, metric):
    curve = found(f"{name}/size")["curves"][METRICS[metric]]
    law = curve["law"]
    ((_, *cells),) = rows_with(f"{data}: {metric}")
    counts = [str(curve["enough_members"]), f"{curve['settled_members']} members"]
    # Of three rounds, which no further one tests; the others have seven and twelve.
    bound = law["bend"] in (0.5, 1)
    assert bound == ((name, metric) in AT_BOUND)
    if bound and name == "cifar100-paper":
        counts = 2 * ["not estimable"]
    assert cells == [
        f"{percent(law['limit'])} − {100 * law['scale']:.1f} / r^{law['bend']:.2f}",
        percent(curve["limits"]["shifted"]),
        *counts,
    ]


def test_the_laws_of_three_runs_on_cifar_100_are_told_with_their_limits():
    names = ("cifar100-paper", "cifar100-paper-2021", "cifar100-paper-2022")
    runs = [found(f"{name}/size")["curves"] for name in names]
    page = " ".join(PAGE.split())
    for head, metric in (("ACC", "accuracy"), ("ACC-CON", "correct_consistency")):
        told = []
        for curves in runs:
            value, low, high = (
                percent(curves[metric]["limit"][k]) for k in ("value", "low", "high")
            )
            told.append(f"{value} ({low} to {high}")
        places = [page.find(one) for one in told]
        assert -1 not in places and places == sorted(places), (head, told)
    bends = {
        metric: [curves[metric]["law"]["bend"] for curves in runs] for metric in METRICS.values()
    }
    at = {
        metric: ["lower" if b == 0.5 else "upper" if b == 1 else "" for b in each]
        for metric, each in bends.items()
    }
    assert at == {
        "accuracy": ["upper", "lower", ""],
        "consistency": ["lower", "lower", "lower"],
        "correct_consistency": ["", "", "lower"],
    }
    assert (
        "of CON is at its lower bound in all three, that of ACC at the upper one in the first and "
        "the lower one in the second, and that of ACC-CON at the lower one in the third" in page
    )
    first = runs[0]["accuracy"]["limit"]
    others = [curves["accuracy"]["limit"]["value"] for curves in runs[1:]]
    assert all(one > first["high"] for one in others)
    assert "third run's limits of ACC lie outside the interval of the first" in page


def test_how_the_members_near_the_limit_depend_on_the_replicates_is_told():
    page = " ".join(PAGE.split())
    curves = found("20news-size/size")["curves"]
    con, both = (curves[METRICS[one]]["enough_members"] for one in ("CON", "ACC-CON"))
    assert f"three 1565, ten say {con}, and of ACC-CON 108, 176 and {both}." in page
    settled = curves["correct_consistency"]["settled_members"]
    assert f"and on 20 Newsgroups from {settled}" in page


@pytest.mark.parametrize(
    ("first", "point"),
    [
        ("tolerance 0.01", ("tolerance-0.01", "auto")),
        ("tolerance 0.005", ("tolerance-0.005", "auto")),
        ("tolerance 0.002", ("tolerance-0.002", "auto")),
        ("m = 20", ("members", "20")),
        ("m = 80", ("members", "80")),
    ],
)
def test_what_comes_of_auto_is_as_documented(first, point):
    rows = [swept("digits-size")[*point, metric] for metric in METRICS.values()]
    ((_, cost, *cells),) = rows_with(first)
    assert cost == f"{float(rows[0]['cost']):.1f}"
    assert cells == [with_spread(row) for row in rows]


def test_what_comes_of_auto_on_texts_is_as_documented():
    rows = [swept("20news-size")["members", "auto", metric] for metric in METRICS.values()]
    values = ", ".join(
        f"{name} {with_spread(row)}" for name, row in zip(METRICS, rows, strict=True)
    )
    assert f"takes {float(rows[0]['cost']):.1f} rounds: {values}." in PAGE


def test_twins_are_as_documented():
    for name, file in (
        ("dynsnap-cyc, digits", "digits-size/size"),
        ("extbagging, digits", "digits-size/size-extbagging"),
        ("dynsnap-cyc, 20 Newsgroups", "20news-size/size"),
    ):
        twins = found(file)["twins"]
        apart = dict(zip(twins["rounds"], twins["disagreement"], strict=True))
        ((_, *shares, exponent),) = rows_with(name)
        known = [f"{100 * apart[r]:.1f} %" if r in apart else "" for r in (1, 2, 4, 8)]
        assert shares == known
        assert exponent == f"{twins['exponent']:.2f}"
