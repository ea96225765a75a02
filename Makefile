# Everything happens in .venv; nothing but Python 3.11 or later and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Modules are compiled when they are first imported, and not by pip: that must be kept on disk.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint browser bench bench-kernel bench-ipopt bench-versions bench-accuracy peers bench-selection bench-reading bench-scale bench-new-rows bench-tables bench-sparse bench-alternatives bench-requirements bench-after-fit bench-middle bench-console bench-waiting bench-ordinary bench-faults bench-hostile bench-load bench-mutation bench-device bench-dask golden coverage audit test-oldest test-newest dist release-check smoke timing documents docs gallery reproduce clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' \
		| awk -F'|' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo ## fit a sparse tree to a bundled data set, print it and write its report
	@$(BIN)/softsplit demo $(ARGS)

# The type checker has one process, and beside it the tests have a core for what they compile first.
test: style browser ## linters, type checker, import contracts and all tests but those marked as slow
	@$(MAKE) --no-print-directory -j2 types tests MARKED="-m 'not slow'"

test-all: style browser ## the same with the slow tests; before a release, and every night
	@$(MAKE) --no-print-directory -j2 types tests

.PHONY: tests style types
tests: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal $(MARKED) $(ARGS)

# The tests of one part, make test-solvers: a folder of tests/, and of the suites that all solvers,
# engines, losses and penalties pass those that it has a say in.
PARTS := $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/test_*.py))))
SUITES_problem := tests/contracts/test_gradients.py tests/contracts/test_against_paper.py
SUITES_tree := tests/contracts/test_against_paper.py
SUITES_engines := tests/contracts/test_engines.py tests/contracts/test_doors.py
SUITES_solvers := tests/contracts/test_solvers.py tests/contracts/test_known_optima.py
SUITES_ipopt := $(SUITES_solvers) -k ipopt
SUITES_decomposition := $(SUITES_solvers) -k decomposition
SUITES_on_torch := tests/contracts/test_engines.py -k torch
.PHONY: $(PARTS:%=test-%)
$(PARTS:%=test-%): test-%: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal tests/$* $(SUITES_$*) $(ARGS)

# The tests of the report need Chromium; where it cannot be installed they say so and are skipped.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| { echo "installing chromium for the tests of the report"; \
		     { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; } \
		       || sudo -n apt-get install -y -qq chromium; } >/dev/null 2>&1; } \
		|| echo "chromium cannot be installed here: tests of the report in a browser will be skipped"

lint: style types ## the static half of "make test"

style: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.test
	$(BIN)/mypy

bench-kernel: $(VENV)/.test ## cost of the compiled pass against two matrix products
	$(BIN)/python benchmarks/kernel.py $(ARGS)

bench-ipopt: $(VENV)/.test ## IPOPT against the reference objectives
	$(BIN)/python benchmarks/ipopt.py $(ARGS)

bench: $(VENV)/.test ## native solver: PART=objective, ablation, speed, path, growth or first-use
	$(BIN)/python benchmarks/solvers.py $(or $(PART),objective) $(ARGS)

golden: $(VENV)/.test ## compare with golden results: ARGS=...
	$(BIN)/python benchmarks/golden.py check $(ARGS)

bench-versions: $(VENV)/.test ## is this version slower than another: BEFORE=path/to/its/src
	$(BIN)/python benchmarks/versions.py $(BEFORE) src $(ARGS)

bench-accuracy: $(VENV)/.test ## accuracy beside the paper's tables: PART=table, scaling or why
	$(BIN)/python benchmarks/accuracy.py $(or $(PART),table) $(ARGS)

# Methods to compare with, each from the package named; one that cannot be installed is left out.
PEERS := abess interpret-core
peers: $(VENV)/.test
	@for package in $(PEERS); do $(PIP) $$package \
		|| echo "$$package cannot be installed here: its method will be left out"; done

bench-selection: peers ## tree chosen by cross-validation beside other methods (hours; may be resumed)
	$(BIN)/python benchmarks/selection.py run $(ARGS)
	$(BIN)/python benchmarks/selection.py run --larger $(ARGS)
	$(BIN)/python benchmarks/selection.py table --document docs/results/selection.md
	$(BIN)/python benchmarks/selection.py overview
	$(BIN)/python benchmarks/selection.py draw --out docs/results/selection.jsonl

bench-reading: peers ## trees of given sizes beside best subsets, and how long questions are: TABLES=folder of the made tables
	$(BIN)/python benchmarks/reading.py sizes run $(if $(TABLES),--tables $(TABLES)) $(ARGS)
	$(BIN)/python benchmarks/reading.py sizes table --document docs/results/sizes.md $(ARGS)
	$(BIN)/python benchmarks/reading.py cards run $(ARGS)
	$(BIN)/python benchmarks/reading.py cards table --document docs/results/cards.md
	$(BIN)/python benchmarks/walks.py $(if $(TABLES),--tables $(TABLES)) --document docs/results/walks.md $(ARGS)
	$(BIN)/python benchmarks/story.py --document docs/results/story.md

