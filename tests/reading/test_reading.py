"""Reasons, importances, hard trees and simpler trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine

from readings import LEAVES, random_classifier, random_model
from softsplit import SoftTreeClassifier, export_markdown, export_text
from softsplit.advice.changes import class_changes
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.pruning import simplified_model
from softsplit.reading.equations import read_split
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import KINDS

trees = {
    "seed": st.integers(0, 10_000),
    "depth": st.integers(1, 3),
    "n_classes": st.integers(2, 4),
    "kind": st.sampled_from(KINDS),
}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    tree = SoftTreeClassifier(depth=2, global_strength=0.5, n_starts=2, random_state=0)
    return tree.fit(X, np.array(["a", "b", "c"])[y]), X


# --- splits in original units -----------------------------------------------------------------


@given(**trees)
def test_a_split_in_original_units_routes_as_the_tree_does(seed, depth, n_classes, kind):
    model, X = random_model(seed, depth, n_classes, kind)
    scores = model.scores(X)
    for t in range(model.topology.n_branches):
        split = read_split(model, t)
        if not split.features:
            assert np.ptp(scores[t]) == 0
            continue
        seen = model.scaling.transform(X) if split.ranked else X
        total = seen[:, list(split.features)] @ np.array(split.coefficients)
        clear = np.abs(scores[t]) > 1e-9
        holds = total > split.threshold if split.sign == ">" else total < split.threshold
        np.testing.assert_array_equal(holds[clear], scores[t][clear] > 0)
        assert split.coefficients[0] == 1
        if split.sure is None:
            sure = np.abs(total - split.threshold) > split.width * (1 + 1e-6)
            assert np.all(np.abs(model.steepness * scores[t][sure]) >= np.log(19) * (1 - 1e-6))


# --- one row explained ------------------------------------------------------------------------


@given(**trees)
def test_an_explanation_adds_up(seed, depth, n_classes, kind):
    tree, X = random_classifier(
        seed, depth=depth, n_classes=n_classes, kind=kind, leaves=LEAVES[seed % 3]
    )
    x = X[seed % len(X)]
    names = tree.feature_names_in_
    frame = pd.DataFrame([x], columns=names)
    found = tree.explain(frame)
    assert found.label == tree.predict(frame)[0]
    np.testing.assert_allclose(
        list(found.probabilities.values()), tree.predict_proba(frame)[0], atol=1e-12
    )
    gates = tree.branch_proba(frame)[0]
    for reading in found.branches:
        assert reading.left == pytest.approx(gates[reading.branch], abs=1e-12)
        pulled = sum(term.log_odds for term in reading.contributions)
        assert reading.base_log_odds + pulled == pytest.approx(reading.log_odds, abs=1e-6)
        sizes = [abs(term.log_odds) for term in reading.contributions]
        assert sizes == sorted(sizes, reverse=True)
        if reading.contributions:
            assert reading.total == pytest.approx(sum(t.amount for t in reading.contributions))
    text = str(found)
    assert text.startswith(f"class {found.label}")
    most = max(found.probabilities.values())
    assert bool(found.note) == (found.probabilities[found.label] < most)
    assert found.note in text
    assert set(found.to_dict()) >= {"label", "probabilities", "branches", "changes"}


# --- the smallest change ----------------------------------------------------------------------


@given(**trees, steepness=st.sampled_from([4.0, 64.0, 512.0]))
def test_no_smaller_change_of_one_feature_changes_the_class(
    seed, depth, n_classes, kind, steepness
):
    """Every change is confirmed by the tree, and a dense scan finds none nearer."""
    model, X = random_model(
        seed, depth, n_classes, kind, steepness=steepness, leaves=LEAVES[seed % 3]
    )
    x = X[seed % len(X)]
    current = model.predict_index(x[None, :])[0]
    found = class_changes(model, x)
    by_feature = {change.feature: change for change in found}
    for j in range(X.shape[1]):
        low, high = model.summary.low[j], model.summary.high[j]
        if low == high:  # nothing to move within
            assert j not in by_feature
            continue
        if model.summary.kinds[j] == "binary":
            values = np.array([0.0, 1.0])
        elif model.summary.kinds[j] == "integer":
            values = np.arange(low, high + 1)
        else:
            values = np.linspace(low, high, 4001)
        rows = np.repeat(x[None, :], len(values), axis=0)
        rows[:, j] = values
        other = model.predict_index(rows) != current
        if j not in by_feature:
            assert not np.any(other)
            continue
        change = by_feature[j]
        moved = x.copy()
        moved[j] = change.new_value
        assert model.labels[model.predict_index(moved[None, :])[0]] == change.label
        assert change.label != model.labels[current]
        assert low <= change.new_value <= high
        size = abs(change.new_value - x[j])
        assert change.share_of_range == pytest.approx(size / (high - low))
        if np.any(other):
            third_digit = 10.0 ** (np.floor(np.log10(abs(change.new_value) or 1.0)) - 2)
            rounding = min(0.01 * (high - low), third_digit)
            assert size <= np.min(np.abs(values[other] - x[j])) + rounding + 1e-9 * (high - low)
    shares = [change.share_of_range for change in found]
    assert shares == sorted(shares)


@pytest.mark.parametrize("kind", ["minmax", "quantile"])
def test_two_features_change_the_class_together_where_none_does_alone(kind):
    """Class 1 needs both features high: from a row with both low no single one leads there."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    y = ((X[:, 0] > 0.6) & (X[:, 1] > 0.6)).astype(int)
    tree = SoftTreeClassifier(
        depth=2, scale=kind, n_starts=3, random_state=0, loss="cost", global_strength=0.5
    ).fit(X, y)
    x = np.array([0.1, 0.2, 0.5])
    found = tree.explain(x)
    assert found.changes == () and len(found.together) == 2
    assert {change.feature for change in found.together} == {0, 1}
    moved = x.copy()
    for change in found.together:
        moved[change.feature] = change.new_value
        assert found.label != change.label
    assert tree.predict(moved[None])[0] == found.together[0].label
    for change in found.together:  # neither could change less while the other stays
        less = moved.copy()
        less[change.feature] += 1e-3 * np.sign(x[change.feature] - change.new_value)
        assert tree.predict(less[None])[0] == found.label
    assert "no single feature changes the class within its training range; two do:" in str(found)


