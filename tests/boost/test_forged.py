"""Forged learners end in an error of dynsnap's own, or answer: never in a signal, never never.

They are loaded in a process of their own, whose end is a failed test and not the end of the tests.
"""

import dataclasses

import numpy as np
import pytest
from click.testing import CliRunner
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.cli import cli
from dynsnap.store import load_ensemble, save_ensemble
from tests.fuzz import ensembles, isolation, learners

pytestmark = pytest.mark.slow  # every field of every format

# A learner, one of its values, and how it is changed. Without checks, each of these ends the
# process, keeps it for ever, or has it read and write memory that is not its own.
FORGED = [
    ("xgboost", "tree_info", "negative"),
    ("xgboost", "tree_info", "large"),
    ("xgboost", "tree_info", "cut short"),
    ("xgboost", "left_children", "negative"),
    ("xgboost", "left_children", "large"),
    ("xgboost", "left_children", "cycle"),
    ("xgboost", "left_children", "cut short"),
    ("xgboost", "right_children", "own place"),
    ("xgboost", "parents", "negative"),
    ("xgboost", "split_indices", "large"),
    ("xgboost", "split_conditions", "cut short"),
    ("xgboost", "iteration_indptr", "large"),
    ("xgboost", "num_class", "a bit large"),
    ("xgboost", "num_feature", "a bit large"),
    ("xgboost", "num_trees", "a bit large"),
    ("xgboost", "num_parallel_tree", "a bit large"),
    ("xgboost", "id", "negative"),
    ("xgboost", "base_score", "not a number"),
    ("xgboost categories", "categories", "negative"),
    ("xgboost categories", "categories", "large"),
    ("xgboost categories", "categories_nodes", "large"),
    ("xgboost categories", "categories_segments", "large"),
    ("xgboost categories", "categories_sizes", "large"),
    ("xgboost categories", "split_type", "own place"),
    ("lightgbm", "left_child", "large"),
    ("lightgbm", "left_child", "negative"),
    ("lightgbm", "left_child", "cycle"),
    ("lightgbm", "right_child", "cut short"),
    ("lightgbm", "split_feature", "large"),
    ("lightgbm", "split_feature", "negative"),
    ("lightgbm", "threshold", "of another type"),
    ("lightgbm", "threshold", "cut short"),
    ("lightgbm", "leaf_value", "cut short"),
    ("lightgbm", "leaf_value", "of another type"),
    ("lightgbm", "num_leaves", "large"),
    ("lightgbm", "num_leaves", "negative"),
    ("lightgbm", "num_class", "large"),
    ("lightgbm", "num_tree_per_iteration", "zero"),
    ("lightgbm", "num_tree_per_iteration", "negative"),
    ("lightgbm", "max_feature_idx", "large"),
    ("lightgbm", "tree_sizes", "large"),
    ("lightgbm", "tree_sizes", "cut short"),
    ("lightgbm", "objective", "missing"),
    ("lightgbm categories", "cat_boundaries", "large"),
    ("lightgbm categories", "cat_threshold", "empty"),
    ("lightgbm categories", "num_cat", "large"),
    ("lightgbm linear", "leaf_features", "large"),
    ("lightgbm linear", "num_features", "large"),
    ("tree", "left_child", "large"),
    ("forest", "left_child", "negative"),
    ("forest", "left_child", "large"),
    ("forest", "left_child", "cycle"),
    ("forest", "right_child", "own place"),
    ("forest", "feature", "large"),
    ("forest", "feature", "negative"),
    ("forest", "values", "cut short"),
    ("forest", "left_child", "cut short"),
    ("forest", "node_count", "large"),
    ("forest", "n_features_in_", "a bit large"),
    ("forest", "n_classes_", "large"),
    ("gradient", "left_child", "large"),
    ("gradient", "feature", "large"),
    ("gradient", "n_trees_per_iteration_", "a bit large"),
    ("gradient", "estimators_", "missing"),
    ("histogram", "left", "large"),
    ("histogram", "right", "cycle"),
    ("histogram", "feature_idx", "large"),
    ("histogram", "feature_idx", "negative"),
    ("histogram", "is_leaf", "cycle"),
    ("histogram", "is_categorical", "own place"),
    ("histogram", "_baseline_prediction", "cut short"),
    ("histogram categories", "is_categorical", "own place"),
    ("histogram categories", "bin_thresholds_", "large"),
    ("columns", "_n_features_outs", "large"),
    ("columns", "categories_", "cut short"),
    ("columns", "_default_to_infrequent_mappings", "large"),
    ("columns", "_transformer_to_input_indices", "missing"),
    ("columns", "statistics_", "cut short"),
    ("columns", "features_", "large"),
    ("svc", "support_vectors_", "cut short"),
    ("svc", "dual_coef_", "cut short"),
    ("svc", "intercept_", "cut short"),
    ("svc", "_probA", "cut short"),
    ("svc", "_n_support", "large"),
    ("svc", "_n_support", "negative"),
    ("svc", "_n_support", "cut short"),
    ("neighbours", "_y", "large"),
    ("neighbours", "_y", "cut short"),
    ("neighbours", "_fit_X", "cut short"),
    ("neighbours", "n_neighbors", "large"),
    ("neighbours by tree", "_fit_X", "not a number"),
    ("network", "n_layers_", "a bit large"),
    ("stochastic", "_standard_coef", "cut short"),
    ("logistic", "coef_", "cut short"),
    ("logistic", "intercept_", "cut short"),
    ("bagging", "estimators_features_", "missing"),
    ("texts", "vocabulary_", "missing"),
    ("texts", "one", "large"),
    ("texts", "one", "negative"),
    ("texts", "token_pattern", "of another type"),
    ("hashed texts", "n_features", "large"),
    ("stack", "stack_method_", "empty"),
]


