"""What one network was meant to reach at one training per retrain, beside what was measured.

The aims were set before the studies were run. Values are means over replicates, differences over
those that both methods have; an aim is reached or missed by the mean, and the intervals of the
differences are in the tables beside it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from _measured import Measured, line

FRESH, CONTROL = "singlebase", "single-long"
# Without a look at deployed answers, and with one.
PLAIN, STABILIZED = "single", "single-cost"


@dataclass(frozen=True, slots=True)
class Aim:
    """A value that a method should reach.

    Attributes:
        what: Its name in the table.
        value: The method's, from the study and the method's name; None if the study lacks the
            reference.
        plain: The bound without stabilizing, stabilized the one with it.
        least: Whether the value should be at least the bound; at most it, if not.
    """

    what: str
    value: Callable[[Measured, str], float | None]
    plain: float
    stabilized: float
    least: bool = True

    def cells(self, of: Measured) -> Iterator[str]:
        """Bound and value of both methods."""
        for method, bound in ((PLAIN, self.plain), (STABILIZED, self.stabilized)):
            value = self.value(of, method)
            yield f"{'≥' if self.least else '≤'} {bound:g}"
            if value is None:
                yield "not run"
            else:
                reached = value >= bound if self.least else value <= bound
                yield f"{value:.2f}" + ("" if reached else " (missed)")


def lines(
    of: Measured, lost: tuple[float, float], con: tuple[float, float] | None = None
) -> Iterator[str]:
    """The table of a study, given what its data make hard: shares of lost answers, and CON."""
    last = f"accuracy_{of.labels.generations}"
    aims = [Aim("lost per retrain, of fresh", _share("lost"), *lost, least=False)]
    if con is not None:
        aims.append(Aim("CON", lambda of, method: _percent(of, method, "consistency"), *con))
    aims += [
        Aim("last generation minus fresh", _minus(FRESH, last), 1.0, 1.0),
        Aim("last generation minus control", _minus(CONTROL, last), -0.3, -0.3),
        Aim("new class, of fresh", _share("late_accuracy"), 0.97, 0.97),
    ]
    yield line(["", f"`{PLAIN}`: aim", "reached", f"`{STABILIZED}`: aim", "reached"])
    yield "|---" * 5 + "|"
    for aim in aims:
        yield line([aim.what, *aim.cells(of)])


def _share(metric: str) -> Callable[[Measured, str], float]:
    return lambda of, method: _percent(of, method, metric) / _percent(of, FRESH, metric)


def _minus(reference: str, metric: str) -> Callable[[Measured, str], float | None]:
    def value(of: Measured, method: str) -> float | None:
        found = of.labels.difference(method, reference, metric)
        return None if found is None else 100 * found.value

    return value


def _percent(of: Measured, method: str, metric: str) -> float:
    value = of.value(method, metric)
    assert value is not None, f"{of.name} has no {metric} of {method}"
    return value
