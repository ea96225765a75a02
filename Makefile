# Everything happens in .venv; nothing but Python 3.11 or later and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Modules are compiled when they are first imported, and not by pip: that must be kept on disk.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint tests types bench coverage audit test-oldest test-newest dist release-check docs documents pictures reproduce clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' \
		| awk -F'|' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo ## fit a sparse tree to a bundled data set, print it and write its report
	@$(BIN)/softsplit demo $(ARGS)

# The type checker has one process, and beside it the tests have a core for what they compile first.
test: lint ## linters, type checker, import contracts and all tests but those marked as slow
	@$(MAKE) --no-print-directory -j2 types tests MARKED="-m 'not slow'"

test-all: lint ## the same with the slow tests; before a release, and every night
	@$(MAKE) --no-print-directory -j2 types tests

# The tests of the report need Chromium; where it cannot be installed they say so and are skipped.
tests: $(VENV)/.test
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| { echo "installing chromium for the tests of the report"; \
		     { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; } \
		       || sudo -n apt-get install -y -qq chromium; } >/dev/null 2>&1; } \
		|| echo "chromium cannot be installed here: tests of the report in a browser will be skipped"
	$(BIN)/python -m pytest -n auto --dist worksteal $(MARKED) $(ARGS)

lint: $(VENV)/.test ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.test ## the type checker
	$(BIN)/mypy

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

# Benchmarks by name, with the packages that they compare with: the list is in benchmarks/bench.py.
bench: $(VENV)/.test ## a benchmark: NAME=selection ARGS="..."; without NAME, their list
	@$(BIN)/python benchmarks/bench.py $(NAME) $(ARGS)

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
	@$(BIN)/python docs/site/lower_bounds.py > build/oldest.txt
	build/oldest/bin/python -m pip install --quiet --constraint build/oldest.txt --editable '.[all]' $(TEST_TOOLS)
	build/oldest/bin/python -m pytest -n auto --dist worksteal -W default $(NO_SITE) $(ARGS)

# Pre-releases; where PIP_EXTRA_INDEX_URL names an index of nightly wheels, those.
test-newest: ## the tests with the newest pre-releases of all dependencies, in build/newest
	@mkdir -p build
	@test -d build/newest || $(PYTHON) -m venv build/newest
	build/newest/bin/python -m pip install --quiet --upgrade --pre --editable '.[all,dev]'
	build/newest/bin/python -m pytest -n auto --dist worksteal -W default $(NO_SITE) $(ARGS)

# The day of the last commit is the time stamp of all files in the archives: they are the same bytes wherever they are built.
dist: $(VENV)/.made ## sdist and wheel in dist/
	@$(PIP) 'build>=1.2'
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(BIN)/python -m build --outdir dist .

release-check: dist ## versions agree, pictures are of one commit, archives build twice to the same bytes, the wheel works in an empty environment
	$(BIN)/python docs/site/release.py check
	$(BIN)/python docs/site/machines.py
	mkdir -p build && rm -rf build/again && cp -r dist build/again
	$(MAKE) --no-print-directory dist
	for made in dist/*; do cmp $$made build/again/$${made##*/} || exit 1; done
	@$(PIP) 'twine>=6' 'check-wheel-contents>=0.6'
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	rm -rf build/smoke && $(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet dist/*.whl
	build/smoke/bin/python -I tests/smoke.py

# The theme announces its successor on every build; that is no news for readers of these pages.
docs: $(VENV)/.test ## the documentation as a site in build/docs; nothing is fetched, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "$(CURDIR)/build/docs/index.html"

documents: $(VENV)/.test ## print and draw anew what README and the pages show: ARGS=docs/reading.md
	$(BIN)/python docs/site/printed.py $(ARGS)
	$(if $(ARGS),,$(BIN)/python docs/site/gallery.py && $(MAKE) --no-print-directory pictures)

pictures: $(VENV)/.test ## pictures of reports and the live one, from the commands of docs/reports.md
	$(BIN)/python docs/site/pictures.py $(ARGS)

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
COMPILE := from softsplit.training.precompile import compile_for_commands as run; run()
$(VENV)/.demo: pyproject.toml | $(VENV)/.made
	@echo "installing softsplit into $(VENV) (half a minute the first time)"
	@$(PIP) --no-compile joblib numba scipy
	@PYTHONPATH=src $(BIN)/python -c "$(COMPILE)" >/dev/null 2>&1 &
	@$(PIP) --no-compile --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.made
	@echo "installing softsplit with all extras and test tools into $(VENV) (a minute or two the first time)"
	@$(PIP) --editable '.[all,dev,docs]'
	@touch $@ $(VENV)/.demo
