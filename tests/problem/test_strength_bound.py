"""Proposition 1: the strength from which the all-zero tree is stationary, and not before.

That the tree is no longer stationary below the bound is also shown without any derivative: a
path leaves it on which every active class rate stays at its minimum and the true objective
falls. Above the bound the same path climbs.
"""

from dataclasses import replace

import numpy as np
import pytest

from helpers import SURROGATES, random_costs, surrogate_id
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.optimality import kkt, rate_multipliers
from softsplit.problem.penalties import PenaltyPair, Surrogate, exponential, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import all_zero_tree, max_strength, zero_slopes
from softsplit.tree.parameters import Topology

SHAPES = [(1, 2), (2, 3), (2, 4), (3, 4)]
"""Depth and number of classes."""

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"depth{s[0]}-classes{s[1]}")
SCOPES = ["local", "global", "local+", "global+"]
# Slopes at zero are all that a bound knows of a surrogate: each is tried on one shape.
CASES = [
    *((scope, exponential(), shape) for scope in SCOPES for shape in SHAPES),
    *((scope, surrogate, (2, 3)) for scope in SCOPES for surrogate in SURROGATES),
]
every_case = pytest.mark.parametrize(
    ("scope", "surrogate", "shape"),
    CASES,
    ids=lambda part: surrogate_id(part) if isinstance(part, Surrogate) else str(part),
)
every_scope = pytest.mark.parametrize("scope", SCOPES)


def make_problem(shape, steepness=512.0, unequal=False):
    """Classes of different sizes and means, so that every feature would help."""
    depth, n_classes = shape
    rng = np.random.default_rng([depth, n_classes])
    y = np.repeat(np.arange(n_classes), 10 + 7 * np.arange(n_classes))
    X = np.clip(
        rng.uniform(size=(n_classes, 4))[y] + rng.normal(scale=0.15, size=(len(y), 4)), 0, 1
    )
    costs = random_costs(rng, n_classes) if unequal else 0.5 * (1 - np.eye(n_classes))
    return TrainingProblem(
        rows=CompiledRows.from_arrays(X, y, n_classes),
        topology=Topology(depth),
        loss=ExpectedCost(costs),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.linspace(0.08, 0.14, n_classes),
        steepness=steepness,
    )


def at_the_bound(problem, surrogate, scope, factor):
    """The problem with ``factor`` times the bound as strength.

    With a "+", the other scope has a strength of its own: a part of its own bound.
    """
    bare = problem.with_penalties(PenaltyPair.of(surrogate))
    name = scope.rstrip("+")
    other = "global" if name == "local" else "local"
    strengths = {}
    if scope.endswith("+"):
        strengths[f"{other}_strength"] = 0.4 * max_strength(bare, other)
    part = problem.with_penalties(PenaltyPair.of(surrogate, **strengths))
    strengths[f"{name}_strength"] = factor * max_strength(part, name)
    return problem.with_penalties(PenaltyPair.of(surrogate, **strengths))


def leaving_direction(problem, tree):
    """Minus the signs of the gradient, for the entries of the one feature that gains most."""
    multipliers = rate_multipliers(problem, tree, problem.shortfalls(tree))
    slopes = problem.evaluate_cost(tree, multipliers).weights
    zero = np.zeros(1)
    local, global_ = problem.penalties.local, problem.penalties.global_
    excess = np.maximum(np.abs(slopes) - local.strength * local.surrogate.slope(zero), 0)
    gains = excess.sum(axis=1) - global_.strength * global_.surrogate.slope(zero)
    moving = (excess > 0) & (np.arange(len(gains)) == np.argmax(gains))[:, None]
    return np.where(moving, -np.sign(slopes), 0.0)


def hold_rates(problem, tree, active):
    """Newton on the thresholds until the active rates are at their minimum to the last digits."""
    for _ in range(20):
        gap = (problem.minimum_rates - problem.rates(tree))[active]
        if np.max(np.abs(gap)) < 1e-15:
            break
        base = problem.evaluate_cost(tree).thresholds
        units = np.eye(problem.n_groups)[active]
        matrix = [base - problem.evaluate_cost(tree, unit).thresholds for unit in units]
        step = np.linalg.lstsq(np.array(matrix), gap, rcond=None)[0]
        tree = replace(tree, thresholds=tree.thresholds + step)
    assert np.max(np.abs(gap)) < 1e-14
    return tree


def change_along_path(problem, direction, surrogate):
    """True change of the objective per unit of length, a short way along the path."""
    start = all_zero_tree(problem)
    active = np.flatnonzero(problem.rates(start) < problem.minimum_rates + 1e-9)
    assert len(active) == problem.n_groups - 1
    start = hold_rates(problem, start, active)
    length = min(1e-5 / problem.steepness, 1e-4 * (surrogate.second or 1.0))
    moved = hold_rates(problem, replace(start, weights=length * direction), active)
    assert problem.violation(moved).largest < 1e-14
    return (problem.objective(moved) - problem.objective(start)) / length


@every_shape
@pytest.mark.parametrize("unequal", [False, True])
def test_the_all_zero_tree_is_feasible_and_stationary_but_for_its_weights(shape, unequal):
    problem = make_problem(shape, unequal=unequal)
    tree = all_zero_tree(problem)
    assert not tree.weights.any()
    assert problem.violation(tree).largest < 1e-12
    strong = problem.with_penalties(PenaltyPair.of(linear(), 1e9))
    assert kkt(strong, tree).residual < 1e-9


