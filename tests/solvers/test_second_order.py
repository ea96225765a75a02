"""Second derivatives of the log-loss against differences of the first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likelihood_cases import learnable_rows, problem_of, random_problem
from softsplit.problem.penalties import PenaltyPair, exponential, linear, logarithmic
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage, StandardisedRows, first_of_each_group
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.race import grown, single_leaf
from softsplit.solvers.elimination.second_order import (
    differenced_hessian,
    hessian,
    of_parameters,
    row_function,
)
from softsplit.solvers.elimination.subsampled_newton import newton_on_sample
from softsplit.solvers.elimination.support_tree import SupportTree


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_all_second_derivatives(depth):
    rng = np.random.default_rng(depth)
    n_rows, n_columns, n_classes, n_branches = 500, 5, 3, 2**depth - 1
    starts = np.array([0, 200, 207, n_rows])
    rows = StandardisedRows(
        rng.standard_normal((n_columns, n_rows)), starts, rng.uniform(0.5, 2.0, n_rows),
        np.array([0.2, 0.3, 0.5]),
    )  # fmt: skip
    mask, saturated = rng.random((n_branches, n_columns)) < 0.6, np.zeros(n_branches, dtype=bool)
    mask[-1], saturated[-1] = depth == 1, depth > 1
    splits = rng.standard_normal((n_branches, n_columns + 1))
    splits[:, :-1] *= mask
    leaves = rng.standard_normal((n_classes, n_branches + 1))
    tree = SupportTree(splits, leaves, np.arange(n_columns), mask, saturated)
    whole = row_function(tree, rows, Shrinkage(0.7), tree.free)
    function = of_parameters(tree.vector, np.flatnonzero(tree.free), whole)
    expected = differenced_hessian(function, tree.vector[tree.free])
    found = hessian(tree, rows, 0.7)
    assert_allclose(found, expected, atol=1e-7 * np.max(np.abs(expected)))


@pytest.mark.parametrize("surrogate", [linear(), exponential(), logarithmic(0.1)], ids=str)
def test_second_derivatives_on_a_face_of_the_penalties(surrogate):
    """With tied entries and zeros."""
    problem, tree = random_problem(4, depth=2, n_features=4, n_classes=3, n_rows=80)
    descents = RowDescents(problem, Budget(), problem.samples)
    start = SupportTree.of(tree, problem)
    penalties = PenaltyPair.of(surrogate, 0.3, 0.7)
    steps = Penalised(descents, start, penalties, 0.4)
    x = start.vector
    weights = steps.weights(x)
    weights[0], weights[1] = 0.0, [-0.5, 0.5, 0.1]
    owner, signs, _ = steps._face(x)
    moving = owner >= 0
    values = np.zeros(owner.max() + 1)
    values[owner[moving]] = signs[moving] * x[moving]

    def total(values):
        point = x.copy()
        point[moving] = signs[moving] * values[owner[moving]]
        value, gradient = steps.smooth(point)
        steps.weights(gradient)[...] += penalties.gradient(steps.weights(point))
        return value, np.bincount(owner[moving], signs[moving] * gradient[moving])

    expected = differenced_hessian(total, values)
    found = steps._hessian(x, owner, signs)
    assert len(values) == x.size - 3 - 1  # three zeros, and two entries that are tied
    assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))


# The last descent over many rows: Newton steps with the Hessian of a sample.


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
