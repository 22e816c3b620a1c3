"""docs/reproduction.md, from the paper's tables and the results beside this file.

python results/make_reproduction.py          # writes the page
python results/make_reproduction.py --check  # says whether it is up to date

A study that is run later is picked up as soon as `results/<study>/table.csv` is there.
"""

# ruff: noqa: E501  the page's own sentences are as long as those of other pages

import argparse
import csv
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynsnap.study import Row, StudyPlan, read_study, read_table

ROOT = Path(__file__).parents[1]
PAGE = Path("docs/reproduction.md")

METHODS = ("singlebase", "extbagging", "mcdropout", "snapshot", "dynsnap-cyc", "dynsnap-step")
COMBINATIONS = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}
MAIN = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
FURTHER = {
    "top_2_consistency": "CCON-2",
    "top_2_accuracy": "CACC-2",
    "pearson": "Pearson",
    "cosine": "cosine",
}
MOVES = {"gained": "gained", "lost": "lost", "composite": "Com"}
PAIRS = ("1_2", "2_3", "1_3")
NOT_RUN = "not run yet"
BALANCED, LEAST = "cifar10-balanced", 90.5  # percent that the model has to reach there
DOUBT = 0.5  # points: what single runs differ by, where there are no replicates


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A folder of results, and what the paper calls the same."""

    folder: str
    title: str
    paper: str | None = None  # its name in paper.csv
    # Points that ACC, CON and ACC-CON may lie off the paper's: of singlebase on either side, of
    # dynsnap-cyc below.
    singlebase: tuple[float, float, float] | None = None
    dynsnap_cyc: tuple[float, float, float] | None = None


STUDIES = (
    Study(
        folder="cifar10-paper",
        title="CIFAR-10, ResNet-20",
        paper="cifar10",
        singlebase=(0.7, 0.7, 0.7),
        dynsnap_cyc=(0.7, 1.5, 1.0),
    ),
    Study(
        folder="cifar100-paper",
        title="CIFAR-100, ResNet-56",
        paper="cifar100",
        singlebase=(1.0, 1.0, 1.0),
        dynsnap_cyc=(1.5, 2.5, 2.5),
    ),
    Study(folder="yahoo-paper", title="Yahoo! Answers, fastText", paper="yahoo"),
    Study(folder="20news", title="20 Newsgroups, fastText"),
    Study(folder="digits", title="Handwritten digits, a small dense network"),
)
FIGURES = (
    *("cifar10-paper", "cifar100-paper", "cifar100-sensitivity"),
    *("20news", "20news-sensitivity"),
)
VARIED = (
    Study(folder="cifar100-sensitivity", title="CIFAR-100, ResNet-56"),
    Study(folder="20news-sensitivity", title="20 Newsgroups, fastText"),
)


class Found:
    """The rows of one study, ours or the paper's, by what they are about."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.method, row.combination, row.metric): row for row in rows}
        self.methods = list(dict.fromkeys(row.method for row in rows))

    def __call__(self, method: str, metric: str, how: str = "average") -> Row | None:
        return self._rows.get((method, how, metric))

    def has(self, *methods: str) -> bool:
        """Whether these methods have all of the main metrics."""
        return all(self(method, metric) is not None for method in methods for metric in MAIN)

    def value(self, method: str, metric: str) -> float:
        """A value that is known to be there, in percent."""
        row = self(method, metric)
        assert row is not None
        return 100 * row.value

    def doubt(self, method: str, metric: str) -> float:
        """How far a value may be off, in percent: twice its spread over replicates."""
        row = self(method, metric)
        return DOUBT if row is None or row.spread is None else 200 * row.spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    fresh = page(ROOT / "results")
    if parser.parse_args().check:
        known = (ROOT / PAGE).read_text(encoding="utf-8")
        raise SystemExit(0 if fresh == known else f"{PAGE} is not what the results say.")
    (ROOT / PAGE).write_text(fresh, encoding="utf-8")


