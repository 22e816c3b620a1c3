"""What students are taught, and what is left of their teachers."""

import dataclasses
import re

import numpy as np
import pytest

from dynsnap import predictions, study
from dynsnap.data import Pool, from_generations
from dynsnap.ensemble import combine, method
from dynsnap.errors import FileError, Interrupted, PlanError
from dynsnap.predictions import Predictions
from dynsnap.store import RunFolder
from dynsnap.study import DistillPlan, RetainedGain
from dynsnap.study.distilling._distill import LearnerPredictions, retained_gains, table_of
from dynsnap.study.distilling._students import DistillationRunner
from dynsnap.testing import CentroidTrainer
from dynsnap.train import TorchTrainer
from dynsnap.train.models import mlp
from tests.messages import naming

TEXT = """
[study]
resamples = 10
keep = "weights"

[training]
epochs = 4

[methods]
names = ["dynsnap-cyc"]
members = 3
snapshots = 2
combinations = ["average"]
"""


def made_stream():
    """Two generations of points around three centres; the third class comes late."""
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], 40)
    inputs = (labels[:, None] * 2 + rng.normal(size=(120, 4))).astype(np.float32)
    pool = Pool(name="made", inputs=inputs, labels=labels, classes=tuple("abc"), ids=np.arange(120))
    early = np.concatenate([np.arange(30), np.arange(40, 70)])
    return from_generations(pool, [early, np.arange(120)], test=pool, validation=0.25)


class Recorder(TorchTrainer):
    """Notes what it is asked to teach."""

    lessons: list = []  # noqa: RUF012 (shared by the copies that teaching makes)

    def taught(self, lesson, *, checkpoints=None):
        self.lessons.append(lesson)
        return super().taught(lesson, checkpoints=checkpoints)


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """A plan, its data, a trainer, and a store in which its ensembles lie."""
    folder = tmp_path_factory.mktemp("school")
    (folder / "study.toml").write_text(TEXT)
    plan = study.read_study(folder / "study.toml")
    stream = made_stream()
    trainer = Recorder(stream, model=mlp, batch_size=16, learning_rate=0.01, device="cpu")
    store = RunFolder(folder / "run")
    teachers = list(
        study.train_ensembles(
            plan, plan.methods[0], [1, 2], stream=stream, trainer=trainer, store=store
        )
    )
    yield plan, stream, trainer, store, teachers
    store.close()


def distilled(school, generations=(1, 2), **settings):
    plan, stream, trainer, store, _ = school
    trainer.lessons.clear()
    how = DistillPlan(method=plan.methods[0], epochs=4, **settings)
    found = study.distill(
        plan,
        how,
        generations,
        stream=stream,
        trainer=trainer,
        store=store,
        folder=store.path,
    )
    return found, list(trainer.lessons)


def says(school, generation):
    """What the ensemble of a generation says about every row of the pool."""
    _, stream, trainer, _, teachers = school
    made = teachers[generation - 1]
    scores = trainer.score(made.learners, stream.pool.inputs)[made.positions]
    return combine(scores, how="average").astype(np.float32)


def test_a_student_is_taught_what_the_ensemble_says_about_its_generation(school):
    _, stream, *_ = school
    _, lessons = distilled(school, weight=0.8, temperature=3.0)
    assert [(one.weight, one.temperature) for one in lessons] == [(0.8, 3.0)] * 2
    for generation, lesson in enumerate(lessons, start=1):
        rows = stream.generations[generation - 1]
        np.testing.assert_allclose(lesson.scores[rows], says(school, generation)[rows], atol=1e-6)
        assert lesson.taught.sum() == len(rows)


def test_a_second_teacher_with_the_whole_share_is_followed_where_it_knows_the_class(school):
    _, stream, *_ = school
    _, (first, second) = distilled(school, second="previous", share=1.0)
    known = stream.pool.labels < 2
    np.testing.assert_allclose(second.scores[known], says(school, 1)[known], atol=1e-6)
    np.testing.assert_allclose(second.scores[~known], says(school, 2)[~known], atol=1e-6)
    rows = stream.generations[0]
    np.testing.assert_allclose(first.scores[rows], says(school, 1)[rows], atol=1e-6)


def test_a_share_of_teachers_is_their_mixture(school):
    _, stream, *_ = school
    _, (_, lesson) = distilled(school, second="previous", share=0.3)
    known = stream.pool.labels < 2
    mixed = 0.7 * says(school, 2) + 0.3 * says(school, 1)
    np.testing.assert_allclose(lesson.scores[known], mixed[known], atol=1e-6)


def test_the_student_before_may_be_the_second_teacher(school):
    _, stream, trainer, *_ = school
    found, (_, lesson) = distilled(school, second="student", share=1.0)
    said = trainer.score(found.students[0].learners, stream.pool.inputs)[0]
    known = stream.pool.labels < 2
    np.testing.assert_allclose(lesson.scores[known], said[known], atol=1e-6)


@pytest.mark.slow
def test_one_generation_needs_no_other_unless_a_second_teacher_is_of_it(school):
    for settings, lessons in (({}, 1), ({"second": "previous"}, 1), ({"second": "student"}, 2)):
        found, taught = distilled(school, generations=[2], **settings)
        assert (found.generations, len(found.students)) == ((2,), 1)
        assert len(taught) == lessons
        assert "consistency" not in {row.metric for row in found.rows}


@pytest.mark.slow
def test_the_same_teachers_have_the_same_name_and_others_another(school):
    names = [distilled(school, **settings)[1][1].name for settings in ({}, {}, {"share": 0.5})]
    assert len(set(names)) == 1  # a share of nobody changes nothing
    others = [distilled(school, second="previous", share=share)[1][1].name for share in (0.3, 0.31)]
    assert len({names[0], *others}) == 3


