"""Tiled products against those of numpy, at every remainder of tiles, features and branches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softsplit.engines.gram import CHUNK_ROWS, MOST_FEATURES, RIDGE, Gram
from softsplit.engines.products import ROWS, scores_of, sums_of, upper_products

SIZES = [(rows, features, branches)
         for rows in (1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 5)
         for features in (1, 3, 4, 5, 9)
         for branches in (1, 2, 3, 4, 7)]  # fmt: skip


def drawn(rows, features, branches):
    """Features, splits and slopes; and (x / n_features, -1) of all rows."""
    rng = np.random.default_rng([rows, features, branches])
    table = rng.normal(size=(features, rows))
    theta, slopes = rng.normal(size=(branches, features + 1)), rng.normal(size=(branches, rows))
    return table, theta, slopes, np.vstack([table / features, -np.ones(rows)])


def test_scores_and_derivatives_are_plain_products():
    for size in SIZES:
        table, theta, slopes, moves = drawn(*size)
        scores, gradient = np.full(slopes.shape, np.nan), np.full(theta.shape, np.nan)
        scores_of(theta, table, scores)
        assert_allclose(scores, theta @ moves, atol=1e-12, err_msg=str(size))
        sums_of(slopes, table, np.ones(len(theta), bool), gradient)
        assert_allclose(gradient, slopes @ moves.T, atol=1e-10, err_msg=str(size))


def test_branches_that_are_not_free_have_no_derivative():
    table, theta, slopes, moves = drawn(300, 5, 4)
    free, gradient = np.array([True, False, False, True]), np.full(theta.shape, np.nan)
    sums_of(slopes, table, free, gradient)
    assert_allclose(gradient, np.where(free[:, None], slopes @ moves.T, 0.0), atol=1e-10)


@pytest.mark.parametrize("n", range(1, 10))
def test_products_on_and_above_the_diagonal(n):
    lines, others = np.random.default_rng(n).normal(size=(2, n, 30))
    matrix = np.zeros((n, n))
    upper_products(lines, others, matrix)
    assert_allclose(np.triu(matrix), np.triu(lines @ others.T), atol=1e-12)


# The metric of descents, against dense products of all rows.


def rows(n_features, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n_features, n_rows)), rng.uniform(0.5, 2.0, n_rows)


@pytest.mark.parametrize("n_rows", [50, 2 * CHUNK_ROWS + 17])
def test_inverse_and_diagonal_are_those_of_the_dense_matrix(n_rows):
    features, weights = rows(4, n_rows)
    design = np.vstack([features / 4, -np.ones(n_rows)])
    dense = (design * weights) @ design.T
    gram = Gram(features, weights)
    ridged = dense + RIDGE * np.diag(np.diag(dense))
    np.testing.assert_allclose(gram.inverse @ ridged, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(gram.diagonal * np.diag(dense), 1)


def test_features_of_zeros_and_many_features_have_a_finite_metric():
    features, weights = rows(3, 40)
    features[1] = 0.0
    gram = Gram(features, weights)
    assert np.all(np.isfinite(gram.inverse)) and np.all(np.isfinite(gram.diagonal))
    assert gram.diagonal[1] > 1e6 * gram.diagonal[0]
    many = Gram(*rows(MOST_FEATURES, 5))
    assert many.inverse.shape == (0, 0) and many.diagonal.shape == (MOST_FEATURES + 1,)
