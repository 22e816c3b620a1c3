"""A study measured from stored rounds alone, wherever they were trained."""

import csv
import json
import re
import shutil
from types import SimpleNamespace

import pytest

from dynsnap.cli._run import _missing
from dynsnap.store import RunFolder, _container
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming

STUDY = TINY.replace('["singlebase", "dynsnap-cyc"]', '["singlebase", "snapshot", "dynsnap-cyc"]')
STUDY += """
[[sweep]]
over = "members"
values = [1, 2]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study file, and the folder of its run."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "tiny.toml").write_text(STUDY)
    ended = dynsnap("run", str(folder / "tiny.toml"), "--out", str(folder / "run"), "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder


@pytest.fixture
def brought(finished, tmp_path):
    """Its rounds as another machine would have named them, and nothing else."""
    (tmp_path / "rounds").mkdir()
    for number, path in enumerate(sorted((finished / "run/rounds").glob("*.npz"))):
        shutil.copy(path, tmp_path / f"rounds/{number:032}.npz")
    return tmp_path


def measure(finished, folder):
    study = str(finished / "tiny.toml")
    return dynsnap("run", study, "--out", str(folder), "--no-training", "-q")


@pytest.mark.slow
def test_rounds_from_elsewhere_give_the_same_tables_and_predictions(finished, brought):
    ended = measure(finished, brought)
    assert ended.exit_code == 0, ended.stderr
    assert "(0 trained now)" in ended.stdout
    assert "missing" not in ended.stdout
    for name in ("table.csv", "sweeps.csv"):
        assert (brought / name).read_text() == (finished / "run" / name).read_text()
    for path in (finished / "run/predictions").rglob("*.parquet"):
        assert (brought / path.relative_to(finished / "run")).exists()
    about = json.loads((brought / "about.json").read_text())
    assert about["environment"]["device"] == "CPU, float32"
    assert about["rounds_missing"] == 0
    assert len(list((brought / "rounds").glob("*.npz"))) == about["rounds"]


def without_seconds(table):
    """A table but for how long trainings took, which is never the same."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{**row, "seconds": ""} for row in rows if row["metric"] != "seconds"]


def remove(folder, **facts):
    """Take the rounds out that are so."""
    store = RunFolder(folder, weights=False)
    for entry in list(store.entries()):
        spec = entry.facts["spec"]
        known = {**spec, "kind": spec["recipe"]["schedule"]["kind"], **spec["recipe"]}
        if all(known[name] == value for name, value in facts.items()):
            (folder / f"rounds/{entry.key}.npz").unlink()


def test_means_over_some_replicates_are_not_passed_off_as_means_over_all():
    method = SimpleNamespace(name="singlebase", method="singlebase")
    result = SimpleNamespace(missing=("round 0", "round 1"), rows=[method])
    (said,) = _missing(SimpleNamespace(methods=[method], replicates=3), result)
    assert re.search(naming("2 rounds", "round 0; round 1", "replicates"), said)


def test_what_lacks_rounds_is_left_out_and_they_are_listed(finished, brought):
    remove(brought, kind="cyclic", epochs=16, generation=2)
    ended = measure(finished, brought)
    assert ended.exit_code == 0, ended.stderr
    said = " ".join(ended.stdout.split())
    missing = r"round 0 of generation 2.*\(cyclic, 16 epochs\)"
    assert re.search(naming("snapshot", "1 round", missing), said)
    assert {path.name.rpartition("-average")[0] for path in brought.rglob("*.parquet")} == {
        *("singlebase", "dynsnap-cyc", "snapshot")
    }
    assert not (brought / "predictions/snapshot-average-g2.parquet").exists()
    assert "snapshot" not in (brought / "table.csv").read_text()


def test_a_missing_twin_costs_the_noise_floor_alone(finished, brought):
    remove(brought, twin=1)
    ended = measure(finished, brought)
    assert ended.exit_code == 0, ended.stderr
    table = (brought / "table.csv").read_text()
    assert "noise-floor" not in table
    assert "never-retrain" in table
    assert "twin" in ended.stdout


def test_a_folder_without_any_whole_method_is_refused(finished, brought):
    remove(brought, generation=1)
    ended = measure(finished, brought)
    assert ended.exit_code == 3
    assert re.search(naming("tiny", r"\d rounds", "missing", "round 0 of generation"), ended.stderr)


