import csv
from pathlib import Path

import numpy as np
import pytest

from dynsnap.report.html import MOST_BYTES, Curve, StudyFindings, study_page
from dynsnap.study import Row, SweepRow
from dynsnap.theory import audit
from tests.cli.helpers import dynsnap, refused
from tests.cli.studies import TINY
from tests.report.html.reader import read

RESULTS = Path(__file__).parents[3] / "results"
SHIPPED = sorted(path.parent for path in RESULTS.glob("**/table.csv"))
METRICS = ("accuracy", "consistency", "correct_consistency", "seconds")
WAYS = ("majority", "average")


def rows_of(method, start, cost, low=0.01):
    return [
        Row(
            method=method,
            combination=how,
            metric=metric,
            value=start + 0.01 * place + 0.001 * way,
            low=None if metric == "seconds" else start - low,
            high=None if metric == "seconds" else start + 0.05,
            cost=cost,
        )
        for way, how in enumerate(WAYS)
        for place, metric in enumerate(METRICS)
    ]


def findings():
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet([1.0, 1.0, 1.0], (2, 3, 50))
    rows = [
        *rows_of("singlebase", 0.8, 1.0),
        *rows_of("dynsnap-cyc", 0.9, 3.3),
        *rows_of("no-schedule<b>", 0.85, 2.0),
        *rows_of("noise-floor", 0.95, 1.0),
    ]
    return StudyFindings(
        name="a <b>study</b>",
        rows=rows,
        sweeps=[
            SweepRow(sweep="members", over="members", point=point, row=row)
            for point, cost in (("1", 1.0), ("5", 2.0))
            for row in rows_of(f"members={point}", 0.7, cost)
        ],
        about={"generations": [10, 20], "test_inputs": 50, "replicates": 2, "rounds": 7},
        curves=[
            Curve(
                method="dynsnap-cyc",
                name="first round",
                accuracy=(0.5, 0.7, 0.8, 0.9),
                epochs=(1, 3),
                snapshots=(0.7, 0.9),
                threshold=0.8,
            )
        ],
        audits={"dynsnap-cyc": audit(old, new, truth=rng.integers(0, 3, 50))},
        notes=["One note."],
    )


def test_a_study_has_every_section():
    page = study_page(findings())
    found = read(page.html)
    for name in ("methods", "cost", "sweeps", "ablations", "curves", "audit", "everything"):
        assert name in found.ids
    assert [figure.name for figure in page.figures] == [
        "correct-consistency-cost",
        "consistency-cost",
        "sweep-members",
        "curve-dynsnap-cyc",
    ]
    assert "2 generations of 10 → 20 training inputs" in found.text
    assert len(page.html.encode()) < MOST_BYTES


def test_best_and_second_best_are_marked_and_references_are_not():
    html = study_page(findings()).html
    methods = html[html.index('id="methods-table"') : html.index('id="cost"')]
    assert methods.count('class="number best"') == 3
    assert methods.count('class="number second"') == 3
    line = methods[methods.index("noise-floor") :]
    assert "best" not in line


def test_the_threshold_is_drawn_and_pruned_snapshots_are_told_apart():
    page = study_page(findings())
    figure = next(figure for figure in page.figures if figure.name == "curve-dynsnap-cyc")
    assert figure.description == "4 epochs; 1 of 2 snapshots are kept, τ is 0.8000."
    texts = {getattr(shape, "text", "") for shape in figure.shapes}
    assert {"τ = 0.8000", "snapshot kept", "snapshot pruned"} <= texts


def test_every_method_is_in_the_picture_of_costs():
    figure = study_page(findings()).figures[0]
    assert {row[0] for row in figure.rows} == {
        "singlebase",
        "dynsnap-cyc",
        "no-schedule<b>",
        "noise-floor",
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A real run folder: two generations, a sweep and an ablation."""
    folder = tmp_path_factory.mktemp("run")
    study = folder / "tiny.toml"
    study.write_text(
        TINY
        + '\n[[sweep]]\nover = "members"\nvalues = [1, 2]\n'
        + '\n[[ablation]]\nname = "no-schedule"\nschedule = "constant"\n'
    )
    ran = dynsnap("run", study, "--out", folder / "run", "--quiet")
    assert ran.exit_code == 0, ran.output
    return folder / "run"


def test_a_run_folder_becomes_a_page_and_the_same_tables_in_the_terminal(run, tmp_path):
    ran = dynsnap("report", run, "--svg", tmp_path / "figures")
    assert ran.exit_code == 0, ran.output
    html = (run / "report.html").read_text()
    found = read(html)
    for name in ("methods", "cost", "sweeps", "ablations", "curves", "audit", "everything"):
        assert name in found.ids
    assert "Every theorem holds on these." in found.text
    assert "dynsnap-cyc" in ran.stdout
    assert "report.html" in ran.stdout
    with (run / "table.csv").open() as file:
        for row in csv.DictReader(file):
            if row["metric"] == "correct_consistency":
                assert f"{100 * float(row['value']):.2f}" in found.text
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"correct-consistency-cost.svg", "sweep-members.svg", "curve-dynsnap-cyc.svg"} <= names


def test_a_run_without_its_rounds_still_has_its_tables(run, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "table.csv").write_bytes((run / "table.csv").read_bytes())
    ran = dynsnap("report", bare, "--html", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    text = read((tmp_path / "page.html").read_text()).text
    assert "Rounds of training are left out" in text


def test_what_is_not_a_run_is_refused(tmp_path):
    assert "no finished study" in refused("report", tmp_path, code=3)
    (tmp_path / "table.csv").write_text("method,value\nx,y\n")
    assert "damaged" in refused("report", tmp_path, code=3)
    (tmp_path / "table.csv").write_text("method,combination,metric,value,low,high,cost\n")
    assert "no rows" in refused("report", tmp_path, code=3)


def test_there_are_shipped_results():
    assert SHIPPED


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_shipped_results_become_a_page(folder, tmp_path):
    ran = dynsnap("report", folder, "--html", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    found = read((tmp_path / "page.html").read_text())
    assert "methods" in found.ids
    assert "correct-consistency-cost-title" in found.ids
