"""Tests on a real Ray take a while to start: they run with `make test-ray`, and not by the way."""

import os

collect_ignore_glob = [] if os.environ.get("DYNSNAP_TEST_RAY") else ["test_*.py"]
