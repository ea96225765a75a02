"""The feasible set, family by family, and when leaf classes exist that lie in it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from helpers import random_case, random_tree
from softsplit.problem.bounds import Bounds
from softsplit.problem.leaves import (
    ASSIGNMENT,
    RATE_SLACK,
    InfeasibleLeafStep,
    Violation,
    cheapest_assignment,
    violation,
)

RATES = np.array([0.5, 0.6, 0.7])
MINIMUM = np.array([0.4, 0.6, 0.1])
BOX = Bounds.box(2, 7)


def feasible_tree():
    tree = random_tree(np.random.default_rng(0), 2, 3, 3)
    return replace(tree, leaf_values=np.eye(3)[:, [0, 1, 2, 2, 1, 0, 0, 0]])


NOTHING, COLUMN = Violation(0, 0, 0, 0), (slice(None), 0)


@pytest.mark.parametrize(
    ("field", "place", "value", "expected"),
    [
        ("weights", (0, 1), 1.0, NOTHING),
        ("weights", (0, 1), 1.25, Violation(0.25, 0, 0, 0)),
        ("weights", (0, 1), -1.25, Violation(0.25, 0, 0, 0)),
        ("thresholds", 1, -1.0, NOTHING),
        ("thresholds", 1, 1.25, Violation(0.25, 0, 0, 0)),
        ("leaf_values", (0, 0), 1.25, Violation(0, 0.25, 0, 0)),
        ("leaf_values", COLUMN, [0.5, 0.25, 0.0], Violation(0, 0.25, 0, 0)),
        ("leaf_values", COLUMN, [1.125, 0.0, -0.125], Violation(0, 0.125, 0, 0)),  # sum 1
        ("leaf_values", (slice(None), 2), [1, 0, 0], NOTHING),
        ("leaf_values", (slice(None), [2, 3]), [[1, 0.75], [0, 0], [0, 0.25]],
         Violation(0, 0, 0.75, 0)),
    ],
)  # fmt: skip
def test_each_family_says_by_how_much_a_tree_is_outside(field, place, value, expected):
    tree = feasible_tree()
    getattr(tree, field)[place] = value
    assert violation(tree, MINIMUM - RATES, ASSIGNMENT, BOX) == expected


def test_rates():
    missed = violation(feasible_tree(), np.array([0.5, 0.85, 0.8]) - RATES, ASSIGNMENT, BOX)
    assert missed.rates == pytest.approx(0.25)
    assert (missed.box, missed.leaves, missed.coverage) == (0, 0, 0)


@pytest.mark.parametrize("field", ["weights", "thresholds", "leaf_values", "rates"])
def test_what_is_not_a_number_is_not_feasible(field):
    tree, rates = feasible_tree(), RATES.copy()
    (rates if field == "rates" else getattr(tree, field)).flat[0] = np.nan
    assert not violation(tree, MINIMUM - rates, ASSIGNMENT, BOX).largest <= 1e-6


def test_the_largest_is_over_all_families():
    assert [Violation(*np.roll([4, 3, 2, 1], shift)).largest for shift in range(4)] == [4] * 4


def some_rates(raw, total, n_leaves):
    """Rates below ``raw`` for which constant leaf columns meet the rates and the coverage."""
    rates = np.array(raw) * total / max(sum(raw), 1e-9)
    excess = np.maximum(rates, 1 / n_leaves).sum()
    return rates if excess <= 1 else rates * max(0.0, (1 - len(raw) / n_leaves)) / excess


@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(2, 4),
    raw=st.lists(st.floats(0, 1, allow_subnormal=False), min_size=3, max_size=3),
    total=st.floats(0, 1),
)
def test_leaves_exist_whenever_constant_columns_meet_rates_and_coverage(seed, depth, raw, total):
    rng = np.random.default_rng(seed)
    n_leaves = 2**depth
    minimum = some_rates(raw, total, n_leaves)
    assert np.maximum(minimum, 1 / n_leaves).sum() <= 1 + 1e-12
    costs = rng.uniform(size=(3, n_leaves)) * rng.choice([1e-6, 1.0, 1e6])
    shares = rng.dirichlet(np.full(n_leaves, rng.choice([0.05, 1.0, 50.0])), size=3)
    found = ASSIGNMENT.step(costs, shares, minimum)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=0), 1, atol=1e-12)
    assert np.all(found.sum(axis=1) >= 1 - 1e-8)
    assert np.all(np.sum(shares * found, axis=1) >= minimum - 1e-8)
    constant = np.maximum(minimum, 1 / n_leaves)
    constant = np.append(constant[:-1], 1 - constant[:-1].sum())[:, None] * np.ones(n_leaves)
    assert np.sum(costs * found) <= np.sum(costs * constant) * (1 + 1e-7)


@given(seed=st.integers(0, 10**6), share=st.floats(0, 1))
def test_best_leaves_are_feasible_for_any_routing(seed, share):
    """The same through the problem, for four classes on eight leaves and any tree."""
    case = random_case(seed % 1000, 3, steepness=float(10 ** (seed % 4)), rates=share / 4)
    undecided = replace(case.tree, leaf_values=np.full_like(case.tree.leaf_values, 0.25))
    found = case.problem.best_leaves(case.tree)
    assert case.problem.violation(found).largest < 1e-8
    assert case.problem.cost(found) <= case.problem.cost(undecided) * (1 + 1e-8)


def test_rates_that_add_up_to_less_than_one_can_still_be_out_of_reach():
    """Coverage takes a whole leaf for each class: with two leaves, half of the samples."""
    shares = np.full((2, 2), 0.5)
    with pytest.raises(InfeasibleLeafStep):
        ASSIGNMENT.step(np.ones((2, 2)), shares, np.array([0.6, 0.1]))
    found = ASSIGNMENT.step(np.ones((2, 2)), shares, np.array([0.5, 0.5]))
    np.testing.assert_allclose(np.sum(shares * found, axis=1), 0.5)


def test_fixed_leaves_take_part_in_coverage_and_rates():
    current = np.eye(3)[:, [0, 1, 2, 0]]
    shares = np.full((3, 4), 0.25)
    costs = np.arange(12.0).reshape(3, 4)
    # Class 2 sits on a fixed leaf, so the free leaves may both go to the cheapest class.
    free = np.array([True, False, False, True])
    found = ASSIGNMENT.step(costs, shares, np.array([0.5, 0.25, 0.25]), free, current)
    np.testing.assert_allclose(found, current, atol=1e-9)
    with pytest.raises(InfeasibleLeafStep):
        ASSIGNMENT.step(costs, shares, np.array([0.5, 0.3, 0.25]), free, current)


@given(seed=st.integers(0, 10**6), level=st.sampled_from([0.0, 1.0, 100.0]))
def test_the_cheapest_assignment_is_that_of_all_assignments(seed, level):
    """Leaves that are dear for every class have no say in which class gets them."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(3, 4)) + level * rng.uniform(size=4)
    costs[0] += 0.5  # a class that no leaf would choose by itself
    found = cheapest_assignment(costs)
    np.testing.assert_array_equal(found.sum(axis=0), 1)
    assert np.all(found.sum(axis=1) >= 1)
    assert np.sum(costs * found) == pytest.approx(brute_force.cheapest_assignment(costs))


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e100])
def test_the_unit_of_the_costs_does_not_matter_to_the_leaf_program(unit):
    """The tolerances of the program are those of costs up to one."""
    rng = np.random.default_rng(0)
    costs, shares = rng.uniform(size=(5, 16)), rng.dirichlet(np.ones(16), size=5)
    rates = np.full(5, 0.18)
    plain, other = (ASSIGNMENT.step(factor * costs, shares, rates) for factor in (1.0, unit))
    assert np.any((plain > 1e-6) & (plain < 1 - 1e-6))  # the program was needed
    assert np.sum(costs * other) == pytest.approx(np.sum(costs * plain), rel=1e-9)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("short", [1e-12, 0.5 * RATE_SLACK])
