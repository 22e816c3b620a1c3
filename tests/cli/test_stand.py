import numpy as np
import pytest

from dynsnap import predictions
from tests.cli.helpers import NEW, OLD, dynsnap, refused, table


def test_close_calls_stay_as_they_were_and_the_rest_changes(tmp_path):
    out = tmp_path / "out.parquet"
    result = dynsnap("stand", OLD, NEW, "-o", out, "--margin", 0.3)
    assert result.exit_code == 0, result.stderr
    old, new, made = (predictions.read(file) for file in (OLD, NEW, out))
    wanted = predictions.stand(old, new, margin=0.3)
    np.testing.assert_array_equal(made.labels, wanted.labels)
    flips, left = ((old.labels != one.labels).sum() for one in (new, made))
    assert 0 < left < flips
    told = f"{flips:,} of {len(old):,} answers were about to change, {left:,} do."
    assert told in result.stdout
    lost = [((old.labels == old.truth) & (one.labels != old.truth)).sum() for one in (new, made)]
    assert f"{lost[0]:,} were about to be lost, {lost[1]:,} are" in result.stdout
    compared = dynsnap("compare", OLD, out)
    assert compared.exit_code == 0, compared.stderr


def test_the_next_retrain_stands_on_what_was_made(tmp_path):
    first, second = tmp_path / "1.npz", tmp_path / "2.csv"
    assert dynsnap("stand", OLD, NEW, "-o", first).exit_code == 0
    again = dynsnap("stand", first, NEW, "-o", second)
    # The same model again: what stood by the margin stands by it once more.
    assert ", 0 do." in again.stdout
    labels = [predictions.read(file).labels for file in (first, second)]
    np.testing.assert_array_equal(*labels)


def test_what_is_deployed_may_be_labels_with_other_column_names(tmp_path):
    old = table(tmp_path / "old.csv", ["1,b", "2,a"], head="key,label")
    new = table(tmp_path / "new.csv", ["1,0.55,0.45", "3,0.1,0.9"], head="key,score:a,score:b")
    out = tmp_path / "out.csv"
    named = ("--id-column", "key")
    result = dynsnap("stand", old, new, "-o", out, *named)
    assert result.stdout == "1 of 1 answers were about to change, 0 do.\n"
    made = predictions.read(out)
    assert made.names_of(made.labels).tolist() == ["b", "b"]


@pytest.mark.parametrize("margin", ["1.5", "-1", "nan", "much"])
def test_a_margin_out_of_range_is_refused(tmp_path, margin):
    out = tmp_path / "out.csv"
    assert "--margin" in refused("stand", OLD, NEW, "-o", out, "--margin", margin, code=2)
    assert not out.exists()


def test_nothing_that_is_read_is_written_over(tmp_path):
    old = table(tmp_path / "old.csv", ["1,a,a"])
    assert "would overwrite" in refused("stand", old, NEW, "-o", old, code=2)


def test_new_predictions_without_scores_are_refused(tmp_path):
    files = [table(tmp_path / f"{name}.csv", ["1,a,a"]) for name in ("old", "new")]
    told = refused("stand", *files, "-o", tmp_path / "out.csv", code=3)
    assert "labels alone" in told and "scores" in told


def test_a_run_folder_is_no_file_of_predictions(tmp_path):
    (tmp_path / "table.csv").write_text("")
    told = refused("stand", tmp_path, NEW, "-o", tmp_path / "out.csv", code=2)
    assert str(tmp_path) in told
    assert "study" in told


def test_files_that_contradict_each_other_are_refused_by_name_and_leave_nothing(tmp_path):
    old = table(tmp_path / "monday.csv", ["1,a,a"])
    new = table(tmp_path / "tuesday.csv", ["1,b,0.4,0.6"], head="id,truth,score:a,score:b")
    out = tmp_path / "out.csv"
    told = refused("stand", old, new, "-o", out, code=3)
    assert '"monday" and "tuesday" give different truths' in told
    assert not out.exists()
