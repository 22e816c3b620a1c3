"""Data and results of another kind than asked for: one clear line each, and nothing is lost."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.helpers import dynsnap, refused, table
from tests.cli.studies import TINY, contents
from tests.data.cifar_files import cifar100, in_folder, with_labels_swapped, without
from tests.messages import naming

ROWS = 40
FINE = {"trout": "fish", "shark": "fish", "boy": "people", "girl": "people"}
TEN = ("cat", "dog", "ship")


def labelled(path, *, truth=None, labels, ids="test-{}"):
    """Predictions without scores; truth and labels go round."""
    names = [ids.format(row) for row in range(ROWS)]
    columns = {"id": names, "label": [labels[row % len(labels)] for row in range(ROWS)]}
    if truth is not None:
        columns["truth"] = [truth[row % len(truth)] for row in range(ROWS)]
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def fine(tmp_path):
    """Predictions as of CIFAR-100."""
    return labelled(tmp_path / "fine.parquet", truth=list(FINE), labels=list(FINE))


def refused_by_both(*files, code=3):
    """What `compare` says, if `gate` says the same."""
    said = refused("compare", *files, code=code)
    assert refused("gate", *files, "--at-most", "lost=0.99", code=code) == said
    return said


@pytest.mark.parametrize(
    ("truth", "labels", "message"),
    [
        (list(FINE.values()), list(FINE.values()), naming("different truths", "40 of 40")),
        (TEN, TEN, naming("different data sets")),
        (None, TEN, naming('"other"', "true classes", '"cat", "dog", "ship"')),
        (None, list(FINE.values()), naming("fine", "coarse", "another data set")),
    ],
    ids=["coarse", "cifar-10", "cifar-10 without truth", "coarse without truth"],
)
def test_predictions_over_other_classes_are_refused(fine, tmp_path, truth, labels, message):
    other = labelled(tmp_path / "other.parquet", truth=truth, labels=labels)
    assert re.search(message, refused_by_both(fine, other))


def test_fine_labels_beside_a_coarse_truth_never_pass(tmp_path):
    coarse = list(FINE.values())
    mixed = [
        labelled(tmp_path / f"{name}.parquet", truth=coarse, labels=list(FINE)) for name in "ab"
    ]
    # Nothing was right before, so nothing could be lost: the rule alone would let it pass.
    assert 'they are "fish", "people"' in refused_by_both(*mixed)


def test_scores_over_other_classes_than_the_truth_are_refused(tmp_path):
    rows = [f"{row},{'fish' if row % 2 else 'people'},0.7,0.2,0.1" for row in range(ROWS)]
    head = "id,truth,score:boy,score:shark,score:trout"
    said = refused_by_both(
        *(table(tmp_path / f"{name}.csv", rows, head=head) for name in ("old", "new"))
    )
    assert 'it has "boy", "shark", "trout"' in said


def test_without_truth_generations_must_have_a_class_in_common(tmp_path):
    old = labelled(tmp_path / "old.parquet", labels=list(FINE))
    new = labelled(tmp_path / "new.parquet", labels=TEN)
    said = refused("compare", old, new, code=3)
    assert re.search(naming("label", '"new"', '"old"'), said)


def test_a_model_that_does_not_know_a_new_class_is_compared_on_it(tmp_path):
    one = labelled(tmp_path / "one.parquet", truth=["bowl"], labels=list(FINE))
    two = labelled(tmp_path / "two.parquet", truth=["bowl"], labels=[*FINE, "bowl"])
    assert dynsnap("compare", one, two).exit_code == 0
    # It has scores for two such classes, though it never finds them the likeliest.
    rows = [f"{row},{'bowl' if row % 2 else 'cup'},0.4,0.3,0.2,0.1" for row in range(ROWS)]
    head = "id,truth,score:boy,score:girl,score:bowl,score:cup"
    late = table(tmp_path / "late.csv", rows, head=head)
    assert dynsnap("compare", late, late).exit_code == 0


def test_other_ids_are_shown(fine, tmp_path):
    other = labelled(tmp_path / "o.parquet", truth=list(FINE), labels=list(FINE), ids="cifar/{}")
    said = refused_by_both(fine, other)
    assert re.search(naming('fine has "test-0", "test-1"', 'o has "cifar/0"', "same ids"), said)


def test_results_of_two_studies_are_told_apart_by_their_folders(tmp_path):
    files = []
    for study, ids in (("digits", "d{}"), ("cifar100", "c{}")):
        folder = tmp_path / study / "predictions"
        folder.mkdir(parents=True)
        files.append(labelled(folder / "a-g1.parquet", truth=TEN, labels=TEN, ids=ids))
    said = refused_by_both(*files)
    assert 'all of "digits/predictions/a-g1", "cifar100/predictions/a-g1"' in said


@pytest.mark.parametrize("inner", ["", "predictions"])
def test_a_whole_results_folder_is_not_a_generation(tmp_path, inner):
    study = tmp_path / "study"
    (study / "predictions").mkdir(parents=True)
    (study / "table.csv").write_text("method\n")
    made = labelled(study / "predictions/a-average-g1.parquet", truth=TEN, labels=TEN)
    other = labelled(tmp_path / "other.parquet", truth=TEN, labels=TEN)
    said = refused_by_both(study / inner, other, code=2)
    assert made.is_file() and f"{study}::a/average/g1/r0" in said
    assert f"dynsnap report {study}" in said


CIFAR = """
[data]
source = "cifar-100"
subset = true

