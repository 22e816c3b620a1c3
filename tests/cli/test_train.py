import json
import re

import numpy as np
import pytest

from dynsnap import predictions, store
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_last_generation_is_trained_unless_said_otherwise(place):
    ended = dynsnap("train", "tiny.toml")
    assert ended.exit_code == 0, ended.stderr
    assert "runs/tiny/ensembles/dynsnap-cyc-g2.ensemble: 2 members" in ended.stdout
    assert [path.name for path in (place / "runs/tiny/ensembles").iterdir()] == [
        "dynsnap-cyc-g2.ensemble"
    ]


def test_every_generation_that_is_named_is_trained(place):
    ended = dynsnap(
        "train",
        "tiny.toml",
        "--method",
        "singlebase",
        "--generation",
        "1",
        "--generation",
        "2",
        "--combination",
        "weighted_majority",
    )
    assert ended.exit_code == 0, ended.stderr
    for generation in (1, 2):
        saved = store.load_ensemble(f"runs/tiny/ensembles/singlebase-g{generation}.ensemble")
        assert saved.generation == generation
        assert saved.combination == "weighted_majority"
        assert len(saved.learners) == 1
        assert saved.about["cost"] == 1


def test_an_ensemble_whose_answers_stand_says_who_lets_them(place):
    standing = '\n[[variant]]\nname = "standing"\nmethod = "dynsnap-cyc"\nmargin = 0.2\n'
    (place / "standing.toml").write_text(TINY + standing)
    ended = dynsnap("train", "standing.toml", "--method", "standing", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert "dynsnap stabilize OLD NEW -o OUT --margin 0.2" in ended.stdout
    assert "stand" not in dynsnap("train", "standing.toml", "--out", "run", "-q").stdout


def test_rounds_of_a_study_that_kept_weights_are_not_trained_again(place):
    (place / "kept.toml").write_text(TINY.replace("resamples", 'keep = "weights"\nresamples'))
    assert dynsnap("run", "kept.toml", "--out", "run", "-q").exit_code == 0
    ended = dynsnap("train", "kept.toml", "--out", "run")
    assert ended.exit_code == 0, ended.stderr
    assert "to train" not in ended.stderr


def test_rounds_of_which_only_scores_were_kept_are_trained_again(place):
    assert dynsnap("run", "tiny.toml", "--out", "run", "-q").exit_code == 0
    ended = dynsnap("train", "tiny.toml", "--out", "run")
    assert ended.exit_code == 0, ended.stderr
    assert "to train" in ended.stderr


def test_training_that_is_stopped_says_how_to_go_on(place):
    ended = dynsnap("train", "tiny.toml", "--time-budget", "0.001")
    assert ended.exit_code == 4
    assert re.search(naming("time budget", r"0\.001", "runs/tiny", "dynsnap"), ended.stderr)
    assert not (place / "runs/tiny/ensembles").exists()
    assert dynsnap("train", "tiny.toml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--method", "dynsnap"], 2, 'Did you mean "dynsnap-cyc"'),
        (["--generation", "3"], 2, naming("generation 3", "2")),
        (["--generation", "0"], 2, naming("--generation", "0")),
        (["--combination", "mean"], 2, naming("'mean'", "majority")),
        (["--engine", "none"], 2, "'none' is not"),
        (["--time-budget", "0"], 2, "0"),
    ],
)
def test_wrong_use_is_one_clear_line(place, arguments, code, message):
    ended = dynsnap("train", "tiny.toml", *arguments)
    assert ended.exit_code == code, ended.stderr
    assert re.search(message, ended.stderr.strip().splitlines()[-1])


def test_a_model_whose_outputs_do_not_fit_is_refused(place, monkeypatch):
    (place / "narrow.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))\n"
    )
    monkeypatch.syspath_prepend(place)
    text = TINY.replace('name = "mlp"\nhidden = [8]', 'factory = "narrow:build"')
    (place / "narrow.toml").write_text(text)
    ended = dynsnap("train", "narrow.toml")
    assert ended.exit_code == 2
    assert re.search(naming("3 outputs", "10 classes"), ended.stderr)


TEXTS = """
[data]
source = "jsonl"
path = "texts.jsonl"
[data.growth]
fractions = [0.5, 1.0]
[model]
name = "fasttext"
[training]
epochs = 4
device = "cpu"
learning_rate = 0.1
[methods]
names = ["dynsnap-cyc"]
members = 2
snapshots = 2
"""


@pytest.mark.slow
def test_texts_are_trained_on_and_predicted(place):
    rng = np.random.default_rng(0)
    words = {"cats": ["purr", "meow", "paw"], "dogs": ["bark", "woof", "bone"]}
    rows = [
        {"text": " ".join(rng.choice(words[label], 5)), "label": label}
        for label in ("cats", "dogs") * 60
    ]
    (place / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (place / "texts.toml").write_text(TEXTS)
    ended = dynsnap("train", "texts.toml", "--out", "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    (place / "new.jsonl").write_text('{"text": "woof woof"}\n{"text": "meow"}\n')
    ensemble = place / "run/ensembles/dynsnap-cyc-g2.ensemble"
    ended = dynsnap("predict", ensemble, "new.jsonl", "-o", "said.csv")
    assert ended.exit_code == 0, ended.stderr
    said = predictions.read(place / "said.csv")
    assert said.names_of(said.labels).tolist() == ["dogs", "cats"]
