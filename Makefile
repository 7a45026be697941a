# make run      start everything in one command and print a sign-in link
# make test     the plain tests, on SQLite, with nothing else installed
# make check    style, types, floors, migrations, deployment settings
# make bench    how fast it is, beside its references
# make kill-demo    messages under kill -9: accepted, delivered, twice, lost
# make screenshots  pictures of the main pages

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test check style types floors migrations deployment
.PHONY: bench kill-demo screenshots states venv dev

# More options of `up`, such as: make run UP='--port 9000'
UP ?=
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
# How many processes test side by side.
JOBS ?= auto
# Settings are read from the environment; what checks and tests leave goes where nobody keeps it.
SCRATCH = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export COWORK_DATA_DIR="$$folder"

help:
	@sed -n 's/^# //p' Makefile

$(BIN)/python:
	@echo "Making $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed.")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt | $(BIN)/python
	@echo "Installing what requirements.txt names (about half a minute, once) ..."
	@$(PIP) install -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements.txt requirements-dev.txt | $(BIN)/python
	@echo "Installing what requirements-dev.txt names (about a minute, once) ..."
	@$(PIP) install -r requirements-dev.txt
	@touch $(VENV)/.installed $@

venv: $(VENV)/.installed
dev: $(VENV)/.installed-dev

run: venv
	@echo "Starting everything; Ctrl-C stops it ..."
	@exec $(BIN)/python manage.py up --demo $(UP)

test: dev
	@env -u COWORK_DATABASE_URL -u COWORK_DATA_DIR \
		$(BIN)/python -m pytest -q -n $(JOBS) -m "not services and not browser"

check: style types floors migrations deployment

style: dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

types: dev
	@echo mypy --strict; $(SCRATCH) && $(BIN)/mypy --no-error-summary .

floors: dev
	@echo lint-imports; PYTHONPATH=. $(BIN)/lint-imports --no-logo --no-cache

migrations: dev
	@echo makemigrations --check
	@$(SCRATCH) && $(BIN)/python manage.py makemigrations --check --dry-run

deployment: dev
	@echo check --deploy
	@$(SCRATCH) && export COWORK_PUBLIC_URL=https://cowork.example COWORK_DEBUG=0 \
		&& $(BIN)/python manage.py check --deploy --fail-level WARNING

states: dev
	@$(SCRATCH) && $(BIN)/python -m tests.house.states

bench: dev
	@$(BIN)/python -m tests.bench

kill-demo: dev
	@$(BIN)/python -m tests.kill_demo

screenshots: dev
	@$(BIN)/python -m tests.screenshots
