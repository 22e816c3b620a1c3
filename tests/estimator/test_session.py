"""A fit under way: stopped and resumed, watched, spread over processes; and what it leaves."""

import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, recall_score
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import DynSnapError, FileError, Interrupted, PlanError, TrainingError
from dynsnap.train.models import mlp
from tests.estimator.data import blobs
from tests.messages import naming

torch.set_num_threads(1)

SMALL = {"members": 4, "snapshots": 2, "epochs": 6, "beta": 1.0, "random_state": 4}
MODELS = {
    "torch": (mlp, {"device": "cpu", "learning_rate": 0.02}),
    "xgboost": (XGBClassifier(), {}),
}


def made(kind="xgboost", **settings):
    model, own = MODELS[kind]
    return DynSnapClassifier(model, **{**SMALL, **own, **settings})


class StopAfter:
    """Stops a training after so many epochs, and counts all of them."""

    def __init__(self, epochs):
        self.left = epochs
        self.seen = 0

    def on_epoch_end(self, event):
        self.seen += 1
        self.left -= 1

    def stopping(self):
        return self.left <= 0


# --- stopped and resumed --------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("epochs", [1, 8])
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(kind, epochs, tmp_path):
    inputs, labels = blobs(3, 90)
    weights = 1.0 + np.arange(90) % 2
    settings = {"selection_metric": "log_loss", "checkpoint": tmp_path / "fit"}
    whole = made(kind, selection_metric="log_loss").fit(inputs, labels, sample_weight=weights)
    stop = StopAfter(epochs)
    with pytest.raises(
        Interrupted, match=naming("`fit`", "go on", re.escape(str(tmp_path / "fit")))
    ):
        made(kind, callbacks=[stop], **settings).fit(inputs, labels, sample_weight=weights)
    rest = StopAfter(1000)
    resumed = made(kind, callbacks=[rest], **settings)
    resumed.fit(inputs, labels, sample_weight=weights)
    assert rest.seen < 12
    assert rest.seen + stop.seen == 12
    np.testing.assert_array_equal(resumed.predict_proba(inputs), whole.predict_proba(inputs))
    done = StopAfter(1000)
    again = made(kind, callbacks=[done], **settings).fit(inputs, labels, sample_weight=weights)
    assert done.seen == 0
    np.testing.assert_array_equal(again.predict_proba(inputs), whole.predict_proba(inputs))


def test_a_retrain_goes_on_as_well(tmp_path):
    inputs, labels = blobs(3, 90)
    first = made().fit(inputs[:60], labels[:60])
    expected = first.retrain(inputs[60:], labels[60:]).predict_proba(inputs)
    first.set_params(checkpoint=tmp_path / "runs", callbacks=[StopAfter(8)])
    with pytest.raises(Interrupted, match="`retrain`"):
        first.retrain(inputs[60:], labels[60:])
    later = first.set_params(callbacks=None).retrain(inputs[60:], labels[60:])
    np.testing.assert_array_equal(later.predict_proba(inputs), expected)


def test_a_fit_without_a_seed_goes_on_with_the_one_that_it_drew(tmp_path):
    inputs, labels = blobs(3, 90)
    settings = {"random_state": None, "checkpoint": tmp_path / "runs"}
    with pytest.raises(Interrupted):
        made(callbacks=StopAfter(8), **settings).fit(inputs, labels)
    rest = StopAfter(1000)
    first = made(callbacks=rest, **settings).fit(inputs, labels)
    assert rest.seen == 4
    again = made(**settings).fit(inputs, labels)
    np.testing.assert_array_equal(first.predict_proba(inputs), again.predict_proba(inputs))
    (tmp_path / "runs/seeds.json").write_text('{"x": -1}')
    with pytest.raises(FileError, match=r"seeds\.json"):
        made(**settings).fit(inputs, labels)


def test_other_settings_and_other_data_are_trained_anew(tmp_path):
    inputs, labels = blobs(3, 90)
    made(checkpoint=tmp_path / "runs").fit(inputs, labels)
    for settings, rows in (({"selection_metric": "f1"}, 90), ({}, 80), ({"random_state": 1}, 90)):
        seen = StopAfter(1000)
        estimator = made(checkpoint=tmp_path / "runs", callbacks=[seen], **settings)
        estimator.fit(inputs[:rows], labels[:rows])
        assert seen.seen == 12


