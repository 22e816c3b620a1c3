"""A machine so busy that a hundred seconds pass between any two looks at the clock.

python -m pytest -p tests.busy tests/boost

Tests have no deadlines: what fails here fails on a busy machine, by accident. Only this process has
the clock; processes that tests start have the system's.
"""

import itertools
import time

_SECONDS = 100.0


def _late(clock):
    looks = itertools.count()
    return lambda: clock() + _SECONDS * next(looks)


def pytest_configure():
    time.monotonic, time.perf_counter = _late(time.monotonic), _late(time.perf_counter)
