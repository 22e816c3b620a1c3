"""The page on real weeks: its tables are what plain numpy computes from the published labels."""

import functools
import importlib.util
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dynsnap.study import read_study
from tests.documents import tables
from tests.published import RESULTS, classes, columns

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/flights.md").read_text(encoding="utf-8")
STUDIES = [
    name for name in ("flights", "flights-xgboost", "flights-mlp") if (RESULTS / name).is_dir()
]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("flights_page", RESULTS / "flights.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def weekly(study, method):
    """Right after, labelled alike, lost and gained: each of replicates by weeks."""
    of = columns(RESULTS / study)
    (period,) = (of[name] for name in of if name.endswith("period"))
    masks = [period == week for week in sorted(set(period))]
    after = [of[f"singlebase/average/g2/r{r}"] for r in range(3)]
    found = []
    for r in range(3):
        if method == "noise floor":
            old, new = after[r], after[(r + 1) % 3]
        else:
            old, new = (of[f"{method}/average/g{g}/r{r}"] for g in (1, 2))
        was, now = old == of["truth"], new == of["truth"]
        flags = (now, old == new, was & ~now, ~was & now)
        found.append([[one[mask].mean() for mask in masks] for one in flags])
    return np.array(found).transpose(1, 0, 2)


def interval(each):
    """Mean and interval in points, as the page has them."""
    mean, low, high = ends(each)
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def ends(each):
    """Weeks and replicates as two crossed random effects, with Student's t by its own integral."""
    replicates, weeks = each.shape
    rows, cols = each.mean(axis=1), each.mean(axis=0)
    by_week, by_replicate = cols.var(ddof=1) / weeks, rows.var(ddof=1) / replicates
    rest = each - cols - rows[:, None] + each.mean()
    both = (rest**2).sum() / ((replicates - 1) * (weeks - 1)) / each.size
    # Weeks that follow are alike: their covariances count too, up to three weeks apart.
    gone = cols - cols.mean()
    alike = [(gone[lag:] * gone[:-lag]).sum() / (gone**2).sum() for lag in (1, 2, 3)]
    by_week *= max(1, 1 + 2 * np.dot([0.75, 0.5, 0.25], alike))
    total = max(by_week + by_replicate - both, by_week, by_replicate)
    quantile = by_week * student(weeks - 1) + by_replicate * student(replicates - 1)
    half = quantile / (by_week + by_replicate) * math.sqrt(total)
    mean = each.mean()
    return 100 * mean, 100 * (mean - half), 100 * (mean + half)


def student(freedom):
    from scipy.stats import t

    return t.ppf(0.975, freedom)


def shown(values, places=2):
    each = 100 * values.mean(axis=1)
    return f"{each.mean():.{places}f} ± {each.std(ddof=1):.{places}f}"


def rows_of(title):
    (table,) = (one for one in tables(PAGE) if title in one[0])
    return table


@pytest.mark.slow
def test_files_made_from_the_results_are_up_to_date(script):
    for path, text in script.outputs().items():
        assert path.read_text(encoding="utf-8") == text, "run: python results/flights.py"


def test_every_cell_of_the_main_table_is_what_plain_numpy_computes(script):
    names = {said: name for name, said in script.METHODS.items()}
    studies = {said: name for name, said in script.MODELS.items()}
    _, *rows = rows_of("qualifies")
    assert {studies[row[0]] for row in rows} == {*STUDIES}
    for cells in rows:
        model, said, n, acc, acc_gap, con, lost, lost_gap, gained, *_ = cells
        study, method = studies[model], names.get(said, "noise floor")
        right, alike, losses, gains = weekly(study, method)
        assert int(n) == 3
        assert (con, lost, gained) == tuple(map(shown, (alike, losses, gains)))
        if method == "noise floor":
            continue
        assert acc == shown(right)
        if method != "singlebase":
            fresh = weekly(study, "singlebase")
            assert acc_gap == interval(right - fresh[0])
            assert lost_gap == interval(losses - fresh[2])


def test_every_month_is_what_plain_numpy_computes():
    _, *rows = rows_of("ACC before → after")
    assert sum(int(row[1]) for row in rows) == weekly("flights", "singlebase").shape[2]
    start = 0
    for _, many, accuracy, never, con, floor, lost, gained, margin_lost, margin in rows:
        at = slice(start, start := start + int(many))
        fresh, kept, chosen, twin = (
            weekly("flights", method)[:, :, at]
            for method in ("singlebase", "never-retrain", "chosen-margin", "noise floor")
        )
        assert accuracy.partition(" → ")[2] == shown(fresh[0], 1)
        assert (con, lost, gained) == tuple(shown(one, 1) for one in fresh[1:])
        assert (never, floor) == (shown(kept[0], 1), shown(twin[1], 1))
        assert (margin_lost, margin) == (shown(chosen[2], 1), shown(chosen[0], 1))


def test_a_method_qualifies_by_the_intervals_that_are_shown(script):
    _, *rows = rows_of("qualifies")
    below = re.compile(r"\([+-][\d.]+ to -[\d.]+\)")
    others = {(row[0], row[1]): row[2:4] for row in rows_of("ACC minus never retrained")[1:]}
    for row in rows:
        if row[-1] in ("(reference)", ""):
            continue
        gaps = [row[4], *others.get((row[0], row[1]), [])]
        assert (row[-1] == "yes") == (not any(below.search(gap) for gap in gaps)), row


def test_there_are_enough_weeks_and_both_models_are_scored_on_the_same_rows():
    for study in STUDIES:
        of = columns(RESULTS / study)
        (period,) = (of[name] for name in of if name.endswith("period"))
        assert len(set(period)) >= 45
        plan = read_study(RESULTS / study / "study.toml", stored=True)
        assert plan.data.growth["selection_holdout"] > 0 and plan.replicates >= 3
        for method in {name.split("/")[0] for name in of if "/" in name}:
            for r in range(3):
                # The week before last's model, deployed until the retrain, is this week's old one.
                old, new = (of[f"{method}/average/g{g}/r{r}"] for g in (1, 2))
                assert len(old) == len(new) == len(of["truth"])
        np.testing.assert_array_equal(
            of["never-retrain/average/g1/r0"], of["never-retrain/average/g2/r0"]
        )


def test_the_page_of_claims_has_the_same_differences(script):
    evidence = (ROOT / "docs/evidence.md").read_text(encoding="utf-8")
    (claims,) = (table for table in tables(evidence) if "outcome" in table[0])
    gaps = {(row[0], row[1]): (row[7], row[4]) for row in rows_of("qualifies")[1:] if row[-1] != ""}
    assert len(claims) > len(STUDIES)
    for says, command, _, lost, accuracy, *_ in claims[1:]:
        model = script.MODELS[command.strip("`").split()[-1]]
        method = script.METHODS[re.search(r"`([^`]+)`$", says)[1]]
        assert (lost, accuracy) == gaps[model, method]


def test_the_constant_answer_is_that_of_the_labels():
    of = columns(RESULTS / "flights")
    (period,) = (of[name] for name in of if name.endswith("period"))
    numbers, counts = np.unique(of["truth"], return_counts=True)
    often = numbers[counts.argmax()]
    usual = classes(RESULTS / "flights")[often]
    right = np.mean([(of["truth"][period == week] == often).mean() for week in set(period)])
    assert f"`{usual}` is right for {100 * right:.2f} %" in PAGE


def answered():
    """The lines of the answer, without their bullets."""
    part = PAGE.split("<!-- flights: answer -->")[1].split("<!-- end -->")[0]
    return [line.removeprefix("* ") for line in part.splitlines() if line.startswith("* ")]


@pytest.mark.parametrize("study", STUDIES)
def test_what_loses_the_fewest_is_named_with_what_the_weeks_do_not_tell_from_it(script, study):
    names = {said: name for name, said in script.METHODS.items()}
    name = script.MODELS[study]
    qualified = [names[row[1]] for row in rows_of("qualifies")[1:] if row[::10] == [name, "yes"]]
    losses = {method: weekly(study, method)[2] for method in qualified}
    fresh = weekly(study, "singlebase")
    by_design = ("every-4", "every-13", "never-retrain")
    fewer = [one for one in losses if one not in by_design and ends(losses[one] - fresh[2])[2] < 0]
    fewer.sort(key=lambda one: losses[one].mean())
    group = [
        one for one in fewer if one == fewer[0] or ends(losses[one] - losses[fewer[0]])[1] <= 0
    ]
    assert len(group) > 1
    told = []
    for one in group:
        gap = interval(weekly(study, one)[0] - fresh[0])
        share = f"{100 * losses[one].mean():.2f} %"
        told.append(f"{script.METHODS[one]} ({share}, accuracy {gap} points)")
    (line,) = (one for one in answered() if one.startswith(f"**{name}: "))
    assert line.endswith(f": {'; '.join(told)}.")
    few, many = (f"{100 * losses[one].mean():.2f}" for one in (group[0], group[-1]))
    assert line.startswith(f"**{name}: {few} to {many} % of the flights of a week ")
    assert f"instead of {100 * fresh[2].mean():.2f} %." in line


def test_the_first_of_those_that_lose_the_fewest_is_not_told_from_the_next():
    """Alone it would be a winner inside the noise, found on the reported weeks."""
    for study, first, second in (
        ("flights", "margin", "bayesian"),
        ("flights-xgboost", "bayesian", "chosen-margin"),
        ("flights-mlp", "margin", "chosen-margin"),
    ):
        _, low, high = ends(weekly(study, first)[2] - weekly(study, second)[2])
        assert low < 0 < high


def test_a_retrain_every_week_is_held_against_the_constant_answer(script):
    (line,) = (one for one in answered() if one.startswith("Fresh every week against"))
    words = []
    for study in STUDIES:
        of = columns(RESULTS / study)
        (period,) = (of[name] for name in of if name.endswith("period"))
        often = np.bincount(of["truth"]).argmax()
        right = [(of["truth"][period == week] == often).mean() for week in sorted(set(period))]
        gap = weekly(study, "singlebase")[0] - right
        words.append("clearly" if ends(gap)[1] > 0 else "not clearly")
        assert f"{script.MODELS[study]} {interval(gap)}, {words[-1]} above" in line
    assert "not clearly" in words and "clearly" in words


def test_the_readme_tells_what_was_measured():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (told,) = (line for line in readme.splitlines() if "docs/flights.md" in line)
    for method in ("singlebase", "margin"):
        _, _, lost, _ = weekly("flights", method)
        assert f"lose {100 * lost.mean():.2f} %" in told or f"of {100 * lost.mean():.2f} %" in told
    gap = weekly("flights", "margin")[0] - weekly("flights", "singlebase")[0]
    value, _, rest = interval(gap).partition(" ")
    assert f"not clearly lower ({value} points, {rest.strip('()')})" in told
    assert rest.startswith("(-") and " to +" in rest
