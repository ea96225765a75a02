"""Features that are selected together: a group counts once, and leaves as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import SURROGATES, surrogate_id
from likelihood_cases import random_problem
from native_cases import make_problem
from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.problem.optimality import kkt
from softsplit.problem.penalties import Groups, PenaltyPair, counting, linear
from softsplit.problem.strength_bound import all_zero_tree, max_strength
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.descents import RowDescents, group_shares
from softsplit.solvers.elimination.path import RIDGE, EliminationPath
from softsplit.solvers.elimination.support_tree import FEATURE_SIZE, ZERO_WEIGHT, SupportTree

partitions = st.lists(st.integers(0, 2), min_size=6, max_size=6).map(
    lambda homes: np.unique(homes, return_inverse=True)[1]
)


def case(seed, groups, depth=2, holes=0.3):
    """A problem with groups and a tree with zeros."""
    problem, tree = random_problem(seed, depth=depth, n_features=6, n_rows=60)
    rng = np.random.default_rng(seed)
    zero = rng.random(tree.weights.shape) < holes
    tree = replace(tree, weights=np.where(zero, 0.0, tree.weights))
    pair = PenaltyPair.of(counting(), 0.7, 2.5)
    return replace(problem, penalties=pair.of_groups(Groups(groups))), tree


def groups_in_use(weights, groups):
    """By a loop, without anything of the library."""
    return len({int(groups[j]) for j in range(len(weights)) if any(w != 0 for w in weights[j])})


@examples(25)
@given(st.integers(0, 10**6), partitions)
def test_the_objective_counts_a_group_once(seed, groups):
    problem, tree = case(seed, groups)
    counted = 0.7 * np.count_nonzero(tree.weights) + 2.5 * groups_in_use(tree.weights, groups)
    assert problem.objective(tree) == pytest.approx(problem.cost(tree) + counted)
    support = SupportTree.of(tree, problem)
    assert support.n_features == groups_in_use(tree.weights, groups)
    assert support.compact().size == support.size


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_elimination_with_groups_is_a_path_of_exact_trees(seed, depth):
    groups = np.array([0, 0, 1, 1, 1, 2])
    problem, tree = case(seed, groups, depth, holes=0.0)
    descents = RowDescents(problem, Budget(), problem.samples)
    points = EliminationPath(descents, SupportTree.of(tree, problem), group_shares(problem)).all()
    sizes = [point.tree.size for point in points]
    assert np.all(np.diff(sizes) < 0) and sizes[-1] == 0
    weighed = replace(problem, ridge=RIDGE * descents.unit)
    for point in points:
        if np.any(np.abs(point.tree.splits[:, :-1])[point.tree.support] <= ZERO_WEIGHT):
            continue  # coefficients that do nothing count while they are there, and end as zeros
        made = point.tree.parameters(problem)
        in_use = groups_in_use(made.weights, groups)
        assert (point.tree.n_coefficients, point.price) == (np.count_nonzero(made.weights), in_use)
        assert point.tree.size == point.tree.n_coefficients + FEATURE_SIZE * in_use
        assert point.objective(0.7, 2.5) == pytest.approx(weighed.objective(made), rel=1e-9)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("ab", "groups must list groups of columns, got 'ab'"),
        (["a", "b"], "groups must hold lists of columns, got 'a'"),
        ([["a", "q"], [7]], "groups names 'q', which is not a column of X"),
        ([["a", "b"], ["b", "c"]], "groups names 'b' twice; name it once"),
    ],
)
def test_groups_that_cannot_be_are_named(groups, message):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    with pytest.raises(ValueError, match=message):
        SoftTreeClassifier(groups=groups).fit(frame, np.arange(20) % 2)


HOMES = np.array([0, 1, 0, 2, 1, 0])
GROUPS = Groups(HOMES)
every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)


@every_surrogate
def test_a_global_penalty_pays_for_the_largest_weight_of_a_group(surrogate):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 3))
    pair = PenaltyPair.of(surrogate, 0.4, 1.3).of_groups(GROUPS)
    largest = np.array([max(abs(weights[g == HOMES]).ravel()) for g in range(3)])
    by_hand = 0.4 * surrogate.value(np.abs(weights)).sum() + 1.3 * surrogate.value(largest).sum()
    assert pair.value(weights) == pytest.approx(by_hand, rel=1e-12)
    step, slope = 1e-6, pair.gradient(weights)
    for place in np.ndindex(weights.shape):
        ahead, behind = weights.copy(), weights.copy()
        ahead[place] += step
        behind[place] -= step
        found = (pair.value(ahead) - pair.value(behind)) / (2 * step)
        assert slope[place] == pytest.approx(found, rel=1e-4, abs=1e-7)


@every_surrogate
@pytest.mark.parametrize("seed", range(3))
def test_the_prox_of_groups_is_a_global_minimum(surrogate, seed):
    """Against the prox of each group by itself, as one row, and against many other points."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(6, 2))
    pair = PenaltyPair.of(surrogate, 0.1, 0.5)
    grouped = pair.of_groups(GROUPS)
    found = grouped.prox(weights, 0.7, 1.0)
    for group in range(3):
        row = pair.prox(weights[group == HOMES].reshape(1, -1), 0.7, 1.0)
        np.testing.assert_allclose(found[group == HOMES].ravel(), row.ravel(), atol=1e-12)

    def total(point):
        return 0.5 * np.sum((point - weights) ** 2) + 0.7 * grouped.value(point)

    tried = np.clip(found + 0.2 * rng.normal(size=(200, 6, 2)), -1, 1)
    tried *= rng.random((200, 6, 1)) < 0.8
    assert total(found) <= min(map(total, tried)) + 1e-9


@pytest.mark.parametrize("scope", ["local", "global"])
def test_the_bound_of_proposition_1_knows_groups(scope):
    pair = PenaltyPair.of(linear(), 0.2, 0.3).of_groups(GROUPS)
    problem = make_problem(features=6, rows=60).with_penalties(pair)
    least = max_strength(problem, scope)
    zero = all_zero_tree(problem)
    for factor, still in ((1.001, True), (0.99, False)):
        strengths = (least * factor, 0.3) if scope == "local" else (0.2, least * factor)
        at = problem.with_penalties(pair.with_strengths(*strengths))
        assert (kkt(at, zero).stationarity < 1e-9) == still