[model]
name = "mlp"
"""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            without(cifar100("python"), "test"),
            naming("has train, meta", r"lacks test \(md5 f0ef6b0a"),
        ),
        (
            without(cifar100("python"), "train"),
            naming("has test, meta", r"lacks train \(md5 16019d7e"),
        ),
        (without(cifar100("binary"), "test.bin"), r"lacks test\.bin \(md5 4499cfba"),
        (without(cifar100("binary"), "train.bin"), r"lacks train\.bin \(md5 6172c775"),
        (
            without(cifar100("binary"), "fine_label_names.txt"),
            r"lacks fine_label_names\.txt\. Get",
        ),
        (with_labels_swapped(cifar100("python")), naming("Fine", "coarse", "mixed up")),
    ],
    ids=["no test", "no train", "no binary test", "no binary train", "no names", "mixed up"],
)
def test_a_study_on_part_of_cifar_100_or_on_mixed_up_labels_ends_in_one_line(
    tmp_path, files, message
):
    (tmp_path / "study.toml").write_text(CIFAR)
    folder = in_folder(files, tmp_path / "data")
    run = tmp_path / "run"
    said = refused("run", tmp_path / "study.toml", "--data", folder, "--out", run, code=3)
    assert re.search(message, said)
    assert not run.exists()


def test_a_growth_plan_over_superclasses_ends_in_one_line(tmp_path):
    late = CIFAR + "\n[data.growth]\nshares = {}\nlate = { people = 3 }\n"
    (tmp_path / "study.toml").write_text(late)
    folder = in_folder(cifar100("python"), tmp_path / "data")
    said = refused("run", tmp_path / "study.toml", "--data", folder, code=2)
    assert re.search(naming("'people'", "slice 'coarse'", "its classes"), said)


def test_rounds_of_another_protocol_are_not_measured_and_the_folder_stays_as_it_was(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "other.toml").write_text(
        TINY.replace("late = { 6 = 2 }", "late = { 6 = 2 }\ntest_size = 0.3")
    )
    run = tmp_path / "run"
    assert dynsnap("run", tmp_path / "tiny.toml", "--out", run, "-q").exit_code == 0
    files = [run / name for name in ("study.toml", "table.csv", "about.json")]
    before = [contents(run), *(path.read_bytes() for path in files)]
    other = tmp_path / "other.toml"
    said = refused("run", other, "--no-training", "--out", run, "-q", code=3)
    assert re.search(
        naming("other data", "round 0 of generation 1", "10 classes", "study has"), said
    )
    assert [contents(run), *(path.read_bytes() for path in files)] == before
