"""The training problem and its restriction to a block of branches and leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import random_case, random_tree
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement
from softsplit.tree.parameters import Block, Topology, TreeParameters
from softsplit.tree.routing import mixed_values

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


# Rates of cells: values, derivatives and lines of ``RateLimits``.


RNG = np.random.default_rng(0)
ROWS = RNG.random((40, 3))
CELLS = RNG.integers(0, 4, 40)
WEIGHT = RNG.random(40) + 0.5
REQUIREMENTS = (
    RateRequirement(
        "parity", 1, (RateGroup("a", (0, 1)), RateGroup("b", (2,)), RateGroup("c", (3,))), high=0.1
    ),
    RateRequirement("rate", 2, (RateGroup("", (0, 3)),), 0.2, 0.6, margin=0.05),
)


def limits():
    samples = Samples.from_arrays(ROWS, CELLS, 4, WEIGHT)
    return RateLimits(CompiledRows(samples), np.array([0, 1, 2, 0]), REQUIREMENTS, 3)


def any_tree():
    topology = Topology(2)
    leaves = RNG.random((3, topology.n_leaves))
    shape = (3, topology.n_branches)
    return TreeParameters(
        RNG.normal(size=shape), RNG.normal(size=shape[1]), leaves / leaves.sum(axis=0)
    )


def test_lines_are_the_rates_of_single_rows():
    tree, found = any_tree(), limits()
    proba = mixed_values(tree, ROWS.T, 8.0)

    def rate(k, cells):
        rows = np.isin(CELLS, cells)
        return np.average(proba[k, rows], weights=WEIGHT[rows])

    said = found.mass(tree, 8.0) @ tree.leaf_values.T
    a, b, c = rate(1, [0, 1]), rate(1, [2]), rate(1, [3])
    single = rate(2, [0, 3])
    differences = [a - b, a - c, b - a, b - c, c - a, c - b]
    wanted = [*(-0.1 - np.array(differences)), 0.25 - single, single - 0.55]
    assert_allclose(found.shortfalls(said), wanted, atol=1e-12)
    assert_allclose(found.group_rates(0, said), [a, b, c], atol=1e-12)


def test_derivatives_are_those_of_differences():
    tree, found = any_tree(), limits()
    prices = RNG.random(len(found))

    def value(weights, thresholds, leaves):
        moved = TreeParameters(weights, thresholds, leaves)
        said = found.mass(moved, 8.0) @ leaves.T
        return prices @ (found.least - found.shortfalls(said))

    sums, by_leaves = found.priced(tree, 8.0, prices)
    parts = [tree.weights, tree.thresholds, tree.leaf_values]
    slopes = [sums.splits[:, :-1].T, sums.splits[:, -1], by_leaves]
    assert_allclose(sums.value, value(*parts), rtol=1e-12)
    for at, slope in enumerate(slopes):
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [part.copy() for part in parts]
                moved[at][place] += step
                ends.append(value(*moved))
            assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-5, atol=1e-7)
