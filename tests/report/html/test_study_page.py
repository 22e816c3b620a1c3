import csv
import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from dynsnap.comparison import PairedDifference, compare
from dynsnap.report import MOST_BYTES, Curve, InputDrilldown, StudyFindings, to_html
from dynsnap.report.build.study_tables import CASES, by_method
from dynsnap.report.document import Document
from dynsnap.study import HeldAgainst, Row, SweepRow
from dynsnap.theory import audit
from tests.cli.helpers import dynsnap, refused
from tests.cli.studies import TINY
from tests.comparison.made import generations
from tests.documents import numbers
from tests.messages import naming
from tests.report.html.reader import read
from tests.report.pages import study_page

RESULTS = Path(__file__).parents[3] / "results"
SHIPPED = sorted(path.parent for path in RESULTS.glob("**/table.csv"))
METRICS = (
    "accuracy", "consistency", "correct_consistency", "gained", "lost", "pearson", "late_accuracy",
    "accuracy_1", "accuracy_2", "accuracy_3", "seconds",
)  # fmt: skip
SECTIONS = (
    "methods", "cost", "frontier", "sweeps", "ablations", "curves", "audit", "closer",
    "everything", "run",
)  # fmt: skip
WAYS = ("majority", "average")


def rows_of(method, start, cost, low=0.01):
    return [
        Row(
            method=method,
            combination=how,
            metric=metric,
            value=start + 0.001 * place + 0.0001 * way,
            low=None if metric == "seconds" else start - low,
            high=None if metric == "seconds" else start + 0.05,
            cost=cost,
            spread=0.0123,
        )
        for way, how in enumerate(WAYS)
        for place, metric in enumerate(METRICS)
    ]


def findings():
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet([1.0, 1.0, 1.0], (2, 3, 50))
    compared = compare(*generations(rows=60, count=3), names=["g1", "g2", "g3"], resamples=10)
    first, *others = (one.id for one in compared.pairs[-1].flipped)
    rows = [
        *rows_of("singlebase", 0.8, 1.0),
        *rows_of("dynsnap-cyc", 0.9, 3.3),
        *rows_of("no-schedule<b>", 0.85, 2.0),
        *rows_of("noise-floor", 0.95, 1.0),
        *rows_of("never-retrain", 0.6, 0.0),
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
        file="[study]\nname = '<b>'\n",
        drilldown=InputDrilldown(
            method="dynsnap-cyc<i>",
            combination="average",
            comparison=compared,
            excerpts={first: "a <b>bold</b> text", **dict.fromkeys(others, "text " * 90)},
        ),
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
        held={"never-retrain": [held("never-retrain", -0.3)]},
        notes=["One note."],
    )


def held(method, gap):
    """A method that is so far from a fresh DynSnap-cyc in its last generation."""
    found = PairedDifference(
        value=gap, low=gap - 0.02, high=gap + 0.02, detectable=0.031, inputs=50, replicates=2
    )
    return HeldAgainst(
        method=method, role="fresh", reference="dynsnap-cyc", cost=9.9, accuracies={3: found}
    )


def test_a_study_has_every_section():
    page = study_page(findings())
    found = read(page.html)
    for name in SECTIONS:
        assert name in found.ids
    assert [figure.name for figure in page.figures] == [
        "correct-consistency-cost",
        "consistency-cost",
        "accuracy-consistency",
        "accuracy-cost",
        "lost-consistency",
        "lost-cost",
        "accuracy-generations",
        "sweep-members",
        "curve-dynsnap-cyc",
        "over-time",
        "lost-over-time",
        "consistency",
        "correct-consistency",
        "transitions",
        "classes",
        "lost-to",
    ]
    assert re.search(naming("2 generations", "10 → 20"), found.text)
    assert len(page.html.encode()) < MOST_BYTES


def test_best_and_second_best_are_marked_and_references_are_not():
    html = study_page(findings()).html
    methods = html[html.index('id="methods-table"') : html.index('id="further-table"')]
    assert methods.count('class="number best"') == 3
    assert methods.count('class="number second"') == 3
    line = methods[methods.index("noise-floor") :]
    assert "best" not in line


def test_of_what_is_lost_the_least_is_best():
    html = study_page(findings()).html
    table = html[html.index('id="cases-table"') :]
    line = table[table.index("singlebase") :]
    assert "best" in line[: line.index("</tr>")]


def test_how_replicates_differ_is_in_the_tables():
    assert "±1.23" in read(study_page(findings()).html).text


