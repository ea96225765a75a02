"""Pickles of version 0.1.0, made before trees had ``tree_`` and modules their present places."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.validation import check_is_fitted

from softsplit import SoftTreeClassifier, dumps_model, export_text, loads_model, strength_path
from softsplit.solvers import Status

FORMER = Path(__file__).parent / "data" / "former"
TREES = sorted(path.stem for path in FORMER.glob("*.pkl") if path.stem not in ("path", "hard"))
EVERY = 15
"""The files with the expected probabilities hold those of every 15th row."""


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def loaded(name):
    return pickle.loads((FORMER / f"{name}.pkl").read_bytes())


def expected(name):
    return np.loadtxt(FORMER / f"{name}.expected")


def test_there_are_some_of_every_kind():
    kinds = {"chosen", "decomposition", "tree-minmax", "tree-none", "tree-quantile"}
    assert kinds < set(TREES)


@pytest.mark.parametrize("name", TREES)
def test_a_pickle_is_read_and_predicts_as_before(name, iris):
    X, y = iris
    tree = loaded(name)
    check_is_fitted(tree)
    assert_array_equal(tree.predict_proba(X)[::EVERY], expected(name))
    assert tree.score(X, y) > 0.8
    assert tree.classes_.tolist() == sorted(set(y))
    assert tree.feature_names_in_.tolist() == list(X.columns)
    assert tree.n_features_in_ == 4
    assert tree.loss == loads_model(dumps_model(tree)).loss == "cost"


@pytest.mark.parametrize("name", TREES)
def test_what_follows_from_its_tree_is_there(name, iris):
    X, _ = iris
    tree = loaded(name)
    assert tree.coef_.shape == tree.weights_.T.shape and len(tree.intercept_) == len(tree.coef_)
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
    assert tree.objective_ > 0 and tree.n_iter_ >= 1
    assert tree.selected_features_.tolist() == np.flatnonzero(tree.weights_.any(axis=1)).tolist()
    assert 0 <= tree.local_sparsity_ <= 100 and 0 <= tree.global_sparsity_ <= 100
    assert not {"weights_", "coef_", "_summary", "_steepness", "_zero_threshold"} & set(vars(tree))
    holder = getattr(tree, "best_estimator_", tree)
    assert isinstance(holder.solution_.status, Status)
    assert all(isinstance(start.status, Status) for start in holder.starts_)
    assert str(tree.explain(X.iloc[0])) and export_text(tree)
    assert tree.to_hard_tree().agreement(X) > 0.8
    assert_array_equal(tree.simplify(X).predict(X), tree.predict(X))


@pytest.mark.parametrize("name", TREES)
def test_it_is_saved_and_trained_again(name, iris):
    X, y = iris
    tree = loaded(name)
    probabilities = tree.predict_proba(X)
    assert_array_equal(loads_model(dumps_model(tree)).predict_proba(X), probabilities)
    assert_array_equal(pickle.loads(pickle.dumps(tree)).predict_proba(X), probabilities)
    assert clone(tree).get_params().keys() == tree.get_params().keys()
    assert tree.fit(X, y).score(X, y) > 0.8


def test_a_path_is_read(iris):
    X, _ = iris
    path = loaded("path")
    assert_array_equal(path[1].classifier.predict_proba(X)[::EVERY], expected("path"))
    assert len(path) == 3 and path.to_frame()["n_features"].iloc[0] >= 1
    assert repr(path).startswith("StrengthPathResult of 3 trees")
    again = strength_path(*iris, n_points=3, estimator=path[0].classifier)
    assert len(again) == 3


def test_an_unfitted_estimator_has_no_attributes_of_a_tree():
    tree = SoftTreeClassifier()
    for name in ("tree_", "coef_", "classes_", "feature_importances_", "objective_", "n_iter_"):
        assert not hasattr(tree, name)


def test_a_plain_tree_is_read(iris):
    X, y = iris
    hard = loaded("hard")
    assert hard.agreement(X) > 0.95 and hard.score(X, y) > 0.9
    assert_array_equal(hard.predict(X), loaded("native").to_hard_tree().predict(X))


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("softsplit.training", "NoFeasibleTreeError"),
        ("softsplit.capacity.bounds", "Bound"),
        ("softsplit.plots.tree", "TreeDisplay"),
        ("softsplit.penalties", "exponential"),
        ("softsplit.constraints", "InfeasibleLeafStep"),
        ("softsplit.routing", "leaf_probabilities"),
        ("softsplit.decomposition.stopping", "Residual"),
    ],
)
def test_former_places_lead_to_the_present_ones(former, name):
    """As a pickle asks for them."""
    assert pickle.loads(b"c" + former.encode() + b"\n" + name.encode() + b"\n.").__name__ == name
