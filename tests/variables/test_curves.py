"""Numbers that bend: knots, hinges, and trees on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slow_cases import examples
from softsplit import SoftTreeClassifier, export_text
from softsplit.variables import Coding, Variable
from softsplit.variables.curves import hinges, knot_text, learn_knots, slopes


def knots_of(values, n=3, weight=None):
    values = np.asarray(values, dtype=float)
    return learn_knots(values, np.ones(len(values)) if weight is None else weight, n)


def curved(n=400, seed=0):
    """Two classes by how far the first column is from its middle; the second one is noise."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(5, 2, n), rng.normal(size=n)])
    return X, np.abs(X[:, 0] - 5) + 0.3 * rng.normal(size=n) > 1.3


FAST = {"random_state": 0, "n_starts": 1, "depth": 1, "points": False}


def test_knots_are_rounded_quantiles():
    values = np.random.default_rng(0).normal(127.3, 30, 1000)
    assert knots_of(values) == (107.0, 125.0, 146.0)  # of 106.59, 125.06 and 145.75
    assert knots_of(values / 1e6, 1) == (0.000125,)


@pytest.mark.parametrize(
    ("values", "knots"),
    [
        (np.zeros(50), ()),
        (np.arange(50) % 2, ()),
        (np.arange(50) % 5, ()),
        (np.arange(50) % 7, (3.0,)),
        (np.r_[np.zeros(60), np.arange(1, 41)], (20.0,)),  # of those that are not "none"
        (np.r_[np.zeros(96), np.arange(1, 5)], ()),
    ],
)
def test_a_column_of_few_values_has_no_knots(values, knots):
    assert knots_of(values, 1) == knots


@examples(60)
@given(
    arrays(float, st.integers(1, 60), elements=st.floats(-1e9, 1e9)),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
)
def test_knots_lie_inside_and_weights_count_as_rows(values, n, seed):
    knots = knots_of(values, n)
    assert all(values.min() < knot < values.max() for knot in knots)
    assert list(knots) == sorted(set(knots)) and len(knots) <= n
    assert all(float(knot_text(knot)) == knot for knot in knots)
    counts = np.random.default_rng(seed).integers(0, 3, len(values))
    if counts.any():
        assert knots_of(values, n, counts.astype(float)) == knots_of(np.repeat(values, counts), n)


@examples(60)
@given(
    arrays(float, st.tuples(st.integers(6, 30), st.just(2)), elements=st.floats(-100, 100)),
    st.lists(st.floats(-50, 50), min_size=1, max_size=3, unique=True).map(sorted),
)
def test_hinges_are_what_their_names_say(X, knots):
    variables = (
        Variable("a", "number", knots=tuple(knots)),
        Variable("b", "number", has_missing=True),
    )
    coding = Coding(("a", "b"), variables, (0, 1), named=False)
    table = X.copy()
    table[::2, 1] = np.nan
    coded = coding.code(table)
    known = {"a": X[:, 0], "max": np.maximum}
    for name, column in zip(coding.column_names[:-2], coded.X.T, strict=False):
        np.testing.assert_array_equal(column, eval(name, known))
    assert coding.columns_of(0).tolist() == list(range(1 + len(knots)))
    assert np.flatnonzero(coding.hinges).tolist() == list(range(1, 1 + len(knots)))
    np.testing.assert_array_equal(coded.X[:, -1], np.isnan(table[:, 1]))
    plain = coded.coded_as(None)
    assert plain.X.shape[1] == 3 and not plain.coding.bends
    np.testing.assert_array_equal(plain.coded_as(coding).X, coded.X)


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), st.floats(-10, 10))
def test_slopes_are_those_of_the_curve(coefficients, x):
    knots, step = (-1.0, 0.5, 2.0), 1e-3
    near = np.array([x, x + step])
    if np.searchsorted(knots, near[0]) == np.searchsorted(knots, near[1]):
        low, high = np.hstack([near[:, None], hinges(near, knots)]) @ np.array(coefficients)
        rise = slopes(np.array(coefficients))[np.searchsorted(knots, x)]
        assert abs((high - low) / step - rise) < 1e-6


@pytest.mark.parametrize("kind", ["array", "single", "frame", "integers"])
def test_a_matrix_and_its_coded_rows_have_the_same_answers(kind):
    X, y = curved()
    X = np.round(10 * X) if kind == "integers" else X
    given = {"array": X, "single": X.astype(np.float32), "integers": X.astype(int)}
    given["frame"] = pd.DataFrame(X, columns=["a", "b"])
    tree = SoftTreeClassifier(**FAST).fit(given[kind], y)
    raw = np.asarray(given[kind], dtype=float)
    coded = np.column_stack(
        [np.column_stack([raw[:, j], hinges(raw[:, j], v.knots)])
         for j, v in enumerate(tree.coding_.variables)]
    )  # fmt: skip
    assert tree.coding_.bends and tree.n_features_in_ == 2
    np.testing.assert_array_equal(tree.tree_.predict_proba(coded), tree.predict_proba(given[kind]))
    np.testing.assert_array_equal(
        tree.predict_proba(given[kind]), tree.predict_proba(tree.coding_.code(given[kind]))
    )


def test_a_bend_is_found_and_counts_as_one_feature():
    X, y = curved()
    straight = SoftTreeClassifier(curves=False, **FAST).fit(X, y)
    bent = SoftTreeClassifier(**FAST).fit(X, y)
    assert bent.score(X, y) > 0.9 > straight.score(X, y) + 0.15
    assert bent.selected_features_.tolist() == [0] and len(bent.feature_importances_) == 2
    assert bent.feature_importances_[0] == pytest.approx(1.0)
    assert "max(x0 - 5, 0)" in export_text(bent)
    named = export_text(bent, feature_names=["dose", "noise"])
    assert "dose" in named and "(x0" not in named


def test_missing_values_bend_too():
    X, y = curved()
    table = pd.DataFrame(X, columns=["dose", "noise"])
    table.loc[::7, "dose"] = np.nan
    tree = SoftTreeClassifier(**FAST).fit(table, y)
    names = tree.coding_.column_names
    assert names[0] == "dose" and names[-1] != "dose is unknown" and "dose is unknown" in names
    assert tree.score(table, y) > 0.8
    middle = tree.coding_.variables[0].middle
    row = tree.coding_.code(table).X[0]
    np.testing.assert_array_equal(row[1:2], hinges(np.array([middle]), (5.0,))[0])
    # a matrix that had none in training counts them as the median
    plain = SoftTreeClassifier(**FAST).fit(X, y)
    gap, at_middle = X[:3].copy(), X[:3].copy()
    gap[0, 0], at_middle[0, 0] = np.nan, np.median(X[:, 0])
    np.testing.assert_array_equal(plain.predict_proba(gap), plain.predict_proba(at_middle))
