"""Rules about columns and their costs: returned trees keep them, or one sentence says why not."""

from __future__ import annotations

import numpy as np
import pytest

from requirement_cases import rows, table
from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text, strength_path


def small(**given):
    return SoftTreeClassifier(**{"depth": 2, "n_starts": 1, "random_state": 0, **given})


def kept(tree, given):
    """Whether the columns of a tree keep the rules."""
    used = set(tree.selected_features_.tolist())
    sets = [*given.get("at_most_one", ()), *given.get("forbidden_together", ())]
    return set(given.get("required", ())) <= used and all(len(used & set(one)) <= 1 for one in sets)


def drawn_rules(rng):
    """Random rules that do not contradict each other."""
    order = rng.permutation(6).tolist()
    given = {"at_most_one": [order[:3]], "forbidden_together": [[order[3], order[0]]]}
    required = [column for column in order[4 : 4 + rng.integers(0, 3)]]
    if rng.random() < 0.5:
        required.append(order[1])
    if required:
        given["required"] = required
    if rng.random() < 0.3 and len(required) <= 2:
        given |= {"max_features": 3, "max_terms": 2}
    if rng.random() < 0.5:
        given["feature_costs"] = {int(j): float(rng.choice([0.0, 1.0, 20.0])) for j in order[:3]}
    return given


@pytest.mark.parametrize("half", [0, *slow(1)])
def test_rules_hold_on_random_problems(half):
    for seed in range(50 * half, 50 * half + 50):
        rng = np.random.default_rng(seed)
        given, (X, y) = drawn_rules(rng), rows(seed, 60)
        tree = small(curves=int(rng.integers(0, 2)), **given).fit(X, y)
        assert kept(tree, given), (seed, given, tree.selected_features_)
        assert tree.solution_.status.usable


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_at_most_one_is_the_best_of_all_allowed_subsets(loss):
    """Brute force: columns that are not allowed are masked by zeros."""
    strength = {"log": {"global_strength": 1.0, "local_strength": 0.25, "curves": False}}
    given = strength.get(loss, {"global_strength": 1.0})
    sets = [[0, 1, 2]]
    for seed in range(3):
        X, y = rows(seed, 80, 4)
        free = small(loss=loss, depth=1, n_starts=4, **given)
        found = free.set_params(at_most_one=sets).fit(X, y).objective_
        every = []
        for member in sets[0]:
            Z = X.copy()
            Z[:, [j for j in sets[0] if j != member]] = 0.0
            every.append(small(loss=loss, depth=1, n_starts=4, **given).fit(Z, y).objective_)
        assert found <= min(every) * (1 + 1e-4) + 1e-6, (seed, found, every)


def test_rules_in_a_choice_and_along_a_path():
    frame, y = table(n=150)
    given = {"required": ["f"], "forbidden_together": [["a", "b"]], "feature_costs": {"a": 5.0}}
    search = SoftTreeClassifierCV(
        depths=[1, 2], scales=["standard"], ridges=[1.0], cv=3, n_starts=1, random_state=0, **given
    ).fit(frame, y)
    path = strength_path(frame, y, estimator=small(**given), n_points=4)
    sizes = strength_path(frame, y, estimator=small(**given), n_points=3, by="n_features")
    assert len(sizes.points) == 3
    for tree in [search, *(point.classifier for point in [*path.points, *sizes.points])]:
        used = {frame.columns[j] for j in tree.selected_features_}
        assert "f" in used and not {"a", "b"} <= used
    assert search.best_estimator_.required == ["f"]


def test_objective_has_the_price_of_every_feature():
    """Up to 1 a price is that of the tree; what is above 1 counts by the cases that need it."""
    X, y = rows(2, 150)
    y = y + (X[:, 0] > X[:, 2])
    costs = {0: 0.5, 2: 4.0, 3: 2.0, 4: 0.0}
    given = {"curves": False, "points": False, "global_strength": 0.5, "local_strength": 0.1}
    tree = small(feature_costs=costs, **given)
    tree.fit(X, y)
    found = tree.solution_.parameters
    scores = tree.scaling_.transform(X) @ found.weights / X.shape[1] - found.thresholds
    total = 0.0
    for j in np.flatnonzero(np.any(found.weights, axis=1)).tolist():
        needed = np.zeros(len(X), dtype=bool)
        node = np.zeros(len(X), dtype=int)
        for _ in range(2):
            needed |= found.weights[j, node] != 0
            node = 2 * node + 2 - (scores[np.arange(len(X)), node] > 0)
        cost = costs.get(j, 1.0)
        total += min(cost, 1.0) + max(cost - 1.0, 0.0) * needed.mean()
    n_weights = np.count_nonzero(found.weights)
    loss = tree.solution_.cost
    assert 2 in tree.selected_features_
    assert tree.solution_.objective == pytest.approx(loss + 0.5 * total + 0.1 * n_weights)


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_expected_cost_is_that_of_a_walk_by_hand(loss):
    frame, y = table(5, 300)
    costs = {"a": 7.0, "c": 3.0, "town": 0.5}
    tree = small(loss=loss, global_strength=0.5, feature_costs=costs, curves=False).fit(frame, y)
    model, coding = tree.tree_, tree.coding_
    asked = np.abs(tree.weights_.T) > 0 if model.walk is None else model.walk.coefficients != 0
    homes = [coding.variables[i].name for i in coding.homes]
    ways = tree.leaf_proba(frame)
    if model.walk is not None:
        ways = np.eye(ways.shape[1])[tree.apply(frame) - len(asked)]
    by_hand = np.zeros(len(frame))
    for leaf in range(ways.shape[1]):
        node, needed = leaf + len(asked), set()
        while node:
            node = (node - 1) // 2
            needed |= {homes[j] for j in np.flatnonzero(asked[node])}
        by_hand += ways[:, leaf] * sum(costs.get(name, 1.0) for name in needed)
    assert tree.expected_cost(frame, per_row=True) == pytest.approx(by_hand)
    assert tree.expected_cost(frame) == pytest.approx(by_hand.mean())
    said = [line for line in export_text(tree).split("\n") if line.startswith("a case costs")]
    assert len(said) == (loss == "log")
    if said:
        assert said[0].startswith(f"a case costs {by_hand.mean():.3g} on average: ")
