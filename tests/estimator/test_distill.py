"""One network of a fitted estimator."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from dynsnap import DynSnapClassifier
from dynsnap.errors import InputError, PlanError
from dynsnap.train.models import mlp
from tests.estimator.data import digits
from tests.messages import naming

torch.set_num_threads(1)

SETTINGS = {
    "members": 4,
    "snapshots": 4,
    "epochs": 12,
    "learning_rate": 0.01,
    "prepare": "standardised",
    "device": "cpu",
    "random_state": 0,
}


@pytest.fixture(scope="module")
def generations():
    """Two generations; the second knows the sixes."""
    first, later, _ = digits()
    old = DynSnapClassifier(mlp, **SETTINGS).fit(*first)
    return old, old.retrain(*later)


def alike(a, b, inputs):
    return np.mean(a.predict(inputs) == b.predict(inputs))


def test_a_student_is_one_network_that_says_what_its_teacher_says(generations):
    _, teacher = generations
    _, _, (test, truth) = digits()
    student = teacher.distill(epochs=24)
    assert len(student.members_) == student.rounds_ == 1
    assert (student.cost_, student.generation_) == (2.0, teacher.generation_)
    assert student.classes_.tolist() == teacher.classes_.tolist()
    assert alike(student, teacher, test) > 0.93
    assert student.score(test, truth) > 0.85
    assert len(teacher.members_) == 4, "the teacher stays as it was"


def test_the_same_student_twice_is_the_same_bits_and_another_setting_another(generations):
    _, teacher = generations
    (inputs, _), *_ = digits()
    a, b, other = (
        teacher.distill(weight=weight).predict_proba(inputs[:20]) for weight in (1.0, 1.0, 0.5)
    )
    assert a.tobytes() == b.tobytes() != other.tobytes()


def test_a_second_teacher_with_the_whole_share_is_followed(generations):
    old, new = generations
    _, _, (test, truth) = digits()
    known = truth != "six"
    follower = new.distill(previous=old, share=1.0, epochs=24)
    own = new.distill(epochs=24)
    assert alike(follower, old, test[known]) > alike(own, old, test[known])
    # The sixes, which the old one never saw, are taught by the new one.
    assert follower.score(test[~known], truth[~known]) > 0.8


def test_a_student_may_be_the_second_teacher(generations):
    old, new = generations
    _, _, (test, _) = digits()
    before = old.distill()
    closer, own = new.distill(previous=before, share=0.7), new.distill()
    assert alike(closer, before, test) > alike(own, before, test)


def test_a_student_is_saved_and_loaded_and_leads_to_a_next_generation(generations, tmp_path):
    _, teacher = generations
    (inputs, _), later, _ = digits()
    student = teacher.distill()
    student.save(tmp_path / "student.ensemble")
    loaded = DynSnapClassifier.load(tmp_path / "student.ensemble", model=mlp)
    assert loaded.predict_proba(inputs[:9]).tobytes() == student.predict_proba(inputs[:9]).tobytes()
    assert student.retrain(*later).generation_ == student.generation_ + 1


def test_a_loaded_ensemble_is_distilled_with_the_data_that_is_passed(generations, tmp_path):
    old, _ = generations
    first, *_ = digits()
    old.save(tmp_path / "old.ensemble")
    loaded = DynSnapClassifier.load(tmp_path / "old.ensemble", model=mlp)
    with pytest.raises(InputError, match=r"`distill\(data=\(X, y\)\)`"):
        loaded.distill()
    again, whole = loaded.distill(data=first), old.distill()
    assert again.predict_proba(first[0]).tobytes() == whole.predict_proba(first[0]).tobytes()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"weight": 0}, PlanError, "`weight` must be above 0"),
        ({"temperature": -1}, PlanError, "`temperature` must be positive"),
        ({"epochs": 0.5}, PlanError, "`epochs`"),
        ({"epochs": 0}, PlanError, "`epochs`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(generations, settings, error, message):
    old, _ = generations
    with pytest.raises(error, match=message):
        old.distill(**settings)


def test_other_classes_are_refused(generations):
    old, new = generations
    _, later, _ = digits()
    with pytest.raises(InputError, match=naming("'six'", "ensemble was trained")):
        old.distill(data=later)
    with pytest.raises(InputError, match=naming("`previous`", "class 'six'", "generation before")):
        old.distill(previous=new)
    with pytest.raises(PlanError, match=naming("`share`", "0 and 1", r"1\.2")):
        new.distill(previous=old, share=1.2)


def test_what_cannot_be_distilled_is_refused():
    first, *_ = digits()
    with pytest.raises(NotFittedError):
        DynSnapClassifier(mlp).distill()
    plain = DynSnapClassifier(GaussianNB(), method="extbagging", members=2).fit(*first)
    with pytest.raises(PlanError, match="trainer 'boost' cannot distil"):
        plain.distill()
