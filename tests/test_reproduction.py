"""docs/reproduction.md has the numbers of the results, and no others."""

import csv
import functools
import json
import re
import shutil
import statistics
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import _seeds
import make_reproduction as script
from _reproduction import studies
from dynsnap import predictions
from dynsnap.comparison import PairedDifference, paired_difference
from dynsnap.study import Row, read_sweeps, read_table
from tests.documents import numbers, tables
from tests.published import RESULTS, by_replicate, columns, with_seeds

ROOT = Path(__file__).parents[1]


@pytest.fixture
def results(tmp_path):
    """The paper's tables, and results of one study under another name."""
    shutil.copy(RESULTS / "paper.csv", tmp_path)
    return tmp_path


@functools.cache
def of_results():
    """The page of all results."""
    return script.page(RESULTS)


CLAIMS = "The paper's claims, one by one"
FIGURE = "Figure 2: m, β, N and the window, and the two ablations"
MAIN = ("accuracy", "consistency", "correct_consistency")


def section(page, title):
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def lines(part, method, side="ours"):
    """The rows of a method in the tables of a study, without its name and side."""
    return [
        row[1:2] + row[3:]
        for table in tables(part)
        for row in table
        if row[::2][:2] == [method, side]
    ]


def measured(folder, method, how="average"):
    """The main metrics of a method as its table of results has them."""
    found = {
        row.metric: row
        for row in read_table(folder / "table.csv")
        if (row.method, row.combination) == (method, how)
    }
    return [found[metric] for metric in MAIN]


def verdicts(page):
    """For each claim, the studies in which it holds, does not hold, and was not tested."""
    table = tables(section(page, "Conclusion"))[0]
    return {row[0]: [set(filter(None, cell.split("; "))) for cell in row[1:]] for row in table[1:]}


def distances(page):
    """The cells of the table of distances from the paper, by study and method."""
    table = tables(section(page, "Conclusion"))[1]
    return {tuple(row[:2]): row[2:] for row in table[1:]}


def test_the_page_is_what_the_script_writes():
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert page == of_results(), "run: python results/make_reproduction.py"


def test_what_one_replicate_alone_speaks_for_is_open():
    of = verdicts(of_results()).values()
    holds, against, unknown = (set().union(*each) for each in zip(*of, strict=True))
    assert not any(one.endswith(" (1)") for one in holds)
    assert any(one.endswith(" (1)") for one in unknown)
    assert any(one.endswith(" (1)") for one in against)  # what it speaks against is told


PAPERS = ["AVG", "88.47", "93.04", "85.60", "3.0"]


def test_a_study_that_was_not_run_has_the_paper_s_numbers_only(results):
    page = script.page(results)
    part = section(page, "CIFAR-10, ResNet-20")
    assert PAPERS in [row[:5] for row in lines(part, "dynsnap-cyc", "paper")]
    assert ["WAVG", "6.60", "5.38", "80.79"] in [
        row[:4] for row in lines(part, "singlebase", "paper")
    ]
    assert {row[1] for row in lines(part, "dynsnap-cyc")} == {"not run yet"}
    assert "`dynsnap run cifar10-paper`" in part
    assert not any(any(cells) for cells in verdicts(page).values())
    assert not distances(page)


def test_a_study_is_picked_up_when_its_results_are_there(results):
    folder = results / "cifar10-paper"
    shutil.copytree(RESULTS / "20news", folder)
    page = script.page(results)
    part = section(page, "CIFAR-10, ResNet-20")
    assert "not run yet" not in part
    assert PAPERS in [row[:5] for row in lines(part, "dynsnap-cyc", "paper")]
    rows = measured(folder, "dynsnap-cyc")
    cells = [f"{100 * row.value:.2f} ± {100 * row.spread:.1f}" for row in rows]
    assert ["AVG", *cells, "3.0"] in [row[:5] for row in lines(part, "dynsnap-cyc")]
    about = json.loads((folder / "about.json").read_text())
    assert f"n = {about['test_inputs']:,}" in part and f"{about['replicates']} replicates" in part
    holds, _, _ = next(iter(verdicts(page).values()))
    assert holds == {f"CIFAR-10, ResNet-20 ({about['replicates']})"}
    line = next(one for one in section(page, CLAIMS).splitlines() if one.startswith("* CIFAR-10"))
    one, other = rows, measured(folder, "singlebase")
    gaps = [f"{100 * (new.value - old.value):+.2f}" for new, old in zip(one, other, strict=True)]
    assert all(gap in line for gap in gaps)
    assert "Tables of cifar10-paper" in section(page, FIGURE)