def test_methods_that_do_not_count_are_marked_and_the_reason_is_said():
    page = study_page(findings())
    text = read(page.html).text
    assert re.search(r"never-retrain does not qualify.*?30\.0 points", text)
    assert "3.1 points" in text  # the smallest difference that would have been seen
    figure = next(one for one in page.figures if one.name == "accuracy-consistency")
    names = {row[0] for row in figure.rows}
    assert {"never-retrain ×", "dynsnap-cyc", "noise-floor"} <= names
    cost = next(one for one in page.figures if one.name == "lost-cost")
    assert {row[0]: row[1] for row in cost.rows}["never-retrain ×"] == "0"


def test_a_method_has_one_colour_in_all_pictures():
    figures = {figure.name: figure for figure in study_page(findings()).figures}

    def tone_of(figure, method):
        marks = [mark for mark in figures[figure].shapes if hasattr(mark, "radius")]
        return {mark.tone for mark in marks if mark.label.startswith(f"{method}:")}

    drawn = ("correct-consistency-cost", "consistency-cost", "accuracy-consistency", "lost-cost")
    for method in ("dynsnap-cyc", "noise-floor"):
        assert len(set().union(*(tone_of(figure, method) for figure in drawn))) == 1
    assert tone_of("lost-cost", "noise-floor") == tone_of("lost-cost", "never-retrain ×")


def test_accuracy_is_drawn_generation_by_generation():
    figures = study_page(findings()).figures
    figure = next(one for one in figures if one.name == "accuracy-generations")
    lines = [row for row in figure.rows if row[0] == "dynsnap-cyc"]
    assert [row[1] for row in lines] == ["1", "2", "3"]
    names = {getattr(shape, "text", "") for shape in figure.shapes}
    assert {"dynsnap-cyc", "never-retrain ×"} <= names


def test_a_study_shows_inputs_as_text_that_is_cut():
    found = read(study_page(findings()).html)
    assert "b" not in found.tags
    assert "text text" in found.text
    assert "text " * 60 not in found.text


def test_the_threshold_is_drawn_and_pruned_snapshots_are_told_apart():
    page = study_page(findings())
    figure = next(figure for figure in page.figures if figure.name == "curve-dynsnap-cyc")
    assert numbers(figure.description) == ["4", "1", "2", "0.8000"]
    texts = {getattr(shape, "text", "") for shape in figure.shapes}
    assert {"τ = 0.8000", "snapshot kept", "snapshot pruned"} <= texts


def test_the_first_epochs_of_a_long_round_do_not_flatten_the_rest():
    start = tuple(0.1 + 0.001 * epoch for epoch in range(5))
    curve = Curve(
        method="dynsnap-cyc",
        name="long",
        accuracy=(*start, *(0.8 + 0.001 * epoch for epoch in range(55))),
        epochs=(30, 59),
        snapshots=(0.825, 0.854),
        threshold=0.84,
    )
    page = study_page(dataclasses.replace(findings(), curves=[curve]))
    figure = next(figure for figure in page.figures if figure.name == "curve-dynsnap-cyc")
    assert re.search(r"\b6 epochs .*below", figure.description)
    (line,) = (shape for shape in figure.shapes if getattr(shape, "label", "") == "accuracy")
    heights = [y for _, y in line.points]
    assert max(heights) - min(heights) > 100
    assert max(heights) <= figure.height - 46


def test_a_study_says_what_is_trained_on_and_which_methods_have_more_replicates():
    about = {
        "generations": [14, 27],
        "training_rows": {"cat": [4, 5], "frog": [0, 12]},
        "test_inputs": 50,
        "replicates": 1,
    }
    replicates = {"singlebase": 7, "dynsnap-cyc": 1}
    made = dataclasses.replace(findings(), about=about, replicates=replicates)
    text = read(study_page(made).html).text
    assert re.search(naming("2 generations", "4 → 17", "50 test inputs"), text)
    assert "1 replicate (7 of singlebase)." in text
    assert "training rows of frog" in text


def test_classes_with_equally_many_training_rows_take_one_line_and_keep_their_names():
    rows = {f"class_{place:02}": [400, 500] for place in range(95)}
    rows |= {"aquarium_fish": [40, 50], "sweet_pepper": [40, 50], "bowl": [0, 500]}
    text = read(
        study_page(dataclasses.replace(findings(), about={"training_rows": rows})).html
    ).text
    for said in ("each of 95 classes400, 500", "aquarium_fish, sweet_pepper40, 50", "bowl0, 500"):
        assert f"training rows of {said}" in text
    assert text.count("training rows of") == 3