def page(results: Path) -> str:
    """The whole page, from a folder of results."""
    ours = {study.folder: _ours(results / study.folder) for study in STUDIES}
    paper = _paper(results / "paper.csv")
    parts = [INTRODUCTION]
    for study in STUDIES:
        parts.append(f"## {study.title}\n")
        found = ours[study.folder]
        parts += _provenance(results / study.folder, found)
        said = paper.get(study.paper or "")
        if said is not None and found is not None:
            parts += _landing(study, said, found)
        if said is not None or found is not None:
            parts += _tables(said, found)
    parts += _balanced(results / BALANCED)
    parts += _figure_2(results)
    parts += _claims({s: ours[s.folder] for s in STUDIES}, results)
    parts.append(REMARKS)
    return "\n".join(parts).rstrip("\n") + "\n"


def _ours(folder: Path) -> Found | None:
    table = folder / "table.csv"
    return Found(read_table(table)) if table.is_file() else None


def _paper(path: Path) -> dict[str, Found]:
    """The paper's tables, as rows like ours."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    costs = {
        (line["data"], line["method"]): float(line["value"])
        for line in lines
        if line["metric"] == "cost"
    }
    rows: dict[str, list[Row]] = {}
    for line in lines:
        if line["metric"] != "cost":
            pair = f"_{line['pair'].replace('-', '_')}" if line["pair"] else ""
            rows.setdefault(line["data"], []).append(
                Row(
                    method=line["method"],
                    combination=line["combination"],
                    metric=line["metric"] + pair,
                    value=float(line["value"]),
                    cost=costs[line["data"], line["method"]],
                )
            )
    return {data: Found(found) for data, found in rows.items()}


def _provenance(folder: Path, found: Found | None) -> Iterator[str]:
    if found is None:
        yield f"Ours: {NOT_RUN}. `dynsnap run {folder.name}` is all that it takes, and the data.\n"
        return
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    hardware = about.get("hardware", {})
    machine = ", ".join(
        str(part)
        for part in (
            about["environment"].get("device"),
            hardware.get("processor"),
            f"{hardware['cores']} cores" if "cores" in hardware else None,
        )
        if part
    )
    yield (
        f"Ours: `results/{folder.name}`, n = {about['test_inputs']:,} test inputs, "
        f"{_replicates(folder, about['replicates'])} ({about['rounds']} rounds of training, "
        f"{about['training_seconds']:,.0f} s in all), dynsnap {about['dynsnap']}, {machine}. "
        f"After ± the standard deviation over replicates, where there are several.{_sizes(folder, found)}\n"
    )


def _replicates(folder: Path, usual: int) -> str:
    """How many replicates there are, and of which methods there are more."""
    path = folder / "replicates.csv"
    known: dict[str, set[str]] = {}
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                known.setdefault(line["method"], set()).add(line["replicate"])
    more = [f", {len(own)} of {method}" for method, own in known.items() if len(own) > usual]
    words = f"{usual} replicate{'s' if usual > 1 else ''}"
    return f"{words} of each method{''.join(more)}" if more else words


def _plan(folder: Path) -> StudyPlan | None:
    """The study as it was run."""
    path = folder / "study.toml"
    return read_study(path) if path.is_file() else None


def _sizes(folder: Path, found: Found) -> str:
    """How many members ensembles have that take a training for each, or for a few."""
    plan, said = _plan(folder), []
    for method in () if plan is None else plan.methods:
        row = found(method.name, "accuracy")
        if row is None or method.name not in ("extbagging", "dynsnap-step"):
            continue
        size = method.plan.size
        members = "all members that pruning leaves" if size == "auto" else f"{size} members"
        said.append(f"{method.name} has {members} of {row.cost:.3g} rounds")
    return f" Here {', '.join(said)}." if said else ""


def _landing(study: Study, paper: Found, ours: Found) -> Iterator[str]:
    """Whether the reproduction comes as near to the paper as was asked of it."""
    asked = {"singlebase": study.singlebase, "dynsnap-cyc": study.dynsnap_cyc}
    lines = []
    for method, limits in asked.items():
        if limits is None or not ours.has(method):
            continue
        both = method == "singlebase"
        said, good = [], []
        for (metric, head), limit in zip(MAIN.items(), limits, strict=True):
            gap = ours.value(method, metric) - paper.value(method, metric)
            good.append((abs(gap) if both else -gap) <= limit)
            said.append(f"{head} {gap:+.2f} ({'±' if both else 'at least −'}{limit:g})")
        verdict = "reached" if all(good) else "not reached"
        lines.append(
            f"* {method}, points from the paper's and what was asked for: {', '.join(said)}: {verdict}."
        )
    if lines:
        yield from [*lines, ""]


def _balanced(folder: Path) -> Iterator[str]:
    """A check of the model and of the training, on data that the paper does not use."""
    yield "## A check of the model: balanced CIFAR-10\n"
    yield BALANCED_TEXT
    found = _ours(folder)
    yield from _provenance(folder, found)
    if found is None:
        return
    first, second = (found.value("singlebase", f"accuracy_{number}") for number in (1, 2))
    # The noise floor's accuracy is the mean of the first copy's and its twin's.
    twin = 2 * found.value("noise-floor", "accuracy") - first
    mean = statistics.mean((first, second, twin))
    verdict = "reached" if mean >= LEAST else "not reached"
    yield (
        f"Three copies: ACC {first:.2f}, {second:.2f} and {twin:.2f}, mean {mean:.2f}; at least {LEAST:g} was asked for: "
        f"{verdict}. Of the first two CON is {found.value('singlebase', 'consistency'):.2f}, "
        f"ACC-CON {found.value('singlebase', 'correct_consistency'):.2f}.\n"
    )


def _tables(paper: Found | None, ours: Found | None) -> Iterator[str]:
    sides: list[tuple[str, Found | None]] = [("paper", paper)] if paper is not None else []
    sides.append(("ours", ours))
    methods = list(METHODS)
    if ours is not None:
        methods += [one for one in ours.methods if one.startswith(("noise", "never"))]
    yield from _table(
        "Table 2", methods, list(COMBINATIONS), {**MAIN, "cost": "κ", "seconds": "s"}, sides
    )
    late = {"late_accuracy": "late class"}
    yield from _table("Table 4", methods, ["average"], {**FURTHER, **late}, sides)
    moves = {
        f"{name}_{pair}": f"{title} {pair.replace('_', '→')}"
        for pair in PAIRS
        for name, title in MOVES.items()
    }
    yield from _table("Table 5", methods, ["weighted_average"], moves, sides)


def _table(
    title: str,
    methods: Sequence[str],
    combinations: Sequence[str],
    metrics: dict[str, str],
    sides: Sequence[tuple[str, Found | None]],
) -> Iterator[str]:
    """One of the paper's tables: a line for each method, combination and side."""
    by = f" ({COMBINATIONS[combinations[0]]})" if len(combinations) == 1 else ""
    shown = {
        metric: head
        for metric, head in metrics.items()
        if metric == "cost"
        or any(
            found is not None and _cell(found, method, metric, how)
            for _, found in sides
            for method in methods
            for how in combinations
        )
    }
    yield f"**{title}**{by}, in percent:\n"
    yield f"| method | by | | {' | '.join(shown.values())} |"
    yield f"|---|---|---|{'---|' * len(shown)}"
    for method in methods:
        several = {
            how: tuple(
                _cell(found, method, metric, how)
                for _, found in sides
                if found is not None
                for metric in shown
            )
            for how in combinations
        }
        alike = len(set(several.values())) == 1 and len(combinations) > 1
        for how in combinations[:1] if alike else combinations:
            for side, found in sides:
                name = "all" if alike else COMBINATIONS[how]
                if found is None:
                    if how == combinations[0]:
                        yield f"| {method} | | {side} | {NOT_RUN} |{' |' * (len(shown) - 1)}"
                    continue
                cells = [_cell(found, method, metric, how) for metric in shown]
                if any(cells):
                    yield f"| {method} | {name} | {side} | {' | '.join(cells)} |"
    yield ""