# --- importances ------------------------------------------------------------------------------


@given(**trees)
def test_importances_are_shares_and_unused_features_have_none(seed, depth, n_classes, kind):
    tree, _ = random_classifier(seed, depth=depth, n_classes=n_classes, kind=kind)
    shares = tree.feature_importances_
    assert np.all(shares >= 0)
    assert shares.sum() == pytest.approx(1) or not np.any(shares)
    assert np.all(shares[~np.any(tree.weights_, axis=1)] == 0)


def test_importance_of_one_split_follows_the_definition():
    rng = np.random.default_rng(0)
    features, weights = rng.uniform(size=(3, 50)), rng.uniform(0.5, 2.0, 50)
    tree = TreeParameters(np.array([[0.8], [-0.4], [0.0]]), np.array([0.1]), np.eye(2))
    expected = np.zeros(3)
    for j in (0, 1):
        mean = np.average(features[j], weights=weights)
        expected[j] = abs(tree.weights[j, 0]) * np.average(
            np.abs(features[j] - mean), weights=weights
        )
    found = feature_importances(tree, 10.0, features, weights)
    np.testing.assert_allclose(found, expected / expected.sum())
    # A weight of two is the row twice.
    doubled = feature_importances(
        tree, 10.0, np.hstack([features, features]), np.concatenate([weights, weights]) / 2
    )
    np.testing.assert_allclose(doubled, found)


# --- hard trees -------------------------------------------------------------------------------


def test_hard_tree_follows_the_signs(wine):
    tree, X = wine
    walk = tree.to_hard_tree()
    assert walk.agreement(X) == 1.0
    tree = clone(tree).set_params(decision="mixture").fit(X, tree.predict(X))
    hard = tree.to_hard_tree()
    left = tree.branch_proba(X) >= 0.5
    by_hand = np.where(left[:, 0], np.where(left[:, 1], 0, 1), np.where(left[:, 2], 2, 3))
    np.testing.assert_array_equal(hard.apply(X), by_hand)
    best = tree.leaf_classes_.argmax(axis=0)
    np.testing.assert_array_equal(hard.predict(X), tree.classes_[best[by_hand]])
    same = np.mean(hard.predict(X) == tree.predict(X))
    assert hard.agreement(X) == same > 0.97
    assert hard.score(X, tree.predict(X)) == same
    assert "if " in str(hard)


