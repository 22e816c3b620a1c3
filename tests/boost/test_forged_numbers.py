"""Numbers in stored learners that are sound one by one or in sum, but not both."""

import io
import itertools
import json
import zipfile

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer

from dynsnap.boost import _check_lightgbm, _skops
from dynsnap.errors import FileError
from tests.fuzz import forgery, learners


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
    with pytest.raises(FileError, match="not where it says"):
        _check_lightgbm.check(forged(sound, changes), 3)


def test_a_few_parts_that_are_shared_do_not_stand_for_very_many():
    inner = FeatureUnion([("only", Normalizer())])
    model = Pipeline([("all", FeatureUnion([("only", inner)])), ("prior", DummyClassifier())])
    sound = _skops.dump(model.fit(learners.INPUTS, learners.LABELS))
    _skops.load_checked(sound)
    with pytest.raises(FileError, match="learners"):
        _skops.load_checked(_with_shared_steps(sound, 100))


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
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}

    def repeated(node):
        if isinstance(node, list):
            return [repeated(one) for one in node]
        if not isinstance(node, dict):
            return node
        found = {key: repeated(one) for key, one in node.items()}
        if isinstance(steps := found.get("transformer_list"), dict):
            again = {"__id__": steps["content"][0]["__id__"]}
            steps["content"] += [again] * (count - 1)
        return found

    files["schema.json"] = json.dumps(repeated(json.loads(files["schema.json"]))).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()