bench-scale: $(VENV)/.test ## many rows: PART=rows, threads, exponent, memory or cv
	$(BIN)/python benchmarks/scale.py $(or $(PART),rows) $(ARGS)

bench-new-rows: $(VENV)/.test ## noise columns, rare classes, time of a choice (an hour): PART=noise, rare or time
	@for part in $(or $(PART),noise rare time); do \
		$(BIN)/python benchmarks/new_rows.py $$part run $(ARGS) \
		&& $(BIN)/python benchmarks/new_rows.py $$part table || exit 1; done

bench-tables: $(VENV)/.test ## tables as they come beside L1 logistic regression: PART=gaps or raw
	$(BIN)/python benchmarks/raw_tables.py $(or $(PART),gaps)

bench-sparse: $(VENV)/.test ## a wide sparse table beside L1 logistic regression: ARGS=--cv
	$(BIN)/python benchmarks/wide_sparse.py $(ARGS)

bench-alternatives: peers ## trees as good as the chosen one, on held-out rows
	$(BIN)/python benchmarks/alternatives.py $(ARGS)

bench-requirements: $(VENV)/.test ## trees under requirements: PART=monotone, ...
	$(BIN)/python benchmarks/requirements.py $(or $(PART),monotone) --document docs/results/requirements.md $(ARGS)

bench-after-fit: $(VENV)/.test ## coverage of prediction sets beside MAPIE, shifts of tables (ten minutes)
	@$(PIP) mapie || echo "mapie cannot be installed here: its sets will be left out"
	@for part in $(or $(PART),coverage check); do \
		$(BIN)/python benchmarks/after_fit.py $$part --document docs/results/after-fit.md $(ARGS) || exit 1; done

bench-middle: peers ## a default choice on thousands of rows: time beside boosting and EBM, memory (an hour)
	$(BIN)/python benchmarks/waiting_middle.py middle $(ARGS)
	$(BIN)/python benchmarks/waiting_middle.py memory
	$(BIN)/python benchmarks/waiting_middle.py table

bench-console: $(VENV)/.test ## reports, Ctrl-C, limits, console, single calls (half an hour): PART=report, interrupt, limits, console or calls
	@for part in $(or $(PART),report interrupt limits console calls); do \
		$(BIN)/python benchmarks/waiting.py $$part --write $(ARGS) || exit 1; done
	$(if $(PART),,$(BIN)/python benchmarks/waiting.py report --busy 2 --write)

bench-waiting: bench-middle bench-console ## all about waiting

bench-ordinary: $(VENV)/.test ## 500 ordinary problems with the defaults (may be resumed)
	$(BIN)/python benchmarks/ordinary.py run $(ARGS)
	$(BIN)/python benchmarks/ordinary.py table

bench-faults: $(VENV)/.test ## killed, starved, damaged and interrupted runs (half an hour): PART=kill, disk, damage, ...
	$(BIN)/python benchmarks/faults.py $(PART) $(ARGS)

bench-hostile: $(VENV)/.test ## 100,000 damaged files for the readers (half an hour)
	$(BIN)/python benchmarks/hostile_files.py $(ARGS)

bench-dask: $(VENV)/.test ## tables on a local Dask cluster (half an hour, 15 GB of disk): PART=large, overhead or workers
	$(BIN)/python benchmarks/dask_rows.py $(or $(PART),large) $(ARGS)

bench-load: $(VENV)/.test ## 2,000 fits in one process, predictions of ten million rows: PART=fits or predict
	$(BIN)/python benchmarks/load.py $(PART) $(ARGS)

bench-mutation: $(VENV)/.test ## faults put into the mathematics, which the tests must notice: PART=routing, ...
	$(BIN)/python benchmarks/mutation.py $(PART) $(ARGS)

# PyTorch is gigabytes: it is no part of the environment that the tests need.
bench-device: $(VENV)/.test ## rows on a GPU, trees in lockstep: PART=evaluate, stream, fit or grid
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(PIP) --editable '.[gpu]'
	$(BIN)/python benchmarks/device.py $(or $(PART),evaluate) $(ARGS)

# Compiled code is seen only when it runs as plain Python, which most tests are too long for.
KERNEL_TESTS := tests/tree/test_routing.py tests/problem/test_penalties.py tests/tree/test_sparsity.py
coverage: $(VENV)/.test ## lines and branches that the tests run, in build/coverage
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q --cov --cov-branch --cov-report= $(KERNEL_TESTS)
	$(BIN)/python -m pytest -q --cov --cov-branch --cov-append --cov-report=term --cov-report=html:build/coverage $(ARGS)

audit: $(VENV)/.test ## known weaknesses of the dependencies; needs a network
	$(BIN)/pip-audit --skip-editable $(ARGS)

