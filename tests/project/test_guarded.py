"""Programs that write what only the loop writes: verdicts, records, the pointer, its own steps."""

import json

import pytest

from dynsnap import project as projects
from dynsnap.errors import FileError, TrainingError
from dynsnap.project._steps import refuse_other_files
from tests.messages import naming
from tests.project.made import NEVER, PERIODS, PREDICT, TRAIN, WEEKS, deployed, make, retrain

OWN = f"retrains/{PERIODS[1]}"
PASSED = {
    "schema": "dynsnap.retrain-measured/1",
    "generation": 2,
    "verdict": "passed",
    "held_out": {},
    "newest": {},
    "evaluated": 9,
    "about": {},
    "notes": [],
}
FORGED = {
    "a verdict": (f"{OWN}/measured.json", json.dumps(PASSED)),
    "an end": (f"{OWN}/result.json", None),
    "a plan": (f"{OWN}/plan.json", None),
    "the history": (f"retrains/{PERIODS[0]}/result.json", "{}"),
    "the pointer": ("registry/deployed.json", "{}"),
    "a manifest": ("registry/generations/0001/generation.json", "{}"),
    "a generation": ("registry/generations/0002/generation.json", "{}"),
    "another retrain": ("retrains/2024-01-15/plan.json", "{}"),
    "scores of the deployed generation": (f"{OWN}/work/deployed/predictions.parquet", "x"),
    "a trained model": (f"{OWN}/work/candidate/trained.json", "{}"),
}
END = """
import os
def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.chmod(path, 0o644)
    open(path, "w").write(text)
"""


@pytest.fixture
def second(tmp_path):
    """A project with one generation deployed, and a gate that no generation passes."""
    made = make(tmp_path / "small")
    retrain(made, WEEKS[0])
    (made / "gate.toml").write_text(NEVER)
    return made


def holds(folder):
    """All that the loop goes by."""
    files = [*folder.glob("registry/**/*.json"), *folder.glob(f"retrains/{PERIODS[0]}/*.json")]
    return {file: file.read_bytes() for file in files}


@pytest.mark.parametrize(
    ("what", "fails"), [*((what, False) for what in FORGED), ("a verdict", True), ("an end", True)]
)
def test_what_a_program_writes_of_the_loops_own_is_undone(second, what, fails):
    path, text = FORGED[what]
    before = holds(second)
    text = text or (second / f"retrains/{PERIODS[0]}" / path.split("/")[-1]).read_text()
    (second / "train.py").write_text(
        f"{TRAIN}{END}put({path!r}, {text!r})\n" + "raise SystemExit(1)\n" * fails
    )
    named = "exit code 1" if fails else path.split("/")[0]
    with pytest.raises(TrainingError, match=named):
        retrain(second, WEEKS[1])
    assert holds(second) == before
    (second / "train.py").write_text(TRAIN)
    found = retrain(second, WEEKS[1])
    assert (found.decision, found.measured.generation) == ("kept", 2)
    assert found.measured.held_out and deployed(second) == 1


def test_the_program_that_scores_does_not_change_what_was_trained(second):
    put = f"{END}put('{OWN}/work/candidate/predictions.parquet', 'x')"
    (second / "predict.py").write_text(f"{PREDICT}{put}")
    with pytest.raises(TrainingError, match=naming("candidate")):
        retrain(second, WEEKS[1])
    (second / "predict.py").write_text(PREDICT)
    assert retrain(second, WEEKS[1]).decision == "kept"


def test_a_verdict_before_anything_was_trained_is_none(second):
    """What a program that outlives a killed loop has written."""
    (second / "train.py").write_text("raise SystemExit(1)")
    with pytest.raises(TrainingError):
        retrain(second, WEEKS[1])
    (second / OWN / "measured.json").write_text(json.dumps(PASSED))
    (second / OWN / "work/deployed").mkdir()
    (second / "train.py").write_text(TRAIN)
    assert retrain(second, WEEKS[1]).decision == "kept"


