"""A server asks one estimator from many threads: each gets the answer that it would get alone."""

import copy
import dataclasses
import subprocess
import sys
import textwrap
import threading
import warnings
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info
from torch import nn
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import InputError, PlanError
from dynsnap.train import Predictor, Standardised
from dynsnap.train._weights import StoredLearner
from dynsnap.train.models import cnn, fasttext, mlp
from tests.marks import daily
from tests.threads import changing_often, together, wrong_answers
from tests.train.made import blobs, pictures, sentences

torch.set_num_threads(1)


def normed(classes, inputs, dropout=0.0):
    """A module with all that is global in torch: buffers, and dropout that is left on."""
    return nn.Sequential(
        nn.Conv2d(inputs[0], 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout2d(dropout),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(4 * (inputs[1] - 2) * (inputs[2] - 2), classes),
    )


def ensemble(model, pool, **settings):
    torch_settings = {"device": "cpu", "learning_rate": 0.01} if callable(model) else {}
    given = {"members": 3, "snapshots": 3, "epochs": 3, "random_state": 0, **torch_settings}
    fitted = DynSnapClassifier(model, **{**given, **settings})
    half = len(pool) // 2
    fitted.fit(pool.inputs[:half], pool.labels[:half])
    if settings.get("method") == "rolling":
        fitted = fitted.retrain(pool.inputs[half:], pool.labels[half:])
    return fitted


KINDS = {
    "dense stack": lambda: (ensemble(mlp, blobs()), blobs()),
    "dense stack, dropout": lambda: (ensemble(mlp, blobs(), method="mcdropout"), blobs()),
    "convolutions": lambda: (ensemble(cnn, pictures()), pictures()),
    "batch norm": lambda: (ensemble(normed, pictures()), pictures()),
    "dropout": lambda: (ensemble(normed, pictures(), method="mcdropout"), pictures()),
    "text": lambda: (ensemble(fasttext, sentences()), sentences()),
    "text, dropout": lambda: (ensemble(fasttext, sentences(), method="mcdropout"), sentences()),
    "XGBoost": lambda: (ensemble(XGBClassifier(max_depth=2), blobs()), blobs()),
    "LightGBM": lambda: (ensemble(LGBMClassifier(min_child_samples=2), blobs()), blobs()),
    "histograms": lambda: (ensemble(HistGradientBoostingClassifier(), blobs()), blobs()),
    "forest": lambda: (
        ensemble(RandomForestClassifier(n_estimators=3), blobs(), method="extbagging", epochs=1),
        blobs(),
    ),
    "linear": lambda: (
        ensemble(LogisticRegression(), blobs(), method="extbagging", epochs=1),
        blobs(),
    ),
    "rolling": lambda: (
        ensemble(normed, pictures(), method="rolling", selection_holdout=0.3),
        pictures(),
    ),
    "distilled": lambda: (ensemble(normed, pictures()).distill(epochs=2), pictures()),
}

DAILY = ("dense stack, dropout", "dropout", "text", "XGBoost", "forest", "rolling")


@cache
def made(kind):
    """Trained on one thread of torch, whichever test asks first: two sum in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return KINDS[kind]()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("threads", "calls"), [(4, 8), pytest.param(8, 50, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", daily(KINDS, *DAILY))
def test_many_threads_get_the_bits_that_one_gets_while_another_saves(
    kind, threads, calls, tmp_path
):
    estimator, pool = made(kind)
    parts = [pool.inputs[start : start + 3] for start in range(threads)]
    alone = [estimator.predict_proba(part).tobytes() for part in parts]
    done = threading.Event()

    def save():
        while not done.is_set():
            estimator.save(tmp_path / "while.dynsnap")

    saving = threading.Thread(target=save)
    saving.start()
    try:
        wrong = wrong_answers(estimator, parts, alone, calls)
    finally:
        done.set()
        saving.join()
    assert not wrong
    assert [estimator.predict_proba(part).tobytes() for part in parts] == alone
    model = estimator.model if callable(estimator.model) else None
    again = DynSnapClassifier.load(tmp_path / "while.dynsnap", model=model)
    assert [again.predict_proba(part).tobytes() for part in parts] == alone


@pytest.mark.parametrize("kind", daily(KINDS, *DAILY))
def test_threads_may_open_an_estimator_at_the_same_time(kind):
    estimator, pool = made(kind)
    alone = estimator.predict_proba(pool.inputs).tobytes()
    before = torch.get_rng_state()
    fresh = copy.deepcopy(estimator)  # as after unpickling: its learners are yet to be opened
    found = []
    with changing_often():
        together(*[lambda: found.append(fresh.predict_proba(pool.inputs).tobytes())] * 4)
    assert found == [alone] * 4
    assert torch.equal(torch.get_rng_state(), before)


def test_learners_with_and_without_noise_do_not_share_a_module():
    estimator, pool = made("dropout")
    noisy = StoredLearner.from_bytes(estimator._fitted.learners[0])
    quiet = dataclasses.replace(noisy, passes=1)
    weights = [one.to_bytes() for one in (quiet, noisy)]
    apart = [Predictor([one], model=normed, device="cpu")(pool.inputs) for one in weights]
    expected, found = np.concatenate(apart).tobytes(), []
    both = Predictor(weights, model=normed, device="cpu")
    together(*[lambda: found.extend(both(pool.inputs).tobytes() for _ in range(5))] * 4)
    assert found == [expected] * 20


class Lock(nn.Module):
    """A part that cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, value):
        return value


