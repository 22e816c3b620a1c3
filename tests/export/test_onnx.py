"""Whole ensembles as ONNX: the graph answers as the ensemble, or is not written."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.semi_supervised import LabelSpreading
from torch import nn

import dynsnap
from dynsnap import export, store
from dynsnap.errors import PlanError
from dynsnap.export._check import ExportError
from dynsnap.train import models
from tests.cli.studies import dynsnap as command
from tests.export.ensembles import CLASSES, learner, saved, small_cnn
from tests.messages import naming

pytestmark = pytest.mark.slow  # it loads ONNX, and torch.export takes seconds


def answers(path, inputs):
    """Labels and scores of a file, as any server would ask for them."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (feed,) = session.get_inputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(uint8)": np.uint8}
    fed = {feed.name: inputs.astype(kind[feed.type])}
    labels, scores = session.run(["label", "scores"], fed)
    return labels, scores, session


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).integers(0, 256, (40, 8, 8, 1), np.uint8)


@pytest.fixture(scope="module")
def cnn_file(tmp_path_factory, images):
    """An ensemble file of networks, and what the command makes of it."""
    folder = tmp_path_factory.mktemp("onnx")
    store.save_ensemble(folder / "cnn.ensemble", small_cnn(combination="weighted_average"))
    np.savez(folder / "real.npz", inputs=images)
    ended = command(
        "export",
        folder / "cnn.ensemble",
        "--onnx",
        folder / "cnn.onnx",
        "--check",
        folder / "real.npz",
    )
    assert ended.exit_code == 0, ended.stderr
    return folder, ended.stdout


def test_the_command_writes_a_graph_that_predicts_as_the_ensemble(cnn_file, images):
    folder, printed = cnn_file
    ended = command(
        "predict", folder / "cnn.ensemble", folder / "real.npz", "-o", folder / "p.parquet"
    )
    assert ended.exit_code == 0, ended.stderr
    expected = dynsnap.read(folder / "p.parquet")
    labels, scores, session = answers(folder / "cnn.onnx", images)
    np.testing.assert_allclose(scores, expected.scores, atol=1e-5)
    assert list(labels) == [CLASSES[at] for at in expected.scores.argmax(axis=1)]
    (feed,) = session.get_inputs()
    assert (feed.name, feed.type, feed.shape) == ("images", "tensor(uint8)", ["batch", 8, 8, 1])
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["dynsnap.classes"]) == list(CLASSES)
    assert about["dynsnap.combination"] == "weighted_average"
    assert "40 given" in printed
    # Nothing of the machine that made it is inside.
    assert str(folder).encode() not in (folder / "cnn.onnx").read_bytes()
    assert b"site-packages" not in (folder / "cnn.onnx").read_bytes()


def test_members_as_modules_give_the_scores_of_the_members(images):
    made = export.exportable(small_cnn(), model=models.cnn)
    modules = export.members_as_modules(made)
    assert all(isinstance(one, nn.Module) and not one.training for one in modules)
    found = torch.stack([one(torch.from_numpy(images)) for one in modules]).numpy()
    np.testing.assert_allclose(found, made.score(images), atol=1e-6)


class Normed(nn.Module):
    """Batch norm behind a convolution, which exporters like to fold into it."""

    def __init__(self, classes, inputs):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inputs[0], 4, 3), nn.BatchNorm2d(4)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)
        self.out = nn.Linear(4, classes)

    def forward(self, values):
        return self.out(self.norm(self.conv(values)).relu().amax((2, 3)))


class Shared(nn.Module):
    """Two layers with one weight."""

    def __init__(self, classes):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.out = nn.Linear(4, classes)

    def forward(self, values):
        return self.out(self.second(self.first(values).relu()).relu())


