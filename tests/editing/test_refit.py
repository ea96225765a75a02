"""A tree trained again: the loss never rises, what is held stays as printed, commands compare."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from typer.testing import CliRunner

import softsplit
from slow_cases import slow
from softsplit import SoftTreeClassifier
from softsplit.cli import app
from softsplit.reading.outline import outline
from tables import patients

DAY = "2026-11-18"


def wine(part=None):
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = y.map({0: "barolo", 1: "grignolino", 2: "barbera"}).rename("kind")
    columns = ["alcohol", "flavanoids", "color_intensity", "hue", "proline"]
    rows = slice(None) if part is None else slice(part, None, 2)
    return X[columns].iloc[rows], y.iloc[rows]


KINDS = {
    "walk": {},
    "ranks": {"scale": "quantile"},
    "mixture": {"decision": "mixture"},
    "cost": {"loss": "cost", "effort": "fast", "global_strength": 0.01},
    "weighted": {"class_weight": "balanced"},
    "costs": {"cost_matrix": [[0, 1, 4], [2, 0, 1], [1, 1, 0]]},
}


def fitted(kind, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {"n_starts": 1, "random_state": 0, "points": False} | KINDS[kind]
        return SoftTreeClassifier(**settings).fit(X, y)


def loss_of(tree, X, y):
    """What training lowers: the log-loss, or the expected cost of leaves with a class each."""
    if tree.tree_.distributions is None:
        weight = None
        if tree.class_weight == "balanced":
            counts = y.value_counts()
            weight = y.map(len(y) / (len(counts) * counts))
        return log_loss(y, tree.predict_proba(X), sample_weight=weight, labels=tree.classes_)
    votes = tree.tree_.leaf_proba(X.to_numpy()) @ tree.tree_.parameters.leaf_values.T
    return 1 - votes[np.arange(len(y)), np.searchsorted(tree.classes_, y)].mean()


def damaged(tree, rng):
    """A tree with edits that make it worse."""
    edited = tree.edit(date=DAY)
    questions = [q for q in outline(tree.tree_).questions() if q.split.lefts is None]
    for question in questions[:2]:
        split = question.split
        move = rng.normal() * 3 * split.gate_width
        edited = edited.set_threshold(question.number, round(split.threshold + move, 3))
        if rng.random() < 0.5 and len(split.features) > 1:
            name = tree.tree_.feature_names[split.features[-1]]
            edited = edited.set_weight(question.number, name, round(float(rng.normal()), 2) or 1)
    return edited.set_leaf(1, tree.classes_[0])


@pytest.mark.parametrize("kind", ["walk", "cost", *slow("ranks", "mixture", "weighted", "costs")])
@pytest.mark.parametrize("keep", ["structure", *slow("edited", "features")])
def test_a_refit_never_raises_the_loss(kind, keep):
    X, y = wine(0)
    new_X, new_y = wine(1)
    tree = fitted(kind, X, y)
    for seed, start in enumerate([tree, damaged(tree, np.random.default_rng(1))]):
        before = loss_of(start, new_X, new_y)
        after = start.refit(new_X, new_y, keep=keep, date=DAY)
        assert loss_of(after, new_X, new_y) <= before + 1e-9
        if seed and keep == "structure":
            assert loss_of(after, new_X, new_y) < before
        assert after.edits_[-1].verb == "refit"
        if keep == "features":
            assert set(after.selected_features_) <= set(start.selected_features_)
        else:
            assert_array_equal(after.tree_.parameters.weights != 0, start.weights_ != 0)


@pytest.mark.parametrize("kind", ["walk", "cost", *slow("ranks", "mixture")])
def test_what_was_edited_is_printed_as_before(kind):
    X, y = wine()
    tree = fitted(kind, X, y)
    edited = damaged(tree, np.random.default_rng(3))
    if kind in ("walk", "ranks"):
        edited = edited.round_weights(1, question=2)
    after = edited.refit(X, y, keep="edited")
    old, new = edited.tree_, after.tree_
    for t in old.edits.thresholds:
        if old.walk is not None:
            assert new.walk.thresholds[t] == old.walk.thresholds[t]
        lead = int(old.used(t)[0])
        if old.walk is not None:
            lead = int(np.argmax(old.walk.coefficients[t] == 1.0))
        centres = [-m.splits[1][t] / m.splits[0][t, lead] for m in (old, new)]
        assert centres[0] == pytest.approx(centres[1], rel=1e-6)
    if old.walk is not None:
        for t, j in old.edits.weights:
            assert new.walk.coefficients[t, j] == old.walk.coefficients[t, j]
        assert_array_equal(new.walk.counts.sum(), len(X))
    leaves = list(old.edits.leaves)
    assert_array_equal(new.leaf_shares[:, leaves], old.leaf_shares[:, leaves])
    assert_array_equal(new.leaf_predictions[leaves], old.leaf_predictions[leaves])
    assert new.edits.thresholds == old.edits.thresholds
    free = edited.refit(X, y, keep="structure")
    assert loss_of(free, X, y) <= loss_of(after, X, y) + 1e-9


def test_figures_before_and_after_are_those_of_scikit_learn():
    X, y = patients(200)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y)
    edited = tree.edit(date=DAY).drop_feature("job").rename({"age": "years"})
    new = X.rename(columns={"age": "years"})
    found = edited.compare(new, y)
    frame = found.to_frame()
    for column, one, rows in (("before", tree, X), ("after", edited, new)):
        proba, said = one.predict_proba(rows), one.predict(rows)
        assert frame.loc["accuracy", column] == np.mean(said == y)
        assert frame.loc["balanced accuracy", column] == balanced_accuracy_score(y, said)
        assert frame.loc["log-loss", column] == pytest.approx(log_loss(y, proba))
        assert frame.loc["ROC area", column] == pytest.approx(
            roc_auc_score(y == "well", proba[:, 1])
        )
    changed = np.flatnonzero(tree.predict(X) != edited.predict(new))
    assert_array_equal(found.changed, changed)
    assert f"{len(changed)} of 200 rows change class." in str(found)
    assert any(line.startswith("- ") and "job" in line for line in found.questions)
    assert "questions are the same" in str(tree.edit().compare(X, y))


def test_the_command_compares_two_files(tmp_path):
    X, y = patients(200)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, pd.Series(y, name="state"))
    edited = tree.edit(date=DAY).drop_feature("job")
    softsplit.save_model(tree, tmp_path / "old.json")
    softsplit.save_model(edited, tmp_path / "new.json")
    X.assign(state=y).to_csv(tmp_path / "data.csv", index=False)
    paths = [str(tmp_path / name) for name in ("old.json", "new.json", "data.csv")]
    run = CliRunner().invoke(app, ["compare", *paths])
    assert run.exit_code == 1
    changed = int(np.sum(tree.predict(X) != edited.predict(X)))
    assert f"{changed} of 200 rows change class." in run.output
    assert re.search(r"accuracy +0\.\d{4}", run.output)
    allowed = CliRunner().invoke(app, ["compare", *paths, "--allow", "0.9", "--json"])
    assert allowed.exit_code == 0
    told = json.loads(allowed.stdout)
    assert len(told["changed"]) == changed and told["figures"]["accuracy"]["after"] == np.mean(
        edited.predict(X) == y
    )
    same = CliRunner().invoke(app, ["compare", paths[0], paths[0], paths[2]])
    assert same.exit_code == 0 and "The questions are the same." in same.output
    known = X.assign(state=np.where(np.arange(200) < 50, None, y))  # rows keep their numbers
    known.to_csv(tmp_path / "data.csv", index=False)
    some = CliRunner().invoke(app, ["compare", *paths, "--json"])
    assert "50 rows of a class that the trees do not know" in some.stderr
    part = json.loads(some.stdout)
    assert part["changed"] == told["changed"] and part["figures"]["accuracy"]["after"] == np.mean(
        edited.predict(X)[50:] == y[50:]
    )
    X.to_csv(tmp_path / "data.csv", index=False)
    plain = CliRunner().invoke(app, ["compare", *paths, "-q"])
    assert plain.exit_code == 1 and "accuracy" not in plain.output
    wrong = CliRunner().invoke(app, ["compare", *paths, "--target", "nothing"])
    assert wrong.exit_code == 2


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("keep", ["structure", "features"])
def test_a_refit_keeps_monotone_effects_and_knows_its_new_table(loss, keep):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=["arrears", "income", "age"])
    risk = 1.5 * np.maximum(X["arrears"], -0.5) - X["income"] + rng.logistic(size=600)
    y = (risk > 0).map({False: "paid", True: "default"}).rename("end")
    asked = {"arrears": "-", "income": "+"}  # of the probability of "paid", the second class
    tree = SoftTreeClassifier(
        monotone=asked, loss=loss, n_starts=1, random_state=0, effort="fast"
    ).fit(X[:300], y[:300])
    # In the new rows the effects are reversed: a free refit would follow them.
    X_new, y_new = -X[300:], y[300:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = tree.refit(X_new, y_new, keep=keep)
    assert all(again.check_monotone(name).proved for name in asked)
    assert again.tree_.monotone is not None and again.tree_.held_out is None
    assert loss_of(again, X_new, y_new) <= loss_of(tree, X_new, y_new) + 1e-12
    assert again.tree_.profile.rows == 300
    assert softsplit.check_rows(again, X_new).fine
    like = tree.refit(X[300:], y[300:], keep=keep)  # rows of the same kind: effects stay in use
    assert {0, 1} <= set(like.selected_features_)
    assert all(like.check_monotone(name).proved for name in asked)
