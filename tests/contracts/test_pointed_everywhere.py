"""Every reading of a tree in whole points says what its predictions say.

The tree has numbers, levels, an order, truth values and parts of two dates; all have missing values
but one.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from places import FILES
from softsplit import check_rows, dumps_model, export_markdown, export_text, load_model, loads_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "persistence"))

from stored_models import trips

X, LABELS = trips(320)
Y = pd.Series(LABELS, name="arrival")


@pytest.fixture(scope="module")
def tree():
    stored = load_model(FILES / "model-v1-log-points.json")
    assert stored.coding_.pointed
    return stored


READINGS = []


def reading(check):
    READINGS.append(check)
    return check


@pytest.mark.parametrize("check", READINGS, ids=lambda check: check.__name__)
def test_readings(tree, check):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(tree, tree.predict_proba(X))


@reading
def files(tree, proba):
    for other in (pickle.loads(pickle.dumps(tree)), loads_model(dumps_model(tree))):
        assert_array_equal(other.predict_proba(X), proba)
        assert_array_equal(other.predict(X), tree.predict(X))


@reading
def rows_far_outside(tree, proba):
    """Tables do not extrapolate, and nothing is warned of."""
    far = X.assign(fare=1e9, end=X["end"] + pd.Timedelta(3000, "D"))
    nearer = X.assign(fare=X["fare"].max(), end=far["end"])
    assert_array_equal(tree.predict_proba(far), tree.predict_proba(nearer))


@reading
def leaves(tree, proba):
    shares = tree.tree_.leaf_shares
    mixed = tree.leaf_proba(X) @ shares.T
    agreed = np.argmax(mixed, axis=1) == np.searchsorted(tree.classes_, tree.predict(X))
    assert_allclose(mixed[agreed], proba[agreed], atol=1e-12)
    assert_array_equal(tree.decision_function(X) > 0, tree.predict(X) == tree.classes_[1])
    arrived = tree.apply(X)
    assert np.all(tree.node_visits(X)[np.arange(len(X)), arrived] == 1.0)
    assert np.all(np.asarray(tree.decision_path(X).todense())[np.arange(len(X)), arrived] == 1)
    importances = tree.feature_importances_
    assert set(np.flatnonzero(importances)) <= set(tree.selected_features_)
    assert_allclose(importances.sum(), 1.0)


@reading
def explanations(tree, proba):
    changed = 0
    for row in range(0, 60, 4):
        told = tree.explain(X.iloc[[row]])
        assert_array_equal(list(told.probabilities.values()), proba[row])
        assert told.label == tree.predict(X.iloc[[row]])[0]
        for change in told.changes:
            if change.name not in X or change.name in ("start", "end"):
                continue  # a date moves all that is counted from it
            value = change.new_value == "true" if change.name == "member" else change.new_value
            moved = X.iloc[[row]].astype(object)
            moved[change.name] = [value]
            assert tree.predict(moved)[0] == change.label
            changed += 1
    assert changed > 10
    limited = tree.explain(X.iloc[[0]], ranges={"fare": (15, 25)}, fixed=["store"])
    assert {"fare", "store"}.isdisjoint(c.name for c in limited.changes if c.name == "store")
    assert all(15 <= c.new_value <= 25 for c in limited.changes if c.name == "fare")


@reading
def partial_dependence(tree, proba):
    for column in ("fare", "town", "member"):
        found = tree.partial_dependence(X, [column], grid_resolution=7)
        for place, value in enumerate(found.grid_values[0][:4]):
            mean = tree.predict_proba(X.assign(**{column: value})).mean(axis=0)
            assert_allclose(np.atleast_2d(found.average)[-1, place], mean[-1], atol=1e-12)


@reading
def shapley_values(tree, proba):
    values, base = tree.shapley_values(X[:3], X[:40])
    assert_allclose(base + values.sum(axis=1), proba[:3], atol=1e-12)


@reading
def costs(tree, proba):
    """Each row pays for the columns on its way."""
    per_row = tree.expected_cost(X, feature_costs={"fare": 100.0}, per_row=True)
    assert np.all((per_row >= 100) == (per_row % 100 != per_row))
    assert_allclose(per_row.mean(), tree.expected_cost(X, feature_costs={"fare": 100.0}))


@reading
def comparison_with_training_rows(tree, proba):
    assert not any(one.moved for one in check_rows(tree, X).comparisons)
    moved = {c.name for c in check_rows(tree, X.assign(fare=X["fare"] + 8)).comparisons if c.moved}
    assert "fare" in moved


@reading
def monotone_effects(tree, proba):
    assert tree.check_monotone("size").proved  # not used
    found = tree.check_monotone("fare", "+")
    assert found.holds is not True
    if found.holds is False:
        low, high = tree.predict_proba(found.rows)[:, 1]
        assert low > high or tree.predict(found.rows)[0] != tree.predict(found.rows)[1]


@reading
def words(tree, proba):
    frame = tree.to_frame()
    assert len(frame) >= 7
    for text in (export_text(tree), export_markdown(tree), str(tree.to_hard_tree())):
        assert "fare" in text and "points" in text
        assert all(str(label) in text for label in tree.classes_)


@reading
def simpler_trees(tree, proba):
    assert_allclose(tree.simplify(X).predict_proba(X), proba, atol=1e-9)


@reading
def sets_of_classes(tree, proba):
    known = tree.calibrate(X, Y)
    assert_array_equal(known.predict(X), tree.predict(X))
    sets = known.predict_set(X, confidence=0.9)
    assert np.asarray(sets).shape[0] == len(X)


@reading
def changes_by_hand(tree, proba):
    fewer = tree.edit().set_threshold(1, 25)
    assert "25 or more" in export_text(fewer)
    known = ~X["fare"].isna().to_numpy()
    other = tree.edit().set_points(1, "fare", None, 40)
    assert_allclose(other.predict_proba(X)[known], proba[known], atol=1e-12)
    assert np.any(other.predict_proba(X)[~known] != proba[~known])
    assert "unknown: 40" in export_text(other)
    level = tree.edit().set_points(1, "weekday of start", "Friday", 9)
    friday = (X["start"].dt.day_name() == "Friday").to_numpy()
    assert_allclose(level.predict_proba(X)[~friday], proba[~friday], atol=1e-12)
    assert np.any(level.predict_proba(X)[friday] != proba[friday])
    without = tree.edit().drop_feature("fare")
    assert_array_equal(without.predict_proba(X.assign(fare=3.0)), without.predict_proba(X))
    assert np.all(without.tree_.walk.thresholds == np.rint(without.tree_.walk.thresholds))
    out = tree.edit().set_weight(1, "fare", 0)
    assert "fare" not in export_text(out).split("question 2")[0]
    named = tree.edit().rename({"fare": "price"}, {"late": "too late"})
    assert_array_equal(named.predict_proba(X.rename(columns={"fare": "price"})), proba)
    assert "price" in export_text(named) and "fare " not in export_text(named)
    shorter = tree.edit().prune(3).set_leaf(1, "late")
    counted = shorter.count_rows(X, Y)
    assert counted.tree_.walk.counts.sum() == len(X)
    space = {"tree": tree}
    exec(other.code, space)
    assert_array_equal(space["edited"].predict_proba(X), other.predict_proba(X))
    for made in (fewer, other, level, without, out, named, counted):
        again = loads_model(dumps_model(made))
        rows = X.rename(columns={"fare": "price"}) if made is named else X
        assert_array_equal(again.predict_proba(rows), made.predict_proba(rows))
    assert len(tree.edit().drop_feature("fare").compare(X, Y).changed) > 0


@pytest.mark.parametrize(
    ("verb", "given", "sentence"),
    [
        ("set_threshold", (1, 2.5), "whole number of points"),
        ("set_weight", (1, "fare", 2.0), "set_points"),
        ("round_weights", (2,), "nothing to round"),
        ("set_points", (1, "fare", 20.0, 1.5), "whole number of points"),
        ("set_points", (1, "member", None, 1), "none in training"),
        ("set_points", (1, "town", "Oslo", 1), "no points of 'town'"),
        ("set_points", (2, "town", "Rome", 1), "no level of 'town'"),
    ],
)
def test_what_points_have_not_is_refused_in_one_sentence(tree, verb, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(tree.edit(), verb)(*given)


@pytest.mark.parametrize("keep", ["edited", "structure", "features"])
def test_a_refit_keeps_points(tree, keep):
    edited = tree.edit().set_threshold(1, 24)
    again = edited.refit(X, Y, keep=keep)
    walk = again.tree_.walk
    assert again.coding_.pointed
    assert set(np.unique(walk.coefficients)) <= {0.0, 1.0}
    assert_array_equal(walk.thresholds, np.rint(walk.thresholds))
    if keep == "edited":
        assert walk.thresholds[0] == 23.0

    def loss(one):
        own = one.predict_proba(X)[np.arange(len(X)), np.searchsorted(one.classes_, LABELS)]
        return -np.log(own).mean()

    assert loss(again) <= loss(edited) + 1e-9
    assert not any(check.moved for check in check_rows(again, X).comparisons)


@pytest.mark.slow
def test_a_report_is_written(tree, tmp_path):
    tree.report(X, Y, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "fare" in text and "lookups" in text
