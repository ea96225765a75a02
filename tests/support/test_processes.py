"""Other processes of the same Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from operator import truediv

import pytest

from softsplit.support import processes
from softsplit.support.processes import end, process_pool


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


def test_a_pool_is_ended_whatever_it_does():
    started = process_pool(1)
    busy = started.submit(time.sleep, 600)
    while not busy.running():
        time.sleep(0.01)
    end(started)
    assert not busy.done() or isinstance(busy.exception(), BrokenExecutor)


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


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "executable", "/opt/spreadsheet"),
        (processes, "parent_process", object),
        (processes, "n_cores", lambda: 1),
    ],
)
def test_where_processes_may_do_harm_none_are_started(monkeypatch, owner, name, value):
    monkeypatch.setattr(processes, "parent_process", lambda: None)
    monkeypatch.setattr(processes, "n_cores", lambda: 2)
    assert processes.may_start_processes()
    monkeypatch.setattr(owner, name, value)
    assert not processes.may_start_processes()
