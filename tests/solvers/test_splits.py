"""Fitted splits: the regressions behind greedy starts and refits, and the splits of a plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from softsplit import SoftTreeClassifier
from softsplit.solvers.starts.grouping import fit_splits
from softsplit.solvers.starts.logistic import (
    LOGISTIC,
    fitted_split,
    mean_difference,
    ridge_logistic,
)
from softsplit.solvers.starts.plans import BOTH, LEFT, RIGHT


def two_sides(rng, features, rows, gap=0.3):
    """Rows in [0, 1]; those of target 1 lie higher in the first feature."""
    X = rng.uniform(size=(features, rows))
    target = (np.arange(rows) % 2).astype(float)
    X[0] = 0.35 * rng.uniform(size=rows) + (0.35 + gap) * target
    weight = rng.uniform(0.2, 2.0, rows)
    return X, target, weight / weight.sum()


def scores(split, X):
    return split[:-1] @ X / len(X) - split[-1]


def test_ridge_logistic_agrees_with_a_general_minimiser():
    rng = np.random.default_rng(1)
    X, target, weight = two_sides(rng, 3, 60, gap=-0.2)
    sign = 2 * target - 1

    def loss(b):
        margin = sign * (b[:3] @ X - b[3])
        return weight @ np.logaddexp(0, -margin) + 0.005 * b[:3] @ b[:3] + 0.5e-8 * b[3] ** 2

    expected = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    found = ridge_logistic(X, target, weight, 1e-2, 30)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_ridge_logistic_survives_constant_and_equal_columns():
    rng = np.random.default_rng(3)
    X, target, weight = two_sides(rng, 4, 40)
    X[1] = 0.5
    X[2] = X[0]
    found = ridge_logistic(X, target, weight, 1e-6, 6)
    assert np.all(np.isfinite(found))
    assert found[0] == pytest.approx(found[2], rel=1e-6)
    side = found[:4] @ X > found[4]
    np.testing.assert_array_equal(side, target == 1)


def test_mean_difference_is_the_diagonal_discriminant():
    rng = np.random.default_rng(4)
    X, target, weight = two_sides(rng, 5, 30)
    found = mean_difference(X, target, weight, 0.01)
    left, right = (
        X @ (weight * chosen) / np.sum(weight * chosen) for chosen in (target, 1 - target)
    )
    middle = (left + right) / 2
    spread = (X**2) @ weight / weight.sum() - middle**2
    direction = (left - right) / (spread + 0.01)
    direction *= 4 / (direction @ (left - right))
    np.testing.assert_allclose(found[:-1], direction, rtol=1e-10)
    # The means are four apart in log-odds, and the threshold lies half-way.
    assert direction @ left - found[-1] == pytest.approx(2)
    assert direction @ right - found[-1] == pytest.approx(-2)


@given(
    seed=st.integers(0, 1000),
    features=st.sampled_from([1, 2, 5, LOGISTIC.most_features, LOGISTIC.most_features + 1]),
    ridge=st.sampled_from([1e-2, 1e-4, 1e-6]),
    steepness=st.sampled_from([1.0, 32.0, 512.0]),
)
def test_a_fitted_split_lies_in_the_box_and_sends_target_one_left(seed, features, ridge, steepness):
    rng = np.random.default_rng(seed)
    X, target, weight = two_sides(rng, features, 24)
    split = fitted_split(X, target, weight, ridge, steepness)
    assert np.max(np.abs(split)) <= 1 + 1e-12
    if features <= 5 and ridge < 1e-2:
        np.testing.assert_array_equal(scores(split, X) > 0, target == 1)
    assert np.mean(scores(split, X)[target == 1]) > np.mean(scores(split, X)[target == 0])


def plan_splits(X, labels, sides, prices=None, directions=None, lots=None, ridge=1e-4, pairs=None):
    """``fit_splits`` with everything that is usually drawn left at one or a half."""
    n_branches, n_rows = len(sides), X.shape[1]
    directions = np.ones((n_branches, len(X))) if directions is None else directions
    return fit_splits(
        np.ascontiguousarray(X),
        np.asarray(labels),
        np.ones(n_rows),
        np.ones(n_rows) if prices is None else prices,
        np.asarray(sides, dtype=np.int64),
        np.ones((n_branches, n_rows)),
        np.full(n_branches, ridge),
        directions,
        np.full(n_branches, 0.5) if lots is None else np.asarray(lots),
        np.zeros((n_branches, 0, 2)) if pairs is None else pairs,
        512.0,
    )


def test_groups_are_separated_at_every_branch():
    """Four clusters on a line: {0, 1} against {2, 3}, then each pair."""
    rng = np.random.default_rng(6)
    labels = np.repeat(np.arange(4), 10)
    X = np.vstack([0.25 * labels + 0.1 * rng.uniform(size=40), rng.uniform(size=40)])
    splits = plan_splits(
        X,
        labels,
        [[LEFT, LEFT, RIGHT, RIGHT], [RIGHT, LEFT, BOTH, BOTH], [BOTH, BOTH, LEFT, RIGHT]],
    )
    left = [scores(split, X) > 0 for split in splits]
    np.testing.assert_array_equal(left[0], labels <= 1)
    np.testing.assert_array_equal(left[1][labels <= 1], labels[labels <= 1] == 1)
    np.testing.assert_array_equal(left[2][labels >= 2], labels[labels >= 2] == 2)


def test_rows_of_a_class_that_goes_both_ways_follow_the_hyperplane():
    """Class 1 lies on both ends; at branch 1 only its rows on the left are told from class 0."""
    x = np.array([0.05, 0.1, 0.15, 0.3, 0.35, 0.65, 0.7, 0.85, 0.9, 0.95])
    labels = np.array([1, 1, 1, 0, 0, 2, 2, 1, 1, 1])
    X = x[None, :]
    splits = plan_splits(X, labels, [[LEFT, BOTH, RIGHT], [LEFT, RIGHT, BOTH], [BOTH, LEFT, RIGHT]])
    root = splits[0]
    np.testing.assert_array_equal(scores(root, X) > 0, x < 0.5)
    # Had the far rows of class 1 reached branch 1, no threshold could part it from class 0.
    np.testing.assert_array_equal(scores(splits[1], X)[:5] > 0, [False] * 3 + [True] * 2)
    np.testing.assert_array_equal(scores(splits[2], X)[5:] > 0, [False] * 2 + [True] * 3)


@pytest.mark.parametrize(("lot", "row"), [(0.0, 0), (0.3, 1), (0.99, 3)])
def test_a_branch_without_two_sides_goes_through_a_row_that_arrives(lot, row):
    X = np.array([[0.1, 0.2, 0.3, 0.35, 0.8, 0.9], [0.5, 0.1, 0.7, 0.2, 0.4, 0.6]])
    labels = np.array([0, 0, 0, 0, 1, 1])
    directions = np.array([[0.0, 0.0], [0.3, -0.8], [0.1, 0.2]])
    splits = plan_splits(
        X, labels, [[LEFT, RIGHT], [BOTH, BOTH], [BOTH, BOTH]], None, directions, [0.5, lot, lot]
    )
    np.testing.assert_array_equal(splits[1, :2], directions[1])
    assert scores(splits[1], X)[row] == pytest.approx(0.0, abs=1e-15)
    arrive = 4 + int(2 * lot)
    assert scores(splits[2], X)[arrive] == pytest.approx(0.0, abs=1e-15)


def test_a_class_that_costs_nothing_among_many_features_can_be_fitted():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, LOGISTIC.most_features + 20)), rng.integers(0, 2, 60)
    costs = [[0, 1], [0, 0]]
    tree = SoftTreeClassifier(loss="cost", cost_matrix=costs, n_starts=2, random_state=0).fit(X, y)
    assert tree.solution_.violation <= 1e-6
    assert tree.solution_.cost < 1.0


def test_ridge_logistic_leaves_out_rows_of_weight_zero():
    rng = np.random.default_rng(2)
    X, target, weight = two_sides(rng, 3, 40)
    dropped = weight.copy()
    dropped[::3] = 0.0
    keep = dropped > 0
    found = ridge_logistic(X, target, dropped, 1e-3, 6)
    alone = ridge_logistic(np.ascontiguousarray(X[:, keep]), target[keep], weight[keep], 1e-3, 6)
    np.testing.assert_allclose(found, alone, rtol=1e-10)


def test_scores_of_a_fitted_split_are_log_odds_where_the_box_allows():
    rng = np.random.default_rng(5)
    X, target, weight = two_sides(rng, 3, 40)
    odds = ridge_logistic(X, target, weight, 1e-2, 6)
    steep = fitted_split(X, target, weight, 1e-2, 512.0)
    np.testing.assert_allclose(512 * scores(steep, X), odds[:3] @ X - odds[3], rtol=1e-9)
    # At a small steepness the box binds: the same hyperplane, as steep as can be.
    flat = fitted_split(X, target, weight, 1e-2, 0.5)
    np.testing.assert_allclose(flat / flat[0], steep / steep[0], rtol=1e-9)
    assert np.max(np.abs(flat)) == pytest.approx(1)


def test_dear_errors_pull_the_split_to_their_side():
    """Overlapping classes: the dearer the errors of class 0, the more of its rows are kept."""
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], 200)
    X = (0.3 * labels + 0.7 * rng.uniform(size=400))[None, :]
    kept = []
    for price in (1.0, 0.5, 0.1):
        prices = np.where(labels == 0, 1.0, price)
        split = plan_splits(X, labels, [[LEFT, RIGHT]], prices)[0]
        kept.append(np.mean(scores(split, X)[labels == 0] > 0))
    assert kept[0] < kept[1] < kept[2]


@pytest.mark.parametrize("features", [2, LOGISTIC.most_features + 1])
@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_all_rows_go_to_the_only_side_whose_errors_cost(features, side):
    rng = np.random.default_rng(8)
    labels = np.repeat([0, 1], 20)
    X = rng.uniform(size=(features, 40))
    prices = np.where(labels == 0, 1.0, 0.0)
    split = plan_splits(X, labels, [[side, 1 - side]], prices)[0]
    np.testing.assert_array_equal(scores(split, X) > 0, np.full(40, side == LEFT))