def by_seed(name, method):
    """ACC, CON and ACC-CON of every replicate of all seeds."""
    return by_replicate(name, method)[:, :3]


@pytest.mark.parametrize(
    ("name", "title", "often"),
    [
        ("cifar10-paper", "CIFAR-10, ResNet-20", {"singlebase": 21, "dynsnap-step": 3}),
        pytest.param(
            "20news",
            "20 Newsgroups, fastText",
            {"extbagging": 10, "mcdropout": 10},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_further_seeds_are_further_replicates(name, title, often):
    part = section(of_results(), title)
    assert "not run yet" not in part
    for method, number in often.items():
        values = by_seed(name, method)
        assert len(values) == number and str(number) in numbers(part)
        cells = [
            f"{mean:.2f} ± {spread:.1f}"
            for mean, spread in zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
        ]
        (row,) = (
            row for row in lines(part, method) if row[0] in ("AVG", "all") and row[1] == cells[0]
        )
        assert row[1:4] == cells


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=2, max_size=4).filter(
        lambda seeds: len({round(one, 3) for seed in seeds for one in seed}) > 1
    )
)
def test_pooled_seeds_have_mean_and_deviation_of_all_replicates(seeds):
    parts = [
        _seeds.Part(
            Row(
                method="one",
                combination="average",
                metric="accuracy",
                value=statistics.mean(seed),
                cost=float(len(seed)),
                spread=statistics.stdev(seed) if len(seed) > 1 else None,
            ),
            len(seed),
        )
        for seed in seeds
    ]
    whole = [one for seed in seeds for one in seed]
    row = _seeds.pooled(parts)
    assert row.value == pytest.approx(statistics.mean(whole))
    assert row.spread == pytest.approx(statistics.stdev(whole))
    assert row.cost == pytest.approx(sum(len(seed) ** 2 for seed in seeds) / len(whole))
    assert row.low is None and row.high is None


STUDIES = ["cifar10-paper", "20news", "20news-sensitivity", "digits"]


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_small_and_complete(name):
    files = [path for path in (RESULTS / name).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 10_000_000
    assert (RESULTS / name / "about.json").exists()
    read = predictions.read(f"{RESULTS / name}::dynsnap-cyc/average/g3/r0")
    assert read.scores is not None


def test_all_results_are_few_files_and_small():
    files = [path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    studies = {path.parent for path in files if path.parent != RESULTS}
    assert all(sum(path.parent == one for path in files) <= 10 for one in studies)
    assert sum(path.stat().st_size for path in files) <= 45_000_000


def test_balanced_cifar_10_is_held_against_what_it_has_to_reach(results):
    title = "A check of the model: balanced CIFAR-10"
    assert "`dynsnap run cifar10-balanced`" in section(script.page(results), title)
    folder = results / "cifar10-balanced"
    shutil.copytree(RESULTS / "digits", folder)
    part = section(script.page(results), title)
    assert "90.5" in numbers(part) and "not reached" in part
    values = {"accuracy_1": 0.912, "accuracy_2": 0.915, "consistency": 0.93}
    values["correct_consistency"] = 0.88
    rows = [f"singlebase,average,{name},{value},,,1,," for name, value in values.items()]
    rows.append("noise-floor,average,accuracy,0.913,,,1,,")
    head = "method,combination,metric,value,low,high,cost,seconds,spread"
    (folder / "table.csv").write_text("\n".join([head, *rows]) + "\n")
    part = section(script.page(results), title)
    (table,) = tables(part)
    assert [row[1] for row in table[1:]] == ["91.20", "91.50", "91.40", "91.37"]
    assert "not reached" not in part
    assert {"93.00", "88.00"} <= set(numbers(part))


def test_the_distance_is_given_for_those_that_have_a_limit(results):
    folder = results / "cifar100-paper"
    shutil.copytree(RESULTS / "20news", folder)
    page = script.page(results)
    found = distances(page)
    title = "CIFAR-100, ResNet-56"
    assert list(found) == [(title, "singlebase"), (title, "dynsnap-cyc")]
    *gaps, within = found[title, "singlebase"]
    assert [numbers(cell)[1] for cell in gaps] == ["1", "1", "1"] and within == "no"
    assert numbers(found[title, "dynsnap-cyc"][2]) == ["5.16", "2.5"]
    part = section(page, title)
    row = measured(folder, "singlebase")[0]
    interval = {f"{100 * row.low:.2f}", f"{100 * row.high:.2f}"}
    assert interval <= set(numbers(part))  # of what is not within the limit
    (line,) = (line for line in part.splitlines() if line.startswith("* dynsnap-cyc: "))
    assert "4κ" in line and "3κ" in line  # the paper's ensemble has a round more


def swept(study):
    """The sweeps of a study: by sweep and point, the cost and the main metrics in percent."""
    return _swept(_seeds.sweeps_of(RESULTS / study))


def swept_alone(study):
    """The same of one seed."""
    return _swept(read_sweeps(RESULTS / study / "sweeps.csv"))


def _swept(rows):
    found = {}
    for one in rows:
        if one.row.metric in MAIN:
            point = found.setdefault((one.sweep, one.point), (one.row.cost, []))
            point[1].append(100 * one.row.value)
    return found


@pytest.mark.parametrize(
    ("study", "title"),
    [
        ("cifar10-paper", "CIFAR-10"),
        pytest.param("cifar100-paper", "CIFAR-100", marks=pytest.mark.slow),
        pytest.param("20news", "20 Newsgroups", marks=pytest.mark.slow),
    ],
)
def test_pruning_is_compared_at_equal_cost_by_algorithm_1_and_at_equal_size_with_costs(
    study, title
):
    part = section(of_results(), CLAIMS).split("### The pruned ensemble")[1].split("###")[0]
    (line,) = (one for one in part.splitlines() if one.startswith(f"* {title},"))
    found = swept(study)
    for pruned, whole in (("20", "30"), ("10", "10"), ("20", "20")):
        (cost, mine), (price, other) = found["members", pruned], found["unpruned", whole]
        gaps = [f"{new - old:+.2f}" for new, old in zip(mine, other, strict=True)]
        start = f"{pruned} pruned ({cost}κ)" if pruned == whole else f"({cost}κ), {pruned} pruned"
        end = f"against {whole} ({price}κ)" if pruned == whole else f"against all {whole}"
        (said,) = (one for one in line.split("; ") if start in one and end in one)
        assert all(gap in said for gap in gaps)
    # Five or ten of the survivors of one or two rounds are no ensemble at equal cost.
    assert "5 pruned" not in line and "10 pruned against all" not in line


def test_pruning_is_judged_run_by_run():
    page = of_results()
    (found,) = (cells for name, cells in verdicts(page).items() if "pruned" in name)
    assert [{one.partition(",")[0] for one in cells} for cells in found] == [
        set(),
        {"CIFAR-10", "CIFAR-100", "20 Newsgroups"},
        set(),
    ]
    for study, many in (("cifar10-paper", 3), ("cifar100-paper", 3)):
        gaps = {metric: [] for metric in MAIN}
        assert len(with_seeds(study)) == many
        for folder in with_seeds(study):
            with (folder / "sweeps.csv").open(newline="") as file:
                rows = {
                    (row["sweep"], row["point"], row["metric"]): float(row["value"])
                    for row in csv.DictReader(file)
                }
            for metric, each in gaps.items():
                each.append(100 * (rows["members", "20", metric] - rows["unpruned", "30", metric]))
        told = []
        for head, each in zip(("ACC", "CON", "ACC-CON"), gaps.values(), strict=True):
            low, high = stats.ttest_1samp(each, 0).confidence_interval()
            word = "higher" if low > 0 else "lower" if high < 0 else studies.UNCLEAR
            told.append(
                f"{head} {np.mean(each):+.2f} ({low:+.2f} to {high:+.2f} over {many} runs, {word})"
            )
        assert f"20 pruned against all 30: {', '.join(told)};" in section(page, CLAIMS)


def test_replicates_that_share_a_mean_are_not_paired():
    """Of 20 Newsgroups each seed stores a mean and a deviation over its replicates."""
    line = next(
        one
        for one in section(of_results(), CLAIMS).splitlines()
        if one.startswith("* 20 Newsgroups") and "20 pruned against all 30" in one
    )
    for metric, head in zip(MAIN, ("ACC", "CON", "ACC-CON"), strict=True):
        sides = []
        for sweep, point in (("members", "20"), ("unpruned", "30")):
            parts = []
            for folder in with_seeds("20news"):
                often = sum(one.startswith("dynsnap-cyc/average/g1/") for one in columns(folder))
                with (folder / "sweeps.csv").open(newline="") as file:
                    (row,) = (
                        one
                        for one in csv.DictReader(file)
                        if (one["sweep"], one["point"], one["metric"]) == (sweep, point, metric)
                    )
                parts.append((often, float(row["value"]), float(row["spread"])))
            n = sum(often for often, *_ in parts)
            value = sum(often * one for often, one, _ in parts) / n
            squares = sum((k - 1) * sd**2 + k * (one - value) ** 2 for k, one, sd in parts)
            sides.append((n, 100 * value, 100 * np.sqrt(squares / (n - 1))))
        (n, mine, a), (_, other, b) = sides
        half = stats.t.ppf(0.975, n - 1) * np.hypot(a, b) / np.sqrt(n)
        gap = mine - other
        low, high = gap - half, gap + half
        word = "higher" if low > 0 else "lower" if high < 0 else studies.UNCLEAR
        told = f"{low:+.2f} to {high:+.2f} over {n} replicates, not paired, {word}"
        assert f"{head} {gap:+.2f} ({told})" in line


# What the claims compare in a study's own labels, by what their titles hold.
COMPARED = {
    "than a single learner": ("dynsnap-cyc", "singlebase"),
    "bagging": ("dynsnap-cyc", "extbagging"),
    "ropout": ("mcdropout", "singlebase"),
}


def test_every_verdict_tells_the_fewest_replicates_of_what_it_compares():
    title = {study.title: study.folder for study in studies.STUDIES}
    table = verdicts(of_results())
    seen = []
    for words, methods in COMPARED.items():
        (cells,) = (cells for name, cells in table.items() if words in name)
        for said in set().union(*cells):
            study, _, n = said.removesuffix(")").rpartition(" (")
            assert int(n) == min(len(by_seed(title[study], one)) for one in methods), said
            seen.append((study, n))
    assert len(seen) > 8 and ("CIFAR-100, ResNet-56", "2") in seen
    assert all(said.endswith(")") for cells in table.values() for said in set().union(*cells))


@pytest.mark.parametrize(
    ("study", "title", "alone"),
    [
        ("cifar100-paper", "CIFAR-100", ""),
        ("cifar10-paper", "CIFAR-10", ", `cifar10-paper-2022` alone"),
    ],
)
def test_all_survivors_are_compared_run_by_run_where_sizes_were_measured(study, title, alone):
    part = section(of_results(), CLAIMS).split("### The pruned ensemble")[1].split("###")[0]
    (line,) = (one for one in part.splitlines() if one.startswith(f"* {title},"))
    sized = [one for one in with_seeds(study) if (one / "size.json").is_file()]
    assert len(sized) == (1 if alone else 3)
    members, gaps = [], {metric: [] for metric in MAIN}
    for folder in sized:
        size = json.loads((folder / "size.json").read_text())
        points = [size["curves"][metric]["by_rounds"][-1] for metric in MAIN]
        for point in points:  # the only choice of all rounds
            assert (point["rounds"], point["least"]) == (3, point["most"]) and size["rounds"] == 3
        members.append(points[0]["members"])
        others = swept_alone(folder.name)["unpruned", "30"][1]
        for each, point, other in zip(gaps.values(), points, others, strict=True):
            each.append(100 * point["value"] - other)
    # Of fewer rounds the means over all choices of them are no match for the first rounds' sweeps.
    (said,) = (one for one in line.split("; ") if "survivors" in one)
    start = f"all {np.mean(members):.1f} survivors of 3 rounds (3.0κ{alone}) against all 30 "
    assert said.startswith(start)
    for head, each in zip(("ACC", "CON", "ACC-CON"), gaps.values(), strict=True):
        told = f"{head} {np.mean(each):+.2f}"
        if len(each) > 1:
            low, high = stats.ttest_1samp(each, 0).confidence_interval()
            told += f" ({low:+.2f} to {high:+.2f} over {len(each)} runs"
        assert told in said


def test_the_page_says_what_the_words_mean_where_they_stand():
    page = of_results()
    reading = section(page, "How to read the tables")
    assert f'"{studies.BY_INPUTS}"' in reading and "are not paired" in reading
    for line in section(page, CLAIMS).splitlines():
        for value, low, high, word in re.findall(
            r" ([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+), inputs alone\), ([^;.]+)[;.]", line
        ):
            clear = float(low) > 0 or float(high) < 0
            small = abs(float(value)) < 1
            if float(low) and float(high) and abs(float(value)) != 1:
                assert (word == studies.BY_INPUTS) == (clear and small), line
    assert studies.BY_INPUTS in section(page, CLAIMS)


@pytest.mark.parametrize(
    ("word", "own", "other", "verdict"),
    [
        ("higher", 3, 4, True),
        ("higher", 4, 3, None),  # better, and dearer
        ("lower", 3, 4.56, None),  # worse, and cheaper
        ("lower", 4, 3, False),
        ("no clear difference", 3, 3, False),
    ],
)
def test_what_costs_more_and_is_better_tests_nothing(word, own, other, verdict):
    assert script.claims._at_that_cost(word, own, other) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.02, 0.0099, True),
        (-0.02, 0.0101, None),  # more than a point may have gone unseen
        (0.001, 0.0099, False),
        (0.001, 0.06, False),
        (-0.06, -0.01, True),
    ],
)
@pytest.mark.parametrize("metric", ["consistency", "correct_consistency"])
def test_dropout_fails_only_where_no_gain_of_a_point_may_have_gone_unseen(
    low, high, verdict, metric
):
    def difference(one, other, about):
        assert (one, other) == ("mcdropout", "singlebase")
        ends = (low, high) if about == metric else (-0.01, 0.005)
        known = {"detectable": 0.1, "inputs": 100, "replicates": 2}
        return PairedDifference(value=sum(ends) / 2, low=ends[0], high=ends[1], **known)

    found = SimpleNamespace(
        has=lambda *names: True,
        rows=lambda name: {"accuracy": SimpleNamespace(cost=1.0)},
        difference=difference,
    )
    assert script.claims._dropout_fails(None, found, RESULTS)[1:] == (verdict, 2)


