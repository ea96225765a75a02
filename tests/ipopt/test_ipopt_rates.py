"""No interior-point method finds a better tree under bounds of rates from the same starts."""

import pytest

from rated_program import compared, fair_problem


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("odds", [False, True])
def test_ipopt_finds_no_better_tree_within_the_bound(loss, odds):
    pytest.importorskip("casadi")
    problem = fair_problem(4, loss, n_groups=3 if odds else 2, odds=odds, n=40)
    best, other = compared(problem, n_starts=1)
    assert problem.unrated.violation(best.parameters).largest <= 1e-6
    assert problem.violation(best.parameters).largest <= 1e-6
    assert best.objective <= other * (1 + 1e-3)
