"""Plain methods of a report that are judged in a process of their own."""

from __future__ import annotations

import os
import threading
import warnings
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
from softsplit.support import processes
from softsplit.support.processes import WorkerProcess
from softsplit.support.row_budgets import ROWS
from tables import people

METHODS = ("majority", "logistic", "cart", "boosting")


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=2, folds=2))
    monkeypatch.setattr(processes, "may_start_processes", lambda: True)
    return learn(Table("people", people().astype(str)), "risk")


@pytest.fixture
def tree(rows):
    return fit_tree(rows, FitOptions(depth=1, strength=0.05)).tree


@pytest.fixture
def worker(rows):
    started = WorkerProcess.start([outputs.BASELINES_MODULE])
    yield started
    started.close()


def compare(left, right):
    for name in METHODS:
        assert left.baselines[name].complete
        np.testing.assert_array_equal(left.baselines[name].proba, right.baselines[name].proba)
        assert left.baselines[name].features == right.baselines[name].features


class ThereAlone(assessment.TaskQueue):
    def work(self, work, *ready):
        if ready:  # the process must be; this one takes no task
            super().work(work, *ready)


class Ends:
    """In the place of a function: it ends the process that reads it."""

    def __reduce__(self):
        return os._exit, (3,)


def test_figures_are_the_same_and_are_made_there(rows, tree, worker, monkeypatch):
    expected = walk_path(tree, rows, n_jobs=1).assessment
    monkeypatch.setattr(assessment, "TaskQueue", ThereAlone)
    compare(walk_path(tree, rows, n_jobs=1, worker=worker).assessment, expected)


def test_a_process_that_dies_is_replaced_by_this_one(rows, tree, worker, monkeypatch):
    expected = walk_path(tree, rows, n_jobs=1).assessment
    monkeypatch.setattr(assessment, "TaskQueue", ThereAlone)
    monkeypatch.setattr(assessment, "train_in_worker", Ends())
    compare(walk_path(tree, rows, n_jobs=2, worker=worker).assessment, expected)
    assert not worker.closed


def interrupted_by(error, tree):
    """A search for other trees in which Ctrl-C comes."""

    def alternatives(n, *, time_limit):
        if error is not None:
            raise error
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n, interrupted=True)

    return SimpleNamespace(alternatives=alternatives)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()])
def test_nothing_works_on_after_ctrl_c(rows, tree, worker, monkeypatch, error):
    made, here = [], []

    class Noted(assessment.TaskQueue):
        def __init__(self, tasks):
            super().__init__(tasks)
            made.append(self)

        def work(self, work, *ready):
            if ready:  # that of the other process, which must not be ready before Ctrl-C
                super().work(work, *ready)
            else:
                here.append(work)

    monkeypatch.setattr(assessment, "TaskQueue", Noted)
    search = interrupted_by(error, tree)
    path = walk_path(tree, rows, n_jobs=2, worker=worker, search=search)
    assert path.interrupted and worker.closed and here == []
    assert [waiting.closed for waiting in made] == [True]


def test_no_warning_of_another_method_is_shown_while_trees_are_judged(
    rows, tree, worker, monkeypatch
):
    train, fell_back = assessment.train_baseline, threading.Event()

    def warning(*arguments):
        where = {"filename": "_base.py", "lineno": 1, "module": "sklearn.svm._base"}
        warnings.warn_explicit("did not converge", UserWarning, **where)
        fell_back.set()
        return train(*arguments)

    def alternatives(n, *, time_limit):  # the other process ends before the trees are done
        assert fell_back.wait(60)
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n)

    monkeypatch.setattr(assessment, "train_baseline", warning)
    monkeypatch.setattr(assessment, "train_in_worker", Ends())
    search = SimpleNamespace(alternatives=alternatives)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = walk_path(tree, rows, worker=worker, search=search).assessment
    assert all(found.baselines[name].complete for name in METHODS)


def test_other_trees_are_looked_for_in_half_of_the_time_that_is_left(rows, tree, worker):
    given = []

    def alternatives(n, *, time_limit):
        given.append(time_limit)
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n)

    search = SimpleNamespace(alternatives=alternatives)
    limit = 1e6
    for process in (worker, None):
        walk_path(tree, rows, n_jobs=1, worker=process, search=search, time_limit=limit)
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
    closed = []
    started = SimpleNamespace(close=lambda: closed.append(True))
    monkeypatch.setattr(outputs.WorkerProcess, "start", lambda modules: started)
    context = SimpleNamespace(call_on_close=lambda close: close())
    table = SimpleNamespace(matrix=np.zeros(shape), y=np.zeros(shape[0]))
    found = outputs.baseline_worker(context, table, jobs)
    assert found is (started if starts else None) and closed == [True] * starts
