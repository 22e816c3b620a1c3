"""Rounds that learn from a deployed network, average their weights, or smooth their labels."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from dynsnap.data import from_generations
from dynsnap.ensemble import Distillation, TeacherScores, average_decay, round_key
from dynsnap.errors import FileError, InputError, Interrupted, PlanError
from dynsnap.predictions import Predictions
from dynsnap.train import ShiftsAndFlips, TorchTrainer
from dynsnap.train._alone import AloneStepper
from dynsnap.train._bags import BagsStepper
from dynsnap.train._distillation import UNKNOWN, RoundTargets, soft_losses, soft_slopes
from dynsnap.train._final_weights import STEPS, FinalWeights, chosen_step
from dynsnap.train._stacked import StackedStepper
from dynsnap.train._teacher import teacher_scores
from dynsnap.train._weights import StoredLearner
from dynsnap.train.models import fasttext, mlp
from tests.marks import daily
from tests.messages import naming
from tests.train.made import Memory, Watcher, blobs, pictures, same, sentences, spec, stream_of

POOL = blobs()


class Normed(nn.Module):
    """A small network with batch norm."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.first = nn.Conv2d(inputs[0], 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.output = nn.Linear(4, classes)

    def forward(self, images):
        return self.output(functional.relu(self.norm(self.first(images))).mean((2, 3)))


