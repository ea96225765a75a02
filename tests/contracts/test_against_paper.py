"""The library against the paper's formulas written out in plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import brute_force
from helpers import SCOPES, SURROGATES, random_case, random_leaf_classes, surrogate_id
from softsplit.problem.leaves import ASSIGNMENT, InfeasibleLeafStep
from softsplit.problem.loss import LogLoss
from softsplit.problem.penalties import PenaltyPair
from softsplit.tree.sparsity import global_sparsity, local_sparsity

DEPTHS = [1, 2, 3, 4]
SEEDS = [0, 1, 2]


def plain(case):
    """Rows and tree of a case as nested lists."""
    rows, tree = case.rows, case.tree
    return (
        (rows.X.tolist(), rows.y.tolist(), rows.sample_weight.tolist()),
        (tree.weights.tolist(), tree.thresholds.tolist(), tree.leaf_values.tolist()),
    )


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_log_loss(seed, depth):
    case = random_case(seed, depth, loss=LogLoss())
    rows, tree = plain(case)
    expected = brute_force.log_loss(*rows, *tree, depth, 5.0)
    assert_allclose(case.problem.cost(case.tree), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_sparsity_indices(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-1, 1, (6, 7)) * (rng.uniform(size=(6, 7)) < 0.5)
    weights[seed] = 0.0
    expected_local, expected_global = brute_force.sparsity_indices(weights.tolist())
    assert local_sparsity(weights) == pytest.approx(expected_local)
    assert global_sparsity(weights) == pytest.approx(expected_global)


@pytest.mark.parametrize(("n_classes", "n_leaves"), [(2, 2), (2, 4), (3, 4), (4, 4), (3, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_leaf_step_without_binding_rates_finds_the_best_assignment(seed, n_classes, n_leaves):
    rng = np.random.default_rng([seed, n_classes, n_leaves])
    # A class that is never the cheapest must still get a leaf.
    costs = rng.uniform(size=(n_classes, n_leaves)) + np.arange(n_classes)[:, None] * (seed % 3)
    shares = rng.dirichlet(np.ones(n_leaves), size=n_classes)
    found = ASSIGNMENT.step(costs, shares, np.zeros(n_classes))
    assert set(np.unique(found)) == {0.0, 1.0}
    assert_allclose(found.sum(axis=0), 1)
    assert np.all(found.sum(axis=1) >= 1)
    assert np.sum(costs * found) == pytest.approx(brute_force.cheapest_assignment(costs.tolist()))


def dense_leaf_program(costs, shares, minimum_rates, fixed=None):
    """The leaf step from its constraints, one row of numbers after the other."""
    n_classes, n_leaves = costs.shape
    unequal, unequal_right, equal, equal_right = [], [], [], []

    def indicator(chosen):
        row = np.zeros((n_classes, n_leaves))
        for k, leaf, value in chosen:
            row[k, leaf] = value
        return row.ravel()

    for leaf in range(n_leaves):
        equal.append(indicator((k, leaf, 1.0) for k in range(n_classes)))
        equal_right.append(1.0)
    for k in range(n_classes):
        unequal.append(indicator((k, leaf, -1.0) for leaf in range(n_leaves)))
        unequal_right.append(-1.0)
        unequal.append(indicator((k, leaf, -shares[k, leaf]) for leaf in range(n_leaves)))
        unequal_right.append(-minimum_rates[k])
    for (k, leaf), value in (fixed or {}).items():
        equal.append(indicator([(k, leaf, 1.0)]))
        equal_right.append(value)
    return linprog(
        costs.ravel(), A_ub=unequal, b_ub=unequal_right, A_eq=equal, b_eq=equal_right, bounds=(0, 1)
    )


def rate_instance(seed, n_classes=3, n_leaves=8):
    """Costs under which the last classes get one leaf each, so that their rates bind."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(n_classes, n_leaves)) + 2.0 * np.arange(n_classes)[:, None]
    shares = rng.dirichlet(np.ones(n_leaves), size=n_classes)
    return costs, shares


@pytest.mark.parametrize("seed", range(8))
def test_leaf_step_with_binding_rates_equals_the_linear_program(seed):
    costs, shares = rate_instance(seed)
    minimum = np.array([0.2, 0.3, 0.4])
    free = ASSIGNMENT.step(costs, shares, np.zeros(3))
    assert np.any(np.sum(shares * free, axis=1) < minimum), "the rates must bind"
    found = ASSIGNMENT.step(costs, shares, minimum)
    assert_allclose(found.sum(axis=0), 1, atol=1e-12)
    assert np.all(found >= 0)
    assert np.all(found.sum(axis=1) >= 1 - 1e-9)
    assert np.all(np.sum(shares * found, axis=1) >= minimum - 1e-9)
    expected = dense_leaf_program(costs, shares, minimum)
    assert expected.status == 0
    assert np.sum(costs * found) == pytest.approx(expected.fun, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_leaf_step_with_fixed_leaves_equals_the_linear_program(seed):
    costs, shares = rate_instance(seed)
    minimum = np.array([0.1, 0.15, 0.2])
    current = random_leaf_classes(np.random.default_rng(seed), 3, 8)
    free = np.arange(8) >= 3
    found = ASSIGNMENT.step(costs, shares, minimum, free, current)
    assert_allclose(found[:, :3], current[:, :3], rtol=0, atol=0)
    fixed = {(k, leaf): current[k, leaf] for k in range(2) for leaf in range(3)}
    expected = dense_leaf_program(costs, shares, minimum, fixed)
    assert expected.status == 0
    assert np.sum(costs * found) == pytest.approx(expected.fun, rel=1e-9)


def test_leaf_step_needs_the_current_classes_of_fixed_leaves():
    costs, shares = rate_instance(0)
    with pytest.raises(ValueError, match="needs the current leaf classes"):
        ASSIGNMENT.step(costs, shares, np.zeros(3), free=np.arange(8) >= 3)


@pytest.mark.parametrize("seed", range(4))
def test_rates_that_no_leaves_meet_are_refused(seed):
    costs, shares = rate_instance(seed)
    minimum = np.array([0.9, 0.9, 0.9])
    assert dense_leaf_program(costs, shares, minimum).status == 2
    with pytest.raises(InfeasibleLeafStep, match="no leaf assignment meets"):
        ASSIGNMENT.step(costs, shares, minimum)


def test_every_surrogate_has_its_formulas_here():
    """Else a comparison with plain Python would leave one out, or break by chance."""
    names = {surrogate.name for surrogate in SURROGATES}
    assert names == set(brute_force.PAPER_SURROGATES)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
def test_penalties_and_objective(surrogate, scope):
    case = random_case(2, 2, penalties=PenaltyPair.of(surrogate, *SCOPES[scope]))
    rows, tree = plain(case)
    expected = brute_force.penalty(tree[0], surrogate, *SCOPES[scope])
    assert_allclose(case.problem.penalties.value(case.tree.weights), expected, rtol=1e-13)
    costs = case.problem.loss.costs.tolist()
    expected += brute_force.expected_cost(*rows, *tree, costs, 2, 5.0)
    assert_allclose(case.problem.objective(case.tree), expected, rtol=1e-12)
