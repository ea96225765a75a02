"""Readings of trees that predict numbers: one row, Shapley values, partial dependence."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.inspection import partial_dependence
from test_regressor import charges, chosen, fitted
from typer.testing import CliRunner

from export_cases import priced
from softsplit import check_rows, dumps_model, loads_model, save_model
from softsplit.cli import app
from softsplit.persistence.files import loads_tree


@pytest.mark.parametrize("name", ["price", "price, mixture", "rate", "rate, mixture"])
def test_terms_of_a_row_add_up_to_its_prediction(name):
    tree, X = priced(name)
    functions, family = tree.tree_.numbers.functions, tree.tree_.numbers.family
    for i in (0, 1, 4, 9, 15, 30):
        reading = tree.explain(X.iloc[[i]])
        mixed = 0.0
        for leaf in reading.leaves:
            amounts = [leaf.constant, *(term.amount for term in leaf.terms)]
            total = math.prod(amounts) if "rate" in name else sum(amounts)
            assert leaf.total == pytest.approx(total, rel=1e-12)
            ends = family.prediction(np.array([functions.low.min(), functions.high.max()]))
            assert ends[0] <= leaf.prediction <= ends[1]
            mixed += leaf.probability * leaf.prediction
        assert mixed == pytest.approx(tree.predict(X.iloc[[i]])[0], rel=1e-9) == reading.label
        beyond = [leaf.total != pytest.approx(leaf.prediction) for leaf in reading.leaves]
        assert ("cut where" in str(reading)) == any(beyond)
    assert reading.interval is None and "90 %" not in str(reading)


def test_a_row_is_explained_in_words_with_its_interval():
    tree, X = chosen(), charges()[0]
    text = str(tree.explain(X.iloc[3]))
    assert text.startswith("charges 7,930   (90 % within 6,147 to 9,713)\n")
    assert "question 1: smoker is yes\n    false, probability > 99.9 %" in text
    assert text.endswith("    sum                   7,930")
    bounds = tree.predict(X.iloc[[3]], interval=0.9)[1][0]
    assert tree.explain(X.iloc[3]).interval == tuple(bounds)
    assert str(loads_tree(dumps_model(tree)).explain(X.iloc[3])) == text
    with pytest.raises(ValueError, match="limits of changes are for trees that predict classes"):
        tree.explain(X.iloc[3], fixed=["age"])


def test_the_command_explains_a_number(tmp_path):
    X, _ = charges()
    save_model(chosen(), tmp_path / "tree.json")
    X[:5].to_csv(tmp_path / "new.csv", index=False)
    asked = ["explain", str(tmp_path / "tree.json"), str(tmp_path / "new.csv"), "--row", "4"]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    reading = json.loads(done.stdout)[0]
    assert reading["label"] == 7930.0 and reading["leaves"][0]["terms"][0]["amount"] == 7500.0
    assert "250 age    age = 30   7,500" in CliRunner().invoke(app, asked).stdout


@pytest.mark.parametrize("decision", ["walk", "mixture"])
def test_shapley_values_add_up_and_partial_dependence_is_the_mean(decision):
    tree, X = fitted(decision=decision), charges()[0]
    values, base = tree.shapley_values(X[:6], X[:40])
    assert values.shape == (6, X.shape[1], 1)
    assert base == pytest.approx([tree.predict(X[:40]).mean()])
    np.testing.assert_allclose(values.sum(axis=1)[:, 0] + base, tree.predict(X[:6]), rtol=1e-9)
    assert np.all(values[:, X.columns.get_loc("region")] == 0)  # not used
    own = tree.partial_dependence(X[:50], ["age"], grid_resolution=4)
    given = {"age": own.grid_values[0]}
    theirs = partial_dependence(tree, X[:50], ["age"], custom_values=given, method="brute")
    np.testing.assert_allclose(own.average, theirs["average"], rtol=1e-9)


def test_two_trees_are_compared_by_their_numbers(tmp_path):
    X, y = charges()
    median = fitted("absolute")
    save_model(fitted(), tmp_path / "old.json")
    save_model(median, tmp_path / "new.json")
    X.assign(charges=y).to_csv(tmp_path / "rows.csv", index=False)
    asked = ["compare", *(str(tmp_path / name) for name in ("old.json", "new.json", "rows.csv"))]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 1, done.output
    figures = json.loads(done.stdout)["figures"]
    assert figures["R2"]["before"] == pytest.approx(fitted().score(X, y))
    error = np.mean(np.abs(y - median.predict(X)))
    assert figures["mean absolute error"]["after"] == pytest.approx(error)
    text = CliRunner().invoke(app, asked).stdout
    assert "change prediction.\n    row 1: " in text and "+ " in text
    same = CliRunner().invoke(app, [*asked[:2], asked[1], asked[3]])
    assert same.exit_code == 0 and "0 of 500 rows change prediction." in same.stdout


def test_new_rows_are_compared_with_those_of_training(tmp_path):
    tree, (X, y) = loads_model(dumps_model(chosen())), charges(400, seed=5)
    quiet = check_rows(tree, X, y)
    assert quiet.fine and quiet.labelled == 400
    away = y - tree.predict(X)
    known = tree.tree_.numbers
    before = np.sqrt(np.average(known.errors**2, weights=tree.tree_.walk.counts[0]))
    assert quiet.error == pytest.approx((np.sqrt(np.mean(away**2)), before))
    moved = check_rows(tree, X.assign(age=X["age"] + 8), y + 3000)
    assert {check.name for check in moved.moved} == {"age", "charges", "answers"}
    assert "charges  p < 0.0001  mean 18,960, was 16,090" in str(moved)
    assert moved.error_text in str(moved) and "Typical error on 400 rows" in moved.to_html()
    save_model(tree, tmp_path / "tree.json")
    X.assign(charges=y + 3000).to_csv(tmp_path / "new.csv", index=False)
    asked = ["check", str(tmp_path / "tree.json"), str(tmp_path / "new.csv")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1 and "moved: answers, charges (400 rows" in done.stdout
    with pytest.raises(ValueError, match="y must hold one number for each of the 400 rows of X"):
        check_rows(tree, X, y[:3])


def test_a_false_alarm_is_rare():
    tree = chosen()
    drawn = (charges(300, seed=seed) for seed in range(10, 30))
    assert sum(not check_rows(tree, X, y).fine for X, y in drawn) <= 3
