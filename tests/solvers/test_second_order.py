"""Second derivatives of the log-loss against differences of the first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likelihood_cases import random_problem
from softsplit.problem.penalties import PenaltyPair, exponential, linear, logarithmic
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage, StandardisedRows
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.second_order import (
    differenced_hessian,
    hessian,
    of_parameters,
    row_function,
)
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
