"""Plain methods of a report that are judged in a process of their own."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor

import numpy as np
import pytest

from softsplit.cli import outputs
from softsplit.data.files import Table
from softsplit.data.learning import learn
from softsplit.report import FitOptions, comparison, fit_tree, walk_path
from softsplit.report.comparison import ComparisonOptions
from softsplit.support.processes import end, process_pool
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
    expected = walk_path(tree, rows, n_jobs=1).assessment
    if dies:
        assert isinstance(worker.submit(os._exit, 3).exception(), BrokenExecutor)
    made = walk_path(tree, rows, n_jobs=2, worker=worker).assessment
    for name in METHODS:
        assert made.baselines[name].complete
        assert made.baselines[name].features == expected.baselines[name].features
        proba = made.baselines[name].proba
        np.testing.assert_array_equal(proba, expected.baselines[name].proba)
