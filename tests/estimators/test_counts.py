"""Trees for counts and amounts: exposure is counted once, factors are what is printed."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import d2_tweedie_score

from printed_numbers import PrintedNumbers
from rate_tables import claims, patients
from softsplit import (
    SoftTreeRegressor,
    SoftTreeRegressorCV,
    SoftTreeSurvival,
    check_rows,
    dumps_model,
    export_python,
    export_text,
    loads_model,
)
from softsplit.advice.differences import compare_trees
from softsplit.fitted.leaf_factors import factor, short_slope
from softsplit.persistence.files import loads_tree
from softsplit.tree.leaf_families import FAMILIES


@cache
def counted() -> SoftTreeRegressor:
    X, y, years = claims()
    return SoftTreeRegressor(loss="poisson", random_state=0).fit(X, y, exposure=years)


@cache
def costs(loss: str) -> SoftTreeRegressor:
    X, y, _ = claims()
    y = 100.0 * y + (10.0 if loss == "gamma" else 0.0)
    return SoftTreeRegressor(loss=loss, power=1.3, random_state=0).fit(X, y.rename("cost"))


def test_exposure_is_counted_once():
    """A rate is predicted without it, the count with it, and the score is that of the counts."""
    X, y, years = claims(400, seed=1)
    tree = counted()
    np.testing.assert_allclose(tree.predict(X, exposure=years), tree.predict(X) * years, rtol=1e-15)
    rate = y.sum() / years.sum()
    predicted = tree.predict(X, exposure=years)
    family = FAMILIES["poisson"]()
    left, whole = (family.deviance(y, np.log(mu)).sum() for mu in (predicted, rate * years))
    assert tree.score(X, y, exposure=years) == pytest.approx(1.0 - left / whole)
    assert tree.score(X, y, exposure=years) > 0.4
    alone = np.ones(len(y))
    assert tree.score(X, y, exposure=alone) == pytest.approx(
        d2_tweedie_score(y, tree.predict(X), power=1)
    )
    numbers = tree.tree_.numbers
    assert numbers.totals.sum() == pytest.approx(claims()[2].sum())
    assert numbers.totals @ numbers.means == pytest.approx(claims()[1].sum())


def test_exposure_k_with_count_k_y_is_weight_k():
    X, y, _ = claims(500)
    k = np.random.default_rng(0).integers(1, 4, 500).astype(float)
    kind = SoftTreeRegressor(loss="poisson", depth=0, strength=0.01, curves=0, random_state=0)
    by_exposure = kind.fit(X, k * y, exposure=k).predict(X)
    by_weight = kind.fit(X, y, sample_weight=k).predict(X)
    np.testing.assert_allclose(by_exposure, by_weight, rtol=0.1)
    eta = np.linspace(-1, 1, 500)
    scaled, plain = (FAMILIES["poisson"]().deviance(*pair) for pair in (
        (k * y, eta + np.log(k)), (y, eta)))  # fmt: skip
    np.testing.assert_allclose(scaled, k * plain, atol=1e-12)


@pytest.mark.parametrize("kind", ["rates", "hazards"])
def test_explanations_checks_and_comparisons_are_of_the_rate(kind):
    """No row shows a rate: nothing compares one with a count, or counts an exposure twice."""
    if kind == "rates":
        tree, (X, y, _) = counted(), claims(200, seed=3)
    else:
        X, times, _ = patients(200)
        tree, y = SoftTreeSurvival(random_state=0, depth=1).fit(X, times), times["died"]
    said = tree.predict(X)
    reading = tree.explain(X.iloc[[7]])
    assert reading.label == pytest.approx(said[7]) and reading.interval is None
    assert len(tree.partial_dependence(X, X.columns[0]).average) == 1
    check = check_rows(tree, X, y)
    assert {test.what for test in check.comparisons} == {"column", "leaves"}
    rows = tree.tree_.coding.code(X).X
    same = compare_trees(tree.tree_, tree.tree_, rows, rows, y.to_numpy(float))
    assert same.figures == {} and len(same.changed) == 0


def test_exposure_by_name_is_that_column_and_no_feature():
    X, y, years = claims(300)
    given = {"loss": "poisson", "random_state": 0, "depth": 0}
    whole, tree = X.assign(years=years), SoftTreeRegressor(**given).fit(X, y, exposure=years)
    named = SoftTreeRegressor(**given).fit(whole, y, exposure="years")
    assert export_text(named) == export_text(tree)
    assert list(named.feature_names_in_) == list(X)
    np.testing.assert_array_equal(
        named.predict(whole, exposure="years"), tree.predict(X, exposure=years)
    )
    score = tree.score(X, y, exposure=years)
    assert named.score(whole, y, exposure="years") == score
    with pytest.raises(ValueError, match="exposure names 'yeers', which is no column of X"):
        SoftTreeRegressor(**given).fit(whole, y, exposure="yeers")


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_twice_the_exposure_with_twice_the_count_gives_the_same_rates(loss):
    """Counts vary more than Poisson's here, so that twice as many do not say more."""
    X, y, years = claims(300)
    y = y + (1.0 if loss == "gamma" else 0.0) + 5.0 * (y > 2)
    kind = SoftTreeRegressor(loss=loss, random_state=0, depth=1)
    once = kind.fit(X, y, exposure=years).predict(X)
    twice = kind.fit(X, 2.0 * y, exposure=2.0 * years).predict(X)
    np.testing.assert_allclose(twice, once, rtol=1e-9)


