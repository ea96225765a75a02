"""Whole problems as no sensible person would state them, and what must hold of every call.

A case holds rows in some dress (numpy, pandas, polars, lists), labels, weights and the parameters
of an estimator. Bulk numbers come from a generator whose seed is drawn; what is strange about them
is drawn by name, so that a failing case can be read. ``outcome(case)`` makes the call: it gives
sound trees, or one sentence. Feasibility is taken from the library's own figure and, apart from it,
from the paper's equations.
"""

from __future__ import annotations

import re
import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from brute_force import left_and_right_ancestors
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    export_markdown,
    export_text,
    loads_model,
    strength_path,
)
from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted.ranges import FarOutsideWarning
from softsplit.variables import ColumnsLeftOut

TINY = 5e-324


@dataclass(frozen=True)
class HostileCase:
    """One problem: what is called on which rows with which parameters."""

    call: str
    X: Any
    y: Any
    sample_weight: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)
    story: str = ""

    def __repr__(self) -> str:
        return (
            f"HostileCase({self.call}: {self.story}; {self.parameters}\nX = {self.X!r}\n"
            f"y = {self.y!r}\nsample_weight = {self.sample_weight!r})"
        )


def mostly(plain: Any, *strange: Any, share: int = 2) -> st.SearchStrategy[Any]:
    """``plain`` about ``share`` times as often as all that is strange together."""
    return st.sampled_from([plain] * (share * len(strange)) + list(strange))


