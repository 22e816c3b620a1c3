"""Each study: how it was run, its distance from the paper, and the paper's tables."""

# ruff: noqa: E501  lines of the page are longer than lines of code

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from _reproduction.studies import (
    MAIN,
    METHODS,
    NOT_RUN,
    Found,
    Study,
    folded,
    ours_of,
    percent,
)
from _seeds import folders, plan_of, replicates
from dynsnap.report import kappa, said_replicates
from dynsnap.study import missing_rounds

COMBINATIONS = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}
FURTHER = {
    "top_2_consistency": "CCON-2",
    "top_2_accuracy": "CACC-2",
    "pearson": "Pearson",
    "cosine": "cosine",
}
MOVES = {"gained": "gained", "lost": "lost", "composite": "Com"}
PAIRS = ("1_2", "2_3", "1_3")
BALANCED, LEAST = "cifar10-balanced", 90.5  # percent that the model has to reach there

ABOUT_BALANCED = """\
All 50,000 training images, the same in both generations, with the paper's recipe. ResNet-20's own paper reports 91.3 % on the whole test
set. Here it is the half that no round validates on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """How far a method is from the paper, in points, and how far it may be."""

    method: str
    gaps: dict[str, float]
    limits: dict[str, float]
    reached: bool
    why: str

    @property
    def either_side(self) -> bool:
        """Whether a value above the paper's can miss too."""
        return self.method == "singlebase"


def landings(study: Study, paper: Found | None, ours: Found | None) -> list[Landing]:
    """The methods that have to come close to the paper."""
    if paper is None or ours is None:
        return []
    asked = {"singlebase": study.singlebase, "dynsnap-cyc": study.dynsnap_cyc}
    return [
        _landing(method, limits, paper, ours)
        for method, limits in asked.items()
        if limits is not None and ours.has(method)
    ]


def overview(found: dict[Study, list[Landing]]) -> Iterator[str]:
    """The distance from the paper in one table: points, with the limit in brackets."""
    yield f"| study | method | {' | '.join(MAIN.values())} | within the limits |"
    yield f"|---|---|{'---|' * (len(MAIN) + 1)}"
    for study, landed in found.items():
        for one in landed:
            sign = "±" if one.either_side else "at least −"
            cells = [f"{gap:+.2f} ({sign}{one.limits[head]:g})" for head, gap in one.gaps.items()]
            verdict = "yes" if one.reached else "no"
            yield f"| {study.title} | {one.method} | {' | '.join(cells)} | {verdict} |"
    yield ""


def study_part(
    study: Study, folder: Path, paper: Found | None, ours: Found | None
) -> Iterator[str]:
    """The section about one study of the paper, or of our own."""
    yield f"## {study.title}\n"
    if study.unlike:
        yield study.unlike
    yield from _provenance(folder, ours)
    notes = [f"* {one.method}: {one.why}" for one in landings(study, paper, ours) if one.why]
    yield from [*notes, ""] if notes else []
    if paper is not None or ours is not None:
        yield from folded("Tables 2, 4 and 5")
        yield from _tables(paper, ours)
        yield "</details>\n"


def balanced(results: Path) -> Iterator[str]:
    """A check of the model and of the training, on data that the paper does not use."""
    yield "## A check of the model: balanced CIFAR-10\n"
    yield ABOUT_BALANCED
    folder = results / BALANCED
    found = ours_of(folder)
    yield from _provenance(folder, found)
    if found is None:
        return
    first, second = (found.value("singlebase", f"accuracy_{number}") for number in (1, 2))
    # The noise floor's accuracy is the mean of the first copy's and its twin's.
    twin = 2 * found.value("noise-floor", "accuracy") - first
    mean = statistics.mean((first, second, twin))
    yield "| | ACC |\n|---|---|"
    copies = {"first copy": first, "second copy": second, "twin of the first": twin, "mean": mean}
    for name, value in copies.items():
        yield f"| {name} | {value:.2f} |"
    verdict = "reached" if mean >= LEAST else "not reached"
    yield (
        f"\nTarget: a mean of at least {LEAST:g}, {verdict}. First and second copy: "
        f"CON {found.value('singlebase', 'consistency'):.2f}, "
        f"ACC-CON {found.value('singlebase', 'correct_consistency'):.2f}.\n"
    )