def test_ablations_that_cannot_test_the_claim_are_not_counted():
    (needed,) = (cells for name, cells in verdicts(of_results()).items() if "schedule" in name)
    assert not needed[0] and not needed[1] and len(needed[2]) == 2


def test_rounds_that_are_missing_are_counted(results):
    folder = results / "cifar100-paper"
    shutil.copytree(RESULTS / "20news", folder)
    assert "missing" not in section(script.page(results), "CIFAR-100, ResNet-56")
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps(about | {"rounds_missing": 41}))
    part = section(script.page(results), "CIFAR-100, ResNet-56")
    assert "41" in numbers(part) and "missing" in part


def test_differences_from_the_paper_are_listed_before_and_after_the_run(results):
    title = "CIFAR-100, ResNet-56"
    before = section(script.page(results), title)
    shutil.copytree(RESULTS / "20news", results / "cifar100-paper")
    listed = [line for line in before.splitlines() if line.startswith("* ")]
    assert len(listed) == 3
    assert set(listed) <= set(section(script.page(results), title).splitlines())


def judged(page):
    """How many claims have a verdict on CIFAR-100."""
    return sum(
        any("CIFAR-100" in one for one in set().union(*cells)) for cells in verdicts(page).values()
    )


def test_what_was_not_trained_is_not_judged(results):
    """A study that is measured from the rounds there are may lack methods."""
    folder = results / "cifar100-paper"
    shutil.copytree(RESULTS / "20news", folder)
    table = folder / "table.csv"
    text = table.read_text().splitlines()
    kept = [line for line in text if not line.startswith(("extbagging", "mcdropout", "dynsnap-s"))]
    table.write_text("\n".join(kept) + "\n")
    page = script.page(results)
    assert judged(page) == 4  # of seven; nothing varied is there
    part = section(page, "CIFAR-100, ResNet-56")
    assert [row[1] for row in lines(part, "mcdropout")] == ["not run yet"] * 3
    assert "not run yet" not in [row[1] for row in lines(part, "snapshot")]
    table.write_text("\n".join(line for line in kept if not line.startswith("dynsnap-cyc")) + "\n")
    # From the sweeps: of pruning, and of fresh starts against Snapshot, which is still there.
    page = script.page(results)
    assert judged(page) == 2
    assert "ACC +0.95 (" in section(page, CLAIMS)
    assert section(page, CLAIMS).count("not run yet") == 5