def test_weak_effects_are_shrunk_and_the_total_is_kept():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 4))
    y = rng.poisson(np.exp(0.2 * X[:, 0])).astype(float)
    given = {"loss": "poisson", "depth": 0, "strength": 0.1, "random_state": 0}
    plain, chosen = (kind(**given).fit(X, y) for kind in (SoftTreeRegressor, SoftTreeRegressorCV))
    share = chosen.cv_results_["share"][0]
    assert 0.0 < share < 0.9
    effects = [np.log(tree.predict(X)) for tree in (plain, chosen)]
    assert np.polyfit(*effects, 1)[0] == pytest.approx(share, abs=0.05)
    assert chosen.predict(X).sum() == pytest.approx(y.sum(), rel=0.05)
    assert chosen.cv_results_["error"][0] < 1.0


def test_a_constant_exposure_changes_the_unit_and_nothing_else():
    X, y, _ = claims(400)
    kind = SoftTreeRegressor(loss="poisson", random_state=0, depth=1)
    plain, halved = kind.fit(X, y).predict(X), kind.fit(X, y, exposure=np.full(400, 2.0))
    np.testing.assert_allclose(halved.predict(X) * 2.0, plain, rtol=0.1)


@pytest.mark.parametrize("make", [counted, lambda: costs("gamma"), lambda: costs("tweedie")])
def test_the_printed_factors_walked_by_hand_are_predict(make):
    """As are model files and the exported program, which give the rate too."""
    tree, X = make(), claims(150, seed=2)[0]
    X.loc[3::20, "weight"] = np.nan
    text = export_text(tree)
    assert " per children" in text or tree is costs("gamma")
    printed = PrintedNumbers(text)
    by_hand = [printed.predicted(row) for row in X.to_dict("records")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = tree.predict(X)
        np.testing.assert_allclose(predicted, by_hand, rtol=1e-9)
        for other in (loads_model(dumps_model(tree)), loads_tree(dumps_model(tree))):
            assert np.array_equal(other.predict(X), predicted)
            assert export_text(other) == text
    program: dict = {}
    exec(export_python(tree), program)
    by_program = [program["predict"](row) for row in X.to_dict("records")]
    np.testing.assert_allclose(predicted, by_program, rtol=1e-9)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_a_monotone_effect_is_proved_and_holds(loss):
    X, y, years = claims(300)
    tree = SoftTreeRegressor(loss=loss, monotone={"children": "-", "weight": "+"}, random_state=0)
    tree.fit(X, y + (loss == "gamma"), exposure=years)
    assert "never falls when weight rises (proved" in export_text(tree)
    for column, sign in (("children", -1), ("weight", 1)):
        rows = X.iloc[[0] * 50].reset_index(drop=True)
        rows[column] = np.linspace(X[column].min() - 2, X[column].max() + 2, 50)
        assert np.all(sign * np.diff(tree.predict(rows)) >= 0)


def test_texts_say_a_rate_and_totals():
    text = export_text(counted())
    assert "claims a year = " in text and " years, mean " in text
    X, y, years = claims(300)
    tree = SoftTreeRegressor(loss="poisson", random_state=0, depth=0)
    assert "claims per unit of exposure" in export_text(tree.fit(X, y, exposure=years.to_numpy()))
    assert "claims per unit of acres" in export_text(tree.fit(X, y, exposure=years.rename("acres")))


@pytest.mark.parametrize("slope", [0.3, -0.0004, 25.0, 0.0299, 2.0, 1e-7])
def test_a_factor_is_read_from_its_slope_to_the_last_digit(slope):
    short = short_slope(slope, 0.02 * abs(slope))
    assert abs(short - slope) <= 0.02 * abs(slope)
    size, unit = factor(short)
    assert len(f"{size:g}") <= 7 and 0.01 <= abs(np.log(size)) <= 3.1
    assert np.log(size) / unit == pytest.approx(short, rel=1e-10)


def test_a_choice_by_folds_explains_the_deviance_of_new_rows():
    X, y, years = claims(500)
    tree = SoftTreeRegressorCV(loss="poisson", cv=3, depth=1, random_state=0)
    tree.fit(X, y, exposure=years)
    X_new, y_new, years_new = claims(500, seed=5)
    assert tree.best_score_ > 0.3 and tree.score(X_new, y_new, exposure=years_new) > 0.3
    with pytest.raises(ValueError, match="the tree predicts a rate"):
        tree.predict(X, interval=0.9)


@pytest.mark.parametrize(
    ("loss", "y", "exposure", "sentence"),
    [
        ("poisson", np.r_[-1.0, np.arange(39.0)], None, "counts must not be negative"),
        ("gamma", np.arange(40.0), None, "must be positive"),
        ("tweedie", np.r_[-2.0, np.arange(39.0)], None, "amounts must not be negative"),
        ("poisson", np.zeros(40), None, "y is 0 in all rows"),
        ("poisson", np.arange(40.0), np.r_[0.0, np.ones(39)], "exposure is 0 in row 0"),
        ("poisson", np.arange(40.0), np.r_[np.inf, np.ones(39)], "exposure is inf in row 0"),
        ("poisson", np.arange(40.0), ["a"] * 40, "exposure holds text"),
        ("poisson", np.arange(40.0), np.ones(39), "exposure has the shape"),
        ("poisson", np.arange(40.0), 1.0 + np.arange(40.0) * 0 + np.arange(40.0), None),
        ("squared", np.arange(40.0), np.ones(40), "exposure is for the losses"),
        ("poisson", np.r_[np.inf, np.arange(39.0)], None, "y contains infinity"),
        ("poisson", np.array(["a", "b"] * 20), None, "y holds 'a'"),
    ],
)  # fmt: skip
def test_hostile_counts_are_refused_in_one_sentence(loss, y, exposure, sentence):
    X = np.random.default_rng(0).normal(size=(40, 2))
    tree = SoftTreeRegressor(loss=loss, depth=0)
    if sentence is None:
        assert tree.fit(X, y, exposure=exposure).predict(X).min() > 0
        return
    with pytest.raises(ValueError, match=sentence) as caught:
        tree.fit(X, y, exposure=exposure)
    assert "\n" not in str(caught.value) and not hasattr(tree, "tree_")


def test_exposure_at_predict_must_match_that_of_training():
    X, y, years = claims(100)
    with pytest.raises(ValueError, match="trained without exposure; leave exposure out"):
        costs("gamma").predict(X, exposure=years)
    with pytest.raises(ValueError, match="trained with exposure; give exposure= of these rows"):
        counted().score(X, y)


def test_intervals_of_counts_begin_at_zero():
    (X, y, _), (others, counts, _) = claims(400, seed=1), claims(400, seed=2)
    tree = SoftTreeRegressor(loss="poisson", random_state=0).fit(X, y).calibrate(others, counts)
    predicted, bounds = tree.predict(X, interval=0.9)
    half = bounds[:, 1] - predicted
    assert np.any(half > predicted) and np.all(bounds[:, 0] >= 0)
    row = int(np.argmax(half - predicted))
    assert tree.explain(X.iloc[[row]]).interval == pytest.approx(tuple(bounds[row]))
