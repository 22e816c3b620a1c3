import copy
import pickle

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits
from xgboost import XGBClassifier, XGBRFClassifier

from dynsnap import seeds
from dynsnap.boost import BoostTrainer, score
from dynsnap.data import Pool, Stream, split
from dynsnap.ensemble import Recipe, RoundSpec, Schedule, grow, method
from dynsnap.errors import FileError, InputError, Interrupted, PlanError, TrainingError
from dynsnap.testing import check_trainer
from tests.boost.streams import digits
from tests.messages import naming

CYCLIC = Recipe(schedule=Schedule("cyclic"), epochs=12, snapshots=3, selection="window")
STEP = Recipe(schedule=Schedule("step"), epochs=12, snapshots=4)
ONE = Recipe(schedule=Schedule("constant"), epochs=3, snapshots=1)

MANY = {
    "xgboost": XGBClassifier(max_depth=3, subsample=0.7, learning_rate=0.2),
    "lightgbm": LGBMClassifier(num_leaves=7, subsample=0.7, subsample_freq=1),
    "hist": HistGradientBoostingClassifier(max_depth=3, max_bins=32),
    "gradient": GradientBoostingClassifier(max_depth=2, subsample=0.7),
    "mlp": MLPClassifier((16,), learning_rate_init=0.01),
    "mlp-sgd": MLPClassifier((16,), solver="sgd", momentum=0.0, learning_rate_init=0.01),
    "sgd": SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.001),
}
SINGLE = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "forest": RandomForestClassifier(n_estimators=5, n_jobs=2),
    "ada": AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=5),
    "calibrated": CalibratedClassifierCV(LinearSVC(max_iter=200), cv=2),
    "stack": StackingClassifier([("bayes", GaussianNB(var_smoothing=1e-3))], cv=2),
    "bayes": GaussianNB(var_smoothing=1e-3),
    "lbfgs": MLPClassifier((8,), solver="lbfgs", max_iter=300),
}
ALL = {name: (model, CYCLIC) for name, model in MANY.items()} | {
    name: (model, ONE) for name, model in SINGLE.items()
}


def train(model, recipe=CYCLIC, generation=2, index=0, **options):
    trainer = BoostTrainer(digits(), model=model, **options)
    (done,) = trainer.train([RoundSpec(recipe=recipe, generation=generation, index=index, seed=5)])
    return done


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "sgd", "forest"])
def test_the_contract_of_a_trainer_is_kept(name):
    model, recipe = ALL[name]

    def make(monitor, checkpoints):
        return BoostTrainer(digits(), model=model, monitor=monitor, checkpoints=checkpoints)

    check_trainer(make, stream=digits(), recipes=[recipe], score_tolerance=0)


def rows_of(spec):
    return split(digits(), spec.generation, seeds.generator(spec.seed, spec.canonical(), "split"))


@pytest.fixture(scope="module", params=ALL)
def case(request):
    model, recipe = ALL[request.param]
    return model, recipe, train(copy.deepcopy(model), recipe)


def test_a_round_has_a_snapshot_for_each_member_and_learns(case):
    _, recipe, done = case
    assert len(done.weights) == recipe.snapshots
    assert len(done.curve) == recipe.epochs
    assert (done.accuracy == done.curve[done.epochs]).all()
    assert done.accuracy.max() > 0.75
    assert done.scores["test"].shape == (recipe.snapshots, 240, 4)
    assert np.allclose(done.scores["test"].sum(axis=2), 1, atol=1e-5)


@pytest.mark.slow
def test_the_same_spec_gives_the_same_round_bit_by_bit(case):
    model, recipe, done = case
    again = train(model, recipe)
    assert again.weights == done.weights
    assert again.curve.tolist() == done.curve.tolist()
    for name, scores in done.scores.items():
        assert (again.scores[name] == scores).all()


@pytest.mark.slow
def test_another_round_is_another_learner():
    for name in ("xgboost", "mlp"):
        first, second = (train(MANY[name], STEP, index=index) for index in (0, 1))
        assert not (first.scores["test"] == second.scores["test"]).all()


