"""Trees within limits of their size: the limits hold, and the tree is the best within them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine

from clocks import Clock
from likelihood_cases import random_problem
from slow_cases import examples, slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text
from softsplit.estimators.base import CutShortWarning
from softsplit.estimators.path import strength_path
from softsplit.problem.penalties import Groups, PenaltyPair, counting
from softsplit.problem.size_limits import SizeLimits, tree_size
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.deletion_costs import removal_cost, routed
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.splicing import cut
from softsplit.solvers.elimination.support_tree import SupportTree

NO_STRENGTH = {"local_strength": 0.0, "global_strength": 0.0}


def correlated(seed, n_rows=120, n_features=7):
    """Rows of columns that stand for each other, two of which make the classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features))
    X += rng.normal(size=X.shape)
    scores = X[:, [1, 4]] @ np.array([1.0, -1.0])
    return X, (scores + np.std(scores) * rng.normal(size=n_rows) > 0).astype(int)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", [0, 1, *slow(2, 3)])
def test_the_tree_is_the_best_of_all_subsets(seed, depth):
    X, y = correlated(seed)
    given = {"depth": depth, "curves": False, "random_state": 0, "n_starts": 3, **NO_STRENGTH}
    limited = SoftTreeClassifier(max_features=2, **given).fit(X, y)
    lowest = min(
        SoftTreeClassifier(**given).fit(X[:, list(pair)], y).objective_
        for pair in combinations(range(X.shape[1]), 2)
    )
    assert len(limited.selected_features_) == 2
    assert limited.objective_ <= lowest * (1 + 1e-6)


def sizes_of(tree, groups=None):
    """Features, most terms and questions, by loops over the coefficients."""
    coding, groups = tree.tree_.coding, groups or list(range(tree.n_features_in_))
    homes = range(len(groups)) if coding is None else [coding.places[v] for v in coding.homes]
    terms = [
        {groups[homes[j]] for j, weight in enumerate(branch) if weight}
        for branch in tree.weights_.T
    ]
    return len(set().union(*terms)), max(map(len, terms)), sum(map(bool, terms))


limits = st.tuples(*[st.one_of(st.none(), st.integers(1, 4)) for _ in range(3)])


@examples(25)
@given(limits, st.integers(0, 10**6), st.integers(2, 4), st.booleans(), st.sampled_from([1, 2, 3]))
def test_limits_always_hold(given, seed, n_classes, grouped, depth):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 6)), np.arange(60) % n_classes
    X[:, 0] += y
    X[:, 1] -= y == 1
    groups = [0, 0, 1, 2, 3, 3] if grouped else None
    named = dict(zip(("max_features", "max_terms", "max_questions"), given, strict=True))
    tree = SoftTreeClassifier(
        depth=depth, random_state=seed, n_starts=1, groups=[[0, 1], [4, 5]] if grouped else None,
        **named, **NO_STRENGTH,
    ).fit(X, y)  # fmt: skip
    for number, limit in zip(sizes_of(tree, groups), given, strict=True):
        assert limit is None or number <= limit


@examples(25)
@given(limits, st.integers(0, 10**6))
def test_the_size_of_a_tree_and_its_cut(given, seed):
    problem, tree = random_problem(seed, depth=2, n_features=6, n_rows=40)
    groups = np.array([0, 0, 1, 2, 3, 3])
    penalties = PenaltyPair.of(counting(), 1.0, 1.0).of_groups(Groups(groups))
    problem = replace(problem, penalties=penalties, limits=SizeLimits(*given))
    rng = np.random.default_rng(seed)
    tree = replace(tree, weights=np.where(rng.random(tree.weights.shape) < 0.5, 0.0, tree.weights))
    support = SupportTree.of(tree, problem)
    assert support.tree_size == tree_size(tree.weights != 0, problem.feature_groups)
    inside = cut(support, problem.limits)
    assert problem.limits.allow(inside.tree_size)
    assert not problem.allows(tree) or inside.tree_size == support.tree_size
    assert problem.allows(inside.parameters(problem))


def test_the_cost_of_a_removal_is_the_change_of_the_loss():
    problem, tree = random_problem(3, depth=2, n_features=5, n_rows=50)
    descents = RowDescents(problem, Budget(), problem.rows.sample())
    support = SupportTree.of(tree, problem)
    out = np.random.default_rng(0).random(support.support.shape) < 0.4
    known = routed(support.vector, descents.rows, support.shape)
    without = support.with_support(support.support & ~out)
    after = routed(without.vector, descents.rows, without.shape)[3]
    expected = descents.rows.weights @ np.log(known[3] / after)
    expected -= 0.25 * np.sum(support.splits[:, :-1][out] ** 2)
    found = removal_cost(support.splits, descents.rows, known, out, 0.5)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("count", [1, 3, 10, 40])
def test_an_end_at_any_time_leaves_a_tree_within_the_limits(monkeypatch, count):
    """The time is over after so many descents of a compiled fit."""
    X, y = correlated(1, n_features=12)
    named = {"max_features": 2, "max_terms": 1, "max_questions": 2}
    SoftTreeClassifier(**named, time_limit=1e6, n_starts=1, random_state=0).fit(X, y)
    clock = Clock()
    monkeypatch.setattr(Budget, "now", staticmethod(clock))
    monkeypatch.setattr(RowDescents, "descend", clock.after(count, RowDescents.descend))
    with pytest.warns(CutShortWarning):
        tree = SoftTreeClassifier(**named, time_limit=60.0, random_state=0).fit(X, y)
    features, terms, questions = sizes_of(tree)
    assert features <= 2 and terms <= 1 and questions <= 2


def test_the_choice_keeps_to_the_limits():
    X, y = correlated(2, n_features=8)
    chosen = SoftTreeClassifierCV(max_features=3, max_terms=2, random_state=0).fit(X, y)
    assert np.all(chosen.cv_results_["mean_n_features"] <= 3)
    features, terms, _ = sizes_of(chosen)
    assert features <= 3 and terms <= 2
    assert chosen.best_estimator_.max_features == 3


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_limit_that_the_tree_meets_changes_nothing(load):
    X, y = load(return_X_y=True)
    free = SoftTreeClassifierCV(random_state=0).fit(X, y)
    names = ("max_features", "max_terms", "max_questions")
    for name, size in zip(names, sizes_of(free), strict=True):
        within = SoftTreeClassifierCV(**{name: size}, random_state=0).fit(X, y)
        assert export_text(within) == export_text(free)
        assert getattr(within.best_estimator_, name) == size


def test_a_path_by_numbers_of_features():
    X, y = correlated(0)
    base = SoftTreeClassifier(depth=1, random_state=0, n_starts=2, points=False)
    path = strength_path(X, y, estimator=base, by="n_features", n_points=4)
    frame = path.to_frame()
    assert frame["n_features"].tolist() == [4, 3, 2, 1]
    assert np.all(np.diff(frame["cost"]) >= 0)
    with pytest.raises(ValueError, match="takes no strengths"):
        strength_path(X, y, by="n_features", strengths=[1.0])
