"""The expected deviance of trees with linear leaves: gradient, deletion costs, moves of a tree."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from softsplit.problem.targets import Numbers
from softsplit.solvers.expected_deviance.descent import descend, leaf_hessian
from softsplit.solvers.expected_deviance.problem import (
    NumberProblem,
    Objective,
    SoftTree,
    routed,
    scores_of,
)
from softsplit.solvers.expected_deviance.removal import Pruning, without_idle
from softsplit.solvers.expected_deviance.starts import RULES, Starts, with_leaves
from softsplit.tree.leaf_families import FAMILIES
from softsplit.tree.routing import leaf_probabilities


def problem_of(name="squared", n_rows=90, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    lines = rng.normal(size=(n_columns, n_rows))
    lines -= lines.mean(axis=1, keepdims=True)
    y = np.abs(lines[0]) + 0.3 * lines[1] + 0.2 * rng.normal(size=n_rows)
    if name in ("poisson", "tweedie", "gamma"):
        y = np.round(np.exp(0.5 * y) * 2) + (name == "gamma")
    if name == "survival":
        y = (y > 0.5).astype(float)
    targets = Numbers.of(y, rng.random(n_rows) + 0.5, 0.1 * rng.normal(size=n_rows))
    ones = np.ones(n_columns)
    return NumberProblem(
        lines, targets, FAMILIES[name](), np.arange(n_columns), ones, np.zeros(n_columns)
    )


def tree_of(problem, depth=2, seed=0, rule="curvature"):
    starts = Starts(problem, np.random.default_rng(seed))
    return with_leaves(problem, starts.given, starts.questions(rule, depth))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_is_that_of_the_definition(name):
    problem = problem_of(name)
    tree = tree_of(problem)
    function = Objective(problem, tree)
    x = tree.matrix[tree.free] + 0.01
    value, gradient = function(x)
    # the definition, without the compiled pass
    matrix, n = function.matrix(x), tree.n_branches
    scores = scores_of(matrix, problem.lines)
    shares = leaf_probabilities(scores[:n], 1.0)
    costs = problem.family.deviance(problem.targets.values, scores[n:] + problem.targets.offset)
    expected = problem.targets.totals @ np.sum(shares * costs, axis=0)
    ridge = 0.15 * np.sum(matrix[:n, :-1] ** 2) + np.sum(matrix[n:, :-1] ** 2)
    assert value == pytest.approx(problem.value(expected) + ridge, rel=1e-10)
    steps = np.eye(len(x)) * 1e-6
    slopes = [(function(x + step)[0] - function(x - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, slopes, atol=2e-4 * max(1.0, np.abs(gradient).max()))


def test_pieces_and_threads_give_the_same_bits(monkeypatch):
    problem = problem_of(n_rows=500)
    tree = tree_of(problem)
    monkeypatch.setattr("softsplit.solvers.expected_deviance.problem.PIECE", 128)
    values = [
        Objective(replace(problem, threads=threads), tree)(tree.matrix[tree.free])
        for threads in (1, 3)
    ]
    assert values[0][0] == values[1][0]
    np.testing.assert_array_equal(values[0][1], values[1][1])


def test_a_descent_ends_where_the_gradient_is_zero():
    problem = problem_of()
    tree = descend(problem, tree_of(problem, 1), 300, 1e-9).tree
    _, gradient = Objective(problem, tree)(tree.matrix[tree.free])
    assert np.abs(gradient).max() < 0.05


def test_costs_of_gate_coefficients_are_exact():
    problem = problem_of()
    tree = tree_of(problem)
    pruning, function = Pruning(problem, tree), Objective(problem, tree)
    value = function(tree.matrix[tree.free])[0]
    checked = 0
    for step in pruning.removals():
        if len(step.gates) == 1 and not step.leaves:
            ((t, out),) = step.gates
            free = tree.free.copy()
            free[t, list(out)] = False
            smaller = tree.with_free(free)
            there = Objective(problem, smaller)(smaller.matrix[smaller.free])[0]
            assert step.cost == pytest.approx(there - value, abs=1e-8)
            checked += 1
    assert checked == 9


def test_costs_of_branches_to_a_side_are_exact():
    problem = problem_of()
    tree = tree_of(problem)
    value = Objective(problem, tree)(tree.matrix[tree.free])[0]
    for step in Pruning(problem, tree).removals():
        if step.branch >= 0 and step.by < 2:
            smaller = tree.replaced(step.branch, step.by > 0)
            there = Objective(problem, smaller)(smaller.matrix[smaller.free])[0]
            gone = np.flatnonzero(tree.open)  # ridge of leaves that disappear with the branch
            rest = np.sum(tree.matrix[:, :-1] ** 2 * tree.free[:, :-1], axis=1)
            kept = np.sum(smaller.matrix[:, :-1] ** 2 * smaller.free[:, :-1], axis=1)
            n, m = tree.n_branches, smaller.n_branches
            below = 0.15 * (rest[:n].sum() - kept[:m].sum()) + rest[n:].sum() - kept[m:].sum()
            own = 0.15 * rest[step.branch]
            assert len(gone)
            assert step.cost == pytest.approx(there - value + below - own, abs=1e-8)


def test_costs_of_leaf_coefficients_are_those_of_a_refit():
    """For squares, at a scale that is kept, against a minimisation of the leaf."""
    problem = problem_of()
    tree = descend(problem, tree_of(problem, 1), 200, 1e-9).tree
    pruning = Pruning(problem, tree)
    route = routed(problem, tree)
    slope, targets = problem.slope(route.expected), problem.targets
    for leaf, block in pruning.blocks.items():
        weight = targets.totals * route.reach[tree.n_branches + leaf]

        def objective(line, kept, weight=weight):
            line = line * kept
            scores = line[:-1] @ problem.lines + line[-1] + targets.offset
            deviance = weight @ (targets.values - scores) ** 2
            return slope * deviance + float(line[:-1] @ line[:-1])

        best = minimize(objective, block.theta, (np.ones(4),), tol=1e-12).fun
        for out in ([0], [2], [0, 1]):
            kept = np.ones(4)
            kept[out] = 0.0
            rest = minimize(objective, block.theta, (kept,), tol=1e-12).fun
            assert block.cost(np.array(out)) == pytest.approx(rest - best, rel=2e-2, abs=2e-3)


def test_removals_in_a_leaf_follow_one_another():
    """Two removals, one after the other, cost what both cost at once."""
    problem = problem_of(n_columns=5)
    tree = tree_of(problem, 1)
    block = Pruning(problem, tree).blocks[0]
    both = block.cost(np.array([1, 3]))
    first = block.cost(np.array([1]))
    block.remove(np.array([1]))
    second = block.cost(np.searchsorted(block.columns, [3]))
    assert first + second == pytest.approx(both)
    assert 1 not in block.columns


@pytest.mark.parametrize("name", ["squared", "poisson"])
def test_one_function_for_two_leaves_is_the_best_of_both(name):
    """For squares the cost is exact at a scale that is kept; leaves may have different columns."""
    problem = problem_of(name)
    tree = tree_of(problem, 1)
    free = tree.free.copy()
    free[1, 0] = free[2, 2] = False
    tree = descend(problem, tree.with_free(free), 200, 1e-9).tree
    pruning = Pruning(problem, tree)
    cost, theta, columns = pruning.as_one(0, 1)
    slope = problem.slope(pruning.route.expected)

    def objective(*lines):
        matrix = tree.matrix.copy()
        matrix[1:] = lines
        expected, _ = Objective(problem, tree).sums(matrix)
        ridges = [np.sum(np.asarray(line)[:-1] ** 2) for line in {id(x): x for x in lines}.values()]
        return slope * expected + sum(ridges)

    before = objective(tree.matrix[1].copy(), tree.matrix[2].copy())
    best = minimize(lambda line: objective(line, line), theta, tol=1e-10)
    assert columns.all()
    np.testing.assert_allclose(best.x, theta, atol=1e-3 if name == "squared" else 0.4)
    assert cost == pytest.approx(best.fun - before, rel=1e-3 if name == "squared" else 0.4)


def test_a_child_in_the_place_of_its_branch_routes_rows_as_the_side_does():
    problem = problem_of()
    tree = tree_of(problem, 3)
    for branch in range(7):
        for by_left in (True, False):
            matrix = tree.matrix.copy()
            matrix[branch] = 0.0
            matrix[branch, -1] = 40.0 if by_left else -40.0
            shut = SoftTree(tree.columns, matrix, tree.free)
            smaller = tree.replaced(branch, by_left)
            expected = routed(problem, shut).expected
            assert routed(problem, smaller).expected == pytest.approx(expected, rel=1e-9)
            assert smaller.alive.sum() < 8


def test_branches_without_coefficients_disappear():
    problem = problem_of()
    tree = tree_of(problem, 2)
    free = tree.free.copy()
    free[:3, :-1] = False
    small = without_idle(tree.with_free(free))
    assert small.depth == 0
    assert small.alive.sum() == 1


@pytest.mark.parametrize("rule", RULES)
def test_starts_see_two_regimes(rule):
    """A V in one column: each rule finds a question that explains most of it."""
    rng = np.random.default_rng(5)
    lines = rng.normal(size=(2, 300))
    y = np.where(lines[0] > 0, 2.0, -2.0) * lines[0] + 0.1 * rng.normal(size=300)
    ones = np.ones(2)
    problem = NumberProblem(
        lines, Numbers.of(y), FAMILIES["squared"](), np.arange(2), ones, np.zeros(2)
    )
    end = descend(problem, tree_of(problem, 1, 1, rule), 60)
    assert routed(problem, end.tree).expected < 0.15 * 300 * problem.featureless


def test_the_hessian_of_a_leaf_is_that_of_the_objective_at_its_scale():
    problem = problem_of("poisson")
    tree = tree_of(problem, 1)
    route = routed(problem, tree)
    hessian = leaf_hessian(problem, tree, route, 0, problem.lines)
    slope, n = problem.slope(route.expected), tree.n_branches

    def gradient(line):
        matrix = tree.matrix.copy()
        matrix[n] = line
        by = Objective(problem, tree).sums(matrix)[1][n]
        return slope * by + np.append(2.0 * line[:-1], 1e-6 * line[-1])

    line = tree.matrix[n]
    columns = [
        (gradient(line + step) - gradient(line - step)) / 2e-5 for step in 1e-5 * np.eye(len(line))
    ]
    np.testing.assert_allclose(hessian, np.array(columns), rtol=1e-4, atol=1e-3)


def test_the_gradient_of_the_mixture_is_that_of_the_definition():
    problem = replace(problem_of(), mixture=True)
    tree = tree_of(problem)
    function = Objective(problem, tree)
    x = tree.matrix[tree.free] + 0.01
    matrix, n = function.matrix(x), tree.n_branches
    shares = leaf_probabilities(scores_of(matrix[:n], problem.lines), 1.0)
    scores = scores_of(matrix[n:], problem.lines)
    away = np.sum(shares * (scores + problem.targets.offset), axis=0) - problem.targets.values
    assert function.sums(matrix)[0] == pytest.approx(problem.targets.totals @ away**2)
    gradient = function(x)[1]
    for j in range(0, len(x), 5):
        step = np.zeros(len(x))
        step[j] = 1e-6
        slope = (function(x + step)[0] - function(x - step)[0]) / 2e-6
        assert gradient[j] == pytest.approx(slope, rel=1e-4, abs=1e-5)
