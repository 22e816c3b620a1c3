import dataclasses
import json
import pickle
import re
import zipfile

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.linear_model import SGDClassifier
from torch import nn
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import DynSnapError, FileError, InputError, PlanError
from dynsnap.store import load_ensemble, save_ensemble
from dynsnap.train.models import fasttext, mlp
from tests.estimator.data import digits
from tests.estimator.test_classifier import TEXTS, TOPICS, small
from tests.messages import naming

torch.set_num_threads(1)

MODELS = {
    "mlp": mlp,
    "xgboost": XGBClassifier(max_depth=2),
    "lightgbm": LGBMClassifier(num_leaves=4),
    "sgd": SGDClassifier(loss="log_loss"),
}


@pytest.fixture(scope="module", params=[*MODELS, "mcdropout"])
def saved(request, tmp_path_factory):
    """(estimator, path, the model to load it with)."""
    name = request.param
    model = MODELS["mlp" if name == "mcdropout" else name]
    method = "mcdropout" if name == "mcdropout" else "dynsnap-cyc"
    estimator = small(model, method=method, combination="weighted_average").fit(*digits()[0])
    path = tmp_path_factory.mktemp(name) / "model.dynsnap"
    estimator.save(path)
    return estimator, path, model if model is mlp else None


def test_what_was_saved_predicts_bit_by_bit_the_same(saved):
    estimator, path, model = saved
    loaded = DynSnapClassifier.load(path, model=model)
    test, truth = digits()[2]
    assert (loaded.predict_proba(test) == estimator.predict_proba(test)).all()
    assert loaded.score(test, truth) == estimator.score(test, truth)
    assert loaded.classes_.tolist() == estimator.classes_.tolist()
    assert loaded.classes_.dtype == estimator.classes_.dtype
    assert loaded.members_ == estimator.members_
    assert (loaded.rounds_, loaded.cost_, loaded.generation_, loaded.n_features_in_) == (
        estimator.rounds_,
        estimator.cost_,
        1,
        64,
    )
    before, after = estimator.get_params(deep=False), loaded.get_params(deep=False)
    assert {**before, "model": None} == {**after, "model": None}