def _cell(found: Found, method: str, metric: str, how: str) -> str:
    if metric in ("cost", "seconds"):
        row = found(method, "accuracy", how)
        if row is None:
            return ""
        value = row.cost if metric == "cost" else row.seconds
        return "" if value is None else f"{value:.1f}" if metric == "cost" else f"{value:.3g}"
    row = found(method, metric, how)
    if row is None:
        return ""
    spread = "" if row.spread is None else f" ± {100 * row.spread:.1f}"
    return f"{100 * row.value:.2f}{spread}"


def _figure_2(results: Path) -> Iterator[str]:
    yield "## Figure 2: m, β, N and the window, and the two ablations\n"
    yield FIGURE_2
    for folder in FIGURES:
        path = results / folder / "sweeps.csv"
        if not path.is_file():
            yield f"`{folder}`: {NOT_RUN}.\n"
            continue
        windows = _windows(results / folder)
        for name, points in _sweeps(path).items():
            over = next(iter(points))[0]
            yield f"**{name}**, `{folder}`, DynSnap-cyc by average{windows.get(name, '')}, in percent:\n"
            yield f"| {over} | κ | {' | '.join(MAIN.values())} |"
            yield f"|---|---|{'---|' * len(MAIN)}"
            for (_, point), rows in points.items():
                cost = next(iter(rows.values())).cost
                cells = [_percent(rows[metric]) for metric in MAIN]
                yield f"| {point} | {_kappa(cost)} | {' | '.join(cells)} |"
            yield ""
            yield _best(points)
    for study in VARIED:
        found = _ours(results / study.folder)
        if found is not None:
            yield f"**Ablations**, `{study.folder}`, by average, in percent:\n"
            yield f"| method | κ | {' | '.join(MAIN.values())} |"
            yield f"|---|---|{'---|' * len(MAIN)}"
            for method in found.methods:
                known = [row for metric in MAIN if (row := found(method, metric)) is not None]
                yield f"| {method} | {_kappa(known[0].cost)} | {' | '.join(map(_percent, known))} |"
            yield ""


