"""Tables with texts and gaps through the commands, and one kind of file for all of dynsnap."""

import re

import numpy as np
import pytest

import dynsnap as library
from dynsnap import DynSnapClassifier
from tests.cli.helpers import dynsnap, refused
from tests.estimator.test_frames import MODELS, ensemble, made
from tests.messages import naming

STUDY = """
[study]
name = "shop"
resamples = 10

[data]
source = "table"
path = "{path}"
label = "answer"
categorical = ["city", "plan"]
allow_missing = true

[data.growth]
fractions = [0.6, 1.0]
test_size = 0.2

[model]
{model}

[training]
epochs = 4

[methods]
names = ["{method}"]
members = 2
snapshots = {snapshots}
"""
DIGITS = """
[study]
name = "digits"
resamples = 10

[data.growth]
fractions = [0.6, 1.0]
late = {{ 6 = 2 }}

[model]
name = "mlp"

[training]
epochs = 2

[methods]
names = ["{method}"]
members = 2
snapshots = 1
"""
TREES = 'name = "xgboost"\nenable_categorical = true\nmax_depth = 3'
PIPELINE = """
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder


def build(depth):
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("words", encoder, ["city", "plan"])], remainder="passthrough")
    return make_pipeline(columns, RandomForestClassifier(5, max_depth=depth))
"""


@pytest.fixture
def shop(tmp_path):
    """A table with texts, and gaps as a file of text has them."""
    frame, labels = made(240)
    path = tmp_path / "shop.csv"
    frame.assign(answer=labels).to_csv(path, index=False)
    return path


def trained(path, folder, model, *, method="dynsnap-cyc", snapshots=2):
    study = folder / "shop.toml"
    study.write_text(STUDY.format(path=path, model=model, method=method, snapshots=snapshots))
    ended = dynsnap("train", study, "--method", method, "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder / f"run/ensembles/{method}-g2.ensemble"


def predicted(ensemble_file, inputs, folder, *options):
    out = folder / "predictions.parquet"
    ended = dynsnap("predict", ensemble_file, inputs, "-o", out, *options)
    assert ended.exit_code == 0, ended.stderr
    return library.read(out)


def test_a_table_with_texts_is_trained_on_and_predicted(shop, tmp_path):
    file = trained(shop, tmp_path, TREES)
    frame, labels = made(240)
    found = predicted(file, shop, tmp_path, "--label-column", "answer")
    assert np.mean(np.array(found.classes)[found.labels] == labels) > 0.9
    # In another order, with a category that is new, and one more column that no model asks for.
    other = tmp_path / "other.csv"
    turned = frame[["plan", "city", "age"]].astype(object)
    turned.iloc[0, 1] = "Nice"
    turned.assign(note="x").to_csv(other, index=False)
    again = predicted(file, other, tmp_path)
    assert (again.scores[1:] == found.scores[1:]).all()
    frame.drop(columns="city").to_csv(other, index=False)
    line = refused("predict", file, other, "-o", tmp_path / "p.csv", code=3)
    assert "'city'" in line


def test_a_pipeline_of_the_user_s_own_is_trained_by_a_study(shop, tmp_path, monkeypatch):
    (tmp_path / "own_pipeline.py").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    model = 'trainer = "boost"\nfactory = "own_pipeline:build"\ndepth = 4'
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join(line for line in shop.read_text().splitlines() if ",," not in line))
    lines = [line for line in whole.read_text().splitlines() if not line.startswith(",")]
    whole.write_text("\n".join(lines) + "\n")
    file = trained(whole, tmp_path, model, method="extbagging", snapshots=1)
    found = predicted(file, whole, tmp_path, "--label-column", "answer")
    assert np.mean(found.labels == found.truth) > 0.8


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('categorical = ["city", "plan"]', 'categorical = ["city"]'), ["plan", "categorical"]),
        (('categorical = ["city", "plan"]', 'categorical = "city"'), ["categorical", "list"]),
        (('"city", "plan"', '"city", "plan", "answer"'), ["categorical", "answer"]),
        (("allow_missing = true", "allow_missing = false"), ["allow_missing"]),
        ((TREES, 'name = "mlp"'), ["city", "plan"]),
        ((TREES, 'trainer = "boost"\nfactory = "json:dumps"'), ["json:dumps"]),
    ],
)
def test_what_a_study_cannot_do_with_a_table_is_said(change, named, shop, tmp_path):
    study = tmp_path / "shop.toml"
    text = STUDY.format(path=shop, model=TREES, method="dynsnap-cyc", snapshots=2)
    study.write_text(text.replace(*change))
    ended = dynsnap("train", study, "--out", tmp_path / "run", "-q")
    assert ended.exit_code in (2, 3)
    assert re.search(naming(*named), ended.stderr), ended.stderr
    assert ended.stderr.count("\n") == 1


