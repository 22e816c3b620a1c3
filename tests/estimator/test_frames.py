"""Frames with categories and gaps go to the models that understand them, saved and loaded."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import DynSnapError, InputError, PlanError
from dynsnap.estimator import _inputs
from tests.messages import naming

MODELS = {
    "lightgbm": LGBMClassifier(min_child_samples=5, min_data_per_group=5),
    "xgboost": XGBClassifier(enable_categorical=True, max_depth=3),
    "histogram": HistGradientBoostingClassifier(max_depth=3),
}


def made(rows=360, seed=0):
    """Rows whose class only the categories tell, with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "city": pd.Categorical(rng.choice(["Bern", "Oslo", "Rome"], rows)),
            "plan": pd.Categorical(rng.choice(["basic", "pro"], rows)),
        }
    )
    labels = np.where((frame.city == "Oslo") ^ (frame["plan"] == "pro"), "stay", "leave")
    frame.loc[::17, "age"] = np.nan
    frame.loc[::23, "city"] = np.nan
    return frame, labels


def ensemble(model, **settings):
    given = {"members": 2, "snapshots": 2, "epochs": 5, "random_state": 0} | settings
    return DynSnapClassifier(model, **given)


@pytest.mark.parametrize("name", MODELS)
def test_categories_are_learned_kept_and_predicted(name, tmp_path):
    frame, labels = made()
    old = ensemble(MODELS[name]).fit(frame[:250], labels[:250])
    assert old.score(frame[250:], labels[250:]) > 0.9
    assert old.feature_names_in_.tolist() == ["age", "city", "plan"]
    scores = old.predict_proba(frame)
    # Columns are taken by name, from any library, with categories in any order.
    turned = frame.assign(city=frame.city.cat.reorder_categories(["Rome", "Oslo", "Bern"]))
    for other in (frame[["plan", "city", "age"]], turned, pl.from_pandas(frame)):
        assert (old.predict_proba(other) == scores).all()
    assert (old.predict_proba(frame.astype({"city": object})) == scores).all()
    path = tmp_path / "old.dynsnap"
    old.save(path)
    again = DynSnapClassifier.load(path, model=MODELS[name])
    assert (again.predict_proba(frame) == scores).all()
    # A category that no generation has seen counts as a gap; the next generation learns it.
    more = frame[250:].astype({"city": object})
    gap = more.copy()
    more.iloc[:40, 1], gap.iloc[:40, 1] = "Nice", None
    assert (again.predict_proba(more) == again.predict_proba(gap)).all()
    new = again.retrain(more, labels[250:], earlier=(frame[:250], labels[:250]))
    new.save(path)
    later = DynSnapClassifier.load(path)
    assert (later.predict_proba(more) == new.predict_proba(more)).all()
    assert later._columns[1].categories == ("Bern", "Oslo", "Rome", "Nice")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["single", "rolling"])
@pytest.mark.slow
def test_deployed_members_read_the_categories_of_later_frames(name, method):
    frame, labels = made()
    own = {} if method == "rolling" else {"members": 1, "snapshots": 1}
    old = ensemble(MODELS[name], method=method, **own).fit(frame[:250], labels[:250])
    more = frame[250:].assign(city=frame.city[250:].cat.set_categories(["x", "Rome", "Oslo"]))
    new = old.retrain(more, labels[250:])
    assert new.score(frame, labels) > 0.9


def test_a_model_may_name_its_categorical_columns():
    frame, labels = made()
    numbers = frame.assign(city=frame.city.cat.codes * 1000.0, plan=frame["plan"].cat.codes)
    for model in (
        HistGradientBoostingClassifier(categorical_features=["city", "plan"]),
        LGBMClassifier(categorical_feature=["city"], min_child_samples=5, min_data_per_group=5),
    ):
        made_of = ensemble(model).fit(numbers, labels)
        assert made_of._columns[1].kind == "category" and made_of.score(numbers, labels) > 0.9
    by_place = HistGradientBoostingClassifier(categorical_features=[1])
    array = numbers.to_numpy()
    assert ensemble(by_place).fit(array, labels).score(array, labels) > 0.9
    wrong = HistGradientBoostingClassifier(categorical_features=["citty"])
    with pytest.raises(PlanError, match=naming("citty", "city")):
        ensemble(wrong).fit(numbers, labels)


