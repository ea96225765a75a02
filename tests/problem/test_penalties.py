"""Surrogates and penalties: derivatives, shape and refusals; the prox is in test_prox.py."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import SURROGATES, surrogate_id
from softsplit.problem.penalties import (
    Penalty,
    PenaltyPair,
    exponential,
    inverse_power,
    linear,
    logarithmic,
    power,
)

every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
units = st.floats(0, 1, allow_subnormal=False)


def natural_scale(surrogate):
    """Length over which the slope of the surrogate changes."""
    if surrogate.name == "exponential":
        return 1 / surrogate.first
    return surrogate.second or 1.0


def five_point_slope(function, u, step):
    terms = -function(u + 2 * step) + 8 * function(u + step) - 8 * function(u - step)
    return (terms + function(u - 2 * step)) / (12 * step)


@every_surrogate
def test_slope_and_curvature_are_derivatives(surrogate):
    """Near zero, on the surrogate's own scale, and over the whole box."""
    scale = natural_scale(surrogate)
    for u in np.concatenate([scale * np.array([0.1, 0.5, 2.0, 10.0]), [0.05, 0.3, 1.0]]):
        step = 1e-3 * (u + scale) if u > 0.01 * scale else 1e-3 * u
        slope = five_point_slope(surrogate.value, np.array([u]), step)
        assert_allclose(surrogate.slope(np.array([u])), slope, rtol=1e-7)
        curvature = five_point_slope(surrogate.slope, np.array([u]), step)
        expected = surrogate.curvature(np.array([u]))
        assert_allclose(expected, curvature, rtol=1e-7, atol=1e-10 * slope[0] / (u + scale))


@every_surrogate
def test_slope_at_zero_is_the_derivative_from_the_right(surrogate):
    step = 1e-4 * natural_scale(surrogate)
    u = step * np.arange(3)
    forward = np.array([-1.5, 2.0, -0.5]) @ surrogate.value(u) / step
    assert surrogate.slope(np.zeros(1))[0] == pytest.approx(forward, rel=1e-6)
    assert surrogate.slope(np.zeros(1))[0] > 0


@every_surrogate
@given(u=units, v=units, share=units)
def test_surrogates_increase_and_are_concave(surrogate, u, v, share):
    low, high = min(u, v), max(u, v)
    between = low + share * (high - low)
    at_low, at_between, at_high = surrogate.value(np.array([low, between, high]))
    rounding = 1e-12 * max(abs(at_low), abs(at_high), 1.0)
    assert at_low <= at_between + rounding and at_between <= at_high + rounding
    assert at_between >= at_low + share * (at_high - at_low) - rounding
    slopes = surrogate.slope(np.array([low, high]))
    assert slopes[0] >= slopes[1] * (1 - 1e-12) and slopes[1] > 0
    assert np.all(surrogate.curvature(np.array([low, high])) <= 0)


def test_exponential_keeps_its_relative_accuracy_near_zero():
    u = np.array([1e-18, 1e-12, 1e-9])
    assert_allclose(exponential(5.0).value(u), 5.0 * u, rtol=1e-7)


@every_surrogate
@pytest.mark.parametrize("scope", ["local", "global"])
def test_the_gradient_of_a_penalty_is_its_derivative(surrogate, scope):
    rng = np.random.default_rng(0)
    weights = rng.choice([-1, 1], 12) * rng.permutation(np.linspace(0.1, 0.9, 12))
    weights = weights.reshape(3, 4)
    penalty = Penalty(0.6, surrogate, scope)
    found = penalty.gradient(weights)
    assert np.count_nonzero(found) == (12 if scope == "local" else 3)
    for index in np.ndindex(weights.shape):
        unit = np.zeros_like(weights)
        unit[index] = 1.0

        def along(u, unit=unit):
            return penalty.value(weights + u * unit)

        assert found[index] == pytest.approx(five_point_slope(along, 0.0, 1e-4), rel=1e-7, abs=1e-8)


def test_the_gradient_at_zeros_and_ties_is_the_promised_subgradient():
    weights = np.array([[0.0, 0.5, -0.5], [0.0, 0.0, 0.0], [-0.3, 0.3, 0.1]])
    local = Penalty(2.0, linear(), "local").gradient(weights)
    assert_array_equal(local, [[0, 2, -2], [0, 0, 0], [-2, 2, 2]])
    global_ = Penalty(3.0, linear(), "global").gradient(weights)
    assert_array_equal(global_, [[0, 3, 0], [0, 0, 0], [-3, 0, 0]])


