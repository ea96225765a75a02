"""Class shares in the leaves of cost-trained trees, and classes called by costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer

from readings import LEAVES, random_classifier, random_model
from softsplit import SoftTreeClassifier, export_text
from softsplit.fitted.leaf_shares import smoothed_shares
from softsplit.fitted.pruning import simplified_model
from softsplit.plots import DecisionRegionsDisplay


def quick(**settings):
    return SoftTreeClassifier(**({"loss": "cost", "n_starts": 1, "random_state": 0} | settings))


def as_called(tree, X):
    """Probability of being called each class: a mixture of the classes of the leaves."""
    return tree.leaf_proba(X) @ tree.leaf_classes_.T


def shares_by_hand(tree, X, y, weight):
    """The formulas in plain loops, for leaves that all have different classes."""
    n_classes, n_leaves = tree.leaf_classes_.shape
    reach, shares = tree.leaf_proba(X), np.ones((n_classes, n_leaves))
    for _ in range(4):  # equal shares: the first step counts masses
        mass = np.zeros((n_classes, n_leaves))
        for i, k in enumerate(np.searchsorted(tree.classes_, y)):
            mass[k] += weight[i] * reach[i] * shares[k] / (reach[i] @ shares[k])
        prior = mass.sum(axis=1) / weight.sum()
        for leaf in range(n_leaves):
            added = mass[:, leaf] + prior * weight.mean()
            shares[:, leaf] = added / (mass[:, leaf].sum() + weight.mean())
    return shares


@pytest.mark.parametrize("steepness", [20.0, 512.0])
def test_shares_are_those_of_the_rows_whatever_the_costs(steepness):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    tree = quick(
        class_weight="balanced", cost_matrix=[[0, 1], [9, 0]], min_class_rate=0.3,
        steepness=steepness,
    )  # fmt: skip
    tree.fit(X, y, sample_weight=weight)
    assert_allclose(tree.leaf_distributions_, shares_by_hand(tree, X, y, weight), atol=1e-9)
    assert_allclose(tree.leaf_distributions_.sum(axis=0), 1)
    called = as_called(tree, X).argmax(axis=1)
    assert_array_equal(tree.predict(X), tree.classes_[called])
    mixture, proba = tree.leaf_proba(X) @ tree.leaf_distributions_.T, tree.predict_proba(X)
    agree = mixture.argmax(axis=1) == called
    assert_allclose(proba[agree], mixture[agree], atol=1e-12)
    assert_array_equal(proba.argmax(axis=1), called)
    assert_allclose(proba[~agree], 0.5, atol=1e-9)  # no class above the one that is called
    assert agree.mean() > 0.9
    assert set(np.unique(tree.leaf_classes_)) == {0.0, 1.0}


def test_levelling_touches_no_row_whose_class_is_called():
    """The bound that spares most rows a second pass misses none that needs it."""
    for seed in range(1, 60, 2):
        model, X = random_model(seed, 3, 2 + seed % 4, steepness=8.0, leaves="classes")
        assert model.class_factors is not None
        mixture = model.leaf_proba(X) @ model.distributions.T
        called, proba = model.predict_index(X), model.predict_proba(X)
        assert_array_equal(proba.argmax(axis=1), called)
        assert_allclose(proba.sum(axis=1), 1)
        agree = mixture.argmax(axis=1) == called
        assert_allclose(proba[agree], mixture[agree], atol=1e-12)
        order = np.argsort(mixture, axis=1)
        assert np.all(np.diff(np.take_along_axis(proba, order, axis=1)[agree], axis=1) >= -1e-12)
    model, X = random_model(4, 3, 3, steepness=8.0, leaves="classes")
    assert model.class_factors is None
    assert_allclose(model.predict_proba(X), model.leaf_proba(X) @ model.distributions.T)


def test_a_leaf_without_rows_knows_the_classes_of_the_whole():
    mass, totals = np.array([[6.0, 0.0], [2.0, 0.0]]), np.array([6.0, 2.0])
    shares = smoothed_shares(mass, np.eye(2), totals, 1.0)
    assert_allclose(shares, [[0.75, 0.5], [0.25, 0.5]])  # and nothing against its class
    assert shares[1, 1] > shares[0, 1]
    assert_allclose(smoothed_shares(8 * mass, np.eye(2), 8 * totals, 8.0), shares)
    other = smoothed_shares(mass, np.eye(2)[::-1], totals, 1.0)
    assert_allclose(other, [[0.75, 0.75], [0.25, 0.25]])


@pytest.fixture(scope="module")
def rare():
    """A tree whose class rates make it call a class that is not the most probable there."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    y = np.where((X["a"] > 1) & (rng.uniform(size=400) < 0.4), "ill", "well")
    return quick(min_class_rate=0.8).fit(X, y), X


def test_class_rates_call_a_class_that_is_not_the_most_probable(rare, tmp_path):
    tree, X = rare
    likely = tree.classes_[tree.predict_proba(X).argmax(axis=1)]
    odd = np.flatnonzero(tree.predict(X) != likely)
    assert len(odd) > 20
    assert_array_equal(tree.predict(X) == "well", tree.decision_function(X) > 0)
    found = tree.explain(X.iloc[odd[0]])
    assert found.label == "ill" and "not the most probable class" in str(found)
    assert found.leaf_label.startswith("ill") and "well" in found.leaf_label
    assert f"class {found.leaf_label}" in export_text(tree)
    assert found.probabilities["well"] == tree.predict_proba(X.iloc[[odd[0]]])[0, 1]
    regions = DecisionRegionsDisplay.from_estimator(tree, X, resolution=30)
    assert np.any(regions.called != regions.probabilities.argmax(axis=2))
    assert_array_equal(tree.to_hard_tree().agreement(X) > 0.9, True)


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_decision_function_goes_with_the_class(leaves, n_classes):
    for seed in range(6):
        tree, X = random_classifier(seed, depth=3, n_classes=n_classes, leaves=leaves)
        X = pd.DataFrame(X, columns=tree.feature_names_in_)
        said = tree.decision_function(X)
        proba = tree.predict_proba(X)
        if n_classes == 2:
            assert said.shape == (len(X),)
            assert_array_equal(tree.classes_[(said > 0).astype(int)], tree.predict(X))
        else:
            assert said.shape == (len(X), n_classes)
            assert_array_equal(tree.classes_[said.argmax(axis=1)], tree.predict(X))
        if leaves == "shares":
            logs = np.log(np.maximum(proba, 1e-300))
            assert_allclose(said, logs[:, 1] - logs[:, 0] if n_classes == 2 else logs, atol=1e-9)
        if leaves == "costs" and n_classes == 2:
            costs = tree.tree_.call_costs
            shift = np.log(costs[1, 0] / costs[0, 1])
            assert_allclose(said, np.log(proba[:, 1] / proba[:, 0]) + shift, atol=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_the_call_is_the_one_of_least_expected_cost(seed):
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 4
    model, X = random_model(seed, depth=2, n_classes=n_classes, leaves="costs")
    costs = rng.choice([0.0, 1.0, 7.0], (n_classes, n_classes))
    costs[np.diag_indices(n_classes)] = 0.0
    model = replace(model, call_costs=costs)
    expected = model.predict_proba(X) @ costs
    called = expected[np.arange(len(X)), model.predict_index(X)]
    assert_allclose(called, expected.min(axis=1), atol=1e-12)
    small = simplified_model(model, 0.01, X)
    assert_array_equal(small.predict_index(X), model.predict_index(X))
    assert np.all(np.isfinite(model.votes(X)))
