"""Trees that predict numbers: printed, walked by hand, with intervals, limits and refusals."""

import inspect
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from printed_numbers import PrintedNumbers
from softsplit import (
    SoftTreeRegressor,
    SoftTreeRegressorCV,
    dumps_model,
    export_markdown,
    export_text,
    group_figures,
    loads_model,
)
from softsplit.estimators.base import CutShortWarning
from softsplit.persistence.files import loads_tree
from softsplit.plots import (
    CoefficientsDisplay,
    DecisionRegionsDisplay,
    ReliabilityDisplay,
    StartsDisplay,
)
from softsplit.settings.parameter import parameters
from softsplit.settings.regression import NUMBER_SEARCH, REGRESSOR


def charges(n_rows: int = 500, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Smokers pay by another formula; text, a date, truth values and gaps beside numbers."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(18, 65, n_rows), rng.normal(30, 6, n_rows).round(1)
    smoker = rng.choice(["yes", "no"], n_rows, p=[0.3, 0.7])
    X = pd.DataFrame(
        {
            "age": age.astype(float),
            "bmi": bmi,
            "smoker": smoker,
            "region": rng.choice(["north", "south", "west"], n_rows),
            "member": rng.random(n_rows) < 0.5,
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
        }
    )
    smokers = 13_000 + 280 * age + 900 * np.maximum(bmi - 28, 0)
    y = np.where(smoker == "yes", smokers, 500 + 250 * age) + rng.normal(0, 1200, n_rows)
    X.loc[3::19, "bmi"] = np.nan
    return X, pd.Series(y.round(2), name="charges")


@cache
def fitted(loss: str = "squared", decision: str = "walk") -> SoftTreeRegressor:
    kind = SoftTreeRegressor(random_state=0, loss=loss, quantile=0.8, decision=decision)
    return kind.fit(*charges())


@cache
def chosen() -> SoftTreeRegressorCV:
    return SoftTreeRegressorCV(random_state=0, cv=3).fit(*charges())


@parametrize_with_checks([SoftTreeRegressor(), SoftTreeRegressorCV(cv=2, depth=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("estimator", "tables"), [(SoftTreeRegressor, REGRESSOR), (SoftTreeRegressorCV, NUMBER_SEARCH)]
)
def test_parameters_are_those_of_the_table_and_documented(estimator, tables):
    signature = inspect.signature(estimator).parameters
    known = {one.name: one.default for one in parameters(*tables)}
    assert {name: one.default for name, one in signature.items()} == known
    section = estimator.__doc__.partition("Parameters\n")[2].partition("\nAttributes\n")[0]
    heads = [line.partition(" : ")[0] for line in section.splitlines() if " : " in line]
    documented = {name for head in heads if head[0] != " " for name in head.split(", ")}
    assert documented == set(known)


def test_the_tree_finds_the_formulas_and_says_what_it_uses():
    X, y = charges(400, seed=1)
    for tree in (fitted(), chosen()):
        assert tree.score(X, y) > 0.95
        used = {tree.tree_.column_names[j] for j in tree.selected_features_}
        assert {"age", "smoker"} <= used
        assert tree.feature_importances_.sum() == pytest.approx(1.0)
        assert tree.feature_importances_[[0, 2]].sum() > 0.7
        assert not hasattr(tree, "classes_") and not hasattr(tree, "predict_proba")
    assert chosen().best_score_ > 0.95
    assert len(chosen().cv_results_["error"]) > 1


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "quantile"])
def test_the_printed_text_walked_by_hand_is_predict(loss):
    """On rows of training and others, with gaps and levels that nobody has seen."""
    tree = fitted(loss)
    X = charges(150, seed=2)[0]
    X.loc[:3, "region"] = "east"
    text = export_text(tree)
    printed = PrintedNumbers(text)
    by_hand = [printed.predicted(row) for row in X.to_dict("records")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(tree.predict(X), by_hand, rtol=1e-9)
    assert "[leaf 1]" in text and (loss != "quantile" or "0.8 quantile of charges = " in text)


def test_many_terms_or_leaves_are_a_table_that_gives_predict_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 6)).round(3), columns=list("abcdef"))
    side = X["a"] > 0
    y = (X @ np.arange(1.0, 7.0)) + np.where(side, 20 * X["b"], -15 * X["c"])
    tree = SoftTreeRegressor(random_state=0).fit(X, y.rename("out") + rng.normal(0, 0.1, 600))
    text = export_text(tree)
    assert "out = see the table below" in text and "\nout =" in text
    printed = PrintedNumbers(text)
    by_hand = [printed.predicted(row) for row in X.to_dict("records")]
    np.testing.assert_allclose(tree.predict(X), by_hand, rtol=1e-9, atol=1e-9)
    assert export_markdown(tree).startswith("    if ")


