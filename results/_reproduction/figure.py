"""The paper's Figure 2 as tables: each setting, and the two ablations."""

# ruff: noqa: E501  lines of the page are longer than lines of code

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from _reproduction.runs import Gap, Seed, difference, seeds_of, swept
from _reproduction.studies import (
    MAIN,
    NOT_RUN,
    VARIED,
    Points,
    folded,
    ours_of,
    percent,
    sweeps_of,
)
from _seeds import plan_of
from dynsnap.report import kappa, rounds_of, said_windows
from dynsnap.study import Row, StudyPlan

_METRIC = "correct_consistency"
_MORE = ("members", "snapshots", "window")  # for which the paper claims that more is better

FIGURES = (
    *("cifar10-paper", "cifar100-paper", "cifar100-sensitivity"),
    *("20news", "20news-sensitivity"),
)

ABOUT_FIGURE_2 = """\
The paper draws these for CIFAR-100 with ResNet-56, windows of 20 epochs and β* unless it varies. κ is shown at every point, because β changes
the number of rounds. The lists state up to which point more is clearly better in ACC-CON, step by step, and whether any β is clearly better than β*.

* On 20 Newsgroups a window has 4 epochs and a training 40. `20news-sensitivity` has three of its ten replicates in common with `20news`, so values of one method differ between the two.
* On CIFAR-100, N up to 20 uses the paper's windows (`cifar100-paper`). N up to 40 and both ablations use windows of 5 epochs, and the sweep over
  the window has five windows in a round (`cifar100-sensitivity`).
* The training with N = 40 of generation 3 ran its last 3 of 200 epochs on a CPU, so its last snapshot comes from there.
* Not trained on CIFAR-100: the paper's m = 40 and 80, its β below 0.4, and its windows with ten to a round and 20 members.
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
        seeds = seeds_of(results / folder)
        yield f"`{folder}`:\n"
        for name, points in sweeps.items():
            yield f"* {name}{windows.get(name, '')}: {_judged(seeds, name, points)}"
            if _over(points) == "window" and _has_windows_of(next(iter(points))[1], plan):
                yield from _at_equal_cost(seeds, name, points, sweeps["snapshots"])
        yield ""
        yield from folded(f"Tables of {folder}: DynSnap-cyc by average, in percent")
        for name, points in sweeps.items():
            yield f"**{name}**{windows.get(name, '')}:\n"
            yield from _table(
                _over(points),
                {point: [rows[metric] for metric in MAIN] for (_, point), rows in points.items()},
            )
        yield "</details>\n"
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


def _over(points: Points) -> str:
    """The setting that a sweep varies."""
    return next(iter(points))[0]


def _has_windows_of(length: str, plan: StudyPlan | None) -> bool:
    """Whether a study varies the number of windows of this length."""
    swept = [one for one in plan.sweeps if one.name == "snapshots"] if plan is not None else []
    return any(str(way.recipe.window) == length for one in swept for _, way in one.points)


def _at_equal_cost(
    seeds: Sequence[Seed], name: str, windows: Points, snapshots: Points
) -> Iterator[str]:
    """Longer windows against more of the shortest, where both cost the same."""
    shortest = next(iter(windows))[1]
    for (_, window), rows in list(windows.items())[1:]:
        for (_, number), others in snapshots.items():
            mine, other = rows[_METRIC], others[_METRIC]
            if mine.cost == other.cost:
                gap = difference(seeds, swept(name, window), swept("snapshots", number), _METRIC)
                yield (
                    f"* window {window} against {number} windows of {shortest} at equal cost "
                    f"({kappa(mine.cost)}κ): ACC-CON {gap}"
                )


def _table(about: str, lines: dict[str, list[Row]]) -> Iterator[str]:
    """A line for each point or method, with what it costs."""
    yield f"| {about} | κ | {' | '.join(MAIN.values())} |"
    yield f"|{'---|' * (about.count('|') + 2 + len(MAIN))}"
    for name, rows in lines.items():
        yield f"| {name} | {kappa(rows[0].cost)} | {' | '.join(map(percent, rows))} |"
    yield ""


def _judged(seeds: Sequence[Seed], name: str, points: Points) -> str:
    """Whether the paper's choice of a setting holds, and which point has the highest ACC-CON."""
    found = {point: rows[_METRIC] for (_, point), rows in points.items()}

    def gap(one: str, other: str) -> Gap:
        minus = difference(seeds, swept(name, one), swept(name, other), _METRIC)
        assert minus is not None  # points of one sweep are of the same seeds
        return minus

    highest = _highest(points)
    if _over(points) == "beta" and "mean" in found:
        better = [point for point in found if gap(point, "mean").word == "higher"]
        return f"β clearly better than β* (mean): {', '.join(better) or 'none'}; {highest}"
    if _over(points) not in _MORE or len(found) < 2:
        return highest
    steps = [(*pair, gap(*reversed(pair))) for pair in itertools.pairwise(found)]
    told = ", ".join(
        f"{minus.value:+.2f}{f' ({minus.bounds})' if minus.over else ''} from {before} to {after}"
        for before, after, minus in steps
    )
    n = min(minus.n for *_, minus in steps)
    return f"more is better: {_how_far(steps)}; ACC-CON {told} (n = {n}); {highest}"


def _how_far(steps: Sequence[tuple[str, str, Gap]]) -> str:
    """Up to which point more is clearly better, step by step."""
    up, down = (
        [(before, after) for before, after, minus in steps if minus.word == word]
        for word in ("higher", "lower")
    )
    if down:
        return f"no (clearly worse from {' to '.join(down[0])})"
    if not up:
        return "not clearly"
    if any(minus.n == 1 for *_, minus in steps):
        return "open, one replicate"
    return "yes" if up[-1] == steps[-1][:2] else f"yes up to {up[-1][1]}, and not clearly beyond"


def _highest(points: Points) -> str:
    """Where ACC-CON is highest, and CON if that is elsewhere."""
    best = {
        metric: max(points, key=lambda point, metric=metric: points[point][metric].value)
        for metric in (_METRIC, "consistency")
    }
    said = [
        f"highest {MAIN[metric]} at {best[metric][1]} ({kappa(points[best[metric]][metric].cost)}κ)"
        for metric in best
    ]
    return ", ".join(said if len(set(best.values())) > 1 else said[:1])
