"""Classification and ranking metrics: those of scikit-learn, to twelve digits."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk

import dynsnap
from dynsnap import metrics
from dynsnap.errors import InputError, PlanError
from dynsnap.metrics import catalogue
from dynsnap.metrics._classification import OF_CLASS, Confusion, of_labels, with_one_more
from tests.messages import naming
from tests.metrics import reference
from tests.strategies import input_weights, scored_pairs, three_labellings

CLOSE = {"rel": 1e-12, "abs": 1e-12, "nan_ok": True}


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of what is undefined
        return function(*args, **kwargs)


def of_sklearn(labels, truth, weights):
    """The metrics of labels, from scikit-learn."""
    given_ = {"sample_weight": weights}
    # A class whose inputs all weigh nothing is no class of any input.
    some = np.ones(len(truth), bool) if weights is None else weights > 0
    labels, truth = labels[some], truth[some]
    given_ = {"sample_weight": None if weights is None else weights[some]}
    found = {
        "balanced_accuracy": quietly(sk.balanced_accuracy_score, truth, labels, **given_),
        "matthews": quietly(sk.matthews_corrcoef, truth, labels, **given_)
        if len(np.unique(truth)) > 1
        else np.nan,
    }
    for name in OF_CLASS:
        score = getattr(sk, f"{name}_score")
        for average in ("macro", "weighted"):
            value = quietly(score, truth, labels, average=average, zero_division=0, **given_)
            found[f"{name}_{average}"] = value
    return found


def ranked_by_sklearn(scores, truth, weights):
    """AUROC and average precision of every class that has some inputs and lacks some."""
    found = {"auroc": [], "average_precision": []}
    each = np.ones(len(truth)) if weights is None else weights
    for c in range(scores.shape[1]):
        inside = truth == c
        defined = each[inside].sum() > 0 and each[~inside].sum() > 0
        for name, score in (
            ("auroc", sk.roc_auc_score),
            ("average_precision", sk.average_precision_score),
        ):
            value = quietly(score, inside, scores[:, c], sample_weight=each) if defined else np.nan
            found[name].append(value)
    return {name: np.array(values) for name, values in found.items()}


@given(three_labellings(max_inputs=30), st.data())
def test_label_metrics_are_those_of_scikit_learn_and_of_the_slow_reference(labels, data):
    said, _, truth = labels
    weights = data.draw(st.none() | input_weights(len(truth)))
    expected = of_sklearn(said, truth, weights)
    for name, value in expected.items():
        base, _, average = name.rpartition("_")
        known = {"average": average} if base in OF_CLASS else {}
        function = getattr(metrics, base if base in OF_CLASS else name)
        found = function(said, truth=truth, weights=weights, **known)
        assert found == pytest.approx(value, **CLOSE), name
        slow = reference.quality(name, said.tolist(), truth.tolist(), weights)
        assert found == pytest.approx(slow, **CLOSE), name


@given(three_labellings(max_inputs=20), st.data())
def test_the_metrics_of_one_class_are_those_of_scikit_learn_and_undefined_where_0_over_0(
    labels, data
):
    said, _, truth = labels
    weights = data.draw(st.none() | input_weights(len(truth)))
    for c in np.unique([said, truth]).tolist():
        for name in OF_CLASS:
            found = getattr(metrics, name)(said, truth=truth, average=c, weights=weights)
            expected = quietly(
                getattr(sk, f"{name}_score"),
                truth,
                said,
                labels=[c],
                average=None,
                zero_division=np.nan,
                sample_weight=weights,
            )[0]
            assert found == pytest.approx(expected, **CLOSE), (name, c)


@given(scored_pairs(), st.data())
def test_losses_are_those_of_scikit_learn_and_of_the_slow_reference(pair, data):
    scores, _, truth = pair
    weights = data.draw(st.none() | input_weights(len(truth)))
    every = list(range(scores.shape[1]))
    expected = {
        "log_loss": quietly(sk.log_loss, truth, scores, labels=every, sample_weight=weights),
        "brier": quietly(sk.brier_score_loss, truth, scores, labels=every, sample_weight=weights),
    }
    for name, value in expected.items():
        found = getattr(metrics, name)(scores, truth=truth, weights=weights)
        assert found == pytest.approx(value, **CLOSE), name
        slow = getattr(reference, name)(scores.tolist(), scores.tolist(), truth.tolist(), weights)
        assert found == pytest.approx(slow, **CLOSE), name


def test_single_precision_takes_its_own_rounding_error_for_zero():
    scores = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    truth = np.array([1, 1])
    found = metrics.log_loss(scores, truth=truth)
    assert found == pytest.approx(sk.log_loss(truth, scores, labels=[0, 1]), rel=1e-6)
    assert metrics.log_loss(scores.astype(np.float64), truth=truth) > 2 * found


@given(scored_pairs(max_inputs=25), st.data())
def test_rankings_are_those_of_scikit_learn_and_of_the_slow_reference(pair, data):
    scores, _, truth = pair
    weights = data.draw(st.none() | input_weights(len(truth)))
    each = np.ones(len(truth)) if weights is None else weights
    support = np.bincount(truth, each, minlength=scores.shape[1])
    for name, values in ranked_by_sklearn(scores, truth, weights).items():
        function = getattr(metrics, name)
        for c, value in enumerate(values):
            found = function(scores, truth=truth, average=c, weights=weights)
            assert found == pytest.approx(value, **CLOSE), (name, c)
            slow = reference.ranking(name, scores[:, c].tolist(), (truth == c).tolist(), weights)
            assert found == pytest.approx(slow, **CLOSE), (name, c)
        known = ~np.isnan(values)
        macro, weighted = np.nan, np.nan
        if scores.shape[1] == 2:
            macro = weighted = values[1]
        elif known.any():
            macro = values[known].mean()
            weighted = np.average(values[known], weights=support[known])
        for average, value in (("macro", macro), ("weighted", weighted)):
            found = function(scores, truth=truth, average=average, weights=weights)
            assert found == pytest.approx(value, **CLOSE), (name, average)


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def two_generations(rows, classes, *, weighted=False, seed=0, kind=np.float64):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    logits = 2 * rng.standard_normal((rows, classes))
    logits[np.arange(rows), truth] += 1.5
    scores = [softmax(logits), softmax(logits + rng.standard_normal(logits.shape))]
    weights = rng.exponential(size=rows) if weighted else None
    names = [f"c{place}" for place in range(classes)]
    return [
        dynsnap.Predictions(
            ids=np.arange(rows),
            classes=names,
            scores=each.astype(kind),
            truth=truth,
            weights=weights,
        )
        for each in scores
    ]


@pytest.mark.parametrize(("classes", "weighted"), [(2, True), (5, False)])
def test_a_comparison_gives_what_scikit_learn_gives_as_old_new_and_change(classes, weighted):
    pair = two_generations(1200, classes, weighted=weighted)
    found = dynsnap.compare(*pair, resamples=50)
    sides = []
    for one, generation in zip(pair, found.generations, strict=True):
        given_ = {"sample_weight": one.weights}
        truth, scores = one.truth, one.scores
        expected = of_sklearn(one.labels, truth, one.weights)
        expected["accuracy"] = sk.accuracy_score(truth, one.labels, **given_)
        expected["log_loss"] = sk.log_loss(truth, scores, **given_)
        expected["brier"] = sk.brier_score_loss(
            truth, scores[:, 1] if classes == 2 else scores, **given_
        )
        for average, name in (("macro", ""), ("weighted", "_weighted")):
            known = {"average": average, "multi_class": "ovr"} if classes > 2 else {}
            ranked = scores if classes > 2 else scores[:, 1]
            expected[f"auroc{name}"] = sk.roc_auc_score(truth, ranked, **known, **given_)
            known = {"average": average} if classes > 2 else {}
            expected[f"average_precision{name}"] = sk.average_precision_score(
                truth, ranked, **known, **given_
            )
        for name, value in expected.items():
            assert generation.metrics[name].value == pytest.approx(value, **CLOSE), name
        sides.append(expected)
    whole = {
        name
        for name, entry in catalogue.items()
        if entry.change_of and entry.of != "class" and entry.scope == "pair"
    }
    assert {f"{name}_change" for name in sides[0]} == whole
    for name in sides[0]:
        change = found.pairs[0].metrics[f"{name}_change"]
        assert change.value == pytest.approx(sides[1][name] - sides[0][name], **CLOSE), name
        assert change.low < change.value < change.high, name
    for group in found.pairs[0].groups:
        if group.kind != "class":
            continue
        place = int(group.name[1:])
        for one, measured in zip(pair, (group.old_metrics, group.metrics), strict=True):
            ranks = ranked_by_sklearn(one.scores, one.truth, one.weights)
            for name in (*OF_CLASS, "auroc", "average_precision"):
                if name in OF_CLASS:
                    expected = getattr(sk, f"{name}_score")(
                        one.truth,
                        one.labels,
                        labels=[place],
                        average=None,
                        sample_weight=one.weights,
                    )[0]
                else:
                    expected = ranks[name][place]
                assert measured[name].value == pytest.approx(expected, **CLOSE), name
                change = group.metrics[name].value - group.old_metrics[name].value
                assert group.metrics[f"{name}_change"].value == pytest.approx(change, **CLOSE)


def test_one_true_class_leaves_undefined_what_means_nothing_there():
    said = np.array([0, 1, 0, 0])
    truth = np.zeros(4, int)
    scores = np.eye(2)[said]
    assert np.isnan(metrics.matthews(said, truth=truth))
    assert np.isnan(metrics.auroc(scores, truth=truth))
    assert np.isnan(metrics.average_precision(scores, truth=truth))
    assert np.isnan(metrics.precision(said, truth=np.array([0, 0, 0, 2]), average=2))
    assert metrics.matthews(np.zeros(4, int), truth=said) == 0


@pytest.mark.parametrize("function", [metrics.precision, metrics.recall, metrics.f1])
def test_a_class_that_does_not_occur_is_refused(function):
    with pytest.raises(InputError, match=naming("average", "macro", "7")):
        function(np.array([0, 1]), truth=np.array([0, 1]), average=7)
    with pytest.raises(InputError, match=naming("average", "macro", "7")):
        metrics.auroc(np.eye(2), truth=np.array([0, 1]), average=7)


@given(three_labellings(max_inputs=15, max_classes=3), st.integers(0, 3), st.integers(0, 3))
def test_one_more_input_is_never_worse_or_better_than_its_ends(labels, true, label):
    said, _, truth = labels
    classes = 4
    assume(true in truth and (label in truth or label in said))

    def sums(said, truth):
        right = said == truth
        return Confusion(
            *(
                np.bincount(each, minlength=classes).astype(float)
                for each in (truth, said, truth[right])
            )
        )

    low, high = with_one_more(sums(said, truth), np.array(1.0))
    found = of_labels(sums(np.append(said, label), np.append(truth, true)))
    for name, value in found.items():
        if not np.isnan(value):
            assert np.nan_to_num(low[name], nan=-1) <= value + 1e-12, name
            assert value <= np.nan_to_num(high[name], nan=1) + 1e-12, name


def test_files_streams_and_workers_have_the_same_values(tmp_path):
    from dynsnap.engine import ProcessesMap

    pair = two_generations(3000, 4, weighted=True, kind=np.float32)
    paths = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    for one, path in zip(pair, paths, strict=True):
        dynsnap.predictions.write(one, path)
    names = ["old", "new"]
    kept = dynsnap.compare(*pair, names=names, resamples=50)
    streamed = dynsnap.compare(*paths, names=names, resamples=50)
    with ProcessesMap(2) as workers:
        apart = dynsnap.compare(*paths, names=names, resamples=50, parallel=workers)
    assert streamed.generations == apart.generations
    assert streamed.pairs == apart.pairs
    for one, other in zip(kept.generations, streamed.generations, strict=True):
        for name, estimate in one.metrics.items():
            found = other.metrics[name]
            for mine, theirs in (
                (estimate.value, found.value),
                (estimate.low, found.low),
                (estimate.high, found.high),
            ):
                assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9), name


def test_only_the_groups_that_are_asked_for_are_measured():
    pair = two_generations(300, 3)
    by_default = dynsnap.compare(*pair, resamples=40)
    alone = dynsnap.compare(*pair, resamples=40, metrics=())
    ranked = dynsnap.compare(*pair, resamples=40, metrics=["ranking"])

    def groups(found):
        return {catalogue[name].group for name in found.generations[0].metrics}

    assert groups(by_default) == {"consistency", "classification", "ranking"}
    assert groups(alone) == {"consistency"}
    assert groups(ranked) == {"consistency", "ranking"}
    assert not any(group.old_metrics for group in alone.pairs[0].groups)
    # What is measured anyway does not change.
    for name, estimate in alone.pairs[0].metrics.items():
        assert by_default.pairs[0].metrics[name] == estimate, name
    with pytest.raises(PlanError, match=naming("ranking", "rankin")):
        dynsnap.compare(*pair, metrics=["rankin"])
    with pytest.raises(PlanError, match=naming("metrics", "ranking")):
        dynsnap.compare(*pair, metrics="ranking")


def test_many_inputs_are_ranked_only_on_request(monkeypatch):
    from dynsnap.comparison import _settings

    monkeypatch.setattr(_settings, "CHEAP_SCORES", 100)
    pair = two_generations(300, 3)
    assert "auroc" not in dynsnap.compare(*pair, resamples=40).generations[0].metrics
    asked = dynsnap.compare(*pair, resamples=40, metrics=["ranking"])
    assert "auroc" in asked.generations[0].metrics
