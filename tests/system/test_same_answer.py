"""The same question gets the same answer: to the bit wherever nothing but the manner differs.

Number of jobs, threads, processes, copies, kinds of tables and the order in memory are manners.
That names and orders of features and classes do not matter follows from the second implementation
(tests/contracts/test_independent_truth.py). Single precision rounds the rows;
``single_precision_bound`` says what that may change.
"""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris

from places import TESTS
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    loads_model,
    strength_path,
)

X, Y = load_iris(return_X_y=True)
X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)  # numbers that floats32 cannot hold

SETTINGS = {
    "defaults": {},
    "by likelihood, ranks": {"scale": "quantile", "penalty": "l0", "global_strength": 0.5},
    "one penalty": {"loss": "cost", "global_strength": 0.5},
    "two penalties, deep": {
        "loss": "cost",
        "local_strength": 0.05,
        "global_strength": 0.1,
        "depth": 3,
    },
    "ranks, costs and rates": {
        "loss": "cost",
        "scale": "quantile",
        "penalty": "log",
        "local_strength": 0.01,
        "class_weight": "balanced",
        "min_class_rate": 0.6,
    },
    "decomposition": {"loss": "cost", "solver": "decomposition", "global_strength": 0.2},
}


def tree(name="defaults", **others):
    known = {"n_starts": 2, "random_state": 3} | SETTINGS[name] | others
    return SoftTreeClassifier(**known)


def fingerprint(fitted, rows=X):
    """A digest of every bit that a fit leaves behind and of what the tree says."""
    digest = hashlib.sha256()
    for name in ("weights_", "thresholds_", "leaf_classes_", "coef_", "intercept_"):
        digest.update(np.ascontiguousarray(getattr(fitted, name)).tobytes())
    for solution in [fitted.solution_, *fitted.starts_]:
        digest.update(np.array([solution.objective, solution.n_iter]).tobytes())
    digest.update(fitted.feature_importances_.tobytes())
    digest.update(np.ascontiguousarray(fitted.predict_proba(rows)).tobytes())
    return digest.hexdigest()


def fitted_fingerprint(model):
    return fingerprint(model.fit(X, Y))


@pytest.fixture(scope="module", params=SETTINGS)
def known(request):
    """The name of some settings and the digest of their tree."""
    return request.param, fitted_fingerprint(tree(request.param))


def test_jobs_and_threads_change_no_bit(known):
    """Starts side by side, and whole fits, also where the caller has chosen how."""
    name, expected = known
    assert fitted_fingerprint(tree(name, n_jobs=2)) == expected
    side_by_side = Parallel(n_jobs=2, backend="threading")
    found = side_by_side(delayed(fitted_fingerprint)(tree(name)) for _ in range(3))
    assert found == [expected] * 3
    with parallel_config(backend="threading", n_jobs=2):
        assert fitted_fingerprint(tree(name, n_jobs=None)) == expected


@pytest.mark.slow
def test_processes_change_no_bit():
    """Each of them fits by every setting."""
    expected = [fitted_fingerprint(tree(name)) for name in SETTINGS]
    side_by_side = Parallel(n_jobs=2, backend="loky")
    assert side_by_side(delayed(fitted_fingerprint)(tree(name)) for name in SETTINGS) == expected
    with parallel_config(backend="loky", n_jobs=2):
        assert [fitted_fingerprint(tree(name, n_jobs=2)) for name in SETTINGS] == expected