def growing(pool=POOL):
    """Two generations; class "c" arrives with the second."""
    first = np.flatnonzero(pool.labels[: len(pool) // 2] != len(pool.classes) - 1)
    return from_generations(pool, [first, np.arange(len(pool))], test=pool, validation=0.25)


def trainer(stream=None, kept=None, **settings):
    usual = {"model": mlp, "batch_size": 16, "learning_rate": 0.02, "device": "cpu"}
    find = None if kept is None else kept.__getitem__
    return TorchTrainer(stream or growing(), parents=find, **{**usual, **settings})


def deployed(**settings):
    """Stored networks by key: one of the first generation."""
    (done,) = trainer(**settings).train([spec(epochs=6, snapshots=1)])
    return {"old/0": done.weights[0]}


def retrain(
    *,
    warm=True,
    weight=0.5,
    rows="all",
    temperature=1.0,
    views=2,
    classes="known",
    often=1.0,
    **settings,
):
    made = spec(generation=2, snapshots=1, parent="old/0" if warm else None, **settings)
    made = dataclasses.replace(made, new_class_weight=often)
    if not weight:
        return made
    how = Distillation(
        teacher="old/0",
        weight=weight,
        rows=rows,
        temperature=temperature,
        views=views,
        classes=classes,
    )
    return dataclasses.replace(made, distillation=how)


def stepper_of(way, asked):
    return way._round_groups.stepper(way._round_groups.of(asked), [asked])


def slow_loss(logits, labels, scores, weights, heat, *, wrong, smoothing=0.0):
    """The mean loss of a batch, row by row, in plain Python."""
    total = 0.0
    for z, label, said, weight in zip(logits, labels, scores, weights, strict=True):

        def log_softmax(values):
            down = values - values.max()
            return down - np.log(np.exp(down).sum())

        if wrong and z.argmax() == label:
            weight = 0.0
        even = -log_softmax(z).mean()
        labelled = -(1 - smoothing) * log_softmax(z)[label] + smoothing * even
        known = said >= 0
        soft = said[known] ** (1 / heat) / (said[known] ** (1 / heat)).sum()
        taught = -heat * heat * (soft * log_softmax(z[known] / heat)).sum()
        total += weight * taught + (1 - weight) * labelled
    return total / len(labels)


@pytest.mark.parametrize("unknown", [0, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("heat", [1.0, 3.0])
def test_the_loss_of_a_student_is_what_its_definition_says(heat, wrong, smoothing, unknown):
    rng = np.random.default_rng(0)
    logits, scores = rng.normal(size=(40, 3 + unknown)), rng.dirichlet(np.ones(3), 40)
    labels, weights = rng.integers(0, 3, 40), np.where(rng.random(40) < 0.6, 0.7, 0.0)
    soft = scores ** (1 / heat)
    soft = soft / soft.sum(1, keepdims=True)
    soft, scores = (
        np.column_stack([each, np.full((40, unknown), UNKNOWN)]) for each in (soft, scores)
    )
    targets = RoundTargets(
        scores=torch.from_numpy(soft),
        weights=torch.from_numpy(weights),
        temperature=heat,
        wrong=wrong,
    )
    labelled = functools.partial(functional.cross_entropy, label_smoothing=smoothing)
    found = targets.loss(
        torch.from_numpy(logits), torch.from_numpy(labels), torch.arange(40), labelled
    )
    slow = slow_loss(logits, labels, scores, weights, heat, wrong=wrong, smoothing=smoothing)
    assert float(found) == pytest.approx(slow, rel=1e-5)


@given(st.integers(0, 10_000), st.sampled_from([0.5, 1.0, 4.0]))
def test_slopes_are_those_of_the_loss_and_leave_unknown_classes_alone(seed, heat):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(1, 6, 5))).requires_grad_()
    unknown = rng.random(5) < 0.4
    unknown[0] = False
    scores = np.where(unknown, 0, rng.dirichlet(np.ones(5), (1, 6)))
    scores = np.where(unknown, UNKNOWN, scores / scores.sum(-1, keepdims=True))
    targets = torch.from_numpy(scores)
    warm = torch.full((1, 1, 1), heat, dtype=torch.float64)
    (slow,) = torch.autograd.grad(soft_losses(logits, targets, warm).sum(), logits)
    found = soft_slopes(logits.detach(), targets, warm, lambda z: torch.softmax(z, -1))
    torch.testing.assert_close(found, slow, rtol=1e-4, atol=1e-5)
    assert (found[..., unknown] == 0).all()


@pytest.mark.parametrize("stepper", [AloneStepper, StackedStepper])
def test_averaged_weights_are_the_average_of_every_step(stepper):
    loss = functional.cross_entropy if stepper is AloneStepper else None
    way, asked = trainer(loss=loss), spec(average=0.7, epochs=2)
    steps = stepper_of(way, asked)
    assert isinstance(steps, stepper)
    round_ = way._open(asked)
    steps.admit(round_, None)
    plain = dataclasses.replace(asked, recipe=dataclasses.replace(asked.recipe, average=0.0))
    round_.spec = plain
    slow = {name: value.double() for name, value in steps.weights(round_).items()}
    round_.spec = asked
    for step in range(round_.steps):
        round_.step = step
        steps.advance([round_], 1)
        now = {
            name.removeprefix("module."): value
            for name, value in steps.state(round_).items()
            if name.startswith("module.")
        } or _unstacked(steps, round_, plain)
        decay = average_decay(0.7, step + 1)
        slow = {name: decay * slow[name] + (1 - decay) * now[name].double() for name in slow}
    for name, value in steps.weights(round_).items():
        torch.testing.assert_close(value.double(), slow[name], rtol=1e-5, atol=1e-6)


def _unstacked(steps, round_, plain):
    asked, round_.spec = round_.spec, plain
    found = steps.weights(round_)
    round_.spec = asked
    return found


ASKED = {
    "averaged": {"weight": 0, "average": 0.9},
    "smoothed": {"weight": 0, "smoothing": 0.2},
    "taught": {"temperature": 2.0},
    "where the old one is right": {"rows": "right"},
    "where the new one is wrong": {"rows": "wrong", "weight": 0.8},
    "on all classes": {"classes": "all"},
    "new classes more often": {"often": 2.5},
    "all of it": {"average": 0.9, "smoothing": 0.1, "rate": 0.3, "warm": False, "often": 3.0},
}


@pytest.mark.parametrize("name", daily(ASKED, "where the new one is wrong", "all of it"))
def test_a_retrained_round_in_a_stack_is_the_round_alone(name):
    kept, asked = deployed(), retrain(epochs=3, **ASKED[name])
    stacked, alone = trainer(kept=kept), trainer(kept=kept, loss=functional.cross_entropy)
    assert isinstance(stepper_of(stacked, asked), StackedStepper)
    assert isinstance(stepper_of(alone, asked), AloneStepper)
    (a,), (b,) = stacked.train([asked]), alone.train([asked])
    np.testing.assert_allclose(a.scores["test"], b.scores["test"], atol=1e-4)
    # Beside others, it is the same to the last bit.
    others = [retrain(epochs=4, index=1, **ASKED["all of it"]), spec(generation=2, index=2)]
    crowd = {done.spec: done for done in stacked.train([*others, asked])}
    assert same(crowd[asked], a)
    plain = crowd[others[1]]
    assert same(plain, next(iter(trainer().train([others[1]]))))


@pytest.mark.parametrize("rows", ["all", "right", "wrong"])
def test_a_retrained_round_on_bags_of_words_is_the_round_alone(rows):
    stream = growing(sentences(rows=90, classes=3))
    base = {"model": fasttext, "learning_rate": 0.05, "stream": stream}
    kept, asked = deployed(**base), retrain(epochs=4, rows=rows)
    bags, alone = (
        trainer(kept=kept, loss=loss, **base) for loss in (None, functional.cross_entropy)
    )
    assert isinstance(stepper_of(bags, asked), AloneStepper if rows == "wrong" else BagsStepper)
    (a,), (b,) = bags.train([asked]), alone.train([asked])
    np.testing.assert_allclose(a.scores["test"], b.scores["test"], atol=1e-4)


def test_bags_of_words_are_taught_beside_a_new_class_that_outweighs_all_known_ones():
    stream = growing(sentences(rows=90, classes=3))
    base = {"model": fasttext, "learning_rate": 0.5, "stream": stream}
    kept, asked = deployed(**base), retrain(epochs=4, temperature=0.01, often=4.0)
    bags, alone = (
        trainer(kept=kept, **base, loss=loss) for loss in (None, functional.cross_entropy)
    )
    assert isinstance(stepper_of(bags, asked), BagsStepper)
    for way in (bags, alone):
        (done,) = way.train([asked])  # raises where a loss is not finite
        assert done.accuracy[0] > 0.9


def test_classes_that_the_teacher_does_not_know_are_learned_from_labels():
    kept = deployed()
    way = trainer(kept=kept)
    round_ = way._open(retrain())
    weights = round_.targets.weights.numpy()
    assert set(weights[round_.train][POOL.labels[round_.train] < 2]) == {0.5}
    assert set(weights[POOL.labels == 2]) == {0.0}
    assert not weights[round_.validation].any()


def test_a_low_temperature_leaves_scores_that_sum_to_one():
    way = trainer(kept=deployed())
    round_ = way._open(retrain(temperature=1e-3))
    taught = round_.train[POOL.labels[round_.train] < 2]
    scores = round_.targets.scores.numpy()[taught, :2]
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_a_teacher_has_no_say_about_classes_that_it_does_not_know():
    way = trainer(kept=deployed())
    scores = way._open(retrain()).targets.scores.numpy()
    assert (scores[:, 2] == UNKNOWN).all()
    assert (scores[:, :2] >= 0).all()
    assert (way._open(retrain(classes="all")).targets.scores.numpy() >= 0).all()


@pytest.mark.parametrize("often", [1.0, 2.0, 3.5])
def test_rows_of_new_classes_are_drawn_more_often_in_epochs_of_the_same_length(often):
    way = trainer(kept=deployed(), batch_size=1)
    round_ = way._open(retrain(often=often))
    drawn = np.zeros((400, len(POOL)))
    for epoch in range(len(drawn)):
        round_.epoch = epoch
        order = round_.order()
        assert order.size == len(round_.train)
        np.add.at(drawn[epoch], order.ravel(), 1)
    assert not drawn[:, np.setdiff1d(np.arange(len(POOL)), round_.train)].any()
    new = round_.train[POOL.labels[round_.train] == 2]
    old = round_.train[POOL.labels[round_.train] < 2]
    assert drawn[:, new].mean() / drawn[:, old].mean() == pytest.approx(often, rel=0.02)
    assert drawn[:, old].max() == 1


def test_where_no_class_is_new_what_concerns_new_classes_changes_no_bit():
    base = {"stream": stream_of(POOL)}
    kept = deployed(**base)
    asked = [retrain(epochs=2), retrain(epochs=2, often=4.0, classes="all")]
    made = [next(iter(trainer(kept=kept, **base).train([one]))) for one in asked]
    assert made[0].weights == made[1].weights


def test_only_rows_that_the_teacher_has_right_count():
    kept = deployed()
    way = trainer(kept=kept)
    round_ = way._open(retrain(rows="right"))
    said = way.score([kept["old/0"]], POOL.inputs)[0].argmax(1)
    known = round_.train[POOL.labels[round_.train] < 2]
    right = said[known] == POOL.labels[known]
    assert 0 < right.sum() < len(known)
    np.testing.assert_array_equal(round_.targets.weights.numpy()[known] > 0, right)


def test_a_teacher_looks_at_augmented_views_as_its_student_does():
    pool = pictures()
    base = {"stream": growing(pool), "model": Normed, "augment": ShiftsAndFlips()}
    kept = deployed(**base)
    way = trainer(kept=kept, **base)
    teacher, rows = StoredLearner.from_bytes(kept["old/0"]), np.arange(30)

    def said(views, seed=0):
        return teacher_scores(teacher, rows, way._context, views, seed)

    assert torch.equal(said(2), said(2))
    assert not torch.equal(said(2), said(2, seed=1))
    plain = torch.from_numpy(way.score([kept["old/0"]], pool.inputs[rows])[0])
    far, near = ((said(views) - said(views, seed=9)).abs().mean() for views in (1, 16))
    assert near < far
    torch.testing.assert_close(said(3).sum(1), torch.ones(30))
    still = trainer(kept=kept, **{**base, "augment": None})
    torch.testing.assert_close(teacher_scores(teacher, rows, still._context, 5, 0), plain)


@pytest.mark.parametrize("model", [mlp, Normed])
def test_a_retrain_that_was_stopped_goes_on_to_the_same_bits(model):
    pool = POOL if model is mlp else pictures()
    augment = None if model is mlp else ShiftsAndFlips()
    base = {"stream": growing(pool), "model": model, "augment": augment}
    kept = deployed(**base)
    asked = retrain(epochs=6, average=0.9, smoothing=0.1)
    memory, watcher = Memory(), Watcher(after=3)
    way = trainer(kept=kept, monitor=watcher, checkpoints=memory, checkpoint_every=0, **base)
    with pytest.raises(Interrupted):
        list(way.train([asked]))
    assert memory.kept
    watcher.after = None
    (resumed,) = way.train([asked])
    assert [epoch for _, epoch, _ in watcher.seen] == list(range(6))
    (straight,) = trainer(kept=kept, **base).train([asked])
    assert same(resumed, straight)


def test_averaged_weights_get_statistics_of_their_own():
    pool = pictures()
    base = {"stream": growing(pool), "model": Normed}
    way = trainer(**base)
    asked = spec(average=0.9, epochs=3, snapshots=1)
    (done,) = way.train([asked])
    learner, round_ = StoredLearner.from_bytes(done.weights[0]), way._open(asked)
    inputs = way._context.prepare.apply(
        way._context.inputs.take(torch.from_numpy(round_.train)), learner.prepared
    )
    hidden = functional.conv2d(inputs, learner.weights["first.weight"], padding=1)
    torch.testing.assert_close(
        learner.weights["norm.running_mean"], hidden.mean((0, 2, 3)), rtol=1e-4, atol=1e-5
    )
    said = way.score(done.weights, pool.inputs[round_.validation])[0].argmax(1)
    assert done.accuracy[0] == pytest.approx((said == pool.labels[round_.validation]).mean())


def test_a_student_stays_closer_to_its_teacher_than_others():
    kept = deployed()
    way = trainer(kept=kept)
    ways = [{}, {"weight": 0}, {"warm": False}, {"warm": False, "weight": 0}]
    asked = [retrain(epochs=30, **{"weight": 0.8, **one}) for one in ways]
    asked = [
        dataclasses.replace(one, recipe=dataclasses.replace(one.recipe, selection="last"))
        for one in asked
    ]
    made = [next(iter(way.train([one]))).weights[0] for one in asked]
    old, *new = way.score([kept["old/0"], *made], POOL.inputs)
    seen = POOL.labels < 2
    student, warm, taught, fresh = (np.abs(one - old)[seen].mean() for one in new)
    assert student < warm < fresh
    assert taught < fresh
    assert (new[0].argmax(1)[~seen] == 2).mean() > 0.5  # the new class is learned all the same


def test_the_rate_of_a_restart_is_a_factor_of_all_epochs():
    way = trainer(kept=deployed())
    usual, low = way._open(retrain(epochs=4)), way._open(retrain(epochs=4, rate=0.1))
    np.testing.assert_allclose(low.multipliers, 0.1 * usual.multipliers)


def test_another_lesson_is_another_key():
    way = trainer(kept=deployed())
    asked = [
        retrain(),
        retrain(weight=0),
        retrain(weight=0.4),
        retrain(rows="right"),
        retrain(views=3),
        retrain(classes="all"),
        retrain(often=2.0),
        retrain(average=0.9),
        retrain(smoothing=0.1),
        retrain(rate=0.5),
    ]
    assert len({round_key(way, one) for one in asked}) == len(asked)


def interpolated(**settings):
    return dataclasses.replace(retrain(**settings), interpolate=True)


def with_holdout(pool, share=0.3):
    first = np.flatnonzero(pool.labels[: len(pool) // 2] != len(pool.classes) - 1)
    cuts = [first, np.arange(len(pool))]
    return from_generations(pool, cuts, test=pool, validation=0.25, selection_holdout=share)


@given(st.integers(0, 10_000))
def test_the_step_toward_deployed_weights_is_the_one_that_loses_least(seed):
    rng = np.random.default_rng(seed)
    truth, deployed = rng.integers(0, 3, (2, 30))
    labels = [np.where(rng.random(30) < 0.6, truth, rng.integers(0, 3, 30)) for _ in STEPS]
    new = np.array([False, False, True])
    step = chosen_step(labels, deployed, truth, new=new, steps=STEPS)

    def allowed(found):
        is_new = truth == 2
        enough = (found == truth).sum() >= (labels[0] == truth).sum()
        kept = (found == truth)[is_new].sum() >= 0.97 * (labels[0] == truth)[is_new].sum()
        return enough and kept

    def lost(found):
        return sum(d == t != f for d, t, f in zip(deployed, truth, found, strict=True))

    fewest = min(lost(found) for found in labels if allowed(found))
    slow = next(s for s, f in zip(STEPS, labels, strict=True) if allowed(f) and lost(f) == fewest)
    assert step == slow


@given(st.integers(0, 10_000))
def test_for_the_step_a_row_of_weight_three_is_three_rows(seed):
    rng = np.random.default_rng(seed)
    truth, deployed = rng.integers(0, 3, (2, 20))
    labels = [np.where(rng.random(20) < 0.6, truth, rng.integers(0, 3, 20)) for _ in STEPS]
    times = rng.integers(1, 5, 20)
    how = {"new": np.array([False, False, True]), "steps": STEPS}
    often = [each.repeat(times) for each in (*labels, deployed, truth)]
    wanted = chosen_step(often[:-2], *often[-2:], **how)
    for scale in (1, 0.1):
        found = chosen_step(labels, deployed, truth, **how, weights=scale * times)
        assert found == wanted


@pytest.mark.parametrize("model", [mlp, Normed])
def test_interpolated_weights_lie_on_the_way_to_the_deployed_ones(model):
    pool = POOL if model is mlp else pictures()
    base = {"stream": with_holdout(pool), "model": model}
    kept = deployed(**base)
    way, asked = trainer(kept=kept, **base), interpolated(epochs=4)
    (done,) = way.train([asked])
    assert same(done, next(iter(way.train([asked]))))
    round_ = way._open(asked)
    old = StoredLearner.from_bytes(kept["old/0"]).weights
    new = {
        name: torch.randn_like(value) if value.is_floating_point() else value
        for name, value in old.items()
    }
    final = FinalWeights(round_, way._context, way._held_out(asked))
    moved, accuracy = final.settle(new, 0.5)
    name = "output.weight" if model is Normed else next(iter(new))
    steps = [float(((moved[name] - new[name]) / (old[name] - new[name])).mean())]
    assert min(abs(step - steps[0]) for step in STEPS) < 1e-4
    stored = dataclasses.replace(StoredLearner.from_bytes(kept["old/0"]), weights=moved)
    said = way.score([stored.to_bytes()], pool.inputs[round_.validation])[0].argmax(1)
    assert accuracy == pytest.approx((said == pool.labels[round_.validation]).mean())


def test_a_new_class_that_no_held_out_row_shows_has_rows_set_aside():
    kept = deployed()
    stream = with_holdout(POOL)
    shown = stream.evaluation["untouched"].labels
    without = tuple(rows[shown[rows] < 2] for rows in stream.selection_holdout)
    blind = dataclasses.replace(stream, selection_holdout=without)
    way = trainer(blind, kept=kept)
    round_, usual = way._open(interpolated()), way._open(retrain())
    count = (POOL.labels[usual.train] == 2).sum()
    assert set(POOL.labels[round_.aside]) == {2}
    assert len(round_.aside) == round(0.1 * count)
    assert not np.isin(round_.aside, round_.train).any()
    assert len(trainer(stream, kept=kept)._open(interpolated()).aside) == 0
    assert len(list(way.train([interpolated()]))) == 1


def test_rows_that_decide_the_step_count_as_much_as_they_weigh():
    weighted = dataclasses.replace(POOL, weights=np.linspace(0.5, 4, len(POOL)))
    stream = with_holdout(weighted)
    held = stream.evaluation["untouched"]
    way, asked = trainer(stream, kept=deployed()), interpolated()
    aside = np.array([3, 5])
    found = way._held_out(asked).joined_weights(aside)
    rows = stream.selection_holdout[asked.generation - 1]
    assert len(rows)
    wanted = [*weighted.weights[np.isin(weighted.ids, held.ids[rows])], *weighted.weights[aside]]
    assert sorted(found) == pytest.approx(sorted(wanted))
    assert trainer(with_holdout(POOL), kept={})._held_out(asked).joined_weights(aside) is None


def test_interpolation_needs_a_warm_start_and_held_out_rows():
    with pytest.raises(PlanError, match=naming("`warm_start`", "`interpolate`")):
        interpolated(warm=False)
    with pytest.raises(PlanError, match="`selection_holdout`"):
        trainer(kept=deployed()).train([interpolated()])


class Other(Normed):
    """The same with another layer."""

    def __init__(self, inputs, classes):
        super().__init__(inputs, classes)
        self.extra = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("pool", "model", "named"),
    [
        (pictures(), Other, ["extra"]),
        (pictures(classes=4), Normed, ["4", "3"]),
        (pictures(side=10), Normed, ["(1, 10, 10)", "(1, 8, 8)"]),
    ],
    ids=["architecture", "classes", "inputs"],
)
@pytest.mark.parametrize("warm", [True, False])
def test_a_deployed_network_of_another_kind_is_refused(pool, model, named, warm):
    kept = deployed(stream=growing(pictures()), model=Normed)
    kept["old/0"] = next(
        iter(trainer(growing(pool), model=model).train([spec(epochs=1, snapshots=1)]))
    ).weights[0]
    way = trainer(growing(pictures()), kept=kept, model=Normed)
    with pytest.raises(FileError, match=naming(*named)):
        list(way.train([retrain(warm=warm)]))


def test_what_cannot_be_trained_is_refused_before_anything_is():
    with pytest.raises(PlanError, match="`parents`"):
        trainer().train([retrain(warm=False)])
    way = trainer(kept={})
    with pytest.raises(PlanError, match="no generation comes before"):
        way.train([dataclasses.replace(retrain(), generation=1)])
    with pytest.raises(PlanError, match=naming("`average`", "`batch_size`")):
        trainer(batch_size=1000).train([spec(average=0.9, epochs=1, snapshots=1)])
    with pytest.raises(PlanError, match="`smoothing`"):
        trainer(loss=nn.CrossEntropyLoss).train([spec(smoothing=0.1)])


def slow_pair(way, asked):
    """Both networks of a co-distilled round after one epoch, step by step, in double precision."""
    round_, context = way._open(asked), way._context
    weight = asked.recipe.codistill
    pair = [context.build(round_, purpose).double() for purpose in ("initial", "peer")]
    stepped = [torch.optim.SGD(one.parameters(), 0.02) for one in pair]
    bound = context.prepare.bind(round_.prepared, context.inputs)
    for batch in round_.order():
        rows = torch.from_numpy(batch)
        inputs = context.prepare.apply(context.inputs.take(rows), bound).double()
        said = [torch.exp(one(inputs)) for one in pair]
        said = [each / each.sum(1, keepdim=True) for each in said]
        losses = []
        for own, other in ((said[0], said[1].detach()), (said[1], said[0].detach())):
            truth = torch.log(own[torch.arange(len(rows)), context.labels[rows]])
            losses.append(-weight * (other * own.log()).sum(1).mean() - (1 - weight) * truth.mean())
        for loss, steps in zip(losses, stepped, strict=True):
            steps.zero_grad()
            loss.backward()
            steps.step()
    return [one.state_dict() for one in pair]


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_codistilled_networks_learn_from_each_others_current_scores(weight):
    way = trainer(optimizer=torch.optim.SGD)
    asked = spec(codistill=weight, epochs=1, snapshots=1)
    steps = stepper_of(way, asked)
    assert isinstance(steps, AloneStepper)
    round_ = way._open(asked)
    steps.admit(round_, None)
    steps.advance([round_], round_.steps)
    served, peer = slow_pair(way, asked)
    state = steps.state(round_)
    for name, value in served.items():
        torch.testing.assert_close(state[f"module.{name}"].double(), value, rtol=1e-4, atol=1e-6)
        near = state[f"peer.module.{name}"].double()
        torch.testing.assert_close(near, peer[name], rtol=1e-4, atol=1e-6)
        assert torch.equal(steps.weights(round_)[name], state[f"module.{name}"])
    assert any(not torch.equal(served[name], peer[name]) for name in served)


@pytest.mark.parametrize("model", [mlp, Normed])
def test_a_codistilled_round_that_was_stopped_goes_on_to_the_same_bits(model):
    pool = POOL if model is mlp else pictures()
    augment = None if model is mlp else ShiftsAndFlips()
    base = {"stream": growing(pool), "model": model, "augment": augment}
    asked = spec(epochs=4, snapshots=1, codistill=0.5, average=0.9, smoothing=0.1)
    memory, watcher = Memory(), Watcher(after=2)
    way = trainer(monitor=watcher, checkpoints=memory, checkpoint_every=0, **base)
    with pytest.raises(Interrupted):
        list(way.train([asked]))
    watcher.after = None
    (resumed,) = way.train([asked])
    assert [epoch for _, epoch, _ in watcher.seen] == list(range(4))
    # Whatever else is trained with it: the same round.
    straight = {one.spec: one for one in trainer(**base).train([spec(index=1), asked])}
    assert same(resumed, straight[asked])


def test_codistillation_is_left_out_of_the_names_of_other_rounds_and_refused_where_it_cannot_be():
    assert "codistill" not in spec().canonical()
    assert "codistill" in spec(codistill=0.5).canonical()
    for weight in (-0.1, 1.5, "much"):
        with pytest.raises(PlanError, match=naming("`codistill`", repr(weight))):
            spec(codistill=weight)
    for settings in ({"warm": True, "weight": 0}, {"warm": False}):
        with pytest.raises(PlanError, match=naming("`codistill`", "`warm_start`")):
            retrain(codistill=0.5, **settings)


@pytest.mark.parametrize("rows", ["all", "right", "wrong"])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_scores_that_were_handed_in_teach_as_the_network_does_that_gave_them(rows, temperature):
    kept = deployed()
    said = trainer(kept=kept).score([kept["old/0"]], POOL.inputs)[0][:, :2]
    file = Predictions(
        ids=POOL.ids, classes=POOL.classes[:2], scores=said / said.sum(1, keepdims=True)
    )
    given = TeacherScores.of(file, name="file", ids=POOL.ids, classes=POOL.classes)
    way = trainer(kept={**kept, given.key: given.to_bytes()})
    asked = retrain(rows=rows, temperature=temperature)
    how = dataclasses.replace(asked.distillation, teacher=given.key)
    taught = dataclasses.replace(asked, distillation=how)
    usual, found = way._open(asked), way._open(taught)
    # Other names draw other rows: those that both train on have the same targets.
    both = np.intersect1d(usual.train, found.train)
    known = both[POOL.labels[both] < 2]
    torch.testing.assert_close(usual.targets.scores[known], found.targets.scores[known])
    torch.testing.assert_close(usual.targets.weights[both], found.targets.weights[both])
    assert found.targets.wrong == (rows == "wrong")
    (done,) = way.train([taught])
    assert same(done, next(iter(way.train([taught]))))


def test_scores_that_do_not_cover_the_training_rows_are_refused():
    given = TeacherScores(
        name="file",
        scores=np.full((len(POOL), 3), np.nan, np.float32),
        known=np.array([True, True, False]),
    )
    asked = retrain(warm=False)
    how = dataclasses.replace(asked.distillation, teacher=given.key)
    taught = dataclasses.replace(asked, distillation=how)
    with pytest.raises(InputError, match=naming("training rows")):
        list(trainer(kept={given.key: given.to_bytes()}).train([taught]))
    short = dataclasses.replace(given, scores=given.scores[:9])
    with pytest.raises(FileError, match=naming("9", str(len(POOL)))):
        list(trainer(kept={given.key: short.to_bytes()}).train([taught]))
