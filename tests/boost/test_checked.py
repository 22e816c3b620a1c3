"""What is sound passes the checks and predicts the same bits; what is not known needs trust."""

import hashlib
import io
import json
import logging
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.boost import (
    BoostTrainer,
    _check_lightgbm,
    _check_xgboost,
    _skops,
    _structure,
    _ubjson,
    opened,
    score,
)
from dynsnap.boost.rebuilt._kinds import checks
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import FileError, InputError, Interrupted
from dynsnap.testing import RecordingMonitor, assert_same_round
from tests.boost.streams import digits
from tests.fuzz import forgery, learners
from tests.fuzz.learners import BY_CATEGORY, INPUTS, LABELS

# --- what is sound ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(learners.makers()))
def test_learners_of_every_known_kind_load_without_trust_and_predict_the_same_bits(name):
    learner = learners.learner(name)
    found, trusted = (
        opened([learner.packed()], classes=3, trust=trust)(learner.inputs)
        for trust in (False, True)
    )
    assert (found == trusted).all()
    assert np.allclose(found.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"n_estimators": 150},  # 450 trees: their numbers take one and two bytes
        {"tree_method": "exact", "gamma": 0.3, "max_depth": 8},  # nodes that were pruned away
        {"grow_policy": "lossguide", "max_leaves": 40, "max_depth": 0, "tree_method": "hist"},
        {"num_parallel_tree": 4, "subsample": 0.5, "n_estimators": 3},
        {"max_depth": 1, "n_estimators": 2, "min_child_weight": 1e9},  # trees of one leaf
        {"n_estimators": 2, "feature_types": ["q"] * 4 + ["c"], "enable_categorical": True},
    ],
    ids=lambda params: " ".join(params),
)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_booster_that_xgboost_grows_passes(params, classes):
    model = XGBClassifier(n_jobs=1, **params).fit(INPUTS, LABELS % classes)
    payload = bytes(model.get_booster().save_raw("ubj"))
    assert _check_xgboost.check(payload, classes) == 5
    cut = bytes(model.get_booster()[:1].save_raw("ubj"))
    assert _check_xgboost.check(cut, classes) == 5


@pytest.mark.parametrize(
    "params",
    [
        {"n_estimators": 60},
        {"min_child_samples": 80},  # trees of one leaf
        {"linear_tree": True},
        {"linear_tree": True, "min_child_samples": 80},
        {"max_cat_to_onehot": 1, "categorical_feature": [4], "min_data_per_group": 2},
        {"monotone_constraints": [1, 0, -1, 0, 0]},
        {"extra_trees": True, "min_child_samples": 1, "num_leaves": 60},
        {"sigmoid": 2.5},
    ],
    ids=lambda params: " ".join(params),
)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_booster_that_lightgbm_grows_passes_and_predicts_the_same_bits(params, classes):
    import lightgbm

    given = {"n_estimators": 4, "min_child_samples": 4, **params}
    categories = given.pop("categorical_feature", "auto")
    labels = (BY_CATEGORY if categories != "auto" else LABELS) % classes
    model = LGBMClassifier(n_jobs=1, verbosity=-1, **given)
    model.fit(INPUTS, labels, categorical_feature=categories)
    text = model.booster_.model_to_string().encode()
    whole, features = _check_lightgbm.check(text, classes, whole=True)
    part, _ = _check_lightgbm.check(text, classes)
    assert features == 5
    assert len(part) < len(whole) < len(text)
    assert (b"cat_threshold" in part) == (categories != "auto")
    expected = model.booster_.predict(INPUTS, num_threads=1)
    for checked in (whole, part):
        booster = lightgbm.Booster(model_str=checked.decode())
        assert (booster.predict(INPUTS, num_threads=1) == expected).all()


