"""The likelihood of a question, and the best table under its quadratic model."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from softsplit.points.cells import cells_of
from softsplit.points.fits import fit_counts, fit_steps
from softsplit.points.likelihood import Gate, GateRows, derivatives, fit_gate
from softsplit.points.terms import Prices, Target, slope_term, table_terms
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import CATEGORY, NUMBER, Cells, Variable


def made_rows(rng, n_rows=60, n_classes=3):
    """Rows of a question whose left and right answers differ."""
    left, right = rng.dirichlet(np.ones(n_classes), size=(2, n_rows))
    reach = rng.uniform(0.2, 1.0, n_rows)[:, None]
    outside = (1.0 - reach) * rng.dirichlet(np.ones(n_classes), size=n_rows)
    shares = np.eye(n_classes)[rng.integers(n_classes, size=n_rows)]
    base, gain = outside + reach * right, reach * (left - right)
    return GateRows(base, gain, 0.6 * shares + 0.4 / n_classes, rng.uniform(0.5, 2.0, n_rows))


def objective(rows, scores):
    gates = 1.0 / (1.0 + np.exp(-scores))
    says = rows.base + gates[:, None] * rows.gain
    return -float(rows.weights @ np.sum(rows.shares * np.log(says), axis=1))


def test_derivatives_against_finite_differences():
    rng = np.random.default_rng(0)
    rows, sums = made_rows(rng), rng.integers(0, 9, 60).astype(float)
    first, second = derivatives(rows, sums, Gate(-1.0, 0.4, np.inf))
    scores, step = -1.0 + 0.4 * sums, 1e-5
    for i in range(0, 60, 7):
        move = np.eye(60)[i] * step
        up, here, down = (objective(rows, scores + k * move) for k in (1, 0, -1))
        assert first[i] == pytest.approx((up - down) / (2 * step), abs=1e-6)
        exact = (up - 2 * here + down) / step**2
        assert second[i] >= exact - 1e-3
        if exact > 0.01:
            assert second[i] == pytest.approx(exact, rel=1e-2)


def test_the_gate_reaches_the_least_value():
    rng = np.random.default_rng(1)
    rows, sums = made_rows(rng, 200), rng.integers(0, 9, 200).astype(float)
    ridge = 0.3
    gate = fit_gate(rows, sums, Gate(0.0, 0.1, np.inf), ridge, 5.0, 50)
    best = minimize(
        lambda ab: objective(rows, ab[0] + ab[1] * sums) + 0.5 * ridge * ab[1] ** 2,
        [0.0, 0.1],
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 2000},
    )
    assert gate.value <= best.fun + 1e-3
    steep = fit_gate(rows, sums, Gate(0.0, 0.1, np.inf), 0.0, 0.05, 50)
    assert abs(steep.slope) <= 0.05


@pytest.mark.parametrize("direction", [0, 1, -1])
def test_steps_are_the_best_of_all(direction):
    rng = np.random.default_rng(2)
    for _ in range(5):
        target, weight = rng.normal(0, 1.5, 8), rng.uniform(0.1, 2.0, 8)
        segments = np.cumsum([0, *(rng.random(7) < 0.7)])
        points, blocks = fit_steps(target, weight, segments, 3, 0.4, 10, direction)
        assert points.min() == 0
        assert np.all(np.diff(points) * direction >= 0)
        assert blocks == 1 + np.count_nonzero(np.diff(points))

        def loss(points, target=target, weight=weight):
            quarters = np.subtract.outer(np.arange(-10, 11, 0.25), target - points)
            return 0.5 * np.min(weight @ (quarters**2).T)

        best = np.inf
        for count in range(3):
            for begins in combinations(range(1, segments[-1] + 1), count):
                block_of = np.searchsorted(begins, segments, side="right")
                for heights in product(range(-5, 6), repeat=count):
                    if np.all(np.array(heights) * direction >= 0):
                        line = np.cumsum([0, *heights])[block_of]
                        best = min(best, loss(line) + 0.4 * count)
        assert loss(points) + 0.4 * (blocks - 1) == pytest.approx(best)


def test_points_of_a_table_are_ten_at_most():
    points, _ = fit_steps(np.array([0.0, 40.0, 80.0]), np.ones(3), np.arange(3), 4, 0.5, 10, 0)
    assert points.tolist() == [0, 5, 10]


def test_counts_are_the_best_of_all():
    rng = np.random.default_rng(3)
    counts = np.array([np.arange(10), np.arange(10) // 2])
    target = 1.9 * np.clip(np.arange(10) - 2, 0, 6) + rng.normal(0, 0.1, 10)
    weight = np.ones(10)
    assert fit_counts(counts, target, weight, 10, 0.0, 0.0, 1, 3) == (0, 2, 6, 2)
    assert fit_counts(counts, target, weight, 10, 0.0, 0.0, -1, 3)[-1] == 0

    def loss(line):
        rest = target - line
        return 0.5 * weight @ (rest - np.average(rest, weights=weight)) ** 2

    every = [
        loss(n * np.clip(line - a, 0, m))
        for line in counts
        for a in range(7)
        for m in range(3, 10 - a)
        for n in range(-10, 11)
    ]
    assert loss(2 * np.clip(counts[0] - 2, 0, 6)) == pytest.approx(min(every))


def test_tables_follow_a_planted_effect():
    rng = np.random.default_rng(4)
    numbers = rng.uniform(0.0, 100.0, 800)
    column = cells_of(Variable("age", NUMBER, 50.0), Cells.of(numbers))
    effect = np.where(numbers < 30, 0.0, np.where(numbers < 60, 2.0, 5.0))
    counts = np.bincount(column.codes, minlength=column.n_cells + 1)
    target = column.sums(effect) / np.maximum(counts, 1)
    weight = counts.astype(float)
    best = table_terms(column, Target(target, weight + 1e-12), Prices())[0].lookup
    assert np.mean(np.abs((best.values(numbers, column.missing) - effect) % 1)) < 0.05
    assert len(best.edges) == 2
    assert best.edges == pytest.approx((30.0, 60.0), abs=3.0)


@pytest.mark.parametrize("direction", [1, -1])
def test_tables_follow_their_direction_and_missing_values_are_free(direction):
    numbers = np.random.default_rng(7).normal(0.0, 10.0, 400)
    numbers[::5] = np.nan
    column = cells_of(Variable("x", NUMBER, 0.0, True), Cells.of(numbers))
    valley = np.append(0.5 * np.abs(column.centres[:-1]), -direction * 20.0)
    tables = table_terms(column, Target(valley, column.sizes + 1e-12), Prices(), direction)
    assert len(tables) == 2
    for lookup in (table.lookup for table in tables):
        assert lookup.direction == direction
        assert (lookup.unknown - lookup.points[0]) * direction <= 0


def test_levels_of_like_effect_share_points_and_unknown_has_its_own():
    rng = np.random.default_rng(5)
    variable = Variable("colour", CATEGORY, 0.0, True, ("a", "b", "c", "d"))
    codes = rng.integers(0, 5, 500).astype(float)
    missing = codes == 4
    cells = Cells(np.where(missing, np.nan, codes), missing, np.zeros(500, dtype=bool))
    column = cells_of(variable, cells)
    effect = np.array([1.1, 4.2, 0.9, 3.8, 7.0])
    weight = np.bincount(column.codes, minlength=column.n_cells + 1).astype(float)
    target = np.append(effect[:4], np.zeros(column.n_cells - 4))
    target = np.append(target, effect[4])
    lookup = table_terms(column, Target(target, weight + 1e-12), Prices())[0].lookup
    assert lookup.points[0] == lookup.points[2]
    assert lookup.points[1] == lookup.points[3] == lookup.points[0] + 3
    assert lookup.unknown == lookup.points[0] + 6


def test_slopes_are_whole_numbers_per_readable_unit():
    numbers = np.random.default_rng(6).uniform(0.0, 200.0, 400)
    column = cells_of(Variable("glucose", NUMBER, 100.0), Cells.of(numbers))
    coefficients = np.array([0.05, -0.02])
    weights = column.sizes
    term = slope_term(column, (120.0,), coefficients, 0.0, 0.5, weights, Prices())
    assert term.lookup.unit in {10.0, 20.0, 50.0, 100.0}
    exact = Lookup(slopes=(0.1, 0.06), knots=(120.0,)).values(numbers, column.missing)
    assert np.max(np.abs(term.points - exact)) < 1.0
    falling = slope_term(column, (120.0,), coefficients, 0.0, 0.5, weights, Prices(), -1)
    assert falling is None
    bent = slope_term(column, (120.0,), np.array([0.05, -0.1]), 0.0, 0.5, weights, Prices(), 1)
    assert bent.lookup.slopes[0] > 0 == bent.lookup.slopes[1]
    assert slope_term(column, (), np.zeros(1), 0.0, 0.5, weights, Prices()) is None
