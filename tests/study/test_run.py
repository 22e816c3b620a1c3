import csv
import dataclasses
import re

import numpy as np
import pytest

from dynsnap import comparison, data, metrics, predictions, study
from dynsnap.data import digits, from_generations
from dynsnap.ensemble import COMBINATIONS, METHODS
from dynsnap.errors import PlanError
from dynsnap.store import RunFolder
from dynsnap.testing import CentroidTrainer
from tests.messages import naming
from tests.streams import small_stream

TEXT = """
[study]
resamples = 30

[training]
epochs = 8

[methods]
members = 4
snapshots = 4

[[ablation]]
name = "no-schedule"
schedule = "constant"

[[sweep]]
over = "members"
values = [1, 4, 6]

[[sweep]]
over = "beta"
values = [0, "mean", 1]
"""


LEARNERS = """
[study]
resamples = 30
[training]
epochs = 6
[methods]
names = ["dynsnap-cyc", "mcdropout", "extbagging"]
members = 3
snapshots = 3
combinations = ["average"]
"""


@pytest.fixture(scope="module")
def stream():
    return small_stream()


def read(folder, text=TEXT):
    file = folder / "study.toml"
    file.write_text(text)
    return study.read_study(file)


def execute(plan, folder, stream, monitor=None):
    with RunFolder(folder, weights=plan.keep == "weights", half=plan.half) as store:
        return study.run(
            plan,
            stream=stream,
            trainer=CentroidTrainer(stream, monitor=monitor),
            store=store,
            folder=folder,
        )


@pytest.fixture(scope="module")
def finished(tmp_path_factory, stream):
    folder = tmp_path_factory.mktemp("run")
    plan = read(folder)
    return plan, folder, execute(plan, folder, stream)


def test_every_method_combination_and_generation_has_its_predictions(finished):
    _, folder, result = finished
    expected = {
        f"{method}-{how}-g{generation}.parquet"
        for method in (*METHODS, "no-schedule")
        for how in COMBINATIONS
        for generation in (1, 2, 3)
    }
    assert {path.name for path in (folder / "predictions").glob("*.parquet")} == expected
    assert {path.name for path in (folder / "predictions/late").glob("*.parquet")} == expected
    twins = {f"singlebase-{how}-g1.parquet" for how in COMBINATIONS}
    assert {path.name for path in (folder / "predictions/twin").glob("*.parquet")} == twins
    assert len(result.predictions) == 2 * len(expected) + len(twins)


def test_predictions_hold_the_test_set_with_its_truth(finished, stream):
    _, folder, _ = finished
    said = predictions.read(folder / "predictions/dynsnap-cyc-average-g2.parquet")
    test = stream.evaluation["test"]
    assert said.ids.tolist() == test.ids.tolist()
    assert said.names_of(said.truth).tolist() == [test.classes[label] for label in test.labels]
    assert said.scores.dtype == np.float32


def test_the_table_is_what_compare_finds_in_the_files(finished):
    _, folder, result = finished
    files = [folder / f"predictions/snapshot-weighted_average-g{i}.parquet" for i in (1, 2, 3)]
    averages = comparison.compare(*files, resamples=30, metrics=["consistency"]).averages
    measured = {
        name: one for name, one in averages.items() if not metrics.catalogue[name].change_of
    }
    assert len(measured) > 10
    for metric, estimate in measured.items():
        row = result.value("snapshot", metric, "weighted_average")
        assert (row.value, row.low, row.high) == pytest.approx(
            (estimate.value, estimate.low, estimate.high), nan_ok=True
        )


def test_the_table_holds_the_papers_averages(finished):
    """A slow reference: accuracy over generations, consistency over pairs."""
    _, folder, result = finished
    said = [
        predictions.read(folder / f"predictions/extbagging-majority-g{i}.parquet")
        for i in (1, 2, 3)
    ]
    truth, labels = said[0].truth, [one.labels for one in said]
    pairs = [(labels[0], labels[1]), (labels[0], labels[2]), (labels[1], labels[2])]
    expected = {
        "accuracy": np.mean([metrics.accuracy(one, truth=truth) for one in labels]),
        "consistency": np.mean([metrics.consistency(*pair) for pair in pairs]),
        "correct_consistency": np.mean(
            [metrics.correct_consistency(*pair, truth=truth) for pair in pairs]
        ),
    }
    for metric, value in expected.items():
        assert result.value("extbagging", metric, "majority").value == pytest.approx(value)


