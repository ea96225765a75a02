"""Branches and leaves moved together under rates: feasible, better, and to first-order points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rated_program import fair_problem
from slow_cases import slow
from softsplit.problem.optimality import kkt
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.solvers.base import Budget
from softsplit.solvers.basin_hopping.joint import JointPrograms
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.training.multistart import numbered_start

WITHOUT = BasinHoppingSolver(joint=JointPrograms(most=0))


def beside_an_end(seed, strengths):
    """A problem with three groups under equalised odds, and a feasible tree beside the one where
    the stages end."""
    problem = fair_problem(seed, "cost", bound=0.1, n_groups=3, depth=2, odds=True)
    problem = replace(problem, penalties=PenaltyPair.of(exponential(), *strengths))
    start = numbered_start(problem, WITHOUT, 0, np.random.SeedSequence(seed))
    tree = WITHOUT.solve(problem, start, Budget()).parameters
    thresholds = tree.thresholds + 0.01 * np.random.default_rng(seed).normal(size=3)
    return problem, problem.best_leaves(replace(tree, thresholds=thresholds))


@pytest.mark.parametrize("strengths", [(0.0, 0.0), (0.02, 0.2), *slow((0.05, 0.0), (0.0, 0.3))])
def test_the_end_is_feasible_and_better_and_mostly_a_first_order_point(strengths):
    far, near = [], []
    for seed in range(4):
        problem, tree = beside_an_end(seed, strengths)
        found = JointPrograms().apply(problem, tree, Budget().check)
        assert problem.violation(found).largest <= 1e-6
        assert problem.objective(found) < problem.objective(tree)
        if sum(strengths) > 0:  # zeros stay zero, signs stay
            kept = tree.weights * found.weights
            assert np.all(kept >= 0) and np.all(found.weights[tree.weights == 0] == 0)
        far.append(kkt(problem, tree).stationarity)
        near.append(kkt(problem, found).stationarity)
    assert np.median(near) < min(0.1, 0.1 * np.median(far))


def test_a_budget_that_has_ended_keeps_the_tree():
    problem, tree = beside_an_end(0, (0.0, 0.0))
    ended = Budget(time_limit=0.0)
    assert JointPrograms().apply(problem, tree, ended.check) is tree