def test_what_the_estimator_saves_the_command_predicts_with(shop, tmp_path):
    frame, labels = made(240)
    fitted = ensemble(MODELS["histogram"]).fit(frame, labels)
    file = tmp_path / "mine.dynsnap"
    fitted.save(file)
    found = predicted(file, shop, tmp_path, "--label-column", "answer")
    assert np.allclose(found.scores, fitted.predict_proba(frame), atol=1e-6)
    # Columns of numbers are taken by name, too.
    plain = frame[["age"]].fillna(0).assign(size=np.arange(240) % 7)
    numbers = ensemble(MODELS["lightgbm"]).fit(plain, labels)
    numbers.save(file)
    plain[["size", "age"]].to_csv(shop, index=False)
    assert np.allclose(
        predicted(file, shop, tmp_path).scores, numbers.predict_proba(plain), atol=1e-6
    )
    assert isinstance(DynSnapClassifier.load(file), DynSnapClassifier)


def test_what_a_study_trains_the_estimator_loads(shop, tmp_path):
    file = trained(shop, tmp_path, TREES)
    frame, labels = made(240)
    found = predicted(file, shop, tmp_path)
    loaded = DynSnapClassifier.load(file)
    assert np.allclose(loaded.predict_proba(frame), found.scores, atol=1e-6)
    assert loaded.generation_ == 2 and len(loaded.members_) == 2 and loaded.cost_ > 0
    assert loaded.feature_names_in_.tolist() == ["age", "city", "plan"]
    again = tmp_path / "again.dynsnap"
    loaded.save(again)
    assert (predicted(again, shop, tmp_path).scores == found.scores).all()
    model = MODELS["xgboost"]
    new = DynSnapClassifier.load(file, model=model).retrain(frame, labels, earlier=(frame, labels))
    assert new.generation_ == 3


@pytest.mark.parametrize("method", ["dynsnap-cyc", "mcdropout"])
def test_a_module_of_dynsnap_s_own_needs_no_model_to_load(method, tmp_path):
    study = tmp_path / "digits.toml"
    study.write_text(DIGITS.format(method=method))
    ended = dynsnap("train", study, "--method", method, "--out", tmp_path / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    file = tmp_path / f"run/ensembles/{method}-g2.ensemble"
    images = library.data.digits().train.inputs[:50]
    np.savez(tmp_path / "new.npz", inputs=images)
    found = predicted(file, tmp_path / "new.npz", tmp_path)
    loaded = DynSnapClassifier.load(file, device="cpu")
    assert np.allclose(loaded.predict_proba(images), found.scores, atol=1e-6)
    loaded.save(file)
    assert (predicted(file, tmp_path / "new.npz", tmp_path).scores == found.scores).all()


def test_members_that_know_fewer_classes_predict_alike_by_the_command(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])[np.arange(240) % 3]
    inputs = rng.normal(size=(240, 3)) + np.eye(3)[np.arange(240) % 3] * 4
    early = (labels != "b") & (np.arange(240) < 150)
    old = ensemble(MODELS["lightgbm"], method="rolling", members=4, epochs=6)
    new = old.fit(inputs[early], labels[early]).retrain(inputs[~early], labels[~early])
    assert {member.generation for member in new.members_} == {1, 2}
    file = tmp_path / "rolled.dynsnap"
    new.save(file)
    np.savez(tmp_path / "new.npz", inputs=inputs)
    found = predicted(file, tmp_path / "new.npz", tmp_path)
    assert np.allclose(found.scores, new.predict_proba(inputs), atol=1e-6)
