"""Results that are small enough to be committed, and still say all that the study found."""

import re
import shlex
import shutil

import numpy as np
import pytest

from dynsnap import predictions, study
from dynsnap.cli._report import findings
from dynsnap.errors import FileError, PlanError
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of a tiny study."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "tiny.toml").write_text(TINY.replace('["average"]', '["majority", "average"]'))
    ended = dynsnap("run", str(folder / "tiny.toml"), "--out", str(folder / "run"), "-q")
    assert ended.exit_code == 0, ended.stderr
    return folder / "run"


def test_results_are_tables_and_two_files_of_predictions(run, tmp_path):
    kept = {path.name for path in study.publish(run, tmp_path)}
    assert kept == {"table.csv", "study.toml", "about.json", "labels.parquet", "scores.parquet"}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == kept
    assert (tmp_path / "table.csv").read_text() == (run / "table.csv").read_text()
    ensembles = [
        f"{method}/{how}/g{generation}/r0"
        for method in ("dynsnap-cyc", "singlebase")
        for how in ("average", "majority")
        for generation in (1, 2)
    ]
    twins = [f"twin/singlebase/{how}/g1/r0" for how in ("average", "majority")]
    late = [f"late/{name}" for name in ensembles]
    for folder in (run, tmp_path):
        assert list(map(str, predictions.stored(folder))) == [*ensembles, *late, *twins]


def test_labels_are_kept_and_scores_of_the_average_alone(run, tmp_path):
    study.publish(run, tmp_path)
    known = predictions.stored(run)
    for key, place in predictions.stored(tmp_path).items():
        kept, said = predictions.read(place), predictions.read(known[key])
        np.testing.assert_array_equal(kept.ids, said.ids)
        np.testing.assert_array_equal(kept.labels, said.labels)
        np.testing.assert_array_equal(kept.truth, said.truth)
        if key.combination == "average":
            np.testing.assert_allclose(kept.scores, said.scores, atol=4e-4)
        else:
            assert kept.scores is None


def test_scores_may_be_left_out(run, tmp_path):
    assert "scores.parquet" not in {
        path.name for path in study.publish(run, tmp_path, scores=False)
    }
    known = predictions.stored(run)
    for key, place in predictions.stored(tmp_path).items():
        assert predictions.read(place).scores is None
        np.testing.assert_array_equal(
            predictions.read(place).labels, predictions.read(known[key]).labels
        )


def test_compare_and_report_work_on_results(run, tmp_path):
    ended = dynsnap("publish", str(run), str(tmp_path))
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("6 files, ")
    assert str(tmp_path) in ended.stdout
    addresses = [f"{tmp_path}::dynsnap-cyc/average/g{generation}/r0" for generation in (1, 2)]
    assert dynsnap("compare", *addresses).exit_code == 0
    ended = dynsnap("report", str(tmp_path))
    assert ended.exit_code == 0, ended.stderr
    assert f"dynsnap compare {shlex.join(addresses)}" in ended.stdout


@pytest.mark.slow
def test_reports_of_a_run_and_of_its_results_show_the_same_flips(run, tmp_path):
    dynsnap("publish", str(run), str(tmp_path))
    live, kept = findings(run).drilldown, findings(tmp_path).drilldown
    assert (live.method, live.combination) == (kept.method, kept.combination)
    assert live.learned_from == kept.learned_from != {}
    for one, other in zip(live.comparison.pairs, kept.comparison.pairs, strict=True):
        for metric in ("consistency", "correct_consistency", "lost", "gained"):
            assert one.metrics[metric] == other.metrics[metric]