def test_intervals_hold_about_the_share_and_need_held_out_rows():
    X, y = charges(600, seed=3)
    predicted, bounds = chosen().predict(X, interval=0.9)
    assert np.array_equal(predicted, chosen().predict(X))
    held = (bounds[:, 0] <= y) & (y <= bounds[:, 1])
    assert 0.84 < held.mean() < 0.96
    with pytest.raises(ValueError, match="knows no held-out rows"):
        fitted().predict(X, interval=0.9)
    twin = fitted().calibrate(X[:300], y[:300])
    bounds = twin.predict(X[300:], interval=0.9)[1]
    assert ((bounds[:, 0] <= y[300:]) & (y[300:] <= bounds[:, 1])).mean() > 0.84
    with pytest.raises(ValueError, match=r"20 held-out rows say nothing at confidence 0\.99"):
        fitted().calibrate(X[:20], y[:20]).predict(X, interval=0.99)


def test_a_mixture_is_smooth_where_the_walk_jumps():
    X, y = charges(400, seed=1)
    mixture = fitted(decision="mixture")
    assert mixture.score(X, y) > 0.95
    assert "sure when" in export_text(mixture) or "then left with" in export_text(mixture)


@pytest.mark.parametrize("make", [fitted, chosen, lambda: fitted(decision="mixture")])
def test_model_files_give_the_same_bits_and_text(make):
    tree, X = make(), charges(80, seed=4)[0]
    text = dumps_model(tree)
    for other in (loads_model(text), loads_tree(text)):
        assert np.array_equal(other.predict(X), tree.predict(X))
        assert export_text(other) == export_text(tree)
    assert dumps_model(loads_model(text)) == text
    if tree is chosen():
        assert np.array_equal(
            loads_model(text).predict(X, interval=0.8)[1], tree.predict(X, interval=0.8)[1]
        )


def test_threads_and_weights_change_no_bit():
    X, y = charges(300)
    tree = SoftTreeRegressorCV(random_state=0, cv=2, depth=1).fit(X, y)
    assert dumps_model(clone(tree).set_params(n_jobs=2).fit(X, y)).count("slopes") == dumps_model(
        tree
    ).count("slopes")
    assert np.array_equal(clone(tree).set_params(n_jobs=2).fit(X, y).predict(X), tree.predict(X))
    twice = pd.concat([X, X[:50]], ignore_index=True), pd.concat([y, y[:50]], ignore_index=True)
    weight = np.where(np.arange(300) < 50, 2.0, 1.0)
    one, other = fitted_alike(twice), fitted_alike((X, y), weight)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)


def fitted_alike(rows, weight=None):
    return SoftTreeRegressor(random_state=0, depth=1).fit(*rows, sample_weight=weight)


def test_limits_of_sizes_and_costs_of_columns_hold():
    X, y = charges()
    constant = SoftTreeRegressor(leaf_terms=0, max_features=2, random_state=0).fit(X, y)
    assert not np.any(constant.tree_.numbers.functions.slopes)
    assert len(constant.selected_features_) <= 2
    formula = SoftTreeRegressor(depth=0, leaf_terms=1, random_state=0).fit(X, y)
    assert "if " not in export_text(formula) and len(formula.selected_features_) == 1
    free = SoftTreeRegressor(feature_costs={"bmi": 50.0}, random_state=0).fit(X, y)
    assert 1 not in free.selected_features_


@pytest.mark.parametrize("seed", range(4))
def test_monotone_effects_are_proved_of_the_printed_formulas(seed):
    """Also where rounding alone would bend a slope the other way."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0, 10, (400, 3)).round(2), columns=list("abc"))
    y = np.minimum(X["a"], 5) + 0.1 * np.sin(X["a"]) - X["b"] + 3 * (X["c"] > 5)
    y = y + rng.normal(0, 0.3, 400)
    tree = SoftTreeRegressor(monotone={"a": "+", "b": "-"}, random_state=0, depth=1).fit(X, y)
    text = export_text(tree)
    assert "y never falls when a rises (proved for all inputs)" in text
    assert "y never rises when b rises (proved for all inputs)" in text
    grid = pd.DataFrame({"a": np.linspace(-1, 11, 200), "b": 4.0, "c": 7.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.all(np.diff(tree.predict(grid)) >= -1e-9)


@pytest.mark.slow
def test_monotone_effects_hold_on_a_hundred_random_problems():
    """100,000 pairs of rows each, that differ in one monotone column; not one contradiction."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        width = int(rng.integers(2, 6))
        X = pd.DataFrame(rng.normal(size=(200, width)), columns=list("abcdef")[:width])
        waves = np.sin(X * rng.uniform(0.5, 3.0, width)) @ rng.normal(size=width)
        y = waves + 2.0 * (X["a"] > 0) * X.iloc[:, -1] + rng.normal(0, 0.3, 200)
        loss = ("squared", "huber", "absolute", "gamma")[seed % 4]
        signs = dict(zip(X, rng.choice(["+", "-"], width - 1), strict=False))
        tree = SoftTreeRegressor(monotone=signs, loss=loss, strength=0.7, random_state=seed)
        tree.fit(X, np.exp(y) if loss == "gamma" else y)
        text = export_text(tree)
        assert text.count("(proved for all inputs)") == len(signs), (seed, text)
        low = 2.0 * rng.normal(size=(100_000, width))
        high = low.copy()
        places, sizes = rng.integers(len(signs), size=len(low)), rng.exponential(1.0, len(low))
        direction = np.array([1.0 if sign == "+" else -1.0 for sign in signs.values()])
        high[np.arange(len(low)), places] += sizes * direction[places]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before, after = (
                tree.predict(pd.DataFrame(rows, columns=X.columns)) for rows in (low, high)
            )
        assert np.all(after >= before - 1e-9 * np.abs(before)), seed


