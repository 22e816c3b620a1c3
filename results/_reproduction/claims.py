"""The paper's claims, held against every study that can tell."""

# ruff: noqa: E501  the page's own sentences are as long as those of other pages

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from _reproduction.studies import (
    MAIN,
    METHODS,
    VARIED,
    Found,
    Study,
    clearly,
    ours_of,
    plan_of,
    sweeps_of,
)
from dynsnap.report import kappa
from dynsnap.study import Row, StudyPlan

ABOUT_CLAIMS = """\
Differences are in points, by average, and called clear when they exceed twice the larger standard deviation over replicates (where there is
one replicate: half a point of ACC, one point of CON and ACC-CON).
"""

ABOUT_PRUNING = """\
Pruning keeps the better snapshots of each round, and so takes more rounds for as many members. At equal cost the question is whether the
best of the snapshots do better than all of them. Holds where something is clearly more and nothing clearly less.
"""


def claims(ours: dict[Study, Found | None], results: Path) -> Iterator[str]:
    """The section about the claims."""
    run = [(study, found) for study, found in ours.items() if found is not None]
    varied = [(study, found) for study in VARIED if (found := ours_of(results / study.folder))]
    yield "## The paper's claims, one by one\n"
    yield ABOUT_CLAIMS
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
        ("The pruned ensemble beats the unpruned one at equal cost", ABOUT_PRUNING, _pruned),
        (
            "Rounds that start afresh beat one long training",
            "Holds where, at equal cost and without pruning, ACC-CON is clearly more than Snapshot's.",
            _fresh_starts,
        ),
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
        verdicts: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for study, found in varied if judge is _needed else run:
            if (judged := judge(study, found, results)) is not None:
                line, holds = judged
                verdicts[holds].append(study.title)
                yield f"* {study.title}: {line}"
        words = {True: "Holds here", False: "Does not hold here", None: "Not tested"}
        said = [
            f"{words[holds]}: {'; '.join(found)}." for holds, found in verdicts.items() if found
        ]
        yield f"\n{' '.join(said) or 'No study here tells yet.'}\n"


Judged = tuple[str, bool | None] | None
"""What was found, and whether the claim holds, where that can be told."""


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
    if other.cost <= mine.cost:
        return (
            f"{line} With so few members bagging is no dearer: that tells nothing of the claim.",
            None,
        )
    gap = found.value("dynsnap-cyc", "correct_consistency")
    gap -= found.value("extbagging", "correct_consistency")
    return line, gap > -1


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
    plan = plan_of(results / study.folder)
    lines, words = zip(
        *(_against(found, whole, other) for other in without),
        strict=True,
    )
    holds = all(word["correct_consistency"] == "more" for word in words)
    return " ".join(lines).replace(". dynsnap", "; dynsnap") + _shorter(plan, whole), holds


def _shorter(plan: StudyPlan | None, whole: str) -> str:
    """Where windows are shorter than the study's own, that they are."""
    if plan is None:
        return ""
    here, usual = (plan.method(name).recipe.window for name in (whole, "dynsnap-cyc"))
    if here == usual:
        return ""
    return f" Windows have {here} epochs here: with {usual}, fresh starts are judged above."


def _against(found: Found, one: str, other: str) -> tuple[str, dict[str, str]]:
    """How two methods differ, in points, and in words whether that is more than chance."""
    mine, others = (found.rows(name) for name in (one, other))
    said, words = _gaps(mine, others)
    costs = [rows["accuracy"].cost for rows in (mine, others)]
    return f"{one} ({kappa(costs[0])}κ) against {other} ({kappa(costs[1])}κ): {said}.", words


def _pruned(study: Study, found: Found, results: Path) -> Judged:
    sweeps = sweeps_of(results / study.folder)
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
        said, found_words = _gaps(pruned, whole)
        words += found_words.values()
        lines.append(f"{kappa(cost)}κ, {most} pruned against all {size}: {said}")
    return ("; ".join(lines) + ".", "more" in words and "less" not in words) if lines else None


def _fresh_starts(study: Study, found: Found, results: Path) -> Judged:
    """Rounds as they are, against one training that is as long as all of them."""
    if not found.has("snapshot"):
        return None
    long = found.rows("snapshot")
    cost = long["accuracy"].cost
    for (_, size), rounds in sweeps_of(results / study.folder).get("unpruned", {}).items():
        if rounds["accuracy"].cost == cost:
            said, words = _gaps(rounds, long)
            line = f"{kappa(cost)}κ, {size} snapshots of rounds against as many of one training"
            return f"{line}: {said}.", words["correct_consistency"] == "more"
    return None


def _gaps(mine: Mapping[str, Row], other: Mapping[str, Row]) -> tuple[str, dict[str, str]]:
    """How two sets of rows differ, in points, and in words whether that is more than chance."""
    words, said = {}, []
    for metric, head in MAIN.items():
        gap = 100 * (mine[metric].value - other[metric].value)
        words[metric] = clearly(mine[metric], other[metric])
        said.append(f"{head} {gap:+.2f} ({words[metric]})")
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
        f"over {len(known)} methods by average the correlation with ACC is {right:.2f} for ACC-CON "
        f"and {alike:.2f} for CON; ACC-CON lies {min(gaps):.1f} to {max(gaps):.1f} points below "
        "ACC, the less the more consistent the method. Never retraining has the highest ACC-CON of "
        "its accuracy, so the metric also rewards doing nothing."
    )
    return line, right >= 0.9
