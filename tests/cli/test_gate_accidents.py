"""The gate never passes by accident: what looks like a pass and is none is refused, or fails."""

import json
import re
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from dynsnap.predictions import ColumnNames, Predictions, write
from tests.cli.helpers import dynsnap, refused, table
from tests.marks import daily
from tests.messages import naming

SMALL = ("--min-count", 1)  # for files of a few rows, made by hand

RULES = """
[[rule]]
metric = "correctness"
at_least = 0.5
class = "*"
[[rule]]
metric = "correctness"
at_least = 0.1
slice = {{column = "{column}"}}
"""


def judged(folder, column, columns=None, options=()):
    """What a gate judges classes and the values of a slice by, which share their names."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    places = []
    for name in ("old", "new"):
        scores = rng.dirichlet(np.ones(2), 200)
        slices = {column: np.array(["a", "b"])[np.arange(200) // 100]}
        said = Predictions(
            ids=range(200), classes=["a", "b"], scores=scores, truth=truth, slices=slices
        )
        places.append(folder / f"{name}.parquet")
        write(said, places[-1], columns=columns)
    rules = folder / "gate.toml"
    rules.write_text(RULES.format(column=column))
    run = ("gate", *places, "--rules", rules, "--resamples", 20, "--json", "-", *options)
    outcomes = json.loads(dynsnap(*run).stdout)["outcomes"]
    return [(outcome["inputs"], outcome["value"], outcome["status"]) for outcome in outcomes]


@pytest.mark.parametrize("role", daily(["truth", "label", "id"], "truth"))
def test_a_slice_that_is_called_like_a_role_is_no_more_than_a_slice(tmp_path, role):
    columns, options = ColumnNames(**{role: "other"}), (f"--{role}-column", "other")
    plain = judged(tmp_path, "region")
    assert judged(tmp_path, role, columns, options) == plain
    assert plain[0][1] != plain[2][1]  # a class and the slice of its name differ


@pytest.mark.parametrize("column", daily(["frequency", "class", "score", "positions"], "class"))
def test_the_name_of_a_slice_does_not_change_what_is_judged(tmp_path, column):
    assert judged(tmp_path, column) == judged(tmp_path, "region")


def weighted(folder, weights):
    """Two files of four inputs, two of which are lost."""
    for name, labels in (("old", "aabb"), ("new", "abab")):
        rows = [
            f"{i},{t},{s},{w!r}"
            for i, (t, s, w) in enumerate(zip("aabb", labels, weights, strict=True))
        ]
        yield table(folder / f"{name}.csv", rows, head="id,truth,label,weight")


@pytest.mark.parametrize("file_type", ["csv", "parquet"])
@pytest.mark.parametrize("weight", [1e308, 1.7e300, 1e51, 5e-324, 1e-300, 1e-51])
def test_weights_whose_sums_or_products_are_no_numbers_are_refused(tmp_path, weight, file_type):
    places = list(weighted(tmp_path, [1.0, 1.0, weight, 1.0]))
    if file_type == "parquet":
        for place in places:
            pq.write_table(csv.read_csv(place), place.with_suffix(".parquet"))
        places = [place.with_suffix(".parquet") for place in places]
    line = refused("gate", *places, "--at-most", "lost=0.1", *SMALL, code=3)
    assert "row 2" in line
    assert f"{weight:.4g}" in line


@given(st.lists(st.just(0.0) | st.floats(1e-50, 1e50), min_size=4, max_size=4).filter(any))
def test_weights_that_are_taken_give_the_share_that_exact_arithmetic_gives(weights):
    exact = [Fraction(each) for each in weights]
    share = float((exact[1] + exact[2]) / sum(exact))
    with tempfile.TemporaryDirectory() as folder:
        places = list(weighted(Path(folder), weights))
        run = ("gate", *places, "--at-most", "lost=0.5", *SMALL, "--resamples", 1, "--json", "-")
        (outcome,) = json.loads(dynsnap(*run).stdout)["outcomes"]
    assert outcome["value"] == pytest.approx(share, rel=1e-12, abs=0)


TRUTH = ["cat", "dog", "cow"] * 20


def told(path, answers, truth=TRUTH):
    """A file of labels, one for each true class."""
    return table(
        path, [f"{i},{t},{a}" for i, (t, a) in enumerate(zip(truth, answers, strict=True))]
    )


def lucky(answer):
    """An answer everywhere, and one match by luck."""
    return ["cat", *[answer] * (len(TRUTH) - 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "named"),
    [
        (["error"] * 60, "error"),
        (lucky("error"), "error"),
        ([name.upper() for name in TRUTH], "CAT"),
        (lucky("DOG"), "DOG"),
        (["dog" if i % 20 else "Dog" for i in range(60)], "Dog"),
        ([f" {name}" for name in TRUTH], " cat"),
        (["error" if i % 5 == 0 else TRUTH[i] for i in range(60)], "error"),
        (["animal", "mammal"] * 30, "animal"),
    ],
)
@pytest.mark.parametrize("side", ["OLD", "NEW", "both", "twin"])
@pytest.mark.parametrize("rows", [60, 19])
def test_labels_that_cannot_be_right_are_refused_and_named(tmp_path, answers, named, side, rows):
    right = told(tmp_path / "right.csv", TRUTH[:rows], TRUTH[:rows])
    odd, again = (told(tmp_path / f"odd{i}.csv", answers[:rows], TRUTH[:rows]) for i in range(2))
    files = {
        "OLD": (odd, right),
        "NEW": (right, odd),
        "both": (odd, again),
        "twin": (right, told(tmp_path / "r2.csv", TRUTH[:rows], TRUTH[:rows])),
    }[side]
    twin = ("--noise-floor", odd) if side == "twin" else ()
    rules = ("--at-most", "lost=0.9", "--at-least", "consistency=0.01")
    line = refused("gate", *files, *twin, *rules, *SMALL, code=3)
    assert f'"{named}"' in line


def test_labels_that_are_no_true_class_can_be_allowed_and_are_noted(tmp_path):
    old = told(tmp_path / "old.csv", ["error" if i % 5 == 0 else TRUTH[i] for i in range(60)])
    new = told(tmp_path / "new.csv", TRUTH)
    run = ("gate", old, new, "--at-most", "lost=0.1", "--allow-unknown-labels")
    assert "--allow-unknown-labels" in refused(*run, 0.19, code=3)
    result = dynsnap(*run, 0.2)
    assert result.exit_code == 0
    assert "error" in result.stdout


def test_classes_that_differ_by_case_only_are_classes_where_the_truth_has_both(tmp_path):
    truth = ["a", "A", "b"] * 20
    files = [told(tmp_path / f"{name}.csv", truth, truth) for name in ("old", "new")]
    assert dynsnap("gate", *files, "--at-most", "lost=0").exit_code == 0


def test_classes_that_one_model_scores_apart_may_differ_by_case_only(tmp_path):
    labels = [0] * 58 + [1] * 2  # in the truth there is only "A"
    for name in ("old", "new"):
        said = Predictions(
            ids=range(60),
            classes=["A", "a"],
            scores=np.where(np.eye(2)[labels], 0.75, 0.25),
            truth=[0] * 60,
        )
        write(said, tmp_path / f"{name}.parquet")
    files = (tmp_path / "old.parquet", tmp_path / "new.parquet")
    assert dynsnap("gate", *files, "--at-most", "lost=0").exit_code == 0


def test_a_class_that_the_inputs_lack_may_be_named_now_and_then(tmp_path):
    old = told(tmp_path / "old.csv", ["owl", *TRUTH[1:]])
    new = told(tmp_path / "new.csv", TRUTH)
    assert dynsnap("gate", old, new, "--at-most", "lost=0").exit_code == 0


@pytest.mark.parametrize("where", ["", 'class = "cat"', 'class = "*"', 'slice = {column = "s"}'])
def test_too_few_inputs_are_refused_unless_a_rule_or_the_option_says_so(tmp_path, where):
    rows = [f"{i},cat,cat,x" for i in range(29)]
    files = [table(tmp_path / f"{i}.csv", rows, head="id,truth,label,s") for i in "ab"]
    rule = f'[[rule]]\nmetric = "lost"\nat_most = 0.5\n{where}\n'
    rules, own = tmp_path / "gate.toml", tmp_path / "own.toml"
    rules.write_text(rule)
    own.write_text(rule + "min_count = 29\n")
    line = refused("gate", *files, "--rules", rules, code=3)
    assert "29 inputs, fewer than 30" in line
    assert "min_count" in line
    assert dynsnap("gate", *files, "--rules", rules, "--min-count", 29).exit_code == 0
    assert dynsnap("gate", *files, "--rules", own).exit_code == 0


def test_a_small_class_that_was_lost_fails_a_rule_for_every_class(tmp_path):
    truth = [*TRUTH, "owl"]
    old = told(tmp_path / "old.csv", truth, truth)
    new = told(tmp_path / "new.csv", [*TRUTH, "cat"], truth)
    rules = tmp_path / "gate.toml"
    rules.write_text('[[rule]]\nmetric = "lost"\nat_most = 0.5\nclass = "*"\n')
    assert dynsnap("gate", old, new, "--rules", rules).exit_code == 1


def same_file(folder, way):
    """Two paths that lead to one file."""
    file = told(folder / "a.csv", TRUTH)
    if way == "dots":
        (folder / "sub").mkdir()
        return file, folder / "sub" / ".." / "a.csv"
    if way == "uri":
        return file, file.as_uri()
    other = folder / "b.csv"
    if way == "symbolic link":
        other.symlink_to(file)
    elif way == "hard link":
        other.hardlink_to(file)
    return file, file if way == "path" else other


@pytest.mark.parametrize("way", ["path", "dots", "uri", "symbolic link", "hard link"])
def test_one_file_by_two_paths_is_not_two_models(tmp_path, way):
    one, two = same_file(tmp_path, way)
    other = told(tmp_path / "other.csv", TRUTH)
    for files in (
        (one, two),
        (one, other, "--noise-floor", two),
        (other, one, "--noise-floor", two),
    ):
        assert "a.csv" in refused("gate", *files, "--at-most", "lost=0.1", code=2)


def test_a_folder_and_a_pattern_of_the_same_files_are_not_two_models(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for part in range(2):
            said = Predictions(
                ids=range(part * 50, part * 50 + 50),
                classes=["a"],
                labels=["a"] * 50,
                truth=["a"] * 50,
            )
            write(said, tmp_path / name / f"{part}.parquet")
    one, two = tmp_path / "one", tmp_path / "two"
    rule = ("--at-most", "lost=0.1")
    assert dynsnap("gate", one, two, *rule).exit_code == 0
    assert "0.parquet" in refused("gate", one, f"{one}/*.parquet", *rule, code=2)
    (two / "0.parquet").unlink()
    (two / "0.parquet").symlink_to(one / "0.parquet")
    assert "0.parquet" in refused("gate", one, two, *rule, code=2)


def test_equal_labels_in_two_files_pass_with_a_note(tmp_path):
    files = [told(tmp_path / f"{name}.csv", TRUTH) for name in ("old", "new")]
    result = dynsnap("gate", *files, "--at-most", "lost=0")
    assert result.exit_code == 0
    assert "compared with itself" in result.stdout
    twin = told(tmp_path / "twin.csv", TRUTH)
    new = told(tmp_path / "new.csv", lucky("cow"))
    result = dynsnap("gate", files[0], new, "--at-most", "lost=0.9", "--noise-floor", twin)
    assert re.search(naming("old", "its twin"), result.stdout)


def test_where_nothing_was_right_nothing_can_be_lost(tmp_path):
    swapped = {"cat": "dog", "dog": "cow", "cow": "cat"}
    old = told(tmp_path / "old.csv", [swapped[name] for name in TRUTH])
    new = told(tmp_path / "new.csv", TRUTH)
    assert "old" in refused("gate", old, new, "--at-most", "lost=0.1", code=3)
    rules = tmp_path / "gate.toml"
    rules.write_text('[[rule]]\nmetric = "lost"\nat_most = 0.5\nclass = "*"\n')
    assert "nowhere" in refused("gate", old, new, "--rules", rules, code=3)
    # A class that the old model did not know is left out, and named.
    old = told(tmp_path / "old.csv", ["cow" if name == "cat" else name for name in TRUTH])
    found = json.loads(dynsnap("gate", old, new, "--rules", rules, "--json", "-").stdout)
    statuses = {outcome["part"]: outcome["status"] for outcome in found["outcomes"]}
    assert statuses == {"class cat": "not judged", "class cow": "passed", "class dog": "passed"}
