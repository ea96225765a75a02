"""Wide sparse matrices: a working set of columns, and sparse products for all others."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    loads_model,
    strength_path,
)
from softsplit.engines.sparse import SparseColumns
from softsplit.formulations.model_settings import ModelSettings
from softsplit.persistence import SKOPS_TYPES
from softsplit.problem.optimality import kkt
from softsplit.solvers.elimination import working_set
from softsplit.solvers.elimination.working_set import moved, newton_steps, slopes_at
from softsplit.solvers.score_statistics import group_slopes
from softsplit.support import inputs
from softsplit.training.preparation import prepare
from softsplit.training.rows import Rows
from softsplit.training.wide import WideRows
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import scaled_rows

QUICK = {"depth": 2, "n_starts": 2, "random_state": 0}


def words(n_rows=600, n_columns=80, density=0.1, seed=0):
    """Word counts; a row is of class 1 if column 3 outweighs 5, more so with column 7."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(n_rows, n_columns, density, random_state=rng)
    X = ((X > 0.5).astype(float) + (X > 0).astype(float)).tolil()
    for j in (3, 5, 7):
        X[:, [j]] = rng.poisson(0.8, (n_rows, 1)).astype(float)
    X = X.tocsr()
    score = X @ np.bincount([3, 5, 7], [2.0, -2.0, 1.0], n_columns)
    return X, (score + rng.logistic(0, 0.5, n_rows) > 0.5).astype(int)


@pytest.fixture
def stays_sparse(monkeypatch):
    """Every sparse matrix is one that is not made dense."""
    monkeypatch.setattr(inputs, "DENSE_COLUMNS", 1)


def prepared_all(X, y, kind, **settings):
    """The problem on all columns, dense."""
    rows = Rows(X.toarray(), y, np.ones(len(y)), np.unique(y))
    given = {"loss": "log", "scale": kind, "local_strength": 0.0, "global_strength": 0.0}
    made = ModelSettings(**{**given, "depth": 2, "penalty": "count", **settings})
    return rows, prepare(made, rows)


