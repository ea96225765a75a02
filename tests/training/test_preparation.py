"""Rows, settings, runs and outcomes: what lies between an estimator and a solver."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from softsplit import Parity, RateConstraint, SoftTreeClassifier, export_text
from softsplit.estimators.base import model_settings, training_run
from softsplit.estimators.training_rows import training_rows
from softsplit.fitted.walk import Arriving
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.pointed_walk import decisive_walk, shorter_tree
from softsplit.training.points import in_points
from softsplit.training.preparation import prepare
from softsplit.training.rows import Rows
from softsplit.training.run import End, train
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values
from softsplit.variables import learn
from softsplit.variables.shares import level_shares, out_of_fold

X, Y = load_iris(return_X_y=True)


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


# Trained trees in whole points.


def learnable_table(n_rows=300):
    """Two numbers, one of them with missing values, and a category; two classes."""
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(20.0, 80.0, n_rows), rng.normal(5.0, 2.0, n_rows)
    colour = rng.choice(["red", "green", "blue"], n_rows)
    score = 0.1 * (age - 50.0) - 0.8 * (dose - 5.0) + 2.0 * (colour == "red")
    labels = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-score))).astype(int)
    dose[rng.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame({"age": age, "dose": dose, "colour": colour}), labels


def log_loss(tree, rows, steepness):
    says = mixed_values(tree, rows.features, steepness)[rows.labels, np.arange(len(rows.labels))]
    return -np.average(np.log(says), weights=rows.weights)


@pytest.mark.parametrize("settings", [{}, {"scale": "quantile", "curves": False}], ids=str)
def test_a_tree_in_points_predicts_as_well_as_the_tree_it_is_made_of(settings):
    X, labels = learnable_table()
    model = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, **settings)
    prepared = prepare(model_settings(model), training_rows(model, X, labels, None))
    tree = train(prepared, training_run(model)).best.parameters
    parts, rows = in_points(prepared, tree), prepared.arriving()
    pointed = parts.values(prepared.scaling, rows)
    steepness = prepared.problem.steepness
    exact = log_loss(tree, rows, steepness)
    assert log_loss(parts.parameters, pointed, steepness) < exact + 0.05
    # whole points, the same for the table as for the training rows
    coded = parts.coding.code(X).X[:, parts.columns]
    np.testing.assert_allclose(np.sort(coded.sum(axis=1)), np.sort(pointed.features.sum(axis=0)))
    summary, n_columns = parts.summary(prepared, pointed), len(parts.coding.homes)
    assert summary.low.shape == summary.kinds.shape == (n_columns,)


def test_a_fitted_tree_in_points_reads_tables_as_its_training_rows():
    X, labels = learnable_table()
    tree = SoftTreeClassifier(points=True, depth=2, random_state=0).fit(X, labels)
    walk = tree.tree_.walk
    assert tree.coding_.pointed
    assert set(np.unique(walk.coefficients)) <= {0.0, 1.0}
    np.testing.assert_array_equal(walk.thresholds, np.rint(walk.thresholds))
    # the counts of the leaves are those of the table, asked anew
    arrived = np.bincount(
        tree.apply(X) - tree.tree_.topology.n_branches, minlength=len(walk.classes)
    )
    np.testing.assert_array_equal(arrived, walk.counts.sum(axis=0))
    assert tree.score(X, labels) > 0.7
    assert len(set(walk.classes.tolist())) == 2
    assert np.any(walk.coefficients)
    assert tree.tree_.profile.columns[2] is not None


@pytest.mark.parametrize(
    ("asked", "pointed"),
    [
        ({"min_class_rate": {0: 0.8}}, True),
        ({"constraints": [RateConstraint(None, of=1, at_most=0.4)]}, True),
        ({"fairness": Parity("colour", 0.05)}, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_rates_hold_in_points_or_weights_stay(asked, pointed):
    X, labels = learnable_table()
    tree = SoftTreeClassifier(points=True, depth=1, n_starts=1, random_state=0, **asked)
    tree.fit(X, labels)
    assert pointed is None or tree.coding_.pointed == pointed
    called, proba = tree.predict(X), tree.leaf_proba(X) @ tree.tree_.leaf_shares.T
    slack = 1.0 / np.bincount(labels).min()
    if "min_class_rate" in asked:
        assert np.mean(called[labels == 0] == 0) >= 0.8 - slack
        assert proba[labels == 0, 0].mean() >= 0.8 - 1e-4
    elif "constraints" in asked:
        assert called.mean() <= 0.4 + slack
        assert proba[:, 1].mean() <= 0.4 + 1e-4
    else:
        by_group = pd.Series(called).groupby(X["colour"].to_numpy()).mean()
        assert np.ptp(by_group) <= 0.05 + 2.0 / X["colour"].value_counts().min()
    for record in tree.tree_.rates:
        assert record.decisions_hold


def test_a_term_that_decides_nothing_leaves_its_question():
    rng = np.random.default_rng(0)
    told, idle = rng.integers(0, 7, 400), rng.integers(0, 2, 400)
    labels = (rng.random(400) < 1.0 / (1.0 + np.exp(6.0 - 2.0 * told))).astype(np.int64)
    rows = Arriving(np.array([told, idle], dtype=float), labels, np.ones(400))
    leaves = np.array([[0.02, 0.98], [0.98, 0.02]])
    for weight, kept in ((1.0, [True, False]), (6.0, [True, True])):
        points = rows._replace(features=rows.features * np.array([[1.0], [weight]]))
        tree = TreeParameters(np.full((2, 1), 2.0), np.array([6.0]), leaves)
        parts = SimpleNamespace(parameters=tree, monotone=None)
        walk = decisive_walk(parts, points, 1.0, np.eye(2))[1]
        shorter = shorter_tree(tree, walk, points, 1.0)
        weights = tree.weights if shorter is None else shorter.weights
        assert (weights[:, 0] != 0).tolist() == kept


def test_of_many_terms_those_that_go_together_cost_little():
    """Each of thirty terms is worth little by itself, and hardly any would stay."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (30, 5000)).astype(float)
    gates = 1.0 / (1.0 + np.exp(0.5 * (15.0 - values.sum(axis=0))))
    labels = (rng.random(5000) < 0.45 - 0.35 * gates).astype(np.int64)
    rows = Arriving(values, labels, np.ones(5000))
    leaves = np.array([[0.9, 0.55], [0.1, 0.45]])
    tree = TreeParameters(np.full((30, 1), 0.5 * 30), np.array([0.5 * 15.0]), leaves)
    walk = decisive_walk(SimpleNamespace(parameters=tree, monotone=None), rows, 1.0, np.eye(2))[1]

    def loss(some: TreeParameters) -> float:
        likely = mixed_values(some, values, 1.0)[labels, np.arange(5000)]
        return -float(np.log(likely).sum())

    def trimmed(most: float) -> TreeParameters:
        last, shorter = tree, shorter_tree(tree, walk, rows, 1.0, most)
        while shorter is not None:
            last, shorter = shorter, shorter_tree(shorter, walk, rows, 1.0, most)
        return last

    few, many = trimmed(np.inf), trimmed(loss(tree) + 3.0)
    assert np.count_nonzero(few.weights) < 10 < 24 < np.count_nonzero(many.weights) < 30
    assert loss(many) <= loss(tree) + 3.0 < loss(few)
