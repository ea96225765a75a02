"""Strengths: their unit, how two of them share one, and grids."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from likelihood_cases import problem_of
from native_cases import make_problem
from softsplit.selection.strengths import (
    PAPER_STRENGTHS,
    SHARES,
    bound_grid,
    given_grid,
    grid_pairs,
    strength_unit,
    strengths_at,
)


def by_likelihood():
    return problem_of(np.linspace(0, 1, 40)[:, None], np.repeat([0, 1], [10, 30]))


def test_the_unit_is_the_loss_of_the_best_tree_without_features():
    problem = by_likelihood()
    entropy = -(10 * np.log(10 / 40) + 30 * np.log(30 / 40))
    assert strength_unit(problem) == pytest.approx(entropy, rel=1e-9)
    assert strengths_at(problem, SHARES["size"], 0.1) == pytest.approx(
        (0.02 * entropy, 0.08 * entropy)
    )


def test_named_strengths_are_sorted_and_checked():
    assert_allclose(given_grid([3, 0, 1.5]), [0, 1.5, 3])
    assert_allclose(given_grid("paper"), PAPER_STRENGTHS)
    assert given_grid(None) is None
    for wrong, words in (("x", "numbers or 'paper'"), ([], "is empty"), (3, "a sequence")):
        with pytest.raises(ValueError, match=words):
            given_grid(wrong)


def test_rows_of_a_grid_by_scope():
    problem = make_problem(local=0.5, global_=2.0)
    grid = np.array([1.0, 4.0])
    assert grid_pairs(grid, "local", problem) == [[(1.0, 2.0), (4.0, 2.0)]]
    assert grid_pairs(grid, "global", problem) == [[(0.5, 1.0), (0.5, 4.0)]]
    assert grid_pairs(grid, "global", problem, 0.25) == [[(0.25, 1.0), (1.0, 4.0)]]
    assert grid_pairs(grid, "both", problem) == [[(1, 1), (1, 4)], [(4, 1), (4, 4)]]


def test_without_a_bound_the_grid_is_the_papers():
    assert_allclose(bound_grid(make_problem(classes=3, rate=0.5), "global", 5), PAPER_STRENGTHS)
    bounded = bound_grid(make_problem(classes=3, rate=0.1), "global", 5)
    assert len(bounded) == 5 and bounded[-1] / bounded[0] == pytest.approx(1000.0)
    fractions = bound_grid(by_likelihood(), "global", 4) / strength_unit(by_likelihood())
    assert np.all(np.diff(fractions) > 0) and fractions[-1] < 1