def test_bagging_with_too_few_members_to_cost_more_does_not_test_the_claim(results):
    folder = results / "cifar100-paper"
    shutil.copytree(RESULTS / "20news", folder)
    table = folder / "table.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    for row in rows:
        if row[0] == "extbagging":
            row[6] = "2.0"
    table.write_text("\n".join(map(",".join, rows)) + "\n")
    page = script.page(results)
    (near,) = (cells for name, cells in verdicts(page).items() if "bagging" in name)
    mine = columns(RESULTS / "20news", "test")  # the first seed alone
    often = sum(key.startswith("extbagging/average/g1/") for key in mine)
    assert near == [set(), set(), {f"CIFAR-100, ResNet-56 ({often})"}]
    assert "extbagging (2.0κ)" in section(page, CLAIMS)


def test_ablations_with_shorter_windows_are_compared_with_the_same_windows(results):
    folder = results / "cifar100-sensitivity"
    shutil.copytree(RESULTS / "20news-sensitivity", folder)
    shutil.copy(ROOT / "src/dynsnap/studies/cifar100-sensitivity.toml", folder / "study.toml")
    table = folder / "table.csv"
    table.write_text(table.read_text().replace("\ndynsnap-cyc,", "\ndynsnap-cyc-short,"))
    page = script.page(results)
    (line,) = (
        line
        for line in section(page, CLAIMS).splitlines()
        if line.startswith("* CIFAR-100") and "dynsnap-cyc-short (3.0κ)" in line
    )
    assert "no-schedule" in line and "no-randomness" in line
    assert {"5", "20"} <= set(numbers(line))  # epochs of these windows, and of the paper's
    part = section(page, FIGURE)
    heads = [line for line in part.splitlines() if line.startswith("**")]
    assert any("snapshots" in head and "windows of 5 epochs" in head for head in heads)
    assert any("window" in head and "5 windows a round" in head for head in heads)


