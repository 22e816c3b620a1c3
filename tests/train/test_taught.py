"""Students: rounds that learn from the scores of a teacher."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional

from dynsnap.ensemble import SoftTargets, round_key
from dynsnap.errors import Interrupted, PlanError
from dynsnap.train import TorchTrainer
from dynsnap.train._alone import AloneStepper
from dynsnap.train._bags import BagsStepper
from dynsnap.train._distillation import RoundTargets
from dynsnap.train._stacked import StackedStepper
from dynsnap.train.models import fasttext, mlp
from tests.messages import naming
from tests.train.made import Memory, Watcher, blobs, same, sentences, spec, stream_of

POOL = blobs()
STUDENT = {"epochs": 30, "snapshots": 1, "generation": 2}


def trainer(**settings):
    return TorchTrainer(
        stream_of(POOL),
        model=mlp,
        batch_size=32,
        learning_rate=0.02,
        device="cpu",
        **settings,
    )


def contrary():
    """Scores of a teacher that is always wrong, and always sure."""
    return np.eye(3, dtype=np.float32)[(POOL.labels + 1) % 3]


def scores_of(done):
    return done.scores["test"][0]


def stepper_of(way, asked):
    return way._round_groups.stepper(way._round_groups.of(asked), [asked])


def taught(targets, **settings):
    (done,) = trainer(**settings).taught(targets).train([spec(**STUDENT)])
    return done


def test_a_student_of_one_network_approaches_it():
    base = trainer()
    (teacher,) = base.train([spec(**STUDENT, seed=5)])
    said = base.score(teacher.weights, POOL.inputs)[0]
    (student,) = base.taught(SoftTargets(scores=said)).train([spec(**STUDENT)])
    (untaught,) = base.train([spec(**STUDENT)])
    near, far = (np.abs(scores_of(one) - scores_of(teacher)).mean() for one in (student, untaught))
    assert near < 0.7 * far
    assert (scores_of(student).argmax(1) == said.argmax(1)).mean() > 0.95


def test_a_student_learns_what_it_is_taught_and_not_the_labels():
    student = taught(SoftTargets(scores=contrary()))
    assert (scores_of(student).argmax(1) == contrary().argmax(1)).mean() > 0.6
    assert student.accuracy[0] < 0.4  # which the labels still measure


def test_labels_have_what_the_teacher_leaves_them():
    mostly = taught(SoftTargets(scores=contrary(), weight=0.1))
    assert mostly.accuracy[0] > 0.6


def test_one_hot_scores_teach_what_labels_teach():
    labels = np.eye(3, dtype=np.float32)[POOL.labels]
    (plain,) = trainer().train([spec(**STUDENT)])
    student = taught(SoftTargets(scores=labels))
    np.testing.assert_allclose(scores_of(student), scores_of(plain), atol=1e-4)


def test_the_loss_is_the_paper_of_hinton_s():
    rng = np.random.default_rng(0)
    said = rng.dirichlet(np.ones(3), len(POOL))
    targets = SoftTargets(scores=said, weight=0.7, temperature=3.0)
    lesson = RoundTargets.of(targets, POOL, torch.device("cpu"))
    logits = torch.from_numpy(rng.normal(size=(len(POOL), 3)).astype(np.float32))
    labels = torch.from_numpy(POOL.labels)
    soft = torch.from_numpy(said ** (1 / 3) / (said ** (1 / 3)).sum(1, keepdims=True)).float()
    hard = functional.cross_entropy(logits, labels)
    wanted = 0.7 * 9 * functional.cross_entropy(logits / 3, soft) + 0.3 * hard
    found = lesson.loss(logits, labels, torch.arange(len(POOL)), functional.cross_entropy)
    torch.testing.assert_close(found, wanted)


def test_the_same_student_twice_is_the_same_bits():
    targets = SoftTargets(scores=contrary() * 0.7 + 0.1, temperature=2.0, weight=0.5)
    assert same(taught(targets), taught(targets))


def test_a_student_that_was_stopped_goes_on_to_the_same_bits():
    targets = SoftTargets(scores=contrary() * 0.7 + 0.1)
    memory = Memory()
    watcher = Watcher(after=11)
    stopped = trainer(monitor=watcher, checkpoint_every=0).taught(targets, checkpoints=memory)
    with pytest.raises(Interrupted):
        list(stopped.train([spec(**STUDENT)]))
    assert memory.kept
    watcher.after = None
    (resumed,) = stopped.train([spec(**STUDENT)])
    assert [epoch for _, epoch, _ in watcher.seen] == list(range(30))
    assert same(resumed, taught(targets))


def test_another_lesson_is_another_key():
    base = trainer()
    targets = SoftTargets(scores=contrary())
    others = [
        SoftTargets(scores=contrary()[:, ::-1]),
        dataclasses.replace(targets, weight=0.5),
        dataclasses.replace(targets, temperature=2.0),
        dataclasses.replace(targets, name="by name"),
    ]
    one = spec(**STUDENT)
    keys = {round_key(base, one), *(round_key(base.taught(x), one) for x in [targets, *others])}
    assert len(keys) == 6
    assert round_key(base.taught(targets), one) == round_key(trainer().taught(targets), one)


def test_teachers_known_by_name_have_the_key_of_their_name():
    base, one = trainer(), spec(**STUDENT)
    a, b = (SoftTargets(scores=rows, name="they") for rows in (contrary(), contrary() * 0.7 + 0.1))
    assert round_key(base.taught(a), one) == round_key(base.taught(b), one)


def test_a_trainer_is_as_it_was_after_teaching():
    base = trainer()
    before = base.fingerprint
    base.taught(SoftTargets(scores=contrary()))
    assert base.fingerprint == before
    assert same(*(next(iter(one.train([spec()]))) for one in (base, trainer())))


@pytest.mark.parametrize("settings", [{}, {"weight": 0.6, "temperature": 3.0}])
def test_a_student_on_bags_of_words_is_the_student_alone(settings):
    pool = sentences()
    scores = np.random.default_rng(0).dirichlet(np.ones(2), len(pool)).astype(np.float32)
    base = {"model": fasttext, "learning_rate": 0.05, "batch_size": 16, "device": "cpu"}
    one = spec(generation=2, epochs=4)
    bags, alone = (
        TorchTrainer(stream_of(pool), loss=loss, **base).taught(
            SoftTargets(scores=scores, **settings)
        )
        for loss in (None, functional.cross_entropy)
    )
    assert isinstance(stepper_of(bags, one), BagsStepper)
    (a,), (b,) = bags.train([one]), alone.train([one])
    np.testing.assert_allclose(a.scores["test"], b.scores["test"], atol=1e-4)


def test_rows_that_nobody_scored_are_not_needed_where_nobody_trains_on_them():
    scores = contrary()
    scores[75:] = np.nan  # the second half arrives in generation 2
    student = trainer().taught(SoftTargets(scores=scores))
    assert len(list(student.train([spec(generation=1)]))) == 1
    with pytest.raises(PlanError, match=naming("round 0", "75 rows", "teacher")):
        student.train([spec(generation=2)])


def test_a_lesson_for_other_rows_or_classes_is_refused():
    with pytest.raises(PlanError, match=naming("150 rows", "blobs", "3 classes", r"\(10, 3\)")):
        trainer().taught(SoftTargets(scores=contrary()[:10]))


@pytest.mark.parametrize("settings", [{}, {"weight": 0.6, "temperature": 3.0}])
def test_a_student_in_a_stack_is_the_student_alone(settings):
    targets = SoftTargets(scores=contrary() * 0.7 + 0.1, **settings)
    stacked, alone = (
        trainer().taught(targets),
        trainer(loss=functional.cross_entropy).taught(targets),
    )
    one = spec(generation=2, epochs=3)
    assert isinstance(stepper_of(stacked, one), StackedStepper)
    assert isinstance(stepper_of(alone, one), AloneStepper)
    (a,), (b,) = stacked.train([one]), alone.train([one])
    np.testing.assert_allclose(a.scores["test"], b.scores["test"], atol=1e-4)
