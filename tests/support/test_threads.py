"""How many threads a fit takes, and that its bits do not depend on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from operator import truediv

import pytest
from joblib import Parallel, delayed, parallel_config

from softsplit.solvers import Budget
from softsplit.support import parallel
from softsplit.support.interruption import is_interruption, never_lost, raise_again
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.support.processes import end, process_pool
from softsplit.support.row_budgets import ROWS

MANY = ROWS.parallel + 1


@pytest.fixture
def four_cores(monkeypatch):
    """A machine of four cores without limits."""
    monkeypatch.setattr("joblib.cpu_count", lambda *_, **__: 4)
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 4)
    monkeypatch.setattr(parallel, "_openmp_threads", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_few_rows_take_one_thread_and_many_all_cores(four_cores):
    assert MANY <= 5000
    assert n_threads(None, ROWS.parallel) == 1
    assert n_threads(None, MANY) == n_threads(None) == 4
    assert n_threads(3, 10) == n_threads(3, MANY) == 3, "what is asked for counts"
    with one_blas_thread():
        assert n_threads(None, MANY) == 4, "our own limit on BLAS is none on our threads"


@pytest.mark.parametrize("said, expected", [("2", 2), ("3,1", 3), ("", 4), ("many", 4)])
def test_the_variable_of_openmp_limits_them(four_cores, monkeypatch, said, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert n_threads(None, MANY) == expected
    assert n_threads(4, MANY) == 4


def test_limits_of_other_libraries_count(four_cores, monkeypatch):
    with parallel_config(n_jobs=2):
        assert n_threads(None, MANY) == 2
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    assert n_threads(None, MANY) == 3


@pytest.mark.parametrize("prefer", ["threads", "processes"])
def test_inside_a_worker_of_joblib_it_is_one(prefer):
    asked = Parallel(n_jobs=2, prefer=prefer)(delayed(n_threads)(None, MANY) for _ in range(3))
    assert asked == [1, 1, 1]


# Other processes of the same Python.


@pytest.fixture
def pool():
    started = process_pool(1)
    yield started
    end(started)


def test_calls_run_elsewhere_and_errors_come_back(pool):
    assert pool.submit(os.getpid).result() != os.getpid()
    with pytest.raises(ZeroDivisionError):
        pool.submit(truediv, 1, 0).result()
    assert pool.submit(truediv, 1, 2).result() == 0.5
    with pytest.raises(BrokenExecutor):
        pool.submit(os._exit, 3).result()


ORPHAN = """
import os, time
from softsplit.support.processes import process_pool
if __name__ == "__main__":
    pool = process_pool(1)
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    os._exit(1)
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are asked for by a signal")
def test_a_process_ends_with_the_one_that_started_it():
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True)
    for _ in range(6000):
        try:
            os.kill(int(done.stdout), 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("it lives")


# Ctrl-C that nobody has seen is raised again.


def interrupt_and_drop():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.fixture
def usual():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_nobody_has_seen_is_raised_at_the_next_look_or_at_the_end(usual):
    with never_lost():
        interrupt_and_drop()
        with pytest.raises(KeyboardInterrupt):
            _ = Budget().exhausted
        assert not Budget().exhausted
    with pytest.raises(KeyboardInterrupt), never_lost():
        interrupt_and_drop()
    raise_again()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_compiled_code_makes_of_an_interruption_is_known():
    outer, inner = SystemError(), SystemError()
    outer.__cause__, inner.__cause__ = inner, KeyboardInterrupt()
    assert is_interruption(outer) and is_interruption(KeyboardInterrupt())
    assert not is_interruption(SystemError())