# --- simplify ---------------------------------------------------------------------------------


def with_idle_parts(model, rng):
    """Equal leaves here, a branch without features there, equal subtrees elsewhere."""
    tree = model.parameters
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    # Classes of the leaves, and below them their shares if they have any besides.
    parts = [tree.leaf_values, *([] if model.distributions is None else [model.distributions])]
    leaves = np.vstack(parts)
    for t in range(len(thresholds)):
        what = rng.integers(4)
        below = list(tree.topology.leaves_below(t))
        half = len(below) // 2
        if what == 0:
            leaves[:, below] = leaves[:, below[:1]]
        elif what == 1:
            weights[:, t] = 0.0
        elif what == 2 and half > 1:
            a, b = 2 * t + 1, 2 * t + 2
            weights[:, b], thresholds[b] = weights[:, a], thresholds[a]
            leaves[:, below[half:]] = leaves[:, below[:half]]
    classes, *shares = np.split(leaves, len(parts))
    made = TreeParameters(weights, thresholds, classes)
    return replace(model, parameters=made, distributions=shares[0] if shares else None)


@given(**trees, steepness=st.sampled_from([8.0, 512.0]))
def test_a_simpler_tree_answers_the_same_everywhere(seed, depth, n_classes, kind, steepness):
    model, X = random_model(
        seed, depth, n_classes, kind, steepness=steepness, leaves=LEAVES[seed % 3]
    )
    rng = np.random.default_rng(seed)
    model = with_idle_parts(model, rng)
    small = simplified_model(model, 1e-9)
    # Leaves of one class that become a mixture have no factors any more.
    assume((model.class_factors is None) == (small.class_factors is None))
    span = np.ptp(X, axis=0) + 1.0
    anywhere = X[rng.integers(len(X), size=400)] + rng.normal(size=(400, X.shape[1])) * span
    before, after = model.predict_proba(anywhere), small.predict_proba(anywhere)
    np.testing.assert_allclose(after, before, atol=1e-9)
    top = np.sort(model.votes(anywhere), axis=1)
    clear = top[:, -1] - top[:, -2] > 2e-8
    said, says = model.predict_index(anywhere), small.predict_index(anywhere)
    np.testing.assert_array_equal(says[clear], said[clear])
    assert small.topology.depth <= model.topology.depth
    assert np.count_nonzero(small.parameters.weights) <= np.count_nonzero(model.parameters.weights)
    again = simplified_model(small, 1e-9)
    np.testing.assert_array_equal(again.parameters.weights, small.parameters.weights)


# --- trees chosen by cross-validation -----------------------------------------------------------


def test_a_question_with_one_class_on_both_sides_is_said_to_change_the_probability_only():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"arrears": rng.normal(size=2000)})
    y = np.where(rng.random(2000) < np.where(X["arrears"] > 0, 0.3, 0.02), "late", "paid")
    one = {"depth": 1, "random_state": 0, "points": False}
    tree = SoftTreeClassifier(**one).fit(X, y)
    assert set(tree.predict(X)) == {"paid"}
    note = "question 1 changes the probability only: the class is paid on both sides"
    for text in (export_text(tree), export_markdown(tree)):
        assert note in text
    assert "changes the probability only" not in export_text(
        SoftTreeClassifier(**one).fit(X, X["arrears"] > 0)
    )


def test_nearly_all_rows_of_a_leaf_are_not_told_as_all():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (3000, 1)), rng.normal(9, 1, (40, 1))]).round(3)
    y = np.array(["common"] * 2995 + ["rare"] * 45)
    told = {
        False: ("3000 rows: common 99.8 %)", "40 rows: rare 100 %)"),
        True: ("class common (3000 rows, 99.8 % right)", "class rare (40 rows, 100 % right)"),
    }
    for points, said in told.items():
        tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, points=points).fit(X, y)
        text = export_text(tree)
        assert all(one in text for one in said)
