import json
import zipfile

import numpy as np
import pytest

from dynsnap.errors import FileError, InputError
from dynsnap.store import DamagedError, SavedEnsemble, load_ensemble, save_ensemble
from tests.messages import naming


def an_ensemble(**changes):
    parts = {
        "method": "dynsnap-cyc",
        "generation": 3,
        "combination": "weighted_average",
        "classes": ("cat", "dög"),
        "accuracy": np.array([0.9, 0.85]),
        "learners": (b"one", b"two"),
        "positions": np.array([1, 0]),
        "model": {"name": "mlp", "hidden": [4]},
        "about": {"study": "x"},
    }
    return SavedEnsemble(**{**parts, **changes})


def test_an_ensemble_comes_back_as_it_was_saved(tmp_path):
    path = tmp_path / "a.ensemble"
    made = an_ensemble()
    save_ensemble(path, made)
    found = load_ensemble(path)
    for name in ("method", "generation", "combination", "classes", "learners", "model", "about"):
        assert getattr(found, name) == getattr(made, name)
    np.testing.assert_array_equal(found.accuracy, made.accuracy)
    np.testing.assert_array_equal(found.positions, made.positions)


def test_a_damaged_ensemble_is_refused(tmp_path):
    path = tmp_path / "a.ensemble"
    save_ensemble(path, an_ensemble())
    content = path.read_bytes()
    path.write_bytes(content.replace(b"two", b"twa", 1))
    with pytest.raises(DamagedError, match=r"learner\.0001\.bin` fails its checksum"):
        load_ensemble(path)


def test_a_file_that_is_no_ensemble_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("hello")
    with pytest.raises(FileError, match=naming(r"a\.txt", "an ensemble", "`dynsnap train`")):
        load_ensemble(path)
    with pytest.raises(FileError, match="Cannot read"):
        load_ensemble(tmp_path / "none")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"sha256": {}}))
    with pytest.raises(FileError, match=naming("an ensemble", "`dynsnap train`")):
        load_ensemble(path)
    np.savez(tmp_path / "inputs.npz", inputs=np.zeros(3))
    with pytest.raises(FileError, match=naming(r"inputs\.npz", "or is not", r"manifest\.json")):
        load_ensemble(tmp_path / "inputs.npz")


def test_an_ensemble_of_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "a.ensemble"
    with zipfile.ZipFile(path, "w") as archive:
        facts = {"sha256": {}, "kind": "ensemble", "format": 99}
        archive.writestr("manifest.json", json.dumps(facts))
    with pytest.raises(FileError, match="newer version"):
        load_ensemble(path)


def test_an_ensemble_without_some_of_its_facts_is_refused(tmp_path):
    path = tmp_path / "a.ensemble"
    with zipfile.ZipFile(path, "w") as archive:
        facts = {"sha256": {}, "kind": "ensemble", "format": 1}
        archive.writestr("manifest.json", json.dumps(facts))
    with pytest.raises(FileError, match=naming(r"a\.ensemble", "manifest", "`method`")):
        load_ensemble(path)


def test_an_ensemble_needs_a_position_for_each_member():
    with pytest.raises(InputError, match=naming("accuracy", "position", "1 and 2")):
        an_ensemble(accuracy=np.array([0.5]))
