"""Many rows by samples that grow: what is kept where the time ends on the way."""

from __future__ import annotations

from dataclasses import replace

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


def cut_in_stage(monkeypatch, stage, budget, n_made=1):
    """The budget ends in a stage, after so many starts, the last of which has got nowhere."""
    calls, real, told = [], sampling.multistart, {}

    def multistart(few, solver, **settings):
        calls.append(few)
        ends = real(few, solver, **settings)
        if len(calls) <= stage:
            return ends
        budget.stop()
        nothing = np.zeros_like(ends[0].parameters.weights)
        tree = replace(ends[0].parameters, weights=nothing)
        told["nowhere"] = replace(
            ends[n_made - 1], parameters=tree, objective=few.objective(tree),
            status=Status.INTERRUPTED,
        )  # fmt: skip
        return [*ends[: n_made - 1], told["nowhere"]]

    def watched_search(few, solver, solutions, **settings):
        told["few"], told["last"] = few, solutions
        return real_hop(few, solver, solutions, **settings)

    real_hop = sampling.search_around
    monkeypatch.setattr(sampling, "multistart", multistart)
    monkeypatch.setattr(sampling, "search_around", watched_search)
    return told


def test_trees_of_different_samples_are_compared_on_the_same_rows(monkeypatch, problem):
    budget = Budget()
    told = cut_in_stage(monkeypatch, 1, budget, n_made=2)
    best, starts = sampling.progressive_sampling(
        problem, EliminationSolver(), SIZES, n_starts=6, seed=0, budget=budget, n_jobs=1
    )
    few, last = told["few"], told["last"]
    assert few.rows.n_rows < problem.rows.n_rows and len(last) == sampling.PROMOTED[0]
    for one in last:
        assert one.objective == pytest.approx(few.objective(one.parameters), rel=1e-6)
    # The start that was cut short has its tree of the smaller sample, which is the better one.
    assert all(one.objective < told["nowhere"].objective for one in last)
    assert len(starts) == 6
    assert np.any(best.parameters.weights) and best.status is Status.INTERRUPTED


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