def test_a_generation_that_is_not_what_was_trained_is_not_deployed(second):
    (second / "train.py").write_text("raise SystemExit(1)")
    with pytest.raises(TrainingError):
        retrain(second, WEEKS[1])
    other = second / "data/week-0.csv"
    projects.FolderRegistry(second / "registry").register(
        PERIODS[1], {"edge.txt": other, "predictions.parquet": other}, model="edge.txt", about={}
    )
    (second / "train.py").write_text(TRAIN)
    with pytest.raises(FileError, match=naming("[Gg]eneration 2", "given up")):
        retrain(second, WEEKS[1])
    assert deployed(second) == 1
    found = retrain(second, WEEKS[1])  # which must not end there for ever
    assert (found.plan.name, found.measured.generation) == (f"{PERIODS[1]}-2", 3)


def test_a_registry_may_add_files_of_its_own(tmp_path):
    """MLflow's describes how an ensemble is loaded."""
    for name in ("model.ensemble", "predictions.parquet", "MLmodel"):
        (tmp_path / name).write_text(name)
    files = {name: tmp_path / name for name in ("model.ensemble", "predictions.parquet")}
    made = projects.FolderRegistry(tmp_path / "registry").register(
        "x", {**files, "MLmodel": tmp_path / "MLmodel"}, model="model.ensemble", about={}
    )
    refuse_other_files(made, files, "model.ensemble")
    for other, model in (("MLmodel", "model.ensemble"), ("model.ensemble", "MLmodel")):
        with pytest.raises(FileError, match=naming("model.ensemble")):
            refuse_other_files(made, {"model.ensemble": tmp_path / other}, model)


def test_what_a_program_leaves_elsewhere_is_its_own(second):
    (second / "train.py").write_text(
        f"{TRAIN}{END}put('cache/x', 'x')\nput(train + '.bin', 'x')\nput(model + '.tmp', 'x')\n"
        "put(os.path.join(os.path.dirname(model), 'trained.json'), '{}')\n"
    )
    assert retrain(second, WEEKS[1]).decision == "kept"
    assert (second / "cache/x").exists()
    names = {each.name for each in (second / "registry/generations/0002").iterdir()}
    assert names == {"edge.txt", "generation.json", "predictions.parquet"}


@pytest.mark.parametrize(
    "change",
    ["", "os.unlink(path)\n", "path = os.path.realpath(path)\n"],
    ids=["through the link", "instead of the link", "where it leads to"],
)
def test_a_pointer_that_is_a_link_is_held_as_well(second, tmp_path, change):
    pointer, elsewhere = second / "registry/deployed.json", tmp_path / "elsewhere.json"
    pointer.rename(elsewhere)
    pointer.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    (second / "train.py").write_text(
        f"{TRAIN}{END}path = 'registry/deployed.json'\n{change}put(path, '{{}}')\n"
    )
    with pytest.raises(TrainingError, match=naming("deployed.json")):
        retrain(second, WEEKS[1])
    assert pointer.readlink() == elsewhere and elsewhere.read_bytes() == before


def test_what_is_no_generation_and_no_retrain_is_left_alone(second, tmp_path):
    """A person may put notes, or a copy, where the loop keeps its own while a program runs."""
    notes = ["registry/generations/README", "registry/generations/0001.bak/x", "retrains/notes/x"]
    (second / "train.py").write_text(
        f"{TRAIN}{END}for note in {notes}:\n    put(note, 'x')\n"
        f"os.symlink('nowhere', 'retrains/{PERIODS[2]}')\n"
    )
    assert retrain(second, WEEKS[1]).decision == "kept"
    assert all((second / note).read_text() == "x" for note in notes)
    (second / "train.py").write_text(TRAIN)
    assert retrain(second, WEEKS[2]).plan.name == f"{PERIODS[2]}-2"