def test_accuracies_are_those_of_the_stored_snapshots_on_the_validation_rows(case):
    _, _, done = case
    _, validation = rows_of(done.spec)
    pool = digits().pool
    members = score(done.weights, pool.inputs[validation], classes=4)
    found = (members.argmax(axis=2) == pool.labels[validation]).mean(axis=1)
    assert found.tolist() == done.accuracy.tolist()


def test_scores_are_those_of_the_stored_snapshots(case):
    model, _, done = case
    trainer = BoostTrainer(digits(), model=model)
    members = trainer.score(done.weights, digits().evaluation["test"].inputs)
    assert (members == done.scores["test"]).all()


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "hist", "gradient"])
def test_prefixes_equal_a_slow_prediction_of_every_prefix(name):
    """The reference keeps every iteration, and each is predicted from its first tree on."""
    everything = Recipe(schedule=Schedule("cyclic"), epochs=5, snapshots=5, selection="window")
    done = train(MANY[name], everything)
    train_rows, validation = rows_of(done.spec)
    pool = digits().pool
    seed = seeds.number(5, done.spec.canonical(), "model") % 2**31
    inputs, labels = pool.inputs[train_rows], pool.labels[train_rows]
    for iterations in range(1, 6):
        slow = slow_prefix(name, inputs, labels, iterations, seed, pool.inputs[validation])
        member = score([done.weights[iterations - 1]], pool.inputs[validation], classes=4)[0]
        assert (member == slow.astype(np.float32)).all()
        accuracy = np.mean(member.argmax(axis=1) == pool.labels[validation])
        assert done.curve[iterations - 1] == accuracy


def slow_prefix(name, inputs, labels, iterations, seed, held_out):
    """Probabilities of a booster that was trained for so many iterations, and no more."""
    model = copy.deepcopy(MANY[name])
    with threadpool_limits(limits=1):
        if name in ("hist", "gradient"):
            # Scikit-learn derives further seeds from the first, the same for every length.
            count = {"hist": "max_iter", "gradient": "n_estimators"}[name]
            own = seeds.number(seed, "random_state") % 2**31
            model.set_params(**{count: iterations, "random_state": own})
            if name == "hist":
                model.set_params(early_stopping=False)
            return model.fit(inputs, labels).predict_proba(held_out)
        # A training of its own for every iteration. W = 1 here: all of them have the full rate.
        booster = None
        for iteration in range(iterations):
            number = seeds.number(seed, iteration) % 2**31
            fresh = copy.deepcopy(model).set_params(n_estimators=1, n_jobs=1)
            if name == "xgboost":
                fresh.set_params(random_state=number).fit(inputs, labels, xgb_model=booster)
                booster = fresh.get_booster()
            else:
                bag = seeds.number(seed, f"bag {iteration}") % 2**31
                fresh.set_params(deterministic=True, force_row_wise=True, verbosity=-1)
                fresh.set_params(random_state=seed, bagging_seed=bag)
                booster = fresh.fit(inputs, labels, init_model=booster).booster_
        return fresh.predict_proba(held_out)


@pytest.mark.parametrize("name", ["mlp", "sgd"])
def test_snapshots_of_epochs_equal_trainings_that_end_there(name):
    """Top snapshots are copies of the learner as it was, not as it became."""
    done = train(MANY[name], Recipe(schedule=Schedule("constant"), epochs=6, snapshots=6))
    for epoch, member in zip(done.epochs, done.scores["test"], strict=True):
        _, validation = rows_of(done.spec)
        weights = done.weights[list(done.epochs).index(epoch)]
        found = score([weights], digits().pool.inputs[validation], classes=4)[0]
        accuracy = np.mean(found.argmax(axis=1) == digits().pool.labels[validation])
        assert accuracy == done.curve[epoch]
        assert not any(
            (member == other).all()
            for at, other in zip(done.epochs, done.scores["test"], strict=True)
            if at != epoch
        )


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "mlp", "mlp-sgd", "sgd"])
def test_the_schedule_drives_the_learning_rate(name):
    """With a rate of (almost) zero after the first epoch, nothing is learnt any more."""
    still = Recipe(schedule=Schedule("custom", (1.0, *[0.0] * 7)), epochs=8, snapshots=8)
    done = train(MANY[name], still)
    assert np.ptp(done.scores["test"], axis=0).max() < 1e-5
    moving = train(MANY[name], Recipe(schedule=Schedule("constant"), epochs=8, snapshots=8))
    assert np.ptp(moving.scores["test"], axis=0).max() > 0.1


