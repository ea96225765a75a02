"""IPOPT: derivatives of both strategies, and what a run may and may not claim."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from softsplit.loss import ExpectedCost
from softsplit.penalties import (
    Penalty,
    PenaltyPair,
    Surrogate,
    exponential,
    inverse_power,
    linear,
    logarithmic,
    power,
)
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers.nlp import NonlinearProgram, Pattern
from softsplit.solvers.nlp_explicit import ExplicitProgram
from softsplit.solvers.nlp_substituted import SubstitutedProgram
from softsplit.tree import Block, Topology, TreeParameters

PROGRAMS = {"substituted": SubstitutedProgram, "explicit": ExplicitProgram}
# Offsets as large as the finite differences need: the formulas are the same at 1e-5.
SURROGATES = [linear(), exponential(), power(0.5, 0.05), inverse_power(0.5, 0.05), logarithmic(0.05)]
SCOPES = {"local": (0.7, 0.0), "global": (0.0, 0.9), "both": (0.7, 0.9), "none": (0.0, 0.0)}


def make_problem(
    depth: int,
    steepness: float,
    penalties: PenaltyPair,
    rate: float = 0.1,
    seed: int = 0,
) -> TrainingProblem:
    """Weighted random rows; few, as every check costs a call per variable."""
    rng = np.random.default_rng(seed)
    n_classes, n_rows = (2, 8) if depth == 1 else (3, 12)
    X = rng.random((n_rows, 3))
    y = np.arange(n_rows) % n_classes
    samples = Samples.from_arrays(X, y, n_classes, rng.integers(1, 4, n_rows).astype(float))
    costs = rng.uniform(0.2, 1.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    rates = np.full(n_classes, rate)
    rates[-1] = 0.0
    return TrainingProblem(
        samples, Topology(depth), ExpectedCost(costs), penalties, rates, steepness
    )


def open_tree(problem: TrainingProblem, seed: int = 1) -> TreeParameters:
    """A tree whose gates are not saturated: scores of size about 1 / steepness."""
    rng = np.random.default_rng(seed)
    p, n_branches = problem.n_features, problem.topology.n_branches
    size = min(0.8, 3 * p / problem.steepness)
    weights = size * rng.uniform(0.3, 1.0, (p, n_branches)) * rng.choice([-1, 1], (p, n_branches))
    centre = weights.T @ problem.samples.features.mean(axis=1) / p
    c = rng.dirichlet(np.ones(problem.n_classes), problem.topology.n_leaves).T
    return TreeParameters(weights, np.clip(centre, -1, 1), c)


def dense(pattern: Pattern, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros(pattern.shape)
    columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.column_starts))
    matrix[pattern.row_indices, columns] = pattern.gather(values)
    return matrix


def differences(function, x: np.ndarray, step: float) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Fourth-order central differences, one column per variable."""
    columns = []
    for i in range(len(x)):
        unit = np.zeros(len(x))
        unit[i] = step
        near = np.atleast_1d(function(x + unit)) - np.atleast_1d(function(x - unit))
        far = np.atleast_1d(function(x + 2 * unit)) - np.atleast_1d(function(x - 2 * unit))
        columns.append((8 * near - far) / (12 * step))
    return np.array(columns).T


def check_derivatives(program: NonlinearProgram, x: np.ndarray, step: float) -> None:
    rng = np.random.default_rng(3)
    multipliers = rng.normal(size=len(program.constraint_lower))
    factor = 1.7

    def slope(at: np.ndarray) -> np.ndarray:
        jacobian = dense(program.jacobian_pattern, program.jacobian(at))
        return factor * program.gradient(at) + jacobian.T @ multipliers

    gradient = program.gradient(x)
    jacobian = dense(program.jacobian_pattern, program.jacobian(x))
    upper = dense(program.hessian_pattern, program.hessian(x, factor, multipliers))
    assert np.all(np.tril(upper, -1) == 0)
    hessian = upper + np.triu(upper, 1).T
    for found, function in [
        (gradient[None], program.objective),
        (jacobian, program.constraints),
        (hessian, slope),
    ]:
        expected = differences(function, x, step)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def check_program(strategy: str, problem: TrainingProblem) -> None:
    program = PROGRAMS[strategy](problem)
    x = program.start(open_tree(problem))
    # Off the bounds, and with P off its routing: the formulas hold everywhere.
    x = x + np.random.default_rng(5).uniform(1e-2, 2e-2, len(x)) * min(1.0, 32 / problem.steepness)
    check_derivatives(program, x, 1e-3 * min(1.0, 8 / problem.steepness))


@pytest.mark.parametrize("strategy", PROGRAMS)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("steepness", [2.0, 32.0, 512.0])
@pytest.mark.parametrize("scope", SCOPES)
def test_derivatives(strategy: str, depth: int, steepness: float, scope: str) -> None:
    check_program(strategy, make_problem(depth, steepness, PenaltyPair.of(exponential(), *SCOPES[scope])))


@pytest.mark.parametrize("strategy", PROGRAMS)
@pytest.mark.parametrize("scope", ["local", "global", "both"])
@pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda s: s.name)
def test_derivatives_of_every_surrogate(strategy: str, scope: str, surrogate: Surrogate) -> None:
    check_program(strategy, make_problem(2, 32.0, PenaltyPair.of(surrogate, *SCOPES[scope])))


@pytest.mark.parametrize("strategy", PROGRAMS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("block", [Block((1,), (0, 1)), Block((0, 2), (1, 3)), Block((), (2,))])
def test_derivatives_of_a_restricted_problem(strategy: str, scope: str, block: Block) -> None:
    whole = make_problem(2, 32.0, PenaltyPair.of(exponential(), *SCOPES[scope]))
    check_program(strategy, whole.restrict(block, open_tree(whole, seed=9)))


@pytest.mark.parametrize("strategy", PROGRAMS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("restricted", [False, True])
def test_program_is_the_problem(strategy: str, scope: str, restricted: bool) -> None:
    problem = make_problem(2, 32.0, PenaltyPair.of(exponential(), *SCOPES[scope]))
    if restricted:
        problem = problem.restrict(Block((1,), (0, 1)), open_tree(problem, seed=9))
    tree = problem.pin(open_tree(problem))
    program = PROGRAMS[strategy](problem)
    x = program.start(tree)
    assert program.objective(x) == pytest.approx(problem.objective(tree), rel=1e-12)
    again = program.tree(x)
    np.testing.assert_allclose(again.weights, tree.weights, atol=1e-15)
    np.testing.assert_allclose(again.leaf_classes, tree.leaf_classes, atol=1e-15)
    rates = problem.rates(tree)[:2]
    first = len(program.variables.linear_lower)
    np.testing.assert_allclose(program.constraints(x)[first : first + 2], rates, rtol=1e-12)
