"""Each method for rates alone on the same ten problems: it ends where SLSQP ends, or lower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from likelihood_cases import learnable_rows, problem_of
from rated_program import fair_problem
from slow_cases import slow
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.optimality import kkt
from softsplit.problem.penalties import PenaltyPair, exponential, linear
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement
from softsplit.solvers.base import Budget
from softsplit.solvers.basin_hopping.joint import JointPrograms
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.solvers.elimination.bounded import coordinates
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.rated_descents import TreeRates, with_rates
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.training.multistart import numbered_start
from softsplit.tree.parameters import TreeParameters

NONE = PenaltyPair.of(linear())
L1 = PenaltyPair.of(linear(), 0.0, 0.5)

# depth, classes, minimum rate of each class, bound of parity, size of the weights, penalties
PROBLEMS = [
    (1, 2, 0.75, None, None, NONE),
    (1, 3, 0.45, None, None, NONE),
    (2, 2, 0.75, None, None, NONE),
    (2, 3, 0.55, None, None, NONE),
    (1, 2, 0.0, 0.02, None, NONE),
    (2, 2, 0.0, 0.05, None, NONE),
    (2, 3, 0.0, 0.02, None, NONE),
    (2, 2, 0.7, 0.05, None, NONE),
    (1, 2, 0.0, 0.02, 0.5, NONE),
    (2, 2, 0.74, None, None, L1),
]


def rated_problem(seed, depth, n_classes, minimum, bound, size, penalties):
    """A problem with rates of classes, of two groups of rows, or both."""
    X, y = learnable_rows(seed, 120, n_classes=n_classes)
    problem = problem_of(X, y, depth=depth, rates=minimum, penalties=penalties)
    if size is not None:
        held = np.full((X.shape[1], 2**depth - 1), size)
        ends = np.full(2**depth - 1, np.inf)
        problem = replace(problem, bounds=Bounds(-held, held, -ends, ends))
    if bound is None:
        return problem
    labels, cells = np.unique(2 * y + (X[:, 0] > 0.5), return_inverse=True)
    groups = tuple(RateGroup(str(g), tuple(np.flatnonzero(labels % 2 == g))) for g in (0, 1))
    engine = CompiledRows(Samples.from_arrays(X, cells, len(labels), np.ones(len(y))))
    limits = RateLimits(
        engine, labels // 2, (RateRequirement("parity", 1, groups, high=bound),), n_classes
    )
    return replace(problem, rate_limits=limits)


def started(problem, rows, seed):
    """A free optimum near a random tree."""
    rng = np.random.default_rng(seed)
    n_branches, shape = problem.topology.n_branches, (problem.n_groups, problem.topology.n_leaves)
    tree = SupportTree(
        rng.normal(size=(n_branches, problem.n_features + 1)) * 0.5,
        rng.normal(size=shape),
        np.arange(problem.n_features),
        np.ones((n_branches, problem.n_features), dtype=bool),
        np.zeros(n_branches, dtype=bool),
    )
    return rows.descend(tree, Shrinkage(problem.ridge), 200, 1e-9)[0]


@pytest.mark.parametrize(("seed", "case"), list(enumerate(PROBLEMS)), ids=range(10))
def test_by_likelihood_it_ends_where_a_general_solver_ends(seed, case):
    problem = rated_problem(seed, *case)
    rows = RowDescents(problem, Budget(), problem.samples)
    start = started(problem, rows, 0)
    end = with_rates(rows, start, problem.penalties, problem.ridge, 1e-6)
    tree = end.tree.parameters(problem)
    assert end.over
    assert problem.violation(tree).largest <= 1e-8
    assert np.any(end.multipliers > 0)  # a rate binds: the problem is none without
    if any(problem.penalties.strengths):  # no smooth program: rates cost something, and hold
        assert problem.objective(tree) >= problem.unrated.objective(tree) - 1e-9
        return
    function = rows.function(start, Shrinkage(problem.ridge), start.free)
    space = coordinates(start, function, start.free, problem.bounds, None)
    rates = TreeRates(problem, start, space)
    low, high = start.vector_bounds(problem.bounds)
    lines = {"type": "ineq", "fun": lambda x: -rates.shortfalls(x), "jac": rates.slopes}
    other = minimize(
        function, start.vector, jac=True, method="SLSQP", constraints=[lines],
        bounds=np.column_stack([low, high]), options={"maxiter": 500, "ftol": 1e-10},
    )  # fmt: skip
    assert np.max(rates.shortfalls(other.x)) < 1e-6
    assert problem.cost(tree) <= other.fun + 1e-6 * abs(other.fun)


def entries(tree):
    return np.concatenate([tree.weights.ravel(), tree.thresholds, tree.leaf_values.ravel()])


def by_slsqp(problem, start):
    """Where SLSQP ends from a tree, over weights, thresholds and shares of the leaves."""
    ends = np.cumsum([start.weights.size, start.thresholds.size])
    n_classes, n_leaves = start.leaf_values.shape
    total, n_rates = float(problem.rows.group_totals.sum()), len(problem.shortfalls(start))

    def tree_at(x):
        weights, thresholds, leaves = np.split(x, ends)
        shapes = start.weights.shape, start.leaf_values.shape
        return TreeParameters(weights.reshape(shapes[0]), thresholds, leaves.reshape(shapes[1]))

    def objective(x):
        tree = tree_at(x)
        return problem.objective(tree) / total, entries(problem.gradient(tree)) / total

    def slopes(x):
        return [entries(problem.rate_gradient(tree_at(x), line)) for line in range(n_rates)]

    def sums(kind, lines):
        lines = np.hstack([np.zeros((len(lines), ends[1])), lines])
        return {"type": kind, "fun": lambda x: lines @ x - 1.0, "jac": lambda x: lines}

    rates = {"type": "ineq", "fun": lambda x: -problem.shortfalls(tree_at(x)), "jac": slopes}
    of_leaves = sums("eq", np.kron(np.ones((1, n_classes)), np.eye(n_leaves)))
    of_classes = sums("ineq", np.kron(np.eye(n_classes), np.ones((1, n_leaves))))
    bounds, shares = problem.bounds, np.zeros(start.leaf_values.size)
    low = np.concatenate([bounds.low.ravel(), bounds.threshold_low, shares])
    high = np.concatenate([bounds.high.ravel(), bounds.threshold_high, shares + 1.0])
    x = minimize(
        objective, entries(start), jac=True, method="SLSQP", bounds=np.column_stack([low, high]),
        constraints=[rates, of_leaves, of_classes], options={"maxiter": 300, "ftol": 1e-13},
    ).x  # fmt: skip
    return tree_at(np.clip(x, low, high))


@pytest.mark.parametrize(("seed", "case"), list(enumerate(PROBLEMS)), ids=range(10))
def test_by_cost_a_general_solver_gets_no_further(seed, case):
    problem = rated_problem(seed, 2, *case[1:-1], NONE)
    box = Bounds.box(problem.n_features, problem.topology.n_branches)
    costs = ExpectedCost(1.0 - np.eye(problem.n_groups))
    problem = replace(problem, loss=costs, ridge=0.0, steepness=40.0, bounds=box)
    solver = BasinHoppingSolver()
    start = numbered_start(problem, solver, 0, np.random.SeedSequence(0))
    solution = solver.solve(problem, start, Budget())
    assert problem.violation(solution.parameters).largest <= 1e-8
    if problem.rate_limits is not None:  # the bound is met with nothing to spare
        assert np.max(problem.shortfalls(solution.parameters)) > -1e-6
    other = by_slsqp(problem, solution.parameters)
    assert problem.violation(other).largest <= 1e-7
    assert solution.objective <= problem.objective(other) * (1.0 + 1e-6)


# Branches and leaves moved together under rates: feasible, better, and to first-order points.


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
