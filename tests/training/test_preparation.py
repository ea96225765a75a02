"""Rows, settings, runs and outcomes: what lies between an estimator and a solver."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from softsplit import SoftTreeClassifier, export_text
from softsplit.estimators.base import model_settings, training_run
from softsplit.estimators.training_rows import training_rows
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.preparation import prepare
from softsplit.training.rows import Rows
from softsplit.training.run import End, train
from softsplit.variables import learn
from softsplit.variables.shares import level_shares, out_of_fold

X, Y = load_iris(return_X_y=True)
SMALL = {"depths": [2], "scales": ["standard"], "n_strengths": 2, "cv": 2}


def quick(**parameters):
    """A tree of straight effects, whose columns are those of ``X``."""
    return SoftTreeClassifier(**{"curves": False, "n_starts": 2, "random_state": 0} | parameters)


def test_the_parts_of_a_fit_make_the_same_tree_as_the_estimator():
    model = quick(global_strength=0.5, points=False)
    prepared = prepare(model_settings(model), training_rows(model, X, Y, None))
    outcome = train(prepared, training_run(model))
    tree = fitted_tree(prepared, outcome.best, 0.0)
    model.fit(X, Y)
    assert_array_equal(tree.parameters.weights, model.weights_)
    assert_array_equal(tree.predict_proba(X), model.predict_proba(X))
    assert_array_equal(tree.importances, model.feature_importances_)
    assert outcome.end is End.COMPLETE and outcome.warning is None
    assert len(outcome.starts) == 2


@pytest.mark.parametrize(
    ("parameters", "end"),
    [({}, "complete"), ({"max_iter": 1}, "max_iter"), ({"time_limit": 1e-9}, "time_limit")],
)
def test_the_end_is_kept_as_data(parameters, end):
    model = quick(global_strength=0.5, **parameters)
    if end == "complete":
        model.fit(X, Y)
    else:
        with pytest.warns(ConvergenceWarning):
            model.fit(X, Y)
    assert model.end_ == end


def test_by_likelihood_branches_that_decide_nothing_are_left_out():
    model = quick(depth=4, decision="mixture").fit(X, Y)  # a walk would be rounded too
    idle = ~model.weights_.any(axis=0)
    whole = model.tree_.with_parameters(model.solution_.parameters)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    assert "always" not in export_text(model)
    assert idle.sum() < np.sum(~model.solution_.parameters.weights.any(axis=0))


def test_folds_learn_class_shares_from_their_training_rows_alone():
    rng = np.random.default_rng(0)
    stores = np.array([f"s{i}" for i in rng.integers(0, 45, 500)], dtype=object)
    stores[::50] = None
    frame = pd.DataFrame({"size": rng.normal(size=500), "store": stores})
    labels, weight = rng.integers(0, 3, 500), rng.integers(0, 3, 500).astype(float)
    coded = learn(frame, labels, np.arange(3), weight)
    (shared,) = coded.shared
    again = coded.coding.code(frame).shared[0]  # of rows whose classes come later
    assert (again.first, again.n, again.classes) == (shared.first, shared.n, shared.classes)
    assert_array_equal(again.places, shared.places)
    assert_array_equal(again.folds, shared.folds)
    train, test = np.arange(0, 500, 2), np.arange(1, 500, 2)

    def fold(labels):
        rows = Rows(coded.X.copy(), labels, weight, np.arange(3), shared=coded.shared)
        return rows.fold(train, test)

    own, other = fold(labels)
    of = (labels[train], weight[train])
    places, columns = shared.places, shared.columns
    table = level_shares(places[train], *of, shared.n)
    assert_array_equal(other.X[:, columns], table[places[test]])
    held_out = out_of_fold(places[train], *of, shared.folds[train], shared.n)
    assert_array_equal(own.X[:, columns], held_out)
    assert_array_equal(own.X[:, 0], coded.X[train, 0])
    changed = labels.copy()
    changed[test] = (changed[test] + 1) % 3
    for mine, theirs in zip(fold(changed), (own, other), strict=True):
        assert_array_equal(mine.X, theirs.X)