@pytest.mark.parametrize(
    ("over", "values", "said"),
    [
        ("members", {"1": 0.5, "5": 0.6, "20": 0.62}, ("open", "+2.00 from 5 to 20", "at 20")),
        ("snapshots", {"1": 0.5, "5": 0.502, "20": 0.499}, ("not clearly", "-0.30", "at 5")),
        ("window", {"5": 0.5, "10": 0.6, "20": 0.58}, ("no (clearly worse from 10 to 20)",)),
        ("beta", {"0.4": 0.5, "mean": 0.496}, ("none", "at 0.4")),
        ("beta", {"0.4": 0.51, "1": 0.4, "mean": 0.5}, (": 0.4", "at 0.4")),
        ("carry", {"0.5": 0.5, "1": 0.6}, ("at 1 (3.0κ)",)),
    ],
)
def test_every_sweep_has_a_verdict_and_its_highest_point(results, over, values, said):
    (results / "20news").mkdir()
    rows = ["sweep,over,point,method,combination,metric,value,low,high,cost,seconds,spread"]
    rows += [
        f"varied,{over},{point},one,average,{metric},{value},,,3,,"
        for point, value in values.items()
        for metric in MAIN
    ]
    (results / "20news/sweeps.csv").write_text("\n".join(rows) + "\n")
    part = section(script.page(results), FIGURE)
    (line,) = (line for line in part.splitlines() if line.startswith("* varied"))
    assert [word for word in said if word not in line] == []


