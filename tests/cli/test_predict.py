import dataclasses
import re

import numpy as np
import pytest

from dynsnap import predictions, store
from dynsnap.data import digits_stream
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming

METHODS = TINY.replace('"dynsnap-cyc"]', '"dynsnap-cyc", "mcdropout"]').replace(
    "[data.growth]\nfractions = [0.6, 1.0]\nlate = { 6 = 2 }\n", ""
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a finished study, an ensemble of it, and its test set as a file."""
    folder = tmp_path_factory.mktemp("predict")
    (folder / "study.toml").write_text(METHODS)
    for command in (["run"], ["train"], ["train", "--method", "mcdropout"]):
        ended = dynsnap(*command, folder / "study.toml", "--out", folder / "run", "-q")
        assert ended.exit_code == 0, ended.stderr
    test = digits_stream().evaluation["test"]
    np.savez(
        folder / "test.npz",
        inputs=test.inputs,
        labels=test.labels,
        classes=np.array(test.classes),
        ids=test.ids,
    )
    np.savez(folder / "bare.npz", inputs=test.inputs)
    return folder


@pytest.mark.parametrize("method", ["dynsnap-cyc", "mcdropout"])
def test_a_saved_ensemble_predicts_what_the_study_measured(place, method):
    out = place / f"{method}.parquet"
    ensemble = place / f"run/ensembles/{method}-g3.ensemble"
    ended = dynsnap("predict", ensemble, place / "test.npz", "-o", out)
    assert ended.exit_code == 0, ended.stderr
    found = predictions.read(out)
    measured = predictions.read(place / f"run/predictions/{method}-average-g3.parquet")
    np.testing.assert_allclose(found.scores, measured.scores, atol=1e-6)
    assert found.ids.tolist() == measured.ids.tolist()
    np.testing.assert_array_equal(found.truth, measured.truth)


def test_inputs_without_labels_are_predicted_without_truth(place):
    out = place / "bare.csv"
    ended = dynsnap(
        "predict",
        place / "run/ensembles/dynsnap-cyc-g3.ensemble",
        place / "bare.npz",
        "-o",
        out,
        "--combination",
        "majority",
    )
    assert ended.exit_code == 0, ended.stderr
    assert "majority" in ended.stdout
    found = predictions.read(out)
    assert found.truth is None
    assert set(np.unique(found.scores)) <= {0.0, 0.5, 1.0}  # votes of two members


def test_the_ensemble_file_says_what_it_is(place):
    saved = store.load_ensemble(place / "run/ensembles/dynsnap-cyc-g3.ensemble")
    assert saved.method == "dynsnap-cyc"
    assert saved.classes == tuple("0123456789")
    assert saved.model == {"name": "mlp", "hidden": [8]}
    assert saved.about["study"] == "tiny"
    assert len(saved.positions) == 2


def table_study(folder, rng):
    """A study of a table of numbers, with its ensemble trained."""
    rows = rng.normal(size=(300, 2))
    labels = np.where(rows[:, 0] > rows[:, 1], "left", "right")
    lines = ["x,label,y", *(f"{a},{b},{c}" for (a, c), b in zip(rows, labels, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    text = TINY.replace("late = { 6 = 2 }", "").replace(
        "[data.growth]", '[data]\nsource = "table"\npath = "data.csv"\n[data.growth]'
    )
    (folder / "table.toml").write_text(text)
    ended = dynsnap("train", folder / "table.toml", "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder / "run/ensembles/dynsnap-cyc-g2.ensemble"


def test_columns_of_a_table_are_found_by_name_and_not_by_place(tmp_path):
    ensemble = table_study(tmp_path, np.random.default_rng(0))
    (tmp_path / "one.csv").write_text("x,y\n2,-2\n-2,2\n")
    (tmp_path / "two.csv").write_text("y,note,x,label\n-2,a,2,left\n2,b,-2,up\n")
    for name in ("one", "two"):
        out = tmp_path / f"{name}.parquet"
        ended = dynsnap("predict", ensemble, tmp_path / f"{name}.csv", "-o", out)
        assert ended.exit_code == 0, ended.stderr
    one, two = (predictions.read(tmp_path / f"{name}.parquet") for name in ("one", "two"))
    np.testing.assert_array_equal(one.scores, two.scores[:, :2])
    assert two.classes == ("left", "right", "up")  # a class that the ensemble has never met
    (tmp_path / "three.csv").write_text("x,z\n1,2\n")
    ended = dynsnap("predict", ensemble, tmp_path / "three.csv", "-o", tmp_path / "no.csv")
    assert ended.exit_code == 3
    assert "no column 'y'" in ended.stderr


@pytest.mark.parametrize(
    ("ensemble", "inputs", "out", "code", "message"),
    [
        ("study.toml", "test.npz", "x.csv", 3, r"study\.toml.*an ensemble"),
        ("none", "test.npz", "x.csv", 3, "Cannot read"),
        (None, "none.npz", "x.csv", 3, "none.npz"),
        (None, "study.toml", "x.csv", 3, naming(r"study\.toml", "folder of images", r"\.npz")),
        (None, "wrong.npz", "x.csv", 3, r"\(1, 8, 8\)"),
        (None, "wrong.npz", "x.csv", 3, naming(r"wrong\.npz", "trained on")),
        (None, "empty.npz", "x.csv", 3, r"empty\.npz holds no inputs"),
        (None, "test.npz", "x.txt", 2, "x.txt"),
        (None, "test.npz", "test.npz", 2, "would overwrite"),
    ],
)
def test_wrong_arguments_are_one_clear_line(place, ensemble, inputs, out, code, message):
    np.savez(place / "wrong.npz", inputs=np.zeros((3, 5, 5, 1), np.uint8))
    np.savez(place / "empty.npz", inputs=np.zeros((0, 8, 8, 1), np.uint8))
    sound = place / "run/ensembles/dynsnap-cyc-g3.ensemble"
    ended = dynsnap(
        "predict",
        sound if ensemble is None else place / ensemble,
        place / inputs,
        "-o",
        place / out,
    )
    assert ended.exit_code == code, ended.stderr
    assert re.search(message, ended.stderr)
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_damaged_ensemble_is_refused(place, tmp_path):
    content = bytearray((place / "run/ensembles/dynsnap-cyc-g3.ensemble").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged.ensemble").write_bytes(content)
    ended = dynsnap(
        "predict", tmp_path / "damaged.ensemble", place / "test.npz", "-o", tmp_path / "x.csv"
    )
    assert ended.exit_code == 3
    assert "damaged" in ended.stderr


def test_code_that_a_file_names_is_not_run(place, tmp_path):
    saved = store.load_ensemble(place / "run/ensembles/dynsnap-cyc-g3.ensemble")
    path = tmp_path / "foreign.ensemble"
    store.save_ensemble(path, dataclasses.replace(saved, model={"factory": "os:abort"}))
    ended = dynsnap("predict", path, place / "test.npz", "-o", tmp_path / "x.csv")
    assert ended.exit_code == 2
    assert "--model" in ended.stderr
