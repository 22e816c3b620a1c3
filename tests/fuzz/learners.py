"""Small learners of every kind that is stored, as a trainer packs them: what forgers begin with."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynsnap.boost import _scikit_boosting, _skops
from dynsnap.boost._snapshots import pack
from dynsnap.data import Column, Frame

RNG = np.random.default_rng(7)
ROWS = 90
LABELS = np.arange(ROWS) % 3
INPUTS = np.round(RNG.normal(size=(ROWS, 5)) + LABELS[:, None], 2)
INPUTS[:, 4] = (np.arange(ROWS) * 7) % 11  # a feature of categories
BY_CATEGORY = (INPUTS[:, 4] % 3).astype(int)  # labels that only the categories tell
WORDS = ("one", "two", "three")
TEXTS = np.array([f"{WORDS[label]} word{at % 4}" for at, label in enumerate(LABELS)])
SOME = slice(0, 7)


@dataclass(frozen=True, eq=False)
class Learner:
    """A stored learner.

    Attributes:
        kind: Which library's format it is in.
        payload: Without the header.
        classes: How many classes it knows.
        inputs: Something that it can score.
    """

    kind: str
    payload: bytes
    classes: int
    inputs: Any

    def packed(self, payload: bytes | None = None) -> bytes:
        """The learner with its header, whose checksum is right: a forger writes that, too."""
        return pack(
            self.payload if payload is None else payload,
            learner=_Library(self.kind),
            seen=np.arange(self.classes),
        )


@dataclass(frozen=True)
class _Library:
    kind: str
    version: str = "0"


def _xgboost(binary: bool = False, **params: Any) -> Learner:
    import xgboost

    labels = np.minimum(LABELS, 1) if binary else LABELS
    categories = ["q"] * 4 + ["c"] if params.pop("categories", False) else None
    labels = BY_CATEGORY if categories else labels
    settings = (
        {"objective": "binary:logistic"}
        if binary
        else {
            "objective": "multi:softprob",
            "num_class": 3,
        }
    )
    data = xgboost.DMatrix(
        INPUTS, labels, feature_types=categories, enable_categorical=categories is not None
    )
    booster = xgboost.train({**settings, "max_depth": 3, "nthread": 1, **params}, data, 3)[:2]
    booster.set_attr(dynsnap_missing="nan")
    return Learner("xgboost", bytes(booster.save_raw("ubj")), 2 if binary else 3, INPUTS[SOME])


def _lightgbm(binary: bool = False, categories: bool = False, **params: Any) -> Learner:
    import lightgbm

    labels = BY_CATEGORY if categories else np.minimum(LABELS, 1) if binary else LABELS
    settings = {"objective": "binary"} if binary else {"objective": "multiclass", "num_class": 3}
    free = {"min_data_in_leaf": 3, "min_data_per_group": 3, "cat_smooth": 0, "cat_l2": 0}
    data = lightgbm.Dataset(
        INPUTS, labels, categorical_feature=[4] if categories else "auto", params={"verbosity": -1}
    )
    given = {**settings, **free, "num_leaves": 5, "verbosity": -1, "num_threads": 1, **params}
    booster = lightgbm.train(given, data, 2)
    text = booster.model_to_string().encode()
    return Learner("lightgbm", text, 2 if binary else 3, INPUTS[SOME])


def _scikit(model: Any, *, binary: bool = False, texts: bool = False) -> Learner:
    labels = np.minimum(LABELS, 1) if binary else LABELS
    inputs = TEXTS if texts else INPUTS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(inputs, labels)
    return Learner("sklearn", _skops.dump(model), 2 if binary else 3, inputs[SOME])


def _frame() -> Frame:
    """Inputs with names: numbers with gaps, categories, texts."""
    gaps = np.where(np.arange(ROWS) % 9, INPUTS[:, 0], np.nan)
    cities = np.array([None, "Bern", "Oslo", "Rome"], dtype=object)[np.arange(ROWS) % 4]
    codes = INPUTS[:, 4].astype(np.int64)
    return Frame(
        {
            "size": Column("number", gaps),
            "mark": Column("number", codes),
            "rare": Column("category", codes, tuple("abcdefghijk"), 11),
            "city": Column("text", cities),
            "kind": Column("text", np.array(["x", "y"], dtype=object)[LABELS % 2]),
        }
    )


def _columns() -> Learner:
    """A pipeline that chooses columns by name, fills gaps and encodes."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=3, drop="first")
    chosen = ColumnTransformer(
        [
            ("numbers", numbers, ["size"]),
            ("texts", texts, ["city", "kind"]),
            ("rare", rare, ["rare"]),
            ("marks", OneHotEncoder(handle_unknown="ignore"), ["mark"]),
            ("order", OrdinalEncoder(), ["kind"]),
        ],
        remainder="passthrough",
    )
    frame = _frame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(chosen, LogisticRegression()).fit(frame.pandas, LABELS)
    return Learner("sklearn", _skops.dump(model), 3, frame[SOME])


