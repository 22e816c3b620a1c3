"""The paper's Figure 2, as tables: what each setting does, and what the ablations do."""

# ruff: noqa: E501  the page's own sentences are as long as those of other pages

import itertools
from collections.abc import Iterator
from pathlib import Path

from _reproduction.studies import (
    MAIN,
    NOT_RUN,
    VARIED,
    Points,
    clearly,
    ours_of,
    percent,
    plan_of,
    sweeps_of,
)
from dynsnap.report import kappa, rounds_of, said_windows
from dynsnap.study import Row, StudyPlan

_METRIC = "correct_consistency"
_MORE = {
    "members": "Do more members do better?",
    "snapshots": "Do more snapshots do better?",
    "window": "Do longer windows do better?",
}

FIGURES = (
    *("cifar10-paper", "cifar100-paper", "cifar100-sensitivity"),
    *("20news", "20news-sensitivity"),
)

ABOUT_FIGURE_2 = """\
The paper draws these for CIFAR-100 with ResNet-56, windows of 20 epochs and β* unless it varies. On 20 Newsgroups a window has 4 epochs and
a training 40. On CIFAR-100 N up to 20 has the paper's windows (`cifar100-paper`); N up to 40 and both ablations have
windows of 5 epochs, all points alike, and where the window varies a round has five (`cifar100-sensitivity`). There the training with N = 40
of generation 3 had its last 3 of 200 epochs on a CPU, so that of its 40 snapshots the last is from there. Not trained on CIFAR-100, and so
not shown: the paper's m = 40 and 80, its β below 0.4, and its windows with ten to a round and 20 members. β changes the number of rounds,
and so the cost: κ stands beside every point. Below each table stands whether more does better, and whether the paper's β* is the best of
the β that are there; what is clear is said with the claims.
"""


def figure_2(results: Path) -> Iterator[str]:
    """The section about the figure."""
    yield "## Figure 2: m, β, N and the window, and the two ablations\n"
    yield ABOUT_FIGURE_2
    for folder in FIGURES:
        sweeps = sweeps_of(results / folder)
        if not sweeps:
            yield f"`{folder}`: {NOT_RUN}.\n"
            continue
        plan = plan_of(results / folder)
        windows = said_windows(plan)
        for name, points in sweeps.items():
            over = next(iter(points))[0]
            yield f"**{name}**, `{folder}`, DynSnap-cyc by average{windows.get(name, '')}, in percent:\n"
            yield from _table(
                over,
                {point: [rows[metric] for metric in MAIN] for (_, point), rows in points.items()},
            )
            yield _judged(points)
            if over == "window" and _has_windows_of(next(iter(points))[1], plan):
                yield _at_equal_cost(points, sweeps["snapshots"])
    for study in VARIED:
        found = ours_of(results / study.folder)
        if found is not None:
            yield f"**Ablations**, `{study.folder}`, by average, in percent:\n"
            rounds = rounds_of(plan_of(results / study.folder))
            yield from _table(
                "method | epochs of a round",
                {
                    f"{method} | {rounds[method]}": list(found.rows(method).values())
                    for method in found.methods
                    if method in rounds
                },
            )


def _has_windows_of(length: str, plan: StudyPlan | None) -> bool:
    """Whether a study varies the number of windows of this length."""
    swept = [one for one in plan.sweeps if one.name == "snapshots"] if plan is not None else []
    return any(str(way.recipe.window) == length for one in swept for _, way in one.points)


def _at_equal_cost(windows: Points, snapshots: Points) -> str:
    """Longer windows against more of the shortest, where both cost the same."""
    shortest = next(iter(windows))[1]
    gaps = []
    for (_, window), rows in list(windows.items())[1:]:
        for (_, number), others in snapshots.items():
            mine, other = rows[_METRIC], others[_METRIC]
            if mine.cost == other.cost:
                gap = 100 * (mine.value - other.value)
                gaps.append(
                    f"windows of {window} epochs against {number} of {shortest} "
                    f"({kappa(mine.cost)}κ): ACC-CON {gap:+.2f} ({clearly(mine, other)})"
                )
    return f"At equal cost: {'; '.join(gaps)}.\n" if gaps else ""


def _table(about: str, lines: dict[str, list[Row]]) -> Iterator[str]:
    """A line for each point or method, with what it costs."""
    yield f"| {about} | κ | {' | '.join(MAIN.values())} |"
    yield f"|{'---|' * (about.count('|') + 2 + len(MAIN))}"
    for name, rows in lines.items():
        yield f"| {name} | {kappa(rows[0].cost)} | {' | '.join(map(percent, rows))} |"
    yield ""


def _judged(points: Points) -> str:
    """Whether the paper's choice of a setting holds, and which point has the highest ACC-CON."""
    found = {point: rows[_METRIC] for (_, point), rows in points.items()}
    best, row = max(found.items(), key=lambda item: item[1].value)
    highest = f"Highest ACC-CON at {best} ({kappa(row.cost)}κ).\n"
    over = next(iter(points))[0]
    if over == "beta" and "mean" in found:
        better = [point for point in found if clearly(found[point], found["mean"]) == "more"]
        said = f"No: more at {' and '.join(better)}" if better else "Yes, no other is clearly more"
        return f"Is the mean, β*, the best β? {said}. {highest}"
    if over not in _MORE or len(found) < 2:
        return highest
    first, *_, last = found.items()
    down = [
        f"from {before} to {after}"
        for (before, one), (after, other) in itertools.pairwise(found.items())
        if clearly(other, one) == "less"
    ]
    rise = clearly(last[1], first[1]) == "more"
    said = "Yes" if rise and not down else f"Not {down[0]}" if down else "Not clearly"
    gain = 100 * (last[1].value - first[1].value)
    return f"{_MORE[over]} {said}: ACC-CON {gain:+.2f} from {first[0]} to {last[0]}. {highest}"
