"""Work of other libraries that is left to itself when the time has ended."""

from __future__ import annotations

import threading

import pytest

from softsplit.support.parallel import TaskQueue


def while_time(work, tasks, workers, over):
    waiting = TaskQueue(tasks)
    for _ in range(workers):
        waiting.work(work)
    return waiting.results(over)


def test_all_results_come_back_where_there_is_time():
    assert while_time(lambda n: n * n, range(7), 3, lambda: False) == {n: n * n for n in range(7)}
    assert while_time(lambda n: n, [], 2, lambda: False) == {}


def test_what_is_late_is_left_to_itself_and_dropped():
    go_on, began, over = threading.Event(), threading.Event(), threading.Event()
    late = threading.Event()

    def work(task):
        if task == "long":
            began.set()
            assert go_on.wait(60)
            late.set()
        return task

    def ended():
        if began.wait(60):
            over.set()
        return over.is_set()

    found = while_time(work, ["short", "long", "never"], 1, ended)
    go_on.set()
    assert late.wait(60)
    assert found == {0: "short"}


def test_errors_and_interruptions_are_raised_here():
    def broken(task):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        while_time(broken, [1], 1, lambda: False)


def test_a_worker_that_is_not_ready_takes_nothing():
    never, taken = threading.Event(), []
    waiting = TaskQueue([1, 2, 3])
    waiting.work(lambda task: taken.append(task), lambda: never.wait(60) and None)
    waiting.work(lambda task: 10 * task)
    assert waiting.results(lambda: False) == {0: 10, 1: 20, 2: 30}
    never.set()
    assert taken == []