# --- what is not known ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessClassifier(),
        RadiusNeighborsClassifier(50.0),
        make_pipeline(PolynomialFeatures(), GaussianNB()),
        RandomForestClassifier(2, n_jobs=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_classifier_that_cannot_be_checked_loads_with_trust_alone(model):
    payload = _skops.dump(model.fit(INPUTS, LABELS))
    learner = learners.Learner("sklearn", payload, 3, INPUTS)
    with pytest.raises(FileError, match=r"cannot check.*trust=True.*--trust"):
        opened([learner.packed()], classes=3)
    found = score([learner.packed()], INPUTS, classes=3, trust=True)
    assert (found[0] == model.predict_proba(INPUTS).astype(np.float32)).all()


def test_an_ensemble_that_cannot_be_checked_is_fitted_and_saved_but_loaded_with_trust_alone(
    tmp_path,
):
    settings = {"method": "extbagging", "members": 2, "snapshots": 1, "epochs": 1}
    ensemble = DynSnapClassifier(GaussianProcessClassifier(), random_state=0, **settings)
    expected = ensemble.fit(INPUTS, LABELS).predict_proba(INPUTS)
    ensemble.save(tmp_path / "own.ensemble")
    with pytest.raises(FileError, match=r"GaussianProcessClassifier.*trust=True"):
        DynSnapClassifier.load(tmp_path / "own.ensemble")
    loaded = DynSnapClassifier.load(tmp_path / "own.ensemble", trust=True)
    assert (loaded.predict_proba(INPUTS) == expected).all()


def test_the_page_on_security_names_every_classifier_and_step_that_is_checked():
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    named = set(re.findall(r"`([A-Z]\w+)`", page))
    inner = {"DecisionTreeRegressor", "IsotonicRegression", "TreePredictor"}
    checked = {kind.__name__ for kind in checks() if not kind.__name__.startswith("_")}
    assert checked - inner <= named


@pytest.mark.parametrize("booster", ["dart", "gblinear"])
def test_a_booster_of_another_kind_is_not_loaded_without_trust(booster):
    settings = {"objective": "binary:logistic", "booster": booster, "nthread": 1}
    made = xgboost.train(settings, xgboost.DMatrix(INPUTS, LABELS % 2), 2)
    learner = learners.Learner("xgboost", bytes(made.save_raw("ubj")), 2, INPUTS)
    with pytest.raises(FileError, match=r"not loaded"):
        opened([learner.packed()], classes=2)
    assert opened([learner.packed()], classes=2, trust=True)


@pytest.mark.parametrize(("module", "name"), [("os", "system"), ("builtins", "eval")])
@pytest.mark.parametrize("loader", ["ObjectNode", "FunctionNode", "TypeNode", "MethodNode"])
def test_even_trust_loads_nothing_but_parts_of_classifiers(module, name, loader):
    learner = learners.learner("gaussian")
    files, schema = unpacked(learner.payload)
    schema["content"]["content"]["priors"] = {
        "__module__": module,
        "__class__": name,
        "__loader__": loader,
        "content": {"func": name, "obj": schema["content"]["content"]["theta_"]},
    }
    forged = learner.packed(packed(files, schema))
    for trust in (False, True):
        with pytest.raises(FileError):
            opened([forged], classes=3, trust=trust)


def test_no_name_in_a_file_chooses_what_is_imported(monkeypatch):
    import importlib

    content = learners.learner("gaussian").payload
    _skops.load_checked(content)  # what is known is imported by its first use

    def refuse(name, *_):
        raise AssertionError(f"{name} was imported")

    files, schema = unpacked(content)
    schema["__module__"] = "sklearn.conftest"
    forged = packed(files, schema)
    monkeypatch.setattr(importlib, "import_module", refuse)
    for load in (_skops.load_checked, _skops.load):
        with pytest.raises(FileError, match=r"not trusted: sklearn\.conftest"):
            load(forged)


# --- how much it may take ---------------------------------------------------------------------


def test_an_archive_that_would_unpack_to_far_more_than_its_size_is_refused():
    learner = learners.learner("gaussian")
    content = io.BytesIO(learner.payload)
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(200_000_000))
    assert len(content.getvalue()) < 300_000
    with pytest.raises(FileError, match=r"would take 200.* MB"):
        opened([learner.packed(content.getvalue())], classes=3)


