"""The paper's claims, tested on every study that allows it."""

# ruff: noqa: E501  lines of the page are longer than lines of code

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from _measured import points
from _reproduction.runs import Gap, Seed, Side, difference, gap, method, seeds_of, swept
from _reproduction.studies import (
    BY_INPUTS,
    MAIN,
    METHODS,
    NOT_RUN,
    UNCLEAR,
    VARIED,
    Found,
    Study,
    by_sweep,
    clear_word,
    doubt_of,
    ours_of,
    sweeps_of,
    worded,
)
from _seeds import Part, folders, plan_of, replicates
from dynsnap.report import kappa
from dynsnap.study import Row, StudyPlan, read_sweeps

ABOUT_CLAIMS = """\
All methods combine members by average. Differences are in points. Methods are compared by the paired intervals of the page
[Evidence](evidence.md#do-the-intervals-hold), over inputs and the n replicates that both have; a difference is clear if its interval leaves out 0. With n = 1 the
interval covers inputs alone, so that the difference must also exceed one point: twice what such differences vary by from replicate to replicate on CIFAR-10. A smaller one
is "{by_inputs}" (see [how to read the tables](#how-to-read-the-tables)). Of sweeps
no labels are stored. There a difference is clear by Student's t, for these test inputs: over differences of runs where each run has a table of its own, over replicates of both sides
where one table has the mean of all (20 Newsgroups), or above one point if there is one run. What one replicate alone speaks for is open.
"""


ALONE = "One replicate speaks for it, so this is open."
NEAR = 0.01  # what is near bagging, or no gain over a single learner, as a fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedClaim:
    """A claim of the paper, with the studies in which it holds, does not, or was not tested."""

    title: str
    criterion: str
    lines: tuple[str, ...]
    verdicts: dict[bool | None, tuple[str, ...]]


def tested(ours: dict[Study, Found | None], results: Path) -> list[TestedClaim]:
    """Every claim, tested on the studies that were run."""
    run = [(study, found) for study, found in ours.items() if found is not None]
    varied = [(study, found) for study in VARIED if (found := ours_of(results / study.folder))]
    claims = []
    for title, criterion, judge in _CLAIMS:
        lines = []
        verdicts: dict[bool | None, tuple[str, ...]] = {True: (), False: (), None: ()}
        for study, found in varied if judge is _needed else run:
            if study.again and judge is not _near_bagging:
                continue  # rounds of another section, which would count twice
            if (judged := judge(study, found, results)) is not None:
                line, holds, n = judged
                if holds and n <= 1:  # another seed may change it
                    line, holds = f"{line} {ALONE}", None
                verdicts[holds] += (f"{study.title} ({n})",)
                lines.append(f"* {study.title}: {line}")
        claims.append(
            TestedClaim(title=title, criterion=criterion, lines=tuple(lines), verdicts=verdicts)
        )
    return claims


def overview(claims: Sequence[TestedClaim]) -> Iterator[str]:
    """How many claims hold, and the verdicts in one table."""
    everywhere, somewhere, nowhere, untested = 0, 0, 0, 0
    for claim in claims:
        holds, fails = (bool(claim.verdicts[held]) for held in (True, False))
        everywhere += holds and not fails
        somewhere += holds and fails
        nowhere += fails and not holds
        untested += not (holds or fails)
    yield (
        f"Of {len(claims)} claims of the paper, {everywhere} hold in every study that decides them. In some studies: {somewhere}; in none: {nowhere}; "
        f"not tested, or open: {untested}. The differences are [below](#the-papers-claims-one-by-one). In brackets: the fewest replicates of what is compared. "
        "Where that is 1, what these networks speak for is open, since another seed may change it, and what they speak against is told.\n"
    )
    yield "| claim of the paper | holds | does not hold | not tested, or open |"
    yield "|---|---|---|---|"
    for claim in claims:
        cells = ["; ".join(claim.verdicts[holds]) for holds in (True, False, None)]
        yield f"| {claim.title} | {' | '.join(cells)} |"
    yield ""


