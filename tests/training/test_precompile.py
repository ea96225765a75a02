"""Two processes compile what a fit needs; a third one, which nobody waits for, all the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from types import SimpleNamespace

import pytest

from softsplit.support import processes
from softsplit.training import precompile as module
from softsplit.training.precompile import (
    SharedJobs,
    compile_everything,
    compile_the_rest,
    compile_together,
)


class Recorder:
    """Stands for the compiler, and for other processes."""

    def __init__(self, monkeypatch, folder):
        self.calls = []
        self.jobs = SharedJobs(folder, "now")
        self.units = {name: lambda name=name: self.call(name) for name in ("a", "b", "rest")}
        monkeypatch.setattr(module, "_shared_jobs", lambda: self.jobs)
        monkeypatch.setattr(module, "UNITS", self.units)
        monkeypatch.setattr(module, "UNITS_OF_LOSS", {"log": ("a", "b")})
        monkeypatch.setattr(module, "_done", set())
        monkeypatch.setattr(subprocess, "Popen", self.start)
        monkeypatch.setattr(processes, "parent_process", lambda: None)
        monkeypatch.setattr(processes, "n_cores", lambda: 2)
        monkeypatch.delenv(module.SWITCH, raising=False)

    def call(self, unit):
        self.calls.append(unit)

    def start(self, command, **options):
        self.calls.append("finisher" if module.DETACH in command else "helper")
        return SimpleNamespace(
            wait=lambda: self.calls.append("waited"),
            kill=lambda: self.calls.append("killed"),
            poll=lambda: 0,
        )

    def run(self):
        compile_together("log")
        return self.calls


@pytest.fixture
def recorder(monkeypatch, tmp_path):
    return Recorder(monkeypatch, tmp_path)


TWO, ENDED = ["helper"] * 2, ["killed", "waited"] * 2


def test_this_process_does_what_the_others_have_left(recorder):
    assert recorder.run()[:8] == [*TWO, "a", "b", *ENDED]


def test_units_of_many_rows_are_compiled_with_those_of_the_loss(recorder, monkeypatch, caplog):
    monkeypatch.setattr(module.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    compile_together("log")
    recorder.calls.clear()
    compile_together("log", "rest")
    compile_together("log", "rest")
    assert recorder.calls[:7] == [*TWO, "rest", *ENDED]
    assert recorder.calls[7:] == []  # nothing is left for a third process
    assert "about 5 seconds" in caplog.messages[-1]


def test_all_the_rest_is_left_to_a_process_that_is_not_waited_for(recorder):
    assert recorder.run()[8:] == ["finisher", "waited"]  # for the one that starts it
    assert "rest" not in recorder.calls
    compile_the_rest()
    assert recorder.calls[-1] == "rest" and all(map(recorder.jobs.is_done, recorder.units))


def test_nothing_is_done_where_it_was_done_before(recorder, monkeypatch):
    for unit in ("a", "b", "rest"):
        recorder.jobs.mark_done(unit)
    assert recorder.run() == []


def test_what_is_left_is_begun_once(recorder):
    for unit in ("a", "b"):
        recorder.jobs.mark_done(unit)
    with recorder.jobs.lock("the-rest"):  # somebody is at it
        assert recorder.run() == []


def test_nothing_is_compiled_ahead_where_that_is_not_wanted(recorder, monkeypatch):
    monkeypatch.setenv(module.SWITCH, "0")
    assert recorder.run() == [*TWO, "a", "b", *ENDED]


def test_what_cannot_be_compiled_ahead_is_not_tried_for_ever(recorder):
    def fail():
        raise ValueError

    recorder.units["a"] = fail
    compile_the_rest()
    assert recorder.calls == ["b", "rest"] and recorder.jobs.is_done("a")


def test_everything_at_once(recorder, tmp_path):
    assert compile_everything() == tmp_path
    assert recorder.calls == [*TWO, "a", "b", "rest", *ENDED]


def test_an_interruption_leaves_no_process_behind(recorder):
    def interrupt():
        raise KeyboardInterrupt

    recorder.units["a"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    assert recorder.calls == [*TWO, *ENDED]


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "executable", "/opt/spreadsheet"),
        (sys, "executable", None),
        (processes, "parent_process", object),
        (processes, "n_cores", lambda: 1),
        (module, "_shared_jobs", lambda: None),
    ],
)
def test_no_process_is_started_where_it_may_do_harm(recorder, monkeypatch, owner, name, value):
    monkeypatch.setattr(owner, name, value)
    assert recorder.run() == []


@pytest.fixture
def usual_interruptions():
    """Started in the background, a process may ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_that_a_destructor_swallows_counts(usual_interruptions, recorder):
    def swallow():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    recorder.units["a"] = swallow
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_threads_compile_once(recorder, monkeypatch):
    calls = []
    monkeypatch.setattr(module, "_compile", lambda *_: calls.append(time.sleep(0.05)))
    together = Barrier(8)

    def one(_):
        together.wait()
        compile_together("log")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    assert len(calls) == 1


def test_the_other_process_does_not_look_into_the_working_directory(tmp_path, monkeypatch):
    """A folder of data may hold a file that is named as a library."""
    (tmp_path / "numba.py").write_text("open('run', 'w').close()")
    (tmp_path / "softsplit.py").write_text("open('run', 'w').close()")
    monkeypatch.chdir(tmp_path)
    other = processes.start_python("import softsplit.engines.samples")
    assert other is not None and other.wait(120) == 0
    assert not (tmp_path / "run").exists()


def test_without_another_process_this_one_goes_on(recorder, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert recorder.run() == ["a", "b"]
