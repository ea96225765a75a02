"""Tiled products against those of numpy, at every remainder of tiles, features and branches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

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
