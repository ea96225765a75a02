"""Sparsity indices, and selected features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from softsplit.tree.sparsity import global_sparsity, local_sparsity, selected_features

WEIGHTS = np.array(
    [
        [0.0, 0.0, 0.0],
        [0.5, 0.0, -1e-8],
        [1e-8, 0.0, 0.0],
        [-0.2, 0.3, 0.1],
    ]
)


def test_exact_zeros_are_counted_without_a_threshold():
    assert local_sparsity(WEIGHTS) == pytest.approx(100 * 6 / 12)
    assert global_sparsity(WEIGHTS) == pytest.approx(25.0)
    assert_array_equal(selected_features(WEIGHTS), [1, 2, 3])


def test_small_coefficients_count_as_zero_with_a_threshold():
    assert local_sparsity(WEIGHTS, 1e-7) == pytest.approx(100 * 8 / 12)
    assert global_sparsity(WEIGHTS, 1e-7) == pytest.approx(50.0)
    assert_array_equal(selected_features(WEIGHTS, 1e-7), [1, 3])


def test_a_coefficient_at_the_threshold_is_zero():
    weights = np.array([[1e-7, -1e-7], [1.1e-7, 0.0]])
    assert local_sparsity(weights, 1e-7) == 75.0
    assert global_sparsity(weights, 1e-7) == 50.0


def test_the_extremes():
    assert local_sparsity(np.zeros((3, 1))) == global_sparsity(np.zeros((3, 1))) == 100.0
    assert local_sparsity(np.ones((3, 1))) == global_sparsity(np.ones((3, 1))) == 0.0
    assert len(selected_features(np.zeros((3, 1)))) == 0


def test_global_sparsity_is_never_above_local():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = rng.normal(size=(8, 7)) * (rng.uniform(size=(8, 7)) < 0.3)
        assert global_sparsity(weights) <= local_sparsity(weights)
        unused = 8 - len(selected_features(weights))
        assert global_sparsity(weights) == pytest.approx(100 * unused / 8)
