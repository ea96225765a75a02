"""The pass from rows to answers: right by slow formulas, the same bits in any dress.

It is there twice, compiled for many rows and in numpy for few; tests ask both.
"""

from __future__ import annotations

import math
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import brute_force
from readings import random_classifier, random_model
from slow_cases import examples
from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted import row_pass
from softsplit.fitted.row_pass import RowPassOptions
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import TILE, split_scores
from softsplit.tree.scaling import FAR, KINDS, scaled_rows

ROUTES = {"compiled": 0, "numpy": 10**12}
"""Up to how many numbers numpy answers."""


@contextmanager
def asking(route):
    """Whoever asks is answered by this route."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_pass, "OPTIONS", RowPassOptions(few=ROUTES[route]))
        yield


@pytest.fixture(params=ROUTES)
def route(request):
    with asking(request.param):
        yield request.param


def by_hand(model, X):
    """Class probabilities row by row from the paper's formulas, on scaled rows."""
    tree = model.parameters
    a, mu, c = tree.weights.tolist(), tree.thresholds.tolist(), tree.leaf_values.tolist()
    return np.array(
        [
            brute_force.class_probabilities(x, a, mu, c, model.topology.depth, model.steepness)
            for x in scaled_rows(model.scaling, X).tolist()
        ]
    )


def rounding(model, X):
    """What rounding may change of a probability: a few units of every term, times the steepness."""
    tree = model.parameters
    scaled = np.abs(scaled_rows(model.scaling, X))
    terms = scaled @ np.abs(tree.weights) / tree.n_features + np.abs(tree.thresholds)
    moved = model.steepness * terms.max(axis=1) * 2**-52 * (tree.n_features + 4)
    return 1e-13 + np.minimum(2.0, model.topology.depth * moved)


def same_to_rounding(found, expected, bound):
    assert np.all(np.isfinite(found))
    assert np.all(np.abs(found - expected).max(axis=1) <= bound)


@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 8),
    kind=st.sampled_from(KINDS),
    steepness=st.sampled_from([1e-6, 1.0, 512.0, 1e6, 1e12]),
    n_features=st.integers(1, 9),
)
@examples(60)
def test_answers_are_those_of_the_slow_formulas(seed, depth, kind, steepness, n_features):
    model, X = random_model(
        seed, depth=depth, kind=kind, steepness=steepness, n_features=n_features
    )
    X = X[:12]
    with asking("numpy"):
        found, leaves, scores = model.predict_proba(X), model.leaf_proba(X), model.scores(X)
    with asking("compiled"):
        assert_array_equal(model.predict_proba(X), found)
        assert_array_equal(model.leaf_proba(X), leaves)
        assert_array_equal(model.scores(X), scores)
    same_to_rounding(found, by_hand(model, X), rounding(model, X))
    assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    assert_allclose(leaves.sum(axis=1), 1, rtol=1e-14)
    assert_allclose(leaves @ model.parameters.leaf_values.T, found, rtol=0, atol=1e-14)


