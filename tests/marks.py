"""Of many parameters some for every day, and the rest for `make test-slow`."""

import pytest


def daily(every, *chosen):
    """All of them as parameters; those that are not chosen are marked slow."""
    every = list(every)
    assert set(chosen) <= set(every)
    return [
        pytest.param(one, marks=[] if one in chosen else pytest.mark.slow, id=str(one))
        for one in every
    ]
