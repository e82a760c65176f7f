# Every target makes what it needs: a virtual environment in .venv with the extras for the job.
# The second run finds them there and needs no network.
#
#   make help

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
ARGS ?=

# "make PYTHON3=/path/to/python3.13 ..." chooses the interpreter of a new environment.
PYTHON3 ?=

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.demo ## Run the example project on real data; ARGS=--once runs a fixed batch and ends
	@$(PYTHON) -m example_project.demo $(ARGS)

.PHONY: test
test: $(VENV)/.test $(VENV)/.demo $(VENV)/.lint ## Run every test, two files at a time; ARGS go to pytest
	@$(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

.PHONY: suites
suites: $(VENV)/.test $(VENV)/.demo $(VENV)/.lint ## Run the core's tests without optional apps, and each app's with what it needs; ARGS go to pytest
	@$(PYTHON) -m tests.suites -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

.PHONY: coverage
coverage: $(VENV)/.test $(VENV)/.demo $(VENV)/.lint ## Run every test and show the lines that none of them reached
	@$(PYTHON) -m pytest --cov --cov-report=term $(ARGS)

.PHONY: check
check: $(VENV)/.test $(VENV)/.demo $(VENV)/.lint $(VENV)/.docs ## Check style, types, layers, migrations and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	DJANGO_SETTINGS_MODULE=tests.settings $(PYTHON) -m example_project.postgres run -- \
		$(PYTHON) -W error -m django makemigrations --check --dry-run
	@$(MAKE) --no-print-directory docs

.PHONY: format
format: $(VENV)/.lint ## Put all files in the form that "make check" asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: messages
messages: $(VENV)/.test ## Update and compile the translations; needs GNU gettext (apt-get install gettext)
	@for app in django_tenantqueue $(dir $(wildcard django_tenantqueue/contrib/*/locale)); do \
		cd $(CURDIR)/$$app && export PYTHONPATH=$(CURDIR) && \
		$(CURDIR)/$(PYTHON) -m django makemessages --locale ja --no-wrap --add-location file \
			--no-obsolete --ignore 'contrib/*' && \
		$(CURDIR)/$(PYTHON) -m django compilemessages --locale ja --ignore 'contrib/*' || exit 1; \
	done

.PHONY: plans
plans: $(VENV)/.test $(VENV)/.demo ## Check every statement's plan on a million waiting jobs, ten million ended ones, 10,000 queues
	@TENANTQUEUE_FULL_SIZE=1 $(PYTHON) -m pytest tests/queries/test_plans.py $(ARGS)

.PHONY: bench
bench: $(VENV)/.bench ## Measure; ARGS=--quick for a short run
	@$(PYTHON) -m benchmarks $(ARGS)

.PHONY: mutants
mutants: $(VENV)/.test $(VENV)/.demo ## Check that a test of each guarantee fails when its mechanism is removed; ARGS=NAME for one
	@$(PYTHON) -m tests.mutants $(ARGS)

.PHONY: chaos
chaos: $(VENV)/.test $(VENV)/.demo ## Kill, stop and restart everything, and audit every run; ARGS=--short for a minute
	@$(PYTHON) -m tests.chaos $(ARGS)

.PHONY: docs
docs: $(VENV)/.docs $(VENV)/.demo ## Build the documentation; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

.PHONY: reference
reference: $(VENV)/.docs $(VENV)/.demo ## Renew the parts of the documentation that are made from the code
	$(PYTHON) docs/_ext/from_code.py

.PHONY: screenshots
screenshots: $(VENV)/.test $(VENV)/.demo ## Take the documentation's pictures of the admin from a running demo
	@$(PYTHON) docs/screenshots.py

.PHONY: full
full: $(VENV)/.test $(VENV)/.demo ## Run all that .ci/run leaves out: full sizes, mutants, chaos, plans, benchmarks, each app's suite (some hours)
	@TENANTQUEUE_FULL_SIZE=1 $(PYTHON) -m pytest tests/process/test_cuts.py \
		tests/process/test_monitors.py \
		tests/process/test_sessions.py tests/contrib/celery/test_process.py $(ARGS)
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory chaos
	@$(MAKE) --no-print-directory plans
	@$(MAKE) --no-print-directory bench
	@$(MAKE) --no-print-directory suites

.PHONY: clean
clean: ## Stop the embedded PostgreSQL and remove everything that make has made
	@if [[ -x $(PYTHON) ]]; then env -u DATABASE_URL $(PYTHON) -m example_project.postgres remove || true; fi
	rm -rf $(VENV) .postgres build dist docs/_build htmlcov .coverage .coverage.* \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras, older than pyproject.toml when they must be installed again.
$(VENV)/.%: pyproject.toml | $(PYTHON)
	@echo "Installing the $* extra into $(VENV)"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[binary,$*]'
	@touch $@

$(PYTHON):
	@for python in $(or $(PYTHON3),python3 python3.13 python3.12 python3.11); do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$python" --version)"; \
			rm -rf $(VENV); "$$python" -m venv $(VENV); exit 0; \
		fi; \
	done; \
	echo "error: no Python 3.11 or later with the venv module (looked for: $(or $(PYTHON3),python3 python3.13 python3.12 python3.11))." >&2; \
	echo "       On Debian and Ubuntu: apt-get install python3-venv. Or name one: make PYTHON3=/path/to/python3.13 ..." >&2; \
	exit 1
