"""The words for the two answers of a split, where classes have such names themselves."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence

from softsplit import SoftTreeClassifier, report
from softsplit.reading.outline import answer_words, side_classes
from softsplit.reading.partial_dependence import (
    SetColumn,
    classes_on_grid,
    mean_probabilities,
    questions_on_grid,
)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["ill", "well"], ("yes", "no")),
        (["Yes", "maybe"], ("true", "false")),
        ([True, False], ("yes", "no")),
        (["no", "true"], ("holds", "fails")),
    ],
)
def test_no_answer_is_called_like_a_class(labels, words):
    assert answer_words(labels) == words


def test_a_page_about_yes_and_no_does_not_answer_with_them(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0, "yes", "no")
    tree = SoftTreeClassifier(depth=1, random_state=0, points=False).fit(X, y)
    left, right = side_classes(tree.tree_, 0)
    shares = tree.tree_.leaf_shares
    assert shares[left, 0] > shares[left, 1] and shares[right, 1] > shares[right, 0]
    report(tree, X, y, path=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "true, towards" in page and "sure: true" in page
    assert "pulls to yes" not in page and "sure: yes" not in page


def test_partial_dependence_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "dose": rng.normal(size=90),
            "town": rng.choice(["Bern", "Lyon", "Oslo"], 90),
            "age": rng.integers(20, 80, 90).astype(float),
        }
    )
    y = np.where(
        frame["dose"] + (frame["town"] == "Oslo") + 0.02 * frame["age"] > 1.2, "ill", "well"
    )
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(frame, y)
    for columns in (["dose"], ["town"], ["dose", "town"], ["dose", "age"]):
        wanted = partial_dependence(
            tree, frame, columns, grid_resolution=7, categorical_features=["town"], kind="average"
        )
        found = tree.partial_dependence(frame, columns, grid_resolution=7)
        for one, other in zip(found.grid_values, wanted.grid_values, strict=True):
            assert list(one) == (list(other) if one.dtype == object else pytest.approx(list(other)))
        np.testing.assert_allclose(found.average[1], wanted.average[0], rtol=1e-9)
    with pytest.raises(ValueError, match="which is not a column of X; did you mean 'dose'"):
        tree.partial_dependence(frame, "dos")


@pytest.mark.parametrize("scale", ["standard", "quantile"])
def test_a_grid_is_answered_as_its_rows_are_one_by_one(scale):
    """Whole numbers, so that sums of questions are equal to their thresholds now and then."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(150, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] > 5) + (X[:, 2] * (X[:, 0] > 2) > 3)
    curves = "auto" if scale == "standard" else False
    tree = SoftTreeClassifier(depth=3, n_starts=1, random_state=0, scale=scale, curves=curves)
    model = tree.fit(X, y).tree_
    rows = X if model.coding is None else model.coding.code_matrix(X).X
    places = [np.array([0]), np.array([2])]
    if model.coding is not None:
        places = [model.coding.columns_of(j) for j in (0, 2)]
    whole = np.arange(6.0)[:, None]
    values = [rows[[np.flatnonzero(X[:, j] == v)[0] for v in range(6)]] for j in (0, 2)]
    columns = [SetColumn(p, v[:, p]) for p, v in zip(places, values, strict=True)]
    found = mean_probabilities(model, rows, columns)
    walk = model.walk
    assert walk is not None and np.count_nonzero(np.any(walk.coefficients, axis=1)) > 1
    questions = questions_on_grid(walk, rows, columns)
    assert (questions is None) == bool(np.any(walk.ranked))
    for u in range(len(whole)):
        for v in range(len(whole)):
            moved = rows.copy()
            moved[:, places[0]], moved[:, places[1]] = (
                values[0][u, places[0]],
                values[1][v, places[1]],
            )
            wanted = model.predict_proba(moved).mean(axis=0)
            np.testing.assert_allclose(found[:, u, v], wanted, rtol=1e-12)
            if questions is not None:
                classes = classes_on_grid(walk, questions, [(u, v)], len(rows))[0]
                assert np.array_equal(classes, model.predict_index(moved))


@pytest.mark.parametrize("scale", ["standard", "quantile", "minmax"])
def test_a_single_row_has_the_bits_that_it_has_among_others(scale):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4)).round(1)
    y = (X[:, 0] + X[:, 1] > 0) + (X[:, 2] > 0.5)
    curves = False if scale == "quantile" else "auto"
    tree = SoftTreeClassifier(depth=3, n_starts=1, random_state=0, scale=scale, curves=curves)
    tree.fit(X, y)
    rows = np.vstack([X, 1e3 * X[:5], 1e300 * X[:5], np.full((1, 4), np.finfo(float).max)])
    with np.errstate(over="ignore"):
        rows = rows if scale != "quantile" else rows[:120]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (np.float64, np.float32):
            some = rows[:125].astype(kind) if kind is np.float32 else rows
            every, leaves = tree.predict_proba(some), tree.apply(some)
            for i in range(len(some)):
                assert np.array_equal(tree.predict_proba(some[i : i + 1])[0], every[i])
                assert tree.apply(some[i : i + 1])[0] == leaves[i]
    walk = tree.tree_.walk
    assert pickle.loads(pickle.dumps(walk)).__dict__.keys() == {f.name for f in fields(walk)}
