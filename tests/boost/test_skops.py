import io
import json
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dynsnap.boost import _skops
from dynsnap.errors import FileError, PlanError
from tests.messages import naming
from tests.threads import changing_often, together

RNG = np.random.default_rng(0)
INPUTS, LABELS = RNG.normal(size=(40, 3)), np.repeat([0, 1], 20)


class Stranger(LogisticRegression):
    """A type that is neither skops' nor scikit-learn's."""


def test_the_same_classifier_is_the_same_bytes_and_predicts_alike():
    make = lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(INPUTS, LABELS)  # noqa: E731
    first, second = make(), make()
    assert _skops.dump(first) == _skops.dump(second)
    for loaded in (_skops.load(_skops.dump(first)), _skops.load_checked(_skops.dump(first))[0]):
        assert (loaded.predict_proba(INPUTS) == first.predict_proba(INPUTS)).all()


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(metric="manhattan", algorithm="ball_tree"),
        VotingClassifier([("a", GaussianNB()), ("b", KNeighborsClassifier())], voting="soft"),
        make_pipeline(SelectKBest(k=2), MLPClassifier((3,), max_iter=2)),
        StackingClassifier([("a", GaussianNB())], cv=2),
        GaussianProcessClassifier(),
    ],
)
def test_what_scikit_learn_is_made_of_can_be_trusted(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(INPUTS, LABELS)
    loaded = _skops.load(_skops.dump(model))
    assert (loaded.predict_proba(INPUTS) == model.predict_proba(INPUTS)).all()


def test_a_classifier_that_would_not_be_trusted_is_not_stored():
    with pytest.raises(PlanError, match=naming("Stranger", "safely", r"test_skops\.Stranger")):
        _skops.dump(Stranger().fit(INPUTS, LABELS))
    model = make_pipeline(FunctionTransformer(np.testing.assert_equal), GaussianNB())
    with pytest.raises(PlanError, match=naming("Pipeline", "safely", "assert_equal")):
        _skops.dump(model)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("numpy.testing", "assert_equal"),
        ("sklearn.utils.fixes", "parse_version"),
        ("sklearn.externals.array_api_compat", "nonsense"),
        ("sklearn.does_not_exist", "Model"),
        ("tests.boost.test_skops", "Stranger"),
    ],
)
def test_a_file_that_names_another_type_is_not_loaded(module, name):
    content = forged(_skops.dump(GaussianNB().fit(INPUTS, LABELS)), module, name)
    for load in (_skops.load, _skops.load_checked):
        with pytest.raises(
            FileError, match=naming("not trusted", rf"{module}\.{name}", "not loaded")
        ):
            load(content)


def forged(content, module, name):
    """The same archive, with the classifier said to be something else."""
    fresh = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(fresh, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "schema.json":
                schema = json.loads(data)
                schema["__module__"], schema["__class__"] = module, name
                data = json.dumps(schema).encode()
            new.writestr(entry, data)
    return fresh.getvalue()


def test_damage_is_named():
    content = _skops.dump(GaussianNB().fit(INPUTS, LABELS))
    for damaged in (b"", b"PK", content[:100], content[:-30]):
        for load in (_skops.load, _skops.load_checked):
            with pytest.raises(FileError, match="cannot be read"):
                load(damaged)


def test_equal_numbers_are_the_same_bytes_whether_they_are_one_object_or_two():
    """A classifier that came from a file, or from another process, shares less of its memory."""
    inputs, labels = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0)
    model.fit(inputs, labels)
    content = _skops.dump(model)
    assert _skops.dump(_skops.load(content)) == content
    assert _skops.dump(_skops.load_checked(content)[0]) == content


def test_threads_may_load_classifiers_at_the_same_time():
    content = _skops.dump(GaussianNB().fit(INPUTS, LABELS))
    expected = _skops.load(content).predict_proba(INPUTS).tobytes()
    found = []

    def load():
        for _ in range(3):
            found.append(_skops.load(content).predict_proba(INPUTS).tobytes())
            found.append(_skops.load_checked(content)[0].predict_proba(INPUTS).tobytes())
            assert _skops.dump(_skops.load(content)) == content

    with changing_often():
        together(*[load] * 8)
    assert found == [expected] * 48


def test_a_thread_of_others_that_parses_python_does_not_stop_a_load(monkeypatch):
    import skops.io

    content = _skops.dump(GaussianNB().fit(INPUTS, LABELS))
    loads, faults = skops.io.loads, ["AST constructor recursion depth mismatch (before=9, after=6)"]

    def disturbed(*args, **settings):
        if faults:
            raise SystemError(faults.pop())
        return loads(*args, **settings)

    monkeypatch.setattr(skops.io, "loads", disturbed)
    assert _skops.load(content).predict(INPUTS).shape == LABELS.shape
    assert not faults


def test_another_system_error_is_not_tried_again(monkeypatch):
    tries = []

    def fail(*_, **__):
        tries.append(1)
        raise SystemError("another")

    import skops.io

    content = _skops.dump(GaussianNB().fit(INPUTS, LABELS))
    monkeypatch.setattr(skops.io, "loads", fail)
    with pytest.raises(FileError, match="another"):
        _skops.load(content)
    assert len(tries) == 1