def _histogram_by_category() -> Learner:
    """Histogram boosting whose trees split by categories, as a round trains it."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=3, early_stopping=False, random_state=0
    )
    _scikit_boosting._with_categories(model, (4,))
    inputs = INPUTS.copy()
    inputs[:, 4] = BY_CATEGORY  # scikit-learn splits by categories of ten rows or more
    model.fit(inputs, BY_CATEGORY)
    del model._preprocess_X
    return Learner("sklearn", _skops.dump(model), 3, inputs[SOME])


def _models() -> dict[str, Callable[[], Learner]]:
    from sklearn import (
        calibration,
        decomposition,
        discriminant_analysis,
        ensemble,
        feature_selection,
        linear_model,
        multiclass,
        naive_bayes,
        neighbors,
        neural_network,
        pipeline,
        preprocessing,
        svm,
        tree,
    )
    from sklearn.feature_extraction import text

    pipe = pipeline.make_pipeline
    few = {"n_estimators": 2, "random_state": 0}
    probability = {"probability": True, "random_state": 0}
    bayes, vectors = naive_bayes.GaussianNB, svm.LinearSVC(random_state=0)
    scale = pipe(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    return {
        "tree": lambda: _scikit(tree.DecisionTreeClassifier(max_depth=3, random_state=0)),
        "forest": lambda: _scikit(ensemble.RandomForestClassifier(max_depth=3, **few)),
        "extra trees": lambda: _scikit(ensemble.ExtraTreesClassifier(max_depth=3, **few)),
        "gradient": lambda: _scikit(ensemble.GradientBoostingClassifier(max_depth=2, **few)),
        "gradient of two": lambda: _scikit(
            ensemble.GradientBoostingClassifier(max_depth=2, **few), binary=True
        ),
        "histogram": lambda: _scikit(
            ensemble.HistGradientBoostingClassifier(
                max_iter=2, min_samples_leaf=5, early_stopping=False, random_state=0
            )
        ),
        "histogram of two": lambda: _scikit(
            ensemble.HistGradientBoostingClassifier(
                max_iter=2, min_samples_leaf=5, early_stopping=False, random_state=0
            ),
            binary=True,
        ),
        "ada": lambda: _scikit(ensemble.AdaBoostClassifier(**few)),
        "bagging": lambda: _scikit(ensemble.BaggingClassifier(max_features=0.6, **few)),
        "svc": lambda: _scikit(svm.SVC(**probability)),
        "svc of two": lambda: _scikit(svm.SVC(kernel="poly", **probability), binary=True),
        "nu svc": lambda: _scikit(svm.NuSVC(nu=0.3, **probability)),
        "neighbours by tree": lambda: _scikit(neighbors.KNeighborsClassifier(3)),
        "neighbours by balls": lambda: _scikit(
            neighbors.KNeighborsClassifier(3, algorithm="ball_tree", weights="distance", p=3)
        ),
        "neighbours": lambda: _scikit(neighbors.KNeighborsClassifier(3, algorithm="brute")),
        "network": lambda: _scikit(neural_network.MLPClassifier((4,), max_iter=3, random_state=0)),
        "logistic": lambda: _scikit(scale),
        "stochastic": lambda: _scikit(
            linear_model.SGDClassifier(loss="log_loss", average=5, random_state=0)
        ),
        "linear discriminant": lambda: _scikit(discriminant_analysis.LinearDiscriminantAnalysis()),
        "quadratic discriminant": lambda: _scikit(
            discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1)
        ),
        "gaussian": lambda: _scikit(bayes()),
        "multinomial": lambda: _scikit(
            pipe(preprocessing.MinMaxScaler(clip=True), naive_bayes.MultinomialNB())
        ),
        "categorical": lambda: _scikit(
            pipe(preprocessing.Binarizer(), naive_bayes.CategoricalNB())
        ),
        "calibrated": lambda: _scikit(calibration.CalibratedClassifierCV(vectors, cv=2)),
        "isotonic": lambda: _scikit(
            calibration.CalibratedClassifierCV(bayes(), cv=2, method="isotonic"), binary=True
        ),
        "stack": lambda: _scikit(ensemble.StackingClassifier([("a", bayes()), ("b", scale)], cv=2)),
        "vote": lambda: _scikit(
            ensemble.VotingClassifier([("a", bayes()), ("b", scale)], voting="soft")
        ),
        "one against rest": lambda: _scikit(
            multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
        ),
        "steps": lambda: _scikit(
            pipe(
                preprocessing.RobustScaler(),
                preprocessing.PowerTransformer(),
                preprocessing.QuantileTransformer(n_quantiles=9),
                decomposition.PCA(4, whiten=True),
                feature_selection.SelectKBest(k=3),
                bayes(),
            )
        ),
        "texts": lambda: _scikit(
            pipe(text.TfidfVectorizer(), linear_model.LogisticRegression()), texts=True
        ),
        "hashed texts": lambda: _scikit(
            pipe(
                text.HashingVectorizer(n_features=16),
                text.TfidfTransformer(),
                tree.DecisionTreeClassifier(max_depth=2, random_state=0),
            ),
            texts=True,
        ),
    }


@functools.cache
def makers() -> dict[str, Callable[[], Learner]]:
    """What makes each kind of learner, by name."""
    return {
        "xgboost": _xgboost,
        "xgboost of two": lambda: _xgboost(binary=True),
        "xgboost categories": lambda: _xgboost(
            categories=True, max_cat_to_onehot=1, tree_method="hist"
        ),
        "xgboost pruned": lambda: _xgboost(tree_method="exact", gamma=0.5, num_parallel_tree=2),
        "lightgbm": _lightgbm,
        "lightgbm of two": lambda: _lightgbm(binary=True),
        "lightgbm categories": lambda: _lightgbm(categories=True, max_cat_to_onehot=1),
        "lightgbm linear": lambda: _lightgbm(binary=True, linear_tree=True),
        "histogram categories": _histogram_by_category,
        "columns": _columns,
        **_models(),
    }


@functools.cache
def learner(name: str) -> Learner:
    """A learner of this name, the same in every process."""
    return makers()[name]()
