# Every target makes its own virtual environment on first use and reuses it afterwards.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNS   := $(VENV)/.runs
READY  := $(VENV)/.ready
# Two workers with one thread each: the tests are many and small, and threads on top only get in their way.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --cov --cov-report=term

.PHONY: demo test test-slow test-browser lint bench readme docs clean

# What the demo needs is installed in a fraction of the time of all tools.
$(RUNS): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) -V 2>/dev/null || echo 'no Python that runs'); \
	  echo "sparing needs Python 3.11 or newer; '$(PYTHON)' is $$found. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing sparing into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(READY): $(RUNS)
	@echo "installing the tools for tests and documentation (once, about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(RUNS)  ## train on bundled data, print the result, write the plot
	@$(BIN)/sparing demo --out out

lint: $(READY)  ## style, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## lint, then unit tests and doctests with coverage
	$(PYTEST) -m "not slow and not browser"

test-slow: $(READY)  ## the long tests, and the property tests with new examples
	@$(BIN)/python -c 'import schemathesis' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python -m pytest -m slow tests
	$(BIN)/python -m pytest -n 2 -m "hypothesis and not slow" --hypothesis-profile=default tests

test-browser: $(READY)  ## the pages in a real browser; needs chromium on the machine
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	$(BIN)/python -m pytest -n 0 -m browser tests/browser

bench: $(READY)  ## regenerate the benchmark tables (quick version)
	$(BIN)/python benchmarks/run.py all --quick

readme: $(READY)  ## write the demo's result and picture into the README
	$(BIN)/python docs/readme.py

docs: $(READY)  ## the documentation as HTML, with the examples run; warnings are errors
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "written to docs/_build/html/index.html"

clean:  ## remove everything the targets made
	rm -rf $(VENV) out build dist docs/_build docs/gallery docs/benchmarks docs/api/generated docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
