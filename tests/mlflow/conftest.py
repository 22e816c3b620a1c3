"""Tests with a real MLflow need an environment of their own: they run with `make test-mlflow`."""

import os

collect_ignore_glob = [] if os.environ.get("DYNSNAP_TEST_MLFLOW") else ["test_*.py"]
