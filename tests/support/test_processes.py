"""Other processes of the same Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from operator import truediv

import pytest

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