@pytest.mark.slow
def test_a_study_that_lacks_rounds_says_so_and_counts_the_replicates_that_are_there(tmp_path):
    for name in ("table.csv", "study.toml", "about.json", "replicates.csv"):
        shutil.copy(RESULTS / "digits" / name, tmp_path)
    about = tmp_path / "about.json"
    about.write_text(about.read_text().replace('"rounds_missing": 0', '"rounds_missing": 7'))
    each = tmp_path / "replicates.csv"
    lines = each.read_text().splitlines(keepends=True)
    each.write_text("".join(line for line in lines if not line.startswith("2,extbagging,")))
    said = dynsnap("report", tmp_path)
    assert said.exit_code == 0, said.output
    assert re.search(naming("7 rounds", "left out"), said.stdout)
    text = read((tmp_path / "report.html").read_text()).text
    assert "3 replicates (2 of extbagging), " in text
    assert re.search(r"\d rounds of training.*7 more", text)
    each.unlink()  # one replicate of each is not listed
    dynsnap("report", tmp_path)
    text = read((tmp_path / "report.html").read_text()).text
    assert "3 replicates (1 of singlebase, 1 of extbagging, " in text


def test_methods_of_one_network_stand_with_the_methods_and_variants_apart():
    more = [*rows_of("single", 0.7, 1.0), *rows_of("single-halved", 0.7, 1.0)]
    html = study_page(dataclasses.replace(findings(), rows=[*findings().rows, *more])).html
    methods, ablations = (
        html[html.index(f'id="{name}-table"') :].partition("</table>")[0]
        for name in ("methods", "ablations")
    )
    assert ">single<" in methods and ">single-halved<" not in methods
    assert ">single-halved<" in ablations and ">single<" not in ablations


@pytest.mark.slow
def test_with_many_classes_the_likeliest_few_of_variants_are_told():
    many = [
        dataclasses.replace(row, metric="top_5_accuracy", value=0.987)
        for row in findings().rows
        if row.metric == "accuracy"
    ]
    made = dataclasses.replace(findings(), rows=[*findings().rows, *many])
    html = study_page(made).html
    table = html[html.index('id="ablations-top-table"') :]
    table = table[: table.index("</table>")]
    assert "no-schedule&lt;b&gt;" in table and "98.70" in table and ">MV<" not in table
    assert "ablations-top-table" not in study_page(findings()).html


def test_every_metric_of_every_method_is_on_the_page():
    html = study_page(findings()).html
    table = html[html.index('id="everything-table"') :]
    assert table[: table.index("</table>")].count("<tr") == 1 + len(findings().rows)


def test_every_method_is_in_the_picture_of_costs():
    figure = study_page(findings()).figures[0]
    assert {row[0] for row in figure.rows} == {
        "singlebase",
        "dynsnap-cyc",
        "no-schedule<b>",
        "noise-floor",
    }  # what costs nothing has no place on a scale of doublings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A real run folder: two generations, the paper's four sweeps and two ablations."""
    folder = tmp_path_factory.mktemp("run")
    study = folder / "tiny.toml"
    study.write_text(
        TINY
        + '\n[[sweep]]\nover = "members"\nvalues = [1, 2]\n'
        + '\n[[sweep]]\nover = "beta"\nvalues = [0.0, 1.0]\n'
        + '\n[[sweep]]\nover = "snapshots"\nvalues = [1, 2]\nmembers = "snapshots"\nwindow = 4\n'
        + '\n[[sweep]]\nover = "window"\nvalues = [2, 4]\nbeta = 1.0\n'
        + '\n[[ablation]]\nname = "no-schedule"\nschedule = "constant"\n'
        + '\n[[ablation]]\nname = "no-randomness"\nepochs = 16\nsnapshots = 4\nbeta = 1.0\n'
    )
    ran = dynsnap("run", study, "--out", folder / "run", "--quiet")
    assert ran.exit_code == 0, ran.output
    return folder / "run"


def test_a_run_folder_becomes_a_page_and_the_same_tables_in_the_terminal(run, tmp_path):
    ran = dynsnap("report", run, "--svg", tmp_path / "figures")
    assert ran.exit_code == 0, ran.output
    html = (run / "report.html").read_text()
    found = read(html)
    for name in SECTIONS:
        assert name in found.ids
    for name in ("members", "beta", "snapshots", "window"):
        assert f"sweep-{name}-table" in found.ids
    ablations = html[html.index('id="ablations-table"') :]
    ablations = ablations[: ablations.index("</table>")]
    assert all(name in ablations for name in ("dynsnap-cyc", "no-schedule", "no-randomness"))
    assert "τ = " in html
    assert "Every theorem holds" in found.text
    assert "dynsnap-cyc" in ran.stdout
    assert "report.html" in ran.stdout
    with (run / "table.csv").open() as file:
        for row in csv.DictReader(file):
            if row["metric"] == "correct_consistency":
                assert f"{100 * float(row['value']):.2f}" in found.text
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    drawn = ("correct-consistency-cost", "lost-consistency", "sweep-window", "curve-dynsnap-cyc")
    assert {f"{name}.svg" for name in drawn} <= names


def test_the_images_that_were_lost_are_on_the_page(run):
    dynsnap("report", run, "--quiet")
    found = read((run / "report.html").read_text())
    assert found.images
    assert all(image.startswith(b"\x89PNG") for image in found.images)