@pytest.mark.slow
def test_a_page_of_results_shows_the_curves_and_theorems_that_the_run_shows(run, tmp_path):
    dynsnap("publish", str(run), str(tmp_path))
    live, kept = findings(run), findings(tmp_path)
    assert live.curves
    assert kept.curves == live.curves
    assert kept.audits.keys() == live.audits.keys() != set()
    for title, audit in live.audits.items():
        same = kept.audits[title]
        assert same.holds == audit.holds
        assert (same.standings, same.effects, same.notes) == (
            audit.standings,
            audit.effects,
            audit.notes,
        )
        for one, other in zip(same.bounds, audit.bounds, strict=True):
            assert (one.name, one.claim) == (other.name, other.claim)
            np.testing.assert_array_equal(one.lefts, other.lefts)
            np.testing.assert_array_equal(one.rights, other.rights)


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"PK not really", None])
def test_a_damaged_file_about_the_training_is_noted_and_the_rest_is_shown(run, tmp_path, content):
    dynsnap("publish", str(run), str(tmp_path))
    path = tmp_path / "training.npz"
    if content is None:
        np.savez(path, header=np.frombuffer(b'{"curves": [{}], "audits": []}', np.uint8))
    else:
        path.write_bytes(content)
    ended = dynsnap("report", str(tmp_path))
    assert ended.exit_code == 0, ended.stderr
    assert re.search(naming("Rounds of training", "left out"), " ".join(ended.stdout.split()))


def test_results_are_replaced_and_what_is_stale_goes(run, tmp_path):
    stale = tmp_path / "predictions/late/gone-average-g1-r0.parquet"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"")
    study.publish(run, tmp_path)
    assert not (tmp_path / "predictions").exists()
    bare = shutil.copytree(run, tmp_path / "bare", ignore=shutil.ignore_patterns("predictions"))
    study.publish(bare, tmp_path)
    assert not list(tmp_path.glob("*.parquet"))


def test_what_was_seen_of_another_training_goes_too(run, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(run, bare, ignore=shutil.ignore_patterns("rounds"))
    for folder, seen in ((run, True), (bare, False)):
        assert dynsnap("publish", str(folder), str(tmp_path / "kept")).exit_code == 0
        assert (tmp_path / "kept/training.npz").exists() is seen


def test_a_damaged_study_file_is_refused_before_anything_is_written(run, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(run, damaged)
    (damaged / "study.toml").write_text("[")
    ended = dynsnap("publish", str(damaged), str(tmp_path / "kept"))
    assert ended.exit_code == 2
    assert not (tmp_path / "kept").exists()


def test_tables_that_a_run_lacks_do_not_stay_from_another(run, tmp_path):
    (tmp_path / "sweeps.csv").write_text("of another study")
    study.publish(run, tmp_path)
    assert not (tmp_path / "sweeps.csv").exists()


def test_a_run_folder_is_no_place_for_results(run, tmp_path):
    other = shutil.copytree(run, tmp_path / "other")
    before = sorted(other.rglob("*"))
    with pytest.raises(PlanError, match=naming(re.escape(str(other)), "run folder")):
        study.publish(run, other)
    assert sorted(other.rglob("*")) == before


@pytest.mark.slow
def test_a_second_study_in_a_folder_leaves_nothing_of_the_first(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    for name in ("replicates.csv", "sweeps.csv"):
        (folder / name).write_text("of another study")
    ended = dynsnap("run", folder / "study.toml", "--out", folder, "-q")
    assert ended.exit_code == 0, ended.stderr
    assert not (folder / "replicates.csv").exists() and not (folder / "sweeps.csv").exists()


def test_what_cannot_be_published_is_refused(run, tmp_path):
    with pytest.raises(FileError, match=naming(re.escape(str(tmp_path)), "finished study")):
        study.publish(tmp_path, tmp_path / "there")
    with pytest.raises(PlanError, match=naming("results", "the run folder")):
        study.publish(run, run / "results")


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(1)", "-b", "\x1b[31mred", "'\t=1"])
def test_a_cell_that_could_do_harm_is_not_handed_on(run, tmp_path, cell):
    copy = shutil.copytree(run, tmp_path / "run")
    text = (copy / "table.csv").read_text()
    (copy / "table.csv").write_text(text.replace("singlebase", f'"{cell}"', 1))
    with pytest.raises(FileError, match=r"table\.csv is damaged"):
        study.publish(copy, tmp_path / "published")
    assert not (tmp_path / "published").exists()
