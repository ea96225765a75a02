"""Second derivatives of the log-loss against differences of the first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softsplit.solvers.elimination.objective import Shrinkage, StandardisedRows
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
    expected = differenced_hessian(function, tree.vector[tree.free], 1e-6)
    found = hessian(tree, rows, 0.7)
    assert_allclose(found, expected, atol=1e-7 * np.max(np.abs(expected)))
