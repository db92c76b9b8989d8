# make run    train for MINUTES (5) in the notebook, headless, printing progress
# make test   every test
# make lab    the notebook in JupyterLab
# make reliability   the promises of README's table, each with its full count
PYTHON ?= python3
MINUTES ?= 5
RUN ?= runs/chess
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help run test lab reliability notebooks repository

help:
	@grep '^# make' Makefile | cut -c3-

# Installed once, and again when what to install has changed.
.venv/installed: requirements.txt pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; choose another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,lab]'
	@touch $@

run: .venv/installed
	$(BIN)/python tools/run_notebook.py notebooks/train.ipynb $(RUN).ipynb minutes=$(MINUTES) run_folder='"$(RUN)"'

test: .venv/installed
	$(BIN)/python -m pytest -q

lab: .venv/installed
	$(BIN)/python -m jupyterlab notebooks/train.ipynb

reliability: .venv/installed
	$(BIN)/python tools/reliability.py

# Notebooks are generated from the .py files beside them.
notebooks: .venv/installed
	$(BIN)/python tools/make_notebook.py notebooks/train.py notebooks/scale_out.py

# make repository URL=https://github.com/you/your-fork: point the badge and the install cell there
repository: .venv/installed
	$(BIN)/python tools/set_repository.py '$(URL)'