def _windows(folder: Path) -> dict[str, str]:
    """By the name of a sweep, how long the windows of all of its points are, if alike."""
    plan = _plan(folder)
    if plan is None:
        return {}
    alike = {
        sweep.name: {method.recipe.window for _, method in sweep.points} for sweep in plan.sweeps
    }
    return {
        name: f", windows of {next(iter(found))} epochs"
        for name, found in alike.items()
        if len(found) == 1
    }


def _best(points: dict[tuple[str, str], dict[str, Row]]) -> str:
    """Which point has the highest ACC-CON."""
    metric = "correct_consistency"
    (_, best), rows = max(points.items(), key=lambda item: item[1][metric].value)
    return f"Highest ACC-CON at {best} ({_kappa(rows[metric].cost)}κ).\n"


def _kappa(cost: float) -> str:
    return f"{cost:.1f}" if cost >= 0.3 else f"{cost:.3g}"


def _sweeps(path: Path) -> dict[str, dict[tuple[str, str], dict[str, Row]]]:
    """Sweep, (setting, point) and metric to the row."""
    rows = read_table(path)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    found: dict[str, dict[tuple[str, str], dict[str, Row]]] = {}
    for line, row in zip(lines, rows, strict=True):
        points = found.setdefault(line["sweep"], {})
        points.setdefault((line["over"], line["point"]), {})[row.metric] = row
    return found


def _percent(row: Row) -> str:
    spread = "" if row.spread is None else f" ± {100 * row.spread:.1f}"
    return f"{100 * row.value:.2f}{spread}"


def _claims(ours: dict[Study, Found | None], results: Path) -> Iterator[str]:
    run = [(study, found) for study, found in ours.items() if found is not None]
    varied = [(study, found) for study in VARIED if (found := _ours(results / study.folder))]
    yield "## The paper's claims, one by one\n"
    yield CLAIMS
    for title, text, judge in (
        (
            "Ensembles of snapshots are more consistent than a single learner",
            "Holds where CON and ACC-CON are clearly more.",
            _beats_one,
        ),
        (
            "They come near bagging at a fraction of its cost",
            "Holds where ACC-CON is less than a point below, for fewer κ.",
            _near_bagging,
        ),
        ("The pruned ensemble beats the unpruned one at equal cost", PRUNING, _pruned),
        (
            "Correct-consistency follows accuracy",
            "Holds where the two correlate by at least .9 over the six methods.",
            _follows,
        ),
        (
            "MCDropout fails",
            "Holds where neither CON nor ACC-CON is clearly more than a single learner's.",
            _dropout_fails,
        ),
        (
            "Both the schedule and the fresh starts are needed",
            "Holds where ACC-CON is clearly more than without either.",
            _needed,
        ),
    ):
        yield f"### {title}\n\n{text}\n"
        verdicts: dict[bool, list[str]] = {True: [], False: []}
        for study, found in varied if judge is _needed else run:
            if (judged := judge(study, found, results)) is not None:
                line, holds = judged
                verdicts[holds].append(study.title)
                yield f"* {study.title}: {line}"
        words = {True: "Holds here", False: "Does not hold here"}
        said = [
            f"{words[holds]}: {'; '.join(found)}." for holds, found in verdicts.items() if found
        ]
        yield f"\n{' '.join(said) or 'No study here tells yet.'}\n"


