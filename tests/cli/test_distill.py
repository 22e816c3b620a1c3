"""One network of an ensemble, through the command line."""

import json
import re
import shutil

import numpy as np
import pytest

from dynsnap import predictions, store
from dynsnap.data import digits
from tests.cli.studies import TINY, contents, dynsnap
from tests.messages import naming

KEPT = TINY.replace("resamples", 'keep = "weights"\nresamples')
LONG = KEPT.replace("epochs = 8", "epochs = 24\ncheckpoint_every = 0")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run with weights, and the same distilled."""
    folder = tmp_path_factory.mktemp("distill")
    (folder / "kept.toml").write_text(KEPT)
    for command in ("run", "distill"):
        written = {"--json": "found.json", "--markdown": "found.md", "--html": "found.html"}
        shown = [word for option, name in written.items() for word in (option, folder / name)]
        shown = shown if command == "distill" else []
        ended = dynsnap(command, folder / "kept.toml", "--out", folder / "run", "-q", *shown)
        assert ended.exit_code == 0, ended.stderr
    (folder / "report.txt").write_text(ended.stdout)
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """A copy of it to work in."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_student_is_an_ensemble_of_one_that_predicts(place):
    saved = store.load_ensemble("run/ensembles/distilled-dynsnap-cyc-g2.ensemble")
    assert (saved.method, saved.generation) == ("distilled-dynsnap-cyc", 2)
    assert len(saved.learners) == len(saved.positions) == 1
    assert saved.about["cost"] == 1
    pool = digits().train
    np.savez("new.npz", inputs=pool.inputs, ids=pool.ids)
    ended = dynsnap(
        "predict", "run/ensembles/distilled-dynsnap-cyc-g2.ensemble", "new.npz", "-o", "new.parquet"
    )
    assert ended.exit_code == 0, ended.stderr
    written = predictions.read("run/predictions/distilled-dynsnap-cyc-average-g2.parquet")
    again = predictions.read("new.parquet")
    place_of = {name: row for row, name in enumerate(np.asarray(again.ids).tolist())}
    rows = [place_of[name] for name in np.asarray(written.ids).tolist()]
    np.testing.assert_allclose(again.scores[rows], written.scores, atol=1e-6)


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("file", ["kept.toml", "run/table.csv"])
def test_neither_study_nor_run_is_overwritten(place, file, option):
    before = (place / file).read_bytes()
    ended = dynsnap("distill", "kept.toml", "--out", "run", "-q", option, file)
    assert ended.exit_code == 2
    assert re.search(naming(f"{option} {file}", "overwrite"), ended.stderr)
    assert (place / file).read_bytes() == before


def test_predictions_lie_beside_those_of_the_run(place):
    names = {path.as_posix() for path in contents(place / "run")}
    for generation in (1, 2):
        for folder in ("predictions", "predictions/late"):
            assert f"{folder}/distilled-dynsnap-cyc-average-g{generation}.parquet" in names


def test_a_single_learner_that_teaches_is_counted_once(place):
    ended = dynsnap(
        *("distill", "kept.toml", "--out", "run", "--method", "singlebase"),
        *("-q", "--json", "single.json"),
    )
    assert ended.exit_code == 0, ended.stderr
    learners = json.loads((place / "single.json").read_text())["learners"]
    assert [one["name"] for one in learners] == ["singlebase", "distilled-singlebase"]
    assert learners[0]["metrics"]["accuracy"]["spread"] is None  # one replicate has none


