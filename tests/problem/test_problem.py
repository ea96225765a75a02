"""The training problem and its restriction to a block of branches and leaves."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from helpers import random_case, random_tree
from softsplit.tree.parameters import Block, Topology

BLOCKS = [Block((0,), (0, 1)), Block((2, 5, 6), (4, 5, 6, 7)), Block((), (3,)), Block((4,), ())]
every_block = pytest.mark.parametrize("block", BLOCKS)


def restricted(block):
    case = random_case(0, 3)
    return case, case.problem.restrict(block, case.tree)


def masks(block):
    return np.isin(np.arange(7), block.branches), np.isin(np.arange(8), block.leaves)


def test_too_few_leaves_are_refused_with_the_depth_that_would_do():
    case = random_case(0, 3)
    with pytest.raises(ValueError, match=r"depth 1 gives 2 leaves for 4 classes.*at least 2"):
        replace(case.problem, topology=Topology(1))


def test_a_block_needs_an_anchor():
    with pytest.raises(ValueError, match="needs the anchor"):
        replace(random_case(0, 3).problem, block=BLOCKS[0])


@every_block
def test_the_objective_does_not_depend_on_the_block(block):
    case, problem = restricted(block)
    other = random_tree(np.random.default_rng(1), 3, 4, 3)
    for tree in (case.tree, other):
        assert problem.objective(tree) == case.problem.objective(tree)
        assert_array_equal(problem.rates(tree), case.problem.rates(tree))
        assert problem.violation(tree) == case.problem.violation(tree)


@every_block
@pytest.mark.parametrize("multipliers", [None, np.array([1.0, 2.0, 3.0, 0.0])])
def test_fixed_variables_have_no_gradient(block, multipliers):
    case, problem = restricted(block)
    branches, leaves = masks(block)
    for ask in (lambda p: p.evaluate_cost(case.tree, multipliers), lambda p: p.gradient(case.tree)):
        whole, part = ask(case.problem), ask(problem)
        assert_array_equal(part.weights, whole.weights * branches)
        assert_array_equal(part.thresholds, whole.thresholds * branches)
        assert_array_equal(part.leaf_values, whole.leaf_values * leaves)
        assert np.all(whole.thresholds != 0) and np.all(whole.leaf_values != 0)


@every_block
def test_pin_puts_the_fixed_variables_back(block):
    case, problem = restricted(block)
    branches, leaves = masks(block)
    other = random_tree(np.random.default_rng(1), 3, 4, 3)
    found = problem.pin(other)
    assert_array_equal(found.weights[:, branches], other.weights[:, branches])
    assert_array_equal(found.weights[:, ~branches], case.tree.weights[:, ~branches])
    assert_array_equal(found.thresholds[branches], other.thresholds[branches])
    assert_array_equal(found.thresholds[~branches], case.tree.thresholds[~branches])
    assert_array_equal(found.leaf_values[:, leaves], other.leaf_values[:, leaves])
    assert_array_equal(found.leaf_values[:, ~leaves], case.tree.leaf_values[:, ~leaves])
    assert case.problem.pin(other) is other


@every_block
def test_global_floor_is_the_largest_fixed_coefficient(block):
    case, problem = restricted(block)
    for j in range(3):
        fixed = [abs(case.tree.weights[j, t]) for t in range(7) if t not in block.branches]
        assert problem.global_floor[j] == max(fixed)


@every_block
@pytest.mark.parametrize("share", [0.0, 0.95])
def test_best_leaves_keep_the_fixed_leaves(block, share):
    case, problem = restricted(block)
    problem = replace(problem, minimum_rates=share * problem.rates(case.tree))
    _, leaves = masks(block)
    found = problem.best_leaves(case.tree)
    assert_array_equal(found.leaf_values[:, ~leaves], case.tree.leaf_values[:, ~leaves])
    assert_array_equal(found.weights, case.tree.weights)
    assert_array_equal(found.thresholds, case.tree.thresholds)
    assert problem.violation(found).largest < 1e-8
    assert problem.cost(found) <= problem.cost(case.tree) + 1e-12
    if len(block.leaves) > 1:
        assert problem.cost(found) < problem.cost(case.tree) - 1e-3
