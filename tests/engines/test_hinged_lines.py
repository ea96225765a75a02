"""Many rows that bend are held without their hinges: the same bits as an array of all columns."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.engines.compiled import ThreadedRows
from softsplit.engines.hinged import HingedLines
from softsplit.engines.outer import LOGARITHM
from softsplit.engines.samples import Samples
from softsplit.estimators.base import model_settings, profiled, training_run
from softsplit.estimators.training_rows import training_rows
from softsplit.support.hinged_table import HingedTable
from softsplit.support.row_budgets import ROWS, RowBudgets
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.preparation import prepare
from softsplit.training.run import train
from softsplit.tree.scaling import fit_scaling
from softsplit.variables import bent_matrix

N_ROWS, N_COLUMNS = ROWS.row_sums + 4_000, 5


@cache
def numbers(kind=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_COLUMNS)).astype(kind)
    X[:, 2] = np.rint(2 * X[:, 2])
    X[5] = X[6]
    X[::50, 1] = -0.0
    y = (X[:, 0] + np.abs(X[:, 1]) + rng.standard_normal(N_ROWS) > 0).astype(np.int64)
    return X, y


@cache
def both(kind=np.float64):
    """The rows of a table without hinges, and of the array of all its columns."""
    X, y = numbers(kind)
    weight = 1.0 + np.arange(N_ROWS) % 2
    table = bent_matrix(X, None, 3, weight).X
    assert isinstance(table, HingedTable)
    scaling = fit_scaling("standard", np.asarray(table), weight)
    known = y, 2, weight
    hinged = Samples.from_hinged(table, *known, scaling)
    dense = Samples.from_arrays(np.asarray(table), *known, scaling.transform, stay_single=True)
    assert isinstance(hinged.features, HingedLines) and isinstance(dense.features, np.ndarray)
    return table, hinged, dense


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_lines_have_the_bits_of_coded_and_scaled_rows(kind):
    _, hinged, dense = both(kind)
    assert hinged.features.dtype == dense.features.dtype == kind
    assert np.array_equal(np.asarray(hinged.features), dense.features)
    assert np.array_equal(hinged.mean, dense.mean)
    assert np.array_equal(hinged.weights, dense.weights)
    some = hinged.stratified(500), dense.stratified(500)
    assert np.array_equal(*(one.features for one in some))
    drawn = hinged.drawn(500), dense.drawn(500)
    assert np.array_equal(*(one.lines(np.array([1, 7, 3])) for one in drawn))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [None, np.array([0, 3, 4, 17])])
def test_sums_have_the_same_bits(kind, columns):
    _, hinged, dense = both(kind)
    rng = np.random.default_rng(1)
    n_columns = hinged.n_features if columns is None else len(columns)
    splits, table = rng.standard_normal((3, n_columns + 1)), rng.random((2, 4)) + 0.1
    found = [
        ThreadedRows(one, 1, columns).evaluate(splits, table, LOGARITHM, 2.0)
        for one in (hinged, dense)
    ]
    for part in ("value", "splits", "mass", "table"):
        assert np.array_equal(*(getattr(sums, part) for sums in found))
    assert found[0].value > 0


def fitted(rows, estimator):
    prepared = prepare(model_settings(estimator), rows)
    run = training_run(estimator).adapted(prepared, np.asarray)
    tree = fitted_tree(prepared, train(prepared, run).best, run.solver.zero_threshold)
    return prepared, profiled(tree, rows)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_tree_is_the_same(weighted):
    X, y = numbers()
    estimator = SoftTreeClassifier(random_state=0, n_starts=1, depth=2, points=False)
    weight = (np.arange(N_ROWS) % 40 > 0).astype(float) if weighted else None
    rows = training_rows(estimator, X, y, weight)
    assert isinstance(rows.X, HingedTable)
    own, tree = fitted(rows, estimator)
    other, dense = fitted(replace(rows, X=np.asarray(rows.X)), estimator)
    assert isinstance(own.problem.samples.features, HingedLines)
    assert isinstance(other.problem.samples.features, np.ndarray)
    assert np.array_equal(tree.parameters.splits, dense.parameters.splits)
    assert np.array_equal(tree.importances, dense.importances)
    assert np.array_equal(tree.profile.leaves, dense.profile.leaves)
    assert np.array_equal(tree.walk.counts, dense.walk.counts)
    assert np.any(tree.parameters.weights[own.coding.hinges])  # the effect of x1 bends


def test_a_choice_has_the_same_bits_whether_hinges_are_held_or_not(monkeypatch):
    X, y = (part[:600] for part in numbers())
    given = {"depths": (1,), "n_strengths": 3, "ridges": (1.0,), "cv": 2, "random_state": 0}
    held = SoftTreeClassifierCV(**given).fit(X, y)
    monkeypatch.setattr(RowBudgets, "held_hinges", 0)
    computed = SoftTreeClassifierCV(**given).fit(X, y)
    assert held.best_score_ == computed.best_score_
    np.testing.assert_array_equal(held.predict_proba(X), computed.predict_proba(X))


def test_preparing_rows_that_bend_takes_little_more_than_a_copy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40))
    y, estimator = (X[:, 0] > 0).astype(int), SoftTreeClassifier()
    tracemalloc.start()
    rows = training_rows(estimator, X, y, None)
    prepared = prepare(model_settings(estimator), rows)
    held, peak = (size / X.nbytes for size in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    assert prepared.problem.n_features == 4 * X.shape[1]
    assert held < 1.3  # the values in training order; all columns would be four
    assert peak < 2.5
