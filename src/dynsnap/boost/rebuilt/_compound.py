"""Classifiers that are made of others: what they hold must fit them, and each other."""

from typing import Any

import numpy as np

from dynsnap.boost._structure import invalid, unchecked
from dynsnap.boost.rebuilt._facts import (
    Checker,
    Facts,
    array_like,
    attribute,
    chosen,
    classes,
    number,
    numbers,
    whole,
    wrong,
)


def pipeline(part: Any, checker: Checker) -> Facts:
    """A `Pipeline`: what a step gives is what the next takes."""
    chosen(part, "memory", [None])
    if vars(part).get("transform_input") is not None:
        raise unchecked("a Pipeline with transform_input")
    steps = _named(part, "steps")
    first = width = checker.facts(steps[0]).inputs if steps[0] != "passthrough" else None
    work, most, sparse = 0, 0, False
    for place, step in enumerate(steps):
        if isinstance(step, str | None):
            if step not in (None, "passthrough") or place + 1 == len(steps):
                raise wrong(part, "steps")
            continue
        facts = checker.facts(step)
        last = place + 1 == len(steps)
        if facts.role not in (("classifier", "transformer") if last else ("transformer",)):
            raise wrong(part, "steps")
        if None not in (facts.inputs, width) and facts.inputs != width:
            raise invalid(f"a step of a Pipeline takes {facts.inputs} features instead of {width}")
        # Counts of words stay mostly zeros as long as they are only weighed.
        if place == 0:
            sparse = facts.inputs is None and not facts.width and facts.role == "transformer"
        else:
            sparse = sparse and facts.inputs == facts.outputs and facts.role == "transformer"
        most = max(most, 0 if sparse else (width or 0) + facts.width)
        width = facts.outputs if facts.outputs is not None else facts.inputs or width
        work += facts.work
        outputs, role = facts.outputs, facts.role
    return Facts(role, first, outputs, work, most)


def _named(part: Any, name: str) -> list[Any]:
    """The parts of a list of names and parts."""
    pairs = attribute(part, name)
    if not isinstance(pairs, list) or not pairs:
        raise wrong(part, name)
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) < 2 or not isinstance(pair[0], str):
            raise wrong(part, name)
    return [pair[1] for pair in pairs]


def voting(part: Any, checker: Checker) -> Facts:
    """A `VotingClassifier` that adds probabilities."""
    chosen(part, "voting", ["soft"])
    count = classes(part)
    members = attribute(part, "estimators_")
    work = checker.all(members, "classifier", inputs=None, outputs=count)
    own = len(members) * count
    return Facts(
        "classifier", _same_inputs(members, checker), count, work, own + checker.widest(members)
    )


def stacking(part: Any, checker: Checker) -> Facts:
    """A `StackingClassifier`, which calls the methods that it names."""
    count = classes(part)
    members = attribute(part, "estimators_")
    work = checker.all(members, "classifier", inputs=None, outputs=count)
    ways = attribute(part, "stack_method_")
    known = ("predict_proba", "decision_function", "predict")
    if not isinstance(ways, list) or len(ways) != len(members) or not set(ways) <= set(known):
        raise wrong(part, "stack_method_")
    last = attribute(part, "final_estimator_")
    work += checker.all([last], "classifier", inputs=None, outputs=count)
    inputs = _same_inputs(members, checker)
    # The scores of all members are there twice: in parts, and side by side, with the inputs.
    own = 2 * len(members) * count + (inputs or 0)
    return Facts("classifier", inputs, count, work, own + checker.widest([*members, last]))