# The site has dependencies of its own, which are no part of these environments.
NO_SITE := --ignore tests/documents/test_site.py
# Old libraries warn of deprecations in new tools, so that warnings are no errors here. New polars frames
# have lost the protocol by which scikit-learn 1.6 reads their names.
TEST_TOOLS := build hatch-fancy-pypi-readme hatchling hypothesis jsonschema matplotlib onnxruntime playwright 'polars<1.30' pytest pytest-xdist pyyaml skops
test-oldest: $(VENV)/.made ## the tests with the oldest versions that pyproject.toml allows, in build/oldest
	@mkdir -p build
	@test -d build/oldest || $(PYTHON) -m venv build/oldest
	@$(BIN)/python tests/lower_bounds.py > build/oldest.txt
	build/oldest/bin/python -m pip install --quiet --constraint build/oldest.txt --editable '.[all]' $(TEST_TOOLS)
	build/oldest/bin/python -m pytest -n auto --dist worksteal -W default $(NO_SITE) $(ARGS)

# Pre-releases; where PIP_EXTRA_INDEX_URL names an index of nightly wheels, those.
test-newest: ## the tests with the newest pre-releases of all dependencies, in build/newest
	@mkdir -p build
	@test -d build/newest || $(PYTHON) -m venv build/newest
	build/newest/bin/python -m pip install --quiet --upgrade --pre --editable '.[all,dev]'
	build/newest/bin/python -m pytest -n auto --dist worksteal -W default $(NO_SITE) $(ARGS)

# The day of the last commit is the time stamp of all files in the archives: they are the same bytes wherever they are built.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist: $(VENV)/.made ## sdist and wheel in dist/
	@$(PIP) 'build>=1.2'
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

smoke: dist ## the wheel in an empty environment, build/smoke: the lines of README and the command line
	rm -rf build/smoke && $(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet dist/*.whl
	build/smoke/bin/python -I tests/smoke.py

release-check: dist ## versions agree, archives build twice to the same bytes and hold what they must; then smoke
	$(BIN)/python docs/site/release.py check
	mkdir -p build && rm -rf build/again && cp -r dist build/again
	$(MAKE) --no-print-directory dist
	for made in dist/*; do cmp $$made build/again/$${made##*/} || exit 1; done
	@$(PIP) 'twine>=6' 'check-wheel-contents>=0.6'
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(MAKE) --no-print-directory smoke

timing: $(VENV)/.test ## is this version slower than another, on bundled data: BEFORE=path/to/its/src
	$(BIN)/python benchmarks/versions.py $(BEFORE) src --bundled $(ARGS)

# The theme announces its successor on every build; that is no news for readers of these pages.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.test ## the documentation as a site in build/docs; nothing is fetched, warnings are errors
	$(BIN)/mkdocs build --strict --quiet
	@echo "$(CURDIR)/build/docs/index.html"

gallery: $(VENV)/.test ## run the examples and redraw the pictures of the gallery
	$(BIN)/python docs/site/gallery.py

documents: $(VENV)/.test ## print and draw anew what README and the pages show: ARGS=docs/reading.md
	$(BIN)/python docs/site/printed.py $(ARGS)
	$(if $(ARGS),,$(BIN)/python docs/site/gallery.py && $(BIN)/python docs/site/live.py)

# Specs in the order in which they are run; those with figures.
EXPERIMENTS := table2 table3 figure_scatter peers table3_ipopt heatmaps decomposition
FIGURES := table2 table3 figure_scatter heatmaps decomposition

reproduce: $(VENV)/.test ## the paper's tables and figures into docs/results (hours; may be stopped and resumed)
	@for name in $(EXPERIMENTS); do \
		$(BIN)/softsplit experiment run $$name $(ARGS) \
		&& $(BIN)/softsplit experiment table $$name --out docs/results/experiments || exit 1; done
	@for name in $(FIGURES); do \
		$(BIN)/softsplit experiment plot $$name --out docs/results/experiments || exit 1; done

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# pip of the Python outside installs pip in a second; where there is none, or an old one, venv does.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "softsplit needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet --no-compile pip \
		>/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@touch $@

# Python compiles modules as they are imported, a fraction of those that pip would compile. What
# numerical code needs comes first: two processes compile it while pip installs the rest, and the
# demo compiles what they have left.
COMPILE := from softsplit.training.precompile import compile_for_commands; compile_for_commands
$(VENV)/.demo: pyproject.toml | $(VENV)/.made
	@echo "installing softsplit into $(VENV) (half a minute the first time)"
	@$(PIP) --no-compile joblib numba scipy
	@for backwards in False True; do \
		PYTHONPATH=src $(BIN)/python -c "$(COMPILE)(backwards=$$backwards)" >/dev/null 2>&1 & done
	@$(PIP) --no-compile --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.made
	@echo "installing softsplit with all extras and test tools into $(VENV) (a minute or two the first time)"
	@$(PIP) --editable '.[all,dev,docs]'
	@touch $@ $(VENV)/.demo
