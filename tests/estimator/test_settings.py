"""Settings of the estimator are obeyed, or refused by name; a stop says what it costs."""

import inspect

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.ensemble import METHODS, ROLLING
from dynsnap.errors import Interrupted, PlanError
from dynsnap.train.models import mlp
from tests.cli.studies import dynsnap
from tests.estimator.data import blobs
from tests.messages import naming

OF_TORCH = {
    "batch_size": 7,
    "learning_rate": 0.5,
    "optimizer": object(),
    "loss": object(),
    "augment": object(),
    "prepare": "standardised",
    "device": "cuda",
    "precision": "float32",
    "warmup": 2,
}
BOOSTED = [
    XGBClassifier(),
    LGBMClassifier(),
    HistGradientBoostingClassifier(),
    LogisticRegression(),
]


@pytest.mark.parametrize("setting", OF_TORCH)
@pytest.mark.parametrize("model", BOOSTED, ids=lambda model: type(model).__name__)
def test_settings_of_torch_are_refused_around_other_models(model, setting):
    one = {"method": "extbagging", "epochs": 1, "members": 1}
    estimator = DynSnapClassifier(model, **one, **{setting: OF_TORCH[setting]})
    with pytest.raises(PlanError, match=f"`{setting}=.*{type(model).__name__}"):
        estimator.fit(*blobs(2, 60))


def test_settings_of_torch_are_refused_when_another_model_is_loaded(tmp_path):
    fitted = DynSnapClassifier(LogisticRegression(), method="extbagging", epochs=1, members=1)
    fitted.fit(*blobs(2, 60)).save(tmp_path / "linear.dynsnap")
    with pytest.raises(PlanError, match="`device='cuda'`"):
        DynSnapClassifier.load(tmp_path / "linear.dynsnap", device="cuda")
    DynSnapClassifier.load(tmp_path / "linear.dynsnap", device="auto", combination="majority")
    np.savez(tmp_path / "inputs.npz", inputs=blobs(2, 60)[0])
    files = (tmp_path / "linear.dynsnap", tmp_path / "inputs.npz", "-o", tmp_path / "out.csv")
    ended = dynsnap("predict", *files, "--device", "cuda")
    assert ended.exit_code == 2
    assert "'cuda'" in ended.stderr
    assert dynsnap("predict", *files).exit_code == 0


def test_usual_values_are_no_reason_to_refuse():
    settings = {"learning_rate": np.float64(1e-3), "batch_size": np.int64(128), "beta": "mean"}
    one = {"method": "extbagging", "epochs": 1, "members": 1}
    DynSnapClassifier(LogisticRegression(), **one, **settings).fit(*blobs(2, 60))


USERS = {
    "dropout": (0.3, ["mcdropout"]),
    "carry_over": (0.5, ROLLING),
    "max_accuracy_gap": (0.2, ROLLING),
    "selection_holdout": (0.2, [*ROLLING, "single-interpolated"]),
    "beta": (0.3, ["dynsnap-cyc", "dynsnap-step", "rolling"]),
}


@pytest.mark.parametrize("method", [*METHODS, *ROLLING])
@pytest.mark.parametrize("setting", USERS)
def test_settings_of_other_methods_are_refused(setting, method):
    value, users = USERS[setting]
    plain = {"method": method, "members": 2, "snapshots": 2, "epochs": 2, "device": "cpu"}
    estimator = DynSnapClassifier(mlp, **plain, **{setting: value})
    if method in users:
        estimator.fit(*blobs(2, 60))
        return
    with pytest.raises(PlanError, match=f"`{setting}={value}` is for .*{method}"):
        estimator.fit(*blobs(2, 60))


def test_no_parameter_was_forgotten():
    """Each is of torch, of some methods, or read whatever the model and the method are."""
    by_all = {
        *("model", "method", "members", "snapshots", "epochs", "combination", "validation"),
        *("tolerance", "most_rounds", "trainer", "random_state", "keep_data", "monitor"),
        *("preset", "n_jobs", "verbose", "callbacks", "checkpoint"),  # see test_session.py
        *("class_weight", "selection_metric"),  # see test_weights.py, test_selection.py
        *("retraining", "average", "smoothing"),  # see test_single.py
    }
    assert {*inspect.signature(DynSnapClassifier).parameters} == {*OF_TORCH, *USERS, *by_all}


@pytest.mark.parametrize("setting", ["tolerance", "most_rounds"])
def test_settings_of_automatic_members_are_refused_beside_a_number(setting):
    estimator = DynSnapClassifier(mlp, members=2, snapshots=2, epochs=2, **{setting: 1})
    with pytest.raises(PlanError, match=f"`{setting}`"):
        estimator.fit(*blobs(2, 60))


def test_what_is_distilled_can_be_retrained_whatever_its_teacher_was_set_to():
    inputs, labels = blobs(2, 60)
    settings = {
        "method": "rolling",
        "carry_over": 0.5,
        "selection_holdout": 0.2,
        "beta": 0.9,
        "max_accuracy_gap": 0.2,
    }
    teacher = DynSnapClassifier(
        mlp, members=2, snapshots=2, epochs=2, device="cpu", random_state=0, **settings
    ).fit(inputs, labels)
    student = teacher.distill(epochs=1)
    assert student.retrain(inputs, labels).generation_ == 2


class Stop:
    """A monitor that stops at once."""

    def epoch_done(self, spec, epoch, accuracy):
        """Nothing is noted."""

    def stopping(self):
        return True


@pytest.mark.parametrize("model", [mlp, HistGradientBoostingClassifier(max_depth=2)])
def test_a_fit_that_is_stopped_promises_nothing(model):
    settings = {"members": 4, "snapshots": 2, "epochs": 2}
    estimator = DynSnapClassifier(model, monitor=Stop(), **settings)
    with pytest.raises(Interrupted, match=naming("`fit`", "starts over")) as caught:
        estimator.fit(*blobs(2, 60))
    assert "kept" not in str(caught.value)
    fitted = DynSnapClassifier(model, random_state=0, **settings).fit(*blobs(2, 60))
    with pytest.raises(Interrupted, match=naming("`retrain`", "stores no rounds")):
        fitted.set_params(monitor=Stop()).retrain(*blobs(2, 60))