def test_the_studies_of_20_newsgroups_share_three_replicates():
    of, varied = (columns(RESULTS / name, "test") for name in ("20news", "20news-sensitivity"))
    more = columns(RESULTS / "20news-2021", "test")
    keys = [f"dynsnap-cyc/average/g3/r{r}" for r in range(10)]
    known = [one[key] for one in (of, more) for key in keys if key in one]
    assert len(known) == 10
    shared = sum(any((varied[key] == one).all() for one in known) for key in keys)
    said = "`20news-sensitivity` has three of its ten replicates in common with `20news`"
    assert shared == 3 and said in " ".join(section(of_results(), FIGURE).split())


STEP = re.compile(r"([-+][\d.]+)(?: \(([-+][\d.]+) to ([-+][\d.]+)\))? from (\d+) to (\d+)")


def test_how_far_more_is_better_follows_from_the_steps_of_a_sweep():
    part = section(of_results(), FIGURE)
    folder, said = "", {}
    for line in part.splitlines():
        folder = line.strip("`:") if line.startswith("`") else folder
        if "more is better: " not in line:
            continue
        name = re.match(r"\* (\w+)", line)[1]
        rows = {
            one.point: 100 * one.row.value
            for one in _seeds.sweeps_of(RESULTS / folder)
            if (one.sweep, one.row.metric) == (name, "correct_consistency")
        }
        steps = STEP.findall(line)
        assert [*(one[3] for one in steps), steps[-1][4]] == list(rows)
        for value, low, high, before, after in steps:
            assert f"{rows[after] - rows[before]:+.2f}" == value
            assert not low or float(low) < float(value) < float(high)
        verdict = line.partition("more is better: ")[2].partition(";")[0]
        if "(n = 1)" in line:
            assert verdict.startswith("open")
        else:
            up = [after for _, low, _, _, after in steps if float(low) > 0]
            far = "" if up[-1] == steps[-1][4] else f" up to {up[-1]}, and not clearly beyond"
            assert verdict == f"yes{far}" and all(float(high) > 0 for _, _, high, *_ in steps)
        said[folder, name] = verdict
    assert len(set(said.values())) > 2 and len(said) >= 10


