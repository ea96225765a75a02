"""The expectation step of leaves that hold distributions: it never raises the log-loss."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likelihood_cases import random_problem
from softsplit.problem.leaves import SMOOTHING
from softsplit.solvers.active_set.soft_leaves import expect, soften


def test_softening_mixes_a_share_of_every_class():
    leaves = np.eye(3)
    soften(leaves)
    expected = (1 - SMOOTHING) * np.eye(3) + SMOOTHING / 3
    assert_allclose(leaves, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_lowers_the_loss_and_keeps_distributions(seed):
    problem, tree = random_problem(seed, ridge=0.0)
    leaves = np.array(tree.leaf_values)
    before = problem.rows.evaluate(tree.splits, leaves, problem.loss.outer, problem.steepness)
    for _ in range(3):
        expect(before.table, leaves)
        assert_allclose(leaves.sum(axis=0), 1.0, rtol=1e-12)
        after = problem.rows.evaluate(tree.splits, leaves, problem.loss.outer, problem.steepness)
        # Softening by a share s may take back at most -log(1 - s) for each row.
        assert after.value <= before.value + 2 * SMOOTHING * problem.samples.weights.sum()
        before = after
