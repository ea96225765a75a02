"""Plain methods of a report that are judged in a process of their own."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import BrokenExecutor, Executor, Future
from types import SimpleNamespace

import numpy as np
import pytest

from softsplit.cli import outputs
from softsplit.data.files import Table
from softsplit.data.learning import learn
from softsplit.estimators.alternatives import Alternative, Alternatives
from softsplit.report import FitOptions, comparison, fit_tree, walk_path
from softsplit.report.comparison import ComparisonOptions
from softsplit.selection import assessment
from softsplit.support.processes import end, process_pool
from softsplit.support.row_budgets import ROWS
from tables import people

METHODS = ("majority", "logistic", "cart", "boosting")


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=2, folds=2))
    return learn(Table("people", people().astype(str)), "risk")


@pytest.fixture
def tree(rows):
    return fit_tree(rows, FitOptions(depth=1, strength=0.05)).tree


@pytest.fixture
def worker():
    started = process_pool(1, outputs.load_baselines)
    yield started
    end(started)


@pytest.mark.parametrize("dies", [False, True])
def test_figures_are_the_same_with_a_worker_and_where_it_dies(rows, tree, worker, dies):
    expected = walk_path(tree, rows, resamples=False, n_jobs=1).assessment
    if dies:
        assert isinstance(worker.submit(os._exit, 3).exception(), BrokenExecutor)
    made = walk_path(tree, rows, resamples=False, n_jobs=2, worker=worker).assessment
    for name in METHODS:
        assert made.baselines[name].complete
        assert made.baselines[name].features == expected.baselines[name].features
        proba = made.baselines[name].proba
        np.testing.assert_array_equal(proba, expected.baselines[name].proba)


class Queue(Executor):
    """A worker that begins with the first tasks alone."""

    def __init__(self, begun, error=None):
        self.begun, self.error, self.futures = begun, error, []

    def submit(self, function, *arguments):
        future = Future()
        self.futures.append(future)
        if len(self.futures) <= self.begun:
            future.set_running_or_notify_cancel()
            if self.error is None:
                future.set_result(function(*arguments))
            else:
                future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [None, BrokenExecutor("died")])
def test_this_process_does_what_the_worker_has_not_done(rows, tree, error):
    queue = Queue(3, error)
    made = walk_path(tree, rows, resamples=False, n_jobs=1, worker=queue).assessment
    assert all(made.baselines[name].complete for name in METHODS)
    assert [future.cancelled() for future in queue.futures] == [False] * 3 + [True] * 5


def interrupted_by(error, tree):
    """A search for other trees in which Ctrl-C comes."""

    def alternatives(n, *, time_limit):
        if error is not None:
            raise error
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n, interrupted=True)

    return SimpleNamespace(alternatives=alternatives)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()])
def test_nothing_works_on_after_ctrl_c(rows, tree, error):
    queue, search = Queue(0), interrupted_by(error, tree)
    path = walk_path(tree, rows, resamples=False, n_jobs=2, worker=queue, search=search)
    assert path.interrupted and all(future.cancelled() for future in queue.futures)
    assert not any(path.assessment.baselines[name].complete for name in METHODS)


def test_no_warning_of_another_method_is_shown(rows, tree, monkeypatch):
    train = assessment.train_baseline

    def warning(*arguments):
        where = {"filename": "_base.py", "lineno": 1, "module": "sklearn.svm._base"}
        warnings.warn_explicit("did not converge", UserWarning, **where)
        return train(*arguments)

    monkeypatch.setattr(assessment, "train_baseline", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = walk_path(tree, rows, resamples=False).assessment
    assert all(made.baselines[name].complete for name in METHODS)


def test_other_trees_are_looked_for_in_half_of_the_time_that_is_left(rows, tree):
    given = []

    def alternatives(n, *, time_limit):
        given.append(time_limit)
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n)

    search = SimpleNamespace(alternatives=alternatives)
    limit = 1e6
    for process in (Queue(0), None):
        walk_path(
            tree, rows, resamples=False, n_jobs=1, worker=process, search=search, time_limit=limit
        )
    assert given[0] <= limit / 2 < given[1] <= limit


@pytest.mark.parametrize(
    ("jobs", "shape", "starts"),
    [
        (None, (1500, 30), True),
        (2, (1500, 30), True),
        (1, (1500, 30), False),
        (None, (150, 4), False),
        (None, (ROWS.held_out, 30), False),
    ],
)
def test_a_command_starts_it_where_it_pays(monkeypatch, jobs, shape, starts):
    ended = []
    started = SimpleNamespace(submit=lambda _: None)
    monkeypatch.setattr(outputs, "may_start_processes", lambda: True)
    monkeypatch.setattr(outputs, "process_pool", lambda *_: started)
    monkeypatch.setattr(outputs, "end", ended.append)
    context = SimpleNamespace(call_on_close=lambda close: close())
    table = SimpleNamespace(matrix=np.zeros(shape), y=np.zeros(shape[0]))
    assert outputs.baseline_worker(context, table, jobs) is (started if starts else None)
    assert ended == [started] * starts