def test_longer_windows_are_compared_with_more_of_them_at_equal_cost():
    part = section(of_results(), FIGURE)
    rows = {
        (one.sweep, one.point): 100 * one.row.value
        for one in _seeds.sweeps_of(RESULTS / "cifar100-sensitivity")
        if one.row.metric == "correct_consistency"
    }
    for window, number, kappa in (("10", "10", "0.25"), ("20", "20", "0.5")):
        gap = rows["window", window] - rows["snapshots", number]
        start = f"* window {window} against {number} "
        (line,) = (line for line in part.splitlines() if line.startswith(start))
        assert f"({kappa}κ)" in line and f"ACC-CON {gap:+.2f}" in line


def test_methods_are_compared_by_paired_intervals_over_the_replicates_of_both():
    part = section(of_results(), CLAIMS)
    (line,) = (one for one in part.splitlines() if one.startswith("* 20 News") and "mcdrop" in one)
    sides = [by_input("20news", method) for method in ("mcdropout", "singlebase")]
    found = paired_difference(*sides)
    ends = [f"{100 * one:+.2f}" for one in (found.value, found.low, found.high)]
    assert f"n = {len(sides[0])}, ACC {ends[0]} ({ends[1]} to {ends[2]})" in line


def by_input(name, method):
    """Accuracy of every input over three generations, by replicate of all seeds."""
    found = []
    for folder in with_seeds(name):
        table = columns(folder, "test")
        for key in [one for one in table if one.startswith(f"{method}/average/g1/")]:
            each = [key.replace("/g1/", f"/g{number}/") for number in (1, 2, 3)]
            found.append(np.mean([table[one] == table["truth"] for one in each], axis=0))
    return np.array(found)


def test_one_point_is_twice_what_differences_vary_by_between_replicates_on_cifar_10():
    values = {
        method: by_seed("cifar10-paper", method)[:3]
        for method in ("dynsnap-cyc", "dynsnap-step", "extbagging", "mcdropout", "snapshot")
    }
    spreads = [
        (values[one] - values[other]).std(axis=0, ddof=1) for one, other in combinations(values, 2)
    ]
    assert 0.8 < 2 * np.max(spreads) < 1.1 and studies.DOUBT == 1


def test_what_one_seed_alone_has_is_not_held_against_all_seeds():
    part = section(of_results(), CLAIMS)
    (line,) = (
        one
        for one in part.splitlines()
        if one.startswith("* CIFAR-100") and "long" not in one and "one training" in one
    )
    seed = RESULTS / "cifar100-paper"  # the only one that has Snapshot
    swept_there = swept_alone("cifar100-paper")["unpruned", "20"][1]
    rows = list(measured(seed, "snapshot"))
    for mine, other in zip(swept_there, rows, strict=True):
        assert f"{mine - 100 * other.value:+.2f} (n = 1, " in line