def test_a_rate_missed_by_rounding_counts_as_met(short, fixed):
    shares, current = np.array([[0.9, 0.1], [0.2, 0.8]]), np.eye(2)
    given = (np.zeros(2, dtype=bool), current) if fixed else ()
    leaves = ASSIGNMENT.step(1.0 - np.eye(2), shares, np.array([0.9, 0.8]) + short, *given)
    np.testing.assert_array_equal(leaves, current)


def test_fixed_leaves_alone_meet_the_rates_or_do_not():
    """No leaf is free: the tree stays as it is, or the rates are out of reach."""
    shares, current = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.8, 0.1], [0.2, 0.9]])
    rates, given = np.sum(shares * current, axis=1), (np.zeros(2, dtype=bool), current)
    leaves = ASSIGNMENT.step(np.ones((2, 2)), shares, rates - 1e-3, *given)
    np.testing.assert_array_equal(leaves, current)
    assert leaves is not current
    with pytest.raises(InfeasibleLeafStep, match="the fixed leaves do not meet"):
        ASSIGNMENT.step(np.ones((2, 2)), shares, rates + 1e-3, *given)


def test_a_program_without_costs_has_a_solution():
    shares, minimum = np.array([[0.4, 0.4, 0.2], [0.3, 0.3, 0.4]]), np.array([0.1, 0.6])
    leaves = ASSIGNMENT.step(np.zeros((2, 3)), shares, minimum)
    assert np.all(np.sum(shares * leaves, axis=1) >= minimum - 1e-8)
