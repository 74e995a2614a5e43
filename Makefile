# The two commands of the README are `make demo` and `make test`; `make help` lists the others.
PYTHON ?= python3
NEWEST := 3.3.2
AIRFLOW ?= $(NEWEST)
CONSTRAINTS := constraints/airflow-$(AIRFLOW).txt
# An older release has an environment of its own: make test AIRFLOW=2.11.2
VENV := .venv$(if $(filter-out $(NEWEST),$(AIRFLOW)),-$(AIRFLOW))
BIN := $(VENV)/bin
ALONE := $(VENV)/alone
INSTALLED := $(VENV)/installed-airflow-$(AIRFLOW)
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

# These fail at run time with newer versions of what they are built on than there were in their day.
DAY_3.0.6 := 2025-10-15
DAY_3.1.8 := 2026-03-20
DAY_3.2.2 := 2026-06-10
DAY := $(DAY_$(AIRFLOW))
COMPILE := .venv/bin/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate --no-emit-index-url

# As many processes as cores. The tests of a file stay together, for what they share, and the longest files come first.
PROCESSES ?= logical
TESTS = -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder --durations 10 tests/integration tests/unit

.PHONY: help bench demo test test-system coverage lint types check docs build sbom clean constraints
.DEFAULT_GOAL := help

help: ## List the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(INSTALLED) ## Run the example DAG on Airflow against the embedded platform
	@$(BIN)/python demo/run.py

test: $(INSTALLED) ## Run the tests that need no servers
	@$(BIN)/python $(TESTS)

test-system: $(INSTALLED) ## Run the tests of whole deployments
	@$(BIN)/python -m pytest --durations 10 tests/system

coverage: $(INSTALLED) ## Show what of each room the tests reach; fail below the floor in pyproject.toml
	@$(BIN)/coverage erase
	@$(BIN)/coverage run $(TESTS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json -q -o - --fail-under 0 | $(BIN)/python .ci/rooms.py
	@$(BIN)/coverage report --format total

bench: $(INSTALLED) ## Time parsing, and export, load, provisioning and waiting beside their peers (takes minutes)
	@$(PIP) --constraint $(CONSTRAINTS) --editable ".[bench]"
	@$(BIN)/python benchmarks/parsing.py
	@$(BIN)/python benchmarks/rows.py
	@$(BIN)/python benchmarks/sql.py
	@$(BIN)/python benchmarks/users.py
	@$(BIN)/python benchmarks/waiting.py

lint: $(INSTALLED) ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

check: lint types test ## Check style and types and run the tests

docs: $(INSTALLED) ## Build the documentation into docs/_build/html; a warning is an error
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "Built docs/_build/html/index.html"

build: $(INSTALLED) ## Build wheel and source distribution into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

sbom: build ## Install the wheel alone and write its bill of materials to dist/sbom.cdx.json
	rm -rf $(ALONE)
	$(PYTHON) -m venv --without-pip $(ALONE)
	$(BIN)/python -m pip --python $(ALONE) install --quiet --disable-pip-version-check \
	    --constraint $(CONSTRAINTS) "apache-airflow==$(AIRFLOW)" dist/*.whl
	$(BIN)/python .ci/sbom.py $(ALONE) dist/sbom.cdx.json

constraints: ## Pin the newest versions that go with Airflow $(AIRFLOW)
	@.venv/bin/python -m pip install --quiet uv
	@# Where there is a day, Airflow's own dependencies are as of then; the providers, ours and urllib3 are the newest.
	$(COMPILE) pyproject.toml --extra dev --extra bench --extra mysql --upgrade $(if $(DAY),,--universal) \
	    --constraint <(echo apache-airflow==$(AIRFLOW) $(if $(DAY),| $(COMPILE) --exclude-newer $(DAY) - | grep -v -e providers -e ^urllib3=)) \
	    --output-file $(CONSTRAINTS)

clean: ## Remove what the other commands made
	rm -rf .venv .venv-* .demo dist docs/_build .mypy_cache .pytest_cache .ruff_cache

constraints: SHELL := /bin/bash

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or newer, or name it: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) --version); this project needs Python 3.11 or newer. Name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: apt install python3-venv)"; exit 1; }
	@echo "Installing Airflow $(AIRFLOW) and this project into $(VENV) (a minute or two) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint $(CONSTRAINTS) "apache-airflow==$(AIRFLOW)" --editable ".[dev]" || { echo "The installation failed; see the messages above. It needs the Python package index."; exit 1; }
	@# Alone: it asks for mysqlclient, which has to be compiled. The tests use its other driver.
	@$(PIP) --constraint $(CONSTRAINTS) --no-deps apache-airflow-providers-mysql
	@touch $@

$(CONSTRAINTS):
	@echo "There is no $@: this project is tested with $$(ls constraints | sed -E 's/airflow-(.*)\.txt/\1/' | tr '\n' ' ')"; exit 1
