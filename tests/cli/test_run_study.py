import csv
import json
import re

import pytest

from tests.cli.studies import TINY, dynsnap, run_to_the_end
from tests.messages import naming


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run_to_the_end(tmp_path_factory.mktemp("finished"), "tiny", TINY)


def table(folder):
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_study_leaves_everything_in_its_folder(finished):
    folder, _ = finished
    assert (folder / "study.toml").read_text() == TINY
    about = json.loads((folder / "about.json").read_text())
    assert about["environment"]["device"] == "CPU, float32"
    assert about["rounds"] == about["rounds_trained_last"]
    assert {line["method"] for line in table(folder)} == {
        "singlebase",
        "dynsnap-cyc",
        "noise-floor",
        "never-retrain",
        "never-retrain-dynsnap-cyc",
    }


def test_training_rows_are_told_and_break_comparisons_and_gates_down(finished, tmp_path):
    folder, _ = finished
    rows = json.loads((folder / "about.json").read_text())["training_rows"]
    assert rows["6"][0] == 0 < rows["6"][1]  # it comes late
    old, new = (folder / f"predictions/dynsnap-cyc-average-g{number}.parquet" for number in (1, 2))
    assert "Slices by training rows" in dynsnap("compare", old, new).stdout
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\nmetric = "lost"\nat_most = 0.99\nallow_odd = true\n'
        'slice = {column = "training rows", value = "minority"}\n'
    )
    page = tmp_path / "gate.html"
    ended = dynsnap("gate", old, new, "--rules", rules, "--html", page, "--study", folder)
    assert ended.exit_code == 0
    assert "training rows = minority" in ended.stdout
    most = max(rows, key=lambda name: rows[name][-1])
    assert f">{rows[most][-1]}<" in page.read_text()
    assert "learned from" in page.read_text()


def test_the_tables_are_printed(finished):
    _, ended = finished
    for part in ("ACC-CON", "noise-floor", "never-retrain", "dynsnap-cyc"):
        assert part in ended.stdout


def test_output_that_is_not_a_terminal_is_plain(finished):
    _, ended = finished
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "rounds to train" in ended.stderr
    assert "Training on CPU" in ended.stderr


def test_quiet_means_quiet(place):
    ended = dynsnap("run", "tiny.toml", "--quiet")
    assert ended.exit_code == 0
    assert "round" not in ended.stderr
    assert (place / "runs/tiny/table.csv").exists()


def test_predictions_of_a_study_can_be_compared(finished):
    folder, _ = finished
    files = [folder / f"predictions/dynsnap-cyc-average-g{i}.parquet" for i in (1, 2)]
    ended = dynsnap("compare", *files, "--json", "-", "-q")
    assert ended.exit_code == 0, ended.stderr
    (pair,) = json.loads(ended.stdout)["pairs"]
    for metric in ("consistency", "correct_consistency"):
        (value,) = (
            float(line["value"])
            for line in table(folder)
            if (line["method"], line["metric"]) == ("dynsnap-cyc", metric)
        )
        assert value == pytest.approx(pair["metrics"][metric]["value"])


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (TINY + "[traning]\n", 2, naming("`traning`", '"training"')),
        (TINY.replace("batch_size", "batchsize"), 2, naming(r"\[training\]", "`batchsize`")),
        (TINY.replace("= 64", '= "many"'), 2, naming("`batch_size`", "whole number", "many")),
        (TINY.replace('name = "mlp"', 'name = "mpl"'), 2, naming("model 'mpl'")),
        (TINY.replace("hidden = [8]", "hiden = [8]"), 2, naming("`hiden`", '"hidden"')),
        (TINY.replace("hidden = [8]", 'hidden = ["x"]'), 2, naming("model", "cannot be built")),
        (TINY.replace("epochs = 8", "epoch = 8"), 2, naming("`epoch`", '"epochs"')),
        (TINY.replace('name = "mlp"\nhidden = [8]', ""), 2, naming(r"\[model\]", "`name`")),
        (TINY + "[training.adam]\nepsilon = 1\n", 2, naming(r"\[training\.adam\]", "`epsilon`")),
        (TINY + '[training.optimizer]\nname = "sgdd"\n', 2, naming("optimizer 'sgdd'", '"sgd"')),
        (
            TINY + '[training.optimizer]\nname = "sgd"\nmomentun = 1\n',
            2,
            naming(r"\[training\.optimizer\]", "`momentun`", '"momentum"'),
        ),
        (
            TINY + '[training.optimizer]\nname = "sgd"\nmomentum = -1\n',
            2,
            naming(r"\[training\.optimizer\]", "-1"),
        ),
        (TINY.replace("= 0.01", "= 0.01\nloss = 3"), 2, naming("`loss`", "name", "3")),
        (TINY.replace("= 0.01", '= 0.01\nloss = "os.system"'), 2, naming("loss 'os.system'")),
        (TINY + '[training.loss]\nname = "focal"\ngamma = -1\n', 2, naming("`gamma`", "-1")),
        (TINY.replace("= 0.01", "= 0.01\nwarmup = -1"), 2, naming("`warmup`", "-1")),
        (TINY.replace("= 0.01", '= 0.01\nselection_metric = "auc"'), 2, naming("metric 'auc'")),
        (TINY.replace("= 0.01", "= 0.01\nclass_weight = 3"), 2, naming("`class_weight`", "3")),
        (
            TINY + '[training.adam]\neps = 1e-7\n[training.optimizer]\nname = "adam"\n',
            2,
            naming(r"\[training\.adam\]", "`optimizer`"),
        ),
        (TINY + "[training.augment]\nshift = 2\n", 2, naming("`shift`", "below 1")),
        (TINY.replace("= 0.01", "= 0.01\naugment = 3"), 2, naming("`augment`", "true", "table")),
        (TINY.replace("= 0.01", "= 1e30"), 3, "diverged"),
        (TINY.replace("[0.6, 1.0]", "[1.0]").replace("6 = 2", ""), 2, "compares generations"),
        (TINY.replace("[0.6, 1.0]", "[1.0, 0.6]"), 2, "`fractions` must not fall"),
        (TINY.replace("[0.6, 1.0]", "[0.001, 1.0]"), 3, naming("generation 1", "gets none")),
        (TINY.replace('name = "mlp"', 'factory = "none:made"'), 2, "cannot be imported"),
        (
            TINY.replace('name = "mlp"\nhidden = [8]', 'name = "sklearn.svm.X"'),
            2,
            r"\[training\] has",
        ),
    ],
)
def test_a_wrong_study_is_one_clear_line(place, text, code, message):
    (place / "wrong.toml").write_text(text)
    ended = dynsnap("run", "wrong.toml", "--out", "run")
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.exit_code == code, ended.stderr
    assert last.startswith("dynsnap: ")
    assert re.search(message, last)
    # Where no training has begun there is no folder, but for what only the training can tell.
    later = ("diverged", "compares generations")
    assert (place / "run").exists() == message.startswith(later)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ('name = "lightgbm"\nnum_leavs = 4', '`num_leavs`. Did you mean "num_leaves"?'),
        ('name = "xgboost"\nmax_dept = 4', '`max_dept`. Did you mean "max_depth"?'),
        ('name = "sklearn.linear_model.SGDClassifier"\nalfa = 1', 'Did you mean "alpha"?'),
    ],
)
def test_a_setting_that_a_library_would_ignore_is_refused(place, model, message):
    (place / "wrong.toml").write_text(f"[model]\n{model}\n")
    ended = dynsnap("run", "wrong.toml", "--out", "run")
    assert ended.exit_code == 2, ended.stderr
    assert message in ended.stderr


