"""Blocks with everything fixed worked out in advance: the same numbers as the whole tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import random_case, random_tree, sensitive_case
from slow_cases import examples
from softsplit.engines.block import GateCache
from softsplit.engines.block_pass import block_pass
from softsplit.solvers.base import Solution, Status
from softsplit.tree.parameters import Block

LEAVES = tuple(range(8))
BLOCKS = [
    Block((0,), LEAVES),
    Block((5,), (2, 3)),
    Block((1, 2), LEAVES),
    Block((0, 3, 6), LEAVES),
    Block((2, 5, 6), (4, 5, 6, 7)),
    Block(tuple(range(7)), ()),
    Block((), LEAVES),
]
every_block = pytest.mark.parametrize("block", BLOCKS, ids=lambda b: str(b.branches))
PRICES = [None, np.array([1.0, 0.0, 3.0, 0.5])]


def restricted(block, case):
    problem, tree = case.problem, case.tree
    cache = GateCache.of(tree, problem.rows, problem.steepness)
    return problem.restrict(block, tree, cache=cache), problem.restrict(block, tree)


def moved(problem, seed=1):
    """Another tree that differs on the block only."""
    return problem.pin(random_tree(np.random.default_rng(seed), 3, 4, 3))


def assert_same(one, other):
    for name in ("value", "weights", "thresholds", "leaf_values", "mass"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-11)


@every_block
@pytest.mark.parametrize("prices", PRICES, ids=["cost", "with rates"])
@pytest.mark.parametrize("steepness", [3.0, 512.0])
def test_a_collapsed_problem_has_the_numbers_of_the_whole_tree(block, prices, steepness):
    fast, plain = restricted(block, sensitive_case(0, 3, steepness))
    tree = moved(plain)
    assert_same(fast.evaluate_cost(tree, prices), plain.evaluate_cost(tree, prices))
    assert fast.objective(tree) == pytest.approx(plain.objective(tree), rel=1e-12)
    assert_allclose(fast.rates(tree), plain.rates(tree), rtol=1e-10)
    assert_array_equal(fast.best_leaves(tree).leaf_values, plain.best_leaves(tree).leaf_values)


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 4),
    steepness=st.sampled_from([1.0, 20.0, 512.0]),
    data=st.data(),
)
def test_any_block_of_any_tree(seed, depth, steepness, data):
    case = random_case(seed, depth, steepness)
    n_branches = 2**depth - 1
    branches = data.draw(st.sets(st.integers(0, n_branches - 1)))
    block = Block(tuple(branches), tuple(range(n_branches + 1)))
    fast, plain = restricted(block, case)
    n_classes = case.problem.n_groups
    tree = plain.pin(random_tree(np.random.default_rng(seed + 1), 3, n_classes, depth))
    assert_same(fast.evaluate_cost(tree), plain.evaluate_cost(tree))


def test_a_solution_is_measured_with_everything_fixed_put_back():
    case = random_case(0, 3)
    fast, _ = restricted(BLOCKS[0], case)
    other = random_tree(np.random.default_rng(1), 3, 4, 3)
    found = Solution.measure(
        fast, other, Status.ACCEPTABLE, tol=1e-6, n_iter=1, seconds=0.0, solver="careless"
    )
    assert_array_equal(found.parameters.weights, fast.pin(other).weights)
    assert found.objective == pytest.approx(case.problem.objective(fast.pin(other)), rel=1e-12)


def test_the_pass_returns_the_mass_that_is_classified_correctly():
    fast, plain = restricted(BLOCKS[3], sensitive_case(0, 3, 20.0))
    tree, block = fast.anchor, fast.rows
    scores = tree.weights[:, block.branches].T @ block.reaching.features / 3
    scores -= tree.thresholds[block.branches, None]
    right = np.empty(4)
    table = fast.loss.table(tree.leaf_values)
    rows = block.block_rows(table, tree.leaf_values)
    value = block_pass(scores, np.empty_like(scores), rows, 20.0, 1.0, np.zeros(4), right)
    assert value == pytest.approx(plain.cost(tree), rel=1e-12)
    assert_allclose(right / plain.samples.group_totals, plain.rates(tree), rtol=1e-12)
