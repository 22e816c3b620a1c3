"""`dynsnap size` on a small run, trained once."""

import csv
import json
import re
import shutil

import pytest

from dynsnap import study
from dynsnap.data import digits_stream
from dynsnap.store import RunFolder
from dynsnap.testing import CentroidTrainer
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming

TEXT = """
[study]
name = "small"
resamples = 20
[training]
epochs = 6
[methods]
names = ["singlebase", "snapshot", "dynsnap-cyc"]
combinations = ["average"]
members = 12
snapshots = 3
beta = 1.0
[methods.snapshot]
members = 3
"""
QUICK = ("--draws", "20", "--resamples", "30")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("size") / "run"
    folder.mkdir()
    (folder / "study.toml").write_text(TEXT)
    plan, stream = study.read_study(folder / "study.toml"), digits_stream()
    with RunFolder(folder, weights=False) as store:
        study.run(plan, stream=stream, trainer=CentroidTrainer(stream), store=store, folder=folder)
    return folder


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


def as_json(*arguments):
    result = dynsnap("size", *arguments, *QUICK, "--json", "-")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def rounds_of(folder):
    """The files of the rounds, by generation and index."""
    store = RunFolder(folder, weights=False)
    return {
        folder / "rounds" / f"{entry.key}.npz": entry.facts["spec"] for entry in store.entries()
    }


@pytest.mark.slow
def test_the_full_size_is_the_row_of_the_table(run):
    found = as_json(run)
    with (run / "table.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "dynsnap-cyc"]
    table = {row["metric"]: float(row["value"]) for row in rows}
    assert (found["schema"], found["method"], found["study"]) == (
        "dynsnap.size/1",
        "dynsnap-cyc",
        "small",
    )
    assert (found["members"], found["rounds"], found["generations"]) == (12, 4, 3)
    for metric in ("accuracy", "consistency", "correct_consistency"):
        last = found["curves"][metric]["points"][-1]
        assert last["members"] == 12
        assert last["value"] == pytest.approx(table[metric], abs=1e-9)


def test_the_report_tells_sizes_laws_and_their_errors(run):
    result = dynsnap("size", run, *QUICK)
    assert result.exit_code == 0
    for text in ("small: dynsnap-cyc, average", "Expected of m members", "ACC-CON", "How many"):
        assert text in result.stdout
    assert re.search(r"fitted to .*2 rounds .*4", " ".join(result.stdout.split()))
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_any_size_may_be_asked_for_and_more_than_there_are_if_allowed(run):
    points = as_json(run, "--at", "7,3")["curves"]["consistency"]["points"]
    assert [point["members"] for point in points] == [3, 7]
    points = as_json(run, "--at", "6,30", "--extrapolate")["curves"]["consistency"]["points"]
    assert [point["extrapolated"] for point in points] == [False, True]
    assert points[1]["rounds"] == 10


def test_the_tolerance_decides_how_many_are_enough(run):
    few = as_json(run, "--tolerance", "0.1")["curves"]["consistency"]
    many = as_json(run, "--tolerance", "0.001")["curves"]["consistency"]
    assert few["enough"] <= many["enough"] and few["settled"] <= many["settled"]
    assert many["enough_members"] == 3 * many["enough"]


def test_a_method_of_one_round_has_its_members_drawn(run):
    assert as_json(run, "--method", "snapshot")["draw"] == "members"


def test_the_same_command_tells_the_same(run):
    assert as_json(run, "--seed", "4") == as_json(run, "--seed", "4")


def test_all_stored_rounds_are_used_not_only_those_of_the_ensemble(copy):
    (copy / "study.toml").write_text(TEXT.replace("members = 12", "members = 5"))
    assert as_json(copy)["members"] == 12


def test_markdown_and_quiet(run, tmp_path):
    page = tmp_path / "size.md"
    result = dynsnap("size", run, *QUICK, "-q", "--markdown", page)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Expected of m members" in page.read_text()


def test_a_page_has_the_numbers_of_the_json(run, tmp_path):
    found = as_json(run)
    page = tmp_path / "size.html"
    result = dynsnap("size", run, *QUICK, "-q", "--html", page)
    assert (result.exit_code, result.stdout) == (0, "")
    cells = set(re.findall(r"<td[^>]*>([^<]*)<", page.read_text()))
    for curve in found["curves"].values():
        assert {f"{100 * point['value']:.2f}" for point in curve["points"]} <= cells
    assert page.read_text().count("<svg") == 1


def test_a_page_is_not_written_over_the_study(run):
    before = (run / "study.toml").read_text()
    assert dynsnap("size", run, "--html", run / "study.toml").exit_code == 2
    assert (run / "study.toml").read_text() == before


def test_without_predictions_there_is_the_consistency_only(copy):
    shutil.rmtree(copy / "predictions")
    found = as_json(copy)
    assert list(found["curves"]) == ["consistency"]
    assert "truth" in found["notes"][0]


@pytest.mark.parametrize(
    ("options", "name"),
    [((), ""), (("--law", "inverse"), ""), (("--draw", "members"), "exponent")],
)
def test_a_law_at_its_bound_is_a_note(run, tmp_path, options, name):
    page = tmp_path / "size.md"
    found = as_json(run, *options, "--markdown", page)
    told = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
    bends = {metric: curve["law"]["bend"] for metric, curve in found["curves"].items()}
    assert set(bends.values()) == {1} or not name  # their bounds are 0.5 and 1
    assert found["notes"] == [
        f"The {name} of {told[metric]} is at its bound ({bend:g}): its limit and member counts "
        "are extrapolations that these rounds do not support."
        for metric, bend in bends.items()
        if name
    ]
    assert all(note in page.read_text() for note in found["notes"])


def test_damaged_rounds_are_left_out_and_named(copy):
    damaged = [path for path, spec in rounds_of(copy).items() if spec["index"] == 1]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:500])
    found = as_json(copy)
    assert found["rounds"] == 3
    note = found["notes"][0]
    assert re.search(naming(str(len(damaged)), "damaged", "run the study"), note)