@every_case
def test_stationary_just_above_the_bound_and_not_below(scope, surrogate, shape):
    problem = make_problem(shape)
    tree = all_zero_tree(problem)
    slopes = np.max(zero_slopes(problem))
    assert slopes > 0.1
    assert kkt(at_the_bound(problem, surrogate, scope, 1.001), tree).residual < 1e-9
    assert kkt(at_the_bound(problem, surrogate, scope, 0.99), tree).stationarity > 1e-4 * slopes


@every_case
def test_below_the_bound_the_objective_really_falls(scope, surrogate, shape):
    problem = make_problem(shape, 32.0 if shape == (2, 4) else 512.0)
    below = at_the_bound(problem, surrogate, scope, 0.99)
    above = at_the_bound(problem, surrogate, scope, 1.01)
    direction = leaving_direction(below, all_zero_tree(problem))
    slopes = np.max(zero_slopes(problem))
    assert np.any(direction)
    assert change_along_path(below, direction, surrogate) < -1e-4 * slopes
    assert change_along_path(above, direction, surrogate) > 1e-4 * slopes


@every_shape
@every_scope
def test_above_the_bound_no_direction_descends(scope, shape):
    problem = at_the_bound(make_problem(shape), exponential(), scope, 1.01)
    rng = np.random.default_rng(0)
    weights = all_zero_tree(problem).weights.shape
    for _ in range(20):
        direction = rng.uniform(-1, 1, weights) * (rng.uniform(size=weights) < 0.5)
        direction[0, 0] = 1.0
        assert change_along_path(problem, direction, exponential()) > 0


@pytest.mark.parametrize("shape", [(2, 3), (2, 4), (3, 4)])
def test_the_largest_slope_alone_is_not_enough_for_the_global_scope(shape):
    """Between the paper's maximum over t and the sum over t, the zero tree can be left."""
    problem = make_problem(shape)
    surrogate = exponential()
    slopes = zero_slopes(problem)
    stated = np.max(slopes) / 5.0
    needed = max_strength(problem.with_penalties(PenaltyPair.of(surrogate)), "global")
    assert needed == pytest.approx(np.max(slopes.sum(axis=1)) / 5.0)
    assert needed > 1.1 * stated
    between = problem.with_penalties(
        PenaltyPair.of(surrogate, global_strength=0.5 * (stated + needed))
    )
    tree = all_zero_tree(problem)
    assert kkt(between, tree).stationarity > 1e-3
    assert change_along_path(between, leaving_direction(between, tree), surrogate) < 0


@every_shape
def test_for_the_local_scope_the_bound_is_the_papers(shape):
    problem = make_problem(shape).with_penalties(PenaltyPair.of(exponential()))
    assert max_strength(problem) == pytest.approx(np.max(zero_slopes(problem)) / 5.0)


def test_with_one_branch_both_scopes_have_the_same_bound():
    problem = make_problem((1, 2)).with_penalties(PenaltyPair.of(exponential()))
    assert max_strength(problem, "local") == pytest.approx(max_strength(problem, "global"))


@every_scope
def test_a_strong_penalty_in_the_other_scope_leaves_no_need_for_this_one(scope):
    problem = make_problem((2, 3)).with_penalties(PenaltyPair.of(exponential(), 1e6, 1e6))
    assert max_strength(problem, scope.rstrip("+")) == 0.0


def test_every_class_gets_its_minimum_and_the_cheapest_the_rest():
    problem = make_problem((2, 3))
    rates = problem.rates(all_zero_tree(problem))
    minimum = problem.minimum_rates
    np.testing.assert_allclose(rates[:2], minimum[:2], rtol=1e-12)
    assert rates[2] == pytest.approx(1 - minimum[:2].sum())


def test_no_all_zero_tree_beats_it():
    """Its cost is that of the best constant prediction under the minimum rates."""
    problem = make_problem((3, 4), unequal=True)
    prices = problem.samples.group_totals @ problem.loss.costs
    shares = np.array(problem.minimum_rates)
    shares[np.argmin(prices)] += 1 - shares.sum()
    assert problem.cost(all_zero_tree(problem)) == pytest.approx(prices @ shares)


def test_without_minimum_rates_nothing_needs_to_be_paid():
    problem = replace(make_problem((2, 3)), minimum_rates=np.zeros(3))
    tree = all_zero_tree(problem)
    assert problem.violation(tree).largest == 0
    assert max_strength(problem) < 1e-50
    assert kkt(problem.with_penalties(PenaltyPair.of(linear(), 1e-9)), tree).residual < 1e-9


def test_rates_that_exceed_one_in_sum_are_refused():
    problem = replace(make_problem((2, 3)), minimum_rates=np.full(3, 0.4))
    with pytest.raises(ValueError, match=r"add up to 1.2 > 1; lower min_class_rate"):
        all_zero_tree(problem)


def test_the_bound_may_be_taken_at_another_tree_without_weights():
    problem = make_problem((2, 3)).with_penalties(PenaltyPair.of(exponential()))
    tree = all_zero_tree(problem)
    assert max_strength(problem, at=tree) == max_strength(problem)
    flat = replace(tree, thresholds=np.zeros(3))
    assert max_strength(problem, at=flat) != pytest.approx(max_strength(problem), rel=1e-3)
    with pytest.raises(ValueError, match="whose weights are zero"):
        max_strength(problem, at=replace(tree, weights=tree.weights + 0.1))
