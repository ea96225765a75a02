"""The library against a second implementation, over random problems of every kind.

``brute_force.py`` is written from the paper's equations in plain loops and shares no line with the
library. ``exhaustive.py`` finds the global optimum of tiny problems without any of its solvers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import brute_force
from exhaustive import global_optimum
from helpers import SCOPES, SURROGATES, random_case
from slow_cases import examples, slow
from softsplit import SoftTreeClassifier
from softsplit.problem.penalties import PenaltyPair, linear, logarithmic
from tiny_problems import tiny, trained


@st.composite
def cases(draw):
    """A problem with weights and unequal costs, its penalties, and a tree anywhere in the box."""
    surrogate, scope = draw(st.sampled_from(SURROGATES)), draw(st.sampled_from(sorted(SCOPES)))
    case = random_case(
        draw(st.integers(0, 10**6)),
        draw(st.integers(1, 4)),
        steepness=draw(st.sampled_from([1e-6, 0.1, 2.0, 16.0, 512.0, 1e6])),
        penalties=PenaltyPair.of(surrogate, *SCOPES[scope]),
        rates=draw(st.sampled_from([0.0, 0.2, 0.6])),
        n_rows=draw(st.integers(4, 15)),
    )
    if draw(st.booleans()):  # outside the feasible set the constraints have something to say
        case.tree.weights[:] *= 1.5
        case.tree.leaf_values[0] *= 0.3
    return case, surrogate, SCOPES[scope]


def in_lists(case):
    rows, tree = case.rows, case.tree
    return (
        (rows.X.tolist(), rows.y.tolist(), rows.sample_weight.tolist()),
        (tree.weights.tolist(), tree.thresholds.tolist(), tree.leaf_values.tolist()),
        (case.problem.topology.depth, case.problem.steepness),
    )


@given(drawn=cases())
@examples(80)
def test_objective_rates_and_constraints(drawn):
    case, surrogate, strengths = drawn
    rows, tree, shape = in_lists(case)
    costs = case.problem.loss.costs.tolist()
    cost = brute_force.expected_cost(*rows, *tree, costs, *shape)
    sparse = brute_force.penalty(tree[0], surrogate, *strengths)
    assert_allclose(case.problem.cost(case.tree), cost, rtol=1e-11, atol=1e-12)
    assert_allclose(case.problem.objective(case.tree), cost + sparse, rtol=1e-11, atol=1e-11)
    rates = brute_force.class_rates(*rows, *tree, *shape)
    assert_allclose(case.problem.rates(case.tree), rates, rtol=1e-11, atol=1e-13)
    expected = brute_force.violations(*tree, rates, case.problem.minimum_rates.tolist())
    found = case.problem.violation(case.tree)
    assert_allclose((found.box, found.leaves, found.coverage, found.rates), expected, atol=1e-12)


@given(drawn=cases())
@examples(60)
def test_gradient(drawn):
    case, surrogate, strengths = drawn
    rows, tree, shape = in_lists(case)
    costs = case.problem.loss.costs.tolist()
    by_a, by_mu, by_c = map(np.array, brute_force.cost_gradient(*rows, *tree, costs, *shape))
    sparse = np.array(brute_force.penalty_gradient(tree[0], surrogate, *strengths))
    # 1 - p of the plain loops, and sums of both signs, are exact beside one only.
    unit = 1e-12 * (1 + case.problem.steepness) * case.rows.sample_weight.sum()
    found = case.problem.gradient(case.tree)
    assert_allclose(found.weights, by_a + sparse, rtol=1e-10, atol=unit)
    assert_allclose(found.thresholds, by_mu, rtol=1e-10, atol=unit)
    assert_allclose(found.leaf_values, by_c, rtol=1e-11, atol=unit)


@given(
    seed=st.integers(0, 1000),
    depth=st.integers(1, 3),
    steepness=st.sampled_from([1.0, 64.0, 512.0, 1e5]),
    strength=st.sampled_from([0.0, 0.1, 2.0]),
)
@examples(15)
def test_predictions_and_sparsity_of_fitted_trees(seed, depth, steepness, strength):
    """From raw rows to probabilities without a line of the library, the scaling included."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3)) * [1.0, 1e4, 1e-5] + [0.0, 1e6, 3.0]
    y = (X[:, 0] + rng.normal(size=25) > 0).astype(int)
    y[:2] = 0, 1
    fitted = SoftTreeClassifier(
        loss="cost", depth=depth, steepness=steepness, global_strength=strength, n_starts=1,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = ((X - low) / (high - low)).tolist()
    tree = [part.tolist() for part in (fitted.weights_, fitted.thresholds_, fitted.leaf_classes_)]
    shares = fitted.leaf_distributions_.tolist()
    expected = [
        brute_force.class_probabilities(x, *tree[:2], shares, depth, steepness) for x in scaled
    ]
    called = np.array([brute_force.class_probabilities(x, *tree, depth, steepness) for x in scaled])
    clear = np.abs(called[:, 1] - called[:, 0]) > 2e-9 * steepness
    assert fitted.predict(X)[clear].tolist() == called.argmax(axis=1)[clear].tolist()
    if (
        fitted.tree_.class_factors is not None
    ):  # of two classes: no further than half where another one is called
        apart = np.argmax(expected, axis=1) != called.argmax(axis=1)
        expected = np.where(apart[:, None], 0.5, expected)
    found = fitted.predict_proba(X)
    assert_allclose(found[clear], np.array(expected)[clear], rtol=1e-7, atol=1e-9 * steepness)
    local, global_ = brute_force.sparsity_indices(tree[0])
    assert fitted.local_sparsity_ == pytest.approx(local)
    assert fitted.global_sparsity_ == pytest.approx(global_)
    by_original = 1 / (1 + np.exp(-np.clip(
        steepness * (X @ fitted.coef_.T + fitted.intercept_), -700, 700
    )))  # fmt: skip
    gates = [[brute_force.gate(x, *tree[:2], t, steepness) for t in range(2**depth - 1)]
             for x in scaled]  # fmt: skip
    assert_allclose(by_original, gates, atol=1e-8 * steepness)


def test_both_speak_of_the_same_objective():
    problem = tiny(0, 2, 1, 2)
    asked, best = trained(problem)
    tree = best.parameters
    classes = tuple(np.argmax(tree.leaf_values, axis=0))
    assert set(np.unique(tree.leaf_values)) <= {0.0, 1.0}
    found = problem.objective(tree.weights, tree.thresholds, classes)
    assert asked.objective(tree) == pytest.approx(found, rel=1e-10)


TINY = {
    "depth 1, one feature": [tiny(0, 1, 1, 2)],
    "depth 1, two features": [tiny(s, 1, 2, 2) for s in range(2)],
    "depth 1, linear": [tiny(0, 1, 2, 2, linear())],
    "depth 1, log": [tiny(1, 1, 2, 2, logarithmic(), 0.02)],
    "depth 2, one feature": [tiny(1, 2, 1, 2)],
    "depth 2, three classes": [tiny(0, 2, 1, 3)],
}


LONG = ("depth 2, one feature", "depth 1, log")


@pytest.mark.parametrize("name", [*(one for one in TINY if one not in LONG), *slow(*LONG)])
def test_native_reaches_the_global_optimum_of_tiny_problems(name):
    """Every set of features and every assignment of classes, with descents from many starts."""
    for problem in TINY[name]:
        lowest = global_optimum(problem, looks=4000, descents=10)
        found = trained(problem)[1].objective
        assert found <= lowest + 1e-6 * (1 + abs(lowest)), f"above the optimum {lowest}: {found}"
        # Exhaustive as it is, the search must not be beaten by much either.
        assert found >= lowest - 1e-4 * (1 + abs(lowest))
