"""Routing: exact probabilities at any steepness, and one pass that agrees with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from helpers import random_costs, random_leaf_classes
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.tree_pass import tree_pass
from softsplit.tree.routing import TILE, gate_probabilities, leaf_probabilities

NONE = np.zeros(0)
STEEPNESSES = [1e-6, 2.0, 512.0, 1e6]
DEPTHS = [1, 2, 3, 4]


def random_scores(rng, depth, n_rows):
    """Scores of the size that features and weights in [-1, 1] can give, and a few zeros."""
    scores = rng.uniform(-2, 2, (2**depth - 1, n_rows)) * 10.0 ** rng.integers(-7, 1, n_rows)
    scores[:, ::7] = 0.0
    return scores


def exact_gates(scaled):
    """Both gates in extended precision, from the textbook formula."""
    scaled = np.asarray(scaled, dtype=np.longdouble)
    return 1 / (1 + np.exp(-scaled)), 1 / (1 + np.exp(scaled))


def exact_log_leaf_probabilities(scaled):
    """log P in extended precision: sums of log-gates, which cannot underflow."""
    scaled = np.asarray(scaled, dtype=np.longdouble)
    log_left, log_right = -np.logaddexp(0, -scaled), -np.logaddexp(0, scaled)
    n_branches, n_rows = scaled.shape
    reach = np.zeros((2 * n_branches + 1, n_rows), dtype=np.longdouble)
    for t in range(n_branches):
        reach[2 * t + 1], reach[2 * t + 2] = reach[t] + log_left[t], reach[t] + log_right[t]
    return reach[n_branches:]


def run_pass(scores, starts, weights, table, steepness, outer=IDENTITY):
    """The compiled pass: value, derivative and masses."""
    slopes, mass = np.full_like(scores, np.nan), np.full_like(table, np.nan)
    value = tree_pass(scores, slopes, starts, weights, table, steepness, outer, mass, NONE)
    return value, slopes, mass


def random_pass(seed, depth, counts, steepness):
    """Arguments of a pass over classes with the given numbers of rows."""
    rng = np.random.default_rng([seed, depth, *counts])
    n_rows, n_classes = sum(counts), len(counts)
    leaf_values = random_leaf_classes(rng, n_classes, 2**depth)
    return {
        "scores": random_scores(rng, depth, n_rows),
        "starts": np.concatenate([[0], np.cumsum(counts)]),
        "weights": rng.uniform(0.1, 2.0, n_rows),
        "table": random_costs(rng, n_classes) @ leaf_values,
        "steepness": steepness,
    }


@pytest.mark.parametrize("steepness", STEEPNESSES)
def test_probabilities_are_finite_and_sum_to_one(steepness):
    scores = random_scores(np.random.default_rng(0), 4, 400)
    left, right = gate_probabilities(scores, steepness)
    leaves = leaf_probabilities(scores, steepness)
    for found in (left, right, leaves):
        assert np.all(np.isfinite(found)) and np.all(found >= 0) and np.all(found <= 1)
    assert_allclose(left + right, 1, rtol=0, atol=1e-15)
    assert_allclose(leaves.sum(axis=0), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steepness", STEEPNESSES)
def test_small_gates_keep_their_relative_accuracy(steepness):
    scaled = np.linspace(-690, 690, 2001)[None]
    scores = scaled / steepness
    for found, exact in zip(
        gate_probabilities(scores, steepness), exact_gates(steepness * scores), strict=True
    ):
        assert np.min(found) < 1e-299
        assert float(np.max(np.abs(found / exact - 1))) < 1e-15


def test_small_gates_of_the_pass_keep_their_relative_accuracy():
    """The masses of one row and a table of zeros are its leaf probabilities."""
    scaled = np.linspace(-690, 690, 401)
    for x in scaled:
        _, _, mass = run_pass(
            np.array([[x / 512.0]]), np.array([0, 1]), np.ones(1), np.zeros((1, 2)), 512.0
        )
        exact = [gate[0] for gate in exact_gates([512.0 * (x / 512.0)])]
        assert float(np.max(np.abs(mass[0] / exact - 1))) < 1e-15


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("steepness", [2.0, 512.0])
def test_small_leaf_probabilities_keep_their_relative_accuracy(depth, steepness):
    rng = np.random.default_rng(depth)
    scores = rng.uniform(-150, 150, (2**depth - 1, 50)) / steepness
    found = leaf_probabilities(scores, steepness)
    exact = exact_log_leaf_probabilities(steepness * scores)
    assert np.min(found) < 1e-30
    assert float(np.max(np.abs(np.log(found) - exact))) < 1e-12


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("steepness", STEEPNESSES)
@pytest.mark.parametrize("counts", [(90, 300, 5), (255, 256), (257, 513), (1, 1)])
def test_the_pass_equals_the_computation_with_leaf_probabilities(depth, steepness, counts):
    arguments = random_pass(0, depth, counts, steepness)
    value, _, mass = run_pass(**arguments)
    leaves = leaf_probabilities(arguments["scores"], steepness)
    labels = np.repeat(np.arange(len(counts)), counts)
    row_values = np.sum(arguments["table"][labels] * leaves.T, axis=1)
    assert value == pytest.approx(arguments["weights"] @ row_values, rel=1e-13)
    weighted = leaves * arguments["weights"]
    expected = [weighted[:, labels == k].sum(axis=1) for k in range(len(counts))]
    assert_allclose(mass, expected, rtol=1e-12, atol=1e-290)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("outer", [IDENTITY, LOGARITHM])
def test_slopes_equal_those_of_the_leaf_probabilities(depth, outer):
    """d P_l / d z_t = gamma P_l (1 - p_t) left of t, - gamma P_l p_t right of it, else 0."""
    arguments = random_pass(1, depth, (40, 30), 5.0)
    scores, weights = arguments["scores"], arguments["weights"]
    _, slopes, _ = run_pass(**arguments, outer=outer)
    leaves = leaf_probabilities(scores, 5.0)
    left, right = gate_probabilities(scores, 5.0)
    table = arguments["table"][np.repeat([0, 1], (40, 30))].T
    chain = -weights / np.sum(leaves * table, axis=0) if outer == LOGARITHM else weights
    for t in range(len(scores)):
        level = (t + 1).bit_length() - 1
        width = 2 ** (depth - level)
        first = (t + 1 - 2**level) * width
        change = np.zeros_like(leaves)
        half = first + width // 2
        change[first:half] = leaves[first:half] * right[t]
        change[half : first + width] = -leaves[half : first + width] * left[t]
        expected = 5.0 * chain * np.sum(change * table, axis=0)
        assert np.max(np.abs(expected)) > 1e-3
        assert_allclose(slopes[t], expected, rtol=1e-9, atol=1e-13)


def test_the_pass_may_write_its_slopes_over_the_scores():
    arguments = random_pass(4, 3, (300, 20), 9.0)
    before = arguments["scores"].copy()
    value, slopes, mass = run_pass(**arguments)
    np.testing.assert_array_equal(arguments["scores"], before)
    in_place, again = before.copy(), np.empty_like(mass)
    rest = [arguments[name] for name in ("starts", "weights", "table", "steepness")]
    assert tree_pass(in_place, in_place, *rest, IDENTITY, again, NONE) == value
    np.testing.assert_array_equal(in_place, slopes)
    np.testing.assert_array_equal(again, mass)


@pytest.mark.parametrize("n_rows", [1, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1])
@pytest.mark.parametrize("outer", [IDENTITY, LOGARITHM])
def test_tile_boundaries(n_rows, outer):
    """A pass over many rows is the sum of passes over one row each."""
    arguments = random_pass(2, 2, (n_rows, 3), 20.0)
    value, slopes, mass = run_pass(**arguments, outer=outer)
    total, total_mass = 0.0, np.zeros_like(mass)
    for i in range(n_rows + 3):
        k = int(i >= n_rows)
        one, slope, one_mass = run_pass(
            np.ascontiguousarray(arguments["scores"][:, i : i + 1]),
            np.array([0, 1]),
            arguments["weights"][i : i + 1],
            arguments["table"][k : k + 1],
            20.0,
            outer,
        )
        assert_allclose(slopes[:, i : i + 1], slope, rtol=1e-15)
        total += one
        total_mass[k] += one_mass[0]
    assert value == pytest.approx(total, rel=1e-12)
    assert_allclose(mass, total_mass, rtol=1e-12)


@pytest.mark.parametrize("steepness", [512.0, 1e6])
def test_logarithms_stay_finite_when_the_probability_underflows(steepness):
    """Two gates that are shut keep every row from the only leaf of its class."""
    scores = np.repeat([[1.5], [-0.9], [1.8]], 513, axis=1)
    table = np.array([[0.0, 0.0, 0.0, 1.0]])
    value, slopes, mass = run_pass(
        scores, np.array([0, 513]), np.ones(513), table, steepness, outer=LOGARITHM
    )
    assert 600 * 513 < value < 701 * 513
    assert np.all(np.isfinite(slopes)) and np.all(np.isfinite(mass))


def test_logarithmic_value_is_exact_down_to_the_smallest_probability():
    for scaled in (-600.0, -300.0, -40.0, 0.0, 40.0):
        value, slopes, _ = run_pass(
            np.array([[scaled / 512.0]]),
            np.array([0, 1]),
            np.ones(1),
            np.array([[1.0, 0.0]]),
            512.0,
            outer=LOGARITHM,
        )
        assert value == pytest.approx(float(np.logaddexp(0, -scaled)), rel=1e-13, abs=1e-16)
        # d(-log p) / dz = -gamma (1 - p): a row that is badly wrong still pulls with full force.
        assert slopes[0, 0] == pytest.approx(-512.0 * float(exact_gates(scaled)[1]), rel=1e-13)
