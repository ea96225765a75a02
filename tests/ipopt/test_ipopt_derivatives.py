"""Derivatives of the program for IPOPT against finite differences, the Hessian above all.

Points are chosen where every gate reacts: at a saturated gate all derivatives vanish, and any
check passes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import SCOPES, SURROGATES, sensitive_case, surrogate_id
from softsplit.ipopt.program import Pattern, SubstitutedProgram
from softsplit.problem.penalties import PenaltyPair, Surrogate, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.routing import split_scores

EVERY_SCOPE = {**SCOPES, "none": (0.0, 0.0)}
DEPTHS = [1, 2, 3, 4]
STEEPNESSES = [2.0, 32.0, 512.0]
TOLERANCE = 1e-6
FACTOR = 1.7
"""IPOPT's factor of the objective; 1 would hide where it is forgotten."""


def small_problem(
    depth: int, steepness: float, penalties: PenaltyPair
) -> tuple[TrainingProblem, TreeParameters]:
    """Few rows; one class has no rate."""
    case = sensitive_case(3, depth, steepness, penalties, rates=0.1, n_rows=8)
    rates = np.array(case.problem.minimum_rates)
    rates[-1] = 0.0
    return replace(case.problem, minimum_rates=rates), case.tree


def make_program(
    problem: TrainingProblem, tree: TreeParameters
) -> tuple[SubstitutedProgram, np.ndarray]:
    """The program, and a point off the bounds and with P off its routing."""
    program = SubstitutedProgram(problem)
    x = program.start(tree)
    x = x + np.random.default_rng(5).uniform(1e-2, 2e-2, len(x)) * min(1.0, 32 / problem.steepness)
    gates = problem.steepness * split_scores(program.tree(x), problem.samples.features)
    assert np.max(np.abs(gates[problem.free_branches]), initial=0.0) < 6
    return program, x


def dense(pattern: Pattern, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros(pattern.shape)
    columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.column_starts))
    matrix[pattern.row_indices, columns] = pattern.gather(values)
    return matrix