Judged = tuple[str, bool] | None


def _beats_one(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("dynsnap-cyc", "singlebase"):
        return None
    line, words = _against(found, "dynsnap-cyc", "singlebase")
    return line, words["consistency"] == words["correct_consistency"] == "more"


def _near_bagging(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("dynsnap-cyc", "extbagging"):
        return None
    line, _ = _against(found, "dynsnap-cyc", "extbagging")
    mine, other = found("dynsnap-cyc", "correct_consistency"), found("extbagging", "accuracy")
    assert mine is not None and other is not None
    if other.cost <= mine.cost:  # so few were trained that this says nothing
        return None
    gap = found.value("dynsnap-cyc", "correct_consistency")
    gap -= found.value("extbagging", "correct_consistency")
    return line, gap > -1 and mine.cost < other.cost


def _dropout_fails(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("mcdropout", "singlebase"):
        return None
    line, words = _against(found, "mcdropout", "singlebase")
    return line, "more" not in (words["consistency"], words["correct_consistency"])


def _needed(study: Study, found: Found, results: Path) -> Judged:
    # Where windows are shorter than the paper's, they are so for what is compared.
    whole = next((one for one in ("dynsnap-cyc-short", "dynsnap-cyc") if found.has(one)), "")
    without = ("no-schedule", "no-randomness")
    if not whole or not found.has(*without):
        return None
    lines, words = zip(
        *(_against(found, whole, other) for other in without),
        strict=True,
    )
    holds = all(word["correct_consistency"] == "more" for word in words)
    return " ".join(lines).replace(". dynsnap", "; dynsnap"), holds


def _against(found: Found, one: str, other: str) -> tuple[str, dict[str, str]]:
    """How two methods differ, in points, and in words whether that is more than chance."""
    words, said = {}, []
    for metric, head in MAIN.items():
        gap = found.value(one, metric) - found.value(other, metric)
        words[metric] = _word(gap, max(found.doubt(one, metric), found.doubt(other, metric)))
        said.append(f"{head} {gap:+.2f} ({words[metric]})")
    costs = [row.cost for name in (one, other) if (row := found(name, "accuracy")) is not None]
    line = f"{one} ({costs[0]:.1f}κ) against {other} ({costs[1]:.1f}κ): {', '.join(said)}."
    return line, words


def _word(gap: float, doubt: float) -> str:
    return "no clear difference" if abs(gap) <= doubt else "more" if gap > 0 else "less"


def _pruned(study: Study, found: Found, results: Path) -> Judged:
    path = results / study.folder / "sweeps.csv"
    sweeps = _sweeps(path) if path.is_file() else {}
    if not {"unpruned", "members"} <= sweeps.keys():
        return None
    lines, words = [], []
    for (_, size), whole in sweeps["unpruned"].items():
        cost = whole["accuracy"].cost
        equal = {
            point: rows
            for (_, point), rows in sweeps["members"].items()
            if rows["accuracy"].cost == cost
        }
        if not equal:
            continue
        most, pruned = max(equal.items(), key=lambda item: int(item[0]))
        said = []
        for metric, head in MAIN.items():
            gap = 100 * (pruned[metric].value - whole[metric].value)
            spreads = [row.spread for row in (pruned[metric], whole[metric])]
            doubt = max(DOUBT if one is None else 200 * one for one in spreads)
            said.append(f"{head} {gap:+.2f} ({_word(gap, doubt)})")
            words.append(_word(gap, doubt))
        lines.append(f"{cost:.1f}κ, {most} pruned against all {size}: {', '.join(said)}")
    return ("; ".join(lines) + ".", "more" in words and "less" not in words) if lines else None


def _follows(study: Study, found: Found, results: Path) -> Judged:
    """How closely metrics go along with accuracy over methods that are retrained."""
    known = [method for method in METHODS if found.has(method)]
    if len(known) < 3:
        return None
    values = {metric: [found.value(method, metric) for method in known] for metric in MAIN}
    gaps = [
        accuracy - right
        for accuracy, right in zip(values["accuracy"], values["correct_consistency"], strict=True)
    ]
    right = statistics.correlation(values["accuracy"], values["correct_consistency"])
    alike = statistics.correlation(values["accuracy"], values["consistency"])
    line = (
        f"over {len(known)} methods by average the correlation with ACC is {right:.2f} for ACC-CON "
        f"and {alike:.2f} for CON; ACC-CON lies {min(gaps):.1f} to {max(gaps):.1f} points below "
        "ACC, the less the more consistent the method. Never retraining has the highest ACC-CON of "
        "its accuracy, so the metric also rewards doing nothing."
    )
    return line, right >= 0.9


INTRODUCTION = """\
<!-- Written by results/make_reproduction.py from results/: change that, and run it again. -->

# Reproduction

What the paper reports, and what this package measures with the same protocol. L. Wang et al., "Wisdom of the Ensemble: Improving
Consistency of Deep Learning Models" (NeurIPS 2020). `python results/make_reproduction.py` writes this page from the paper's tables
(`results/paper.csv`) and from results that were really run (`results/<study>/`); no result on it is typed by hand. `dynsnap compare` and
`dynsnap report` work on those folders.

ACC is the mean over three generations; CON (labelled alike), ACC-CON (alike and right) and all other metrics of pairs are the mean over
the three pairs; κ is the number of trainings from scratch that one generation takes. MV, WMV: majority and weighted majority vote; AVG,
WAVG: average and weighted average. The late class is the one that the last generation meets for the first time. The paper's SingleBase is
the mean of five runs (standard deviation .2 to .5), its other rows are single runs: expect ± 0.5 (ACC) and ± 1 (CON, ACC-CON) around them.
Its κ for ExtBagging is 20. Seconds are those of the training as it went: on the machine of 20 Newsgroups other work ran at the same time, so
that only κ compares methods there.
"""

BALANCED_TEXT = """\
All 50,000 training images, the same in both generations, and the paper's recipe. ResNet-20's own paper reports 91.3 % on the whole test
set; here it is the half that no round validates on.
"""

FIGURE_2 = """\
The paper draws these for CIFAR-100 with ResNet-56, windows of 20 epochs and β* unless it varies. On 20 Newsgroups a window has 4 epochs and
a training 40. On CIFAR-100 N and both ablations have windows of 5 epochs, all points alike. β changes the number of rounds, and so the cost: κ stands beside every point.
"""

CLAIMS = """\
Differences are in points, by average, and called clear when they exceed twice the larger standard deviation over replicates (half a point
where there is one replicate).
"""

PRUNING = """\
Pruning keeps the better snapshots of each round, and so takes more rounds for as many members. At equal cost the question is whether the
best of the snapshots do better than all of them. Holds where something is clearly more and nothing clearly less.
"""

REMARKS = """\
## Where the paper disagrees with itself

Found by reading its text, tables and the authors' scripts side by side. The reading in the right column is the one that its numbers need.

| in the paper | followed here |
|---|---|
| the late class of CIFAR-10 is called horse | frog: only that gives the sizes of 24,400, 30,500 and 32,500 |
| shares are of 6,000 images per class | of 5,000, the training images |
| the appendix leaves the late class out of Yahoo! Answers' validation and test sets | all ten classes are in both: only that gives 10,000 and 50,000 |
| Yahoo! Answers grows by .8, 1, 1 | by .8, .9, 1 |
| ExtBagging has 20 members | its files show 5 on CIFAR-10; the study here says how many it has |
| ExtBagging on CIFAR-100 and Yahoo! Answers: Table 2 and Table 5 imply accuracies 1.2 and 1.5 points apart | no target |
| Table 5 pairs some CIFAR-10 rows with the wrong generations | transitions are computed, and not held against it |
| β* divides by max − min | τ is the mean of the round's accuracies, capped at the best |
| the learning rate is printed as a recurrence | absolute multipliers per epoch, as the scripts have it |
| a cyclic snapshot is taken at the end of its cycle | at the best validation epoch of its window, as the scripts have it |
| the index of top-k consistency runs from 0 to k | from 1 to k, so that CCON-1 = CON |
| Pearson and cosine are listed for votes | for the two averages only: of one-hot rows they repeat CON |
| fastText averages padding in, and knows the test set's words | padding is masked, the vocabulary is of training texts |
| an ensemble's consistency is at least the mean of its members' | true of distances between score rows, false of CON and ACC-CON |
| the corollary's probability | not established, and never printed: the gain of a member is measured |
"""


if __name__ == "__main__":
    main()
