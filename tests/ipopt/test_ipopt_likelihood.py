"""The log-loss as a program for IPOPT: it is the problem, and all its derivatives are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_ipopt_derivatives import EVERY_SCOPE, check_every_entry

from likelihood_cases import random_problem
from softsplit.ipopt.program import SubstitutedProgram
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.tree.parameters import Block


def small_program(depth, n_classes, scope, block=None):
    """A program with class rates, and a point off all bounds."""
    penalties = PenaltyPair.of(exponential(0.7), *EVERY_SCOPE[scope])
    problem, tree = random_problem(
        1, depth, n_classes, 2, n_rows=9, penalties=penalties, ridge=0.7, rates=0.1
    )
    rates = np.array(problem.minimum_rates)
    rates[-1] = 0.0
    problem = replace(problem, minimum_rates=rates)
    if block is not None:
        problem = problem.restrict(block, tree)
    program = SubstitutedProgram(problem)
    x = program.start(tree)
    return problem, tree, program, x + np.random.default_rng(5).uniform(1e-2, 2e-2, len(x))


@pytest.mark.parametrize("scope", EVERY_SCOPE)
def test_the_program_is_the_problem(scope):
    problem, tree, program, _ = small_program(2, 3, scope)
    x = program.start(tree)
    assert program.objective(x) == pytest.approx(problem.objective(tree), rel=1e-12)
    first = len(program.variables.linear_lower)
    np.testing.assert_allclose(program.constraints(x)[first:], problem.rates(tree)[:2], rtol=1e-12)
    assert np.all(np.isinf(program.upper[program.variables.thresholds]))
    assert np.all(program.lower[program.variables.leaf_values] > 0)


@pytest.mark.parametrize("scope", EVERY_SCOPE)
@pytest.mark.parametrize(("depth", "n_classes"), [(1, 2), (2, 3), (3, 4)])
def test_every_entry_of_the_derivatives(depth, n_classes, scope):
    _, _, program, x = small_program(depth, n_classes, scope)
    check_every_entry(program, x, 3e-4)


def test_derivatives_of_a_restricted_problem():
    _, _, program, x = small_program(2, 3, "both", Block((0, 2), (1, 3)))
    check_every_entry(program, x, 3e-4)