def test_changed_columns_are_refused_by_name_in_every_call():
    frame, labels = made(120)
    old = ensemble(MODELS["histogram"]).fit(frame, labels)
    renamed = frame.rename(columns={"plan": "tariff"})
    for call in (
        lambda: old.predict(renamed),
        lambda: old.retrain(renamed, labels),
        lambda: old.retrain(frame, labels, earlier=(renamed, labels)),
    ):
        with pytest.raises(InputError, match=naming("plan", "missing", "tariff", "new")):
            call()
    with pytest.raises(InputError, match=naming("age", "numbers", "texts")):
        old.predict(frame.assign(age="old"))
    with pytest.raises(InputError, match=naming("ndarray", "age", "city")):
        old.predict(frame.to_numpy())


def test_categories_of_text_are_not_taken_for_numbers_without_a_word():
    frame, labels = made(120)
    codes = pd.Series(frame.city.cat.codes)
    texts = frame.assign(city=pd.Categorical(codes.astype(str)))
    old = ensemble(MODELS["lightgbm"]).fit(texts, labels)
    with pytest.raises(InputError, match=naming("city", "categories", "numbers")):
        old.predict(frame.assign(city=pd.Categorical(codes)))


def test_a_frame_of_numbers_that_changes_is_refused_by_name():
    frame, labels = made(120)
    numbers = frame.assign(city=frame.city.cat.codes, plan=1.0)
    old = ensemble(MODELS["histogram"]).fit(numbers, labels)
    for other in (frame[["city"]], frame[["city"]].astype(object)):
        with pytest.raises(InputError, match=naming("city", "numbers", "texts")):
            old.predict(numbers.assign(city=other))
    with pytest.raises(InputError, match=naming("plan", "missing")):
        old.retrain(numbers.drop(columns="plan"), labels)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda frame: frame.assign(b=[1, "a"] * 30), ["column b"]),
        (lambda frame: frame.assign(b=pd.Timestamp("2026-01-01")), ["'b'", "timestamp"]),
        (lambda frame: pd.concat([frame, frame[["age"]]], axis=1), ["'age'", "Two columns"]),
        (lambda frame: frame[[]], ["without columns"]),
        (lambda frame: frame[:0], ["no rows"]),
    ],
)
def test_frames_that_nothing_can_be_learned_from_are_refused(change, named):
    frame, labels = made(60)
    changed = change(frame)
    with pytest.raises(InputError, match=naming(*named)):
        ensemble(MODELS["lightgbm"]).fit(changed, labels[: len(changed)])


@pytest.mark.parametrize(
    ("model", "change", "named"),
    [
        (XGBClassifier(), {}, ["city", "plan", "enable_categorical"]),
        (LGBMClassifier(), {"plan": "x"}, ["plan", "texts", "Pipeline"]),
        (RandomForestClassifier(), {}, ["RandomForestClassifier", "city", "plan"]),
        (HistGradientBoostingClassifier(categorical_features=["city"]), {}, ["plan"]),
        (HistGradientBoostingClassifier(categorical_features=None), {}, ["city", "from_dtype"]),
        (XGBClassifier(enable_categorical=True), {"age": np.inf}, ["age", "infinite"]),
        (lambda classes: None, {}, ["city", "plan", "numbers"]),
    ],
)
def test_what_a_model_cannot_take_is_refused_by_name(model, change, named):
    frame, labels = made(60)
    with pytest.raises(DynSnapError, match=naming(*named)):
        ensemble(model, method="extbagging", snapshots=1).fit(frame.assign(**change), labels)


def test_gaps_that_a_model_does_not_take_are_named():
    frame, labels = made(60)
    plain = frame[["age"]].assign(income=1.0)
    with pytest.raises(InputError, match=naming("NaN", "'age'")) as caught:
        ensemble(LogisticRegression(), method="extbagging").fit(plain, labels)
    assert "income" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_categories_for_bytes_are_refused_by_name():
    frame, labels = made(700)
    many = frame.assign(city=pd.Categorical(np.arange(700) % 300))
    with pytest.raises(DynSnapError, match=naming("categories", "max_bins")):
        ensemble(MODELS["histogram"]).fit(many, labels)