@pytest.mark.slow
def test_a_fresh_process_finds_the_same_bits():
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_same_answer import fitted_fingerprint, tree\n"
        "print(fitted_fingerprint(tree()))"
    )
    folders = [str(Path(__file__).parent), str(TESTS)]
    found = subprocess.run(
        [sys.executable, "-c", code, *folders], capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == [fitted_fingerprint(tree())]


def test_copies_say_the_same_and_train_the_same(known):
    name, expected = known
    original = tree(name).fit(X, Y)
    reloaded = pickle.loads(pickle.dumps(original))
    assert fingerprint(reloaded) == fingerprint(original) == expected
    assert fitted_fingerprint(reloaded) == expected, "a second fit of the reloaded estimator"
    assert fitted_fingerprint(pickle.loads(pickle.dumps(tree(name)))) == expected
    assert fitted_fingerprint(clone(original)) == expected
    if name != "decomposition":  # model files hold trees of solvers that have a name and no state
        from_file = loads_model(dumps_model(original))
        np.testing.assert_array_equal(from_file.predict_proba(X), original.predict_proba(X))
        np.testing.assert_array_equal(from_file.coef_, original.coef_)


NAMES = [f"c{j}" for j in range(X.shape[1])]
DRESSES = {
    "Fortran order": np.asfortranarray(X),
    "reversed memory": X[::-1].copy()[::-1],
    "every second row": np.repeat(X, 2, axis=0)[::2],
    "read only": np.frombuffer(X.tobytes()).reshape(X.shape),
    "lists": X.tolist(),
    "objects": X.astype(object),
    "longer floats": X.astype(np.longdouble),
    "other byte order": X.astype(">f8"),
    "pandas": pd.DataFrame(X, columns=NAMES),
    "pandas, mixed blocks": pd.concat(
        [pd.Series(X[:, j], name=NAMES[j]) for j in range(4)], axis=1
    ),
    "pandas nullable": pd.DataFrame(X, columns=NAMES).astype("Float64"),
    "polars": pl.DataFrame(X, schema=NAMES),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_kind_of_table_changes_no_bit(dress):
    rows = DRESSES[dress]
    for kind in (("log", "standard"), ("log", "quantile"), ("cost", "minmax")):
        assert fingerprint(_of_kind(*kind).fit(rows, Y), rows) == _bits_of_array(*kind)


def _of_kind(loss, scale):
    return tree(loss=loss, scale=scale, n_starts=1)


@cache
def _bits_of_array(loss, scale):
    return fitted_fingerprint(_of_kind(loss, scale))


LABELS = {
    "list": Y.tolist(),
    "small integers": Y.astype(np.int8),
    "floats": Y.astype(float),
    "text": np.array(["a", "b", "c"])[Y],
    "series": pd.Series(Y, index=np.arange(len(Y))[::-1]),
    "polars": pl.Series("y", Y),
}


@pytest.mark.parametrize("dress", LABELS)
def test_the_kind_of_labels_changes_no_bit(dress):
    assert fingerprint(tree().fit(X, LABELS[dress])) == fitted_fingerprint(tree())


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_a_choice_and_a_path_do_not_depend_on_jobs(loss):
    def chosen(jobs):
        model = SoftTreeClassifierCV(
            loss=loss, cv=3, n_strengths=3, random_state=0, n_jobs=jobs
        ).fit(X, Y)
        return fingerprint(model.best_estimator_), model.best_params_, model.best_score_

    def walked(jobs):
        path = strength_path(X, Y, estimator=tree(loss=loss, n_jobs=jobs), n_points=3)
        return [fingerprint(point.classifier) for point in path.points]

    assert chosen(2) == chosen(1)
    assert walked(2) == walked(1)


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_rows_in_any_order_and_copies_as_weights_change_no_bit(loss):
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(Y))
    copies = rng.permutation(np.repeat(np.arange(len(Y)), weight))
    model = tree(loss=loss)
    weighted = fingerprint(clone(model).fit(X, Y, sample_weight=weight))
    assert fingerprint(clone(model).fit(X[copies], Y[copies])) == weighted


def single_precision_bound(fitted, rows):
    """What rounding the rows to single precision may change of any class probability.

    A gate moves by at most steepness / 4 times the change of its score, which is the mean change
    of the scaled features, each times its weight; a row meets one gate on each level.
    """
    exact, rounded = rows, rows.astype(np.float32).astype(np.float64)
    if hasattr(fitted, "coding_"):  # of effects that bend
        exact, rounded = fitted.coding_.code(exact).X, fitted.coding_.code(rounded).X
    change = np.abs(fitted.scaling_.transform(exact) - fitted.scaling_.transform(rounded))
    by_branch = change @ np.abs(fitted.weights_) / exact.shape[1]
    depth = np.log2(fitted.leaf_classes_.shape[1])
    return 2 * depth * fitted.tree_.steepness / 4 * by_branch.max(axis=1) + 1e-12


@pytest.mark.parametrize("name", ["defaults", "ranks, costs and rates"])
def test_single_precision_rows_are_answered_within_the_bound(name):
    fitted = tree(name).fit(X, Y)
    change = np.abs(fitted.predict_proba(X.astype(np.float32)) - fitted.predict_proba(X))
    bound = single_precision_bound(fitted, X)
    assert np.all(change.max(axis=1) <= bound)
    # Between two near neighbours ranks rise fast, so that rounding moves them further.
    assert bound.max() < (1e-3 if fitted.scaling_.linear else 2e-2), "the bound says something"


@pytest.mark.parametrize("name", ["defaults", "one penalty"])
def test_training_on_single_precision_is_training_on_its_numbers(name):
    single = X.astype(np.float32)
    narrow, wide = tree(name).fit(single, Y), tree(name).fit(single.astype(float), Y)
    assert fingerprint(narrow, single) == fingerprint(wide, single.astype(float))
