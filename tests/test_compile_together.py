"""Two processes compile: what the other one makes is what this one looks for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from softsplit.support.compiling import is_on_disk
from softsplit.training import compile_together as module
from softsplit.training.compile_together import compile_together

PARTS = {
    "smooth_value", "receive", "penalty_value", "clip_trial", "keep_pair", "snap_near_kinks",
    "subgradient", "direction_of", "newton_direction", "fit_splits", "fitted_split",
    "value_and_gradient", "inverse_fisher", "coefficient_rises", "branch_rises", "routed",
    "ridge_logistic",
}  # fmt: skip

# A descent that is compiled anew finds its parts ready, for the very types it hands to them.
PARTS_ARE_READY = """
import sys
import numpy as np
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from softsplit.problem.penalties import counting
from softsplit.solvers import Budget, NativeSolver
from softsplit.solvers.likelihood.descent import descend as descend_likely
from softsplit.solvers.native.program import follow
from softsplit.training.compile_together import HALVES
from softsplit.training.multistart import multistart
from softsplit.training.tiny_problems import tiny_likelihood, tiny_problem

def signatures():
    modules = [m for name, m in sys.modules.items() if name.startswith("softsplit")]
    found = [d for m in modules for d in vars(m).values() if isinstance(d, Dispatcher)]
    return {(d.__name__, str(s)) for d in found for s in d.signatures}

follow._cache = descend_likely._cache = NullCache()
for loss, problem in (("cost", tiny_problem(2, 1)), ("log", tiny_likelihood(3, 2, counting()))):
    HALVES[loss].first()
    HALVES[loss].second()
    ready = signatures()
    multistart(problem, NativeSolver(), n_starts=1, budget=Budget(max_iter=50))
    print(*{name for name, _ in signatures() - ready})
"""


def test_the_two_halves_are_all_that_a_descent_calls():
    command = [sys.executable, "-c", PARTS_ARE_READY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    by_cost, by_likelihood = (set(line.split()) for line in done.stdout.split("\n")[:2])
    assert "follow" in by_cost and not by_cost & PARTS
    assert not by_likelihood & (PARTS | {"descend"})


class Recorder:
    """Stands for the compiler, and for the other process."""

    def __init__(self, monkeypatch, *, on_disk=False):
        self.calls = []
        self.fail = self.hang = False
        monkeypatch.setattr(module, "is_on_disk", lambda function: on_disk)
        parts = [partial(self.call, name) for name in ("first", "second", "whole")]
        monkeypatch.setitem(module.HALVES, "log", module.Halves(None, *parts))
        monkeypatch.setattr(subprocess, "Popen", self.start)
        monkeypatch.setattr(module, "parent_process", lambda: None)
        monkeypatch.setattr(module, "_n_cores", lambda: 2)

    def call(self, part):
        self.calls.append(part)
        if self.fail:
            raise KeyboardInterrupt

    def start(self, command, **options):
        self.calls.append("other")
        end = lambda: self.calls.append("killed")  # noqa: E731
        return SimpleNamespace(wait=self.wait, kill=end)

    def wait(self, patience=None):
        self.calls.append("waited")
        if patience is not None and self.hang:
            raise subprocess.TimeoutExpired("other", patience)

    def run(self):
        module._compile_together("log")
        return self.calls


def test_this_process_works_while_the_other_does(monkeypatch):
    calls = Recorder(monkeypatch).run()
    assert calls[:3] == ["other", "first", "waited"]


def test_nothing_is_done_where_it_was_done_before(monkeypatch):
    assert Recorder(monkeypatch, on_disk=True).run() == []


def test_an_interruption_leaves_no_process_behind(monkeypatch):
    recorder = Recorder(monkeypatch)
    recorder.fail = True
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    assert recorder.calls[-2:] == ["killed", "waited"]


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "executable", "/opt/spreadsheet"),
        (sys, "executable", None),
        (module, "parent_process", object),
        (module, "_n_cores", lambda: 1),
    ],
)
def test_no_process_is_started_where_it_may_do_harm(monkeypatch, owner, name, value):
    recorder = Recorder(monkeypatch)
    monkeypatch.setattr(owner, name, value)
    assert recorder.run() == []


@pytest.fixture
def usual_interruptions():
    """Started in the background, a process may ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_that_a_destructor_swallows_counts(usual_interruptions, monkeypatch):
    recorder = Recorder(monkeypatch)

    def swallow(part):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setitem(
        module.HALVES, "log", module.HALVES["log"]._replace(first=lambda: swallow("first"))
    )
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_process_that_hangs_is_given_up(monkeypatch):
    recorder = Recorder(monkeypatch)
    recorder.hang = True
    calls = recorder.run()
    assert calls == ["other", "first", "waited", "killed", "waited", "whole"]


def test_threads_compile_once(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "_done", set())
    monkeypatch.setattr(module, "_compile_together", lambda loss: calls.append(time.sleep(0.05)))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: compile_together(), range(8)))
    assert len(calls) == 1


def test_the_other_process_does_not_look_into_the_working_directory(tmp_path, monkeypatch):
    """A folder of data may hold a file that is named as a library."""
    (tmp_path / "numba.py").write_text("open('run', 'w').close()")
    (tmp_path / "softsplit.py").write_text("open('run', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "SECOND_HALF", "import softsplit.engines.samples")
    other = module._start_other("log")
    assert other is not None and other.wait(120) == 0
    assert not (tmp_path / "run").exists()


def test_without_another_process_this_one_goes_on(monkeypatch):
    recorder = Recorder(monkeypatch)

    def refuse(*arguments, **options):
        raise PermissionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert recorder.run() == ["first", "whole"]


def test_where_nobody_can_tell_nothing_is_compiled_ahead():
    assert is_on_disk(len) and is_on_disk(None)
