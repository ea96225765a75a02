"""The same question gets the same answer: to the bit wherever nothing but the manner differs.

Number of jobs, threads, processes, copies, kinds of tables and the order in memory are manners.
Permuted rows, features and classes name the same tree differently: its objective stays the same to
1e-9. Single precision rounds the rows; ``single_precision_bound`` says what that may change.
"""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris

from helpers import SCOPES, SURROGATES, random_case
from places import TESTS
from slow_cases import examples
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    loads_model,
    strength_path,
)
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import TreeParameters

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
    for loss, scale in (("log", "standard"), ("log", "quantile"), ("cost", "minmax")):
        model = tree(loss=loss, scale=scale, n_starts=1)
        assert fingerprint(clone(model).fit(rows, Y), rows) == fitted_fingerprint(model)


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


# --- single precision --------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", SETTINGS)
def test_single_precision_rows_are_answered_within_the_bound(name):
    fitted = tree(name).fit(X, Y)
    change = np.abs(fitted.predict_proba(X.astype(np.float32)) - fitted.predict_proba(X))
    bound = single_precision_bound(fitted, X)
    assert np.all(change.max(axis=1) <= bound)
    # Between two near neighbours ranks rise fast, so that rounding moves them further.
    assert bound.max() < (1e-3 if fitted.scaling_.linear else 2e-2), "the bound says something"


@pytest.mark.parametrize("name", SETTINGS)
def test_training_on_single_precision_is_training_on_its_numbers(name):
    single = X.astype(np.float32)
    narrow, wide = tree(name).fit(single, Y), tree(name).fit(single.astype(float), Y)
    assert fingerprint(narrow, single) == fingerprint(wide, single.astype(float))


# --- other names for the same tree ---------------------------------------------------------------


@st.composite
def named_cases(draw):
    surrogate, scope = draw(st.sampled_from(SURROGATES)), draw(st.sampled_from(sorted(SCOPES)))
    return random_case(
        draw(st.integers(0, 10**6)),
        draw(st.integers(1, 4)),
        steepness=draw(st.sampled_from([1e-3, 5.0, 512.0, 1e6])),
        penalties=PenaltyPair.of(surrogate, *SCOPES[scope]),
        rates=draw(st.sampled_from([0.0, 0.3])),
        n_rows=draw(st.integers(5, 60)),
    )


def renamed(case, rows, features, classes):
    """The problem and the tree with other orders of rows and features and other class numbers.

    ``classes[k]`` is the new number of class k.
    """
    old, tree, problem = case.rows, case.tree, case.problem
    back = np.argsort(classes)
    samples = Samples.from_arrays(
        old.X[rows][:, features], classes[old.y[rows]], len(classes), old.sample_weight[rows]
    )
    other = TrainingProblem(
        CompiledRows(samples),
        problem.topology,
        ExpectedCost(problem.loss.costs[np.ix_(back, back)]),
        problem.penalties,
        problem.minimum_rates[back],
        problem.steepness,
    )
    same = TreeParameters(tree.weights[features], tree.thresholds, tree.leaf_values[back])
    return other, same


@given(case=named_cases(), seed=st.integers(0, 10**6), which=st.sampled_from("rfca"))
@examples(120)
def test_the_objective_does_not_depend_on_names_and_orders(case, seed, which):
    rng = np.random.default_rng(seed)
    n_rows, n_features = case.rows.X.shape
    rows, features, classes = map(np.arange, (n_rows, n_features, case.problem.n_groups))
    if which in "ra":
        rows = rng.permutation(n_rows)
    if which in "fa":
        features = rng.permutation(n_features)
    if which in "ca":
        classes = rng.permutation(len(classes))
    other, same = renamed(case, rows, features, classes)
    problem, tree = case.problem, case.tree
    assert other.objective(same) == pytest.approx(problem.objective(tree), rel=1e-9)
    if which == "r":
        assert other.objective(same) == problem.objective(tree), "rows change no bit"
    assert_allclose(other.rates(same)[classes], problem.rates(tree), rtol=1e-9)
    assert other.violation(same).largest == pytest.approx(problem.violation(tree).largest, rel=1e-9)
    found, expected = other.gradient(same), problem.gradient(tree)
    size = np.max(np.abs(expected.weights)) + 1e-300
    assert_allclose(found.weights, expected.weights[features], rtol=1e-9, atol=1e-9 * size)
    assert_allclose(found.leaf_values[classes], expected.leaf_values, rtol=1e-9)


def mirrored(tree, branch):
    """The tree with the two sides of a branch exchanged and its split turned round."""
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    leaf_values, topology = tree.leaf_values.copy(), tree.topology
    weights[:, branch] *= -1
    thresholds[branch] *= -1
    left, right = [2 * branch + 1], [2 * branch + 2]
    while left[0] < topology.n_branches:
        for here, there in zip(left, right, strict=True):
            weights[:, [here, there]] = weights[:, [there, here]]
            thresholds[[here, there]] = thresholds[[there, here]]
        left = [child for t in left for child in (2 * t + 1, 2 * t + 2)]
        right = [child for t in right for child in (2 * t + 1, 2 * t + 2)]
    here, there = (np.array(side) - topology.n_branches for side in (left, right))
    leaf_values[:, here], leaf_values[:, there] = (
        tree.leaf_values[:, there],
        tree.leaf_values[:, here],
    )
    return TreeParameters(weights, thresholds, leaf_values)


@given(case=named_cases(), share=st.floats(0, 1, exclude_max=True))
def test_the_objective_does_not_depend_on_which_side_is_left(case, share):
    turned = mirrored(case.tree, int(share * case.tree.topology.n_branches))
    assert case.problem.objective(turned) == pytest.approx(
        case.problem.objective(case.tree), rel=1e-9
    )