def details(claims: Sequence[TestedClaim]) -> Iterator[str]:
    """The section with the differences behind the verdicts."""
    yield "## The paper's claims, one by one\n"
    yield ABOUT_CLAIMS.format(by_inputs=BY_INPUTS)
    for claim in claims:
        yield f"### {claim.title}\n\n{claim.criterion}\n"
        yield from claim.lines or [f"{NOT_RUN}."]
        yield ""


Judged = tuple[str, bool | None, int] | None
"""The differences, whether the claim holds, and of how many replicates; None where none can tell."""


def _beats_one(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("dynsnap-cyc", "singlebase"):
        return None
    line, words, n = _against(found, "dynsnap-cyc", "singlebase")
    return line, words["consistency"] == words["correct_consistency"] == "higher", n


def _near_bagging(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("dynsnap-cyc", "extbagging"):
        return None
    line, _, n = _against(found, "dynsnap-cyc", "extbagging")
    minus = found.difference("dynsnap-cyc", "extbagging", "correct_consistency")
    mine, other = found("dynsnap-cyc", "correct_consistency"), found("extbagging", "accuracy")
    assert mine is not None and other is not None
    if other.cost <= mine.cost:
        return (
            f"{line} With so few members bagging costs no more, so this does not test the claim.",
            None,
            n,
        )
    if minus is None or minus.low < -NEAR < minus.high:
        return f"{line} It may be more than a point below, or less, so this is open.", None, n
    return line, minus.low >= -NEAR, n


def _dropout_fails(study: Study, found: Found, results: Path) -> Judged:
    if not found.has("mcdropout", "singlebase"):
        return None
    line, words, n = _against(found, "mcdropout", "singlebase")
    metrics = ("consistency", "correct_consistency")
    if "higher" in [words[metric] for metric in metrics]:
        return line, False, n
    gains = [found.difference("mcdropout", "singlebase", metric) for metric in metrics]
    if not all(minus is not None and minus.high <= NEAR for minus in gains):
        return f"{line} It may be more than a point higher, so this is open.", None, n
    return line, True, n


def _needed(study: Study, found: Found, results: Path) -> Judged:
    # Where windows are shorter than the paper's, they are so for what is compared.
    whole = next((one for one in ("dynsnap-cyc-short", "dynsnap-cyc") if found.has(one)), "")
    without = ("no-schedule", "no-randomness")
    if not whole or not found.has(*without):
        return None
    note = _shorter(plan_of(results / study.folder), whole)
    lines, verdicts, often = [], [], []
    for other in without:
        line, words, n = _against(found, whole, other)
        often.append(n)
        costs = [found.rows(name)["accuracy"].cost for name in (whole, other)]
        lines.append(line)
        verdicts.append(_at_that_cost(words["correct_consistency"], *costs))
    said = " ".join(lines)
    if note:
        return said + note, None, min(often)
    if None in verdicts and False not in verdicts:
        unbeaten = "What costs more was not beaten, so this does not test the claim."
        return f"{said} {unbeaten}", None, min(often)
    return said, all(verdicts), min(often)


def _at_that_cost(word: str, own: float, other: float) -> bool | None:
    """Whether a method is better, where its cost allows to say so; None where it does not."""
    if word == "higher":
        return True if own <= other else None
    return False if own >= other else None


def _shorter(plan: StudyPlan | None, whole: str) -> str:
    """A note if windows are shorter than the study's own."""
    if plan is None:
        return ""
    here, usual = (plan.method(name).recipe.window for name in (whole, "dynsnap-cyc"))
    if here == usual:
        return ""
    return (
        f" Windows have {here} epochs here and the paper's {usual}, so this does not test the claim. "
        f"The claim on fresh starts above uses {usual}."
    )


def _against(found: Found, one: str, other: str) -> tuple[str, dict[str, str], int]:
    """How two methods differ, in points, whether each difference is clear, and their replicates."""
    mine, others = (found.rows(name) for name in (one, other))
    costs = [rows["accuracy"].cost for rows in (mine, others)]
    paired = {metric: found.difference(one, other, metric) for metric in MAIN}
    known = {metric: minus for metric, minus in paired.items() if minus is not None}
    if known:
        words = {metric: clear_word(minus) for metric, minus in known.items()}
        cells = [f"{MAIN[name]} {points(minus, 2)}, {words[name]}" for name, minus in known.items()]
        n = known["accuracy"].replicates
        said = f"n = {n}, {'; '.join(cells)}"
    else:
        (said, words), n = _gaps(mine, others), 1
    return f"{one} ({kappa(costs[0])}κ) against {other} ({kappa(costs[1])}κ): {said}.", words, n


def _pruned(study: Study, found: Found, results: Path) -> Judged:
    """Algorithm 1's ensemble, whose rounds have hardly more survivors than members, and all of them.

    A smaller ensemble cuts off survivors that its rounds were paid for, so it is compared at equal
    size only, with both costs.
    """
    folder = results / study.folder
    sweeps = sweeps_of(folder)
    if not {"unpruned", "members"} <= sweeps.keys():
        return None
    pruned = {int(point): rows for (_, point), rows in sweeps["members"].items()}
    whole = {int(point): rows for (_, point), rows in sweeps["unpruned"].items()}
    most = max(pruned)
    cost = pruned[most]["accuracy"].cost
    equal = {size: rows for size, rows in whole.items() if rows["accuracy"].cost == cost}
    if not equal:
        return None
    size = max(equal)
    seeds = seeds_of(folder)
    said, words, n = _of_runs(seeds, swept("members", most), swept("unpruned", size))
    lines = [f"at equal cost ({kappa(cost)}κ), {most} pruned against all {size}: {said}"]
    lines += _all_survivors(folder)
    for size in sorted(set(pruned) & set(whole)):
        costs = [kappa(one[size]["accuracy"].cost) for one in (pruned, whole)]
        gaps, *_ = _of_runs(seeds, swept("members", size), swept("unpruned", size))
        lines.append(
            f"at equal size, {size} pruned ({costs[0]}κ) against {size} ({costs[1]}κ): {gaps}"
        )
    if set(words.values()) == {UNCLEAR}:
        return "; ".join(lines) + ". At equal cost nothing is clear, so this is open.", None, n
    return "; ".join(lines) + ".", "lower" not in words.values(), n


def _of_runs(seeds: Sequence[Seed], mine: Side, other: Side) -> tuple[str, dict[str, str], int]:
    """How two ensembles differ, in points, run by run, whether it is clear, and over how many."""
    found = {metric: difference(seeds, mine, other, metric) for metric in MAIN}
    known = {metric: minus for metric, minus in found.items() if minus is not None}
    said = _told(known)
    words = {metric: minus.word for metric, minus in known.items()}
    return said, words, max((minus.n for minus in known.values()), default=0)


def _told(gaps: Mapping[str, Gap]) -> str:
    return ", ".join(f"{MAIN[metric]} {minus}" for metric, minus in gaps.items())


def _all_survivors(folder: Path) -> Iterator[str]:
    """All survivors of all rounds against all snapshots of these, where sizes were measured.

    Of fewer rounds sizes are the mean over all choices of them, and sweeps are of the first ones:
    other rounds, so nothing to hold against each other.
    """
    seeds = folders(folder)
    found: dict[tuple[int, int], list[tuple[str, float, Mapping[str, tuple[Part, Part]]]]] = {}
    for seed in (one for one in seeds if (one / "size.json").is_file()):
        size = json.loads((seed / "size.json").read_text(encoding="utf-8"))
        if (size["method"], size["combination"]) != ("dynsnap-cyc", "average"):
            continue
        rounds = size["rounds"]
        last = {
            metric: next(
                (p for p in size["curves"][metric]["by_rounds"] if p["rounds"] == rounds), None
            )
            for metric in MAIN
        }
        # Of the same rounds, not of all seeds.
        whole = by_sweep(read_sweeps(seed / "sweeps.csv")).get("unpruned", {})
        for (_, many), rows in whole.items():
            if None in last.values() or round(rows["accuracy"].cost) != rounds:
                continue
            sides = {
                metric: (
                    Part(replace(rows[metric], value=point["value"]), size["replicates"]),
                    Part(rows[metric], size["replicates"]),
                )
                for metric, point in last.items()
            }
            kept = (seed.name, last["accuracy"]["members"], sides)
            found.setdefault((rounds, int(many)), []).append(kept)
    for (rounds, many), runs in found.items():
        names = ", ".join(f"`{name}`" for name, *_ in runs)
        alone = "" if len(runs) == len(seeds) else f", {names} alone"
        told = _told({metric: gap([sides[metric] for *_, sides in runs]) for metric in MAIN})
        members = statistics.mean(members for _, members, _ in runs)
        yield (
            f"all {members:.1f} survivors of {rounds} rounds ({rounds:.1f}κ{alone}) against all {many} snapshots of the same: {told}"
        )


def _fresh_starts(study: Study, found: Found, results: Path) -> Judged:
    """Rounds as they are, against one training that is as long as all of them."""
    if not found.has("snapshot"):
        return None
    folder = results / study.folder
    cost = found.rows("snapshot")["accuracy"].cost
    for (_, size), rounds in sweeps_of(folder).get("unpruned", {}).items():
        if rounds["accuracy"].cost == cost:
            seeds = seeds_of(folder)
            said, words, n = _of_runs(seeds, swept("unpruned", size), method("snapshot"))
            line = f"{kappa(cost)}κ, {size} snapshots of rounds against as many of one training"
            return f"{line}: {said}.", words["correct_consistency"] == "higher", n
    return None


def _gaps(mine: Mapping[str, Row], other: Mapping[str, Row]) -> tuple[str, dict[str, str]]:
    """How two sets of rows of one run differ, in points, and whether each difference is clear."""
    words, said = {}, []
    for metric, head in MAIN.items():
        value = 100 * (mine[metric].value - other[metric].value)
        words[metric] = worded(value, doubt_of(mine[metric], other[metric], 1))
        said.append(f"{head} {value:+.2f} ({words[metric]})")
    return ", ".join(said), words


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
        f"over {len(known)} methods the correlation with ACC is {right:.2f} for ACC-CON and {alike:.2f} for CON. "
        f"ACC-CON is {min(gaps):.1f} to {max(gaps):.1f} points below ACC."
    )
    often = replicates(results / study.folder)
    return line, right >= 0.9, min(often[method] for method in known)


_CLAIMS = (
    (
        "Ensembles of snapshots are more consistent than a single learner",
        "Holds if CON and ACC-CON are clearly higher.",
        _beats_one,
    ),
    (
        "They come close to bagging at a fraction of its cost",
        "Holds if ACC-CON is less than a point below bagging's, by the whole interval, at lower κ.",
        _near_bagging,
    ),
    (
        "The pruned ensemble beats the unpruned one at equal cost",
        "Pruning keeps the better snapshots of each round, so the same number of members needs more rounds. Holds if, at equal "
        "cost, at least one metric of Algorithm 1's ensemble is clearly higher and none is clearly lower; open if none is either. At "
        "equal size the pruned ensemble costs more.",
        _pruned,
    ),
    (
        "Rounds that start afresh beat one long training",
        "Holds if ACC-CON is clearly higher than Snapshot's, at equal cost and without pruning.",
        _fresh_starts,
    ),
    (
        "Correct consistency follows accuracy",
        "Holds if the two correlate by at least .9 over the six methods. The gap is smaller for more consistent methods. Never "
        "retraining has the highest ACC-CON at its accuracy, so this metric also rewards doing nothing.",
        _follows,
    ),
    (
        "MCDropout fails",
        "Holds if neither CON nor ACC-CON is clearly higher than a single learner's; open if an interval includes a gain of more than a point.",
        _dropout_fails,
    ),
    (
        "Both the schedule and the fresh starts are needed",
        "Holds if ACC-CON is clearly higher than without either, at no higher cost and with the paper's windows.",
        _needed,
    ),
)