def bagging(part: Any, checker: Checker) -> Facts:
    """A `BaggingClassifier`, whose members see some of the features each."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    members, columns = attribute(part, "estimators_"), attribute(part, "estimators_features_")
    work = checker.all(members, "classifier", inputs=None, outputs=None)
    if whole(part, "n_classes_") != count or not isinstance(columns, list):
        raise wrong(part, "n_classes_")
    if len(columns) != len(members):
        raise wrong(part, "estimators_features_")
    for member, seen in zip(members, columns, strict=True):
        array_like(seen, part, "estimators_features_", None, kinds="iu")
        facts = checker.facts(member)
        if len(seen) and (seen.min() < 0 or seen.max() >= features):
            raise wrong(part, "estimators_features_")
        if facts.inputs not in (None, len(seen)):
            raise invalid(f"a member takes {facts.inputs} features instead of {len(seen)}")
        # A member may have drawn rows of some classes only.
        known = numbers(member, "classes_", None, kinds="iu") if facts.outputs != count else None
        if known is not None and (known.min() < 0 or known.max() >= count):
            raise invalid(f"a member knows a class that is not one of {count}")
    seen_at_once = max(len(seen) for seen in columns)
    return Facts("classifier", features, count, work, seen_at_once + checker.widest(members))


def adaptive(part: Any, checker: Checker) -> Facts:
    """An `AdaBoostClassifier`."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    members = attribute(part, "estimators_")
    work = checker.all(members, "classifier", inputs=features, outputs=count)
    weights = numbers(part, "estimator_weights_", None)
    if len(weights) < len(members) or whole(part, "n_classes_") != count:
        raise wrong(part, "estimator_weights_")
    return Facts("classifier", features, count, work, count + checker.widest(members))


def one_against_rest(part: Any, checker: Checker) -> Facts:
    """A `OneVsRestClassifier`: a member for each class, one for both of two."""
    binarizer = attribute(part, "label_binarizer_")
    count = classes(binarizer)
    chosen(binarizer, "y_type_", ["multiclass", "binary"])
    members = attribute(part, "estimators_")
    work = checker.all(members, "classifier", inputs=None, outputs=2)
    if len(members) != (1 if count == 2 else count):
        raise wrong(part, "estimators_")
    inputs = _same_inputs(members, checker)
    return Facts("classifier", inputs, count, work, 2 * count + checker.widest(members))


def calibrated(part: Any, checker: Checker) -> Facts:
    """A `CalibratedClassifierCV`."""
    count = classes(part)
    members = attribute(part, "calibrated_classifiers_")
    work = checker.all(members, "part", inputs=None, outputs=count)
    inputs = {checker.facts(member).inputs for member in members}
    if len(inputs) != 1:
        raise wrong(part, "calibrated_classifiers_")
    return Facts("classifier", inputs.pop(), count, work, count + checker.widest(members))


def calibrated_member(part: Any, checker: Checker) -> Facts:
    """A classifier with what makes probabilities of its decisions."""
    count = classes(part, "classes")
    inner = attribute(part, "estimator")
    work = checker.all([inner], "classifier", inputs=None, outputs=None)
    chosen(part, "method", ["sigmoid", "isotonic"])
    scales = attribute(part, "calibrators")
    checker.all(scales, "regressor", inputs=1, outputs=1)
    # A fold may lack a class.
    if len(scales) > count or (checker.facts(inner).outputs or 0) > count:
        raise wrong(part, "calibrators")
    facts = checker.facts(inner)
    return Facts("part", facts.inputs, count, work, 2 * count + facts.width)


def sigmoid(part: Any, _checker: Checker) -> Facts:
    """The curve of Platt's calibration."""
    number(part, "a_")
    number(part, "b_")
    return Facts("regressor", 1, 1)


def isotonic(part: Any, _checker: Checker) -> Facts:
    """An `IsotonicRegression`."""
    places = numbers(part, "X_thresholds_", None)
    numbers(part, "y_thresholds_", len(places))
    if not len(places) or not np.isfinite(places).all():
        raise wrong(part, "X_thresholds_")
    chosen(part, "out_of_bounds", ["nan", "clip", "raise"])
    return Facts("regressor", 1, 1)


def _same_inputs(members: list[Any], checker: Checker) -> int | None:
    found = {checker.facts(member).inputs for member in members}
    if len(found) != 1:
        raise invalid("the members of a classifier take different numbers of features")
    return found.pop()
