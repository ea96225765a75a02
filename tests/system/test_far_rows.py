"""Rows at the ends of what a float holds: every function that takes new rows answers quietly."""

from __future__ import annotations

import json
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

from readings import alter
from softsplit import SoftTreeClassifier, dumps_model, loads_model
from softsplit.fitted.ranges import FarOutsideWarning

VALUES = [0.0, -0.0, 5e-324, 1e5, -1e5, 1e200, 1e308, -1.7e308, np.finfo(float).max]
SCALES = ["minmax", "standard", "quantile", "none"]
FIGURE = re.compile(r"(?<![A-Za-z])(inf|nan|infinity)(?![A-Za-z])", re.IGNORECASE)


@pytest.fixture(autouse=True)
def quiet():
    """No warning, and no floating-point error that a caller has made an exception."""
    with warnings.catch_warnings(), np.errstate(over="warn", invalid="warn", divide="warn"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FarOutsideWarning)
        yield
    plt.close("all")


def far_rows() -> np.ndarray:
    """Each value in each column alone, in all of them, and with signs that differ."""
    ordinary = np.array([0.4, 3.0, 1.0, 7.0, -2.0])
    rows = []
    for value in VALUES:
        for j in range(len(ordinary)):
            row = ordinary.copy()
            row[j] = value
            rows.append(row)
        rows.append(np.full(5, value))
        rows.append(value * np.array([1.0, -1.0, 1.0, -1.0, 1.0]))
    return np.array(rows)


def training_rows():
    """Numbers, integers, flags, a constant column, and one around -2."""
    rng = np.random.default_rng(0)
    n = 80
    X = np.column_stack([rng.uniform(size=n), rng.integers(0, 9, n), rng.integers(0, 2, n),
                         np.full(n, 7.0), rng.normal(-2, 1, n)])  # fmt: skip
    y = np.digitize(X[:, 0] + X[:, 1] / 9 + 0.4 * X[:, 2] + 0.1 * X[:, 4], [0.6, 1.1])
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module", params=SCALES)
def tree(request):
    X, y = training_rows()
    if request.param == "none":
        X = X / 10
    given = {"n_starts": 1, "random_state": 0, "points": False}
    made = SoftTreeClassifier(**given, scale=request.param).fit(X, y)
    # Every column bears on every split, also the constant one: training may leave some out.
    alter(made, weights=np.where(np.abs(made.weights_) < 0.05, 0.05, made.weights_))
    return made, X, y


def assert_shares(table):
    assert np.all(np.isfinite(table))
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-9)


def test_answers_are_probabilities(tree):
    made, _, _ = tree
    for rows in (far_rows(), np.asfortranarray(far_rows()), np.tile(far_rows(), (250, 1))):
        assert_shares(made.predict_proba(rows))
        assert_shares(made.leaf_proba(rows))
        gates = made.branch_proba(rows)
        assert np.all((gates >= 0) & (gates <= 1))
        assert np.all(np.isfinite(made.predict_log_proba(rows)))
        assert set(made.predict(rows)) <= {"a", "b", "c"}
        assert np.all(made.apply(rows) < 2 * made.leaf_classes_.shape[1] - 1)
        hard = made.to_hard_tree()
        assert set(hard.predict(rows)) <= {"a", "b", "c"}
        assert 0 <= hard.agreement(rows) <= 1
        assert 0 <= made.score(rows, made.predict(rows)) <= 1
    again = loads_model(dumps_model(made))
    np.testing.assert_array_equal(again.predict_proba(far_rows()), made.predict_proba(far_rows()))
    simple = made.simplify(far_rows(), tol=1e-6)
    np.testing.assert_array_equal(simple.predict(far_rows()), made.predict(far_rows()))


def test_explanations_hold_and_print_finite_figures(tree):
    made, X, _ = tree
    for row in far_rows()[::2]:  # seven rows of each value: every kind of row comes up
        found = made.explain(row)
        text = str(found)
        assert not FIGURE.search(text), text
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.label == made.predict(row[None, :])[0]
        low, high = X.min(axis=0), X.max(axis=0)
        for change in found.changes:
            j = change.feature
            assert low[j] <= change.new_value <= high[j]
            moved = row.copy()
            moved[j] = change.new_value
            assert made.predict(moved[None, :])[0] == change.label != found.label
        for reading in found.branches:
            mean = made.tree_.summary.scaled_mean
            weights = made.weights_[:, reading.branch] / len(made.weights_)
            at_mean = weights @ mean - made.thresholds_[reading.branch]
            if len(reading.contributions) == 5:
                log_odds = made.tree_.steepness * at_mean
                assert reading.base_log_odds == pytest.approx(log_odds, rel=1e-9, abs=1e-9)
