import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import InputError
from dynsnap.metrics import accuracy, consistency, correct_consistency
from dynsnap.theory import HONEST, audit
from tests.messages import naming
from tests.theory.members import ORDERS, member_weights, pairs


def ensembles(members=5, inputs=60, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, inputs)
    scores = rng.dirichlet(np.ones(classes), (2, members, inputs)) + 0.2 * np.eye(classes)[truth]
    return scores[0] / 1.2, scores[1] / 1.2, truth


@given(pairs(), ORDERS, st.data())
def test_an_audit_of_any_members_holds(drawn, order, data):
    old, new, right = drawn
    weights = data.draw(st.none() | member_weights(len(old)))
    truth = data.draw(st.sampled_from([None, right, np.zeros(old.shape[1], int)]))
    assert audit(old, new, truth=truth, order=order, weights=weights).holds


def test_an_audit_computes_everything():
    old, new, truth = ensembles()
    found = audit(old, new, truth=truth)
    assert (found.members, found.inputs, found.classes, found.order) == (5, 60, 3, 2)
    assert [bound.name for bound in found.bounds] == [
        "T1",
        "T2",
        "T3",
        "T4",
        "centroid, old",
        "correctness, old",
        "centroid, new",
        "correctness, new",
    ]
    for bound in found.bounds:
        assert bound.lefts.shape == bound.rights.shape == (60,)
        assert bound.slack == pytest.approx(bound.right - bound.left)
        assert bound.slacks[bound.worst] == bound.slacks.min()
    assert found.accuracy_bounds.holds
    assert len(found.effects.members) == 5
    assert found.honest == HONEST
    assert found.notes == ()
    assert found.holds


def test_the_ensemble_stands_beside_the_mean_and_the_best_of_its_members():
    old, new, truth = ensembles()
    standings = {one.metric: one for one in audit(old, new, truth=truth).standings}
    assert list(standings) == ["accuracy", "consistency", "correct_consistency"]

    def measured(a, b):
        a, b = a.argmax(axis=1), b.argmax(axis=1)
        right = accuracy(a, truth=truth), accuracy(b, truth=truth)
        return (
            np.mean(right),
            consistency(a, b),
            correct_consistency(a, b, truth=truth),
        )

    whole = measured(old.mean(axis=0), new.mean(axis=0))
    each = np.array([measured(a, b) for a, b in zip(old, new, strict=True)])
    for i, standing in enumerate(standings.values()):
        assert standing.ensemble == pytest.approx(whole[i])
        assert standing.mean_member == pytest.approx(each[:, i].mean())
        assert standing.best_member == pytest.approx(each[:, i].max())
        assert standing.best_position == each[:, i].argmax()


def test_an_ensemble_need_not_beat_its_best_member():
    sure, lost = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    members = np.stack([sure * 0.6 + lost * 0.4, lost, lost])
    found = audit(members, members, truth=np.array([0]))
    standing = {one.metric: one for one in found.standings}["accuracy"]
    assert (standing.ensemble, standing.best_member, standing.best_position) == (0, 1, 0)


def test_the_honest_sentence_names_what_is_not_claimed():
    for words in ("scores, not labels", "best member", "how likely"):
        assert words in HONEST
    assert HONEST.count(".") == 1


def test_what_is_left_out_is_said():
    old, new, _ = ensembles()
    without = audit(old, new)
    assert [bound.name for bound in without.bounds] == ["T1", "T2"]
    assert [one.metric for one in without.standings] == ["consistency"]
    assert without.effects is None
    assert without.accuracy_bounds is None
    (note,) = without.notes
    assert re.search(naming("T3", "T4", "T5", "truth"), note)
    one = audit(old[:1], new[:1], truth=np.zeros(60, int))
    assert [bound.name for bound in one.bounds][:2] == ["T1", "T3"]
    (note,) = one.notes
    assert re.search(naming("T2", "T4", "two members"), note)
    vectors = audit(old, new, truth=np.zeros((60, 3)))
    (note,) = vectors.notes
    assert re.search(naming("T5", "true classes"), note)


def test_logits_beside_true_classes_are_noticed():
    old, new, truth = ensembles()
    found = audit(old, np.log(new), truth=truth)
    (note,) = found.notes
    assert re.search(naming("scores", "new", "probabilities"), note)
    (note,) = audit(old, np.log(new), truth=np.zeros((60, 3))).notes
    assert "T5" in note and "probabilities" not in note


def test_unequal_members_are_refused_and_the_reason_is_given():
    old, new, _ = ensembles()
    with pytest.raises(InputError, match=naming("`old`", "5", "`new`", "4")):
        audit(old, new[:4])


def test_an_audit_is_repeatable_and_its_seed_only_moves_the_intervals():
    old, new, truth = ensembles()
    first, again = audit(old, new, truth=truth), audit(old, new, truth=truth)
    other = audit(old, new, truth=truth, seed=9)
    assert first.effects == again.effects
    assert first.effects != other.effects
    assert first.standings == other.standings


def test_an_audit_needs_little_memory_beside_the_scores():
    old, new, truth = ensembles(members=20, inputs=400, classes=50)
    tracemalloc.start()
    try:
        audit(old, new, truth=truth)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < old.nbytes


def test_scores_of_few_bits_are_audited_too():
    old, new, truth = ensembles()
    exact = audit(old, new, truth=truth)
    coarse = audit(old.astype(np.float32), new.astype(np.float32), truth=truth)
    assert coarse.holds
    assert coarse.bounds[0].right == pytest.approx(exact.bounds[0].right, rel=1e-5)
