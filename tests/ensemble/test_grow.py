import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.ensemble import (
    EnsemblePlan,
    Round,
    RoundSpec,
    grow,
    grow_rounds,
    members,
    rounds_used,
    survivors,
    train_rounds,
    wanted,
)
from dynsnap.errors import InputError, PlanError, TrainingError
from tests.ensemble.fakes import FakeTrainer, made_round, step_recipe
from tests.messages import naming


@st.composite
def plans(draw):
    snapshots = draw(st.integers(1, 8))
    return EnsemblePlan(
        size=draw(st.integers(1, 25)),
        snapshots=snapshots,
        beta=draw(st.floats(0, 1) | st.just("mean")),
        top=draw(st.none() | st.integers(1, snapshots)),
    )


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.rounds: dict[str, Round] = {}

    def get(self, key, spec, /):
        return self.rounds.get(key)

    def put(self, key, done, /):
        self.rounds[key] = done


def algorithm_1(plan, trainer, recipe):
    """The paper's pseudocode, line by line: one round at a time."""
    kept, scores, index = [], [], 0
    while len(kept) < plan.size:
        (done,) = trainer.train([RoundSpec(recipe=recipe, generation=1, index=index)])
        for position in survivors(done.accuracy, beta=plan.beta)[: plan.top]:
            kept.append(float(done.accuracy[position]))
            scores.append(done.scores["test"][position])
            if len(kept) >= plan.size:
                break
        index += 1
    return kept, np.array(scores), index


@given(plans())
def test_waves_give_the_ensemble_of_algorithm_1(plan):
    recipe = step_recipe(plan.snapshots)
    waves, literal = FakeTrainer(), FakeTrainer()
    grown = grow(plan, waves, recipe=recipe, generation=1)
    accuracy, scores, rounds = algorithm_1(plan, literal, recipe)
    assert grown.accuracy.tolist() == accuracy
    assert np.array_equal(grown.scores["test"], scores)
    assert len(grown) == plan.size
    # No round is trained in vain, and none twice.
    assert sorted(spec.index for spec in waves.asked) == list(range(rounds))


@given(plans())
def test_a_member_is_where_its_origin_says(plan):
    rounds = grow_rounds(plan, FakeTrainer(), recipe=step_recipe(plan.snapshots), generation=2)
    grown = members(plan, rounds)
    for member, (at, position) in enumerate(grown.origin):
        assert grown.accuracy[member] == rounds[at].accuracy[position]
        assert np.array_equal(grown.scores["test"][member], rounds[at].scores["test"][position])
    assert rounds_used(plan, rounds) == len(rounds) == grown.origin[-1][0] + 1


@given(plans(), st.integers(1, 25))
def test_a_smaller_ensemble_is_the_beginning_of_a_larger_one(plan, size):
    recipe = step_recipe(plan.snapshots)
    rounds = grow_rounds(plan, FakeTrainer(), recipe=recipe, generation=1)
    small = EnsemblePlan(
        size=min(size, plan.size), snapshots=plan.snapshots, beta=plan.beta, top=plan.top
    )
    assert members(small, rounds).origin == members(plan, rounds).origin[: small.size]
    used = rounds_used(small, rounds)
    assert wanted(small, rounds[:used]) == 0
    assert used == 1 or wanted(small, rounds[: used - 1]) > 0


def test_rounds_in_the_store_are_not_trained_again():
    plan, recipe, shelf = EnsemblePlan(size=12, snapshots=4), step_recipe(4), Shelf()
    first = grow(plan, FakeTrainer(), recipe=recipe, generation=1, store=shelf)
    again = FakeTrainer()
    second = grow(plan, again, recipe=recipe, generation=1, store=shelf)
    assert again.asked == []
    assert np.array_equal(first.scores["test"], second.scores["test"])

    shelf.rounds.pop(next(iter(shelf.rounds)))
    grow(plan, again, recipe=recipe, generation=1, store=shelf)
    assert len(again.asked) == 1