@pytest.mark.slow
def test_a_run_goes_on_with_rounds_from_elsewhere_and_trains_what_is_missing(finished, brought):
    remove(brought, kind="cyclic", epochs=16, generation=2)
    kept = {path.name for path in (brought / "rounds").glob("*.npz")}
    command = ["run", str(finished / "tiny.toml"), "--out", str(brought), "-q"]
    ended = dynsnap(*command, "--from-anywhere")
    assert ended.exit_code == 0, ended.stderr
    assert "(1 trained now)" in ended.stdout
    found, expected = (without_seconds(one / "table.csv") for one in (brought, finished / "run"))
    assert found == expected and "seconds" in found[0]
    after = {path.name for path in (brought / "rounds").glob("*.npz")}
    assert len(after) == len(kept) + 1 and kept < after
    # What was trained here is found again, by the same command and by one that only measures.
    for option in ("--from-anywhere", "--no-training"):
        assert "(0 trained now)" in dynsnap(*command, option).stdout


def rewrite_first(folder, *, to=0, **changed):
    """Write the first round with other facts, in its place or as a round of another number."""
    container = _container.read(folder / f"rounds/{0:032}.npz")
    parts = {name: container.bytes_of(name) for name in container.spans}
    _container.write(folder / f"rounds/{to:032}.npz", parts, {**container.facts, **changed})


def test_rounds_that_a_study_does_not_take_say_nothing_about_it(finished, brought):
    """As where several studies share a folder, and not all of their rounds."""
    spec = _container.read(brought / f"rounds/{0:032}.npz").facts["spec"]
    other = spec | {"seed": spec["seed"] + 1}
    rewrite_first(brought, to=99, spec=other, environment={"device": "CUDA, a GPU"})
    assert measure(finished, brought).exit_code == 0
    known = json.loads((brought / "about.json").read_text())["environment"]
    assert known["device"] == "CPU, float32"


def test_a_folder_of_several_machines_names_them_all(finished, brought):
    rewrite_first(brought, environment={"torch": "2.9.9", "device": "CUDA, a GPU"})
    assert measure(finished, brought).exit_code == 0
    known = json.loads((brought / "about.json").read_text())["environment"]
    assert known["device"] == "CPU, float32; CUDA, a GPU"
    assert known["torch"].endswith("; 2.9.9")


@pytest.mark.parametrize("option", ["--from-anywhere", "--no-training"])
def test_rounds_from_anywhere_have_to_be_there(finished, tmp_path, option):
    study = str(finished / "tiny.toml")
    ended = dynsnap("run", study, "--out", str(tmp_path / "nothing"), option, "-q")
    assert ended.exit_code == 3
    assert re.search(naming("nothing", "no rounds"), ended.stderr)
    assert not (tmp_path / "nothing").exists()


ROLLING = """
[[variant]]
name = "refreshed"
finetune_epochs = 2
"""


@pytest.mark.slow
def test_members_that_were_trained_on_elsewhere_are_found(tmp_path):
    """They name the member that they started from by the key that it has where it was trained."""
    study = STUDY.replace('name = "tiny"', 'name = "tiny"\nkeep = "weights"') + ROLLING
    study = study.replace("late = {", "selection_holdout = 0.5\nlate = {")
    (tmp_path / "tiny.toml").write_text(study)
    command = ["run", str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "run"), "-q"]
    assert dynsnap(*command).exit_code == 0
    table = (tmp_path / "run/table.csv").read_text()
    assert "\nrefreshed," in table
    ended = dynsnap(*command, "--no-training")
    assert ended.exit_code == 0, ended.stderr
    assert "missing" not in ended.stdout
    assert (tmp_path / "run/table.csv").read_text() == table
    # Elsewhere they are trained on from the members that came along.
    before = without_seconds(tmp_path / "run/table.csv")
    store = RunFolder(tmp_path / "run", weights=False)
    started = [one.key for one in store.entries() if one.facts["spec"]["parent"] is not None]
    assert started
    for key in started:
        (tmp_path / f"run/rounds/{key}.npz").unlink()
    ended = dynsnap(*command, "--from-anywhere")
    assert f"({len(started)} trained now)" in ended.stdout, ended.stderr
    assert without_seconds(tmp_path / "run/table.csv") == before
