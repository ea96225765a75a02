"""Trained trees in whole points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsplit import Parity, RateConstraint, SoftTreeClassifier
from softsplit.estimators.base import model_settings, training_run
from softsplit.estimators.training_rows import training_rows
from softsplit.training.points import in_points
from softsplit.training.preparation import prepare
from softsplit.training.run import train
from softsplit.tree.routing import mixed_values


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
    pointed = parts.values(prepared, rows)
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
