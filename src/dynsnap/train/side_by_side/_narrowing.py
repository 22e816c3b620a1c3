"""When to build a narrower network for the rounds that remain."""

import functools
from collections.abc import Sequence


def worth_narrowing(
    left: Sequence[int], *, width: int, step_seconds: float, building_seconds: float
) -> bool:
    """Whether to build a network for the live rounds alone, now, or to go on with empty places.

    A step takes about as long as the network is wide, and empty places cost as much as full ones.
    But building takes its time, and soon more rounds may leave: all ways to go on are compared.

    Args:
        left: Steps that each live round has still to take.
        width: Places of the network that there is.
        step_seconds: What a step of it takes.
        building_seconds: What building a network takes.

    Example:
        >>> settings = {"width": 34, "step_seconds": 0.013, "building_seconds": 80}
        >>> worth_narrowing([60_000] * 3, **settings)
        True
        >>> worth_narrowing([60_000] * 3 + [12_000] * 20, **settings)  # soon there are three
        False
    """
    ends = sorted(set(left))
    live = [sum(steps >= end for steps in left) for end in ends]
    stretches = [end - before for before, end in zip([0, *ends], ends, strict=False)]

    @functools.cache
    def seconds(stretch: int, places: int) -> float:
        """The least that it takes from a stretch on, in a network of so many places."""
        if stretch == len(ends):
            return 0.0
        return min(going_on(stretch, places), building_seconds + going_on(stretch, live[stretch]))

    def going_on(stretch: int, places: int) -> float:
        step = step_seconds * places / width
        return stretches[stretch] * step + seconds(stretch + 1, places)

    return building_seconds + going_on(0, live[0]) < going_on(0, width)
