"""Plain methods of a report that are judged in a process of their own."""

from __future__ import annotations

import os
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
from softsplit.support.processes import Beside
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
def beside(rows):
    started = Beside.start([outputs.PLAIN_METHODS])
    yield started
    started.close()


def compare(left, right):
    for name in METHODS:
        assert left.baselines[name].complete
        np.testing.assert_array_equal(left.baselines[name].proba, right.baselines[name].proba)
        assert left.baselines[name].features == right.baselines[name].features


def test_figures_are_the_same_and_are_made_there(rows, tree, beside, monkeypatch):
    expected = walk_path(tree, rows, n_jobs=1).assessment

    class ThereAlone(assessment.WaitingTasks):
        def work(self, work, *ready):
            if ready:  # the process must be; this one takes no task
                super().work(work, *ready)

    monkeypatch.setattr(assessment, "WaitingTasks", ThereAlone)
    compare(walk_path(tree, rows, n_jobs=1, beside=beside).assessment, expected)


def test_a_process_that_dies_is_replaced_by_this_one(rows, tree, beside, monkeypatch):
    expected = walk_path(tree, rows, n_jobs=1).assessment
    monkeypatch.setattr(assessment, "train_beside", os._exit)
    compare(walk_path(tree, rows, n_jobs=2, beside=beside).assessment, expected)
    assert not beside.closed


def test_other_trees_are_looked_for_in_half_of_the_time_that_is_left(rows, tree, beside):
    given = []

    def alternatives(n, *, time_limit):
        given.append(time_limit)
        return Alternatives((), Alternative.of(tree, tree, 0.0, 0.0), n)

    search = SimpleNamespace(alternatives=alternatives)
    limit = 1e6
    for process in (beside, None):
        walk_path(tree, rows, n_jobs=1, beside=process, search=search, time_limit=limit)
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
    monkeypatch.setattr(outputs.Beside, "start", lambda modules: started)
    context = SimpleNamespace(call_on_close=lambda close: close())
    table = SimpleNamespace(matrix=np.zeros(shape), y=np.zeros(shape[0]))
    found = outputs.plain_methods_beside(context, table, jobs)
    assert found is (started if starts else None) and closed == [True] * starts
