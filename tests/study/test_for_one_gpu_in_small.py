"""The studies for one GPU through the real commands, on made up images with small networks."""

import csv
import importlib.util
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from dynsnap.data import cifar10_growth
from dynsnap.train.models._residual import ResNet
from tests.cli.studies import SHIPPED, dynsnap

ROOT = Path(__file__).parents[2]
CLASSES = tuple(cifar10_growth().shares)


def small_resnet(*, classes, inputs, dropout=0.0):
    """One block in each stage, where ResNet-20 has three, on images of 8 by 8."""
    return nn.Sequential(nn.AvgPool2d(4), ResNet(8, classes, inputs[0], dropout))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """CIFAR-10's layout with 15 and 8 images of each class, which have colours of their own."""
    folder = tmp_path_factory.mktemp("made") / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.default_rng(0)
    colours = rng.integers(60, 196, (10, 3, 2, 2))
    names = {**{f"data_batch_{number}": 3 for number in range(1, 6)}, "test_batch": 8}
    for name, rows in names.items():
        labels = np.arange(10 * rows) % 10
        pixels = np.kron(colours[labels], np.ones((16, 16))) + rng.normal(
            0, 30, (10 * rows, 3, 32, 32)
        )
        batch = {
            b"labels": labels.tolist(),
            b"data": pixels.clip(0, 255).astype(np.uint8).reshape(-1, 3072),
        }
        (folder / name).write_bytes(pickle.dumps(batch))
    meta = {b"label_names": [name.encode() for name in CLASSES]}
    (folder / "batches.meta").write_bytes(pickle.dumps(meta))
    return folder


def in_small(name, folder, changes, variants=()):
    """A shipped study with a few lines changed and some variants, as a file of the same name."""
    text, *others = SHIPPED[name].read_text().split("[[variant]]")
    kept = [part for part in others if any(f'name = "{one}"\n' in part for one in variants)]
    assert len(kept) == len(variants)
    text = "[[variant]]".join([text, *kept])
    everywhere = {
        'source = "cifar-10"': 'source = "cifar-10"\nsubset = true',
        "seed = 2020": "seed = 2020\nresamples = 20",
        "resamples = 200\n": "",
        "batch_size = 128": 'batch_size = 32\ndevice = "cpu"',
    }
    if "resamples = 200\n" not in text:
        del everywhere["resamples = 200\n"]
    return changed(name, folder, text, {**everywhere, **changes})