def test_scores_gates_leaves_and_the_hard_tree_are_of_one_tree(route):
    model, X = random_model(3, depth=3, n_rows=3 * TILE + 7)
    scores, gates = model.scores(X), model.gates(X)
    expected = split_scores(model.parameters, scaled_rows(model.scaling, X).T)
    assert_allclose(scores, expected, rtol=0, atol=1e-15)
    assert_allclose(np.log(gates / (1 - gates)), model.steepness * scores, rtol=1e-6, atol=1e-9)
    assert_allclose(model.leaf_proba(X)[:, 0], gates[0] * gates[1] * gates[3], rtol=1e-13)
    assert_array_equal(model.predict_index(X), model.predict_proba(X).argmax(axis=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_manners_change_no_bit(kind, depth, route):
    """Order in memory, strides, neighbours, chunks: X is longer than a tile and no multiple."""
    model, X = random_model(depth, depth=depth, kind=kind, n_features=7, n_rows=2 * TILE + 45)
    proba, leaves, scores = model.predict_proba(X), model.leaf_proba(X), model.scores(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = np.full((len(X), 20), 1e300)
    wide[:, 3:10] = X
    dresses = [
        np.asfortranarray(X), X[::-1].copy()[::-1], np.repeat(X, 3, axis=0)[::3], read_only,
        wide[:, 3:10], np.frombuffer(b"x" + X.tobytes(), offset=1).reshape(X.shape),
    ]  # fmt: skip
    for dress in dresses:
        assert_array_equal(model.predict_proba(dress), proba)
        assert_array_equal(model.leaf_proba(dress), leaves)
        assert_array_equal(model.scores(dress), scores)
    order = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(model.predict_proba(X[order]), proba[order])
    for cuts in ([1], [TILE - 1], [3, 4, TILE, TILE + 1]):
        parts = [model.predict_proba(part) for part in np.split(X, cuts)]
        assert_array_equal(np.concatenate(parts), proba)
    alone = [model.predict_proba(row[None, :])[0] for row in X[:40]]
    assert_array_equal(alone, proba[:40])
    beside = X[:40].copy()
    beside[1::2] = 1e300
    assert_array_equal(model.predict_proba(beside)[::2], proba[:40:2])


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_answered_like_the_same_numbers_in_double(kind, monkeypatch):
    tree, X = random_classifier(5, kind=kind, n_rows=TILE + 50)
    names = tree.feature_names_in_
    del tree.feature_names_in_
    single = X.astype(np.float32)
    expected = tree.predict_proba(single.astype(np.float64))
    monkeypatch.setattr(row_pass, "OPTIONS", RowPassOptions(few=0, chunk=64))
    for rows in (single, np.asfortranarray(single), single[::-1].copy()[::-1]):
        assert_array_equal(tree.predict_proba(rows), expected)
    assert_array_equal(tree.predict(single), tree.classes_[expected.argmax(axis=1)])
    for rows in (single, single.astype(np.float64)):
        rounded = tree.predict_proba(rows, dtype=np.float32)
        assert rounded.dtype == np.float32
        assert_array_equal(rounded, expected.astype(np.float32))
    with pytest.raises(ValueError, match="dtype must be numpy's float64 or float32, got 'int8'"):
        tree.predict_proba(single, dtype="int8")
    in_double, in_single = tree.explain(single[0].astype(np.float64)), tree.explain(single[0])
    assert in_single == in_double
    tree.feature_names_in_ = names
    assert_array_equal(tree.predict_proba(pd.DataFrame(single, columns=names)), expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", KINDS)
def test_far_values_count_by_their_side(kind, order, route):
    """Beyond FAR scaled units values are cut; two that are cut outweigh each other exactly."""
    model, X = random_model(6, depth=1, n_classes=2, kind=kind, n_features=4)
    weights = np.array([[0.5], [-0.5], [0.0], [0.0]])
    tree = TreeParameters(weights, np.array([0.25]), np.eye(2))
    model = replace(model, parameters=tree)
    top = np.finfo(float).max
    X = np.array(
        [[top, -top, 0, 0], [-top, top, 0, 0], [top, top, 0, 0], [1e300, 1e302, top, 0], X[0]],
        order=order,
    )
    scores = model.scores(X)[0]
    expected = (scaled_rows(model.scaling, X) @ weights / 4 - 0.25)[:, 0]
    assert_allclose(scores, expected, rtol=1e-14)
    if kind != "quantile":
        assert scores[0] == FAR / 4 and scores[1] == -FAR / 4
        assert scores[2] == scores[3] == -0.25
    assert_array_equal(model.predict_proba(X)[:2] >= 0.5, scores[:2, None] * [1, -1] >= 0)


def test_small_probabilities_keep_their_digits(route):
    """A leaf that is all but out of reach: its probability is the product of tiny gates."""
    model, _ = random_model(0, depth=2, n_classes=4, kind="identity", n_features=1, steepness=1.0)
    tree = TreeParameters(np.ones((1, 3)), np.zeros(3), np.eye(4))
    model = replace(model, parameters=tree)
    z = np.array([[-300.0], [-100.0], [20.0], [650.0]])
    expected = [1 / (1 + math.exp(-v)) ** 2 if v > 0 else math.exp(2 * v) for v in z[:, 0]]
    assert_allclose(model.leaf_proba(z)[:, 0], expected, rtol=1e-13)
    assert_allclose(model.predict_proba(z)[:, 0], expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["minmax", "quantile"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_does_not_grow_with_the_rows(kind, dtype):
    tree, X = random_classifier(1, kind=kind)
    del tree.feature_names_in_
    tree.predict_proba(X)
    peaks = []
    for times in (2000, 8000):
        rows = np.tile(X, (times, 1)).astype(dtype)
        tracemalloc.start()
        answers = tree.tree_.predict_proba(checked_rows(tree, rows))
        peaks.append(tracemalloc.get_traced_memory()[1] - answers.nbytes)
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2e5, peaks
    assert peaks[1] < 6e6