@pytest.mark.parametrize("model", ["xgboost", "sklearn.linear_model.SGDClassifier"])
@pytest.mark.parametrize(
    "wish", ['[[variant]]\nname = "x"\nonward = true', "[methods.rolling]\nrefresh = 2"]
)
def test_who_always_starts_afresh_is_asked_for_nothing_else_before_anything_is_trained(
    place, model, wish
):
    study = f"""
        [study]
        keep = "weights"
        [model]
        name = "{model}"
        [methods]
        names = ["singlebase", "rolling"]
    """
    (place / "wrong.toml").write_text(f"{study}\n{wish}\n")
    ended = dynsnap("run", "wrong.toml", "--out", "run")
    assert ended.exit_code == 2
    assert re.search(naming("afresh", "`warm_start`", "`finetune_epochs`"), ended.stderr)
    assert not (place / "run").exists()


def test_data_that_is_not_there_is_named(place):
    (place / "wrong.toml").write_text('[data]\nsource = "npz"\npath = "none.npz"\n[model]\n')
    ended = dynsnap("run", "wrong.toml")
    assert ended.exit_code == 3
    assert "none.npz" in ended.stderr
    other = dynsnap("run", "wrong.toml", "--data", "other.npz")
    assert "Cannot read other.npz" in other.stderr


def test_a_study_that_does_not_exist_is_said_so(place):
    ended = dynsnap("run", "digit")
    assert ended.exit_code == 2
    assert 'Did you mean "digits"?' in ended.stderr


def test_a_run_folder_is_no_study_file_but_holds_one(finished):
    ended = dynsnap("run", finished[0])
    assert ended.exit_code == 2
    assert f"naming {finished[0] / 'study.toml'} and --out {finished[0]}" in ended.stderr


def test_an_output_that_cannot_be_made_is_said_so(place):
    (place / "file").write_text("")
    ended = dynsnap("run", "tiny.toml", "--out", "file/run")
    assert ended.exit_code == 2
    assert re.search(naming("--out", "file/run"), ended.stderr)


BOOSTED = """
[data.growth]
fractions = [0.6, 1.0]
late = { 6 = 2 }
[model]
name = "lightgbm"
num_leaves = 4
[training]
epochs = 4
[methods]
names = ["singlebase", "snapshot"]
combinations = ["majority", "average"]
members = 2
snapshots = 2
"""


def test_boosted_trees_make_a_study_too(place):
    pytest.importorskip("lightgbm")
    (place / "trees.toml").write_text(BOOSTED)
    ended = dynsnap("run", "trees.toml", "--out", "run")
    assert ended.exit_code == 0, ended.stderr
    assert {line["method"] for line in table(place / "run")} >= {"singlebase", "snapshot"}


OWN = """
from torch import nn

def build(classes, inputs, width=4):
    size = 1
    for side in inputs:
        size *= side
    return nn.Sequential(nn.Flatten(), nn.Linear(size, width), nn.Tanh(), nn.Linear(width, classes))
"""


def test_a_model_of_the_users_own_makes_a_study_too(place, monkeypatch):
    (place / "mymodels.py").write_text(OWN)
    monkeypatch.syspath_prepend(place)
    text = TINY.replace('name = "mlp"\nhidden = [8]', 'factory = "mymodels:build"\nwidth = 6')
    (place / "own.toml").write_text(text)
    ended = dynsnap("run", "own.toml", "--out", "run")
    assert ended.exit_code == 0, ended.stderr
    (place / "own.toml").write_text(text.replace("width", "widht"))
    wrong = dynsnap("run", "own.toml", "--out", "run")
    assert wrong.exit_code == 2
    assert re.search(naming("'mymodels:build'", "`widht`", '"width"'), wrong.stderr)
