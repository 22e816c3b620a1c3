"""Numbers in stored learners that are sound one by one or in sum, but not both."""

import io
import itertools
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer

from dynsnap.boost import _check_lightgbm, _scikit, _skops
from dynsnap.errors import FileError
from tests.fuzz import forgery, learners
from tests.messages import naming


def forged(payload, changes):
    """A LightGBM model whose first lines of these names, in the tree of the last, say otherwise."""
    lines = payload.decode().split("\n")
    *_, last = changes
    there = next(at for at, line in enumerate(lines) if line.startswith(f"{last}="))
    for name, value in changes.items():
        at = max(at for at in range(there + 1) if lines[at].startswith(f"{name}="))
        lines[at] = f"{name}={value}"
    forgery._resize(lines)
    return "\n".join(lines).encode()


def values(payload, name):
    line = next(line for line in payload.decode().split("\n") if line.startswith(f"{name}="))
    return [int(value) for value in line.partition("=")[2].split()]


def test_counts_of_linear_leaves_that_overflow_to_the_right_sum_are_refused():
    sound = learners.learner("lightgbm linear").payload
    counts = values(sound, "num_features")
    many = [2**62 + 10**5, 2**62 + 2**32 - 10**5 + sum(counts), 2**62, 2**62 - 2**32]
    many += [0] * (len(counts) - len(many))
    assert sum(many) % 2**64 == sum(counts)
    _check_lightgbm.check(sound, 2)
    with pytest.raises(FileError, match="features of leaves"):
        _check_lightgbm.check(forged(sound, {"num_features": " ".join(map(str, many))}), 2)


def test_bounds_of_categories_that_overflow_upwards_are_refused():
    sound = learners.learner("lightgbm categories").payload
    end = values(sound, "cat_boundaries")[-1]
    # Each step is upwards in 64 bits: over the largest number to the smallest, and up again.
    bounds = [0, 2**62 + 2**30, -(2**63) + 2**32, -1, end]
    assert all((b - a) % 2**64 in range(1, 2**63) for a, b in itertools.pairwise(bounds))
    changes = {"num_cat": 4, "cat_boundaries": " ".join(map(str, bounds))}
    _check_lightgbm.check(sound, 3)
    with pytest.raises(FileError, match=naming("categories", "not loaded")):
        _check_lightgbm.check(forged(sound, changes), 3)


def test_a_few_parts_that_are_shared_do_not_stand_for_very_many():
    inner = FeatureUnion([("only", Normalizer())])
    model = Pipeline([("all", FeatureUnion([("only", inner)])), ("prior", DummyClassifier())])
    sound = _skops.dump(model.fit(learners.INPUTS, learners.LABELS))
    _skops.load_checked(sound)
    with pytest.raises(FileError, match="learners"):
        _skops.load_checked(_with_shared_steps(sound, 100))


def test_many_steps_side_by_side_do_not_make_an_input_wide_beyond_measure():
    steps = [(f"step {at}", Normalizer()) for at in range(64)]
    model = Pipeline([("all", FeatureUnion(steps)), ("prior", DummyClassifier())])
    model.fit(learners.INPUTS, learners.LABELS)
    _skops.load_checked(_skops.dump(model))
    for _, step in steps:
        step.n_features_in_ = 2**18
    payload = _skops.dump(model)
    assert len(payload) < 2**16
    with pytest.raises(FileError, match="numbers in memory"):
        _skops.load_checked(payload)


def test_more_directions_than_features_are_refused():
    model = Pipeline([("all", PCA(2)), ("prior", DummyClassifier())])
    model.fit(learners.INPUTS, learners.LABELS)
    model[0].components_ = np.zeros((4096, learners.INPUTS.shape[1]))
    with pytest.raises(FileError, match="directions"):
        _skops.load_checked(_skops.dump(model))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_wide_learner_takes_no_more_memory_for_many_inputs_than_for_some(monkeypatch):
    monkeypatch.setattr(_scikit, "_AT_ONCE", 2**20)
    model = MLPClassifier([2**10], max_iter=1).fit(learners.INPUTS, learners.LABELS)
    predict, width = _scikit.load(_skops.dump(model), 3, trust=False)
    inputs = np.random.default_rng(0).normal(size=(5_000, width))
    tracemalloc.start()
    found = predict(inputs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e7  # and not 41 MB for every array between two layers
    assert found.shape == (5_000, 3)
    assert np.allclose(found[-7:], model.predict_proba(inputs[-7:]))


def test_a_file_in_an_archive_stands_for_one_array():
    sound = _skops.dump(LogisticRegression().fit(learners.INPUTS, learners.LABELS))
    _skops.load_checked(sound)

    def shared(schema):
        content = schema["content"]["content"]
        content["intercept_"]["file"] = content["coef_"]["file"]

    with pytest.raises(FileError, match="two arrays"):
        _skops.load_checked(_with_schema(sound, shared))


def test_lists_that_are_shared_do_not_make_arrays_of_very_many_objects():
    trees = GradientBoostingClassifier(n_estimators=2, max_depth=1)
    sound = _skops.dump(trees.fit(learners.INPUTS, learners.LABELS))
    count = 3_000

    def shared(schema):
        stages = schema["content"]["content"]["estimators_"]
        row = stages["content"][0]
        row["content"] += [{"__id__": row["content"][0]["__id__"]}] * (count - 3)
        stages["content"] = [row] + [{"__id__": row["__id__"]}] * (count - 1)
        for place, size in enumerate(stages["shape"]["content"]):
            size["content"], size["__id__"] = str(count), 10**6 + place

    with pytest.raises(FileError, match="shape"):
        _skops.load_checked(_with_schema(sound, shared))


@pytest.mark.parametrize("part", [b"{},", b"[],", b'{"":0},'])
def test_a_description_that_is_small_as_text_is_not_large_in_memory(part):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"[" + part * (16_000_000 // len(part)) + b"0]")
    assert len(content.getvalue()) < 10**6
    tracemalloc.start()
    with pytest.raises(FileError, match="in memory"):
        _skops.load_checked(content.getvalue())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**28


@pytest.mark.parametrize("name", ["lightgbm categories", "xgboost categories"])
def test_what_the_fuzzer_forges_has_splits_by_categories(name):
    document = forgery.DOCUMENTS[name.split()[0]](learners.learner(name).payload)
    if name.startswith("lightgbm"):
        assert values(learners.learner(name).payload, "cat_threshold")
        return
    places = [place for place in document.leaves() if place[-1] == "categories"]
    assert any(document.value(place).size for place in places)


def _with_shared_steps(payload, count):
    """The same archive, with every step of a FeatureUnion there this many times."""

    def repeated(node):
        if isinstance(node, list):
            for one in node:
                repeated(one)
        if not isinstance(node, dict):
            return
        for one in node.values():
            repeated(one)
        if isinstance(steps := node.get("transformer_list"), dict):
            again = {"__id__": steps["content"][0]["__id__"]}
            steps["content"] += [again] * (count - 1)

    return _with_schema(payload, repeated)


def _with_schema(payload, change):
    """The same archive with a description that was changed."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files["schema.json"])
    change(schema)
    files["schema.json"] = json.dumps(schema).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()
