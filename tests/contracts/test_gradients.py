"""Analytic gradients against finite differences, for every loss, surrogate and scope.

To put a new loss under test, add it to ``instances.LOSSES``; a new surrogate goes to
``helpers.SURROGATES``. All checks are made where the gates react: at a saturated gate every
derivative is zero, and any check passes.
"""

from dataclasses import replace

import numpy as np
import pytest

from helpers import SCOPES, SURROGATES, sensitive_case, surrogate_id
from instances import LOSSES
from softsplit.problem.penalties import PenaltyPair, Surrogate, exponential, linear
from softsplit.tree.routing import split_scores

DEPTHS = [1, 2, 3, 4]
STEEPNESSES = [2.0, 32.0, 512.0]
FIELDS = ["weights", "thresholds", "leaf_values"]
TOLERANCE = 1e-6

# Loss, penalties and routing add up: each is compared with one kind of the others.
ROUTINGS = [
    (loss, exponential(), "both", depth, steepness)
    for loss in ("unequal costs", "log-loss")
    for depth in DEPTHS
    for steepness in STEEPNESSES
]
PENALISED = [
    ("unequal costs", surrogate, scope, 2, 32.0) for surrogate in SURROGATES for scope in SCOPES
]

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_depth = pytest.mark.parametrize("depth", DEPTHS)
every_steepness = pytest.mark.parametrize("steepness", STEEPNESSES)


def make_case(loss, depth, steepness, penalties=None):
    """A problem and a tree with every gate between 0.03 and 0.97."""
    case = sensitive_case(3, depth, steepness, penalties)
    case = replace(case, problem=replace(case.problem, loss=LOSSES[loss](case.tree.n_groups)))
    gates = steepness * split_scores(case.tree, case.problem.samples.features)
    assert np.max(np.abs(gates)) < 3.5
    return case


def slope_by_differences(function, tree, field, step):
    """Five-point central differences of ``function(tree)`` in every entry of one field."""
    base = getattr(tree, field)
    slopes = np.empty(base.shape)
    for index in np.ndindex(base.shape):
        values = {}
        for shift in (-2, -1, 1, 2):
            moved = base.copy()
            moved[index] += shift * step
            values[shift] = function(replace(tree, **{field: moved}))
        slopes[index] = (values[-2] - 8 * values[-1] + 8 * values[1] - values[2]) / (12 * step)
    return slopes


def check_gradient(function, gradient, tree, steepness, smallest=1e-2):
    """Compare field by field, relative to the largest entry, which must not be tiny."""
    for field in FIELDS:
        found = getattr(gradient, field)
        step = 1e-3 if field == "leaf_values" else 4e-3 / steepness
        expected = slope_by_differences(function, tree, field, step)
        size = np.max(np.abs(expected))
        assert size > smallest, f"the gradient of the {field} is too small to check anything"
        assert np.max(np.abs(found - expected)) <= TOLERANCE * size, field


@every_steepness
@every_depth
@every_loss
def test_gradient_of_the_loss(loss, depth, steepness):
    case = make_case(loss, depth, steepness)
    found = case.problem.evaluate_cost(case.tree)
    check_gradient(case.problem.cost, found, case.tree, steepness)


@every_steepness
@every_depth
@every_loss
def test_gradient_of_the_lagrangian(loss, depth, steepness):
    case = make_case(loss, depth, steepness)
    multipliers = np.linspace(1.0, 5.0, case.tree.n_groups)

    def lagrangian(tree):
        return case.problem.cost(tree) - multipliers @ case.problem.rates(tree)

    found = case.problem.evaluate_cost(case.tree, multipliers)
    assert found.value == pytest.approx(lagrangian(case.tree), rel=1e-12)
    check_gradient(lagrangian, found, case.tree, steepness)


@every_steepness
@every_depth
def test_gradient_of_each_class_rate(depth, steepness):
    case = make_case("equal costs", depth, steepness)
    without = case.problem.evaluate_cost(case.tree)
    for k in range(case.tree.n_groups):
        unit = np.eye(case.tree.n_groups)[k]
        priced = case.problem.evaluate_cost(case.tree, unit)
        slope = without.weights - priced.weights
        expected = slope_by_differences(
            lambda tree, k=k: case.problem.rates(tree)[k], case.tree, "weights", 4e-3 / steepness
        )
        size = np.max(np.abs(expected))
        assert size > 1e-3
        assert np.max(np.abs(slope - expected)) <= TOLERANCE * size


def balanced_penalties(case, surrogate, scope):
    """Strengths that make each penalty's gradient half as large as that of the loss."""
    target = 0.5 * np.max(np.abs(case.problem.evaluate_cost(case.tree).weights))
    strengths = dict(zip(("local_strength", "global_strength"), SCOPES[scope], strict=True))
    for name, strength in strengths.items():
        if strength:
            alone = PenaltyPair.of(surrogate, **{name: 1.0}).gradient(case.tree.weights)
            strengths[name] = float(target / np.max(np.abs(alone)))
    return PenaltyPair.of(surrogate, **strengths)


@pytest.mark.parametrize(
    ("loss", "surrogate", "scope", "depth", "steepness"),
    ROUTINGS + PENALISED,
    ids=lambda part: surrogate_id(part) if isinstance(part, Surrogate) else str(part),
)
def test_gradient_of_the_objective(loss, surrogate, scope, depth, steepness):
    case = make_case(loss, depth, steepness)
    problem = case.problem.with_penalties(balanced_penalties(case, surrogate, scope))
    found = problem.gradient(case.tree).weights
    expected = slope_by_differences(problem.objective, case.tree, "weights", 4e-3 / steepness)
    size = np.max(np.abs(problem.evaluate_cost(case.tree).weights))
    assert size > 1e-2
    assert np.max(np.abs(found - expected)) <= TOLERANCE * size


@pytest.mark.parametrize("loss", LOSSES)
def test_the_penalty_leaves_the_other_gradients_alone(loss):
    bare = make_case(loss, 2, 32.0, PenaltyPair.of(linear()))
    penalised = make_case(loss, 2, 32.0, PenaltyPair.of(linear(), 1.0, 2.0))
    without, with_penalty = (case.problem.gradient(case.tree) for case in (bare, penalised))
    np.testing.assert_array_equal(without.thresholds, with_penalty.thresholds)
    np.testing.assert_array_equal(without.leaf_values, with_penalty.leaf_values)
    assert np.all(without.weights != with_penalty.weights)
