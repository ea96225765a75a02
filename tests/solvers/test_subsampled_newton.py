"""The last descent over many rows: Newton steps with the Hessian of a sample."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likelihood_cases import learnable_rows, problem_of
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage, first_of_each_group
from softsplit.solvers.elimination.race import grown, single_leaf
from softsplit.solvers.elimination.second_order import row_function
from softsplit.solvers.elimination.subsampled_newton import newton_on_sample


@pytest.fixture(scope="module")
def begun():
    """A tree of two levels that has taken some steps on 4,000 rows, and is near a minimum."""
    X, y = learnable_rows(0, n_rows=4000, n_features=6, n_classes=3)
    problem = problem_of(X, y, depth=2, ridge=0.1)
    descents = RowDescents(problem, Budget(), problem.rows.sample())
    tree = grown(single_leaf(descents.rows), descents.rows)
    tree = grown(tree, descents.rows)
    tree, _, _ = descents.descend(tree, Shrinkage(0.1), 60, 0.0)
    return descents, tree


@pytest.mark.parametrize("rows", [4000, 1000])
def test_it_ends_where_lbfgs_ends_after_many_more_steps(begun, rows):
    descents, tree = begun
    known, lowest, _ = descents.descend(tree, Shrinkage(0.1), 3000, 1e-13)
    function = row_function(tree, descents.rows, Shrinkage(0.1), tree.free)
    sample = first_of_each_group(descents.rows, rows, 100)
    end = newton_on_sample(function, tree, sample, 0.1, Budget(), max_iter=200, decrease=1e-12)
    assert end.over and end.steps < 120
    assert end.value <= lowest * (1 + 1e-6)
    assert np.abs(function(end.tree.vector)[1]).max() < 0.02  # of sums over 4,000 rows
    assert known.shape == end.tree.shape


def test_a_sample_keeps_class_totals_and_rare_classes(begun):
    rows = begun[0].rows
    some = first_of_each_group(rows, 400, 150)
    totals = [np.add.reduceat(one.weights, one.starts[:-1]) for one in (rows, some)]
    assert_allclose(totals[1], totals[0], rtol=1e-12)
    assert np.all(np.diff(some.starts) >= 150) and len(some.weights) < 600
    for k, (low, high) in enumerate(zip(some.starts[:-1], some.starts[1:], strict=True)):
        first = rows.features[:, rows.starts[k] : rows.starts[k] + high - low]
        assert_array_equal(some.features[:, low:high], first)
    assert first_of_each_group(rows, 10**6, 1) is rows