def test_ctrl_c_ends_the_epoch_and_keeps_it(tmp_path):
    inputs, labels = blobs(3, 90)

    def press(event):
        if (event.round, event.epoch) == (0, 2):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=naming("`fit`", "go on")):
        made(callbacks=[press], checkpoint=tmp_path / "runs").fit(inputs, labels)
    assert signal.getsignal(signal.SIGINT) is before
    rest = StopAfter(1000)
    made(callbacks=[rest], checkpoint=tmp_path / "runs").fit(inputs, labels)
    assert rest.seen == 9

    def press_twice(event):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        made(callbacks=[press_twice], checkpoint=tmp_path / "other").fit(inputs, labels)
    assert not str(caught.value)


@pytest.mark.slow
def test_a_fit_that_was_killed_goes_on(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            import numpy as np, torch
            from dynsnap import DynSnapClassifier
            from dynsnap.train.models import mlp
            torch.set_num_threads(1)
            rng = np.random.default_rng(0)
            X, y = rng.standard_normal((80, 4)), np.arange(80) % 2
            def kill(event):
                if sys.argv[1] == "kill" and (event.round, event.epoch) == (1, 2):
                    os.kill(os.getpid(), signal.SIGKILL)
                print(event.round, event.epoch, file=sys.stderr)
            where = None if sys.argv[1] == "whole" else "runs"
            # One round after another, as boosted trees are.
            made = DynSnapClassifier(mlp, members=2, snapshots=1, epochs=4, device="cpu", beta=1.0,
                optimizer=torch.optim.SGD, random_state=0, checkpoint=where, callbacks=[kill])
            print(made.fit(X, y).predict_proba(X[:5]).tolist())
            """
        )
    )

    def run(how):
        return subprocess.run(
            [sys.executable, str(program), how], cwd=tmp_path, capture_output=True, text=True
        )

    assert run("kill").returncode == -signal.SIGKILL
    resumed, whole = run("resume"), run("whole")
    assert resumed.stdout == whole.stdout != ""
    assert len(resumed.stderr.splitlines()) == 4  # the second round alone


def test_a_folder_that_is_no_place_for_rounds_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DynSnapError, match="file"):
        made(checkpoint=tmp_path / "file").fit(*blobs(2, 60))


# --- watched --------------------------------------------------------------------------------


def test_callbacks_are_functions_or_objects(tmp_path):
    inputs, labels = blobs(2, 60)
    events, told = [], []

    class Told:
        def on_fit_begin(self, estimator):
            told.append(("begin", hasattr(estimator, "classes_")))

        def on_fit_end(self, estimator):
            told.append(("end", len(estimator.members_)))

    made(callbacks=[events.append, Told()]).fit(inputs, labels)
    assert [(event.round, event.epoch) for event in events] == [
        (number, epoch) for number in (0, 1) for epoch in range(6)
    ]
    assert {(event.generation, event.epochs) for event in events} == {(1, 6)}
    assert told == [("begin", False), ("end", 4)]
    with pytest.raises(Interrupted, match=naming("`fit`", "`checkpoint`")):
        made(callbacks=lambda event: event.epoch == 1).fit(inputs, labels)


@pytest.mark.parametrize("kind", MODELS)
def test_an_error_of_a_callback_is_one_of_the_callback(kind):
    with pytest.raises(TrainingError, match=naming("callback", "epoch 0", "ZeroDivisionError")):
        made(kind, callbacks=[lambda event: 1 / event.epoch]).fit(*blobs(2, 60))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"callbacks": [3]}, ["`callbacks`", "on_epoch_end", "3"]),
        ({"callbacks": [StopAfter]}, ["`callbacks`", "StopAfter"]),
        ({"verbose": -1}, ["`verbose`", "-1"]),
        ({"verbose": "much"}, ["`verbose`", "much"]),
        ({"n_jobs": 0}, ["`n_jobs`", "0"]),
        ({"n_jobs": "all"}, ["`n_jobs`", "all"]),
        ({"checkpoint": True}, ["`checkpoint`", "folder", "True"]),
        ({"preset": "fast"}, ["fast", "quick", "paper"]),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, parts):
    with pytest.raises(PlanError, match=naming(*parts)):
        made(**settings).fit(*blobs(2, 60))


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}, {"COLUMNS": "20"}])
def test_progress_goes_to_standard_error(environment, capsys, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for verbose, lines in ((0, 0), (1, 2), (2, 12)):
        made(verbose=verbose).fit(*blobs(2, 60))
        out, err = capsys.readouterr()
        assert out == ""
        assert len([line for line in err.splitlines() if "accuracy" in line]) == lines


# --- what a fit leaves ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_history_has_every_epoch_and_says_what_became_of_it(kind):
    estimator = made(kind, selection_metric="balanced_accuracy").fit(*blobs(3, 90))
    history = estimator.history_
    assert list(history["epoch"]) == list(range(6)) * 2
    assert history["snapshot"].sum() == 4
    assert history["members"].sum() == 4
    for member in estimator.members_:
        (row,) = history[
            (history["round"] == member.round) & (history["epoch"] == member.epoch)
        ].to_dict("records")
        assert row["accuracy"] == pytest.approx(member.accuracy)
        assert row["members"] == 1
    assert history["rate"].max() == 1


def test_history_needs_no_pandas(monkeypatch):
    estimator = made().fit(*blobs(2, 60))
    expected = estimator.history_
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = estimator.history_
    assert table.column_names == list(expected.columns)
    assert table.to_pydict() == expected.to_dict("list")


@pytest.mark.parametrize("kind", MODELS)
def test_each_member_is_a_classifier_of_its_own(kind):
    inputs, labels = blobs(3, 90)
    estimator = made(kind).fit(inputs, labels)
    each = estimator.estimators_
    assert [len(one.members_) for one in each] == [1] * 4
    found = np.mean([one.predict_proba(inputs) for one in each], axis=0)
    np.testing.assert_allclose(found, estimator.predict_proba(inputs), atol=1e-6)
    assert set(each[0].predict(inputs)) <= set(estimator.classes_)


def test_members_that_were_carried_over_keep_to_the_classes_that_they_know():
    inputs, labels = blobs(3, 120)
    few = labels[:80] != "c"
    rolling = DynSnapClassifier(
        HistGradientBoostingClassifier(max_depth=2),
        method="rolling",
        members=4,
        snapshots=2,
        epochs=4,
        random_state=0,
    ).fit(inputs[:80][few], labels[:80][few])
    later = rolling.retrain(inputs[80:], labels[80:])
    for member, one in zip(later.members_, later.estimators_, strict=True):
        knows = (one.predict_proba(inputs)[:, 2] > 0).any()
        assert knows == (member.generation == 2)


def test_logarithms_of_scores():
    inputs, labels = blobs(2, 60)
    linear = DynSnapClassifier(LogisticRegression(), method="extbagging", members=1, epochs=1)
    linear.fit(inputs, labels)
    np.testing.assert_array_equal(
        linear.predict_log_proba(inputs), np.log(linear.predict_proba(inputs))
    )


# --- presets and processes ------------------------------------------------------------------


def test_presets_fill_in_what_is_not_given(tmp_path):
    inputs, labels = blobs(2, 60)
    quick = DynSnapClassifier(XGBClassifier(), preset="quick", beta=1.0, random_state=0)
    quick.fit(inputs, labels)
    assert (len(quick.members_), len(quick.history_), quick.cost_) == (6, 60, 2)
    shorter = DynSnapClassifier(XGBClassifier(), preset="quick", epochs=6, beta=1.0)
    assert len(shorter.fit(inputs, labels).history_) == 12
    quick.save(tmp_path / "quick.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "quick.dynsnap", model=XGBClassifier())
    assert (loaded.members, loaded.snapshots, loaded.epochs) == (6, 3, 30)
    with pytest.raises(AttributeError, match="file"):
        _ = loaded.history_
    usual = DynSnapClassifier(XGBClassifier())
    assert [usual._size(name) for name in ("members", "snapshots", "epochs")] == [20, 10, 200]


@pytest.mark.slow
def test_processes_train_the_same_members(tmp_path):
    inputs, labels = blobs(3, 90)
    spread = made("torch", n_jobs=2, checkpoint=tmp_path / "runs").fit(inputs, labels)
    alone = made("torch").fit(inputs, labels)
    np.testing.assert_array_equal(spread.predict_proba(inputs), alone.predict_proba(inputs))
    scorer = make_scorer(recall_score, average="macro")
    trees = made(n_jobs=2, selection_metric=scorer, verbose=0).fit(inputs, labels)
    same = made(selection_metric=scorer).fit(inputs, labels)
    np.testing.assert_array_equal(trees.predict_proba(inputs), same.predict_proba(inputs))


@pytest.mark.slow
def test_processes_do_not_run_the_script_again(tmp_path):
    script = tmp_path / "script.py"  # without a guard
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from sklearn.naive_bayes import GaussianNB
            from dynsnap import DynSnapClassifier
            print("runs", file=sys.stderr)
            X, y = np.random.default_rng(0).random((60, 3)), np.arange(60) % 2
            made = DynSnapClassifier(GaussianNB(), method="extbagging", members=2, n_jobs=2)
            print(made.fit(X, y).rounds_)
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.stdout == "2\n", ended.stderr
    assert ended.stderr.count("runs") == 1
