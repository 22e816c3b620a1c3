"""How numbers and names are written, in every report alike."""

import math

from dynsnap.comparison import Estimate
from dynsnap.metrics import metric

UNDEFINED = "–"
CASES = {
    "kept": "right → right",
    "gained": "wrong → right",
    "lost": "right → wrong",
    "never": "wrong → wrong",
}


def number(value: float | None) -> str:
    """A value with four decimals, so that columns line up.

    Example:
        >>> number(0.5), number(float("inf")), number(None)
        ('0.5000', '∞', '–')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4f}"


def interval(estimate: Estimate | None) -> str:
    """The interval of an estimate, empty where there is none.

    Example:
        >>> interval(Estimate(0.5, 0.25, 0.75))
        '[0.2500, 0.7500]'
    """
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low)}, {number(estimate.high)}]"


def percent(value: float | None) -> str:
    """A fraction in percent, with two decimals.

    Example:
        >>> percent(0.12345), percent(None)
        ('12.35', '–')
    """
    return UNDEFINED if value is None or math.isnan(value) else f"{100 * value:.2f}"


def percent_interval(low: float | None, high: float | None) -> str:
    """An interval in percent, empty where there is none.

    Example:
        >>> percent_interval(0.25, 0.75)
        '[25.00, 75.00]'
    """
    return "" if low is None or high is None else f"[{percent(low)}, {percent(high)}]"


def said_p_value(value: float | None) -> str:
    """A p-value in a sentence.

    Example:
        >>> said_p_value(0.25), said_p_value(1e-9)
        ('p = 0.2500', 'p < 0.0001')
    """
    said = p_value(value)
    return f"p < {said[1:]}" if said.startswith("<") else f"p = {said}"


def p_value(value: float | None) -> str:
    """A p-value, which is never zero.

    Example:
        >>> p_value(0.25), p_value(1e-9)
        ('0.2500', '<0.0001')
    """
    return "<0.0001" if value is not None and value < 0.0001 else number(value)


def count(value: float) -> str:
    """A number of inputs, or their weight.

    Example:
        >>> count(12345), count(2.5)
        ('12,345', '2.5')
    """
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def counted(number_of: int, thing: str) -> str:
    """A number of things, in the singular for one.

    Example:
        >>> counted(1, "class"), counted(1200, "class"), counted(2, "input")
        ('1 class', '1,200 classes', '2 inputs')
    """
    if number_of == 1:
        return f"1 {thing}"
    return f"{count(number_of)} {thing}{'es' if thing.endswith('s') else 's'}"


def kappa(cost: float) -> str:
    """A cost in trainings from scratch: two decimals, below one training three digits.

    Example:
        >>> [kappa(cost) for cost in (20, 1.45, 10 / 3, 1 / 3, 0.025, 0)]
        ['20.0', '1.45', '3.33', '0.333', '0.025', '0.0']
    """
    return str(float(f"{cost:.2f}" if cost >= 1 else f"{cost:.3g}"))


def clipped(text: str, most: int = 80) -> str:
    """A text that is not longer than a table can bear.

    Example:
        >>> clipped("a long name", 6)
        'a lon…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def clipped_path(path: str, most: int = 80) -> str:
    """The end of a path, which names the file, not longer than a page can bear.

    Example:
        >>> clipped_path("a/long/path/old.csv", 12)
        '…ath/old.csv'
    """
    return path if len(path) <= most else "…" + path[1 - most :]


def symbol_of(name: str) -> str:
    """What a metric is called in the head of a column."""
    return name if name in CASES else metric(name).symbol