def test_windows_keep_their_best_iteration_and_top_the_best_of_all():
    cyclic = train(MANY["xgboost"], CYCLIC)
    for window, epoch in enumerate(cyclic.epochs):
        part = cyclic.curve[window * 4 : window * 4 + 4]
        assert epoch == window * 4 + int(np.argmax(part))
    step = train(MANY["xgboost"], STEP)
    best = sorted(range(12), key=lambda epoch: (-step.curve[epoch], epoch))[:4]
    assert step.epochs.tolist() == best


@pytest.mark.slow
def test_classes_that_a_generation_lacks_get_a_column_of_zeros(case):
    model, recipe, _ = case
    done = train(model, recipe, generation=1)
    assert done.scores["test"].shape[2] == 4
    assert (done.scores["test"][:, :, 3] == 0).all()
    assert (done.scores["test"].argmax(axis=2) == 3).sum() == 0
    assert np.allclose(done.scores["test"].sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("name", [*MANY, "logistic"])
def test_two_classes_give_two_columns(name):
    pool = digits().pool
    rows = np.flatnonzero(pool.labels < 2)
    stream = Stream(
        pool=pool.take(rows),
        generations=(np.arange(len(rows)),),
        validation=(np.array([20, 20, 0, 0]),),
        evaluation={"test": pool.take(rows)},
    )
    model, recipe = ALL[name]
    (done,) = BoostTrainer(stream, model=model).train([RoundSpec(recipe=recipe, generation=1)])
    assert done.accuracy.max() > 0.9
    assert (done.scores["test"][:, :, 2:] == 0).all()
    best = done.scores["test"][int(done.accuracy.argmax())]
    assert np.mean(best.argmax(axis=1) == pool.labels[rows]) > 0.9


def test_the_paper_s_methods_run_on_boosted_trees():
    trainer = BoostTrainer(digits(), model=MANY["lightgbm"])
    for name in ("singlebase", "extbagging", "snapshot", "dynsnap-cyc", "dynsnap-step"):
        plan = method(name, epochs=4, members=4, snapshots=2)
        members = grow(plan.plan, trainer, recipe=plan.recipe, generation=2)
        assert len(members) == (1 if name == "singlebase" else 4)


def test_the_number_that_stands_for_missing_values_is_kept():
    model = XGBClassifier(max_depth=3, missing=0.0, n_estimators=4, learning_rate=0.3)
    done = train(model, Recipe(schedule=Schedule("constant"), epochs=4, snapshots=4))
    rows, validation = rows_of(done.spec)
    pool = digits().pool
    model.fit(pool.inputs[rows], pool.labels[rows])
    last = done.weights[done.epochs.tolist().index(3)]
    found = score([last], pool.inputs[validation], classes=4)[0]
    assert (found == model.predict_proba(pool.inputs[validation])).all()


def test_images_are_laid_out_flat():
    pool = digits().pool
    images = Pool(
        name="images",
        inputs=pool.inputs.reshape(-1, 8, 8, 1),
        labels=pool.labels,
        classes=pool.classes,
        ids=pool.ids,
    )
    stream = Stream(
        pool=images,
        generations=digits().generations,
        validation=digits().validation,
        evaluation={"test": images},
    )
    (done,) = BoostTrainer(stream, model=GaussianNB(var_smoothing=1e-3)).train(
        [RoundSpec(recipe=ONE, generation=2)]
    )
    assert done.accuracy[0] > 0.8


def test_the_fingerprint_changes_with_model_and_data_and_nothing_else():
    def of(model, stream=None):
        return BoostTrainer(stream or digits(), model=model).fingerprint

    base = of(XGBClassifier(max_depth=3))
    assert base == of(XGBClassifier(max_depth=3, n_jobs=7, random_state=1))
    assert base != of(XGBClassifier(max_depth=4))
    assert base != of(LGBMClassifier(max_depth=3))
    pool = digits().pool
    other = Stream(
        pool=pool,
        generations=digits().generations[1:],
        validation=digits().validation[1:],
        evaluation=digits().evaluation,
    )
    assert base != of(XGBClassifier(max_depth=3), other)
    pipes = [make_pipeline(StandardScaler(), LogisticRegression(C=c)) for c in (1, 1, 2)]
    assert of(pipes[0]) == of(pipes[1]) != of(pipes[2])


def test_a_parameter_without_a_name_has_no_fingerprint():
    trainer = BoostTrainer(digits(), model=GaussianNB(priors=object()))
    with pytest.raises(PlanError, match=naming("parameters", "`__repr__`")):
        _ = trainer.fingerprint


class Listener:
    def __init__(self, stop_after=None):
        self.told, self.stop_after = [], stop_after

    def epoch_done(self, spec, epoch, accuracy):
        self.told.append((epoch, accuracy))

    def stopping(self):
        return len(self.told) == self.stop_after


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_a_monitor_hears_every_epoch_and_may_stop_the_round(name):
    listener = Listener()
    done = train(MANY[name], STEP, monitor=listener)
    assert listener.told == list(enumerate(done.curve.tolist()))
    with pytest.raises(Interrupted, match=naming("epoch 2", "lost")):
        train(MANY[name], STEP, monitor=Listener(stop_after=3))


def test_a_round_may_go_without_weights():
    assert train(MANY["lightgbm"], STEP, keep_weights=False).weights == ()


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (XGBClassifier, naming("`model`", "not fitted", "got XGBClassifier")),
        (lambda: None, naming("`model`", "not fitted", "got function")),
        (LinearRegression(), naming("`model`", "classifier", "got LinearRegression")),
        (LinearSVC(), "gives no probabilities.*CalibratedClassifierCV"),
        (SGDClassifier(), 'gives no probabilities.*loss="log_loss"'),
        (XGBClassifier(booster="dart"), naming("`booster`", "gbtree", "'dart'")),
        (XGBClassifier(booster="gblinear"), naming("`booster`", "gbtree", "'gblinear'")),
        (
            XGBClassifier(objective="multi:softmax"),
            naming("`objective`", "multi:softprob", "'multi:softmax'"),
        ),
        (XGBRFClassifier(), "one forest.*Use XGBClassifier"),
        (LGBMClassifier(boosting_type="dart"), naming("`boosting_type`", "gbdt", "'dart'")),
        (LGBMClassifier(boosting="rf"), naming("`boosting`", "gbdt", "'rf'")),
        (
            LGBMClassifier(boosting_type="goss"),
            naming("`boosting_type`", "'goss'", "learning rate"),
        ),
        (
            LGBMClassifier(data_sample_strategy="goss"),
            naming("`data_sample_strategy`", "bagging", "'goss'", "learning rate"),
        ),
        (
            LGBMClassifier(objective="multiclassova"),
            naming("`objective`", "multiclass", "'multiclassova'"),
        ),
    ],
)
def test_models_that_cannot_be_members_are_refused_with_the_reason(model, message):
    with pytest.raises(PlanError, match=message):
        BoostTrainer(digits(), model=model)


