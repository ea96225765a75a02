"""Settings shared by every test: the same examples each time, code compiled once, one browser."""

import os

import pytest
from hypothesis import HealthCheck, settings

from browser import chromium_path
from clocks import Clock
from slow_cases import EXAMPLES, FEW_EXAMPLES
from softsplit.solvers.base import Budget

# The first call of a compiled function takes seconds, so that no deadline can be kept; how long
# examples take to draw says how busy the machine is.
for name, number in (("all", EXAMPLES), ("few", FEW_EXAMPLES)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        max_examples=number,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_configure(config):
    settings.load_profile("few" if config.getoption("markexpr") == "not slow" else "all")
    # Each worker has a core: threads of libraries, which wait for one another, would take it from
    # the others. Matrix products of OpenBLAS, the loops of scikit-learn. Libraries read this when
    # they are loaded, and workers inherit it.
    if workers_follow(config):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_sessionstart(session):
    """Before a run of all tests has workers: else each of them would compile the same code."""
    all_tests = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if all_tests and workers_follow(session.config):
        from softsplit.training.precompile import compile_everything

        compile_everything()


def workers_follow(config) -> bool:
    return bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")


@pytest.fixture
def clock(monkeypatch):
    """The clock of every budget, which only the test moves."""
    clock = Clock()
    monkeypatch.setattr(Budget, "now", staticmethod(clock))
    return clock


@pytest.fixture(scope="module")
def browser():
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, as in containers, Chromium has no sandbox.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
