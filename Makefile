# Every target sets up .venv by itself; `make setup` does only that.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.installed

# Tests start Python dozens of times, which would compile all of dynsnap each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup docs demo demo-weekly test test-slow test-thorough test-browser test-ray test-mlflow test-schedulers lint format bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	touch $@

demo: $(STAMP)
	$(BIN)/dynsnap demo --out demo

# Ten weekly retrains on real flights: a minute on two idle cores. What it leaves is checked.
demo-weekly: $(STAMP)
	$(BIN)/dynsnap demo weekly --out demo-weekly
	$(BIN)/dynsnap project status demo-weekly
	$(BIN)/python -m tests.project.whole demo-weekly 10

# Each worker takes neighbouring tests, which share what they have trained, and the one that is done
# first takes half of what the other has left.
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal

# At most five minutes on two idle cores.
test: $(STAMP)
	$(PYTEST) -m 'not slow'

# What is too slow for every day: whole examples, every variant, other libraries, compilers.
test-slow: $(STAMP)
	$(PYTEST) -m slow --durations=25

# Every property with about seven times as many examples, before a release; about ten minutes.
test-thorough: $(STAMP)
	$(PYTEST) -m hypothesis --hypothesis-profile thorough

# On real clusters of Ray, on this machine; a few minutes.
test-ray: $(STAMP)
	DYNSNAP_TEST_RAY=1 $(BIN)/pytest -q tests/engine/ray

# With a real MLflow server on loopback, with SQLite; about two minutes.
test-mlflow: $(STAMP)
	DYNSNAP_TEST_MLFLOW=1 $(BIN)/pytest -q tests/mlflow

# The examples for schedulers with the real packages, each in an environment of its own: Prefect's
# server wants an older FastAPI. Flows and tasks call the command dynsnap of .venv.
test-schedulers: $(STAMP) .venv-prefect/.installed .venv-airflow/.installed
	for name in prefect airflow; do \
	  PATH=$(CURDIR)/$(BIN):$$PATH .venv-$$name/bin/python -m pytest -q --noconftest \
	    tests/schedulers/test_$$name.py || exit 1; \
	done

.venv-prefect/.installed: PACKAGES := prefect 'fastapi<0.120'
.venv-airflow/.installed: PACKAGES := apache-airflow-core apache-airflow-providers-standard
.venv-prefect/.installed .venv-airflow/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check $(PACKAGES) pytest
	touch $@

# The docs as a site that opens from its folder, with the pages that dynsnap writes in it.
docs: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]' -c constraints.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	mkdir -p site/pages
	$(BIN)/dynsnap compare -q examples/old.parquet examples/new.parquet --html site/pages/compare.html
	$(BIN)/dynsnap gate -q examples/old.parquet examples/new.parquet \
	  --at-least correct_consistency=0.85 --at-most lost=0.03 --html site/pages/gate.html
	$(BIN)/dynsnap report -q results/cifar10-paper --html site/pages/study.html
	@echo "The site is site/index.html."

# Pages in a real Chromium, Debian's, which is installed where it is missing (that needs root).
test-browser: docs
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }
	DYNSNAP_TEST_BROWSER=1 $(BIN)/pytest -q tests/browser

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/metrics.py

clean:
	rm -rf $(VENV) .venv-prefect .venv-airflow site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