def along(function, x: np.ndarray, direction: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Derivative along ``direction``, which also gives the step: fourth-order differences."""
    near = np.atleast_1d(function(x + direction)) - np.atleast_1d(function(x - direction))
    far = np.atleast_1d(function(x + 2 * direction)) - np.atleast_1d(function(x - 2 * direction))
    return (8 * near - far) / 12


def step_length(problem: TrainingProblem) -> float:
    return 1e-3 * min(1.0, 8 / problem.steepness)


def lagrangian(program: SubstitutedProgram):  # type: ignore[no-untyped-def]
    """Gradient function and full Hessian function of factor * f + multipliers . g."""
    multipliers = np.random.default_rng(3).normal(size=len(program.constraint_lower))

    def slope(at: np.ndarray) -> np.ndarray:
        jacobian = dense(program.jacobian_pattern, program.jacobian(at))
        return FACTOR * program.gradient(at) + jacobian.T @ multipliers

    def hessian(at: np.ndarray) -> np.ndarray:
        upper = dense(program.hessian_pattern, program.hessian(at, FACTOR, multipliers))
        assert np.all(np.tril(upper, -1) == 0)
        return upper + np.triu(upper, 1).T

    return slope, hessian


def check_every_entry(program: SubstitutedProgram, x: np.ndarray, step: float) -> None:
    slope, hessian = lagrangian(program)
    jacobian = dense(program.jacobian_pattern, program.jacobian(x))
    for found, function in [
        (program.gradient(x)[None], program.objective),
        (jacobian, program.constraints),
        (hessian(x), slope),
    ]:
        columns = [along(function, x, step * unit) / step for unit in np.eye(len(x))]
        expected = np.array(columns).T
        atol = TOLERANCE * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=atol)


def groups_of_variables(program) -> dict[str, np.ndarray]:  # type: ignore[no-untyped-def]
    """Variables of one kind: their second derivatives are of one order of size."""
    variables = program.variables
    groups = {
        "weights": variables.weights.ravel(),
        "thresholds": variables.thresholds,
        "leaf classes": variables.leaf_values.ravel(),
    }
    if variables.negative is not None:
        groups["negative parts"] = variables.negative.ravel()
    if len(variables.caps):
        groups["caps"] = variables.caps
    assert sum(map(len, groups.values())) == len(program.lower)
    return groups


def check_hessian_products(program: SubstitutedProgram, x: np.ndarray, step: float) -> None:
    """One random direction per kind of variable, compared kind by kind.

    Relative to the largest number of each kind: beside the curvature of steep gates that of a
    penalty or of the leaf classes would not show.
    """
    rng = np.random.default_rng(7)
    slope, hessian = lagrangian(program)
    matrix = hessian(x)
    groups = groups_of_variables(program)
    compared = 0
    for name, members in groups.items():
        direction = np.zeros(len(x))
        direction[members] = rng.uniform(0.5, 1.0, len(members)) * rng.choice([-1, 1], len(members))
        found, expected = matrix @ direction, along(slope, x, step * direction) / step
        noise = 1e-11 * np.max(np.abs(slope(x))) / step
        for other, rows in groups.items():
            size = np.max(np.abs(expected[rows]))
            error = np.max(np.abs(found[rows] - expected[rows]))
            assert error <= TOLERANCE * size + noise, f"{name}, {other}"
            compared += size > 1e-3 and noise < TOLERANCE * size
    branches = np.concatenate([groups["weights"], groups["thresholds"]])
    assert np.max(np.abs(matrix[np.ix_(branches, branches)])) > 1e-2
    assert np.max(np.abs(matrix[groups["leaf classes"]])) > 1e-2
    assert compared >= 4, "too many blocks are too small to check anything"


def balanced_penalties(
    problem: TrainingProblem, tree: TreeParameters, surrogate: Surrogate, scope: str
) -> PenaltyPair:
    """Strengths that make the penalties' slopes of the size of the loss's."""
    target = 0.5 * np.max(np.abs(problem.evaluate_cost(tree).weights))
    strengths = []
    for strength, name in zip(SCOPES[scope], ("local_strength", "global_strength"), strict=True):
        slopes = PenaltyPair.of(surrogate, **{name: 1.0}).gradient(tree.weights)
        strengths.append(target / np.max(np.abs(slopes)) if strength else 0.0)
    return PenaltyPair.of(surrogate, *strengths)


# What a penalty adds does not depend on the routing: each is compared on one tree, and each tree
# with one penalty.
ROUTINGS = [
    (depth, steepness, "both", exponential()) for depth in DEPTHS for steepness in STEEPNESSES
]
PENALISED = [(2, 32.0, scope, surrogate) for scope in SCOPES for surrogate in SURROGATES]


@pytest.mark.parametrize(
    ("depth", "steepness", "scope", "surrogate"),
    ROUTINGS + PENALISED,
    ids=lambda part: surrogate_id(part) if isinstance(part, Surrogate) else str(part),
)
def test_hessian_products(depth: int, steepness: float, scope: str, surrogate: Surrogate) -> None:
    problem, tree = small_problem(depth, steepness, PenaltyPair.of(surrogate))
    problem = problem.with_penalties(balanced_penalties(problem, tree, surrogate, scope))
    program, x = make_program(problem, tree)
    check_hessian_products(program, x, step_length(problem))


@pytest.mark.parametrize(("depth", "steepness"), [(1, 2.0), (2, 32.0), (2, 512.0)])
@pytest.mark.parametrize("scope", EVERY_SCOPE)
def test_every_entry_of_the_derivatives(depth: int, steepness: float, scope: str) -> None:
    penalties = PenaltyPair.of(exponential(), *EVERY_SCOPE[scope])
    problem, tree = small_problem(depth, steepness, penalties)
    program, x = make_program(problem, tree)
    check_every_entry(program, x, step_length(problem))


@pytest.mark.parametrize("scope", EVERY_SCOPE)
@pytest.mark.parametrize("block", [Block((1,), (0, 1)), Block((0, 2), (1, 3)), Block((), (2,))])
def test_derivatives_of_a_restricted_problem(scope: str, block: Block) -> None:
    problem, tree = small_problem(2, 32.0, PenaltyPair.of(exponential(), *EVERY_SCOPE[scope]))
    program, x = make_program(problem.restrict(block, tree), tree)
    check_every_entry(program, x, step_length(problem))
