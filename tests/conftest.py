"""Tests are deterministic: hypothesis draws the same examples every time, on every machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dynsnap",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dynsnap")
