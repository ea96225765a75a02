"""Calls that run in another process of the same Python."""

from __future__ import annotations

import os
import subprocess
import sys
from operator import methodcaller, truediv

import pytest

from softsplit.support import processes
from softsplit.support.processes import ProcessEnded, WorkerProcess, start_python


@pytest.fixture
def beside(monkeypatch):
    monkeypatch.setattr(processes, "parent_process", lambda: None)
    monkeypatch.setattr(processes, "n_cores", lambda: 2)
    started = WorkerProcess.start(["operator", "subprocess"])
    assert started is not None
    yield started
    started.close()


def test_calls_run_elsewhere_and_errors_come_back(beside):
    assert beside.call(truediv, 1, 4) == 0.25
    assert beside.call(os.getpid) != os.getpid()
    with pytest.raises(ZeroDivisionError):
        beside.call(truediv, 1, 0)
    assert beside.call(print, "what is printed there") is None
    assert beside.call(truediv, 1, 2) == 0.5


def test_a_process_that_ends_is_noticed(beside):
    with pytest.raises(ProcessEnded):
        beside.call(os._exit, 3)
    with pytest.raises(ProcessEnded):
        beside.call(truediv, 1, 4)
    assert not beside.closed


class Unreadable:
    """Sent without an error, and read with one."""

    def __init__(self, kind):
        self.kind = kind

    def __reduce__(self):
        return UNREADABLE[self.kind]


UNREADABLE = {
    "value": (truediv, (1, 0)),
    "memory": (bytearray, (sys.maxsize,)),
    "module": (__import__, ("there_is_no_such_module",)),
    "attribute": (methodcaller("no_such_method"), (1,)),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_call_that_cannot_be_read_there_ends_the_process(beside, kind):
    with pytest.raises(ProcessEnded):
        beside.call(repr, Unreadable(kind))
    assert not beside.closed


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_answer_that_cannot_be_read_here_ends_the_process(beside, kind):
    expression = "type('Unreadable', (), {'__reduce__': lambda self: reduced})()"
    with pytest.raises(ProcessEnded):
        beside.call(eval, expression, {"reduced": UNREADABLE[kind]})
    with pytest.raises(ProcessEnded):
        beside.call(truediv, 1, 4)


def test_arguments_that_cannot_be_sent_end_the_process(beside):
    with pytest.raises(ProcessEnded):
        beside.call(repr, "x" * 100_000, lambda: None)
    with pytest.raises(ProcessEnded):
        beside.call(truediv, 1, 4)


def test_a_closed_process_is_gone(beside):
    beside.close()
    beside.wait()
    with pytest.raises(ProcessEnded):
        beside.call(truediv, 1, 4)
    assert beside.closed


def test_a_module_that_cannot_be_imported_ends_the_process(monkeypatch):
    monkeypatch.setattr(processes, "may_start_processes", lambda: True)
    started = WorkerProcess.start(["there.is.no.such.module"])
    started.wait()
    with pytest.raises(ProcessEnded):
        started.call(truediv, 1, 4)
    started.close()


def test_the_process_ends_with_the_one_that_started_it():
    code = "from softsplit.support.processes import serve; serve([])"
    process = start_python(code, pipes=subprocess.PIPE)
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "executable", "/opt/spreadsheet"),
        (processes, "parent_process", object),
        (processes, "n_cores", lambda: 1),
        (processes, "start_python", lambda *_, **__: None),
    ],
)
def test_where_no_process_can_be_started_there_is_none(monkeypatch, owner, name, value):
    monkeypatch.setattr(processes, "parent_process", lambda: None)
    monkeypatch.setattr(processes, "n_cores", lambda: 2)
    monkeypatch.setattr(owner, name, value)
    assert WorkerProcess.start(["operator"]) is None
