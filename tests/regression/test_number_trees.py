"""Trees for numbers: known answers, reproducibility, the choice, monotone effects, limits."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from softsplit.problem.targets import Numbers
from softsplit.selection.number_choice import NumberSettings
from softsplit.selection.number_trees import fit_numbers
from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.frame import NumberRows
from softsplit.tree.leaf_families import FAMILIES, Poisson, Quantile, Squared
from softsplit.tree.leaf_functions import proves_monotone

PLAIN = NumberSettings(depth=1, strength=2.0, assess=False)


def table(n_rows=300, seed=0, n_columns=3):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def two_regimes(X, seed=1, noise=0.1):
    rng = np.random.default_rng(seed)
    return np.where(X[:, 0] > 0.3, 4.0 + 2.0 * X[:, 1], -X[:, 1]) + noise * rng.normal(size=len(X))


def r2(y, predicted):
    return 1.0 - np.mean((y - predicted) ** 2) / np.var(y)


def test_a_linear_table_is_a_short_formula():
    X = table()
    y = 10.0 + 3.0 * X[:, 0] - 2.0 * X[:, 2] + 0.1 * np.random.default_rng(2).normal(size=300)
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Squared())
    assert not tree.weights.any()
    assert np.count_nonzero(tree.leaf_rows) == 1
    leaf = int(np.argmax(tree.leaf_rows))
    np.testing.assert_allclose(tree.leaves.slopes[:, leaf], [3.0, 0.0, -2.0], atol=0.03)
    assert tree.leaves.constants[leaf] == pytest.approx(10.0, abs=0.03)
    assert tree.leaf_scale[leaf] == pytest.approx(0.1, rel=0.2)
    assert tree.points[tree.chosen].error < 0.01


def test_two_regimes_are_found_with_their_lines():
    X = table()
    y = two_regimes(X)
    settings = NumberSettings(depth=1, strength=10.0, assess=False)
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Squared(), settings)
    assert np.argmax(np.abs(tree.weights)) == 0
    assert not tree.weights[2].any()
    assert tree.thresholds[0] / tree.weights[0, 0] == pytest.approx(0.3, abs=0.1)
    slopes = sorted(tree.leaves.slopes[1].tolist())
    np.testing.assert_allclose(slopes, [-1.0, 2.0], atol=0.05)
    new = table(1000, 9)
    assert r2(two_regimes(new), tree.predict(new)) > 0.95
    assert r2(two_regimes(new), tree.predict_mixture(new)) > 0.93


def test_scores_stay_within_those_of_the_training_rows_of_a_leaf():
    X = table()
    tree = fit_numbers(NumberRows(X, Numbers.of(two_regimes(X))), Squared(), PLAIN)
    inside, far = tree.predict(X), tree.predict(50.0 * X)
    leaves, away = tree.apply(X), tree.apply(50.0 * X)
    for leaf in np.unique(away):
        assert far[away == leaf].min() >= inside[leaves == leaf].min() - 1e-9
        assert far[away == leaf].max() <= inside[leaves == leaf].max() + 1e-9


def test_order_of_rows_and_copies_do_not_matter():
    X = np.round(table(120), 1)
    y = np.round(two_regimes(X), 1)
    rng = np.random.default_rng(4)
    times = rng.integers(1, 4, 120)
    weighted = fit_numbers(NumberRows(X, Numbers.of(y, times)), Squared(), PLAIN)
    copies = np.repeat(np.arange(120), times)
    copies = rng.permutation(copies)
    copied = fit_numbers(NumberRows(X[copies], Numbers.of(y[copies])), Squared(), PLAIN)
    np.testing.assert_array_equal(weighted.weights, copied.weights)
    np.testing.assert_array_equal(weighted.leaves.slopes, copied.leaves.slopes)
    zero = NumberRows(np.vstack([X, 9.0 + X]), Numbers.of([*y, *y], [*times, *(0 * times)]))
    np.testing.assert_array_equal(fit_numbers(zero, Squared(), PLAIN).weights, weighted.weights)


def test_threads_and_seeds_give_the_same_bits():
    X = table(150)
    rows = NumberRows(X, Numbers.of(two_regimes(X)))
    trees = [
        fit_numbers(rows, Squared(), NumberSettings(depth=1, threads=threads), seed=3)
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(trees[0].weights, trees[1].weights)
    np.testing.assert_array_equal(trees[0].held_out, trees[1].held_out)
    assert trees[0].points == trees[1].points


def test_the_choice_reports_held_out_predictions_and_half_widths():
    X = table(400, n_columns=2)
    y = two_regimes(X, noise=0.5)
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Squared(), NumberSettings(depth=1))
    point = tree.points[tree.chosen]
    assert np.all(np.isfinite(tree.held_out))
    assert 1.0 - r2(y, tree.held_out) == pytest.approx(point.error, rel=1e-6)
    assert point.criterion == min(each.criterion for each in tree.points)
    new = table(2000, 8, 2)
    truth = two_regimes(new, 7, 0.5)
    covered = np.abs(truth - tree.predict(new)) <= tree.half_widths(0.9)[tree.apply(new)]
    assert 0.85 < covered.mean() < 0.95
    assert fit_numbers(NumberRows(X, Numbers.of(y)), Squared(), PLAIN).half_widths(0.9) is None


def test_sizes_follow_selection_and_limits():
    X = table(200, 5, 6)
    y = two_regimes(X) + 0.2 * X[:, 2] + 0.15 * X[:, 3] + 0.1 * X[:, 4]
    rows = NumberRows(X, Numbers.of(y))

    def fitted(**given):
        return fit_numbers(rows, Squared(), NumberSettings(depth=1, **given))

    def columns(tree):
        return np.flatnonzero(tree.weights.any(axis=1) | tree.leaves.slopes.any(axis=1))

    assert len(columns(fitted(selection="sparse"))) <= len(columns(fitted(selection="best")))
    assert len(columns(fitted(max_features=2))) <= 2
    assert np.max(np.count_nonzero(fitted(leaf_terms=1).leaves.slopes, axis=0)) <= 1
    constant = fitted(leaf_terms=0)
    assert not constant.leaves.slopes.any() and constant.weights.any()
    assert np.count_nonzero(fitted(max_leaves=1).leaf_rows) == 1
    large = fitted(min_leaf_rows=90).leaf_rows
    assert large[large > 0].min() >= 90


def test_a_leaf_of_too_few_rows_is_none():
    X = table(100)
    X[:, 0] = np.arange(100) >= 96
    y = 50.0 * X[:, 0] + X[:, 1]
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Squared(), PLAIN)
    assert tree.leaf_rows[tree.leaf_rows > 0].min() >= 10


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_finds_a_question(name):
    rng = np.random.default_rng(11)
    X = table(500, 12)
    score = np.where(X[:, 0] > 0, 1.0 + 0.5 * X[:, 1], -0.5)
    y = {
        "poisson": rng.poisson(np.exp(score)),
        "tweedie": rng.poisson(np.exp(score)) * rng.gamma(2.0, 0.5, 500),
        "gamma": rng.gamma(3.0, np.exp(score) / 3.0),
        "survival": rng.random(500) < 0.9,
    }.get(name, score + 0.2 * rng.normal(size=500))
    times = np.log(rng.exponential(np.exp(-score))) if name == "survival" else np.zeros(500)
    family = FAMILIES[name]()
    y = np.asarray(y, dtype=float)
    settings = NumberSettings(depth=1, strength=0.5, assess=False)
    tree = fit_numbers(NumberRows(X, Numbers.of(y, None, times)), family, settings)
    flat = family.deviance(y, times + family.start(y, np.ones(500), times))
    assert tree.weights[0].any()
    scores = tree.leaves.scores(X)[tree.apply(X), np.arange(500)]
    assert tree.family.deviance(y, scores + times).mean() < 0.92 * flat.mean()


def test_quantiles_leave_their_share_below():
    X = table(1000)
    y = two_regimes(X, noise=0.5)
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Quantile(level=0.8), PLAIN)
    assert np.mean(y <= tree.predict(X)) == pytest.approx(0.8, abs=0.04)


def test_exposure_counts_once():
    rng = np.random.default_rng(13)
    X, years = table(600), rng.uniform(0.5, 5.0, 600)
    rate = np.exp(0.3 + 0.4 * X[:, 0])
    y = rng.poisson(rate * years).astype(float)
    rows = NumberRows(X, Numbers.of(y, None, np.log(years)))
    tree = fit_numbers(rows, Poisson(), NumberSettings(depth=0, strength=2.0, assess=False))
    np.testing.assert_allclose(tree.predict(X).mean(), rate.mean(), rtol=0.06)
    assert tree.predict(X, np.log(years)).sum() == pytest.approx(y.sum(), rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_monotone_effects_are_proved_and_hold(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(250, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=250)
    knots = [-0.5, 0.5]
    lines = np.column_stack([X, *(np.maximum(X[:, 0] - knot, 0.0) for knot in knots)])
    monotone = ((np.array([0, 3, 4]), 1), (np.array([1]), -1))
    rows = NumberRows(lines, Numbers.of(y), np.array([0, 1, 2, 0, 0]), None, monotone)
    settings = NumberSettings(depth=2, strength=0.7, assess=False)
    tree = fit_numbers(rows, Squared(), settings, seed)
    assert all(proves_monotone(tree.weights, tree.leaves, *effect) for effect in monotone)
    new = rng.normal(size=(20_000, 3)) * 2.0
    up = new.copy()
    up[:, 0] += rng.exponential(1.0, 20_000)
    up[:, 1] -= rng.exponential(1.0, 20_000)

    def predict(values):
        bent = (np.maximum(values[:, 0] - knot, 0.0) for knot in knots)
        return tree.predict(np.column_stack([values, *bent]))

    assert np.all(predict(up) - predict(new) >= -1e-9)
    free = fit_numbers(NumberRows(lines, Numbers.of(y), rows.groups), Squared(), settings, seed)
    assert not all(proves_monotone(free.weights, free.leaves, *effect) for effect in monotone)


def test_few_rows_and_constant_targets():
    X = table(30)
    tree = fit_numbers(NumberRows(X, Numbers.of(np.full(30, 7.0))), Squared())
    np.testing.assert_allclose(tree.predict(X), 7.0)
    assert not tree.leaves.slopes.any()
    small = fit_numbers(NumberRows(X[:4], Numbers.of([1.0, 2.0, 3.0, 4.0])), Squared())
    assert np.all(np.isfinite(small.predict(X)))
    with pytest.raises(ValueError, match="no row has a positive weight"):
        fit_numbers(NumberRows(X, Numbers.of(np.ones(30), np.zeros(30))), Squared())


def test_a_sample_finds_the_tree_and_all_rows_fit_it(monkeypatch):
    monkeypatch.setattr("softsplit.selection.number_trees.PATH_ROWS", 300)
    X = table(3000)
    y = two_regimes(X, noise=0.5)
    tree = fit_numbers(NumberRows(X, Numbers.of(y)), Squared(), PLAIN)
    slopes = np.sort(tree.leaves.slopes[1])
    np.testing.assert_allclose(slopes, [-1.0, 2.0], atol=0.05)
    assert tree.leaf_rows.sum() == 3000


@dataclass(frozen=True)
class Cutting(Squared):
    """Squares that end a budget, or interrupt, when they are asked for the so manieth time."""

    asked: list = field(default_factory=list)
    last: int = 0
    budget: Budget | None = None

    def terms(self, y, eta):
        self.asked.append(1)
        if len(self.asked) == self.last:
            if self.budget is None:
                raise KeyboardInterrupt
            self.budget.stop()
        return super().terms(y, eta)


@pytest.mark.parametrize("interrupts", [False, True])
@pytest.mark.parametrize("part", [0.0, 0.4, 0.99])
def test_the_end_of_a_budget_keeps_what_there_is(part, interrupts):
    X = table(200)
    rows, settings = NumberRows(X, Numbers.of(two_regimes(X))), NumberSettings(folds=2)
    whole = Cutting()
    tree = fit_numbers(rows, whole, settings)
    assert {point.depth for point in tree.points} == {0, 1}
    budget = Budget()
    last = int(part * len(whole.asked)) + 1
    cutting = Cutting(last=last, budget=None if interrupts else budget)
    cut = budget.insist(lambda: fit_numbers(rows, cutting, settings, budget=budget))
    assert budget.stopped
    assert r2(rows.targets.values, cut.predict(X)) > 0.4
    depths = {point.depth for point in cut.points}
    assert depths == (set() if part == 0.0 else {0} if part < 0.9 else {0, 1})
