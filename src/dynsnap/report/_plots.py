"""Small plots made of letters: in a terminal a glance at a bar says more than four decimals."""

import math
from collections.abc import Sequence

from dynsnap.comparison import Estimate, TransitionCounts
from dynsnap.report._blocks import CASES, Cell, Line, Tone, count

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_CASE: dict[str, tuple[str, Tone]] = {
    "kept": ("█", "plain"),
    "gained": ("▲", "good"),
    "lost": ("▼", "bad"),
    "never": ("░", "quiet"),
}


def bar(share: float, cells: int = 24) -> str:
    """A bar of so many cells, to an eighth of a cell.

    Example:
        >>> bar(0.5, 10), bar(1.7, 3)
        ('█████', '███')
    """
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[rest].strip()


def spark(values: Sequence[float]) -> str:
    """Values one after another, from the lowest to the highest of them.

    Example:
        >>> spark([0.1, 0.2, 0.4, 0.3])
        '▁▃█▆'
        >>> spark([0.5, 0.5, float("nan")])
        '▁▁ '
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    return "".join(
        _LEVELS[round((value - low) / span * 7) if span else 0] if math.isfinite(value) else " "
        for value in values
    )


def strip(
    estimate: Estimate,
    *,
    start: float,
    end: float,
    cells: int = 20,
    mark: str = "●",
    threshold: float | None = None,
    fails_above: bool = False,
) -> str:
    """A value and its interval on a line, and what would fail beyond a threshold.

    Example:
        >>> strip(Estimate(0.5, 0.25, 0.75), start=0, end=1, cells=9)
        '··──●──··'
        >>> strip(Estimate(0.75), start=0, end=1, cells=9, threshold=0.5)
        '░░░░│·●··'
    """

    def place(value: float) -> int:
        share = (value - start) / (end - start) if end > start else 0.5
        return round(max(0.0, min(1.0, share)) * (cells - 1))

    if not math.isfinite(estimate.value):
        return ""
    line = ["·"] * cells
    if threshold is not None:
        at = place(threshold)
        for cell in range(at + 1, cells) if fails_above else range(at):
            line[cell] = "░"
    if estimate.low is not None and estimate.high is not None:
        for cell in range(place(estimate.low), place(estimate.high) + 1):
            line[cell] = "─"
    if threshold is not None:
        line[place(threshold)] = "│"
    line[place(estimate.value)] = mark
    return "".join(line)


def cases_bar(counts: TransitionCounts, cells: int = 60) -> tuple[Line, ...]:
    """The four cases as one bar, each at least a cell, and what its parts mean.

    Example:
        >>> for line in cases_bar(TransitionCounts(kept=7, gained=1, lost=2, never=0), 10):
        ...     print("".join(cell.text for cell in line.cells))
        ███████▲▼▼
        █ 7 kept  ▲ 1 gained  ▼ 2 lost
    """
    inputs = {name: getattr(counts, name) for name in CASES}
    present = [name for name in CASES if inputs[name]]
    total = sum(inputs.values())
    wide = {name: max(1, int(inputs[name] / total * cells)) for name in present}
    # What rounding left over, or took too much, is the largest part's.
    wide[max(present, key=inputs.__getitem__)] += cells - sum(wide.values())
    drawn = tuple(Cell(_CASE[name][0] * wide[name], _CASE[name][1]) for name in present)
    said: list[Cell] = []
    for name in present:
        word = "never right" if name == "never" else name
        gap = "  " if said else ""
        said.append(Cell(f"{gap}{_CASE[name][0]} {count(inputs[name])} {word}", _CASE[name][1]))
    return Line(drawn), Line(tuple(said))
