"""The metric of descents, against dense products of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from softsplit.engines.gram import CHUNK_ROWS, MOST_FEATURES, RIDGE, Gram


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
