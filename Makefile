# Everything a newcomer needs: `make demo` and `make test` do all the set-up.
# On a fresh Debian 12 they need python3.11 and root or sudo, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_DIR ?= .demo
export TRIMARAN_SANDBOX ?= $(CURDIR)/.sandbox

.PHONY: help
help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The marker is newer than what it was made from, or it is made again.
$(VENV)/.ready: pyproject.toml constraints.txt tools/venv.sh
	@tools/venv.sh "$(PYTHON)" "$(VENV)"

.PHONY: venv
venv: $(VENV)/.ready ## Make the virtual environment

.PHONY: demo
demo: $(VENV)/.ready ## Start a small OpenStack with our services in front of it, and take the tour
	@$(BIN)/trimaran demo up --dir "$(DEMO_DIR)"

.PHONY: demo-stop
demo-stop: ## Stop the demo and its OpenStack
	@if [ -x $(BIN)/trimaran ]; then $(BIN)/trimaran demo stop --dir "$(DEMO_DIR)"; fi

.PHONY: console-ui
console-ui: $(VENV)/.ready ## Build the console's current front end, once (some minutes)
	@tools/console-ui.sh $(BIN)/python

.PHONY: servers
servers: $(VENV)/.ready
	@# libatomic is what the browser's driver, a Node.js of its own, misses on a bare Debian
	@$(BIN)/trimaran sandbox install nginx-light:nginx chromium:chromium libatomic1:libatomic.so.1
	@$(BIN)/trimaran sandbox up --with postgresql

.PHONY: test
test: $(VENV)/.ready servers ## Run all tests, against real parts where they need them, and the linters
	@$(BIN)/tox run -e unit,functional,e2e,lint

.PHONY: unit
unit: $(VENV)/.ready ## Run the unit tests only (no network, no service)
	@$(BIN)/tox run -e unit

.PHONY: lint
lint: $(VENV)/.ready ## Run ruff, mypy, import-linter and deptry
	@$(BIN)/tox run -e lint

.PHONY: samples
samples: $(VENV)/.ready ## Write the sample configuration files again
	@$(BIN)/python -m trimaran.config.sample etc

.PHONY: clean
clean: ## Remove the virtual environments and caches (not the sandbox)
	@rm -rf .venv .tox .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