def test_saving_again_gives_the_same_file(saved, tmp_path):
    _, path, model = saved
    DynSnapClassifier.load(path, model=model).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_loading_unpickles_nothing(saved, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    _, path, model = saved
    DynSnapClassifier.load(path, model=model).predict(digits()[2][0])


def test_the_file_is_a_zip_with_a_manifest_in_json(saved):
    estimator, path, _ = saved
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["classes"] == estimator.classes_.tolist()
        learners = [archive.read(name) for name in archive.namelist() if name != "manifest.json"]
    assert tuple(learners) == estimator._fitted.learners
    assert load_ensemble(path).generation == 1


def test_damage_anywhere_is_found(saved, tmp_path):
    _, path, model = saved
    content = path.read_bytes()
    for at in np.linspace(0, len(content) - 1, 12).astype(int):
        flipped = bytearray(content)
        flipped[at] ^= 0xFF
        (tmp_path / "flipped").write_bytes(flipped)
        try:
            loaded = DynSnapClassifier.load(tmp_path / "flipped", model=model)
        except DynSnapError as error:
            assert re.search("damaged|not an ensemble", str(error))
        else:  # some bytes of a zip are of no consequence
            good = DynSnapClassifier.load(path, model=model).predict_proba(digits()[2][0])
            assert (loaded.predict_proba(digits()[2][0]) == good).all()
    (tmp_path / "short").write_bytes(content[: len(content) // 2])
    with pytest.raises(FileError, match="is damaged"):
        DynSnapClassifier.load(tmp_path / "short", model=model)


def test_a_newer_format_is_refused(saved, tmp_path):
    _, path, model = saved
    newer = tmp_path / "newer"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(newer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                data = json.dumps({**json.loads(data), "format": 99}).encode()
            new.writestr(name, data)
    with pytest.raises(FileError, match=r"format 99.*newer version"):
        DynSnapClassifier.load(newer, model=model)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileError, match="Cannot read"):
        DynSnapClassifier.load(tmp_path / "nothing")
    (tmp_path / "pickle").write_bytes(pickle.dumps({}))
    with pytest.raises(FileError, match=naming("not an ensemble", "`dynsnap train`")):
        DynSnapClassifier.load(tmp_path / "pickle")


def test_a_torch_ensemble_needs_its_factory(tmp_path):
    path = tmp_path / "model"
    small(method="singlebase", epochs=2).fit(*digits()[0]).save(path)
    with pytest.raises(InputError, match=naming("torch modules", r"load\(path, model=")):
        DynSnapClassifier.load(path)
    with pytest.raises(InputError, match="another kind"):
        DynSnapClassifier.load(path, model=XGBClassifier())

    def other(classes, inputs):
        return mlp(classes, inputs=inputs, hidden=(7,))

    with pytest.raises(
        FileError, match=naming(r"'1\.bias'", r"\(128,\)", r"\(7,\)", "the factory")
    ):
        DynSnapClassifier.load(path, model=other)


def test_an_older_file_stays_when_saving_fails(tmp_path, monkeypatch):
    estimator = small(XGBClassifier(max_depth=2), method="singlebase").fit(*digits()[0])
    path = tmp_path / "model"
    estimator.save(path)
    content = path.read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(FileError, match=naming("model:", "No space", "has room")):
        estimator.save(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_loaded_estimator_retrains_when_it_is_given_everything(tmp_path):
    first, more, (test, _) = digits()
    model = XGBClassifier(max_depth=2)
    estimator = small(model).fit(*first)
    path = tmp_path / "model"
    estimator.save(path)
    with pytest.raises(InputError, match=naming("`model`", "`load`")):
        DynSnapClassifier.load(path).retrain(*more, earlier=first)
    loaded = DynSnapClassifier.load(path, model=model)
    with pytest.raises(InputError, match=naming("the data", "earlier=")):
        loaded.retrain(*more)
    new = loaded.retrain(*more, earlier=first)
    assert new.generation_ == 2
    assert (new.predict_proba(test) == estimator.retrain(*more).predict_proba(test)).all()


def test_settings_that_no_file_can_hold_are_asked_for_again(tmp_path):
    first, more, _ = digits()
    path = tmp_path / "model"
    small(method="singlebase", epochs=2, optimizer=torch.optim.SGD).fit(*first).save(path)
    loaded = DynSnapClassifier.load(path, model=mlp)
    with pytest.raises(InputError, match=naming("`optimizer`", "`load`")):
        loaded.retrain(*more, earlier=first)
    again = DynSnapClassifier.load(path, model=mlp, optimizer=torch.optim.SGD)
    assert again.retrain(*more, earlier=first).generation_ == 2
    with pytest.raises(PlanError, match=naming("optimiser", '"optimizer"')):
        DynSnapClassifier.load(path, model=mlp, optimiser=torch.optim.SGD)


@pytest.mark.parametrize("labels", [np.arange(6), np.arange(6) == 2, np.arange(6) * 2.0])
def test_classes_keep_their_type(tmp_path, labels):
    inputs, names = digits()[0]
    numbers = np.unique(names, return_inverse=True)[1]
    estimator = small(XGBClassifier(max_depth=2)).fit(inputs, labels[numbers])
    estimator.save(tmp_path / "model")
    loaded = DynSnapClassifier.load(tmp_path / "model")
    assert loaded.classes_.dtype == labels.dtype
    assert (loaded.predict(inputs) == estimator.predict(inputs)).all()


def test_classes_as_objects_and_texts_as_inputs_come_back(tmp_path):
    settings = {"epochs": 4, "learning_rate": 0.05, "device": "cpu", "snapshots": 2}
    estimator = small(fasttext, **settings).fit(TEXTS, np.array(TOPICS, dtype=object))
    estimator.save(tmp_path / "model")
    loaded = DynSnapClassifier.load(tmp_path / "model", model=fasttext)
    assert (loaded.predict_proba(TEXTS) == estimator.predict_proba(TEXTS)).all()
    assert loaded.classes_.tolist() == ["food", "music", "sport"]
    with pytest.raises(InputError, match="fitted with, texts"):
        loaded.predict(np.zeros((2, 64)))


def test_a_module_of_one_s_own_is_loaded_by_its_class(tmp_path):
    estimator = small(Own, prepare="features").fit(*digits()[0])
    estimator.save(tmp_path / "model")
    loaded = DynSnapClassifier.load(tmp_path / "model", model=Own)
    test, _ = digits()[2]
    assert (loaded.predict_proba(test) == estimator.predict_proba(test)).all()


class Own(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.inner = nn.Linear(64, classes)

    def forward(self, inputs):
        return torch.tanh(self.inner(inputs)) * 3


@pytest.mark.parametrize("width", [3, 4])
@pytest.mark.parametrize("shape", [[3], [5], [2, 2], [], None])
def test_a_shape_that_the_members_do_not_have_ends_in_an_error_of_our_own(shape, width, tmp_path):
    inputs, labels = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    model = DynSnapClassifier(XGBClassifier(max_depth=1), members=1, snapshots=1, epochs=1)
    model.fit(inputs, labels).save(tmp_path / "sound")
    saved = load_ensemble(tmp_path / "sound")
    about = {**saved.about, "estimator": {**saved.about["estimator"], "shape": shape}}
    save_ensemble(tmp_path / "forged", dataclasses.replace(saved, about=about))
    forged = DynSnapClassifier.load(tmp_path / "forged")
    with pytest.raises(InputError):
        forged.predict_proba(inputs[:, :width])
