"""Monitoring between retrains: how often two models differ on live traffic, with alarms.

`watch` reads two logs, `judge` takes counts. `_sequence` has the statistics, which may be looked at
every day.
"""

from dynsnap.watch._sequence import Evidence, mean_interval, shares
from dynsnap.watch._watch import (
    ALL,
    ROLLING,
    TIME,
    Counts,
    Day,
    Watch,
    Watched,
    calendar,
    judge,
    to_json,
    watch,
)

__all__ = [
    "ALL",
    "ROLLING",
    "TIME",
    "Counts",
    "Day",
    "Evidence",
    "Watch",
    "Watched",
    "calendar",
    "judge",
    "mean_interval",
    "shares",
    "to_json",
    "watch",
]