def test_the_json_tells_what_each_costs_and_what_is_left(place):
    found = json.loads((place / "found.json").read_text())
    assert found["schema"] == "dynsnap.distill/1"
    teacher, student, single = found["learners"]
    assert [one["networks"] for one in found["learners"]] == [2, 1, 1]
    assert single["name"] == "singlebase"
    assert single["cost"] == 1
    assert student["cost"] == teacher["cost"] + 1
    for metric, left in found["remains"]["singlebase"].items():
        low, high = single["metrics"][metric]["value"], teacher["metrics"][metric]["value"]
        if left is not None:
            value = student["metrics"][metric]["value"]
            assert left == pytest.approx((value - low) / (high - low), abs=1e-5)
    said = [
        predictions.read(f"run/predictions/{name}-average-g1.parquet")
        for name in ("dynsnap-cyc", "distilled-dynsnap-cyc")
    ]
    assert said[1].truth is not None
    accuracy = np.mean(np.asarray(said[1].labels) == np.asarray(said[1].truth))
    assert student["metrics"]["accuracy_1"]["value"] == pytest.approx(accuracy)


def test_the_teacher_is_measured_as_the_run_has_measured_it(place):
    found = json.loads((place / "found.json").read_text())
    lines = (place / "run/table.csv").read_text().splitlines()
    for metric in ("accuracy", "consistency", "correct_consistency", "late_accuracy"):
        (line,) = (one for one in lines if one.startswith(f"dynsnap-cyc,average,{metric},"))
        assert found["learners"][0]["metrics"][metric]["value"] == pytest.approx(
            float(line.split(",")[3])
        )


def test_the_report_says_how_much_of_the_gain_is_left(place):
    shown = (place / "report.txt").read_text()
    assert re.search(naming("tiny", "dynsnap-cyc", "1/2", "singlebase"), shown)
    assert "distilled-dynsnap-cyc-g2.ensemble" in "".join(shown.split())


@pytest.mark.parametrize("name", ["found.md", "found.html"])
def test_page_and_markdown_have_the_learners_of_the_json(place, name):
    learners = json.loads((place / "found.json").read_text())["learners"]
    text = (place / name).read_text()
    for learner in learners:
        assert learner["name"] in text
        assert f"{100 * learner['metrics']['accuracy']['value']:.1f}" in text
    assert "distilled-dynsnap-cyc-g2.ensemble" in text


def test_what_was_distilled_is_not_trained_again(place):
    before = contents(place / "run")
    ended = dynsnap("distill", "kept.toml", "--out", "run", "--json", "again.json")
    assert ended.exit_code == 0, ended.stderr
    assert "to train" not in ended.stderr
    assert contents(place / "run") == before
    again, first = (json.loads((place / f"{n}.json").read_text()) for n in ("again", "found"))
    assert again["learners"] == first["learners"]


@pytest.mark.slow
def test_other_teaching_is_another_training(place):
    ended = dynsnap("distill", "kept.toml", "--out", "run", "--generation", "1", "--weight", "0.9")
    assert "1 round to train" in ended.stderr
    ended = dynsnap("distill", "kept.toml", "--out", "run", "--generation", "1", "--epochs", "4")
    assert "1 round to train" in ended.stderr


@pytest.mark.slow
def test_a_run_leaves_students_alone(place):
    before = contents(place / "run")
    assert dynsnap("run", "kept.toml", "--out", "run", "-q").exit_code == 0
    assert contents(place / "run") == before


@pytest.mark.parametrize("second", ["previous", "student"])
def test_a_second_teacher_has_a_name_of_its_own(place, second):
    before = contents(place / "run")
    ended = dynsnap(
        *("distill", "kept.toml", "--out", "run", "--generation", "2"),
        *("--second-teacher", second, "--share", "0.5", "--json", "-", "-q"),
    )
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    name = f"distilled-dynsnap-cyc-{second}=0.5"
    assert (found["student"], found["second_teacher"], found["share"]) == (name, second, 0.5)
    after = contents(place / "run")
    assert {path.name for path in after.keys() - before.keys()} == {f"{name}-average-g2.parquet"}
    assert after.items() >= before.items()


