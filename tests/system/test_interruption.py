"""Ctrl-C that falls into a destructor, where Python prints an exception and forgets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from softsplit.solvers import Budget
from softsplit.support.interruption import is_interruption, never_lost, raise_again

DROPPED = """
import os, signal, sys, warnings
import softsplit.training.multistart as training
import softsplit.training.regularisation_path as walking
from sklearn.datasets import load_iris
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, strength_path

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

told = []
def dropping(real):
    def run(*arguments):
        told.append(1)
        if len(told) == 3:
            Dropped()
        return real(*arguments)
    return run

training._run_start = dropping(training._run_start)
walking.numbered_start = dropping(walking.numbered_start)
X, y = load_iris(return_X_y=True)
warnings.simplefilter("ignore")
base = SoftTreeClassifier(n_starts=10_000, random_state=0, loss=sys.argv[2])
if sys.argv[1] == "fit":
    tree = base.fit(X, y)
    print(len(tree.starts_), tree.score(X, y) > 0.5)
else:
    print(len(strength_path(X, y, estimator=base, n_points=2)), len(told) < 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "loss"), [("fit", "log"), ("path", "cost")])
def test_an_interruption_that_python_drops_ends_the_work(work, loss):
    done = subprocess.run(
        [sys.executable, "-c", DROPPED, work, loss],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "Exception ignored in" in done.stderr  # Python has dropped it
    assert done.returncode == 0, done.stderr
    made, sound = done.stdout.split()
    assert 1 <= int(made) <= 4 and sound == "True"


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