def test_several_snapshots_of_a_classifier_that_has_one_are_refused():
    with pytest.raises(
        PlanError,
        match=naming(
            "RandomForestClassifier", "4 snapshots", "`snapshots=1`", "extbagging", "XGBClassifier"
        ),
    ):
        train(SINGLE["forest"], STEP)


@pytest.mark.parametrize("name", ["xgboost", "mlp", "forest"])
def test_dropout_is_refused(name):
    with pytest.raises(
        PlanError, match=naming("Classifier", "dropout", "MCDropout", "torch", "`names`")
    ):
        train(ALL[name][0], method("mcdropout", epochs=4, members=2).recipe)


def test_a_parent_is_refused_where_a_classifier_cannot_go_on():
    trainer = BoostTrainer(digits(), model=GaussianNB())
    with pytest.raises(PlanError, match=naming("GaussianNB", "afresh", "round 0")):
        trainer.train([RoundSpec(recipe=ONE, generation=1, parent="a" * 32)])


def test_a_generation_of_one_class_is_refused():
    pool = digits().pool
    rows = np.flatnonzero(pool.labels == 0)
    stream = Stream(
        pool=pool,
        generations=(rows,),
        validation=(np.array([5, 0, 0, 0]),),
        evaluation={"test": pool},
    )
    with pytest.raises(TrainingError, match=naming("round 0", "1 class", "two")):
        list(BoostTrainer(stream, model=GaussianNB()).train([RoundSpec(recipe=ONE, generation=1)]))


