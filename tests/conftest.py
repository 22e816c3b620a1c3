"""Tests are deterministic: hypothesis draws the same examples every time, on every machine."""

import os

from hypothesis import HealthCheck, settings

# Two threads on busy cores are slower than one. Read by torch, OpenMP and BLAS when first loaded.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# `make test-thorough` draws more: --hypothesis-profile thorough.
for profile, examples in (("dynsnap", 15), ("thorough", 100)):
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("dynsnap")