@pytest.mark.parametrize("kind", ["pixels-nchw", "images-nchw"])
def test_batch_norm_and_channels_first(kind, tmp_path, monkeypatch):
    from dynsnap.train import _modules

    traced = []
    trace = _modules._traced
    monkeypatch.setattr(_modules, "_traced", lambda *given: traced.append(1) or trace(*given))
    learners = [learner(Normed, (3, 8, 6), kind=kind, seed=seed) for seed in range(3)]
    made = export.exportable(saved(learners, model={"name": "own"}), model=Normed)
    rows = np.random.default_rng(0).integers(0, 256, (9, 3, 8, 6), np.uint8)
    rows = rows if kind.startswith("pixels") else (rows / 255).astype(np.float32)
    export.save_onnx(made, tmp_path / "x.onnx", inputs=rows)
    assert len(traced) == 1  # members of one structure
    _, scores, session = answers(tmp_path / "x.onnx", rows)
    np.testing.assert_allclose(scores, made.combined(made.score(rows)), atol=1e-5)
    assert (session.get_inputs()[0].name, session.get_inputs()[0].shape[1:]) == (
        "images",
        [3, 8, 6],
    )


def test_a_weight_that_two_layers_share_stays_one(tmp_path):
    rows = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    made = dynsnap.DynSnapClassifier(
        Shared, members=2, snapshots=2, epochs=2, device="cpu", random_state=0
    ).fit(rows, rows[:, 0] > 0)
    for module in made.members_as_modules():
        assert torch.equal(module.network.first.weight, module.network.second.weight)
    made.export_onnx(tmp_path / "x.onnx", rows)
    _, scores, _ = answers(tmp_path / "x.onnx", rows)
    np.testing.assert_allclose(scores, made.predict_proba(rows), atol=1e-5)


class Spectrum(nn.Module):
    """A layer that ONNX has no operator for."""

    def forward(self, values):
        return torch.linalg.eigvals(values @ values.transpose(-1, -2)).real


class Odd(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(2), nn.Linear(8, 8))
        self.head = nn.ModuleList([Spectrum(), nn.Flatten(), nn.Linear(8, classes)])

    def forward(self, values):
        values = self.body(values)
        for part in self.head:
            values = part(values)
        return values


def test_an_operator_without_counterpart_is_named_with_its_member_and_layer(tmp_path):
    learners = [learner(Odd, (8, 8), seed=seed) for seed in range(2)]
    made = export.exportable(saved(learners, model={"name": "own"}), model=Odd)
    with pytest.raises(PlanError, match=naming("Member 0", "head.0", "Spectrum", "linalg_eig")):
        export.save_onnx(made, tmp_path / "odd.onnx")
    assert not list(tmp_path.iterdir())


def test_a_graph_that_answers_otherwise_is_not_written(tmp_path):
    rows, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=300)
    made = dynsnap.DynSnapClassifier(model, method="extbagging", members=2, random_state=0)
    made = made.fit(rows, np.array(CLASSES)[y]).exportable()
    other = dataclasses.replace(made, score=lambda inputs: made.score(inputs)[:, :, ::-1])
    with pytest.raises(ExportError, match=naming("random input", "cat")):
        export.save_onnx(other, tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())
    off = dataclasses.replace(
        made, score=lambda inputs: made.score(inputs) * (1 - 6e-5) + np.float32(2e-5)
    )
    with pytest.raises(ExportError, match=naming("1e-05")):
        export.save_onnx(off, tmp_path / "x.onnx")


def test_dropout_texts_and_own_preparations_are_refused():
    noisy = saved([learner(models.mlp, (4,), passes=2, dropout=0.5)], model={"name": "mlp"})
    noisy = dataclasses.replace(noisy, positions=np.arange(2), accuracy=np.ones(2))
    with pytest.raises(PlanError, match=naming("mcdropout")):
        export.exportable(noisy, model=models.mlp)
    with pytest.raises(PlanError, match=naming("toy")):
        made = export.exportable(
            saved([learner(models.mlp, (4,))], model={"name": "mlp"}), model=models.mlp
        )
        dataclasses.replace(made, backend="toy")