def attempt(case):
    """A case that was drawn, one by the name of the value, or a member of an ensemble."""
    if len(case) == 4:
        return ensembles.attempt(case)
    if len(case) == 2:
        return predict_with_a_forged_member(case)
    name, value, change = case
    return ensembles.attempt([name, ensembles.document(name).find(value), change, 0])


DRAWN = 60


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """How all of them ended; one process for all, which takes longer to begin than all cases."""
    drawn = [ensembles.drawn(0, number) for number in range(DRAWN)]
    members = [[kind, str(tmp_path_factory.mktemp(kind))] for kind in ENSEMBLES]
    found = isolation.run("tests.boost.test_forged:attempt", [*FORGED, *drawn, *members])
    named = {tuple(outcome.case): outcome for outcome in found}
    return {case[0] if len(case) == 2 else case: outcome for case, outcome in named.items()}


@pytest.mark.parametrize("case", FORGED, ids=[" ".join(case) for case in FORGED])
def test_a_value_that_contradicts_the_others_is_refused(case, ends):
    assert ends[case].result == "refused", ends[case].detail


@pytest.mark.parametrize("name", ["bitset_idx", "raw_left_cat_bitsets"])
def test_sets_of_categories_that_are_not_there_are_refused(name):
    from dynsnap.boost import _skops
    from dynsnap.errors import FileError

    model = _skops.load(learners.learner("histogram categories").payload)
    trees = [tree for stage in model._predictors for tree in stage]
    split = next(tree for tree in trees if (tree.nodes["is_categorical"] == 1).any())
    if name == "bitset_idx":
        split.nodes[name][split.nodes["is_categorical"] == 1] = len(split.raw_left_cat_bitsets)
    else:
        split.raw_left_cat_bitsets = split.raw_left_cat_bitsets[:0]
    with pytest.raises(FileError, match="categories"):
        _skops.load_checked(_skops.dump(model))


def test_forged_learners_that_were_drawn_end_no_process(ends):
    assert len(ends) == len(FORGED) + DRAWN + len(ENSEMBLES)
    assert not [outcome for outcome in ends.values() if outcome.failed]
    drawn = [outcome for outcome in ends.values() if len(outcome.case) == 4]
    counts = ensembles.summary(drawn, seed=0)
    assert counts["cases"] == DRAWN
    assert counts["ended"]["refused"] > 20  # most changes matter
    assert counts["ended"]["answered"] > 6  # and what does not matter is not refused


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(learners.makers()))
def test_every_value_of_every_learner_can_be_forged_without_harm(name):
    found = list(isolation.run(ensembles.FUNCTION, ensembles.some(name)))
    assert len(found) == len(ensembles.document(name).leaves())
    assert not [outcome for outcome in found if outcome.failed]


# --- through the commands -----------------------------------------------------------------------

ENSEMBLES = {
    "xgboost": (XGBClassifier(max_depth=2), "tree_info", "negative"),
    "lightgbm": (LGBMClassifier(num_leaves=3, verbosity=-1), "left_child", "cycle"),
    "sklearn": (RandomForestClassifier(2, max_depth=2), "left_child", "large"),
}


def predict_with_a_forged_member(case):
    """An ensemble whose last member is forged, with every checksum right, asked by a command."""
    kind, folder = case
    model, value, change = ENSEMBLES[kind]
    inputs, labels = learners.INPUTS, learners.LABELS
    ensemble = DynSnapClassifier(
        model, method="extbagging", members=2, snapshots=1, epochs=2, random_state=0
    )
    ensemble.fit(inputs, labels).save(f"{folder}/{kind}.ensemble")
    np.savez(f"{folder}/inputs.npz", inputs=inputs, ids=np.arange(len(inputs)))
    saved = load_ensemble(f"{folder}/{kind}.ensemble")
    _, _, payload = saved.learners[-1].partition(b"\n")
    learner = learners.Learner(kind, payload, 3, inputs)
    document = ensembles.forgery.DOCUMENTS[kind](payload)
    way = next(one for one in ensembles.forgery.CHANGES if one.name == change)
    forged = document.forged(document.leaves()[document.find(value)], way, 0)
    members = (*saved.learners[:-1], learner.packed(forged))
    save_ensemble(f"{folder}/forged", dataclasses.replace(saved, learners=members))
    ended = []
    for name in (f"{kind}.ensemble", "forged"):
        words = [
            "predict",
            f"{folder}/{name}",
            f"{folder}/inputs.npz",
            "--output",
            f"{folder}/out.csv",
        ]
        result = CliRunner().invoke(cli, words)
        ended.append(f"{result.exit_code} {result.stderr}")
    return ended[0].strip(), ended[1]


@pytest.mark.parametrize("kind", ENSEMBLES)
def test_a_forged_member_of_an_ensemble_ends_the_command_and_not_the_process(kind, ends):
    outcome = ends[kind]
    assert outcome.result == "0", outcome.detail  # the ensemble as it was saved
    assert outcome.detail.startswith("3 dynsnap: "), outcome
    assert "not valid" in outcome.detail
    assert "Traceback" not in outcome.detail