# --- pipelines ----------------------------------------------------------------------------------


def steps(*, selector=False):
    """Columns by name, or by type: gaps filled, texts and categories encoded."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    return ColumnTransformer(
        [
            (
                "numbers",
                numbers,
                make_column_selector(dtype_include=float) if selector else ["age"],
            ),
            ("words", words, ["city", "plan"]),
            ("order", OrdinalEncoder(), ["plan"]),
        ]
    )


@pytest.mark.parametrize("selector", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_pipeline_inside_takes_texts_and_gaps_and_is_stored(selector, tmp_path):
    frame, labels = made()
    frame = frame.astype({"plan": object})
    forest = RandomForestClassifier(8, max_depth=4, random_state=0)
    model = Pipeline([("columns", steps(selector=selector)), ("trees", forest)])
    old = ensemble(model, method="extbagging").fit(frame[:250], labels[:250])
    assert old.score(frame[250:], labels[250:]) > 0.8
    path = tmp_path / "old.dynsnap"
    old.save(path)
    again = DynSnapClassifier.load(path, model=model)  # checked, not trusted
    assert (again.predict_proba(frame) == old.predict_proba(frame)).all()
    assert (again.predict_proba(pl.from_pandas(frame)) == old.predict_proba(frame)).all()
    new = again.retrain(frame[250:], labels[250:], earlier=(frame[:250], labels[:250]))
    assert new.predict(frame.assign(city="Nice")).shape == labels.shape
    with pytest.raises(InputError, match=naming("plan", "missing")):
        new.predict(frame.drop(columns="plan"))


def test_a_pipeline_around_hands_numbers_in():
    frame, labels = made()
    around = Pipeline([("columns", steps()), ("ensemble", ensemble(MODELS["lightgbm"]))])
    assert around.fit(frame, labels).score(frame, labels) > 0.9


def test_gaps_in_a_pipeline_are_named():
    frame, labels = made(80)
    model = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), ["age"])]), LogisticRegression()
    )
    with pytest.raises(DynSnapError, match=naming("NaN", "'age'")):
        ensemble(model, method="extbagging").fit(frame[["age"]], labels)


def test_a_category_that_an_encoder_refuses_is_named():
    frame, labels = made(80)
    columns = ColumnTransformer([("c", OneHotEncoder(), ["plan"])])
    model = make_pipeline(columns, LogisticRegression())
    fitted = ensemble(model, method="extbagging").fit(frame, labels)
    with pytest.raises(InputError, match=naming("unknown", "gold")):
        fitted.predict(frame.assign(plan="gold"))


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "int64[pyarrow]", "boolean"])
def test_labels_of_nullable_types_are_the_classes_that_plain_ones_are(kind):
    plain = np.arange(6) % 2 == 0 if kind == "boolean" else np.arange(6) % 3
    column = pd.Series(plain).astype(kind)
    for labels in (column, column.array):
        found = _inputs.targets(labels, 6)
        assert found.dtype.kind == ("b" if kind == "boolean" else "u" if kind == "UInt8" else "i")
        assert (found == plain).all()
    with pytest.warns(DataConversionWarning):  # as of any column vector
        assert (_inputs.targets(column.to_frame(), 6) == plain).all()
    column[3] = pd.NA
    for labels in (column, column.to_frame(), column.astype("string"), column.astype(object)):
        with pytest.raises(InputError, match=naming("y", "NaN", "class")):
            _inputs.targets(labels, 6)


def test_whole_numbers_that_may_be_missing_stay_whole_numbers(tmp_path):
    inputs, labels = np.arange(60.0).reshape(30, 2), pd.Series(np.arange(30) % 3, dtype="Int64")
    model = DynSnapClassifier(MODELS["histogram"], epochs=2, snapshots=1, random_state=0)
    fitted = model.fit(inputs, labels)
    assert fitted.classes_.tolist() == [0, 1, 2] and fitted.classes_.dtype.kind == "i"
    assert set(fitted.predictions(inputs).classes) == {"0", "1", "2"}
