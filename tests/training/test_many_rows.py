"""Many rows: sums in threads, few rows first, single precision, order of the rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from likelihood_cases import learnable_rows, problem_of
from softsplit import SoftTreeClassifier
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import OUTERS
from softsplit.engines.row_sums import PIECE
from softsplit.engines.samples import Samples
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.penalties import PenaltyPair, counting
from softsplit.solvers import Budget, EliminationSolver, Status
from softsplit.support.row_budgets import ROWS
from softsplit.training import progressive_sampling as sampling
from softsplit.training.preparation import prepare
from softsplit.training.rows import Rows
from softsplit.tree.scaling import fit_scaling


def gumbel_rows(n_rows, n_features=6, n_classes=3, seed=0):
    """The class with the largest of some random linear scores with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    scores = X @ rng.standard_normal((n_features, n_classes))
    return X, np.argmax(scores + 0.3 * rng.gumbel(size=scores.shape), axis=1)


X, Y = gumbel_rows(ROWS.row_sums + 5_000)


@pytest.fixture(scope="module")
def samples():
    X, y = gumbel_rows(2 * PIECE + 1000, 5)
    return Samples.from_arrays(X, y, 3, np.random.default_rng(1).uniform(0.5, 2.0, len(y)))


@pytest.mark.parametrize("outer", OUTERS)
def test_sums_of_many_rows_are_those_of_their_parts(samples, outer):
    """Up to ROWS.row_sums rows another pass adds up; threads and columns change nothing."""
    rng = np.random.default_rng(0)
    columns = np.array([0, 2, 3])
    splits, table = rng.standard_normal((7, 4)), rng.uniform(0.1, 0.9, (3, 8))
    wide = np.zeros((7, 6))
    wide[:, columns], wide[:, -1] = splits[:, :-1] * 5 / 3, splits[:, -1]
    rows = CompiledRows(samples)
    found = rows.evaluate(wide, table, outer, 2.0)
    few = rows.of_columns(columns).evaluate(splits, table, outer, 2.0)
    threaded = rows.in_threads(3).evaluate(wide, table, outer, 2.0)
    bounds = np.arange(0, samples.n_rows + ROWS.row_sums, ROWS.row_sums)
    parts = [
        CompiledRows(samples.part(np.arange(a, min(b, samples.n_rows)))).evaluate(
            wide, table, outer, 2.0
        )
        for a, b in pairwise(bounds)
        if a < samples.n_rows
    ]
    for name in ("value", "splits", "mass", "table"):
        expected = sum(getattr(part, name) for part in parts)
        scale = np.max(np.abs(expected))
        assert_allclose(getattr(found, name), expected, rtol=1e-10, atol=1e-11 * scale)
        assert_array_equal(getattr(threaded, name), getattr(found, name))
    assert few.value == pytest.approx(found.value, rel=1e-12)
    assert_allclose(few.splits[:, :-1], 5 / 3 * found.splits[:, columns], rtol=1e-9, atol=1e-6)


def test_neither_threads_nor_the_order_of_many_rows_change_a_bit():
    known = {"depth": 2, "n_starts": 2, "random_state": 0}
    order = np.random.default_rng(0).permutation(len(Y))
    one = SoftTreeClassifier(**known, n_jobs=1).fit(X, Y)
    other = SoftTreeClassifier(**known, n_jobs=2).fit(X[order], Y[order])
    assert_array_equal(one.coef_, other.coef_)
    assert one.objective_ == other.objective_


def test_single_precision_stays_single():
    known = {"depth": 2, "n_starts": 1, "curves": False, "random_state": 0}
    settings = ModelSettings.of(SoftTreeClassifier(**known).get_params(deep=False))
    rows = Rows(X.astype(np.float32), Y, np.ones(len(Y)), np.arange(3))
    assert prepare(settings, rows).problem.samples.features.dtype == np.float32
    by_cost = prepare(replace(settings, loss="cost", global_strength=0.0, penalty="l0"), rows)
    assert by_cost.problem.samples.features.dtype == np.float64
    double, single = (SoftTreeClassifier(**known).fit(A, Y) for A in (rows.X.astype(float), rows.X))
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)
    assert single.solution_.status is Status.OPTIMAL


@pytest.mark.parametrize("kind", ["ones", "counts", "fractions"])
def test_the_scaling_of_many_rows(kind):
    """As that of few, to rounding, and the same bits in any order."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.standard_normal(ROWS.unsorted_means + 1),
            rng.exponential(size=ROWS.unsorted_means + 1) ** 4,
        ]
    )
    X = np.column_stack([X, np.full(len(X), 3.0)])
    weight = {
        "ones": None, "counts": rng.integers(1, 4, len(X)).astype(float),
        "fractions": rng.uniform(0.1, 2.0, len(X)),
    }[kind]  # fmt: skip
    w = np.ones(len(X)) if weight is None else weight
    found = fit_scaling("standard", X, weight)
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    assert_allclose(found.transform(mean[None])[0, :2], 0.5, atol=1e-6)
    assert_allclose(found.transform((mean + deviation)[None])[0, :2] - 0.5, 1 / 6, rtol=1e-4)
    order = rng.permutation(len(X))
    again = fit_scaling("standard", X[order], None if weight is None else weight[order])
    assert_array_equal(found.low, again.low)
    assert_array_equal(found.span, again.span)


# Many rows by samples that grow: what is kept where the time ends on the way.


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
