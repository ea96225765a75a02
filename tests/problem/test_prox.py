"""The prox of the penalties is a global minimum: against search, candidates and closed forms."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from helpers import SURROGATES, surrogate_id
from softsplit.problem.penalties import Penalty, PenaltyPair, exponential, linear, logarithmic

every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
points = arrays(float, (1, 3), elements=st.floats(-1.5, 1.5, allow_subnormal=False))
candidates = arrays(float, (1, 3), elements=st.floats(-1, 1, allow_subnormal=False))
STRENGTHS = [(0.3, 0.0), (0.0, 0.4), (0.1, 0.2)]


def scaled_strength(surrogate):
    """A strength at which the prox of this surrogate is neither all zero nor the identity."""
    return 0.5 / float(surrogate.value(np.ones(1))[0] - surrogate.value(np.zeros(1))[0])


def scaled_pair(surrogate, local, global_):
    scale = scaled_strength(surrogate)
    return PenaltyPair.of(surrogate, scale * local, scale * global_)


def prox_objective(pair, a, weights, step):
    return 0.5 * np.sum((a - weights) ** 2) + step * pair.value(a)


def assert_not_worse(pair, found, other, weights, step):
    least = prox_objective(pair, other, weights, step)
    rounding = 1e-12 * (1 + abs(least))
    assert prox_objective(pair, found, weights, step) <= least + rounding


@every_surrogate
@pytest.mark.parametrize("strengths", STRENGTHS)
def test_single_entries_against_a_fine_grid(surrogate, strengths):
    pair = scaled_pair(surrogate, *strengths)
    grid = np.linspace(0, 1, 20001)
    penalty = sum(term.strength * surrogate.value(grid) for term in (pair.local, pair.global_))
    kinds = set()
    for weight in np.concatenate([np.linspace(0, 1.6, 65), [1e-6, 1e-4, 1e-3]]):
        found = pair.prox(np.array([[weight]]), 0.7)
        lowest = np.min(0.5 * (grid - weight) ** 2 + 0.7 * penalty)
        value = prox_objective(pair, found, np.array([[weight]]), 0.7)
        assert value <= lowest + 1e-13 * (1 + abs(lowest))
        kinds.add("zero" if found[0, 0] == 0 else "bound" if found[0, 0] == 1 else "inside")
    assert kinds == {"zero", "bound", "inside"}


@every_surrogate
@pytest.mark.parametrize("strengths", STRENGTHS)
def test_pairs_of_branches_against_a_grid(surrogate, strengths):
    pair = scaled_pair(surrogate, *strengths)
    grid = np.linspace(0, 1, 201)
    value = surrogate.value(grid)
    first, second = np.meshgrid(np.arange(201), np.arange(201), indexing="ij")
    penalty = pair.local.strength * (value[first] + value[second])
    penalty = penalty + pair.global_.strength * value[np.maximum(first, second)]
    sizes = [0.0, 0.1, 0.3, 0.55, 0.9, 1.2]
    for weights in itertools.product(sizes, repeat=2):
        distance = (grid[first] - weights[0]) ** 2 + (grid[second] - weights[1]) ** 2
        lowest = np.min(0.5 * distance + penalty)
        row = np.array([weights])
        found = prox_objective(pair, pair.prox(row, 1.0), row, 1.0)
        assert found <= lowest + 1e-13 * (1 + abs(lowest))


@every_surrogate
@pytest.mark.parametrize("strengths", STRENGTHS)
@given(weights=points, other=candidates, step=st.sampled_from([0.01, 0.3, 2.0]))
def test_no_candidate_beats_the_prox(surrogate, strengths, weights, other, step):
    pair = scaled_pair(surrogate, *strengths)
    found = pair.prox(weights, step)
    assert np.all(np.abs(found) <= 1)
    assert_not_worse(pair, found, other, weights, step)
    # The corners of the search: entries kept, dropped, or cut to the size of another.
    for cap in np.abs(np.append(weights, 0.5)):
        cut = np.clip(weights, -min(cap, 1), min(cap, 1))
        assert_not_worse(pair, found, cut, weights, step)
        assert_not_worse(pair, found, np.where(np.abs(weights) < cap, 0, cut), weights, step)


@every_surrogate
@given(weights=points, noise=candidates, size=st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_no_neighbour_beats_the_prox(surrogate, weights, noise, size):
    pair = scaled_pair(surrogate, 0.1, 0.2)
    found = pair.prox(weights, 1.0)
    assert_not_worse(pair, found, np.clip(found + size * noise, -1, 1), weights, 1.0)
    assert_not_worse(pair, found, np.clip(found * (1 + size * noise), -1, 1), weights, 1.0)


@given(weights=points, strength=st.floats(0, 2))
def test_linear_local_is_the_soft_threshold(weights, strength):
    pair = PenaltyPair.of(linear(), local_strength=strength)
    soft = np.sign(weights) * np.maximum(np.abs(weights) - strength, 0)
    assert_allclose(pair.prox(weights, 1.0), np.clip(soft, -1, 1), atol=1e-15)


def project_on_the_l1_ball(row, radius):
    """Bisection on the threshold: slow and obvious."""
    low, high = 0.0, np.max(np.abs(row))
    if np.sum(np.abs(row)) <= radius:
        return row
    for _ in range(200):
        middle = (low + high) / 2
        inside = np.sum(np.maximum(np.abs(row) - middle, 0)) <= radius
        low, high = (low, middle) if inside else (middle, high)
    return np.sign(row) * np.maximum(np.abs(row) - high, 0)


@given(weights=points, strength=st.floats(1e-3, 2))
def test_linear_global_is_what_the_l1_projection_leaves(weights, strength):
    """Moreau: prox of strength * max-norm = identity - projection on the l1 ball."""
    pair = PenaltyPair.of(linear(), global_strength=strength)
    expected = np.clip(weights - project_on_the_l1_ball(weights, strength), -1, 1)
    assert_allclose(pair.prox(weights, 1.0), expected, atol=1e-13)


@given(weights=points, local=st.floats(0, 1), global_=st.floats(0, 1))
def test_linear_prox_and_linearised_prox_agree(weights, local, global_):
    pair = PenaltyPair.of(linear(), local, global_)
    anywhere = np.full_like(weights, 0.3)
    assert_allclose(pair.linearised_prox(weights, anywhere), pair.prox(weights, 1.0), atol=1e-13)


@every_surrogate
@given(weights=points, at=candidates, other=candidates)
def test_linearised_prox_minimises_the_tangent_penalty(surrogate, weights, at, other):
    pair = scaled_pair(surrogate, 0.1, 0.2)
    local, global_ = pair.local.slope(at), pair.global_.slope(at)

    def objective(a):
        tangent = np.sum(local * np.abs(a)) + np.sum(global_ * np.max(np.abs(a), axis=1))
        return 0.5 * np.sum((a - weights) ** 2) + tangent

    found = pair.linearised_prox(weights, at)
    for candidate in (other, np.clip(found + 0.01 * other, -1, 1), np.zeros_like(other)):
        assert objective(found) <= objective(candidate) * (1 + 1e-12) + 1e-12


def test_rows_do_not_influence_each_other():
    rng = np.random.default_rng(0)
    weights = rng.uniform(-1.2, 1.2, (6, 7))
    pair = PenaltyPair.of(exponential(), 0.05, 0.2)
    found = pair.prox(weights, 0.8)
    for j in range(6):
        assert_array_equal(found[j : j + 1], pair.prox(weights[j : j + 1], 0.8))


def test_scopes_may_have_different_surrogates():
    pair = PenaltyPair(Penalty(0.1, exponential(), "local"), Penalty(0.05, logarithmic(), "global"))
    rng = np.random.default_rng(1)
    for _ in range(200):
        weights, other = rng.uniform(-1.2, 1.2, (1, 3)), rng.uniform(-1, 1, (1, 3))
        assert_not_worse(pair, pair.prox(weights, 1.0), other, weights, 1.0)


def test_a_long_step_gives_the_zero_tree_and_a_short_one_the_point_itself():
    weights = np.array([[0.5, -0.2], [0.9, 0.1]])
    for surrogate in SURROGATES:
        pair = scaled_pair(surrogate, 0.5, 0.5)
        assert_array_equal(pair.prox(weights, 1e6), 0.0)
        assert_allclose(pair.prox(weights, 1e-12), weights, atol=1e-9)


@pytest.mark.parametrize("strengths", [(0.0, 0.0), (0.2, 0.0), (0.0, 0.2), (0.2, 0.2)])
def test_both_proxes_stay_in_the_box(strengths):
    pair = PenaltyPair.of(linear(), *strengths)
    weights = np.array([[5.0, -7.0, 0.5], [-9.0, 0.1, 1.5]])
    for found in (pair.prox(weights, 1.0), pair.linearised_prox(weights, np.clip(weights, -1, 1))):
        assert np.max(np.abs(found)) == 1
        assert np.array_equal(
            np.sign(found)[np.abs(found) == 1], np.sign(weights)[np.abs(found) == 1]
        )
