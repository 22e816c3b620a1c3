"""What an interval decides: three answers, Holm's method, and the inputs that would settle it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynsnap
from dynsnap.comparison import Estimate, Settings
from dynsnap.comparison._count import InMemory
from dynsnap.comparison.intervals import clopper_pearson
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import (
    Rule,
    further_disagreements,
    further_inputs,
    holm_levels,
    inline_rule,
    inputs_needed,
    judge,
    leveled,
    read_rules,
    to_json,
)
from dynsnap.metrics import catalogue
from dynsnap.predictions import Predictions, align
from tests.gate import made
from tests.messages import naming


def pair(*, kept=0, lost=0, gained=0, never=0):
    """Two generations with so many inputs of each case."""
    rows = kept + lost + gained + never
    truth = np.arange(rows) % 2
    right = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [kept, lost, gained, never], axis=0)
    common = {"ids": range(rows), "classes": ["a", "b"], "truth": truth}
    old, new = (np.where(each, truth, 1 - truth) for each in right.T)
    return Predictions(labels=old, **common), Predictions(labels=new, **common)


def bound(**more):
    return Rule(**({"metric": "lost", "at_most": 0.05, "on": "bound"} | more))


# --- three answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "statuses"),
    [
        (0, ["passed", "passed", "passed"]),  # [0, 0.012]
        (15, ["failed", "passed", "unresolved"]),  # [0.028, 0.081]
        (60, ["failed", "failed", "failed"]),  # [0.156, 0.250]
    ],
)
def test_an_interval_is_good_bad_or_open(lost, statuses):
    found = dynsnap.compare(*pair(kept=300 - lost, lost=lost))
    for mode, status in zip(("fail", "pass", "report"), statuses, strict=True):
        for verdict in (
            judge(found, bound(unresolved=mode)),
            judge(found, bound(), unresolved=mode),
            judge(found, bound(unresolved=mode), unresolved="fail"),  # the rule's own comes first
        ):
            (outcome,) = verdict.outcomes
            assert outcome.status == status == verdict.word
            assert outcome.resolved == (lost != 15)
            assert verdict.passed == (status == "passed")


def test_a_failure_comes_before_what_is_unresolved():
    found = dynsnap.compare(*pair(kept=285, lost=15))
    open_, bad = bound(unresolved="report"), Rule(metric="lost", at_most=0.01)
    verdict = judge(found, [open_, bad])
    assert verdict.word == "failed" and len(verdict.unresolved) == 1 and not verdict.passed
    assert to_json(verdict)["verdict"] == "failed" and not to_json(verdict)["passed"]
    assert to_json(judge(found, open_))["verdict"] == "unresolved"


@pytest.mark.parametrize("mode", ["fail", "pass", "report"])
def test_what_has_no_interval_is_never_unresolved(mode):
    groups = made.pair(lost=Estimate(0.05), churn=Estimate(0.1))
    with pytest.raises(ComparisonError, match=naming("interval", "lost")):
        judge(made.comparison(groups), bound(unresolved=mode))
    undefined = made.pair(lost=Estimate(math.nan, math.nan, math.nan))
    with pytest.raises(ComparisonError, match="0/0"):
        judge(made.comparison(undefined), bound(unresolved=mode))


OF_LABELS = [
    name
    for name, each in catalogue.items()
    if each.scope != "many" and "scores" not in each.needs and each.of != "class"
]


# Without a largest value there is no worst one: their own intervals decide.
NO_WORST = {
    name
    for name in OF_LABELS
    if catalogue[name].interval == "bootstrap" and math.isinf(catalogue[name].range[1])
}


@pytest.mark.parametrize("name", OF_LABELS)
def test_few_inputs_do_not_pass_for_lack_of_evidence(name):
    """Fail only if clearly worse: a rule that two inputs cannot fail is not judged, or fails."""
    old, new = pair(lost=1, never=1)
    side = "at_most" if catalogue[name].direction == "lower" else "at_least"
    rule = Rule(metric=name, **{side: 0.5}, on="bound", unresolved="pass", min_count=1)
    try:
        passed = judge(dynsnap.compare(old, new), rule).passed
    except ComparisonError:
        passed = False
    assert not passed or name in NO_WORST


@pytest.mark.parametrize(
    ("rule", "cases"),
    [
        ({"metric": "backward_trust_compatibility", "at_least": 0.5}, {"kept": 1, "never": 299}),
        ({"metric": "backward_error_compatibility", "at_least": 0.5}, {"kept": 299, "lost": 1}),
        ({"metric": "win_loss_ratio", "at_least": 2.0}, {"kept": 299, "lost": 1}),
    ],
    ids=lambda each: each.get("metric"),
)
def test_a_share_of_one_input_among_many_is_no_evidence(rule, cases):
    found = dynsnap.compare(*pair(**cases))
    with pytest.raises(ComparisonError, match="nothing can fail"):
        judge(found, Rule(**rule, on="bound", unresolved="pass"))


def test_under_every_class_those_too_small_to_fail_are_named():
    rows = 400
    truth = np.r_[np.zeros(rows - 2, int), np.ones(2, int)]
    common = {"ids": range(rows), "classes": ["a", "b"], "truth": truth}
    old = Predictions(labels=truth, **common)
    new = Predictions(labels=np.r_[truth[:-2], 0, 0], **common)
    found = dynsnap.compare(old, new)
    rule = Rule(metric="accuracy", at_least=0.8, on="bound", unresolved="pass", class_name="*")
    verdict = judge(found, rule)
    assert [each.status for each in verdict.outcomes] == ["passed", "not judged"]
    assert "2 inputs" in verdict.outcomes[1].reason
    with pytest.raises(ComparisonError, match=naming("class b", "2 inputs")):
        judge(found, Rule(metric="accuracy", at_least=0.8, on="bound", unresolved="pass",
                          class_name="b", min_count=1))  # fmt: skip


# --- inputs that a bound needs -------------------------------------------------------------------


@given(st.floats(0.001, 0.5), st.sampled_from([0.8, 0.95, 0.999]))
def test_a_bound_needs_as_many_inputs_as_it_says(threshold, confidence):
    needed = inputs_needed(bound(at_most=threshold, confidence=confidence))
    of = np.array([needed - 1, needed])
    _, high = clopper_pearson(np.zeros(2), of, confidence=confidence)
    assert high[0] > threshold - 1e-9 and high[1] <= threshold + 1e-9


def test_what_is_needed_is_said_with_the_outcome():
    few = dynsnap.compare(*pair(kept=50))
    (outcome,) = judge(few, bound(unresolved="report")).outcomes
    assert outcome.status == "unresolved" and outcome.needed == 72 and outcome.inputs == 50
    assert "72" in outcome.reason and outcome.further == 22
    assert judge(dynsnap.compare(*pair(kept=72)), bound()).passed
    assert not judge(dynsnap.compare(*pair(kept=71)), bound()).passed


@pytest.mark.parametrize("kept", [735, 736])
def test_a_change_needs_inputs_too(kept):
    old, new = pair(kept=kept)
    rule = Rule(metric="accuracy_change", at_least=-0.005, on="bound")
    assert inputs_needed(rule) == 736
    low = dynsnap.compare(old, new, resamples=4000).pairs[0].metrics["accuracy_change"].low
    assert low == pytest.approx(-0.005, abs=0.0004)  # draws, not a formula


def test_no_number_of_inputs_shows_that_nothing_is_ever_lost():
    assert inputs_needed(bound(at_most=0)) is None
    assert inputs_needed(Rule(metric="lost", at_most=0.05)) is None
    assert inputs_needed(Rule(metric="cohen_kappa", at_least=0.8, on="bound")) is None


# --- further inputs ------------------------------------------------------------------------------


@given(st.integers(30, 500), st.floats(0.01, 0.3), st.floats(0.01, 0.3))
def test_the_further_inputs_settle_it_if_the_value_stays(inputs, share, threshold):
    cases = round(share * inputs)
    value = cases / inputs
    low, high = (
        float(end[0])
        for end in clopper_pearson(np.array([cases]), np.array([inputs]), confidence=0.95)
    )
    rule = bound(at_most=threshold)
    more = further_inputs(rule, Estimate(value, low, high), threshold, inputs, confidence=0.95)
    if more is None:
        assert abs(value - threshold) < 1e-3
        return
    total = inputs + more
    low, high = clopper_pearson(
        np.array([round(value * total)]), np.array([total]), confidence=0.95
    )
    near = 1 / total  # a share of so many inputs is rounded
    assert low[0] > threshold - near or high[0] < threshold + near


def test_disagreements_settle_it_with_fewer_labels():
    value = Estimate(0.05, 0.02, 0.1)
    rule = bound(at_most=0.08)
    some = further_inputs(rule, value, 0.08, 200, confidence=0.95)
    fewer = further_disagreements(rule, value, 0.08, 200, 0.1, confidence=0.95)
    assert 0 < fewer < some / 5
    of_class = bound(at_most=0.08, class_name="cat")
    assert further_disagreements(of_class, value, 0.08, 200, 0.1, confidence=0.95) is None
    kept = Rule(metric="accuracy", at_least=0.9, on="bound")
    assert further_disagreements(kept, value, 0.08, 200, 0.1, confidence=0.95) is None


@pytest.mark.parametrize("churn", [None, 0.0, math.nan])
def test_without_disagreements_there_is_none_to_label(churn):
    value = Estimate(0.0, 0.0, 0.1)
    assert further_disagreements(bound(), value, 0.05, 60, churn, confidence=0.95) is None


def test_labelled_disagreements_give_a_stratified_estimate():
    """The recipe of docs/gate.md: weights make the metric that of all inputs again."""
    rng = np.random.default_rng(0)
    rows = 4000
    truth = rng.integers(0, 3, rows)
    old = np.where(rng.random(rows) < 0.9, truth, (truth + 1) % 3)
    new = np.where(rng.random(rows) < 0.92, truth, (truth + 2) % 3)
    differ = old != new
    labelled = np.where(differ, rng.random(rows) < 0.8, rng.random(rows) < 0.1)
    weights = np.where(
        differ,
        differ.sum() / (differ & labelled).sum(),
        (~differ).sum() / (~differ & labelled).sum(),
    )[labelled]
    common = {
        "ids": np.flatnonzero(labelled),
        "classes": list("abc"),
        "truth": truth[labelled],
        "weights": weights,
    }
    found = dynsnap.compare(
        Predictions(labels=old[labelled], **common), Predictions(labels=new[labelled], **common)
    ).pairs[0]
    lost = np.mean((old == truth) & (new != truth))
    within = np.mean(((old == truth) & (new != truth))[differ & labelled])
    assert found.metrics["lost"].value == pytest.approx(differ.mean() * within)
    assert found.metrics["lost"].low < lost < found.metrics["lost"].high
    assert found.metrics["churn"].value == pytest.approx(differ.mean())


# --- Holm ----------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12), st.sampled_from([0.8, 0.95]))
def test_holm_by_levels_is_holm_by_p_values(values, confidence):
    from dynsnap.comparison._groups import holm

    alpha = 1 - confidence
    found, _ = holm_levels(len(values), confidence, lambda level, at: values[at] <= 1 - level)
    slow = {at for at, each in enumerate(holm(values)) if each <= alpha}
    near = {at for at, each in enumerate(holm(values)) if abs(each - alpha) < 1e-9}
    assert set(found) - near == slow - near


def many(rows, lost, classes=20):
    """Classes of so many inputs, some of which lose a share."""
    truth = np.repeat(np.arange(classes), rows)
    new = truth.copy()
    for place, inputs in lost.items():
        new[place * rows : place * rows + inputs] = (place + 1) % classes
    names = [f"c{place}" for place in range(classes)]
    common = {"ids": range(len(truth)), "classes": names, "truth": truth}
    return Predictions(labels=truth, **common), Predictions(labels=new, **common)


def test_holm_asks_more_of_each_class_than_one_level_does():
    old, new = many(60, {0: 8, 1: 30})
    each = bound(at_most=0.05, class_name="*", unresolved="report")
    together = bound(at_most=0.05, class_name="*", unresolved="report", correction="holm")
    blocks = InMemory(align(old, new))
    at = leveled(blocks, [each, together], Settings())
    alone = {one.part: one.status for one in judge(at, each).outcomes}
    corrected = {one.part: one for one in judge(at, together).outcomes}
    assert alone["class c0"] == "failed" and corrected["class c0"].status == "unresolved"
    assert alone["class c1"] == corrected["class c1"].status == "failed"
    assert corrected["class c1"].confidence == pytest.approx(1 - 0.05 / 20)
    assert all(corrected[part].status != "failed" for part, status in alone.items()
               if status != "failed")  # fmt: skip
    open_ = corrected["class c0"]
    assert open_.estimate.low <= 0.05 <= open_.estimate.high


def test_holm_takes_levels_that_are_not_known_beforehand():
    old, new = many(60, {0: 8}, classes=3)
    rule = bound(class_name="*", correction="holm")
    with pytest.raises(PlanError, match=naming("lambda level", "confidence")):
        judge(dynsnap.compare(old, new), rule)
    made_of = judge(lambda level: dynsnap.compare(old, new, confidence=level), rule)
    assert [each.status for each in made_of.outcomes] == ["failed"] * 3
    other = many(50, {0: 8}, classes=3)
    with pytest.raises(ComparisonError, match="same predictions"):
        judge(lambda level: dynsnap.compare(*((old, new) if level == 0.95 else other),
                                            confidence=level), rule)  # fmt: skip


def test_holm_of_draws_asks_for_enough_of_them():
    old, new = many(60, {0: 8})
    rule = Rule(metric="accuracy_change", at_least=-0.05, on="bound", class_name="*",
                correction="holm")  # fmt: skip
    at = leveled(InMemory(align(old, new)), [rule], Settings(resamples=400))
    with pytest.raises(ComparisonError, match=naming("400", "resamples")):
        judge(at, rule)


# --- relative to the noise floor ---------------------------------------------------------------


def twins(*, lost=0, floor=0, rows=400):
    """OLD, NEW and the twin, which lose so many inputs, not the same ones."""
    truth = np.arange(rows) % 2
    new, twin = truth.copy(), truth.copy()
    new[:lost] = 1 - truth[:lost]
    twin[rows - floor :] = 1 - truth[rows - floor :]
    common = {"ids": range(rows), "classes": ["a", "b"], "truth": truth}
    return [Predictions(labels=labels, **common) for labels in (truth, new, twin)]


def compared(*given, **more):
    return dynsnap.compare(*given[:2], noise_floor=given[2], **more)


@pytest.mark.parametrize(
    ("lost", "floor", "status"),
    [(24, 20, "passed"), (25, 20, "failed"), (0, 0, "passed"), (1, 0, "failed"), (0, 9, "passed")],
)
def test_a_value_is_held_against_a_multiple_of_the_noise_floor(lost, floor, status):
    rule = Rule(metric="lost", at_most="1.2 x noise_floor")
    (outcome,) = judge(compared(*twins(lost=lost, floor=floor)), rule).outcomes
    assert outcome.status == status
    assert outcome.threshold == pytest.approx(1.2 * floor / 400)


@pytest.mark.parametrize(
    ("lost", "floor", "answers"),
    [
        (5, 80, ["passed", "passed", "passed"]),
        (30, 25, ["failed", "passed", "unresolved"]),
        (80, 5, ["failed", "failed", "failed"]),
        (0, 0, ["failed", "passed", "unresolved"]),  # nothing seen is no proof
        (2, 0, ["failed", "passed", "unresolved"]),
        (80, 0, ["failed", "failed", "failed"]),
    ],
)
def test_the_interval_of_a_multiple_has_three_answers(lost, floor, answers):
    found = compared(*twins(lost=lost, floor=floor))
    for mode, status in zip(("fail", "pass", "report"), answers, strict=True):
        rule = Rule(metric="lost", at_most="1.2 x noise_floor", on="bound", unresolved=mode)
        assert judge(found, rule).word == status


def test_multiples_are_paired():
    """What NEW and the twin lose alike does not blur how they compare."""
    rows = 400
    truth = np.arange(rows) % 2
    lose = truth.copy()
    lose[:40] = 1 - truth[:40]
    nearly = lose.copy()
    nearly[40:44] = 1 - truth[40:44]
    common = {"ids": range(rows), "classes": ["a", "b"], "truth": truth}
    same = compared(*(Predictions(labels=each, **common) for each in (truth, nearly, lose)))
    apart_ = compared(*twins(lost=44, floor=40))
    narrow, wide = (each.pairs[0].multiples["lost"] for each in (same, apart_))
    assert narrow.value == wide.value == pytest.approx(1.1)
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_classes_have_a_noise_floor_of_their_own():
    rule = Rule(metric="lost", at_most="1.2 x noise_floor", class_name="*")
    found = judge(compared(*twins(lost=25, floor=20)), rule).outcomes
    assert [each.noise_floor for each in found] == [0.05, 0.05]
    assert [each.status for each in found] == ["failed", "passed"]


def test_a_twin_that_is_new_by_another_name_is_refused():
    old, new, _ = twins(lost=20)
    copy = Predictions(ids=range(400), classes=["a", "b"], labels=np.array(new.labels),
                       truth=old.truth)  # fmt: skip
    rule = Rule(metric="lost", at_most="1.2 x noise_floor")
    with pytest.raises(ComparisonError, match=naming("copy", "noise floor")):
        judge(compared(old, new, copy), rule)


def test_a_floor_that_lets_everything_pass_is_not_judged():
    found = compared(*twins(lost=400, floor=300))
    rule = Rule(metric="lost", at_most="1.4 x noise_floor")
    with pytest.raises(ComparisonError, match="nothing can fail"):
        judge(found, rule)
    with pytest.raises(ComparisonError, match="nothing can fail"):
        judge(found, Rule(metric="lost", at_most="1.4 x noise_floor", on="bound"))


def test_without_a_twin_there_is_no_multiple():
    old, new, _ = twins(lost=20)
    with pytest.raises(ComparisonError, match=naming("--noise-floor")):
        judge(dynsnap.compare(old, new), Rule(metric="lost", at_most="1.2 x noise_floor"))


@pytest.mark.parametrize(
    "text", ["1.2 x noise_floor", "1.2×noise floor", "1.2 * same-data", "1.2 times SAME DATA"]
)
def test_a_multiple_is_written_in_words(text, tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text(f'[[rule]]\nmetric = "lost"\nat_most = "{text}"\n', encoding="utf-8")
    (rule,) = read_rules(path)
    assert rule == inline_rule(f"lost={text}", side="at_most")
    assert rule.threshold == 1.2 and rule.relative_to == "noise_floor"
    assert "noise floor" in rule.title
    assert to_json(judge(compared(*twins(lost=2, floor=9)), rule))["outcomes"][0]["rule"][
        "relative_to"
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"at_most": "1.2 x old"}, "noise_floor"),
        ({"at_most": "1.2"}, "number"),
        ({"at_most": "nan x noise_floor"}, "noise_floor"),
        ({"at_most": "1..2 x noise_floor"}, "noise_floor"),
        ({"at_most": "1e999 x noise_floor"}, "above 0"),
        ({"at_most": "0 x noise_floor"}, "above 0"),
        ({"at_most": "-1 x noise_floor"}, "above 0"),
        ({"at_least": "1.2 x noise_floor"}, "at_most"),
        ({"metric": "accuracy", "at_most": "1.2 x noise_floor"}, "accuracy"),
        ({"metric": "consistency", "at_least": "0.9 x noise_floor"}, "consistency"),
        ({"metric": "relative_nfr", "at_most": "0.9 x noise_floor"}, "ratio"),
        ({"at_most": 0.1, "relative_to": "old"}, "noise_floor"),
        ({"at_most": 0.1, "on": "value", "unresolved": "report"}, "unresolved"),
        ({"at_most": 0.1, "on": "bound", "unresolved": "maybe"}, "maybe"),
        ({"at_most": 0.1, "on": "bound", "correction": "holm"}, "one check"),
        ({"at_most": 0.1, "on": "bound", "correction": "bonferroni", "class_name": "*"}, "holm"),
        ({"at_most": 0.1, "on": "value", "correction": "holm", "class_name": "*"}, "correction"),
    ],
    ids=str,
)
def test_rules_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(PlanError, match=message):
        Rule(**({"metric": "lost"} | fields))


# --- relative to OLD -----------------------------------------------------------------------------


def test_a_change_may_be_asked_to_be_no_worse():
    rule = Rule(metric="accuracy_change", at_least=-0.005)
    assert judge(dynsnap.compare(*pair(kept=800, lost=14, gained=10, never=176)), rule).passed
    assert not judge(dynsnap.compare(*pair(kept=800, lost=16, gained=10, never=174)), rule).passed


def test_a_change_that_cannot_happen_is_not_judged():
    found = dynsnap.compare(*pair(kept=30, never=70))
    with pytest.raises(ComparisonError, match="can fail"):
        judge(found, Rule(metric="accuracy_change", at_least=-0.3))
    with pytest.raises(PlanError, match="accuracy_change"):
        Rule(metric="accuracy_change", at_least=-5)
    with pytest.raises(PlanError, match="accuracy_change"):
        Rule(metric="accuracy_change", at_most=0.1)


# --- labels that were chosen ----------------------------------------------------------------------


def partly_labelled(chosen):
    """Two generations that differ on a tenth of the inputs, of which some have a true class."""
    rows = 2000
    rng = np.random.default_rng(4)
    classes = ["a", "b"]
    truth = rng.integers(0, 2, rows)
    old = truth.copy()
    new = np.where(rng.random(rows) < 0.1, 1 - truth, truth)
    has = {"random": rng.random(rows) < 0.2, "differing": old != new}[chosen]
    known = [classes[one] if there else None for one, there in zip(truth, has, strict=True)]
    common = {"ids": range(rows), "classes": classes, "truth": known}
    return [Predictions(labels=each, **common) for each in (old, new)]


def test_inputs_labelled_because_they_differ_are_no_random_sample():
    rule = Rule(metric="lost", at_most=0.2)
    assert judge(dynsnap.compare(*partly_labelled("random")), rule, allow_unlabelled=1.0).passed
    chosen = dynsnap.compare(*partly_labelled("differing"))
    with pytest.raises(ComparisonError, match=naming("random sample", "weight")):
        judge(chosen, rule, allow_unlabelled=1.0)
    assert judge(chosen, Rule(metric="churn", at_most=0.2), allow_unlabelled=1.0).passed