def changed(name, folder, text, changes):
    """The text of a study with these lines changed, which it must have, as a file."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


def done(*arguments):
    ended = dynsnap(*arguments)
    assert ended.exit_code == 0, ended.stderr or ended.exception
    return ended


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "results" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RESNET = {'name = "resnet20"': f'factory = "{__name__}:small_resnet"'}


@pytest.mark.slow
def test_balanced_cifar_10_is_run_published_and_shown(images, tmp_path):
    few = {"epochs = 200": "epochs = 2", "[methods]": "[methods]\nsnapshots = 1"}
    file = in_small("cifar10-balanced", tmp_path, {**RESNET, **few})
    run, target = tmp_path / "run", tmp_path / "results/cifar10-balanced"
    done("run", file, "--data", images, "--out", run, "-q")
    done("publish", run, target)
    done("report", target, "-q")
    (tmp_path / "results/paper.csv").write_bytes((ROOT / "results/paper.csv").read_bytes())
    page = script("make_reproduction").page(tmp_path / "results")
    assert "| twin of the first | " in page


@pytest.mark.slow
def test_rolling_on_cifar_10_refreshes_and_is_distilled(images, tmp_path, monkeypatch):
    few = {"epochs = 200": "epochs = 2", "finetune_epochs = 10": "finetune_epochs = 1"}
    few["[methods]"] = "[methods]\nmembers = 2\nsnapshots = 2"
    file = in_small("cifar10-distill", tmp_path, {**RESNET, **few}, ["rolling-refresh"])
    run, target = tmp_path / "run", tmp_path / "results/cifar10-distill"
    done("run", file, "--data", images, "--out", run, "-q")
    done("publish", run, target)
    home = tmp_path / "home"
    monkeypatch.setattr("sys.argv", ["", str(run), str(home)])
    script("without_weights").main()
    sizes = [sum(path.stat().st_size for path in one.glob("rounds/*")) for one in (home, run)]
    assert 10 * sizes[0] < sizes[1]
    done("run", file, "--data", images, "--out", home, "--no-training", "-q")
    assert (home / "table.csv").read_text() == (run / "table.csv").read_text()
    distill = ("distill", file, "--data", images, "--out", run, "--control", "-q")
    done(*distill, "--json", target / "distill.json")
    learners = [
        one["name"] for one in json.loads((target / "distill.json").read_text())["learners"]
    ]
    assert learners == ["dynsnap-cyc", "distilled-dynsnap-cyc", "untaught", "singlebase"]
    beyond = script("beyond")
    monkeypatch.setattr(beyond, "RESULTS", tmp_path / "results")
    page = beyond.filled(beyond.PAGES[0].read_text(encoding="utf-8"))
    for start in ("| rolling-refresh |", "| distilled-dynsnap-cyc | 1 |"):
        assert f"\n{start}" in page


@pytest.mark.slow
def test_rolling_on_cifar_10_is_held_against_what_was_aimed_at(images, tmp_path, monkeypatch):
    few = {
        "epochs = 200": "epochs = 2",
        "selection_holdout = 0.1": "selection_holdout = 0.5",  # there are few rows
        "finetune_epochs = 5": "finetune_epochs = 1",
        "members = 19": "members = 2\nsnapshots = 2",
        "members = 21": "members = 4",
        "snapshots = 3": "snapshots = 2",
    }
    kept = ["rolling-bagging-refresh", "rolling-bagging-refresh-standing"]
    file = in_small("cifar10-rolling", tmp_path, {**RESNET, **few}, kept)
    run, target = tmp_path / "run", tmp_path / "results/cifar10-rolling"
    done("run", file, "--data", images, "--out", run, "-q")
    done("publish", run, target)
    beyond = script("beyond")
    monkeypatch.setattr(beyond, "RESULTS", tmp_path / "results")
    rows = "\n".join(beyond.frontier_lines("cifar10-rolling")).splitlines()
    assert any(row.startswith("| rolling-bagging-refresh |") for row in rows)
    targets = list(beyond.target_lines("cifar10-rolling"))
    assert [row.split()[1] for row in targets[2:5]] == list(beyond.TARGET)


@pytest.mark.slow
def test_rolling_on_cifar_100_trains_nothing_in_the_folder_of_the_paper_s_study(tmp_path):
    few = {
        "seed = 2020": "seed = 2020\nresamples = 20",
        'source = "cifar-100"': 'source = "digits"',
        "selection_holdout = 0.1": "selection_holdout = 0.5",  # there are few rows
        'name = "resnet56"': 'name = "mlp"\nhidden = [16]',
        "epochs = 200": "epochs = 10",
        "batch_size = 32": 'batch_size = 64\ndevice = "cpu"',
        "learning_rate = 0.001": "learning_rate = 0.01",
        "augment = true\n": "",
    }
    # So small a network may take more than three rounds, and one ahead would be one too many.
    own = {"cifar100-paper": {"[methods]\n": '[methods]\ncombinations = ["average"]\n'}}
    own["cifar100-rolling"] = {"ahead = 1": "ahead = 0"}
    run = tmp_path / "run"
    stored = []
    for name, changes in own.items():
        text = SHIPPED[name].read_text().partition("[[sweep]]")[0]
        file = changed(name, tmp_path, text, {**few, **changes})
        done("run", file, "--out", run, "-q")
        stored.append({path.stem: path.stat().st_mtime_ns for path in run.glob("rounds/*.npz")})
    assert stored[0] and stored[0] == stored[1]
    assert "\nrolling-silence-counts," in (run / "table.csv").read_text()


@pytest.mark.slow
def test_the_stream_of_cifar_10_is_shown_generation_by_generation(images, tmp_path, monkeypatch):
    few = {'name = "resnet20"': 'name = "mlp"\nhidden = [4]', "epochs = 24": "epochs = 8"}
    file = in_small("cifar10-stream", tmp_path, few, ["rolling-0.75-no-lag"])
    run, target = tmp_path / "run", tmp_path / "results/cifar10-stream"
    done("run", file, "--data", images, "--out", run, "-q")
    done("publish", run, target)
    monkeypatch.setattr("sys.argv", ["", str(target), str(target / "consistency.csv")])
    script("consistency").main()
    with (target / "consistency.csv").open(newline="") as rows:
        assert {int(row["generation"]) for row in csv.DictReader(rows)} == set(range(2, 11))
    beyond = script("beyond")
    monkeypatch.setattr(beyond, "RESULTS", tmp_path / "results")
    lines = list(beyond.stream_lines("cifar10-stream"))
    assert sum(line.startswith("| rolling-0.75-no-lag |") for line in lines) == 4
