"""Files of strangers: none runs code, none takes the memory, and all end in one line."""

import json
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from dynsnap import DynSnapClassifier, predictions
from dynsnap.data import digits_stream
from dynsnap.errors import FileError
from dynsnap.train.models import mlp
from tests.cli.forging import forged, learners_forged, packed, unpacked, with_header
from tests.cli.helpers import dynsnap, refused
from tests.cli.studies import COMMAND, TINY

STUDY = TINY.replace('"dynsnap-cyc"]', '"dynsnap-cyc", "mcdropout"]')
TEXTS = """
[data]
source = "table"
path = "texts.csv"
text = "text"
[data.growth]
fractions = [0.6, 1.0]
[model]
name = "fasttext"
width = 4
[training]
epochs = 2
device = "cpu"
[methods]
names = ["singlebase"]
snapshots = 2
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a finished study, ensembles of it, and inputs to predict on."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "study.toml").write_text(STUDY)
    for command in (["run"], ["train"], ["train", "--method", "mcdropout"]):
        ended = dynsnap(*command, folder / "study.toml", "--out", folder / "run", "-q")
        assert ended.exit_code == 0, ended.stderr
    np.savez(folder / "new.npz", inputs=digits_stream().evaluation["test"].inputs[:20])
    return folder


@pytest.fixture
def ensemble(place):
    return place / "run/ensembles/dynsnap-cyc-g2.ensemble"


@pytest.fixture
def dropping(place):
    return place / "run/ensembles/mcdropout-g2.ensemble"


def predict(place, ensemble, *more, code, inputs="new.npz"):
    return refused("predict", ensemble, place / inputs, "-o", place / "x.parquet", *more, code=code)


# --- no file runs code ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        {"name": "mlp", "factory": "os:system", "command": "touch {canary}"},
        {"factory": "os:system", "command": "touch {canary}"},
        {"factory": "canary:build"},
        {"name": "mlp", "hidden": [8], "factory": "canary:build"},
        {"name": "canary:build"},
        {"name": "canary.build"},
        {"name": "sklearn.canary.Build"},
        {"backend": "torch", "factory": "canary:build"},
        {"backend": "canary", "name": "mlp"},
    ],
)
def test_no_name_in_an_ensemble_is_imported(place, ensemble, tmp_path, monkeypatch, model):
    canary = tmp_path / "canary"
    (tmp_path / "canary.py").write_text(f"open({str(canary)!r}, 'w')\ndef build(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spelled = json.loads(json.dumps(model).replace("{canary}", str(canary)))
    file = forged(ensemble, tmp_path / "x.ensemble", model=spelled)
    ended = dynsnap("predict", file, place / "new.npz", "-o", tmp_path / "x.parquet")
    assert ended.exit_code in (2, 3)
    assert not canary.exists()
    assert not (tmp_path / "x.parquet").exists()


FACTORY = """
from pathlib import Path
from torch import nn

Path({canary!r}).touch()


def build(classes, dropout):
    return nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(64, classes))
