"""`compare` and `gate` read what was named: files beside predictions change nothing."""

import json
import shutil

import numpy as np
import pytest

from dynsnap import predictions
from dynsnap.predictions import Predictions
from tests.cli.helpers import dynsnap, refused

KINDS = {"cup": "dishes", "plate": "dishes", "oak": "trees", "pine": "trees"}
CLASSES = (*KINDS, "bowl")


def written(path, labels, truth, prefix=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = {**KINDS, "bowl": "dishes"}
    predictions.write(
        Predictions(
            ids=[f"{prefix}{row}" for row in range(len(truth))],
            classes=CLASSES,
            labels=labels,
            truth=truth,
            slices={"coarse": [kinds[name] for name in truth]},
        ),
        path,
    )


@pytest.fixture(scope="module")
def run_made(tmp_path_factory):
    """A run folder: plates become bowls, a class that no test input has."""
    folder = tmp_path_factory.mktemp("named") / "run"
    truth = [*KINDS] * 10
    said = [truth, ["bowl" if name == "plate" else name for name in truth]]
    for number, labels in enumerate(said, 1):
        name = f"singlebase-average-g{number}.parquet"
        written(folder / "predictions" / name, labels, truth)
        written(folder / "predictions/late" / name, ["bowl", "cup"], ["bowl"] * 2, "late")
    (folder / "table.csv").write_text("method,combination,metric,value\n")
    rows = {name: [100, 4321] for name in CLASSES}
    (folder / "about.json").write_text(json.dumps({"study": "named", "training_rows": rows}))
    lost = np.arange(1, 40, 4)
    texts = np.array([f"text {row}" for row in lost])
    np.savez(folder / "inputs.npz", ids=lost.astype(str), inputs=texts)
    return folder


@pytest.fixture
def run(run_made, tmp_path):
    return shutil.copytree(run_made, tmp_path / "run")


def files_in(run):
    return [run / f"predictions/singlebase-average-g{number}.parquet" for number in (1, 2)]


def command(name, files, page, *more):
    rules = ("--at-most", "lost=0.99", "--allow-unknown-labels", "1") if name == "gate" else ()
    settings = ("--resamples", "5", "--html", page, "--json", "-")
    return dynsnap(name, *files, *rules, *settings, *more)


@pytest.mark.parametrize("name", ["compare", "gate"])
def test_what_lies_beside_predictions_changes_nothing(run, tmp_path, name):
    """Sound or damaged, or not there at all."""
    found = []
    for _ in range(3):
        ended = command(name, files_in(run), tmp_path / "page.html")
        assert ended.exit_code == 0, ended.stderr
        found.append((ended.stdout, (tmp_path / "page.html").read_bytes()))
        for path in (*run.glob("*"), *run.glob("predictions/late/*")):
            if path.is_file() and len(found) == 1:
                path.write_bytes(b"damaged")
            elif path.is_file():
                path.unlink()
    assert found[0] == found[1] == found[2]
    page = found[0][1].decode()
    assert "4321" not in page
    assert "4,321" not in page


@pytest.mark.parametrize("name", ["compare", "gate"])
@pytest.mark.parametrize("way", ["option", "project"])
@pytest.mark.parametrize("kind", ["run", "published"])
def test_what_a_named_study_holds_is_used_and_noted(run, tmp_path, monkeypatch, name, way, kind):
    folder = run
    if kind == "published":
        folder = tmp_path / "published"
        assert dynsnap("publish", run, folder).exit_code == 0
    addresses = [f"{folder}::singlebase/average/g{number}/r0" for number in (1, 2)]
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.html"
    more = ("--study", folder) if way == "option" else ()
    if way == "project":
        (tmp_path / "pyproject.toml").write_text(f'[tool.dynsnap]\nstudy = "{folder.name}"\n')
    ended = command(name, addresses, page, *more)
    assert ended.exit_code == 0, ended.stderr
    by = "--study" if way == "option" else "pyproject.toml"
    notes = [note for note in json.loads(ended.stdout)["notes"] if folder.name in note]
    assert all(by in note for note in notes)
    # Training rows and new classes are in both; only a run folder has the inputs.
    assert len(notes) == (3 if kind == "run" else 2)
    if name == "compare":
        families = json.loads(ended.stdout)["families"]
        assert families == {"coarse": {**KINDS, "bowl": "dishes"}}
    text = page.read_text()
    assert "4321" in text or "4,321" in text
    for note in notes:
        assert note.split(" from ")[0] in text


def test_an_option_comes_before_the_project(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.dynsnap]\nstudy = "nowhere"\n')
    assert "nowhere" in refused("compare", *files_in(run), code=3)
    ended = dynsnap("compare", *files_in(run), "--study", run)
    assert ended.exit_code == 0, ended.stderr


def test_inputs_of_the_project_are_for_pages(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.dynsnap]\ninputs = "run/inputs.npz"\n')
    assert dynsnap("compare", *files_in(run)).exit_code == 0
    ended = command("compare", files_in(run), tmp_path / "page.html")
    assert ended.exit_code == 0, ended.stderr
    assert any("run/inputs.npz" in note for note in json.loads(ended.stdout)["notes"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[tool.dynsnap]\nstudies = 'x'\n", "studies"),
        ("[tool.dynsnap]\nstudy = 3\n", "study"),
        ("[tool]\ndynsnap = 'x'\n", "tool.dynsnap"),
        ("[tool.dynsnap\n", "TOML"),
    ],
)
def test_a_project_that_cannot_be_understood_is_refused(run, tmp_path, monkeypatch, text, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text)
    said = refused("compare", *files_in(run), code=2)
    assert "pyproject.toml" in said
    assert named in said


def test_a_project_of_others_is_not_read(run, tmp_path, monkeypatch):
    """Only the current directory counts: a file further up may belong to anybody."""
    (tmp_path / "pyproject.toml").write_text("[tool.dynsnap\n")
    monkeypatch.chdir(run)
    assert dynsnap("compare", *files_in(run)).exit_code == 0


def test_commands_take_addresses_wherever_they_take_files(run, tmp_path):
    old, new = (f"{run}::singlebase/average/g{number}/r0" for number in (1, 2))
    published = tmp_path / "published"
    dynsnap("publish", run, published)
    there = f"{published}::singlebase/average/g2/r0"
    assert dynsnap("compare", old, there, "--noise-floor", new).exit_code == 0
    names = [
        one["name"]
        for one in json.loads(dynsnap("compare", old, there, "--json", "-").stdout)["generations"]
    ]
    assert names == ["singlebase g1", "singlebase g2"]
    assert dynsnap("gate", old, there, "--at-most", "lost=0.99").exit_code == 3  # unknown labels
    assert "NEW" in refused("gate", there, there, "--at-most", "lost=0.99", code=2)
    said = refused("compare", old, there, "--json", published / "labels.parquet", code=2)
    assert "labels.parquet" in said
    for folder in (run, published):
        said = refused("compare", folder, there, code=2)
        assert f"{folder}::singlebase/average/g1/r0" in said