def test_parts_that_are_shared_do_not_multiply_without_bound():
    """Each vote asks the one before four times: twelve of them would ask sixteen million."""
    files, schema = unpacked(learners.learner("vote").payload)
    for number in range(12):
        inner = {**schema, "__id__": 10**9 + number}
        schema = json.loads(json.dumps(schema))
        members = schema["content"]["content"]["estimators_"]
        members["content"] = [inner, *[{"__id__": inner["__id__"]}] * 3]
        # What is equal has one number, so that the outer vote's parts need others.
        members["__id__"], schema["content"]["__id__"] = 2 * 10**9 + number, 3 * 10**9 + number
        schema["__id__"] = 4 * 10**9 + number
        for name in ("estimators", "named_estimators_"):
            schema["content"]["content"][name] = schema["content"]["content"]["verbose"]
    forged = learners.learner("vote").packed(packed(files, schema))
    with pytest.raises(FileError, match=r"more than 1000000 learners"):
        opened([forged], classes=3)


def unpacked(payload):
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}
    return files, json.loads(files["schema.json"])


def packed(files, schema):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for entry, data in {**files, "schema.json": json.dumps(schema).encode()}.items():
            archive.writestr(entry, data)
    return content.getvalue()


@pytest.mark.parametrize("depth", [_structure.DEEPEST - 1, _structure.DEEPEST])
def test_a_tree_deeper_than_a_stack_is_refused(depth):
    inner = np.arange(depth)
    leaves = np.full(depth + 1, -1)
    left, right = np.append(inner + 1, leaves), np.append(inner + depth + 1, leaves)
    if depth < _structure.DEEPEST:
        assert _structure.reachable(left, right, np.array([0])).all()
    else:
        with pytest.raises(FileError, match="deeper"):
            _structure.reachable(left, right, np.array([0]))


# --- what learners answer ---------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, 7.0])
def test_scores_that_are_no_probabilities_are_refused_when_the_learner_is_loaded(value):
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(INPUTS, LABELS)
    for tree in model.estimators_:
        tree.tree_.value[:] = value
    learner = learners.Learner("sklearn", _skops.dump(model), 3, INPUTS)
    with pytest.raises(FileError, match="not probabilities"):
        opened([learner.packed()], classes=3)


def test_a_learner_that_takes_no_zeros_is_not_refused():
    """What is asked to try a learner need not be an input that it takes."""
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(INPUTS, LABELS)
    learner = learners.Learner("sklearn", _skops.dump(model), 3, INPUTS)
    score_all = opened([learner.packed()], classes=3)
    with pytest.raises(InputError, match="cannot score"):
        score_all(np.full((1, 5), np.nan))


def test_a_step_that_writes_to_its_inputs_does_not_write_to_those_of_others():
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression())
    model.fit(INPUTS.copy(), LABELS)
    learner = learners.Learner("sklearn", _skops.dump(model), 3, INPUTS)
    given = INPUTS.copy()
    for trust in (False, True):
        first, second = opened([learner.packed()] * 2, classes=3, trust=trust)(given)
        assert (first == second).all()
        assert (given == INPUTS).all()


@pytest.mark.parametrize(
    "classes",
    [[2, 1, 0], [0, 0, 1], [-1, 0, 1], [0, 1, 2.0], [[0, 1, 2]], [], "012", None, [0, 1, 10**30]],
)
def test_a_header_whose_classes_are_not_places_in_order_is_refused(classes):
    head, _, payload = learners.learner("gaussian").packed().partition(b"\n")
    forged = json.dumps({**json.loads(head), "classes": classes}).encode()
    with pytest.raises(FileError):
        opened([forged + b"\n" + payload], classes=3)


@pytest.mark.parametrize("head", [b"[" * 100_000, b'{"format": 1, "kind": [], "sha256": ""}'])
def test_a_header_of_anything_else_is_refused(head):
    with pytest.raises(FileError):
        opened([head + b"\n"], classes=3)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2, 3]])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "forest"])
def test_a_header_of_other_classes_than_the_learner_has_is_refused(name, classes):
    head, _, payload = learners.learner(name).packed().partition(b"\n")
    forged = json.dumps({**json.loads(head), "classes": classes}).encode()
    with pytest.raises(FileError, match="classes"):
        opened([forged + b"\n" + payload], classes=4)


# --- checkpoints ------------------------------------------------------------------------------

CHECKPOINTS = {
    "xgboost": (XGBClassifier(max_depth=2), "booster", "tree_info", "negative"),
    "lightgbm": (LGBMClassifier(num_leaves=4), "booster", "left_child", "cycle"),
    "histogram": (
        HistGradientBoostingClassifier(max_depth=2, max_bins=16),
        "model",
        "feature_idx",
        "large",
    ),
    "stochastic": (
        SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.001),
        "model",
        "intercept_",
        "cut short",
    ),
}