@every_surrogate
@given(flips=st.lists(st.booleans(), min_size=6, max_size=6))
def test_signs_do_not_matter(surrogate, flips):
    weights = np.linspace(0.05, 0.95, 6).reshape(2, 3)
    signs = np.where(flips, -1.0, 1.0).reshape(2, 3)
    pair = PenaltyPair.of(surrogate, 0.2, 0.3)
    assert pair.value(signs * weights) == pair.value(weights)
    assert_array_equal(pair.gradient(signs * weights), signs * pair.gradient(weights))
    assert_array_equal(pair.prox(signs * weights, 0.1), signs * pair.prox(weights, 0.1))


@every_surrogate
def test_strength_zero_is_no_penalty(surrogate):
    weights = np.array([[0.4, -0.2], [0.0, 1.0]])
    pair = PenaltyPair.of(surrogate)
    assert pair.value(weights) == 0.0
    assert_array_equal(pair.gradient(weights), 0.0)
    assert_array_equal(pair.local.slope(weights), np.zeros((2, 2)))
    assert_array_equal(pair.global_.slope(weights), np.zeros(2))
    assert_array_equal(pair.prox(weights, 1.0), weights)
    assert_array_equal(pair.prox(3 * weights, 1.0), np.clip(3 * weights, -1, 1))


@every_surrogate
def test_an_all_zero_tree_is_evaluated_without_trouble(surrogate):
    pair = PenaltyPair.of(surrogate, 0.5, 0.5)
    assert np.isfinite(pair.value(np.zeros((3, 3))))
    assert_array_equal(pair.gradient(np.zeros((3, 3))), 0.0)
    assert_array_equal(pair.prox(np.zeros((3, 3)), 1.0), 0.0)


def test_defaults_are_those_of_the_paper():
    assert exponential() == exponential(5.0)
    assert power() == power(0.5, 1e-5)
    assert inverse_power() == inverse_power(0.5, 1e-5)
    assert logarithmic() == logarithmic(1e-5)


@pytest.mark.parametrize(
    "one", [linear(), Penalty(1.0, linear(), "local"), PenaltyPair.of(linear())]
)
def test_what_a_penalty_is_made_of_stays_as_it_is(one):
    with pytest.raises(AttributeError):
        setattr(one, next(iter(vars(one))), None)


SHARP = "sharpness must be positive and finite, got {}."
OFFSET = "offset must be positive and finite, got {}."
EXPONENT = "exponent of 'power' must be in (0, 1], got {}."
INVERSE = "exponent of 'inverse_power' must be positive and finite, got {}."
STRENGTH = "{}_strength must be a finite number >= 0, got {}."
STEEP = "penalty rise too steeply at zero"
REFUSED = [
    *((lambda a=a: exponential(a), SHARP.format(a)) for a in (0.0, -1.0, np.inf, np.nan)),
    *((lambda a=a: power(a), EXPONENT.format(a)) for a in (0.0, -0.5, 1.5)),
    *((lambda a=a: inverse_power(a), INVERSE.format(a)) for a in (0.0, -1.0, np.inf)),
    *(
        (lambda make=make, a=a: make(offset=a), OFFSET.format(a))
        for make in (power, inverse_power, logarithmic)
        for a in (0.0, -1e-05, np.inf, np.nan)
    ),
    (lambda: inverse_power(200.0, 1e-3), "overflow at zero"),
    (lambda: inverse_power(230.5 / -np.log(1e-5), 1e-5), "overflow at zero"),
    (lambda: PenaltyPair.of(linear(), -1.0), STRENGTH.format("local", -1.0)),
    (lambda: PenaltyPair.of(linear(), np.nan), STRENGTH.format("local", np.nan)),
    (lambda: PenaltyPair.of(linear(), 0.0, np.inf), STRENGTH.format("global", np.inf)),
    (lambda: PenaltyPair(*2 * [Penalty(1.0, linear(), "local")]), "a local and then a global"),
    (lambda: PenaltyPair(*2 * [Penalty(1.0, linear(), "global")]), "a local and then a global"),
    (lambda: Penalty(1e149, exponential(100.0), "local"), STEEP),
    (lambda: Penalty(0.5, inverse_power(1.0, 1e-99), "local"), STEEP),  # a slope of 1e198 at zero
    (lambda: Penalty(1e-60, inverse_power(1.0, 1e-80), "global"), STEEP),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(make, said):
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        make()
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


def test_what_comes_close_to_the_limits_is_allowed():
    assert inverse_power(30.0, 1e-3).slope(np.zeros(1))[0] < np.inf
    assert inverse_power(229.5 / -np.log(1e-5), 1e-5).name == "inverse_power"
    assert Penalty(1e147, exponential(100.0), "local").strength == 1e147
    steep = inverse_power(1.0, 1e-99)
    assert Penalty(0.0, steep, "local").value(np.ones((1, 1))) == 0
    assert exponential(0.25).value(np.ones(1))[0] == pytest.approx(1 - np.exp(-0.25))