@pytest.mark.parametrize("kind", [SoftTreeRegressor, SoftTreeRegressorCV])
def test_a_time_limit_leaves_a_tree(kind):
    X, y = charges()
    with pytest.warns(CutShortWarning, match="the time limit was reached"):
        tree = kind(time_limit=1e-6, random_state=0).fit(X, y)
    assert tree.end_ == "time_limit" and tree.score(X, y) > 0.3


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.full(40, 7.0), "y is 7 in all rows"),
        (np.r_[np.inf, np.arange(39.0)], "y contains infinity"),
        (np.r_[np.nan, np.arange(39.0)], "y has 1 missing value"),
        (np.array(["a", "b"] * 20), "y holds 'a', and a regressor predicts numbers"),
        (np.r_[1e200, np.arange(39.0)], "y holds 1e\\+200 in row 0; divide y by a constant"),
        (np.arange(39.0), "X has 40 rows and y has 39 labels"),
    ],
)
def test_hostile_targets_are_refused_in_one_sentence(y, sentence):
    X = np.random.default_rng(0).normal(size=(40, 2))
    tree = SoftTreeRegressor()
    with pytest.raises(ValueError, match=sentence) as caught:
        tree.fit(X, y)
    assert "\n" not in str(caught.value) and not hasattr(tree, "tree_")


@pytest.mark.parametrize(
    "reader",
    [
        lambda tree, X, y: tree.edit(),
        lambda tree, X, y: tree.refit(X, y),
        lambda tree, X, y: tree.simplify(X),
        lambda tree, X, y: tree.stability(X, y),
        lambda tree, X, y: tree.to_hard_tree(),
        lambda tree, X, y: tree.check_monotone("age"),
        lambda tree, X, y: group_figures(tree, X, y, X["smoker"]),
        lambda tree, X, y: DecisionRegionsDisplay.from_estimator(tree, X),
        lambda tree, X, y: CoefficientsDisplay.from_estimator(tree),
        lambda tree, X, y: StartsDisplay.from_estimator(tree),
        lambda tree, X, y: ReliabilityDisplay.from_estimator(tree, X, y),
        lambda tree, X, y: loads_tree(dumps_model(tree)).predict_proba(X),
        lambda tree, X, y: loads_tree(dumps_model(tree)).predict_set(X),
    ],
)
def test_readers_of_classes_refuse_numbers_in_one_sentence(reader):
    with pytest.raises(ValueError, match="this is for trees that predict classes") as caught:
        reader(fitted(), *charges())
    assert str(caught.value).count(". ") == 0 and "\n" not in str(caught.value)


def test_a_single_row_is_refused():
    with pytest.raises(ValueError, match="X has one sample"):
        SoftTreeRegressor().fit([[1.0]], [2.0])


def test_notebooks_and_tables_show_the_formulas():
    tree = fitted()
    frame = tree.to_frame()
    leaves = frame[frame["formula"].notna()]
    assert leaves["rows"].sum() == 500 and leaves["error"].gt(0).all()
    assert "charges = " in tree._repr_mimebundle_()["text/html"]
    assert tree.apply(charges()[0]).max() <= 6
    assert 1 <= tree.expected_cost(charges()[0]) <= len(tree.selected_features_)


def test_the_error_of_the_mixture_can_be_trained():
    """On a smooth surface constant leaves fit better as a mean, and each leaf alone worse."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    y = np.sin(3 * X[:, 0]) + 0.5 * X[:, 1]
    given = {"depth": 2, "strength": 0.1, "leaf_terms": 0, "decision": "mixture", "curves": 0}
    leaves = SoftTreeRegressor(**given, random_state=0).fit(X, y)
    mixture = SoftTreeRegressor(**given, objective="mixture", random_state=0).fit(X, y)
    assert mixture.score(X, y) > leaves.score(X, y) + 0.02
    with pytest.raises(ValueError, match='it needs loss="squared" and decision="mixture"'):
        SoftTreeRegressor(objective="mixture").fit(X, y)
