"""Scalings: what they do to features, and splits carried back to original units."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import KINDS, LARGEST_END, QuantileScaling, fit_scaling, scaling_from

KIND = pytest.mark.parametrize("kind", KINDS)


def skewed(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.lognormal(sigma=2.0, size=n),
            rng.integers(0, 4, size=n),
            np.full(n, 7.0),
            rng.normal(size=n),
        ]
    )


def random_tree(n_features, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-1, 1, (n_features, 3))
    return TreeParameters(weights, rng.uniform(-1, 1, 3), np.eye(4))


@KIND
def test_features_are_mapped_one_by_one_and_never_decrease(kind):
    X = skewed()
    scaling = fit_scaling(kind, X)
    scaled = scaling.transform(X)
    assert scaling.kind == kind
    for j in range(X.shape[1]):
        assert np.all(np.diff(scaled[np.argsort(X[:, j]), j]) >= 0)
        shuffled = X[:, ::-1].copy()
        shuffled[:, j] = X[:, j]
        assert_array_equal(scaling.transform(shuffled)[:, j], scaled[:, j])


@KIND
def test_coefficients_give_the_scores_of_scaled_features(kind):
    X = skewed()
    scaling, tree = fit_scaling(kind, X), random_tree(X.shape[1])
    coef, intercept = scaling.splits(tree)
    scaled = scaling.transform(X)
    expected = scaled @ tree.weights / X.shape[1] - tree.thresholds
    read = X if scaling.linear else scaled
    assert_allclose(read @ coef.T + intercept, expected, rtol=1e-9, atol=1e-9)


@KIND
def test_a_scaled_value_is_carried_back(kind):
    X = skewed()
    scaling = fit_scaling(kind, X)
    scaled = scaling.transform(X)
    for j in (0, 1, 3):
        for i in range(20):
            assert scaling.to_original(j, scaled[i, j]) == pytest.approx(X[i, j], rel=1e-9)
    if kind != "identity":
        assert scaling.to_original(2, 0.3) == 7.0


@KIND
def test_order_repeats_and_precision_do_not_change_a_bit(kind):
    X = skewed().astype(np.float32)
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 4, size=len(X)).astype(float)
    weighted = fit_scaling(kind, X.astype(float), counts)
    rows = rng.permutation(np.repeat(np.arange(len(X)), counts.astype(int)))
    repeated = fit_scaling(kind, X[rows])
    assert_array_equal(weighted.transform(X), repeated.transform(X))
    shares = rng.uniform(0.1, 1.0, size=len(X))
    order = rng.permutation(len(X))
    one, other = fit_scaling(kind, X, shares), fit_scaling(kind, X[order], shares[order])
    assert_array_equal(one.transform(X), other.transform(X))


@KIND
def test_a_scaling_is_a_kind_and_plain_arrays(kind):
    X = skewed()
    scaling = fit_scaling(kind, X)
    text = json.dumps({name: values.tolist() for name, values in scaling.arrays().items()})
    again = scaling_from(kind, json.loads(text))
    assert_array_equal(again.transform(X), scaling.transform(X))
    assert (again.kind, again.linear, again.n_features) == (kind, scaling.linear, 4)


@pytest.mark.parametrize(
    ("kind", "parts", "sentence"),
    [
        ("cube", {}, "scaling 'cube' is unknown"),
        ("minmax", {"low": [0.0]}, "needs the arrays low, span"),
        ("minmax", {"low": [0.0], "span": [[1.0]]}, "must be lists of numbers"),
        ("minmax", {"low": [0.0], "span": [-1.0]}, "span > 0"),
        ("standard", {"low": [0.0], "span": [1.0, 2.0]}, "span > 0"),
        ("quantile", {"knots": [0.0], "ranks": [0.0], "starts": [0, 2]}, "divide its knots"),
        ("quantile", {"knots": [0.0], "ranks": [0.0], "starts": [0.0, np.inf]}, "divide its"),
        ("quantile", {"knots": [1, 0], "ranks": [0, 1], "starts": [0, 2]}, "do not increase"),
        ("quantile", {"knots": [0, 1], "ranks": [0, 2], "starts": [0, 2]}, "lie in"),
        ("quantile", {"knots": [0, 1], "ranks": [0, None], "starts": [0, 2]}, "lists of numbers"),
    ],
)
def test_numbers_that_make_no_scaling_are_refused(kind, parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        scaling_from(kind, parts)


def test_ranks_are_shares_below_plus_half_of_those_at_a_value():
    X = np.array([[1.0], [1.0], [2.0], [5.0], [5.0], [5.0]])
    scaling = QuantileScaling.fit(X)
    knots, ranks = scaling.curve(0)
    assert_array_equal(knots, [1.0, 2.0, 5.0])
    middle = np.array([1.0, 2.5, 4.5])
    assert_allclose(ranks, (middle - 1.0) / 3.5)
    assert_array_equal(scaling.transform(np.array([[-9.0], [9.0]])), [[0.0], [1.0]])


@given(arrays(np.float64, 12, elements=st.floats(-LARGEST_END, LARGEST_END)))
@examples(100)
def test_ranks_of_any_numbers_are_finite_and_in_order(column):
    X = column[:, None]
    scaled = fit_scaling("quantile", X).transform(X)[:, 0]
    assert np.all((scaled >= 0) & (scaled <= 1))
    assert np.all(np.diff(scaled[np.argsort(column)]) >= 0)


@pytest.mark.parametrize("scale", ["minmax", "quantile", "standard", "none", True, False, None])
@pytest.mark.parametrize("settings", [{}, {"loss": "cost", "steepness": 64.0}], ids=["log", "cost"])
def test_the_estimator_takes_every_scaling(scale, settings):
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(
        scale=scale,
        global_strength=0.5,
        curves=False,
        points=False,
        n_starts=1,
        random_state=0,
        **settings,
    ).fit(X, y)
    kind = {True: "minmax", "none": "identity", False: "identity", None: "identity"}
    assert tree.score(X, y) > 0.8 and tree.scaling_.kind == kind.get(scale, scale)
    read = X if tree.scaling_.linear else tree.scaling_.transform(X)
    scores = tree.tree_.steepness * (read @ tree.coef_.T + tree.intercept_)
    left = 1.0 / (1.0 + np.exp(-np.clip(scores, -700, 700)))
    assert_allclose(tree.branch_proba(X), left, atol=1e-9)
