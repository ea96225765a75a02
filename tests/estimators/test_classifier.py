"""The estimator as scikit-learn and its users meet it."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import softsplit.estimators.chosen
import softsplit.training.run
from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text
from softsplit.formulations.settings import PENALTIES
from softsplit.settings.parameter import parameters
from softsplit.settings.table import CLASSIFIER, SEARCH
from softsplit.training import multistart


def quick(**parameters):
    settings = {"n_starts": 2, "random_state": 0} | parameters
    return SoftTreeClassifier(**settings)


both_losses = pytest.mark.parametrize("loss", ["log", "cost"])


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@parametrize_with_checks(
    [SoftTreeClassifier(n_starts=2), SoftTreeClassifier(loss="cost", n_starts=2)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("estimator", "tables"), [(SoftTreeClassifier, CLASSIFIER), (SoftTreeClassifierCV, SEARCH)]
)
def test_parameters_are_those_of_the_table_and_documented(estimator, tables):
    signature = inspect.signature(estimator).parameters
    known = {one.name: one.default for one in parameters(*tables)}
    assert {name: one.default for name, one in signature.items()} == known
    assert {one.kind for one in signature.values()} == {inspect.Parameter.KEYWORD_ONLY}
    section = estimator.__doc__.partition("Parameters\n")[2].partition("\nAttributes\n")[0]
    heads = [line.partition(" : ")[0] for line in section.splitlines() if " : " in line]
    documented = {name for head in heads if head[0] != " " for name in head.split(", ")}
    assert documented == set(known)
    assert set(estimator().get_params()) == set(known) == set(clone(estimator()).get_params())


@both_losses
def test_fitted_attributes_fit_together(iris, loss):
    X, y = iris
    tree = quick(loss=loss, depth=2, global_strength=1.0, curves=False, points=False).fit(X, y)
    assert tree.weights_.shape == (4, 3)
    assert tree.thresholds_.shape == (3,)
    assert tree.leaf_classes_.shape == (3, 4)
    assert list(tree.feature_names_in_) == list(X.columns)
    assert tree.n_features_in_ == 4
    assert len(tree.starts_) == 2
    assert tree.solution_.objective <= min(s.objective for s in tree.starts_) + 1e-6
    assert tree.objective_ == tree.solution_.objective
    assert tree.solution_.status.usable
    assert tree.solution_.violation <= 1e-6
    used = np.flatnonzero(np.abs(tree.weights_).max(axis=1))
    assert tree.selected_features_.tolist() == used.tolist()
    assert tree.global_sparsity_ == pytest.approx(100 * (1 - len(used) / 4))
    assert tree.local_sparsity_ == pytest.approx(100 * np.mean(tree.weights_ == 0))
    assert tree.score(X, y) > 0.9


@both_losses
def test_original_units_route_as_the_scaled_tree_does(iris, loss):
    X, y = iris
    tree = quick(loss=loss).fit(X, y)
    coded = X.to_numpy() if loss == "cost" else tree.coding_.code(X).X
    z = coded @ tree.coef_.T + tree.intercept_
    left = 1 / (1 + np.exp(-np.clip(tree.tree_.steepness * z, -700, 700)))
    np.testing.assert_allclose(left, tree.branch_proba(X), atol=1e-9)


@both_losses
def test_costs_move_the_errors_to_the_cheap_side(loss):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3]
    even = quick(loss=loss).fit(X, y)
    dear = quick(loss=loss, cost_matrix=[[0, 10], [0.5, 0]]).fit(X, y)
    missed = [np.sum((tree.predict(X) == 1) & (y == 0)) for tree in (even, dear)]
    assert missed[1] < missed[0]


def test_class_weight_equals_the_same_costs():
    X, y = load_iris(return_X_y=True)
    weighted = quick(loss="cost", class_weight={0: 1, 1: 3, 2: 1}).fit(X, y)
    costs = 0.5 * (1 - np.eye(3)) * np.array([[1], [3], [1]])
    costly = quick(loss="cost", cost_matrix=costs).fit(X, y)
    np.testing.assert_array_equal(costly.weights_, weighted.weights_)


@both_losses
@pytest.mark.parametrize("penalty", [name for name in PENALTIES if name])
def test_every_penalty_trains_a_feasible_tree(penalty, iris, loss):
    X, y = iris
    strengths = {"local_strength": 0.01, "global_strength": 0.01}
    tree = quick(loss=loss, penalty=penalty, **strengths, n_starts=1).fit(X, y)
    assert tree.solution_.violation <= 1e-6
    assert tree.score(X, y) > 0.85


def test_grid_search_pipeline_and_cross_validation(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), quick()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"softtreeclassifier__global_strength": [0.1, 100.0]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["softtreeclassifier__global_strength"] == 0.1
    scores = cross_validate(quick(), X, y, cv=3)["test_score"]
    assert scores.mean() > 0.85


def test_sample_weight_is_routed():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 2, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        tree = quick().set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=True)
        found = cross_validate(
            tree, X, y, cv=3, params={"sample_weight": weight}, return_estimator=True
        )
    assert all(fitted.classes_.tolist() == [0, 1] for fitted in found["estimator"])


def test_a_pickle_of_another_version_says_so(iris):
    tree = quick().fit(*iris)
    name = tree.solution_.status.name.encode()
    sentence = r"^this pickle was made by another version of softsplit .*; use save_model and .*\.$"
    with pytest.raises(ValueError, match=sentence):
        pickle.loads(pickle.dumps(tree).replace(name, b"X" * len(name)))
    state = tree.__getstate__()
    object.__delattr__(state["solution_"], "violation")
    with pytest.raises(ValueError, match=sentence):
        SoftTreeClassifier().__setstate__(state)


@both_losses
def test_time_limit_keeps_the_first_start(loss, clock, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    tree = SoftTreeClassifier(loss=loss, n_starts=5000, time_limit=0.5, random_state=0)
    # A first fit with a time limit loads compiled code by training trees of its own.
    clone(tree).set_params(n_starts=1).fit(X, y)
    monkeypatch.setattr(multistart, "_run_start", clock.after(2, multistart._run_start))
    with pytest.warns(ConvergenceWarning, match="of 5,000 starts; raise time_limit"):
        tree.fit(X, y)
    assert len(tree.starts_) == 2
    assert tree.score(X, y) > 0.9


# Trees inside scikit-learn's ensembles.


def quick_of_ensembles(**settings):
    return SoftTreeClassifier(**({"global_strength": 0.5, "n_starts": 1} | settings))


@pytest.mark.parametrize(("max_features", "scale"), [(1.0, "minmax"), (0.5, "quantile")])
def test_bagging_votes_with_probabilities(max_features, scale):
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    bag = BaggingClassifier(
        quick_of_ensembles(scale=scale), n_estimators=8, max_features=max_features, oob_score=False,
        random_state=0,
    ).fit(X[::2], names[::2])  # fmt: skip
    assert bag.score(X[1::2], names[1::2]) > 0.85
    proba = bag.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    single = [
        tree.predict_proba(X[:, columns])
        for tree, columns in zip(bag.estimators_, bag.estimators_features_, strict=True)
    ]
    np.testing.assert_allclose(proba, np.mean(single, axis=0), atol=1e-12)
    assert len({tree.objective_ for tree in bag.estimators_}) == 8


# A fit that fails or is interrupted leaves the estimator as it was.


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OTHER_X, OTHER_Y = -100 * RNG.normal(size=(20, 2)), RNG.permutation(["a", "b"] * 10)


def tree(**parameters):
    return SoftTreeClassifier(depth=1, n_starts=2, random_state=0, **parameters)


def search(**parameters):
    few = {"depths": [1], "scales": ["standard"], "ridges": [1.0], "n_strengths": 2, "cv": 2}
    return SoftTreeClassifierCV(**few, random_state=0, **parameters)


def interrupted(*_arguments, **_options):
    raise KeyboardInterrupt


FAILURES = {
    "rates out of reach": ({"min_class_rate": 1.0}, OTHER_X, OTHER_Y, ValueError),
    "one class": ({}, OTHER_X, ["a"] * 20, ValueError),
    "a wrong parameter": ({"solver": "none"}, OTHER_X, OTHER_Y, ValueError),
    "too few weights": ({"min_class_rate": [0.1]}, OTHER_X, OTHER_Y, ValueError),
    "not a number": ({}, np.full((20, 2), np.nan), OTHER_Y, ValueError),
}


@pytest.mark.parametrize("make", [tree, *slow(search)])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_refit_that_fails_leaves_the_old_tree(failure, make):
    parameters, rows, labels, error = FAILURES[failure]
    model = make().fit(X, Y)
    before, text = model.predict_proba(X), export_text(model)
    names = set(vars(model))
    model.set_params(**parameters)
    with pytest.raises(error):
        model.fit(rows, labels)
    assert set(vars(model)) == names
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.classes_.tolist() == [0, 1] and export_text(model) == text


@pytest.mark.parametrize(
    ("make", "module", "part"),
    [
        (tree, softsplit.training.run, "multistart"),
        (tree, softsplit.training.run, "search_around"),
        (search, softsplit.estimators.chosen, "refit_from"),
    ],
)
def test_an_interruption_leaves_the_old_tree(make, module, part, monkeypatch):
    model = make().fit(X, Y)
    before = model.predict_proba(X)
    monkeypatch.setattr(module, part, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(OTHER_X, OTHER_Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 3