"""


@pytest.fixture
def own(place, tmp_path, monkeypatch):
    """A run folder whose study names a factory that leaves a mark where it is imported."""
    canary = tmp_path / "canary"
    (tmp_path / "own_factory.py").write_text(FACTORY.format(canary=str(canary)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_factory", raising=False)
    text = STUDY.replace('name = "mlp"\nhidden = [8]', 'factory = "own_factory:build"')
    run = tmp_path / "run"
    for name in ("table.csv", "about.json", "dynsnap.json"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_bytes((place / "run" / name).read_bytes())
    for part in ("rounds", "predictions"):
        (run / part).symlink_to(place / "run" / part)
    (run / "study.toml").write_text(text)
    return run, canary


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["run", "run/study.toml", "--plan"],
        ["report", "run", "-q"],
        ["publish", "run", "published"],
        ["size", "run", "-q"],
        ["runs", "run"],
        ["compare", "run/predictions/singlebase-average-g1.parquet", "{new}", "-q"],
        ["compare", "run::singlebase/average/g1/r0", "{new}", "-q", "--study", "run"],
        [
            *("gate", "run::singlebase/average/g1/r0", "{new}", "-q", "--at-most", "lost=0.3"),
            *("--study", "run", "--html", "page.html"),
        ],
        ["stand", "run/predictions/singlebase-average-g1.parquet", "{new}", "-o", "kept.parquet"],
        ["run", "run/study.toml", "--no-training", "--out", "run", "-q"],
    ],
)
def test_a_study_s_own_factory_is_imported_only_by_commands_that_train(own, command):
    run, canary = own
    new = str(run / "predictions/singlebase-average-g2.parquet")
    ended = dynsnap(*(part.replace("{new}", new) for part in command))
    assert ended.exit_code == 0, ended.output
    assert not canary.exists()


def test_a_study_s_own_factory_is_imported_by_run(own, tmp_path):
    run, canary = own
    ended = dynsnap("run", run / "study.toml", "--out", tmp_path / "mine", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert canary.exists()


def test_a_factory_that_is_no_reference_is_refused_by_plan_too(tmp_path):
    for wrong in ('"no-colon"', "3", '""'):
        file = tmp_path / "x.toml"
        file.write_text(TINY.replace('name = "mlp"\nhidden = [8]', f"factory = {wrong}"))
        assert "MODULE:NAME" in refused("run", file, "--plan", code=2)
    file.write_text(TINY.replace('name = "mlp"', 'name = "mlp"\nfactory = "a:b"'))
    assert "`name`" in refused("run", file, "--plan", code=2)


# --- what a manifest may say ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"positions": [5, 0]}, "positions"),
        ({"positions": [0, 0]}, "positions"),
        ({"positions": [-1, 0]}, "positions[0]"),
        ({"positions": [0, 1, 2], "accuracy": [1.0, 1.0, 1.0]}, "3"),
        ({"positions": [0], "accuracy": [1.0]}, "1"),
        ({"positions": [10**9, 0]}, "positions[0]"),
        ({"positions": "01"}, "positions"),
        ({"accuracy": [0.5, None]}, "accuracy[1]"),
        ({"accuracy": [0.5, 1e300]}, "accuracy[1]"),
        ({"classes": ["a"]}, "classes"),
        ({"classes": ["0"] * 10}, "classes"),
        ({"classes": [["0"]] * 10}, "classes[0]"),
        ({"combination": "os:system"}, "combination"),
        ({"known": [[True] * 10]}, "known"),
        ({"known": [[True] * 9] * 2}, "known"),
        ({"method": None}, "method"),
        ({"generation": 10**400}, "generation"),
        ({"extra": 1}, "extra"),
        ({"about": {"reading": {"size": [10**9, 10**9]}}}, "about.reading.size[0]"),
        ({"about": {"reading": {"features": ["x"] * 9}}}, "about.reading.features"),
        ({"about": {"reading": {"eval": "1"}}}, "eval"),
        ({"about": {"post_init": "import os"}}, "post_init"),
        ({"model": {"name": "mlp", "hidden": [8], "depth": {"a": {"b": {"c": [[1]]}}}}}, "model"),
        ({"model": {"name": "mlp", "hidden": [10**9]}}, "model"),
        ({"model": {"name": "mlp", "hidden": [10**9, 10**12]}}, "model"),
        ({"model": {"name": "mlp", "hidden": "8"}}, "model"),
        ({"model": {"name": "cnn", "width": 10**9}}, "model"),
        ({"model": {"name": "nothing"}}, "nothing"),
        ({"model": {}}, "model"),
        ({"format": 0}, "format"),
    ],
)
def test_a_forged_manifest_is_refused_in_one_line_that_names_what_is_wrong(
    place, ensemble, tmp_path, changes, named
):
    file = forged(ensemble, tmp_path / "x.ensemble", **changes)
    assert named in predict(place, file, code=3)


@pytest.mark.parametrize(
    "changes",
    [
        {"passes": 10**9},
        {"passes": 7},
        {"classes": 10**9},
        {"classes": 11},
        {"offers": {"inputs": [10**9, 10**9]}},
        {"offers": {"inputs": [1, 8, 9]}},
        {"offers": {}},
        {"offers": {"inputs": [1, 8, 8], "words": 5}},
        {"prepare": {"kind": "words", "size": 9, "length": 9, "ngrams": 1, "buckets": 0}},
        {"prepare": {"kind": "standardised"}},
        {"prepare": {"kind": "pixels", "eval": "1"}},
        {"prepare": "pixels"},
        {"dropout": 7},
        {"noise": -1},
        {"noise": "x"},
        {"weights_only": False},
        {"format": 99},
    ],
)
def test_a_forged_learner_is_refused_in_one_line(place, dropping, tmp_path, changes):
    file = learners_forged(dropping, tmp_path / "x.ensemble", changes)
    assert "learner" in predict(place, file, code=3)


def test_a_learner_of_other_weights_than_its_model_s_is_refused(place, ensemble, tmp_path):
    import safetensors.torch

    manifest, parts = unpacked(ensemble)
    for change in (
        lambda weights: {name: value.double() for name, value in weights.items()},
        lambda weights: {name: value.long() for name, value in weights.items()},
        lambda weights: {name: value[..., :1] for name, value in weights.items()},
        lambda weights: dict(list(weights.items())[1:]),
        lambda weights: {**weights, "model.9.weight": next(iter(weights.values()))},
    ):
        changed = {}
        for name, content in parts.items():
            size = int.from_bytes(content[:8], "little")
            about = json.loads(content[8 : 8 + size])["__metadata__"]
            weights = safetensors.torch.load(content)
            changed[name] = safetensors.torch.save(
                {key: value.clone() for key, value in change(weights).items()}, about
            )
        file = packed(tmp_path / "x.ensemble", manifest, changed)
        assert "learner" in predict(place, file, code=3)


@pytest.mark.slow
def test_a_vocabulary_that_leads_beyond_the_vectors_is_refused(tmp_path):
    """The compiled sums would read whatever lies behind them in memory."""
    rows = [f"{word} {word}x,{label}" for word, label in zip("abcdefgh", "xy" * 4, strict=True)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows * 10]) + "\n")
    (tmp_path / "study.toml").write_text(TEXTS)
    ended = dynsnap(
        "train", tmp_path / "study.toml", "--method", "singlebase", "--out", tmp_path / "run", "-q"
    )
    assert ended.exit_code == 0, ended.stderr
    sound = tmp_path / "run/ensembles/singlebase-g2.ensemble"
    manifest, parts = unpacked(sound)
    (name, content), *_ = parts.items()
    size = int.from_bytes(content[:8], "little")
    head, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    start, end = head["prepare.words"]["data_offsets"]
    long = b"\n".join(b"w%d" % number for number in range(20_000))
    body = body[:start] + long + body[end:]
    for tensor in head.values():  # those behind it move on
        if tensor.get("data_offsets", [0])[0] >= end:
            tensor["data_offsets"] = [
                at + len(long) - (end - start) for at in tensor["data_offsets"]
            ]
    head["prepare.words"] = {
        "dtype": "U8",
        "shape": [len(long)],
        "data_offsets": [start, start + len(long)],
    }
    text = json.dumps(head).encode()
    forged_one = with_header(len(text).to_bytes(8, "little") + text + body, {})
    file = packed(tmp_path / "x.ensemble", manifest, {name: forged_one})
    assert "vocabulary" in predict(tmp_path, file, code=3, inputs="texts.csv")
    for changes in (
        {"prepare": {"kind": "words", "size": 10**8, "length": 9, "ngrams": 2, "buckets": 10**8}},
        {"prepare": {"kind": "words", "size": 9, "length": 9, "ngrams": 10**9, "buckets": 1}},
        {"offers": {"words": 10**9}},
    ):
        file = learners_forged(sound, tmp_path / "x.ensemble", changes)
        assert "learner" in predict(tmp_path, file, code=3, inputs="texts.csv")


# --- what a file may take -------------------------------------------------------------------


def test_a_manifest_is_not_unpacked_from_a_few_bytes(place, ensemble, tmp_path):
    manifest, parts = unpacked(ensemble)
    file = tmp_path / "x.ensemble"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content, zipfile.ZIP_STORED)
        archive.writestr("manifest.json", json.dumps(manifest) + " " * 10**7)
    assert "compressed" in predict(place, file, code=3)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hidden", "passes", "members"])
def test_a_forged_ensemble_is_refused_within_little_memory(place, dropping, tmp_path, what):
    """In a process of its own that is not given the memory which the file asks for."""
    file = tmp_path / "x.ensemble"
    if what == "hidden":
        forged(dropping, file, model={"name": "mlp", "hidden": [20_000_000]})
    elif what == "passes":
        learners_forged(dropping, file, {"passes": 9_000})
    else:
        many = {"positions": list(range(9_000)), "accuracy": [0.5] * 9_000}
        learners_forged(
            dropping, file, {"passes": 9_000}, {**many, "classes": [str(n) for n in range(9_000)]}
        )
    assert file.stat().st_size < 10**6

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))

    ended = subprocess.run(
        [*COMMAND, "predict", file, place / "new.npz", "-o", tmp_path / "x.parquet"],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.startswith("dynsnap: ")
    assert "memory" not in ended.stderr
    assert ended.stderr.count("\n") == 1


# --- the estimator's own files --------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"class_type": "<U99999", "classes": [str(n) for n in range(10)] * 1000}, "class"),
        ({"class_type": "|V8"}, "class_type"),
        ({"class_type": "O"}, "class_type"),
        ({"classes": [str(n) for n in range(1, 11)]}, "classes"),
        ({"passes": 2}, "members"),
        ({"learned": [[0, 99], [0, 1]]}, "learned"),
        ({"learned": [[0]]}, "learned"),
        ({"members": []}, "members"),
        ({"settings": {"prepare": {"kind": "pixels"}}}, "settings.prepare"),
        ({"settings": {"eval": 1}}, "eval"),
        ({"settings": {"combination": "no"}}, "combination"),
        ({"columns": ["x"]}, "columns"),
        ({"shape": [-1]}, "shape"),
        ({"backend": "os"}, "backend"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_forged_estimator_is_refused_with_what_is_wrong(tmp_path, fitted, changes, named):
    manifest, parts = unpacked(fitted)
    manifest["about"]["estimator"].update(changes)
    packed(tmp_path / "x", manifest, parts)
    with pytest.raises(FileError, match=named):
        DynSnapClassifier.load(tmp_path / "x", model=mlp)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    test = digits_stream().evaluation["test"]
    settings = {"members": 2, "snapshots": 2, "epochs": 2, "device": "cpu", "random_state": 0}
    made = DynSnapClassifier(mlp, **settings)
    made.fit(test.inputs.reshape(len(test), -1).astype(np.float32), test.labels).save(path)
    return path


def test_a_sound_ensemble_still_predicts(place, ensemble, tmp_path):
    file = forged(ensemble, tmp_path / "same.ensemble")
    ended = dynsnap("predict", file, place / "new.npz", "-o", tmp_path / "x.parquet")
    assert ended.exit_code == 0, ended.stderr
    assert len(predictions.read(tmp_path / "x.parquet")) == 20
