"""What the native solver promises about every result, over random problems of every kind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_force import class_rates, expected_cost, penalty
from helpers import SURROGATES, random_costs
from slow_cases import examples
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers import BasinHoppingSolver, Status
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import Topology

STRENGTHS = [0.0, 0.01, 0.1, 1.0]


@dataclass(frozen=True)
class Rows:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray


@st.composite
def rows(draw):
    """Classes that overlap, with duplicated rows (in one class or two) and constant columns."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    n_classes, n_features = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    size = draw(st.integers(n_classes, 40))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, size - n_classes)])
    X = (rng.uniform(size=(size, n_features)) + rng.uniform(size=(n_classes, n_features))[y]) / 2
    if draw(st.booleans()):  # few distinct values: ties, and equal rows
        X = np.round(2 * X) / 2
    if draw(st.booleans()):
        again = rng.integers(0, size, size // 2)
        other = np.where(rng.random(len(again)) < 0.5, y[again], rng.integers(n_classes))
        X, y = np.vstack([X, X[again]]), np.append(y, other)
    if draw(st.booleans()):
        X[:, rng.integers(n_features)] = draw(st.sampled_from([0.0, 0.5, 1.0]))
    weight = np.ones(len(y))
    if draw(st.booleans()):
        weight = rng.choice([0.25, 1.0, 3.5], len(y))
    return Rows(X, y, weight)


@st.composite
def problems(draw):
    data = draw(rows())
    n_classes = int(data.y.max()) + 1
    loss = ExpectedCost.uniform(n_classes)
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        loss = ExpectedCost(random_costs(rng, n_classes))
    return TrainingProblem(
        CompiledRows.from_arrays(data.X, data.y, n_classes, data.weight),
        Topology(Topology.with_leaves(n_classes).depth + draw(st.integers(0, 1))),
        loss,
        PenaltyPair.of(
            draw(st.sampled_from(SURROGATES)),
            draw(st.sampled_from(STRENGTHS)),
            draw(st.sampled_from(STRENGTHS)),
        ),
        np.full(n_classes, draw(st.sampled_from([0.0, 0.1, 0.9 / n_classes]))),
        draw(st.sampled_from([32.0, 512.0])),
    )


def train(problem, n_jobs=1, n_starts=3):
    solver = BasinHoppingSolver()
    starts = multistart(problem, solver, n_starts=n_starts, seed=0, n_jobs=n_jobs)
    return starts, search_around(problem, solver, starts, seed=0)


def assert_feasible_and_true(problem, solution):
    """Feasible in plain loops, and what the solution says of itself is so."""
    samples, tree = problem.samples, solution.parameters
    lists = samples.features.T.tolist(), samples.labels.tolist(), samples.weights.tolist()
    a, mu, c = tree.weights.tolist(), tree.thresholds.tolist(), tree.leaf_values.tolist()
    depth, steepness = problem.topology.depth, problem.steepness
    rates = class_rates(*lists, a, mu, c, depth, steepness)
    assert np.all(np.array(rates) >= problem.minimum_rates - 1e-6)
    assert np.max(np.abs(tree.weights)) <= 1
    assert np.max(np.abs(tree.thresholds)) <= 1
    np.testing.assert_allclose(tree.leaf_values.sum(axis=0), 1, atol=1e-9)
    assert np.min(tree.leaf_values) >= 0
    assert np.all(tree.leaf_values.sum(axis=1) >= 1 - 1e-6)
    assert solution.violation <= 1e-6
    local, global_ = problem.penalties.local, problem.penalties.global_
    cost = expected_cost(*lists, a, mu, c, problem.loss.costs.tolist(), depth, steepness)
    sparse = penalty(a, local.surrogate, local.strength, global_.strength)
    np.testing.assert_allclose(solution.cost, cost, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(solution.objective, cost + sparse, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@given(problem=problems())
@examples(30)
def test_results_are_feasible_honest_sparse_and_no_worse_than_no_tree(problem):
    starts, best = train(problem)
    for solution in starts:
        usable = solution.status.usable
        assert usable == (solution.violation <= 1e-5)
        close = solution.kkt.residual <= 1e-6 * problem.cost_unit
        assert solution.status in (
            (Status.OPTIMAL,) if close else (Status.ACCEPTABLE, Status.INFEASIBLE)
        )
    assert_feasible_and_true(problem, best)
    sizes = np.abs(best.parameters.weights)
    assert not np.any((sizes > 0) & (sizes < 1e-12))
    zero = problem.objective(all_zero_tree(problem))
    assert best.objective <= zero + 1e-5 * problem.cost_unit * (1 + abs(zero))
    tie = 1e-6 * problem.cost_unit
    assert all(best.objective <= s.objective + tie for s in starts if s.status.usable)


def scaled(problem, factor):
    """The problem with all weights and strengths multiplied."""
    local, global_ = problem.penalties.local, problem.penalties.global_
    samples = problem.samples
    return replace(
        problem,
        rows=CompiledRows(
            replace(
                samples,
                weights=factor * samples.weights,
                group_totals=factor * samples.group_totals,
            )
        ),
        penalties=PenaltyPair(
            replace(local, strength=factor * local.strength),
            replace(global_, strength=factor * global_.strength),
        ),
    )


@given(problem=problems())
@examples(10)
def test_scaled_weights_and_strengths_give_the_same_tree(problem):
    """A factor of four is exact in floating point, roots included: not a bit may change.

    So it shows that no tolerance is absolute. (A factor of two changes roots by rounding, and a
    search makes another tree of that.)
    """
    one, four = (train(scaled(problem, factor), n_starts=2)[1] for factor in (1, 4))
    assert four.objective == 4 * one.objective
    np.testing.assert_array_equal(four.parameters.weights, one.parameters.weights)
    np.testing.assert_array_equal(four.parameters.leaf_values, one.parameters.leaf_values)
