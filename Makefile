# make run    train for MINUTES (5) in the notebook, headless, printing progress
# make lab    the notebook in JupyterLab
# make quick  the tests of a minute
# make test   the tests; make reliability, make browser and make gpu run the long ones
# make check  formatting, lint and types, as CI checks them
# make fix    format, and correct what lint can correct by itself
# make reliability   the promises of docs/promises.md, each with its full count, and what else is too long for every change
# make size   syntax nodes of each folder, and the package's budget
# make gpu    check and measure a GPU (or this machine) in nine minutes, into runs/device, then the tests that need CUDA; PART=ply runs one part; installs nothing
# make notebooks     write the notebooks again from the .py files beside them
# make colab         write dist/run_all.ipynb, one file to upload to Colab or Kaggle, or to open in an empty folder
# make page          fetch the rules of chess (chess.js, by npm) that the page for friends carries
# make browser       every test in a real browser, with screenshots in the folder screenshots
# make shipped MACHINE="two cores of ..."    train the four networks of one run that come with the package, their curve and the README's picture
# make strength RUN=runs/chess MAIA=maia.py   measure a run: matches with every opponent that is here, and puzzles
# make repository URL=https://github.com/you/your-fork   put Colab badges and the address into README and notebooks
PYTHON ?= python3
MINUTES ?= 5
RUN ?= runs/chess
PART ?=
MACHINE ?=
MAIA ?=
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
# A test process for each core and one more, because many tests wait for a browser, a kernel or a timeout; four at most,
# because a test may start several processes itself.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 4))')
PYTEST := $(BIN)/python -m pytest -q -n $(PROCESSES)
QUICK := actor checkpoint chess_endings chess_moves chess_perft corruption cpu devices floors games learner network notation \
	openings packaging public_names ratings records run_folder saved_run search tactics tictactoe tree views_board views_plots
.DEFAULT_GOAL := help
.PHONY: help run lab quick test check fix size reliability gpu notebooks colab page browser shipped strength repository

help:
	@grep '^# make' Makefile | cut -c3-

# Installed once, and again when what to install has changed: first what the notebooks need, then what tests and checks do.
.venv/lab: requirements.txt pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; choose another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[lab]'
	@touch $@

.venv/installed: .venv/lab
	$(INSTALL) '.[test,dev,lab]'
	@touch $@

run: .venv/lab
	$(BIN)/python tools/run_notebook.py notebooks/train.ipynb $(RUN).ipynb minutes=$(MINUTES) run_folder='"$(RUN)"'

lab: .venv/lab
	$(BIN)/python -m jupyterlab notebooks/train.ipynb

# These files without the longest comparisons with python-chess, and one test of the whole loop.
quick: .venv/installed
	$(PYTEST) -k 'not in_played_games' $(QUICK:%=tests/test_%.py) tests/test_training.py::test_resuming_is_exact

test: .venv/colab/made
	$(PYTEST)

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

fix: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reliability: .venv/installed
	$(BIN)/python tools/reliability.py

size:
	@$(PYTHON) tools/size.py

gpu:
	@$(PYTHON) -c 'import torch, spikingjelly, pytest' || { echo "First: $(PYTHON) -m pip install -r requirements.txt pytest"; exit 1; }
	$(PYTHON) -m chessnn_colab bench device --parts '$(PART)'
	$(if $(PART),,CHESSNN_GPU_TESTS=1 $(PYTHON) -m pytest -q -m gpu -W default tests/test_gpu.py)

notebooks: .venv/installed
	$(BIN)/python tools/make_notebook.py $(wildcard notebooks/*.py)

colab:
	$(PYTHON) tools/make_colab.py

page:
	$(PYTHON) tools/make_page.py

# With CHESSNN_BROWSER=all the tests run that `make test` leaves out.
browser: .venv/colab/made
	CHESSNN_BROWSER=all CHESSNN_PICTURES=screenshots $(BIN)/python -m pytest -q tests/test_browser*.py

# Another Python may have no wheels for Colab's versions: the tests that need this environment are skipped then. Where
# pip changed what it has to leave alone this fails.
.venv/colab/made: .venv/installed tools/colab_like.py
	$(BIN)/python tools/colab_like.py .venv/colab
	@mkdir -p .venv/colab
	@touch $@

shipped: .venv/installed
	$(BIN)/python -m chessnn_colab train --run runs/shipped --minutes 20 --checkpoint-every 1
	$(BIN)/python tools/make_snapshots.py runs/shipped --machine "$(MACHINE)"
	$(BIN)/python tools/reference_curve.py runs/shipped "$(MACHINE)"
	$(BIN)/python tools/make_picture.py runs/shipped

strength: .venv/installed
	$(BIN)/python tools/strength.py $(RUN) --full $(if $(MAIA),--maia $(MAIA))

repository: .venv/installed
	$(BIN)/python tools/set_repository.py '$(URL)'