def test_students_cost_their_teachers_too(school):
    found, _ = distilled(school)
    cost = {row.method: row.cost for row in found.rows}
    assert cost["distilled-dynsnap-cyc"] == cost["dynsnap-cyc"] + 1
    assert found.networks == {"dynsnap-cyc": 3, "distilled-dynsnap-cyc": 1}
    assert found.retained == ()  # there is no single learner to compare with


def test_a_control_is_the_student_without_its_teacher(school):
    found, lessons = distilled(school, control=True)
    assert len(lessons) == 2
    assert found.networks == {"dynsnap-cyc": 3, "distilled-dynsnap-cyc": 1, "untaught": 1}
    cost = {row.method: row.cost for row in found.rows}
    assert cost["untaught"] == 1
    assert {one.over for one in found.retained} == {"untaught"}
    written = [path for path in found.predictions if "-teacher=none-" in path.name]
    told = {row.metric: row.value for row in found.rows if row.method == "untaught"}
    metrics = {}
    for path in written:
        name = f"{path.parent.name} {re.search(r'-g(.)', path.name)[1]}"
        read = predictions.read(path)
        metrics[name] = np.mean(read.labels == read.truth)
    assert metrics.keys() == {"predictions 1", "predictions 2", "late 1", "late 2"}
    assert metrics["predictions 1"] == pytest.approx(told["accuracy_1"])
    assert metrics["predictions 2"] == pytest.approx(told["accuracy_2"])
    assert metrics["late 2"] == pytest.approx(told["late_accuracy"])
    # A student that is replaced takes its control along, and no other.
    distilled(school, generations=[2])
    assert [path for path in written if "-g1" not in path.name and path.exists()] == []
    assert all(path.exists() for path in written if "-g1" in path.name)
    distilled(school, second="previous")  # students of another name
    assert all(path.exists() for path in written if "-g1" in path.name)


def test_no_control_of_earlier_students_is_left_beside_new_ones(school, monkeypatch):
    """Not even where the command is stopped before it has trained the new controls."""
    found, _ = distilled(school, control=True)
    written = [path for path in found.predictions if "-teacher=none-" in path.name]

    def stopped(*_):
        raise Interrupted("Stopped.")

    monkeypatch.setattr(DistillationRunner, "untaught", stopped)
    with pytest.raises(Interrupted):
        distilled(school, control=True)
    assert written and not any(path.exists() for path in written)


def test_ensembles_that_the_store_lacks_are_not_trained(school, tmp_path):
    plan, stream, trainer, *_ = school
    how = DistillPlan(method=plan.methods[0], epochs=4)
    with (
        RunFolder(tmp_path) as empty,
        pytest.raises(FileError, match=naming("dynsnap-cyc", "weights")),
    ):
        study.distill(plan, how, [1], stream=stream, trainer=trainer, store=empty, folder=tmp_path)
    assert not list((tmp_path / "rounds").iterdir())


def test_a_trainer_that_cannot_teach_is_refused(school, tmp_path):
    plan, stream, *_ = school
    how = DistillPlan(method=plan.methods[0], epochs=4)
    with RunFolder(tmp_path) as store, pytest.raises(PlanError, match=naming("networks", "distil")):
        study.distill(
            plan,
            how,
            [1],
            stream=stream,
            trainer=CentroidTrainer(stream),
            store=store,
            folder=tmp_path,
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 1.5}, naming("`share`", "0 and 1", r"1\.5")),
        ({"second": "older"}, "no second teacher 'older'"),
        ({"combination": "mean"}, "no combination 'mean'"),
    ],
)
def test_plans_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        DistillPlan(method=method("dynsnap-cyc", epochs=20), **settings)


def test_no_gain_has_no_share_that_is_left():
    assert (
        RetainedGain(
            over="singlebase", metric="accuracy", single=0.9, student=0.95, teacher=0.9
        ).share
        is None
    )


def said(name, *labels):
    """A learner with these labels, one row per generation, where the truth is all zeros."""
    test = [
        Predictions(
            ids=np.arange(4), classes=("a", "b"), scores=np.eye(2)[np.array(row)], truth=["a"] * 4
        )
        for row in labels
    ]
    return LearnerPredictions(name=name, networks=1, cost=1.0, test=test)


def test_what_is_left_is_counted_as_the_paper_counts():
    teacher = said("many", [0, 0, 0, 0], [0, 0, 0, 0])
    student = dataclasses.replace(
        said("one", [0, 0, 0, 1], [0, 0, 1, 1]), teacher=teacher.test, seconds=2.0
    )
    single = said("single", [0, 0, 1, 1], [1, 1, 1, 0])
    rows = table_of([[teacher, student, single]], "average", generations=[1, 2], resamples=5)
    value = {(row.method, row.metric): row.value for row in rows}
    assert value["one", "accuracy"] == 5 / 8
    assert value["one", "accuracy_2"] == 2 / 4
    assert value["one", "consistency"] == 3 / 4
    assert value["one", "fidelity"] == 5 / 8
    left = {
        one.metric: one.share
        for one in retained_gains(rows, over=["single", "nobody"], student="one", teacher="many")
    }
    assert left["accuracy"] == pytest.approx((5 / 8 - 3 / 8) / (1 - 3 / 8), abs=1e-6)
    assert left["consistency"] == pytest.approx((3 / 4 - 1 / 4) / (1 - 1 / 4), abs=1e-6)
