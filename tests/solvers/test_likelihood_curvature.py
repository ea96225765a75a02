"""Second derivatives of the log-loss against differences of the first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softsplit.solvers.elimination import newton
from softsplit.solvers.elimination.curvature import hessian
from softsplit.solvers.elimination.objective import Field, Smoothing
from softsplit.solvers.elimination.support_tree import Draft


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_all_second_derivatives(depth):
    rng = np.random.default_rng(depth)
    n_rows, n_columns, n_classes, n_branches = 500, 5, 3, 2**depth - 1
    starts = np.array([0, 200, 207, n_rows])
    field = Field(
        rng.standard_normal((n_columns, n_rows)), starts, rng.uniform(0.5, 2.0, n_rows),
        np.array([0.2, 0.3, 0.5]),
    )  # fmt: skip
    kept, open_ = rng.random((n_branches, n_columns)) < 0.6, np.ones(n_branches, dtype=bool)
    kept[-1], open_[-1] = depth == 1, depth == 1  # a closed branch
    splits = rng.standard_normal((n_branches, n_columns + 1))
    splits[:, :-1] *= kept
    leaves = rng.standard_normal((n_classes, n_branches + 1))
    draft = Draft(splits, leaves, np.arange(n_columns), kept, open_)
    whole = newton.over_field(draft, field, Smoothing(0.7), draft.free)
    function = newton.of_free_numbers(draft, whole)
    expected = newton.hessian(function, draft.vector[draft.free])
    found = hessian(draft, field, 0.7)
    assert_allclose(found, expected, atol=1e-7 * np.max(np.abs(expected)))
