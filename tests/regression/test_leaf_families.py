"""Leaf families: derivatives, starts, words and what they refuse."""

import numpy as np
import pytest

from softsplit.tree.leaf_families import FAMILIES, Absolute, Huber, Quantile, Squared, Survival

RNG = np.random.default_rng(3)


def targets(name):
    if name in ("poisson", "tweedie"):
        return RNG.poisson(2.0, 60).astype(float)
    if name == "survival":
        return (RNG.random(60) < 0.6).astype(float)
    return RNG.gamma(2.0, 1.0, 60)


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_are_those_of_the_deviance(name):
    family, y = FAMILIES[name](), targets(name)
    eta, step = RNG.normal(0.7, 1.0, 60), 1e-6
    if name in ("huber", "quantile", "absolute"):  # away from the ends of the smooth band
        width = family.width if name == "huber" else family.band
        eta = np.where(np.abs(np.abs(eta - y) - width) < 1e-3, eta + 0.01, eta)
    up, down, here = (family.terms(y, eta + k * step) for k in (1, -1, 0))
    np.testing.assert_allclose((up.value - down.value) / (2 * step), here.slope, atol=2e-7)
    bends = (up.slope - down.slope) / (2 * step)
    flat = bends < 1e-9  # straight pieces have a small curvature of their own
    np.testing.assert_allclose(bends[~flat], here.curvature[~flat], rtol=1e-5, atol=1e-6)
    assert np.all(here.curvature > 0)
    assert np.all(here.value >= 0)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_start_is_about_the_best_constant_score(name):
    family, y, weight = FAMILIES[name](), targets(name), RNG.random(60) + 0.5
    start = family.start(y, weight, np.zeros(60))

    def deviance(eta):
        return weight @ family.deviance(y, np.full(60, eta))

    around = min(deviance(start + step) for step in np.linspace(-1.0, 1.0, 81))
    assert deviance(start) <= around + 0.06 * abs(around)


def test_deviances_are_zero_where_the_prediction_is_the_target():
    y = np.array([0.5, 1.0, 4.0])
    for name in ("poisson", "gamma", "tweedie"):
        np.testing.assert_allclose(FAMILIES[name]().deviance(y, np.log(y)), 0.0, atol=1e-12)
    for family in (Squared(), Huber()):
        np.testing.assert_allclose(family.deviance(y, y), 0.0)
    far = y + np.array([-3.0, 3.0, 5.0])
    np.testing.assert_allclose(Quantile(level=0.9).deviance(y, far), [2.7, 0.3, 0.5], atol=0.026)
    assert Absolute().typical_error(float(Absolute().deviance(y, far).mean())) == pytest.approx(
        np.abs(y - far).mean(), rel=0.03
    )


def test_exposure_is_an_offset_of_the_start():
    years = np.array([1.0, 2.0, 5.0])
    start = FAMILIES["poisson"]().start(3.0 * years, np.ones(3), np.log(years))
    assert start == pytest.approx(np.log(3.0))


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("squared", [1.0, np.nan], "missing or infinite"),
        ("squared", [1.0, np.inf], "missing or infinite"),
        ("absolute", [1.0, 1e200], "larger than"),
        ("poisson", [1.0, -1.0], "negative"),
        ("gamma", [1.0, 0.0], "positive"),
        ("survival", [0.0, 2.0], "0 or 1"),
        ("survival", [0.0, 0.0], "no row has an event"),
    ],
)
def test_targets_that_do_not_suit_are_one_sentence(name, y, words):
    with pytest.raises(ValueError, match=words):
        FAMILIES[name]().check(np.array(y))


def test_widths_follow_the_residuals_and_the_unit():
    residuals = RNG.normal(0.0, 0.2, 1000)
    assert Huber().tuned(residuals).width == pytest.approx(0.27, abs=0.04)
    assert Huber(width=0.5).scaled(10.0).width == 5.0
    assert Quantile(band=0.5).scaled(10.0).band == 5.0
    assert Survival().tuned(residuals) == Survival()
    with pytest.raises(ValueError, match="between 0 and 1"):
        Quantile(level=1.0)