COLUMNS = {
    "normal": lambda rng, X, n: rng.normal(size=n),
    "constant": lambda rng, X, n: np.full(n, 7.0),
    "zero": lambda rng, X, n: np.zeros(n),
    "signed zeros": lambda rng, X, n: rng.choice([-0.0, 0.0], n),
    "duplicate": lambda rng, X, n: X[-1] if X else np.arange(n, dtype=float),
    "collinear": lambda rng, X, n: sum((2.0 * x - 1.0 for x in X), np.zeros(n)),
    "flags": lambda rng, X, n: rng.integers(0, 2, n).astype(float),
    "codes": lambda rng, X, n: rng.integers(-3, 4, n).astype(float),
    "huge": lambda rng, X, n: rng.uniform(-1, 1, n) * 1e300,
    "whole range": lambda rng, X, n: rng.choice([-1.7e308, 0.0, 1.7e308], n),
    "small": lambda rng, X, n: rng.normal(size=n) * 1e-200,
    "subnormal": lambda rng, X, n: rng.integers(0, 3, n) * TINY,
    "outlier": lambda rng, X, n: np.where(np.arange(n) == 0, 1e300, rng.normal(size=n)),
    "large integers": lambda rng, X, n: rng.integers(0, 2**62, n).astype(float),
    "neighbours": lambda rng, X, n: 1.0 + rng.integers(0, 3, n) * np.finfo(float).eps,
    "far from zero": lambda rng, X, n: 1e15 + rng.integers(0, 5, n),
    "nan": lambda rng, X, n: np.where(np.arange(n) == n // 2, np.nan, 1.0),
    "infinity": lambda rng, X, n: np.where(np.arange(n) == n // 2, -np.inf, 1.0),
}
HARMLESS_COLUMNS = tuple(name for name in COLUMNS if name not in ("nan", "infinity"))


@st.composite
def matrices(draw, flaw=""):
    """Numbers, (n_rows, n_features), and the names of what is in them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n_rows = draw(mostly(20, 1, 2, 3, 5, 12, 40, 60, 300, 2000, share=1))
    kinds = draw(st.lists(st.sampled_from(HARMLESS_COLUMNS), min_size=1, max_size=5))
    if draw(mostly(False, True, share=20)):
        kinds = (kinds * 60)[: draw(st.sampled_from([40, 150]))]
    if flaw in COLUMNS:
        kinds.append(flaw)
    columns: list[np.ndarray] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for kind in kinds:
            made = np.asarray(COLUMNS[kind](rng, columns, n_rows), dtype=float)
            columns.append(np.nan_to_num(made, posinf=1e308) if kind == "collinear" else made)
    X = np.column_stack(columns)
    rows = draw(mostly("distinct", "equal", "twins", share=5))
    if rows == "equal":
        X[:] = X[0]
    elif rows == "twins":
        X[n_rows // 2 :] = X[: n_rows - n_rows // 2]
    return X, rng, f"{n_rows} rows ({rows}), {len(kinds)} columns: {', '.join(kinds[:6])}"


LABELS = {
    "two": lambda rng, X: rng.integers(0, 2, len(X)),
    "by the first column": lambda rng, X: (X[:, 0] > np.median(X[:, 0])).astype(int),
    "three": lambda rng, X: rng.integers(0, 3, len(X)),
    "seven": lambda rng, X: rng.integers(0, 7, len(X)),
    "one": lambda rng, X: np.zeros(len(X), dtype=int),
    "one each": lambda rng, X: np.arange(len(X)),
    "fifty": lambda rng, X: np.arange(len(X)) % 50,
    "one odd row": lambda rng, X: (np.arange(len(X)) == 0).astype(int),
}

LABEL_DRESS = {
    "integers": lambda y: y,
    "strings": lambda y: np.array([f"class {k}" for k in y]),
    "objects": lambda y: np.array([f"<b>{k}" for k in y], dtype=object),
    "floats": lambda y: y.astype(float),
    "negative": lambda y: -y.astype(np.int64) - 2**60,
    "truth values": lambda y: y.astype(bool),
    "list": lambda y: y.tolist(),
    "series": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "categories": lambda y: pd.Series(pd.Categorical(y.astype(str))),
    "polars": lambda y: pl.Series("y", y),
    "numbers and text": lambda y: np.array([k if k else "none" for k in y], dtype=object),
    "fractions": lambda y: y + 0.5 * np.arange(len(y)),
    "with nan": lambda y: np.where(np.arange(len(y)) == 0, np.nan, y),
    "masked": lambda y: np.ma.masked_array(y, np.arange(len(y)) == 0),
    "truth values as objects": lambda y: y.astype(bool).astype(object),
    "with None": lambda y: np.array([None, *y[1:]], dtype=object),
    "two columns": lambda y: np.column_stack([y, y]),
    "too short": lambda y: y[:-1],
    "none": lambda y: None,
}
SOUND_DRESS = mostly("integers", *tuple(LABEL_DRESS)[:10], share=1)


def _cast(kind):
    def cast(X):
        with np.errstate(all="ignore"):
            return X.astype(kind)

    return cast


def _frame(X):
    return pd.DataFrame(X, columns=[f"<i>column</i> {j}" for j in range(X.shape[1])])


def _integers(X):
    return np.nan_to_num(np.clip(X, -(2.0**52), 2.0**52)).astype(np.int64)


ROW_DRESS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every other": lambda X: np.repeat(X, 2, axis=0)[::2],
    "list": lambda X: X.tolist(),
    "float32": _cast(np.float32),
    "float16": _cast(np.float16),
    "int64": _integers,
    "uint8": lambda X: (_integers(X) % 251).astype(np.uint8),
    "truth values": lambda X: np.median(X) < X,
    "objects": lambda X: X.astype(object),
    "pandas": _frame,
    "pandas with numbers as names": pd.DataFrame,
    "pandas nullable": lambda X: _frame(X).convert_dtypes(),
    "polars": lambda X: pl.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])}),
    "sparse": lambda X: scipy.sparse.csr_array(X),
    "strings": lambda X: X.astype(str),
    "objects with text": lambda X: np.where(np.eye(*X.shape) > 0, "many", X.astype(object)),
    "objects with None": lambda X: np.where(np.eye(*X.shape) > 0, None, X.astype(object)),
    "nullable with gaps": lambda X: _frame(X).mask(X[0, 0] == X).convert_dtypes(),
    "complex": lambda X: X + 1j,
    "dates": lambda X: _integers(X).astype("datetime64[s]"),
    "masked": lambda X: np.ma.masked_array(X, mask=X[0, 0] == X),
    "one line": lambda X: X[0],
    "cube": lambda X: X[:, :, None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "ragged": lambda X: [[1.0, 2.0], [3.0]],
    "a number": lambda X: 3.0,
    "none": lambda X: None,
}
SOUND_ROWS = mostly("C order", *tuple(ROW_DRESS)[:14], share=1)

WEIGHTS = {
    "absent": lambda rng, n: None,
    "uneven": lambda rng, n: rng.uniform(0.1, 3, n),
    "some zero": lambda rng, n: (np.arange(n) % 2).astype(float),
    "far apart": lambda rng, n: 10.0 ** rng.integers(-100, 100, n),
    "very large": lambda rng, n: np.full(n, 1e149),
    "very small": lambda rng, n: np.full(n, 1e-149),
    "integers": lambda rng, n: rng.integers(0, 3, n),
    "one number": lambda rng, n: 2.0,
    "all zero": lambda rng, n: np.zeros(n),
    "one row only": lambda rng, n: (np.arange(n) == 0).astype(float),
    "negative": lambda rng, n: np.full(n, -1.0),
    "nan": lambda rng, n: np.where(np.arange(n) == 0, np.nan, 1.0),
    "infinite": lambda rng, n: np.where(np.arange(n) == 0, np.inf, 1.0),
    "too large": lambda rng, n: np.full(n, 1e307),
    "too small": lambda rng, n: np.full(n, TINY),
    "too few": lambda rng, n: np.ones(n - 1),
    "complex": lambda rng, n: np.full(n, 1j),
    "masked": lambda rng, n: np.ma.masked_array(np.ones(n), np.arange(n) == n // 2),
    "text": lambda rng, n: np.full(n, "a"),
}
SOUND_WEIGHTS = mostly("absent", *tuple(WEIGHTS)[:8], share=1)


def _costs(k, value):
    return np.full((k, k), value) * (1 - np.eye(k))


COSTS = {
    "absent": lambda rng, k: None,
    "uneven": lambda rng, k: rng.uniform(0.1, 5, (k, k)) * (1 - np.eye(k)),
    "paid when right": lambda rng, k: rng.uniform(0, 1, (k, k)),
    "nothing": lambda rng, k: np.zeros((k, k)),
    "huge": lambda rng, k: _costs(k, 1e300),
    "tiny": lambda rng, k: _costs(k, 1e-300),
    "subnormal": lambda rng, k: _costs(k, TINY),
    "far apart": lambda rng, k: 10.0 ** rng.integers(-150, 150, (k, k)) * (1 - np.eye(k)),
    "largest": lambda rng, k: _costs(k, 1.7e308),
    "infinite": lambda rng, k: np.full((k, k), np.inf),
    "negative": lambda rng, k: _costs(k, -1.0),
    "wrong shape": lambda rng, k: np.ones((k, k + 1)),
    "text": lambda rng, k: [["a"]],
}
SOUND_COSTS = tuple(COSTS)[1:8]

STRENGTHS = [0.0, 0.01, 0.3, 1.0, 100.0, 1e12, 1e-12]
NO_NUMBERS = ["a", None, np.nan, np.inf, -1, 1j, True, [1.0], np.zeros((2, 2)), 10**400, {}]

WRONG = [
    (name, value)
    for name in (
        "depth", "local_strength", "global_strength", "sharpness", "exponent", "offset",
        "steepness", "min_class_rate", "n_starts", "max_iter", "tol", "time_limit", "penalty",
        "loss", "ridge",
        "scale", "class_weight", "n_jobs", "random_state", "solver", "cost_matrix",
    )
    for value in NO_NUMBERS
]  # fmt: skip

WRONG_CHOICES = [
    (name, value)
    for name in (
        "depths", "scales", "steepnesses", "penalties", "scopes", "strengths", "n_strengths",
        "selection", "scoring", "cv", "min_class_rate", "class_weight", "loss", "ridges",
    )
    for value in [*NO_NUMBERS, [], [[1]], [None], ["minmax"], [([0], [9999])], [([0], [0])], 10**6]
]  # fmt: skip
"""For SoftTreeClassifierCV."""

CLASS_WEIGHTS = ["balanced", {}, {0: 0.0}, {0: 1e12}, {0: 1e-12, 1: 1e300}]

FLAWS = ("none",) * 12 + ("nan", "infinity", "rows", "labels", "weights", "costs", "a parameter")
"""What is wrong with a case; about two in three have nothing wrong that would have to be refused,
strange as they are."""


@st.composite
def tree_parameters(draw, n_classes, rng, flaw="none", call="fit"):
    """Parameters of SoftTreeClassifier, most of them in range."""
    likelihood = draw(st.booleans())
    usual = ("auto", "auto") if likelihood else (0.0, 0.1)
    penalties = ["l0", "l1", "power", "inverse_power", "log"] + 5 * likelihood * ["count"]
    known = {
        "loss": "log" if likelihood else "cost",
        "penalty": draw(st.sampled_from(penalties)),
        "local_strength": draw(mostly(usual[0], *STRENGTHS, share=1)),
        "global_strength": draw(mostly(usual[1], *STRENGTHS, share=1)),
        "depth": draw(mostly("auto", 1, 2, 3, 4, 5, 6, 7, 8, share=1)),
        "scale": draw(mostly("minmax", "quantile", "standard", "none", False, share=1)),
        "min_class_rate": draw(
            mostly("auto" if likelihood else 0.1, 0.0, 0.5, 0.9, 1.0, 1e-300, [0.1] * n_classes)
        ),
        "n_starts": draw(mostly(1, 2, 3)),
        "time_limit": draw(mostly(0.1, 1e-9, 1e-3, 0.03, 0.4, share=1)),
        "random_state": draw(st.integers(0, 3)),
    }
    if likelihood:
        known["ridge"] = draw(mostly(1.0, 0.0, 1e-12, 1e-3, 1e3, 1e12))
    else:
        gammas = mostly(512.0, 1e-6, 1e-3, 1.0, 1e6, 1e9, 1e12, Fraction(31, 2))
        known["steepness"] = draw(gammas)
    costs = draw(mostly("absent", *SOUND_COSTS))
    if flaw == "costs":
        costs = draw(st.sampled_from(list(COSTS)))
    if costs != "absent":
        known["cost_matrix"] = COSTS[costs](rng, n_classes)
    if draw(mostly(False, True, share=4)):
        known["class_weight"] = draw(st.sampled_from(CLASS_WEIGHTS))
    if draw(mostly(False, True, share=4)):
        known["sharpness"] = draw(st.sampled_from([1e-9, 1e-3, 50.0, 1e6, 1e300]))
        known["exponent"] = draw(st.sampled_from([1e-6, 1.0, 3.0, 50.0, 1e6]))
        known["offset"] = draw(st.sampled_from([1e-300, 1e-12, 1.0, 1e6, 1e300]))
    if draw(mostly(False, True, share=8)):
        known["tol"] = draw(st.sampled_from([1e-300, 1e-12, 1.0, 1e12]))
        known["max_iter"] = draw(st.sampled_from([1, 2, 10, 10**9]))
    if not likelihood and draw(mostly(False, True, share=6)):
        known["solver"] = "decomposition"
    if flaw == "a parameter":
        name, value = draw(st.sampled_from(WRONG_CHOICES if call == "choose" else WRONG))
        known[name] = value
    return known


@st.composite
def problems(draw, calls=("fit",)):
    """Rows, labels, weights and parameters, for one of ``calls``."""
    flaw = draw(st.sampled_from(FLAWS))
    X, rng, story = draw(matrices(flaw))
    classes = draw(mostly("two", *LABELS, share=1))
    dress = draw(st.sampled_from(list(LABEL_DRESS)) if flaw == "labels" else SOUND_DRESS)
    rows = draw(st.sampled_from(list(ROW_DRESS)) if flaw == "rows" else SOUND_ROWS)
    weights = draw(st.sampled_from(list(WEIGHTS)) if flaw == "weights" else SOUND_WEIGHTS)
    with np.errstate(over="ignore", invalid="ignore"):
        labels = LABELS[classes](rng, X)
    n_classes = len(np.unique(labels))
    call = draw(st.sampled_from(calls))
    return HostileCase(
        call=call,
        X=ROW_DRESS[rows](X),
        y=LABEL_DRESS[dress](labels),
        sample_weight=WEIGHTS[weights](rng, len(X)),
        parameters=draw(tree_parameters(n_classes, rng, flaw, call)),
        story=f"{story}, as {rows}; classes {classes}, as {dress}; weights {weights}",
    )


# --- what must hold -------------------------------------------------------------------------------

FEASIBLE = 1e-6
"""As in softsplit.solvers.base: a tree that violates a constraint by more is none."""

MANY_CLASSES = "The number of unique classes is greater than 50%"
"""scikit-learn's word on labels that may be no classes."""

INTERNALS = re.compile(
    r"ufunc|broadcast|operands|object at 0x|Traceback|out of bounds|NoneType|zero-size|"
    r"setting an array element|singular matrix|must be real number|unexpected|unhashable|"
    r"np\.|ndarray|cannot reshape|not subscriptable|has no attribute|<class '|"
    r"not supported between|truth value of"
)
"""What numpy, scipy and Python say to programmers."""

LONGEST = 400


def is_one_sentence(text: str) -> bool:
    """One line that speaks of what the user gave, not of how the library is made."""
    return 10 <= len(text) <= LONGEST and "\n" not in text and not INTERNALS.search(text)


def outcome(case: HostileCase) -> int:
    """Make the call and return how many trees it gave; AssertionError if it breaks a promise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trees, said = [], ""
        try:
            trees = CALLS[case.call](case)
        except (ValueError, TypeError) as error:
            said = str(error)
        for tree in trees:
            check_tree(tree, case)
    assert not said or is_one_sentence(said), f"not one clear sentence: {said!r}"
    leaked = [w for w in caught if not is_expected(w)]
    assert not leaked, f"a warning leaked: {leaked[0].message} ({leaked[0].filename})"
    return len(trees)


def is_expected(warning: warnings.WarningMessage) -> bool:
    """A limit was reached, columns are left out, values far outside, or scikit-learn's words."""
    kinds = ConvergenceWarning | DataConversionWarning | ColumnsLeftOut | FarOutsideWarning
    known = issubclass(warning.category, kinds)
    return known or str(warning.message).startswith(MANY_CLASSES)


def _fit(case: HostileCase) -> list[SoftTreeClassifier]:
    model = SoftTreeClassifier(**case.parameters)
    return [model.fit(case.X, case.y, sample_weight=case.sample_weight)]


@cache
def _fitted_before() -> SoftTreeClassifier:
    X = np.random.default_rng(0).normal(size=(40, 3))
    return SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X, X[:, 0] > 0)


def _refit(case: HostileCase) -> list[SoftTreeClassifier]:
    """A tree that has been trained on other rows: if it is refused new ones, it stays as it was."""
    model = deepcopy(_fitted_before())
    model.set_params(**case.parameters)
    try:
        return [model.fit(case.X, case.y, sample_weight=case.sample_weight)]
    except BaseException:
        before, rows = _fitted_before(), np.linspace(-2, 2, 30).reshape(10, 3)
        np.testing.assert_array_equal(model.predict_proba(rows), before.predict_proba(rows))
        np.testing.assert_array_equal(model.classes_, before.classes_)
        assert export_text(model) == export_text(before)
        raise


def _path(case: HostileCase) -> list[SoftTreeClassifier]:
    found = strength_path(
        case.X,
        case.y,
        estimator=SoftTreeClassifier(**case.parameters),
        n_points=2,
        sample_weight=case.sample_weight,
    )
    assert np.all(np.isfinite(found.to_frame().select_dtypes("number").to_numpy()))
    return [point.classifier for point in found.points]


def _choose(case: HostileCase) -> list[SoftTreeClassifier]:
    given = dict(case.parameters)
    depth, scale, penalty = given.pop("depth"), given.pop("scale"), given.pop("penalty")
    local, global_ = given.pop("local_strength"), given.pop("global_strength")
    own = {"steepnesses": [given.pop("steepness")]} if "steepness" in given else {}
    own |= {"ridges": [given.pop("ridge")]} if "ridge" in given else {}
    usual = isinstance(local, str) or isinstance(global_, str) or global_ == 0.1
    known = {
        "depths": "auto" if isinstance(depth, str) else [depth],
        "scales": [scale],
        "penalties": [penalty],
        "strengths": None if usual else [local, 0.1],
        "n_strengths": 2,
        "cv": 2,
    }
    model = SoftTreeClassifierCV(**(known | own | given))
    return [model.fit(case.X, case.y, sample_weight=case.sample_weight).best_estimator_]


CALLS = {"fit": _fit, "refit": _refit, "path": _path, "choose": _choose}


def check_tree(tree: SoftTreeClassifier, case: HostileCase) -> None:
    """Feasible, finite, true to itself, readable, and the same after a round trip."""
    for name in ("weights_", "thresholds_", "leaf_classes_", "coef_", "intercept_"):
        assert np.all(np.isfinite(getattr(tree, name))), f"{name} is not finite"
    assert np.isfinite(tree.objective_) and tree.solution_.violation <= FEASIBLE
    assert np.all(np.isfinite(tree.feature_importances_))
    assert np.all(tree.feature_importances_ >= 0) and tree.feature_importances_.sum() < 1 + 1e-9
    check_feasible(tree, case)
    chances = tree.predict_proba(case.X)
    assert np.all((chances >= 0) & (chances <= 1 + 1e-12)), "probabilities outside [0, 1]"
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(tree.leaf_proba(case.X).sum(axis=1), 1, atol=1e-9)
    said = tree.predict(case.X)
    assert np.all(np.isin(said, tree.classes_))
    assert np.all(np.isfinite(tree.predict_log_proba(case.X)))
    check_reading(tree, case, chances)


def check_feasible(tree: SoftTreeClassifier, case: HostileCase) -> None:
    """Simplex and class rates, and for costs box and coverage, from the paper's equations."""
    a, mu, c = tree.weights_, tree.thresholds_, tree.leaf_classes_
    assert np.min(c) >= -FEASIBLE and np.max(np.abs(c.sum(axis=0) - 1)) <= FEASIBLE
    if tree.loss == "cost":
        assert np.max(np.abs(a)) <= 1 and np.max(np.abs(mu)) <= 1, "outside the box"
        assert np.min(c.sum(axis=1)) >= 1 - FEASIBLE, "a class without a leaf"
    rates = class_rates(tree, case)
    wanted = tree.min_class_rate
    if isinstance(wanted, float | list):
        assert np.all(rates >= np.asarray(wanted) - 2 * FEASIBLE), f"rates {rates} for {wanted}"


def class_rates(tree: SoftTreeClassifier, case: HostileCase) -> np.ndarray:
    """Share of each class that is expected to be right, from the equations."""
    scaled = tree.scaling_.transform(checked_rows(tree, case.X))
    weight = np.broadcast_to(
        1.0 if case.sample_weight is None else np.asarray(case.sample_weight, dtype=float),
        len(scaled),
    )
    weight = weight / weight.max()
    y = np.asarray(case.y).ravel()
    left = expit(
        float(tree.tree_.steepness) * (scaled @ tree.weights_ / scaled.shape[1] - tree.thresholds_)
    )
    depth = int(np.log2(tree.leaf_classes_.shape[1]))
    reach = np.ones((2**depth, len(scaled)))
    for leaf in range(2**depth):
        lefts, rights = left_and_right_ancestors(leaf, depth)
        for t in lefts:
            reach[leaf] *= left[:, t]
        for t in rights:
            reach[leaf] *= 1 - left[:, t]
    right = tree.leaf_classes_ @ reach  # (classes, rows)
    rates = []
    for k, label in enumerate(tree.classes_):
        own = (y == label) & (weight > 0)
        rates.append(np.average(right[k, own], weights=weight[own]))
    return np.array(rates)


def check_reading(tree: SoftTreeClassifier, case: HostileCase, chances: np.ndarray) -> None:
    """The tree as its readers meet it: text, explanation, plain splits, file."""
    assert export_text(tree) and export_markdown(tree)
    raw = hasattr(case.X, "columns") or hasattr(tree, "coding_")
    row = case.X[:1] if raw else checked_rows(tree, case.X)[:1]
    explained = tree.explain(row)
    assert str(explained)
    again = loads_model(dumps_model(tree))
    np.testing.assert_array_equal(again.predict_proba(case.X), chances)
    simple = tree.simplify(tol=1e-9)
    np.testing.assert_allclose(simple.predict_proba(case.X), chances, atol=1e-8)
    assert len(tree.to_hard_tree().predict(case.X)) == len(chances)
