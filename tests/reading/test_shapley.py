"""Exact Shapley values: by their definition, by their properties, and beside shap."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from export_cases import case, table
from readings import random_classifier
from softsplit import SoftTreeClassifier


def numbers(n_columns=4, n_classes=3, seed=0):
    """A tree on numbers whose last column is noise, and the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, n_columns + 1))
    score = X[:, :n_columns].sum(axis=1) + X[:, 0] * (X[:, 1] > 0)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y), X


def by_orders(tree, row, background):
    """The mean over all orders of what a column changes when it becomes known."""
    n_columns = len(row)
    total = np.zeros((n_columns, len(tree.classes_)))
    orders = list(permutations(range(n_columns)))
    for order in orders:
        mixed = background.copy()
        before = tree.predict_proba(mixed).mean(axis=0)
        for j in order:
            mixed[:, j] = row[j]
            after = tree.predict_proba(mixed).mean(axis=0)
            total[j] += after - before
            before = after
    return total / len(orders)


def test_they_are_means_over_all_orders():
    tree, X = numbers()
    background = X[:7]
    found = tree.shapley_values(X[20:23], background)
    for i, row in enumerate(X[20:23]):
        np.testing.assert_allclose(found.values[i], by_orders(tree, row, background), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["several classes, labels", "two classes, ranks", "two classes by cost"]
)
def test_they_add_up_to_the_probabilities(name):
    tree, X = case(name)
    background = table(40, 3)
    found = tree.shapley_values(X[:6], background)
    proba = tree.predict_proba(X[:6])
    assert found.values.shape == (6, X.shape[1], len(tree.classes_))
    np.testing.assert_allclose(found.base, tree.predict_proba(background).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), proba, atol=1e-9)
    np.testing.assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-9)
    unused = np.setdiff1d(np.arange(X.shape[1]), tree.selected_features_)
    assert not found.values[:, unused].any()


def test_what_is_too_much_is_refused():
    tree, X = random_classifier(3, n_features=25, depth=2)
    X = pd.DataFrame(X, columns=tree.feature_names_in_)
    with pytest.raises(ValueError, match=r"uses \d\d columns, and exact Shapley values take 2\^"):
        tree.shapley_values(X[:1], X[:5])
    tree, X = numbers()
    with pytest.raises(ValueError, match=r"background has no rows|Found array with 0 sample"):
        tree.shapley_values(X[:1], X[:0])


def test_they_are_those_of_shap():
    shap = pytest.importorskip("shap")
    tree, X = numbers()
    background = X[:30]
    masker = shap.maskers.Independent(background, max_samples=len(background))
    other = shap.explainers.Exact(tree.predict_proba, masker)(X[40:50])
    found = tree.shapley_values(X[40:50], background)
    np.testing.assert_allclose(found.values, other.values, atol=1e-9)
    np.testing.assert_allclose(np.tile(found.base, (10, 1)), other.base_values, atol=1e-9)