def random_tree(problem, used, seed=0):
    """A tree that uses some of the columns."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((problem.n_features, problem.topology.n_branches))
    weights[used] = rng.normal(0, 0.4, (len(used), weights.shape[1]))
    leaves = rng.dirichlet(np.ones(problem.n_groups), problem.topology.n_leaves).T
    centres = weights.T @ np.full(problem.n_features, 0.5) / problem.n_features
    return TreeParameters(weights, centres, leaves)


@pytest.mark.parametrize("kind", ["minmax", "standard", "quantile", "none"])
def test_slopes_of_all_columns_are_those_of_the_dense_problem(kind):
    X, y = words()
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    dense = Rows(X.toarray(), y, weight, np.unique(y))
    settings = ModelSettings(
        scale=kind, penalty="l0", local_strength=0.0, global_strength=0.0, depth=2, ridge=0.0
    )
    prepared = prepare(settings, dense)
    problem, tree = prepared.problem, random_tree(prepared.problem, [3, 5, 11])
    scaled = scaled_rows(prepared.scaling, dense.X).T
    slopes, _ = slopes_at(tree, problem.steepness, scaled, y, weight)
    unit = problem.steepness / problem.n_features
    found = unit * SparseColumns.scaled(prepared.scaling.kind, X, weight).products(slopes)
    expected = problem.evaluate_cost(tree).weights
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_gains_are_those_of_a_newton_step_in_coefficient_and_threshold():
    X, y = words(200, 12)
    weight = np.random.default_rng(2).random(len(y)) + 0.5
    slopes, curvatures = group_slopes(y, weight)
    steps = newton_steps(SparseColumns.plain(X), slopes, curvatures)
    for j, column in enumerate(X.toarray().T):
        rows = np.column_stack([column, np.ones(len(y))])
        pull, bend = rows.T @ slopes[:, 0], rows.T @ (rows * curvatures)
        step = -np.linalg.solve(bend, pull)
        assert_allclose(steps.gains[j, 0], -0.5 * pull @ step, rtol=1e-9)
        assert_allclose(steps.change[j, 0], step[0], rtol=1e-9)


def test_a_working_set_of_all_columns_gives_the_tree_of_dense_rows(stays_sparse):
    X, y = words()
    dense = SoftTreeClassifier(**QUICK).fit(X.toarray(), y)
    sparse = SoftTreeClassifier(**QUICK).fit(X, y)
    assert sparse.screening_.complete and sparse.screening_.rounds == 0
    assert len(sparse.screening_.columns) == X.shape[1]
    assert_array_equal(sparse.coef_, dense.coef_)
    assert_array_equal(sparse.selected_features_, dense.selected_features_)
    assert_array_equal(sparse.feature_importances_, dense.feature_importances_)
    assert_array_equal(sparse.predict_proba(X), dense.predict_proba(X.toarray()))
    assert sparse.global_sparsity_ == dense.global_sparsity_
    chosen = SoftTreeClassifierCV(random_state=0, cv=3).fit(X, y)
    plain = SoftTreeClassifierCV(random_state=0, cv=3).fit(X.toarray(), y)
    assert_array_equal(chosen.predict_proba(X), plain.predict_proba(X.toarray()))
    assert chosen.best_params_ == plain.best_params_


@pytest.mark.parametrize("penalty", ["l1", "l0"])
def test_the_conditions_of_all_columns_hold_in_the_end(stays_sparse, monkeypatch, penalty):
    monkeypatch.setattr(working_set, "FIRST_COLUMNS", 4)
    X, y = words()
    tree = SoftTreeClassifier(
        **QUICK, penalty=penalty, local_strength=2.0, global_strength=4.0
    ).fit(X, y)
    assert tree.screening_.complete and 3 in tree.selected_features_
    assert len(tree.screening_.columns) < X.shape[1]
    strengths = {"local_strength": 2.0, "global_strength": 4.0}
    _, whole = prepared_all(X, y, "standard", penalty=penalty, **strengths)
    best = moved(tree.solution_.parameters, tree.screening_.columns, np.arange(X.shape[1]))
    # A threshold is in units of the number of columns, and so is its derivative.
    own = tree.solution_.kkt.residual * X.shape[1] / len(tree.screening_.columns)
    assert kkt(whole.problem, best).residual <= max(1.001 * own, 1.001 * tree.tol)
    assert whole.problem.objective(best) == pytest.approx(tree.objective_, rel=1e-9)


def test_folds_choose_columns_without_the_rows_that_they_leave_out():
    X, y = words(300, 400, 0.05)
    rows = WideRows(X, y, np.ones(len(y)), np.unique(y))
    train, test = np.arange(200), np.arange(200, 300)
    own, other = rows.fold(train, test)
    labels = y.copy()
    labels[test] = 1 - labels[test]
    changed = scipy.sparse.vstack([X[train], 0 * X[test]]).tocsr()
    again, _ = WideRows(changed, labels, np.ones(len(y)), np.unique(y)).fold(train, test)
    assert_array_equal(own.within.columns, again.within.columns)
    assert_array_equal(own.X, X[train][:, own.within.columns].toarray())
    assert_array_equal(other.X, X[test][:, own.within.columns].toarray())


def test_nothing_as_large_as_the_dense_matrix_is_made():
    X, y = words(1500, 12_000, 0.002)
    tracemalloc.start()
    tree = SoftTreeClassifier(**{**QUICK, "n_starts": 1}).fit(X, y)
    answers = tree.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * 8 * X.shape[0] * X.shape[1]
    assert np.mean(answers == y) > 0.8
    assert {3, 5} <= set(tree.selected_features_)
    assert tree.n_features_in_ == len(tree.feature_importances_) == X.shape[1]


def test_all_that_is_asked_of_a_fitted_tree_takes_sparse_rows(tmp_path):
    X, y = words(300, 1500, 0.01)
    tree = SoftTreeClassifier(**QUICK, class_weight="balanced").fit(X, y)
    proba = tree.predict_proba(X)
    for given in (X.tocsc(), X.tocoo(), scipy.sparse.csr_matrix(X), X.toarray()):
        assert_array_equal(tree.predict_proba(given), proba)
    loaded = loads_model(dumps_model(tree))
    assert_array_equal(loaded.predict_proba(X), proba)
    skops.io.dump(tree, tmp_path / "tree.skops")
    assert_array_equal(
        skops.io.load(tmp_path / "tree.skops", trusted=[*SKOPS_TYPES]).predict_proba(X), proba
    )
    assert "x3" in str(tree.explain(X[[0]]))
    assert tree.to_hard_tree().agreement(X) > 0.5
    assert_allclose(tree.simplify(X).predict_proba(X), proba, atol=1e-8)
    assert tree.leaf_proba(X).shape[0] == len(y)
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=[f"w{j}" for j in range(X.shape[1])])
    named = clone(tree).fit(frame, y)
    assert_array_equal(named.predict_proba(frame), proba)
    assert_array_equal(named.selected_features_, tree.selected_features_)
    assert named.feature_names_in_[3] == "w3" and "w3" in str(named.explain(frame.iloc[0]))
    again = clone(tree).fit(X.toarray()[:, :20], y)
    assert not hasattr(again, "screening_") and again.n_features_in_ == 20
    path = strength_path(X, y, estimator=SoftTreeClassifier(**QUICK), n_points=3)
    assert path[0].classifier.predict_proba(X).shape == proba.shape


def test_what_cannot_be_trained_on_is_told_in_a_sentence(monkeypatch):
    X, y = words(50, 2000, 0.01)
    missing, infinite = X.copy(), X.copy()
    missing.data[0], infinite.data[0] = np.nan, np.inf
    with pytest.raises(
        ValueError, match=r"^X is sparse and holds a missing value in column \d+, row 0; "
    ):
        SoftTreeClassifier().fit(missing, y)
    with pytest.raises(ValueError, match="holds infinity in column"):
        SoftTreeClassifier().fit(infinite, y)
    monkeypatch.setattr("softsplit.estimators.training_rows.MOST_CELLS", 1000)
    with pytest.raises(ValueError, match="too many to make it dense; loss='log' trains"):
        SoftTreeClassifier(loss="cost").fit(X, y)