def test_what_the_library_says_is_passed_on():
    model = XGBClassifier(max_depth=3, tree_method="nonsense")
    with pytest.raises(
        TrainingError, match=naming("XGBClassifier", "round 0", "'nonsense'", "'hist'")
    ):
        train(model, STEP)


def test_a_diverged_learner_is_refused():
    wild = MLPClassifier((4,), solver="sgd", learning_rate_init=1e200)
    with pytest.warns(RuntimeWarning), pytest.raises(TrainingError, match=r"non-finite|not finite"):
        train(wild, STEP)


def test_inputs_of_another_width_are_refused(case):
    _, _, done = case
    with pytest.raises(InputError, match=naming("stored learner", "64", "7")):
        score(done.weights[:1], np.zeros((2, 7)), classes=4)


def test_damaged_learners_are_refused(case):
    _, _, done = case
    whole = done.weights[0]
    inputs = np.zeros((2, 64))
    with pytest.raises(FileError, match="no readable header"):
        score([b"\x80\x04nonsense"], inputs, classes=4)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (whole[: len(whole) // 2], bytes(flipped), whole + b"x"):
        with pytest.raises(FileError, match="fails its checksum"):
            score([damaged], inputs, classes=4)
    newer = whole.replace(b'"format":1', b'"format":2', 1)
    with pytest.raises(FileError, match=r"format 2.*Update dynsnap"):
        score([newer], inputs, classes=4)
    with pytest.raises(InputError, match=naming("stored learner", "4 classes", "3")):
        score([whole], inputs, classes=3)


def test_a_pickle_is_never_loaded(case, monkeypatch):
    """Neither what was stored needs one, nor does a smuggled one get anywhere."""
    _, _, done = case

    def refuse(*_args, **_kwargs):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    score(done.weights, digits().evaluation["test"].inputs, classes=4)
    header, _, _ = done.weights[0].partition(b"\n")
    with pytest.raises(FileError):
        score([header + b"\n" + pickle.dumps({})], np.zeros((2, 64)), classes=4)


def test_texts_go_to_the_model_as_they_are():
    from sklearn.feature_extraction.text import CountVectorizer

    _, labels = load_iris(return_X_y=True)
    texts = np.array([f"petal {'abc'[label]}{'abc'[label]}" for label in labels], dtype=object)
    pool = Pool(
        name="texts", inputs=texts, labels=labels, classes=("x", "y", "z"), ids=np.arange(150)
    )
    stream = Stream(
        pool=pool,
        generations=(np.arange(150),),
        validation=(np.array([5, 5, 5]),),
        evaluation={"test": pool},
    )
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    (done,) = BoostTrainer(stream, model=model).train([RoundSpec(recipe=ONE, generation=1)])
    assert done.accuracy[0] == 1
