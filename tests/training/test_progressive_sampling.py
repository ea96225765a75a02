"""Many rows by samples that grow: what is kept where the time ends on the way."""

from __future__ import annotations

import numpy as np
import pytest

from likelihood_cases import learnable_rows, problem_of
from softsplit.problem.penalties import PenaltyPair, counting
from softsplit.solvers import Budget, EliminationSolver, Status
from softsplit.training import progressive_sampling as sampling

SIZES = (60, 300)


@pytest.fixture
def problem():
    X, y = learnable_rows(1, n_rows=900, n_features=6, n_classes=3)
    penalties = PenaltyPair.of(counting()).with_strengths(0.5, 2.0)
    return problem_of(X, y, depth=2, penalties=penalties)


def test_where_no_time_is_left_a_tree_of_a_sample_is_measured_and_stays(problem):
    class Never(EliminationSolver):
        def solve(self, problem, start, budget):
            raise AssertionError("a descent takes time")

    few = problem.on_sample(60)
    found = sampling.multistart(few, EliminationSolver(), n_starts=1)[0]
    budget = Budget()
    budget.stop()
    kept = sampling.finished_on_all_rows(problem, Never(), found, budget)
    assert np.array_equal(kept.parameters.weights, found.parameters.weights)
    assert kept.objective == pytest.approx(problem.objective(found.parameters))
    assert kept.status is Status.INTERRUPTED
