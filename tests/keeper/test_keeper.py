"""A keeper around a loop of one's own: what it keeps, stores, resumes and refuses."""

import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dynsnap
from dynsnap import predictions
from dynsnap.ensemble import Recipe, Rolling, Schedule, rate_factor
from dynsnap.errors import FileError, PlanError
from dynsnap.keeper import ModuleScores, SnapshotKeeper, load_ensemble
from dynsnap.store import RunFolder
from tests.cli.studies import dynsnap as command
from tests.keeper.loops import CLASSES, SMALL, Counter, keeper, net, points, score_counter, train
from tests.messages import naming

ROOT = Path(__file__).parents[2]
CHILD = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The run folder of two generations and a noise floor."""
    path = tmp_path_factory.mktemp("loop") / "run"
    train(keeper(path, noise_floor=True), rows=90)
    train(keeper(path, generation=2))
    return path


# --- which snapshots are kept -------------------------------------------------------------------


def kept_slowly(method, curve, snapshots):
    """The epochs to keep, by looking at all of them: earlier ones where two are as good."""
    if method == "dynsnap-cyc":
        window = len(curve) // snapshots
        return [
            max(range(start, start + window), key=lambda epoch: (curve[epoch], -epoch))
            for start in range(0, len(curve), window)
        ]
    return sorted(range(len(curve)), key=lambda epoch: (-curve[epoch], epoch))[:snapshots]


@settings(max_examples=15)
@given(
    method=st.sampled_from(["dynsnap-cyc", "dynsnap-step"]),
    snapshots=st.integers(1, 3),
    windows=st.integers(1, 3),
    data=st.data(),
)
def test_the_snapshots_of_a_round_are_those_of_a_slow_reference(method, snapshots, windows, data):
    epochs = snapshots * windows
    levels = st.sampled_from([0.2, 0.5, 0.7, 0.9])
    curve = data.draw(st.lists(levels, min_size=epochs, max_size=epochs))
    stop = data.draw(st.integers(0, epochs - 1))  # the loop is stopped once, and goes on
    with tempfile.TemporaryDirectory() as place:
        for last in (stop, epochs):
            kept = SnapshotKeeper(
                f"{place}/run",
                classes=("a", "b"),
                score=score_counter,
                test=([0, 1], [0, 1]),
                method=method,
                epochs=epochs,
                snapshots=snapshots,
                members=1,
                beta=1.0,
                resamples=1,
            )
            rounds = kept.rounds()
            training, model = next(rounds), Counter()
            for epoch in range(training.begin(model), last):
                model.weights += 1
                training.end_epoch(epoch, curve[epoch])
            rounds.close()
        (entry,) = RunFolder(f"{place}/run").entries()
        done = RunFolder(f"{place}/run").get(entry.key, training.spec)
    expected = kept_slowly(method, curve, snapshots)
    assert done.epochs.tolist() == expected
    assert done.accuracy.tolist() == [curve[epoch] for epoch in expected]
    assert done.curve.tolist() == curve
    # The weights are those of that epoch: after e + 1 epochs a model scores (e + 2) / (e + 3).
    told = done.scores["test"][:, 0, 0].astype(float)
    assert told == pytest.approx([(epoch + 2) / (epoch + 3) for epoch in expected], rel=1e-6)


@given(
    snapshots=st.integers(1, 4),
    window=st.integers(1, 5),
    kind=st.sampled_from(["cyclic", "step", "constant"]),
    steps=st.integers(1, 6),
    warmup=st.integers(0, 3),
)
def test_the_rate_of_a_step(snapshots, window, kind, steps, warmup):
    recipe = Recipe(
        schedule=Schedule(kind),
        epochs=snapshots * window,
        snapshots=snapshots,
        selection="window" if kind == "cyclic" else "top",
    )
    for epoch in range(recipe.epochs):
        assert rate_factor(recipe, epoch) == recipe.multipliers[epoch]
        found = [
            rate_factor(recipe, epoch, step=step, steps=steps, warmup=warmup)
            for step in range(steps)
        ]
        plain = [rate_factor(recipe, epoch, step=step, steps=steps) for step in range(steps)]
        assert all(0 <= one <= other <= 1 for one, other in zip(found, plain, strict=True))
        assert plain == sorted(plain, reverse=True)
        if epoch >= warmup:
            assert found == plain
    assert rate_factor(recipe, 0, warmup=4) == recipe.multipliers[0] / 4
    with pytest.raises(PlanError, match=naming(str(recipe.epochs))):
        rate_factor(recipe, recipe.epochs)


def test_the_optimiser_has_the_rate_of_each_epoch(tmp_path):
    kept = keeper(tmp_path / "run", warmup=2)
    training = next(kept.rounds())
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    rates = []
    for epoch in training.epochs(model, optimizer):
        rates.append(optimizer.param_groups[0]["lr"])
        training.end_epoch(epoch, 0.5)
    assert rates == [0.5 * training.rate(epoch) for epoch in range(4)] == [0.25, 0.25, 0.5, 0.25]


# --- the run folder -----------------------------------------------------------------------------


def test_commands_read_the_run_folder_of_a_loop(folder, tmp_path):
    ended = command("report", folder, "--html", tmp_path / "report.html")
    assert ended.exit_code == 0, ended.stderr
    assert "dynsnap-cyc" in ended.stdout and "one-network" in ended.stdout
    # What one would have deployed stands beside the ensemble, and is no variant of it.
    assert 'id="ablations"' not in (tmp_path / "report.html").read_text(encoding="utf-8")
    ended = command("size", folder, "--json", tmp_path / "size.json", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert json.loads((tmp_path / "size.json").read_text())["method"] == "dynsnap-cyc"
    places = [f"{folder}::dynsnap-cyc/average/g{number}/r0" for number in (1, 2)]
    assert command("compare", *places).exit_code == 0
    ended = command("runs", folder)
    assert ended.stdout.count("cyclic") == len(list(RunFolder(folder).entries()))


def test_commands_that_train_name_the_loop(folder):
    ended = command("run", folder / "study.toml", "--out", folder)
    assert ended.exit_code == 2
    assert "loop" in ended.stderr and "report" in ended.stderr


def test_the_ensemble_predicts_what_the_folder_holds(folder, tmp_path):
    inputs, labels = points(60, seed=1)
    kept = keeper(folder, generation=2)
    for number in (1, 2):
        ensemble = kept.ensemble(number)
        own = ensemble.predictions(inputs, truth=labels)
        stored = predictions.read(folder / f"predictions/dynsnap-cyc-average-g{number}.parquet")
        assert np.allclose(own.scores, stored.scores, atol=1e-6)
        assert own.labels.tolist() == stored.labels.tolist()
        assert len(ensemble) == SMALL["members"] == len(ensemble.accuracies)
        assert set(ensemble.predict(inputs)) <= set(CLASSES)
    found = dynsnap.compare(
        kept.ensemble(1).predictions(inputs, truth=labels),
        kept.ensemble(2).predictions(inputs, truth=labels),
    )
    assert found.pairs[0].metrics["consistency"].value > 0.5
    digest = ensemble.save(tmp_path / "two.ensemble")
    again = load_ensemble(tmp_path / "two.ensemble", score=ModuleScores(net), sha256=digest)
    assert (again.predict_proba(inputs) == ensemble.predict_proba(inputs)).all()
    net().load_state_dict(again.weights[0])


def test_dynsnap_predict_takes_the_ensemble_of_a_loop(folder, tmp_path, monkeypatch):
    inputs, _ = points(20, seed=3)
    np.savez(tmp_path / "new.npz", inputs=inputs)
    saved = folder / "ensembles/dynsnap-cyc-g2.ensemble"
    out = tmp_path / "new.parquet"
    monkeypatch.chdir(ROOT)
    ended = command("predict", saved, tmp_path / "new.npz", "-o", out)
    assert ended.exit_code == 2 and "--model" in ended.stderr
    model = ("--model", "tests.keeper.loops:net")
    ended = command("predict", saved, tmp_path / "new.npz", "-o", out, *model)
    assert ended.exit_code == 0, ended.stderr
    own = keeper(folder, generation=2).ensemble().predict_proba(inputs)
    assert np.allclose(predictions.read(out).scores, own, atol=1e-6)


def test_a_folder_of_other_settings_or_another_run_is_refused(folder, tmp_path):
    with pytest.raises(PlanError, match=naming("epochs", "4", "6")):
        keeper(folder, epochs=6)
    with pytest.raises(PlanError, match=naming("Generation 4", "2")):
        keeper(folder, generation=4)
    (tmp_path / "study.toml").write_text("[study]")
    with pytest.raises(FileError, match=naming("study.toml", "another folder")):
        keeper(tmp_path)
    (tmp_path / "keeper.json").write_text('{"format": 1}')
    with pytest.raises(FileError, match=naming("keeper.json", "damaged")):
        keeper(tmp_path)


def test_a_second_run_of_a_finished_loop_trains_nothing(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}
    kept = keeper(folder, generation=2)
    assert list(kept.rounds()) == []
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}


def test_a_rolling_ensemble_carries_members_over_and_starts_from_them(tmp_path):
    rolling = Rolling(carry_over=0.67, max_accuracy_gap=1.0, warm_start=True)
    shared = {"method": "rolling", "rolling": rolling, "members": 3, "beta": 1.0}
    aside = points(30, seed=2)
    train(keeper(tmp_path / "run", selection_holdout=aside, **shared))
    # Two members are carried over; the third comes from a round that starts from a member.
    more = tuple(map(np.concatenate, zip(aside, points(9, seed=5), strict=True)))
    kept = keeper(tmp_path / "run", generation=2, selection_holdout=more, **shared)
    parents = _train_from_parents(kept)
    first, second = kept.ensemble(1), kept.ensemble(2)
    biases = [[tuple(one["3.bias"].tolist()) for one in each.weights] for each in (first, second)]
    assert len(set(biases[0]) & set(biases[1])) == 2
    assert parents == 1
    assert command("report", tmp_path / "run").exit_code == 0
    with pytest.raises(PlanError, match=naming("selection_holdout", "39")):
        keeper(tmp_path / "run", generation=2, selection_holdout=points(30, seed=9), **shared)
    with pytest.raises(PlanError, match=naming("rolling", "selection_holdout")):
        keeper(tmp_path / "other", **shared)


def _train_from_parents(kept):
    """Train with the weights that a round starts from; count the rounds that have some."""
    found = 0
    for training in kept.rounds():
        model = net()
        if training.parent is not None:
            model.load_state_dict(training.parent)
            found += 1
        for epoch in training.epochs(model):
            training.end_epoch(epoch, 0.5)
    return found


def test_a_generation_of_another_version_is_trained_again_and_the_others_are_not(tmp_path):
    path = tmp_path / "run"
    first = train(keeper(path), rows=90)
    second = train(keeper(path, generation=2))
    before = (path / "table.csv").read_text()
    rounds = set((path / "rounds").iterdir())
    later = keeper(path, generation=2, version="b")
    training = next(later.rounds())
    assert (training.spec.generation, training.epochs_done) == (2, 0)
    assert not (path / "table.csv").exists()  # it was of other rounds
    train(later, rows=60)
    assert all(
        json.loads((path / "keeper.json").read_text())["scored"].get(one.stem) for one in rounds
    )
    assert (path / "table.csv").read_text() != before
    inputs, _ = points(20, seed=7)
    found = later.ensemble().predict_proba(inputs)
    assert not np.array_equal(found, second.ensemble().predict_proba(inputs))
    np.testing.assert_array_equal(
        later.ensemble(1).predict_proba(inputs), first.ensemble().predict_proba(inputs)
    )
    ended = command("report", path)
    assert ended.exit_code == 0, ended.stderr


def test_new_classes_and_new_test_inputs_are_scored_for_all_generations(tmp_path):
    two = {"score": ModuleScores(net), "classes": CLASSES[:2]}
    train(keeper(tmp_path / "run", test=points(40, seed=1, classes=2), **two), classes=2)
    kept = train(keeper(tmp_path / "run", generation=2))
    old, new = kept.ensemble(1), kept.ensemble(2)
    inputs, _ = points(60, seed=1)
    assert (old.predict_proba(inputs)[:, 2] == 0).all()
    assert "above" in new.predict(inputs) and "above" not in old.predict(inputs)
    first = predictions.read(tmp_path / "run/predictions/dynsnap-cyc-average-g1.parquet")
    assert np.allclose(first.scores, old.predict_proba(inputs), atol=1e-6)
    ended = command("report", tmp_path / "run")
    assert ended.exit_code == 0 and "left out" not in ended.stdout
    with pytest.raises(PlanError, match=naming("classes", "left", "top")):
        keeper(tmp_path / "run", generation=3, classes=("top", "left", "right"))


# --- stopping and going on ----------------------------------------------------------------------


def rounds_of(path):
    return {
        file.name: [
            (name, content)
            for name, content in sorted(np.load(file, allow_pickle=False).items())
            if not name.endswith(".json")
        ]
        for file in sorted((path / "rounds").glob("*.npz"))
    }


def assert_same_rounds(one, other):
    found, expected = rounds_of(one), rounds_of(other)
    assert found.keys() == expected.keys()
    for key, arrays in found.items():
        for (name, own), (same, wanted) in zip(arrays, expected[key], strict=True):
            assert name == same
            assert own == wanted if isinstance(own, bytes) else (own == wanted).all()


@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_loop_that_was_stopped_ends_with_the_same_bits(tmp_path, every):
    train(keeper(tmp_path / "whole"))
    for until in (3, 2, 4):
        with pytest.raises(KeyboardInterrupt):
            train(keeper(tmp_path / "stopped", checkpoint_every=every), until=until)
    train(keeper(tmp_path / "stopped", checkpoint_every=every))
    assert_same_rounds(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.parametrize(("works", "done"), [(0, 1), (1, 4)])
def test_a_round_that_cannot_be_scored_is_not_lost(tmp_path, works, done):
    calls = []

    def broken(weights, inputs, classes):
        calls.append(len(inputs))
        if len(calls) > works:
            raise ZeroDivisionError
        return ModuleScores(net)(weights, inputs, classes)

    shared = {"members": 1, "beta": 0.0}
    failed = keeper(tmp_path / "run", score=broken, **shared)
    with pytest.raises(ZeroDivisionError):
        train(failed)
    # The first snapshot is scored at once: a mistake costs an epoch, not a round.
    (file,) = (tmp_path / "run/checkpoints").glob("*.bin")
    kept = keeper(tmp_path / "run", **shared)
    begun = list(itertools.islice(kept.rounds(), 1))
    assert [training.epochs_done for training in begun] == ([done] if done < 4 else [])
    train(keeper(tmp_path / "run", **shared))
    assert not file.exists()
    train(keeper(tmp_path / "whole", **shared))
    assert_same_rounds(tmp_path / "run", tmp_path / "whole")


def test_a_loop_that_failed_does_not_block_the_next_one_of_its_process(tmp_path):
    failed = keeper(tmp_path / "run").rounds()
    next(failed)
    assert next(keeper(tmp_path / "run").rounds()).epochs_done == 0


@pytest.mark.slow
def test_one_process_trains_in_a_folder(tmp_path):
    rounds = keeper(tmp_path / "run").rounds()
    next(rounds)
    place = str(tmp_path / "run")
    script = f"from tests.keeper import loops\nnext(loops.keeper({place!r}).rounds())"
    ended = subprocess.run(
        [sys.executable, "-c", script], env=CHILD, check=False, capture_output=True, text=True
    )
    assert str(os.getpid()) in ended.stderr.splitlines()[-1]
    rounds.close()


def test_what_else_has_a_state_is_restored_too(tmp_path):
    kept = keeper(tmp_path / "run", members=1, beta=0.0, checkpoint_every=3)
    seen = []
    for _ in range(2):
        training = next(kept.rounds())
        model = net()
        optimizer = torch.optim.SGD(
            [{"params": model[0].parameters()}, {"params": model[3].parameters(), "lr": 0.2}],
            lr=0.1,
            momentum=0.9,
        )
        other = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)  # its best is infinite
        for epoch in training.epochs(model, optimizer, other):
            seen.append((epoch, *(group["lr"] for group in optimizer.param_groups)))
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            if epoch < 2:
                other.step(1.0 - epoch)
            training.end_epoch(epoch, 0.5)
            if len(seen) == 3:
                break
    assert [one[0] for one in seen] == [0, 1, 2, 3]
    assert seen[1][1:] == pytest.approx((0.05, 0.1)) == seen[3][1:]
    assert (other.best, other.last_epoch) == (0.0, 2)


@pytest.mark.parametrize(
    ("made", "draw"),
    [
        (lambda: torch.Generator().manual_seed(5), lambda own: float(torch.rand(1, generator=own))),
        (lambda: np.random.default_rng(5), lambda own: own.random()),
        (lambda: random.Random(5), lambda own: own.random()),
    ],
    ids=["torch", "numpy", "python"],
)
def test_generators_of_random_numbers_are_restored(tmp_path, made, draw):
    expected = [draw(own) for own in [made()] for _ in range(4)]
    seen = []
    for _ in range(2):
        own = made()
        training = next(keeper(tmp_path / "run", score=score_counter).rounds())
        for epoch in training.epochs(Counter(), None, own):
            seen.append(draw(own))
            training.end_epoch(epoch, 0.5)
            if len(seen) == 2:
                break
    assert seen == expected


@pytest.mark.slow
def test_a_loop_that_was_killed_ends_with_the_same_bits(tmp_path):
    train(keeper(tmp_path / "whole"))
    script = (
        "import os, signal\n"
        "from dynsnap.keeper import TrainingRound\n"
        "from tests.keeper import loops\n"
        "ended = TrainingRound.end_epoch\n"
        "calls = []\n"
        "def end_epoch(training, epoch, accuracy):\n"
        "    ended(training, epoch, accuracy)\n"
        "    calls.append(epoch)\n"
        "    if len(calls) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "TrainingRound.end_epoch = end_epoch\n"
        f"loops.train(loops.keeper({str(tmp_path / 'killed')!r}))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], env=CHILD, check=False)
    assert ended.returncode == -signal.SIGKILL
    kept = keeper(tmp_path / "killed")
    rounds = kept.rounds()
    assert next(rounds).epochs_done == 3
    rounds.close()
    train(keeper(tmp_path / "killed"))
    assert_same_rounds(tmp_path / "killed", tmp_path / "whole")


def test_a_damaged_checkpoint_costs_time_only(tmp_path, caplog, recwarn):
    with pytest.raises(KeyboardInterrupt):
        train(keeper(tmp_path / "run"), until=3)
    (file,) = (tmp_path / "run/checkpoints").glob("*.bin")
    file.write_bytes(file.read_bytes()[:-9])
    train(keeper(tmp_path / "run"))
    assert any("damaged" in str(one.message) for one in recwarn)
    with pytest.raises(KeyboardInterrupt):
        train(keeper(tmp_path / "other"), until=3)
    training = next(keeper(tmp_path / "other").rounds())
    assert training.epochs_done == 2
    # Another version of the loop does not go on with what this one has begun.
    assert next(keeper(tmp_path / "other", version="2").rounds()).epochs_done == 0
    # What is whole but makes no sense is found out before anything is trained.
    checkpoints, spec = training._checkpoints, training.spec
    with caplog.at_level(logging.WARNING):
        for content in (b"", b"{}", checkpoints.load(spec).replace(b"curve", b"Curve")):
            checkpoints.save(spec, content)
            checkpoints._folder.close()
            again = next(keeper(tmp_path / "other").rounds())
            assert again.epochs_done == 0
    assert len(caplog.records) == 3


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(keeper(tmp_path / "run"), until=3)
    training = next(keeper(tmp_path / "run").rounds())
    with pytest.raises(FileError, match=naming("checkpoint", "model")):
        training.begin(torch.nn.Linear(1, 1))


class Compiled:
    """A module as `torch.compile` wraps it."""

    def __init__(self, module):
        self.module = module

    def state_dict(self):
        return {f"_orig_mod.{name}": value for name, value in self.module.state_dict().items()}

    def load_state_dict(self, state):
        raise AssertionError("nothing was stopped")


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(["a text", "another", "a third"], marks=pytest.mark.slow),
        [[1], [1, 2], [1, 2, 3]],  # rows of different lengths
        pytest.param({"ids": torch.ones(3, 2), "mask": [[1], [1], [0]]}, marks=pytest.mark.slow),
    ],
    ids=["texts", "ragged", "dict"],
)
def test_inputs_of_any_kind_are_scored(tmp_path, inputs):
    def score(weights, given, classes):
        assert given is inputs
        return np.tile([0.5, 0.25, 0.25], (3, 1))

    settings = {"score": score, "test": (inputs, ["left", "right", "above"]), "members": "auto"}
    kept = keeper(tmp_path / "run", most_rounds=2, **settings)
    for training in kept.rounds():
        for epoch in training.epochs(Compiled(net())):
            training.end_epoch(epoch, 0.5)
    assert kept.ensemble().predict(inputs).tolist() == ["left"] * 3
    assert all(net().load_state_dict(one) for one in kept.ensemble().weights)
    assert keeper(tmp_path / "run", most_rounds=2, **settings).ensemble().generation == 1
