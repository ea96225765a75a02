"""Sparsity indices, and selected features; the indices by plain loops are in contracts/."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from softsplit.tree.sparsity import global_sparsity, local_sparsity, selected_features

WEIGHTS = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, -1e-8], [1e-8, 0.0, 0.0], [-0.2, 0.3, 0.1]])


@pytest.mark.parametrize(
    ("weights", "threshold", "zeros", "unused", "selected"),
    [
        (WEIGHTS, 0.0, 50.0, 25.0, [1, 2, 3]),
        (WEIGHTS, 1e-7, 200 / 3, 50.0, [1, 3]),
        (np.array([[1e-7, -1e-7], [1.1e-7, 0.0]]), 1e-7, 75.0, 50.0, [1]),  # at it is zero
        (np.zeros((3, 1)), 0.0, 100.0, 100.0, []),
        (np.ones((3, 1)), 0.0, 0.0, 0.0, [0, 1, 2]),
    ],
)
def test_coefficients_up_to_the_threshold_count_as_zero(
    weights, threshold, zeros, unused, selected
):
    assert local_sparsity(weights, threshold) == pytest.approx(zeros)
    assert global_sparsity(weights, threshold) == pytest.approx(unused)
    assert_array_equal(selected_features(weights, threshold), selected)