def test_the_accuracy_of_every_generation_is_in_the_table(finished):
    _, folder, result = finished
    for number in (1, 2, 3):
        said = predictions.read(folder / f"predictions/dynsnap-cyc-average-g{number}.parquet")
        row = result.value("dynsnap-cyc", f"accuracy_{number}")
        assert row.value == pytest.approx(metrics.accuracy(said.labels, truth=said.truth))
        assert row.low <= row.value <= row.high
    never = [result.value("never-retrain", f"accuracy_{number}").value for number in (1, 2, 3)]
    assert len(set(never)) == 1


def test_the_inputs_that_were_lost_are_kept_with_the_study(finished, stream):
    _, folder, _ = finished
    files = [folder / f"predictions/snapshot-average-g{i}.parquet" for i in (2, 3)]
    lost = {one.id for one in comparison.compare(*files, resamples=1).pairs[0].flipped}
    kept = data.read_excerpts(folder / study.INPUTS, lost)
    assert kept.keys() == lost
    test = stream.evaluation["test"]
    name = min(lost)
    assert np.array_equal(kept[name], test.inputs[test.ids.tolist().index(name)])


def test_the_table_is_written_with_the_agreed_columns(finished):
    _, folder, result = finished
    with (folder / "table.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    columns = "method combination metric value low high cost seconds spread"
    assert lines[0] == columns.split()
    assert len(lines) - 1 == len(result.rows)
    # As text: a value that is not defined equals nothing, not even itself.
    assert str(study.read_table(folder / "table.csv")) == str(list(result.rows))


def test_the_transitions_of_every_pair_average_to_those_of_the_table(finished):
    _, _, result = finished
    for metric in ("kept", "gained", "lost", "never", "composite"):
        each = [row.value for row in _rows_of(result, metric + r"_\d+_\d+")]
        assert len(each) == 3
        assert np.isclose(np.mean(each), result.value("dynsnap-cyc", metric).value)


def test_every_row_has_its_cost_in_trainings_and_in_seconds(finished):
    _, _, result = finished
    seconds = {(row.method, row.combination): row.value for row in _rows_of(result, "seconds", "")}
    for row in result.rows:
        assert row.cost > 0
        assert row.seconds == seconds[row.method, row.combination]


def _rows_of(result, pattern, method="dynsnap-cyc", how="average"):
    """Rows of one method and combination, or of all, whose metric is named so."""
    return [
        row
        for row in result.rows
        if re.fullmatch(pattern, row.metric)
        and (not method or (row.method, row.combination) == (method, how))
    ]


def test_the_four_combinations_of_single_base_are_equal(finished):
    _, _, result = finished
    for metric in ("accuracy", "consistency", "correct_consistency"):
        values = {result.value("singlebase", metric, how).value for how in COMBINATIONS}
        assert len(values) == 1


def test_correlations_are_reported_for_averages_and_not_for_votes(finished):
    _, _, result = finished
    for metric in ("pearson", "cosine"):
        hows = {row.combination for row in result.rows if row.metric == metric}
        assert hows == {"average", "weighted_average"}


def test_the_noise_floor_is_single_base_against_its_twin(finished):
    _, folder, result = finished
    one = predictions.read(folder / "predictions/singlebase-average-g1.parquet")
    twin = predictions.read(folder / "predictions/twin/singlebase-average-g1.parquet")
    row = result.value("noise-floor", "consistency")
    assert row.value == pytest.approx(metrics.consistency(one.labels, twin.labels))
    assert row.value < 1
    assert row.cost == 1


def test_never_retraining_is_perfectly_consistent_and_never_learns(finished):
    _, folder, result = finished
    for method, name in (("singlebase", ""), ("dynsnap-cyc", "-dynsnap-cyc")):
        kept = predictions.read(folder / f"predictions/{method}-average-g1.parquet")
        accuracy = metrics.accuracy(kept.labels, truth=kept.truth)
        assert result.value(f"never-retrain{name}", "consistency").value == 1
        assert result.value(f"never-retrain{name}", "accuracy").value == pytest.approx(accuracy)
        assert result.value(f"never-retrain{name}", "correct_consistency").value == pytest.approx(
            accuracy
        )
        assert result.value(f"never-retrain{name}", "late_accuracy").value == 0
    assert result.value("never-retrain", "accuracy").cost == pytest.approx(1 / 3)


def test_late_accuracy_is_that_of_the_last_generation(finished):
    _, folder, result = finished
    said = predictions.read(folder / "predictions/late/extbagging-average-g3.parquet")
    expected = metrics.accuracy(said.labels, truth=said.truth)
    assert expected > 0.5
    assert result.value("extbagging", "late_accuracy").value == pytest.approx(expected)


def test_costs_count_trainings_from_scratch(finished):
    _, _, result = finished
    cost = {row.method: row.cost for row in result.rows}
    assert cost["singlebase"] == cost["mcdropout"] == 1
    assert cost["extbagging"] == 4
    assert cost["snapshot"] == 2
    assert 1 <= cost["dynsnap-cyc"] <= 4
    assert all(row.value > 0 for row in result.rows if row.metric == "seconds")


def test_sweeps_show_cost_beside_every_point(finished):
    _, folder, result = finished
    with (folder / "sweeps.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(result.sweeps)
    found = {
        (line["sweep"], line["point"]): float(line["cost"])
        for line in lines
        if line["metric"] == "correct_consistency"
    }
    assert list(found) == [
        *(("members", point) for point in ("1", "4", "6")),
        *(("beta", point) for point in ("0", "mean", "1")),
    ]
    assert found["beta", "0"] >= found["beta", "1"] == 1
    (point,) = (
        one.row
        for one in result.sweeps
        if (one.sweep, one.point, one.row.metric) == ("members", "4", "accuracy")
    )
    assert point.value == result.value("dynsnap-cyc", "accuracy").value


def test_sweeps_show_what_every_point_costs_on_new_classes(finished):
    _, _, result = finished
    late = {
        (one.sweep, one.point): one.row.value
        for one in result.sweeps
        if one.row.metric == "late_accuracy"
    }
    assert late.keys() == {(one.sweep, one.point) for one in result.sweeps}
    assert late["members", "4"] == result.value("dynsnap-cyc", "late_accuracy").value


SEVERAL_NEW = """
[study]
resamples = 30
[training]
epochs = 6
[methods]
names = ["dynsnap-cyc"]
combinations = ["majority", "average"]
members = 4
snapshots = 2
[[sweep]]
over = "members"
values = [1, 4]
combination = "majority"
"""


def test_several_new_classes_that_are_never_named_are_right_in_no_case(tmp_path):
    stream = small_stream(late={"6": 3, "2": 3})
    result = execute(read(tmp_path, SEVERAL_NEW), tmp_path, stream)
    for how in ("majority", "average"):
        kept = result.value("never-retrain-dynsnap-cyc", "late_accuracy", how)
        assert kept.value == kept.low == 0 < kept.high < 0.2
    late = stream.evaluation["late"]
    assert len(late.labels) >= 30
    said = predictions.read(tmp_path / "predictions/late/dynsnap-cyc-majority-g3.parquet")
    right = metrics.accuracy(said.labels, truth=said.truth)
    (point,) = (
        one.row.value
        for one in result.sweeps
        if (one.point, one.row.metric) == ("4", "late_accuracy")
    )
    assert point == result.value("dynsnap-cyc", "late_accuracy", "majority").value == right > 0


GATED = """
[study]
resamples = 30
[training]
epochs = 6
[methods]
names = ["singlebase"]
combinations = ["average"]
snapshots = 2
[[variant]]
name = "gated"
method = "singlebase"
[variant.gate]
at_least = { accuracy_change = 0.0 }
"""


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_gate_with_too_few_rows_to_judge_is_refused_before_training(tmp_path, share):
    stream = small_stream(selection_holdout=share)
    rows = min(len(one) for one in stream.selection_holdout[1:])
    plan = read(tmp_path, GATED)
    if share < 0.5:
        assert 0 < rows < 30
        named = naming("gated", str(rows), "30", "selection_holdout")
        with pytest.raises(PlanError, match=named):
            execute(plan, tmp_path, stream)
        assert not list((tmp_path / "rounds").iterdir())
    else:
        assert rows >= 30
        assert execute(plan, tmp_path, stream).value("gated", "accuracy").value > 0.5


@pytest.mark.slow
def test_running_again_trains_nothing_and_changes_no_prediction(tmp_path, stream):
    plan = read(tmp_path, LEARNERS)
    result = execute(plan, tmp_path, stream)
    before = {path: path.read_bytes() for path in result.predictions}
    again = execute(plan, tmp_path, stream)
    assert again.trained == 0
    assert again.rounds == result.rounds == result.trained
    assert {path: path.read_bytes() for path in again.predictions} == before


@pytest.mark.slow  # tests/cli/test_run_stopped.py has it in small
def test_a_damaged_round_is_trained_again_and_everything_is_as_before(tmp_path, stream):
    plan = read(tmp_path, LEARNERS)
    result = execute(plan, tmp_path, stream)
    before = {path: path.read_bytes() for path in result.predictions}
    victim = sorted((tmp_path / "rounds").iterdir())[3]
    victim.write_bytes(victim.read_bytes()[:-400])
    with pytest.warns(UserWarning, match=f"{victim.name} is damaged"):
        again = execute(plan, tmp_path, stream)
    assert again.trained == 1
    assert {path: path.read_bytes() for path in again.predictions} == before


EDITED = """
[study]
resamples = 30
[training]
epochs = 8
[methods]
names = {}
combinations = ["average"]
members = 3
snapshots = 4
"""


@pytest.mark.slow
def test_an_edited_study_trains_only_what_is_new_and_leaves_nothing_stale(tmp_path, stream):
    first = execute(read(tmp_path, EDITED.format('["singlebase", "snapshot"]')), tmp_path, stream)
    assert first.trained == 3 + 3 + 1
    second = execute(read(tmp_path, EDITED.format('["extbagging"]')), tmp_path, stream)
    assert second.trained == 6  # two more for each generation: the first is SingleBase's
    names = {path.name.split("-")[0] for path in (tmp_path / "predictions").glob("*.parquet")}
    assert names == {"extbagging", "singlebase"}  # the latter for the noise floor
    assert not list((tmp_path / "predictions").glob("singlebase-*-g2.parquet"))


REPLICATES = """
[study]
resamples = 30
replicates = 2
half_precision = true
[training]
epochs = 6
[methods]
names = ["singlebase", "dynsnap-step"]
members = 3
snapshots = 3
combinations = ["average"]
"""


def test_replicates_have_files_of_their_own_and_are_averaged_last(tmp_path, stream):
    plan = read(tmp_path, REPLICATES)
    result = execute(plan, tmp_path, stream)
    files = {path.name for path in (tmp_path / "predictions").glob("dynsnap-step-*")}
    assert files == {f"dynsnap-step-average-g{i}-r{k}.parquet" for i in (1, 2, 3) for k in (0, 1)}
    with (tmp_path / "replicates.csv").open(newline="") as file:
        each = [
            float(line["value"])
            for line in csv.DictReader(file)
            if (line["method"], line["metric"]) == ("dynsnap-step", "consistency")
        ]
    assert len(each) == 2 and each[0] != each[1]
    assert result.value("dynsnap-step", "consistency").value == pytest.approx(np.mean(each))


@pytest.mark.slow
def test_scores_in_half_precision_serve_as_well(tmp_path, stream):
    plan = dataclasses.replace(read(tmp_path, REPLICATES), replicates=1)
    result = execute(plan, tmp_path, stream)
    exact = execute(dataclasses.replace(plan, half=False), tmp_path / "exact", stream)
    for how in ("accuracy", "consistency"):
        assert result.value("dynsnap-step", how).value == pytest.approx(
            exact.value("dynsnap-step", how).value, abs=0.01
        )


def test_a_study_of_one_generation_is_refused(tmp_path):
    pool = digits().train
    alone = from_generations(pool, [np.arange(len(pool))], test=pool)
    with pytest.raises(PlanError, match="compares generations"):
        execute(read(tmp_path), tmp_path, alone)


def test_training_an_ensemble_gives_learners_that_score_as_its_predictions(tmp_path, stream):
    plan = read(tmp_path, LEARNERS)
    trainer = CentroidTrainer(stream)
    with RunFolder(tmp_path) as store:
        result = study.run(plan, stream=stream, trainer=trainer, store=store, folder=tmp_path)
        assert result.trained
        for name in ("dynsnap-cyc", "mcdropout", "extbagging"):
            (made,) = study.train_ensembles(
                plan, plan.method(name), [2], stream=stream, trainer=trainer, store=store
            )
            scores = trainer.score(made.learners, stream.evaluation["test"].inputs)
            mean = scores[made.positions].mean(axis=0)
            said = predictions.read(tmp_path / f"predictions/{name}-average-g2.parquet")
            np.testing.assert_allclose(mean, said.scores, atol=1e-6)


def test_a_generation_that_is_not_there_is_refused(tmp_path, stream):
    plan = read(tmp_path)
    with pytest.raises(PlanError, match="no generation 9"), RunFolder(tmp_path) as store:
        list(
            study.train_ensembles(
                plan,
                plan.methods[0],
                [9],
                stream=stream,
                trainer=CentroidTrainer(stream),
                store=store,
            )
        )