class Forger(dict):
    """Checkpoints that are forged before they are read, with the right checksum."""

    def __init__(self, part, value, change):
        super().__init__()
        self.part, self.value, self.change = part, value, change
        self.forged = 0

    def load(self, spec):
        content = self.get(spec)
        if content is None:
            return None
        self.forged += 1
        line, _, payload = content.partition(b"\n")
        head, at = json.loads(line), 0
        parts = {}
        for name, size in head["parts"]:
            parts[name], at = payload[at : at + size], at + size
        kinds = {b"{": "xgboost", b"t": "lightgbm", b"P": "sklearn"}
        document = forgery.DOCUMENTS[kinds[parts[self.part][:1]]](parts[self.part])
        way = next(one for one in forgery.CHANGES if one.name == self.change)
        place = document.leaves()[document.find(self.value)]
        parts[self.part] = document.forged(place, way, 0)
        payload = b"".join(parts.values())
        head["parts"] = [[name, len(part)] for name, part in parts.items()]
        head["sha256"] = hashlib.sha256(payload).hexdigest()
        return json.dumps(head).encode() + b"\n" + payload

    def save(self, spec, state):
        self[spec] = state

    def drop(self, spec):
        self.pop(spec, None)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_forged_checkpoint_is_left_alone_and_its_round_starts_over(name, caplog):
    model, part, value, change = CHECKPOINTS[name]
    recipe = Recipe(schedule=Schedule("step"), epochs=3, snapshots=2)
    spec = RoundSpec(recipe=recipe, generation=1, index=0, seed=5)
    (whole,) = BoostTrainer(digits(), model=model).train([spec])
    checkpoints = Forger(part, value, change)
    stopped = BoostTrainer(
        digits(), model=model, monitor=RecordingMonitor(stop_after=2), checkpoints=checkpoints
    )
    with pytest.raises(Interrupted):
        list(stopped.train([spec]))
    with caplog.at_level(logging.WARNING):
        (done,) = BoostTrainer(digits(), model=model, checkpoints=checkpoints).train([spec])
    assert checkpoints.forged == 1
    assert "not valid" in caplog.text
    assert_same_round(done, whole)


# --- the parts of the checks ------------------------------------------------------------------


def slowly_reachable(left, right, roots):
    """Every node that is met, or None where one is met twice."""
    met, waiting = [], list(roots)
    while waiting:
        node = waiting.pop()
        if node in met:
            return None
        met.append(node)
        if left[node] >= 0:
            waiting += [left[node], right[node]]
    return met


@given(st.data())
def test_nodes_are_trees_where_no_node_is_met_twice(data):
    size = data.draw(st.integers(1, 9))
    child = st.integers(0, size - 1)
    pairs = data.draw(
        st.lists(
            st.one_of(st.just((-1, -1)), st.tuples(child, child)), min_size=size, max_size=size
        )
    )
    left, right = np.array(pairs).T
    roots = sorted(data.draw(st.sets(child, min_size=1, max_size=2)))
    expected = slowly_reachable(left, right, roots)
    if expected is None:
        with pytest.raises(FileError, match="child of two"):
            _structure.reachable(left, right, np.array(roots))
    else:
        found = _structure.reachable(left, right, np.array(roots))
        assert np.flatnonzero(found).tolist() == sorted(expected)


values = st.recursive(
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=5), st.booleans().map(int)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(
            lambda d: dict(sorted(d.items()))
        ),
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(values)
def test_ubjson_is_read_as_another_writer_meant_it(value):
    assert _ubjson.decode(forgery._encode(value), {}) == value


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), min_size=1), st.data())
def test_ubjson_with_more_than_one_reading_is_refused(table, data):
    items = sorted(table.items())
    whole = forgery._encode(dict(items))
    assert _ubjson.decode(whole, {}) == table
    for end in data.draw(st.sets(st.integers(0, len(whole) - 1), max_size=3)):
        with pytest.raises(FileError):
            _ubjson.decode(whole[:end], {})
    twice = whole[:-1] + forgery._encode(dict(items[:1]))[1:]
    for forged in (whole + b"}", twice):
        with pytest.raises(FileError):
            _ubjson.decode(forged, {})
