"""Reasons, importances, hard trees and simpler trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from readings import LEAVES, random_classifier, random_model
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    export_markdown,
    export_text,
    load_model,
    save_model,
    strength_path,
)
from softsplit.advice.changes import class_changes
from softsplit.fitted import importance
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.pruning import simplified, simplified_model
from softsplit.reading.equations import read_split
from softsplit.support.numbers import number
from softsplit.tree.parameters import Topology, TreeParameters
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


def test_numbers_are_written_without_exponents_where_that_helps():
    assert number(104.2, 2) == "100"
    assert number(0.00033814, 4) == "0.0003381"
    assert number(-1234.56, 4) == "-1235"
    assert number(9999.96, 4) == "10000"
    assert number(-0.0) == "0"
    assert number(1.5e-9, 3) == "1.5e-09"
    assert number(2.0e7, 3) == "2e+07"


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


def test_the_path_leads_to_the_most_probable_leaf(wine):
    tree, X = wine
    found = tree.explain(X.iloc[0])
    assert found.leaf == tree.apply(X.iloc[:1])[0] - len(tree.thresholds_)
    steps = [step.branch for step in Topology.with_branches(len(tree.thresholds_)).path(found.leaf)]
    assert [t for t in steps if t in found.path] == list(found.path)
    assert found.leaf_probability == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("make", [lambda X: X.iloc[3], lambda X: X.iloc[[3]]], ids=["row", "frame"])
def test_one_row_in_any_form(wine, make):
    tree, X = wine
    assert tree.explain(make(X)).label == tree.predict(X.iloc[[3]])[0]


def test_texts_and_pictures_use_the_names_they_are_given(wine):
    tree, _ = wine
    names = ["Barolo", "Grignolino", "Barbera"]
    plain, named = export_text(tree), export_text(tree, class_names=names)
    assert all(name in named and name not in plain for name in names)
    assert named.count("\n") == plain.count("\n")
    assert "Grignolino" in export_markdown(tree, class_names=names)
    assert tree.classes_.tolist() == ["a", "b", "c"]  # the tree itself is as it was
    with pytest.raises(ValueError, match="class_names holds 2 names for 3 classes"):
        export_text(tree, class_names=names[:2])


def test_one_plain_row_without_names():
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y)
    assert tree.explain(X[70]).label == tree.predict(X[70:71])[0]
    assert tree.explain(X[70].tolist()).label == tree.predict(X[70:71])[0]
    with pytest.raises(ValueError, match=r"explain takes one row of a table, .* got 2"):
        tree.explain(X[:2])
    with pytest.raises(ValueError, match="X has 3 features, but SoftTreeClassifier is expecting 4"):
        tree.explain(X[0, :3])


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


def test_a_narrow_gap_between_two_splits_is_found():
    """A window of another class, a ten-thousandth of the range wide, cannot hide."""
    model, _ = random_model(0, depth=2, n_classes=2, kind="minmax", n_features=1, n_rows=400)
    low, high = model.summary.low[0], model.summary.high[0]
    begin, end = 0.6, 0.6001
    # Above `end` class 0, from `begin` to `end` class 1, below class 0 again.
    tree = TreeParameters(
        np.array([[1.0, 1.0, 1.0]]),
        np.array([end, 0.9, begin]),
        np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]),
    )
    model = replace(model, parameters=tree, steepness=1e6)
    x = np.array([low + 0.2 * (high - low)])
    (change,) = class_changes(model, x)
    assert (change.new_value - low) / (high - low) == pytest.approx(begin, abs=end - begin)
    assert change.label == model.labels[1]


def test_tied_classes_have_no_change():
    model, X = random_model(3, depth=2, n_classes=3, n_features=1)
    even = np.full_like(model.parameters.leaf_values, 1 / 3)
    model = replace(model, parameters=replace(model.parameters, leaf_values=even))
    assert class_changes(model, X[0]) == []


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


def test_a_value_outside_the_training_range_is_searched_towards_it(wine):
    tree, X = wine
    x = X.iloc[0].copy()
    x["proline"] = 1e5
    found = tree.explain(x)
    for change in found.changes:
        moved = x.copy()
        moved[change.name] = change.new_value
        assert tree.predict(moved.to_frame().T)[0] == change.label != found.label


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


def test_importances_do_not_depend_on_how_they_are_added_up(monkeypatch):
    model, _ = random_model(3, depth=3, n_classes=4, n_features=5, steepness=20.0)
    rng = np.random.default_rng(3)
    scaled, weights = rng.uniform(size=(5, 101)), rng.uniform(0.5, 2.0, 101)
    whole = feature_importances(model.parameters, 20.0, scaled, weights)
    monkeypatch.setattr(importance, "NUMBERS_AT_ONCE", 700)  # a few rows at a time, made twice
    parts = feature_importances(model.parameters, 20.0, scaled, weights)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_replacing_a_split_by_a_coin_moves_answers_by_its_importance():
    """Brute force at depth 2 with one feature per branch: movements are importances."""
    model, _ = random_model(5, depth=2, n_classes=3, n_features=3, steepness=20.0)
    tree = replace(model.parameters, weights=np.diag([0.9, -0.7, 0.5]))
    tree = replace(tree, thresholds=np.array([0.12, -0.05, 0.04]))
    scaled = np.random.default_rng(1).uniform(size=(3, 200))
    left = 1 / (1 + np.exp(-20.0 * (tree.weights.T @ scaled / 3 - tree.thresholds[:, None])))

    def answers(p):
        reach = np.array(
            [p[0] * p[1], p[0] * (1 - p[1]), (1 - p[0]) * p[2], (1 - p[0]) * (1 - p[2])]
        )
        return tree.leaf_values @ reach

    def apart(a, b):
        return np.abs(a - b).sum(axis=0) / 2

    moved = []
    ones, zeros = np.ones(200), np.zeros(200)
    for t in range(3):
        both = [answers([*left[:t], side, *left[t + 1 :]]) for side in (ones, zeros)]
        stakes = apart(*both)
        coin = np.average(left[t], weights=stakes)
        moved.append(apart(answers(left), answers([*left[:t], coin * ones, *left[t + 1 :]])).mean())
    expected = np.array(moved) / sum(moved)
    np.testing.assert_allclose(feature_importances(tree, 20.0, scaled, ones), expected, rtol=1e-9)


def test_units_do_not_matter_and_paths_have_importances():
    X, y = load_iris(return_X_y=True)
    # Enough starts for both to end in the best tree: units change the order of the rows.
    tree = SoftTreeClassifier(global_strength=4.0, random_state=0, curves=False, points=False).fit(
        X, y
    )
    other = clone(tree).fit(X * 1024.0, y)
    # Questions are rounded to decimal numbers in the units of the data, and so are knots.
    np.testing.assert_allclose(tree.feature_importances_, other.feature_importances_, atol=1e-3)
    path = strength_path(X, y, estimator=tree, strengths=[0.5, 4.0])
    for point in path.points:
        assert point.classifier.feature_importances_.sum() == pytest.approx(1)
        assert point.classifier.explain(X[0]).label == point.classifier.predict(X[:1])[0]


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


@given(**trees)
def test_hard_and_soft_trees_agree_where_gates_are_shut(seed, depth, n_classes, kind):
    tree, X = random_classifier(
        seed, depth=depth, n_classes=n_classes, kind=kind, steepness=1e9, leaves=LEAVES[seed % 3]
    )
    X = pd.DataFrame(X, columns=tree.feature_names_in_)
    gates = tree.branch_proba(X)
    shut = np.all((gates > 1 - 1e-9) | (gates < 1e-9), axis=1)
    if np.any(shut):
        hard = tree.to_hard_tree()
        np.testing.assert_array_equal(hard.predict(X[shut]), tree.predict(X[shut]))
        assert hard.agreement(X[shut]) == 1.0


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


@given(**trees)
def test_with_rows_their_answers_stay(seed, depth, n_classes, kind):
    tree, X = random_classifier(
        seed, depth=depth, n_classes=n_classes, kind=kind, steepness=512.0, leaves=LEAVES[seed % 3]
    )
    X = pd.DataFrame(X, columns=tree.feature_names_in_)
    small = tree.simplify(X.iloc[:20], tol=0.05)
    rows = X.iloc[:20]
    np.testing.assert_array_equal(small.predict(rows), tree.predict(rows))
    np.testing.assert_allclose(small.predict_proba(rows), tree.predict_proba(rows), atol=0.05)
    assert len(small.thresholds_) <= len(tree.thresholds_)
    assert tree.weights_.shape[1] == 2**depth - 1  # the original is left alone


def test_equal_leaves_and_what_nothing_reaches_are_removed():
    model, _ = random_model(1, depth=3, n_classes=2, n_features=4)
    tree = model.parameters
    leaves = np.zeros((2, 8))
    leaves[0, :4] = 1.0
    leaves[1, 4:] = 1.0
    small = simplified(replace(tree, leaf_values=leaves), 512.0)
    assert small.topology.depth == 1
    np.testing.assert_array_equal(small.weights[:, 0], tree.weights[:, 0])
    # A root that always goes left leaves its left subtree.
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    weights[:, 0], thresholds[0] = 0.0, -1.0
    small = simplified(TreeParameters(weights, thresholds, tree.leaf_values), 512.0)
    assert small.topology.depth == 2
    np.testing.assert_array_equal(small.weights[:, 0], weights[:, 1])
    # One class everywhere: a single leaf, in the smallest tree there is.
    one = np.vstack([np.ones(8), np.zeros(8)])
    small = simplified(replace(tree, leaf_values=one), 512.0)
    assert small.topology.depth == 1 and not np.any(small.weights)


def test_simplify_keeps_the_estimator_whole():
    X, y = load_iris(return_X_y=True, as_frame=True)
    settings = {"depth": 4, "global_strength": 8.0, "n_starts": 2, "random_state": 1}
    tree = SoftTreeClassifier(loss="cost", **settings).fit(X, y)
    small = tree.simplify(X, tol=0.01)
    assert len(small.thresholds_) < len(tree.thresholds_)
    np.testing.assert_array_equal(small.predict(X), tree.predict(X))
    assert small.coef_.shape == (len(small.thresholds_), 4)
    assert small.local_sparsity_ == pytest.approx(100 * np.mean(small.weights_ == 0))
    assert small.feature_importances_.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="tol must be a number from 0 to 1, got -1"):
        tree.simplify(tol=-1)


# --- trees chosen by cross-validation -----------------------------------------------------------


def test_a_chosen_tree_is_read_through_the_search(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = SoftTreeClassifierCV(scales=["quantile"], n_starts=1, cv=2, random_state=0).fit(X, y)
    best = search.best_estimator_
    assert str(search.explain(X.iloc[0])) == str(best.explain(X.iloc[0]))
    np.testing.assert_array_equal(search.feature_importances_, best.feature_importances_)
    assert search.feature_importances_.sum() == pytest.approx(1)
    assert search.to_hard_tree().agreement(X) > 0.9
    np.testing.assert_array_equal(search.simplify(X).predict(X), search.predict(X))
    save_model(search, tmp_path / "tree.json")
    np.testing.assert_array_equal(
        load_model(tmp_path / "tree.json").predict_proba(X), search.predict_proba(X)
    )


def test_importances_of_a_branch_that_hardly_matters():
    """Stakes so small that one over them is infinite."""
    tree = TreeParameters(
        np.array([[1.0, 0.5, 0.5]]),
        np.array([0.5, 0.0, 0.0]),
        np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]]),
    )
    features, weights = np.array([[0.49, 0.45]]), np.array([1e149, 2e149])
    found = feature_importances(tree, 512.0, features * 1e-3, weights)
    np.testing.assert_allclose(found, 1)
    steep = feature_importances(tree, 1455.0, features, weights)
    assert np.all(np.isfinite(steep))


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