def test_comparing_files_of_a_run_shows_its_inputs_where_the_run_is_named(run, tmp_path):
    page = tmp_path / "page.html"
    files = [f"{run}::singlebase/average/g{number}/r0" for number in (1, 2)]
    compare = ("compare", *files, "-q", "--resamples", "5", "--html", page)
    assert dynsnap(*compare).exit_code == 0
    assert not read(page.read_text()).images
    assert dynsnap(*compare, "--study", run).exit_code == 0
    assert read(page.read_text()).images
    assert f"from {run} (--study)" in read(page.read_text()).text


def test_a_table_of_many_metrics_has_room_for_values_alone():
    rows = [
        Row(method="singlebase", combination="average", metric=metric, value=0.5, low=0.4, high=0.6,
            cost=1.0)
        for metric in (*CASES, "accuracy")
    ]  # fmt: skip
    few = by_method("few", "few", rows, {"accuracy": "ACC"}, short=True)
    many = by_method("many", "many", rows, CASES, short=True)
    assert "[40.00, 60.00]" in to_html(Document.of("", few))
    assert "[40.00, 60.00]" not in to_html(Document.of("", many))


def test_what_a_long_stream_has_no_room_for_is_said():
    metrics = ["accuracy", "consistency", *(f"accuracy_{g}" for g in range(1, 11))]
    metrics += [f"{move}_{g}_{g + 1}" for g in range(1, 10) for move in ("gained", "lost")]
    rows = [
        Row(method=method, combination="average", metric=metric, value=0.5, cost=1.0)
        for method in ("singlebase", "dynsnap-cyc")
        for metric in metrics
    ]
    text = read(study_page(StudyFindings(name="long", rows=rows)).html).text
    assert "lost 9→10" in text
    assert "lost 1→2" not in text
    assert "The last 3 of 9 pairs" in text
    assert "left out." in text
    assert "left out." not in read(study_page(findings()).html).text


def test_another_method_can_be_looked_at(run, tmp_path):
    page = tmp_path / "page.html"
    assert dynsnap("report", run, "-q", "--html", page, "--method", "singlebase").exit_code == 0
    assert "A closer look at singlebase" in read(page.read_text()).text
    said = refused("report", run, "--method", "singelbase", code=2)
    assert re.search(naming("'singelbase'", "singlebase"), said)


@pytest.mark.parametrize("file", ["table.csv", "study.toml", "about.json", "inputs.npz"])
def test_a_page_never_takes_the_place_of_what_the_run_holds(run, file):
    before = (run / file).read_bytes()
    said = refused("report", run, "-q", "--html", run / file, code=2)
    assert re.search(naming("--html", "overwrite", re.escape(str(run / file))), said)
    assert (run / file).read_bytes() == before


@pytest.mark.slow
def test_inputs_come_from_the_data_where_the_run_has_none(run, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(run, bare, ignore=shutil.ignore_patterns("inputs.npz", "rounds"))
    dynsnap("report", bare, "--quiet")
    assert not read((bare / "report.html").read_text()).images
    dynsnap("report", bare, "--quiet", "--inputs", "digits")
    assert read((bare / "report.html").read_text()).images
    other = tmp_path / "other.npz"
    np.savez(other, inputs=np.zeros((1, 2, 2, 1), np.uint8), ids=["elsewhere"])
    assert "none of the" in refused("report", bare, "--inputs", other, code=3)


def test_a_run_without_its_rounds_still_has_its_tables(run, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "table.csv").write_bytes((run / "table.csv").read_bytes())
    ran = dynsnap("report", bare, "--html", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    text = read((tmp_path / "page.html").read_text()).text
    assert re.search(naming("Rounds of training", "No predictions"), text)
    said = refused("report", bare, "--method", "snapshot", code=2)
    assert re.search(naming("'snapshot'", "none"), said)


def test_what_is_not_a_run_is_refused(tmp_path):
    assert "no finished study" in refused("report", tmp_path, code=3)
    (tmp_path / "table.csv").write_text("method,value\nx,y\n")
    assert "damaged" in refused("report", tmp_path, code=3)
    (tmp_path / "table.csv").write_text("method,combination,metric,value,low,high,cost\n")
    assert "no rows" in refused("report", tmp_path, code=3)


def test_there_are_shipped_results():
    assert SHIPPED


# Of each kind one every day: small, and with a stream.
DAILY = ("digits", "digits-stream")


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in DAILY else pytest.mark.slow)
        for one in SHIPPED
    ],
)
def test_shipped_results_become_a_page(folder, tmp_path):
    ran = dynsnap("report", folder, "--html", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    found = read((tmp_path / "page.html").read_text())
    assert "methods" in found.ids
    assert "correct-consistency-cost-title" in found.ids