def test_rounds_done_before_a_failure_are_stored():
    class Failing(FakeTrainer):
        def train(self, specs, /):
            yield made_round(specs[0])
            raise TrainingError("out of memory")

    shelf = Shelf()
    specs = [RoundSpec(recipe=step_recipe(), generation=1, index=i) for i in range(3)]
    with pytest.raises(TrainingError, match="out of memory"):
        train_rounds(specs, Failing(), store=shelf)
    assert [done.spec.index for done in shelf.rounds.values()] == [0]


def test_an_engine_gets_the_trainer_and_whole_waves():
    waves = []

    def engine(trainer, specs, /):
        waves.append(len(specs))
        return trainer.train(specs)

    plan = EnsemblePlan(size=9, snapshots=4, beta=1)
    grow(plan, FakeTrainer(), recipe=step_recipe(4), generation=1, engine=engine)
    assert waves == [3]


def test_a_round_that_was_not_asked_for_is_refused():
    class Confused(FakeTrainer):
        def train(self, specs, /):
            yield made_round(RoundSpec(recipe=specs[0].recipe, generation=7))

    with pytest.raises(TrainingError, match=naming("trainer", "generation 7", "asked for")):
        grow(EnsemblePlan(), Confused(), recipe=step_recipe(), generation=1)


def test_a_round_that_never_came_is_named():
    class Lazy(FakeTrainer):
        def train(self, specs, /):
            yield made_round(specs[0])

    with pytest.raises(TrainingError, match=naming("trainer", "round 1 of")):
        grow(EnsemblePlan(), Lazy(), recipe=step_recipe(), generation=1)


def test_a_diverged_round_is_refused():
    spec = RoundSpec(recipe=step_recipe(2), generation=1)
    with pytest.raises(TrainingError, match="may have diverged"):
        made_round(spec, accuracy=[0.9, np.nan])


def test_a_plan_for_other_rounds_is_refused():
    with pytest.raises(PlanError, match=naming("10 snapshots", "yields 4")):
        grow(EnsemblePlan(), FakeTrainer(), recipe=step_recipe(4), generation=1)
    done = made_round(RoundSpec(recipe=step_recipe(4), generation=1))
    with pytest.raises(PlanError, match="counts on 10 snapshots"):
        wanted(EnsemblePlan(), [done])


def test_rounds_out_of_order_or_of_two_generations_are_refused():
    first, second = (
        made_round(RoundSpec(recipe=step_recipe(), generation=1, index=i)) for i in (0, 1)
    )
    later = made_round(RoundSpec(recipe=step_recipe(), generation=2, index=1))
    for rounds in ([second, first], [first, first], [first, later]):
        with pytest.raises(InputError, match=naming("the order", "round . of.*; round . of")):
            members(EnsemblePlan(), rounds)


def test_members_without_rounds_are_refused():
    with pytest.raises(InputError, match=naming("no members", "`grow`")):
        members(EnsemblePlan(), [])


def test_rounds_scored_on_different_sets_are_refused():
    recipe = step_recipe(2)
    first = made_round(RoundSpec(recipe=recipe, generation=1, index=0))
    other = made_round(RoundSpec(recipe=recipe, generation=1, index=1))
    late = Round(
        spec=other.spec,
        accuracy=other.accuracy,
        epochs=other.epochs,
        scores={**other.scores, "late": other.scores["test"]},
        curve=other.curve,
    )
    with pytest.raises(InputError, match=naming(r"\['late', 'test'\]")):
        members(EnsemblePlan(snapshots=2), [first, late])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 0}, naming("`size`", "at least 1", "got 0")),
        ({"size": True}, naming("`size`", "whole number", "True")),
        ({"beta": None}, naming("`beta`", '"mean"', "None")),
        ({"size": 2.5}, naming("`size`", "whole number", r"2\.5")),
        ({"snapshots": "10"}, naming("`snapshots`", "whole number", "'10'")),
        ({"beta": 1.5}, r"`beta` must be .* got 1\.5"),
        ({"top": 0}, naming("`top`", "at least 1", "got 0")),
        ({"top": 11}, naming("`top`", "11", "only 10")),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        EnsemblePlan(**wrong)
