import re

import numpy as np
import pytest

from dynsnap import predictions, stabilizing
from tests.cli.helpers import NEW, OLD, dynsnap, refused, table
from tests.messages import naming


def test_close_calls_stay_as_they_were_and_the_rest_changes(tmp_path):
    out = tmp_path / "out.parquet"
    result = dynsnap("stabilize", OLD, NEW, "-o", out, "--margin", 0.3)
    assert result.exit_code == 0, result.stderr
    old, new, made = (predictions.read(file) for file in (OLD, NEW, out))
    wanted = predictions.stabilize(old, new, margin=0.3)
    np.testing.assert_array_equal(made.labels, wanted.labels)
    flips, left = ((old.labels != one.labels).sum() for one in (new, made))
    assert 0 < left < flips
    assert f"{len(old):,}: {flips:,} → {left:,}." in result.stdout
    lost = [((old.labels == old.truth) & (one.labels != old.truth)).sum() for one in (new, made)]
    assert f"NFR): {lost[0]:,} → {lost[1]:,}." in result.stdout
    compared = dynsnap("compare", OLD, out)
    assert compared.exit_code == 0, compared.stderr


def test_the_next_retrain_keeps_the_labels_that_were_written(tmp_path):
    first, second = tmp_path / "1.npz", tmp_path / "2.csv"
    assert dynsnap("stabilize", OLD, NEW, "-o", first).exit_code == 0
    again = dynsnap("stabilize", first, NEW, "-o", second)
    # The same model again: labels that the margin has kept are kept once more.
    assert "→ 0." in again.stdout
    labels = [predictions.read(file).labels for file in (first, second)]
    np.testing.assert_array_equal(*labels)


def test_what_is_deployed_may_be_labels_with_other_column_names(tmp_path):
    old = table(tmp_path / "old.csv", ["1,b", "2,a"], head="key,label")
    new = table(tmp_path / "new.csv", ["1,0.55,0.45", "3,0.1,0.9"], head="key,score:a,score:b")
    out = tmp_path / "out.csv"
    named = ("--id-column", "key")
    result = dynsnap("stabilize", old, new, "-o", out, *named)
    assert "1: 1 → 0." in result.stdout
    made = predictions.read(out)
    assert made.names_of(made.labels).tolist() == ["b", "b"]


@pytest.mark.parametrize("margin", ["1.5", "-1", "nan", "much"])
def test_a_margin_out_of_range_is_refused(tmp_path, margin):
    out = tmp_path / "out.csv"
    assert "--margin" in refused("stabilize", OLD, NEW, "-o", out, "--margin", margin, code=2)
    assert not out.exists()


def test_nothing_that_is_read_is_written_over(tmp_path):
    old = table(tmp_path / "old.csv", ["1,a,a"])
    assert "would overwrite" in refused("stabilize", old, NEW, "-o", old, code=2)


def test_new_predictions_without_scores_are_refused(tmp_path):
    files = [table(tmp_path / f"{name}.csv", ["1,a,a"]) for name in ("old", "new")]
    told = refused("stabilize", *files, "-o", tmp_path / "out.csv", code=3)
    assert "labels alone" in told and "scores" in told


def test_a_run_folder_is_no_file_of_predictions(tmp_path):
    (tmp_path / "table.csv").write_text("")
    told = refused("stabilize", tmp_path, NEW, "-o", tmp_path / "out.csv", code=2)
    assert str(tmp_path) in told
    assert "study" in told


def test_files_that_contradict_each_other_are_refused_by_name_and_leave_nothing(tmp_path):
    old = table(tmp_path / "monday.csv", ["1,a,a"])
    new = table(tmp_path / "tuesday.csv", ["1,b,0.4,0.6"], head="id,truth,score:a,score:b")
    out = tmp_path / "out.csv"
    told = refused("stabilize", old, new, "-o", out, code=3)
    assert re.search(naming('"monday"', '"tuesday"', "different truths"), told)
    assert not out.exists()


def held_out(tmp_path):
    """The examples in two halves: rows to choose a rule on, and rows to report."""
    files = {}
    for name, file in (("old", OLD), ("new", NEW)):
        whole = predictions.read(file)
        for half in (0, 1):
            files[name, half] = tmp_path / f"{name}{half}.parquet"
            predictions.write(whole.take(np.arange(len(whole)) % 2 == half), files[name, half])
    return [files["old", 0], files["new", 0]], [files["old", 1], files["new", 1]]


@pytest.mark.parametrize("rule", ["margin", "cost"])
def test_a_rule_is_chosen_on_held_out_rows(tmp_path, rule):
    held, rest = held_out(tmp_path)
    out, ids = tmp_path / "out.parquet", tmp_path / "ids.csv"
    options = ("--heldout", *held, "--rule", rule, "--cost-ratio", 3, "--rescore", 5, ids)
    result = dynsnap("stabilize", *rest, "-o", out, *options)
    assert result.exit_code == 0, result.stderr
    old, new, made = (predictions.read(file) for file in (*rest, out))
    choose = stabilizing.choose_margin if rule == "margin" else stabilizing.choose_cost_rule
    choice = choose(*(predictions.read(file) for file in held), ratio=3)
    wanted = stabilizing.update(old, new, choice.rule, confusion=choice.old_confusion)
    np.testing.assert_array_equal(made.labels, wanted.labels)
    assert f"lost {choice.lost_before:,} → {choice.lost:,}" in result.stdout
    listed = ids.read_text().split()
    assert listed == ["id", *map(str, stabilizing.rescore_first(made, 5))]
    assert (old.labels != made.labels).sum() < (old.labels != new.labels).sum()


@pytest.mark.parametrize("rule", ["margin", "cost"])
def test_a_class_that_old_answers_with_is_not_new_where_few_held_out_rows_lack_it(tmp_path, rule):
    held, rest = held_out(tmp_path)
    whole = predictions.read(held[0])
    rare = whole.names_of(whole.labels[:1])[0]
    for file in held:  # no held-out answer of OLD is the class
        some = predictions.read(file).take(whole.names_of(whole.labels) != rare)
        predictions.write(some, file)
    result = dynsnap(
        "stabilize", *rest, "-o", tmp_path / "out.csv", "--heldout", *held, "--rule", rule
    )
    assert result.exit_code == 0, result.stderr
    assert rare in predictions.read(rest[0]).names_of(predictions.read(rest[0]).labels)
    assert "New classes" not in result.stdout


def test_a_rule_is_not_chosen_on_the_rows_that_it_is_reported_on(tmp_path):
    held, rest = held_out(tmp_path)
    link = tmp_path / "link.parquet"
    link.hardlink_to(rest[1])
    for pair in ((rest[0], held[1]), (held[0], rest[1]), (held[0], link)):
        out = tmp_path / "out.csv"
        told = refused("stabilize", *rest, "-o", out, "--heldout", *pair, code=2)
        assert "--heldout" in told and "same file" in told
        assert not out.exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--rule", "cost"), ("--rule", "--heldout")),
        (("--cost-ratio", "2"), ("--cost-ratio", "--heldout")),
        (("--heldout", OLD, NEW, "--margin", "0.2"), ("--margin", "--heldout")),
        (("--heldout", OLD, NEW, "--cost-ratio", "0.5"), ("--cost-ratio", "0.5")),
        (("--heldout", OLD, NEW, "--cost-ratio", "inf"), ("--cost-ratio", "inf")),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path, options, named):
    out = tmp_path / "out.csv"
    told = refused("stabilize", OLD, NEW, "-o", out, *options, code=2)
    assert all(one in told for one in named)
    assert not out.exists()
