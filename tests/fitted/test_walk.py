"""The walk: its choice against brute force, rounding, counts, and what decides its leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.fitted.walk import Arriving, Walk, arrivals
from softsplit.fitted.walk_choice import best_cut, choose_walk, chosen_walk
from softsplit.fitted.walk_rounding import fit_walk, significant
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values, split_scores
from softsplit.tree.scaling import LinearScaling


def random_tree(rng, n_features=3, depth=2, n_classes=3):
    n_branches = 2**depth - 1
    return TreeParameters(
        rng.normal(size=(n_features, n_branches)) * 3,
        rng.normal(size=n_branches) * 0.3,
        rng.dirichlet(np.full(n_classes, 0.4), size=n_branches + 1).T,
    )


def random_rows(rng, n_rows=60, n_features=3, n_classes=3):
    return Arriving(
        rng.normal(size=(n_features, n_rows)),
        rng.integers(n_classes, size=n_rows),
        rng.uniform(0.5, 2, n_rows),
    )


@examples(50)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 12))
def test_the_best_cut_is_that_of_all_cuts(seed, n_rows):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, n_rows) / 2.0
    gains = rng.integers(-2, 3, n_rows).astype(float)
    cut = best_cut(scores, gains, 0.1)
    places = np.concatenate([[scores.min() - 1], np.unique(scores)])
    assert cut.gain == max(gains[scores > place].sum() for place in places)
    assert gains[scores > cut.nearest(0.1)].sum() == cut.gain


@examples(30)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
def test_a_leaf_has_the_class_of_the_rows_that_arrive(seed, depth):
    rng = np.random.default_rng(seed)
    tree, rows = random_tree(rng, depth=depth), random_rows(rng)
    scores = split_scores(tree, rows.features)
    mixed = mixed_values(tree, rows.features, 4.0).argmax(axis=0)
    votes = np.eye(3)[mixed].T * rows.weights
    worth = np.eye(3)[rows.labels].T * rows.weights
    chosen = choose_walk(scores, votes, worth, tree.leaf_values)
    assert chosen.predicted(scores).shape == mixed.shape
    at = arrivals(scores > chosen.cuts[:, None])
    for leaf in np.unique(at):  # a leaf has the class of the rows that arrive
        weights = np.bincount(rows.labels[at == leaf], rows.weights[at == leaf], 3)
        assert weights[chosen.classes[leaf]] == pytest.approx(weights.max())


@examples(25)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
def test_rounding_changes_the_class_of_no_row_of_a_small_table(seed, depth):
    rng = np.random.default_rng(seed)
    scaling = LinearScaling(rng.normal(size=3) * 100, rng.uniform(0.01, 1000, 3), "standard")
    tree, rows = random_tree(rng, depth=depth), random_rows(rng)
    chosen = chosen_walk(tree, 4.0, rows, np.eye(3))
    rounded, walk = fit_walk(tree, 4.0, scaling, rows, np.eye(3))
    X = np.array([scaling.restored(j, rows.features[j]) for j in range(3)]).T
    wanted = chosen.predicted(split_scores(tree, rows.features))
    assert_array_equal(walk.classes[walk.leaves(X, scaling)], wanted)
    assert np.all(walk.coefficients == np.vectorize(lambda c: significant(c, 6))(walk.coefficients))
    assert_allclose(rounded.leaf_values.sum(axis=0), 1.0)
    moved = mixed_values(rounded, rows.features, 4.0)
    exact = mixed_values(tree, rows.features, 4.0)
    assert np.abs(moved - exact).mean() < 0.02


def test_apply_and_decision_path_are_those_of_scikit_learn():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y)
    nodes, path = tree.apply(X), tree.decision_path(X)
    assert path.shape == (len(X), 2 * len(tree.thresholds_) + 1)
    assert_array_equal(np.asarray(path[np.arange(len(X)), nodes]).ravel(), 1.0)
    assert_array_equal(np.asarray(path.sum(axis=1)).ravel(), path[0].sum())
    walk = tree.tree_.walk
    leaves = nodes - len(tree.thresholds_)
    assert_array_equal(tree.predict(X), tree.classes_[walk.classes[leaves]])
    arrived = np.zeros_like(walk.counts)
    np.add.at(arrived, (np.asarray(y), leaves), 1.0)
    assert_array_equal(arrived, walk.counts)


@pytest.mark.parametrize("largest", [1.0, 1e300])
def test_compiled_walks_take_the_way_of_single_questions(largest):
    """Sums at a threshold included, which are no yes, and values whose sums would overflow."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(40_000, 6)), 1) * largest
    coefficients = np.round(rng.normal(size=(7, 6)), 1) * (rng.random((7, 6)) < 0.8)
    thresholds = np.round(rng.normal(size=7), 1) * largest
    upwards, ranked = rng.random(7) < 0.5, np.zeros(7, dtype=bool)
    walk = Walk(
        coefficients, thresholds, upwards, ranked, np.zeros((2, 8)), np.zeros(8, dtype=np.intp)
    )
    scaling = LinearScaling(np.zeros(6), np.ones(6))
    leaves = walk.leaves(X, scaling)
    holds = np.array([walk.holds(t, X) for t in range(7)])
    assert_array_equal(leaves, arrivals(holds))
    assert_array_equal(leaves[:10], walk.leaves(X[:10], scaling))
    rows = Arriving(X.T, rng.integers(2, size=len(X)), rng.random(len(X)))
    expected = np.zeros((2, 8))
    np.add.at(expected, (rows.labels, leaves), rows.weights)
    assert_array_equal(walk.arriving(rows, scaling), expected)