def test_threads_take_turns_with_a_module_that_cannot_be_copied():
    def locked(classes, inputs):
        return nn.Sequential(normed(classes, inputs), Lock())

    pool = pictures()
    estimator = ensemble(locked, pool)
    alone, found = estimator.predict_proba(pool.inputs).tobytes(), []

    def ask():
        found.extend(estimator.predict_proba(pool.inputs).tobytes() for _ in range(5))

    together(*[ask] * 4)
    assert found == [alone] * 20


class Counting(nn.Module):
    """A part that writes to a buffer whenever it is asked."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, value):
        self.calls += 1
        return value * self.calls


def test_predicting_leaves_the_buffers_of_learners_as_they_are():
    def counted(classes, inputs):
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs[0], classes), Counting())

    pool = blobs()
    estimator = ensemble(counted, pool)
    first = estimator.predict_proba(pool.inputs)
    assert (estimator.predict_proba(pool.inputs) == first).all()


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_leaves_what_is_global_as_it_was(kind, two_threads, monkeypatch):
    estimator, pool = made(kind)
    before, limits, state = torch.get_rng_state(), _blas_threads(), np.random.get_state()[1]
    filters, dtype = list(warnings.filters), torch.get_default_dtype()
    monkeypatch.setattr(warnings, "catch_warnings", Catching)
    with torch.enable_grad():
        estimator.predict_proba(pool.inputs)
        copy.deepcopy(estimator).predict_proba(pool.inputs)
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == state).all()
    assert torch.get_num_threads() == 2
    assert _blas_threads() == limits
    assert warnings.filters == filters
    assert torch.get_default_dtype() == dtype
    assert not torch.are_deterministic_algorithms_enabled()


class Catching(warnings.catch_warnings):
    """Fails where it is asked for by dynsnap, because all threads share the filters of warnings."""

    def __enter__(self):
        assert not sys._getframe(1).f_globals["__name__"].startswith("dynsnap")
        return super().__enter__()


@pytest.mark.parametrize("kind", ["batch norm", "dense stack", "text"])
def test_scores_do_not_depend_on_the_modes_of_the_caller(kind):
    estimator, pool = made(kind)
    alone = estimator.predict_proba(pool.inputs).tobytes()
    modes = (torch.autocast("cpu", torch.bfloat16), torch.inference_mode(), torch.device("meta"))
    for mode in modes:
        with mode:
            assert estimator.predict_proba(pool.inputs).tobytes() == alone


class Failing(nn.Module):
    """A part that fails when it is told to, between two layers that have weights."""

    now: ClassVar[bool] = False

    def forward(self, value):
        if self.now:
            raise RuntimeError("in the middle")
        return value


def test_a_prediction_that_fails_in_the_middle_leaves_the_module_as_it_was(monkeypatch):
    def failing(classes, inputs):
        return nn.Sequential(normed(4, inputs), Failing(), nn.Linear(4, classes))

    pool = pictures()
    estimator = ensemble(failing, pool)
    alone = estimator.predict_proba(pool.inputs).tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(Failing, "now", True)
        with pytest.raises(InputError, match="in the middle"):
            estimator.predict_proba(pool.inputs)
    assert estimator.predict_proba(pool.inputs).tobytes() == alone


def test_a_module_without_sizes_is_refused_by_the_name_of_its_weights():
    with pytest.raises(PlanError, match=r"`0\.weight`.*nn\.Linear"):
        ensemble(lambda classes: nn.Sequential(nn.LazyLinear(classes)), blobs())


@dataclass(frozen=True)
class Watching(Standardised):
    """Notes how many threads of torch a thread has that starts in the middle of a prediction."""

    seen: ClassVar[list[int]] = []

    def apply(self, raw, bound, /):
        thread = threading.Thread(target=lambda: self.seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        return super().apply(raw, bound)


def test_threads_that_start_during_a_prediction_have_all_their_threads(two_threads):
    pool = blobs()
    estimator = ensemble(mlp, pool, prepare=Watching())
    Watching.seen.clear()
    estimator.predict_proba(pool.inputs)
    assert set(Watching.seen) == {2}


def test_scores_of_a_stack_do_not_depend_on_the_number_of_threads(two_threads):
    estimator, pool = made("dense stack")
    two = estimator.predict_proba(pool.inputs)
    torch.set_num_threads(1)
    assert (estimator.predict_proba(pool.inputs) == two).all()


@pytest.mark.slow
def test_threads_go_on_when_the_main_thread_has_ended():
    script = """
        import threading, numpy as np, torch
        from dynsnap import DynSnapClassifier
        from dynsnap.train.models import mlp

        torch.set_num_threads(2)
        X, y = np.eye(8, dtype=np.float32), np.arange(8) % 2
        model = DynSnapClassifier(mlp, members=2, snapshots=2, epochs=2, device="cpu").fit(X, y)

        def ask():
            threading.main_thread().join()
            print(model.predict_proba(X).shape)

        threading.Thread(target=ask).start()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.returncode) == ("(8, 2)\n", 0), ended.stderr


@pytest.mark.parametrize("kind", ["dropout", "batch norm", "dense stack", "linear", "XGBoost"])
def test_trainings_on_two_threads_do_not_disturb_each_other(kind):
    alone, pool = made(kind)
    before, limits = torch.get_rng_state(), _blas_threads()
    found = []

    def fit():
        half = len(pool) // 2
        again = clone(alone).fit(pool.inputs[:half], pool.labels[:half])
        found.append(again.predict_proba(pool.inputs).tobytes())

    together(fit, fit, fit)
    assert found == [alone.predict_proba(pool.inputs).tobytes()] * 3
    assert torch.equal(torch.get_rng_state(), before)
    assert _blas_threads() == limits


def _blas_threads():
    return [(one["filepath"], one["num_threads"]) for one in threadpool_info()]