@pytest.mark.slow
def test_a_student_that_was_stopped_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.toml").write_text(LONG)
    assert dynsnap("run", "long.toml", "--out", "run", "-q").exit_code == 0
    shutil.copytree("run", "whole")
    distill = ("distill", "long.toml", "--generation", "2")
    assert dynsnap(*distill, "--out", "whole", "-q").exit_code == 0
    stopped = dynsnap(*distill, "--out", "run", "--time-budget", "0.001")
    assert stopped.exit_code == 4
    assert re.search(naming("time budget", r"0\.001", "in run", "dynsnap"), stopped.stderr)
    assert list((tmp_path / "run/checkpoints").iterdir())
    assert dynsnap(*distill, "--out", "run", "-q").exit_code == 0
    assert not list((tmp_path / "run/checkpoints").iterdir())
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_without_a_single_learner_the_gain_is_not_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone.toml").write_text(KEPT.replace('"singlebase", ', ""))
    assert dynsnap("train", "alone.toml", "--out", "run", "-q").exit_code == 0
    ended = dynsnap("distill", "alone.toml", "--out", "run", "--generation", "2", "-q")
    assert ended.exit_code == 0, ended.stderr
    told = " ".join(ended.stdout.split())
    assert re.search(naming("cannot be said", "single learner"), told)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--method", "dynsnap"], 2, 'Did you mean "dynsnap-cyc"'),
        (["--generation", "3"], 2, naming("generation 3", "2")),
        (["--generation", "0"], 2, naming("--generation", "0")),
        (["--weight", "0"], 2, "0"),
        (["--weight", "nan"], 2, "not a number"),
        (["--temperature", "-1"], 2, "-1"),
        (["--temperature", "inf"], 2, naming("--temperature", "inf")),
        (["--share", "0.5"], 2, "--second-teacher"),
        (["--second-teacher", "old"], 2, naming("--second-teacher", "'old'", "previous")),
        (["--second-teacher", "previous", "--share", "2"], 2, naming("--share", r"2\.0")),
        (["--replicates", "2"], 2, naming("2 replicates", "1")),
        (
            ["--out", "empty"],
            3,
            naming("empty", r"`dynsnap run kept\.toml --out empty`"),
        ),
        (["--json", "run"], 2, naming("--json", "run", "directory")),
    ],
)
def test_wrong_use_is_one_line(place, arguments, code, message):
    out = [] if "--out" in arguments else ["--out", "run"]
    ended = dynsnap("distill", "kept.toml", *out, *arguments)
    assert ended.exit_code == code
    (line,) = (line for line in ended.stderr.splitlines() if line.startswith("dynsnap: "))
    assert re.search(message, line)
    assert not (place / "empty").exists()


@pytest.mark.slow
def test_a_run_without_weights_says_how_to_keep_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    assert dynsnap("run", "tiny.toml", "--out", "run", "-q").exit_code == 0
    before = contents(tmp_path / "run")
    ended = dynsnap("distill", "tiny.toml", "--out", "run", "-q")
    assert ended.exit_code == 3
    assert re.search(naming('`keep = "weights"`', r"\[study\]"), ended.stderr)
    assert contents(tmp_path / "run") == before


def test_answers_that_stand_are_no_teacher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    standing = '\n[[variant]]\nname = "standing"\nmethod = "dynsnap-cyc"\nmargin = 0.2\n'
    (tmp_path / "standing.toml").write_text(KEPT + standing)
    ended = dynsnap("distill", "standing.toml", "--out", "run", "--method", "standing", "-q")
    assert ended.exit_code == 2
    assert re.search(naming("standing", "`margin`"), ended.stderr)


def test_boosted_trees_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    boosted = KEPT[: KEPT.index("[model]")] + '[model]\nname = "xgboost"\n'
    (tmp_path / "boosted.toml").write_text(boosted)
    (tmp_path / "run/rounds").mkdir(parents=True)
    ended = dynsnap("distill", "boosted.toml", "--out", "run", "-q")
    assert ended.exit_code == 2
    assert re.search(naming("networks", "distil"), ended.stderr)