def _provenance(folder: Path, found: Found | None) -> Iterator[str]:
    if found is None:
        yield f"Ours: {NOT_RUN}. Run `dynsnap run {folder.name}` with the data.\n"
        return
    seeds = [
        json.loads((one / "about.json").read_text(encoding="utf-8")) for one in folders(folder)
    ]
    about = seeds[0]
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
    usual = sum(one["replicates"] for one in seeds)
    often = {name: number for name, number in replicates(folder).items() if name in METHODS}
    missing = sum(one.get("rounds_missing") or 0 for one in seeds)
    more = f", {missing_rounds(missing, more=True)}" if missing else ""
    names = ", ".join(f"`results/{one.name}`" for one in folders(folder))
    yield (
        f"Ours: {names}, n = {about['test_inputs']:,} test inputs, "
        f"{said_replicates(usual, often)}, {sum(one['rounds'] for one in seeds)} rounds of training{more}, "
        f"{sum(one['training_seconds'] for one in seeds):,.0f} s in all, dynsnap {about['dynsnap']}, {machine}. "
        f"± is the standard deviation over replicates.{_sizes(folder, found)}\n"
    )


def _sizes(folder: Path, found: Found) -> str:
    """The number of members of ensembles whose members need a training each, or nearly."""
    plan, said = plan_of(folder), []
    for method in () if plan is None else plan.methods:
        row = found(method.name, "accuracy")
        if row is None or method.name not in ("extbagging", "dynsnap-step"):
            continue
        size: int | str = method.plan.size
        if size == "auto":  # what pruning leaves
            size = _members(found, method.name) or "as many as pruning leaves"
        said.append(f"{method.name} has {size} members of {row.cost:.3g} rounds")
    return f" Sizes: {', '.join(said)}." if said else ""


def _members(found: Found, method: str) -> str:
    """The number of members in each generation, where the table has it."""
    counts = [found(method, f"members_{generation}") for generation in (1, 2, 3)]
    known = [f"{row.value:.3g}" for row in counts if row is not None]
    return " and ".join([", ".join(known[:-1]), known[-1]]) if len(known) > 1 else "".join(known)


def _fewer_rounds(method: str, paper: Found, ours: Found) -> str:
    """A note where the paper's ensemble has more rounds; what these would add was not measured."""
    own, theirs = ours(method, "accuracy"), paper(method, "accuracy")
    if own is None or theirs is None or own.cost + 0.5 > theirs.cost:
        return ""
    kept = ours(method, "members_3")
    full = (
        ""
        if kept is None
        else f": it stops at {kept.value:g} members, which fewer rounds left here"
    )
    return (
        f" The paper's ensemble has {theirs.cost:g}κ, ours {own.cost:g}κ{full}. What another round would add was "
        "not measured; an extrapolation from three rounds has no interval to trust."
    )


def _landing(method: str, limits: Sequence[float], paper: Found, ours: Found) -> Landing:
    gaps, good, why = {}, [], ""
    for (metric, head), limit in zip(MAIN.items(), limits, strict=True):
        gap = ours.value(method, metric) - paper.value(method, metric)
        gaps[head] = gap
        good.append((abs(gap) if method == "singlebase" else -gap) <= limit)
        row = ours(method, metric)
        if not good[-1] and row is not None and row.low is not None and row.high is not None:
            why += (
                f" Our {head} has the 95 % interval {100 * row.low:.2f} to {100 * row.high:.2f} over test inputs; "
                f"the paper's is {paper.value(method, metric):.2f}."
            )
    return Landing(
        method=method,
        gaps=gaps,
        limits=dict(zip(MAIN.values(), limits, strict=True)),
        reached=all(good),
        why=(why + _fewer_rounds(method, paper, ours)).strip(),
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
    late = {"late_accuracy": "new class"}
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
                if found is None or (side == "ours" and not found.has(method)):
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
        return "" if value is None else kappa(value) if metric == "cost" else f"{value:.3g}"
    row = found(method, metric, how)
    return "" if row is None else percent(row)
