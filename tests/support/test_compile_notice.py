"""One line on standard error when the numerical code has to be compiled, and only then."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from softsplit.support import compiling, processes
from softsplit.support.compiling import CompileNotice
from softsplit.support.messages import announce
from softsplit.training import precompile

# What a fit does first: two functions of their own. All of them would take half a minute.
FIRST_STEPS = """
import sys
import numpy as np
import softsplit.support.compiling
from softsplit.engines.samples import Samples
exec(sys.argv[1])
X = np.linspace(0.0, 1.0, 40).reshape(20, 2)
samples = Samples.from_arrays(X, np.arange(20) % 2, 2, np.ones(20))
"""
AT_ONCE = "softsplit.support.compiling.notice.__init__(patience=0.0)"
NOTICE = "compiling numerical code for its first use here."
SWITCHED_OFF = "import logging; logging.getLogger('softsplit').setLevel(logging.ERROR)"


def run(cache, setting):
    done = subprocess.run(
        [sys.executable, "-c", FIRST_STEPS, setting],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


@pytest.mark.slow
def test_said_once_with_an_empty_cache_and_not_with_a_full_one(tmp_path):
    assert run(tmp_path, AT_ONCE) == f"softsplit: {NOTICE}\n"
    assert run(tmp_path, AT_ONCE) == ""


def test_logging_switches_it_off(tmp_path):
    assert run(tmp_path, f"{AT_ONCE}; {SWITCHED_OFF}") == ""


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand, for the notice only."""
    hands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(compiling, "time", SimpleNamespace(perf_counter=lambda: hands.now))
    return hands


def start(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(is_start=True, data={"dispatcher": SimpleNamespace(py_func=function)})


OURS, OTHER = start("softsplit.tree.routing"), start("numba.np.linalg")
END = SimpleNamespace(is_start=False)


def test_said_while_the_compiler_still_runs(clock, caplog):
    notice = CompileNotice()
    notice.notify(OURS)
    clock.now = 5.0
    notice.notify(OTHER)  # something that ours calls
    assert [record.message for record in caplog.records] == [f"softsplit: {NOTICE}"]
    notice.notify(END)
    notice.notify(END)
    assert len(caplog.records) == 1


def test_short_work_adds_up(clock, caplog):
    notice = CompileNotice()
    for said in (0, 0, 1, 1):
        notice.notify(OURS)
        clock.now += 0.8
        notice.notify(END)
        assert len(caplog.records) == said
        clock.now += 100.0  # between two of them is not compiling


def test_other_packages_do_not_count(clock, caplog):
    notice = CompileNotice()
    for stranger in (OTHER, *(SimpleNamespace(is_start=True, data=data) for data in (None, {}))):
        notice.notify(stranger)
        clock.now += 100.0
        notice.notify(END)
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "speaks"), [("LokyProcess-1", True), ("LokyProcess-2", False), ("worker", False)]
)
def test_one_process_of_a_pool_speaks(monkeypatch, caplog, name, speaks):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(name=name))
    with caplog.at_level(logging.WARNING):
        announce("something.")
    assert [record.message for record in caplog.records] == ["softsplit: something."] * speaks


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (0.0, "about 15 seconds"),
        (4.0, "about 45 seconds on this busy machine"),
    ],
)
def test_the_time_to_compile_counts_other_work(monkeypatch, load, said):
    monkeypatch.setattr(processes, "n_cores", lambda: 2)
    assert precompile.told_duration(15, load) == said