def test_a_run_that_is_all_damaged_is_one_clear_line(copy):
    for path in rounds_of(copy):
        path.write_bytes(b"damaged")
    assert "All rounds in" in refused("size", copy, code=3)


def test_one_generation_is_one_clear_line(copy):
    for path, spec in rounds_of(copy).items():
        if spec["generation"] > 1:
            path.unlink()
    assert "between generations" in refused("size", copy, code=3)


def test_one_member_is_one_clear_line(run):
    assert "one member only" in refused("size", run, "--method", "singlebase", code=3)


def test_no_rounds_is_one_clear_line(copy):
    shutil.rmtree(copy / "rounds")
    said = refused("size", copy, code=3)
    assert re.search(naming("no rounds", "published results"), said)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--at", "13"), 2, naming("13 members", "12")),
        (("--at", "5,many"), 2, naming("--at", "many")),
        (("--at", "-1"), 2, naming("one member", "-1")),
        (("--tolerance", "0"), 2, "'--tolerance'"),
        (("--method", "dynsnap"), 2, "no method 'dynsnap'"),
        (("--method", "snapshot", "--draw", "rounds"), 3, naming("one round", '"members"')),
        (("--json", "-", "--markdown", "-"), 2, "cannot both write"),
    ],
)
def test_wrong_use_is_one_clear_line(run, arguments, code, message):
    assert re.search(message, refused("size", run, *arguments, code=code))


def test_the_study_that_was_run_is_not_overwritten(run):
    message = refused("size", run, "--json", run / "study.toml", code=2)
    assert re.search(naming("--json", "overwrite", r"study\.toml"), message)


def test_another_folder_is_one_clear_line(tmp_path):
    assert re.search(
        naming(re.escape(str(tmp_path)), "of a run"), refused("size", tmp_path, code=3)
    )
    (tmp_path / "study.toml").write_text("[study")
    assert "not valid TOML" in refused("size", tmp_path, code=2)


def test_a_rolling_ensemble_is_refused(copy):
    (copy / "study.toml").write_text(TEXT.replace('"snapshot"', '"rolling"'))
    assert "carries members over" in refused("size", copy, "--method", "rolling", code=2)


def test_answers_that_stand_are_refused(copy):
    standing = '\n[[variant]]\nname = "standing"\nmethod = "dynsnap-cyc"\nmargin = 0.2\n'
    (copy / "study.toml").write_text(TEXT + standing)
    message = refused("size", copy, "--method", "standing", code=2)
    assert "standing" in message and "`margin`" in message


def test_a_study_without_a_name_is_called_as_its_run_was(copy):
    (copy / "study.toml").write_text(TEXT.replace('name = "small"\n', ""))
    (copy / "about.json").write_text('{"study": "small"}')
    ended = dynsnap("size", copy, *QUICK)
    assert ended.stdout.startswith("small: dynsnap-cyc, average")