@pytest.mark.parametrize("how", ["average", "weighted_majority"])
def test_a_rolling_ensemble_whose_members_know_different_classes(how, tmp_path):
    rows, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(rows))
    rows, names = rows[order].astype(np.float32), names[order]
    early = names != "virginica"
    old = dynsnap.DynSnapClassifier(
        models.mlp if how == "average" else SGDClassifier(loss="log_loss"),
        method="rolling",
        members=4,
        snapshots=2,
        epochs=4,
        random_state=0,
        selection_holdout=0.2,
        combination=how,
    ).fit(rows[early], names[early])
    new = old.retrain(rows[~early], names[~early])
    assert len({len(one) for one in new._fitted.learned}) == 2  # two generations of members
    made = new.export_onnx(tmp_path / "rolling.onnx", rows)
    assert made.checked.given == len(rows)
    labels, scores, _ = answers(tmp_path / "rolling.onnx", rows)
    np.testing.assert_allclose(scores, new.predict_proba(rows), atol=1e-5)
    assert np.mean(np.array(labels) == new.predict(rows)) > 0.99  # all but ties


MODELS = {
    "logistic": (LogisticRegression(max_iter=300), {}),
    "forest": (RandomForestClassifier(n_estimators=5), {}),
    "histogram": (HistGradientBoostingClassifier(), {"epochs": 4}),
    "xgboost": ("xgboost.XGBClassifier", {"epochs": 4}),
    "lightgbm": ("lightgbm.LGBMClassifier", {"epochs": 4}),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("binary", [True, False])
def test_boosted_and_scikit_members(name, binary, tmp_path):
    import importlib

    model, more = MODELS[name]
    if isinstance(model, str):
        module, _, kind = model.rpartition(".")
        model = getattr(importlib.import_module(module), kind)()
    rows, y = load_iris(return_X_y=True)
    if binary:
        rows, y = rows[y < 2], y[y < 2]
    made = dynsnap.DynSnapClassifier(
        model, method="extbagging", members=2, random_state=0, **more
    ).fit(rows, y)
    made.save(tmp_path / "e.ensemble")
    np.savez(tmp_path / "real.npz", inputs=rows)
    ended = command(
        "export",
        tmp_path / "e.ensemble",
        "--onnx",
        tmp_path / "e.onnx",
        "--check",
        tmp_path / "real.npz",
        "--combination",
        "weighted_average",
    )
    assert ended.exit_code == 0, ended.stderr
    made.set_params(combination="weighted_average")
    labels, scores, _ = answers(tmp_path / "e.onnx", rows)
    np.testing.assert_allclose(scores, made.predict_proba(rows), atol=1e-5)
    assert list(labels) == [str(one) for one in made.predict(rows)]


def test_a_classifier_without_converter_is_named(tmp_path):
    rows, y = load_iris(return_X_y=True)
    made = dynsnap.DynSnapClassifier(
        LabelSpreading(), method="singlebase", members=1, snapshots=1, random_state=0
    ).fit(rows, y)
    with pytest.raises(PlanError, match=naming("Member 0", "LabelSpreading")):
        made.export_onnx(tmp_path / "x.onnx")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["missing.ensemble", "--onnx", "x.onnx"], ["missing.ensemble"]),
        (["real.npz", "--onnx", "x.onnx"], ["real.npz"]),
        (["cnn.ensemble", "--onnx", "cnn.ensemble"], ["--onnx", "cnn.ensemble"]),
        (["cnn.ensemble", "--onnx", "x.onnx", "--check", "other.npz"], ["other.npz", "(1, 8, 8)"]),
        (["cnn.ensemble", "--onnx", "x.onnx", "--sha256", "0" * 64], ["cnn.ensemble"]),
    ],
)
def test_bad_input_is_one_line(cnn_file, arguments, names, monkeypatch):
    folder, _ = cnn_file
    monkeypatch.chdir(folder)
    np.savez("other.npz", inputs=np.zeros((2, 6, 6, 1), np.uint8))
    ended = command("export", *arguments)
    assert ended.exit_code in (2, 3)
    assert len(ended.stderr.strip().splitlines()) == 1
    assert all(name in ended.stderr for name in names)
    assert not (folder / "x.onnx").exists()
