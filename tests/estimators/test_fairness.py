"""Constraints on rates and fairness: bounds hold on the training rows, or one sentence says why."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from slow_cases import slow
from softsplit import (
    EqualizedOdds,
    EqualOpportunity,
    Parity,
    RateConstraint,
    SoftTreeClassifier,
    dumps_model,
    loads_model,
)
from softsplit.problem.loss import LogLoss


def biased_rows(n_groups=2, n_classes=2, n=160, seed=0):
    """Rows whose first feature depends on the group, with missing values of the group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    x = rng.normal(size=(n, 3))
    x[:, 0] += 0.9 * group
    score = x[:, 0] + x[:, 1] + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    table = pd.DataFrame(x, columns=list("abc"))
    table["group"] = np.array(["F", "M", "X"], dtype=object)[group]
    return table, y


def small_tree(**given):
    return SoftTreeClassifier(**{"n_starts": 1, "depth": 1, "random_state": 0, **given})


def group_rates(values, group):
    return np.array([values[group == one].mean() for one in pd.unique(group)])


@pytest.mark.parametrize(
    ("n_groups", "weighted"),
    [
        (2, False),
        (3, True),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [(2, True), (3, False)]),
    ],
)
def test_parity_holds_for_probabilities_and_decisions(n_groups, weighted):
    X, y = biased_rows(n_groups, seed=n_groups)
    weight = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else np.ones(len(y))
    free = small_tree().fit(X, y, weight)
    tree = small_tree(fairness=Parity("group", 0.05)).fit(X, y, weight)

    def spread(values):
        rates = [
            np.average(values[X.group == g], weights=weight[X.group == g]) for g in "FMX"[:n_groups]
        ]
        return np.ptp(rates)

    assert spread(free.predict_proba(X)[:, 1]) > 0.15
    assert spread(tree.predict_proba(X)[:, 1]) <= 0.05 + 1e-6
    (record,) = tree.tree_.rates
    assert_allclose(np.ptp(record.expected), spread(tree.predict_proba(X)[:, 1]), atol=1e-9)
    assert_allclose(np.ptp(record.decided), spread(tree.predict(X)), atol=1e-9)
    assert record.decisions_hold and spread(tree.predict(X)) <= 0.05 + record.grain + 1e-6
    assert record.multiplier > 0
    assert tree.solution_.violation <= 1e-6 and tree.solution_.status.usable
    assert tree.solution_.stationarity < 1e-4


@pytest.mark.parametrize("bound", [0.0, 0.1])
def test_no_tree_of_one_split_has_a_lower_expected_cost(bound):
    """Brute force over weight and threshold of a tree that parts one column, of pure leaves."""
    table, y = biased_rows(n=80, seed=3)
    X, first = table[["a"]].to_numpy(), (table["group"] == "F").to_numpy()
    given = {"loss": "cost", "penalty": None, "steepness": 20.0, "curves": False, "n_starts": 4}
    tree = small_tree(fairness=Parity("group", bound), **given).fit(X, y, sensitive=table["group"])
    x = tree.scaling_.transform(X)[:, 0]
    weights, thresholds = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(-1, 1, 401))
    score = 20.0 * (weights[..., None] * x - thresholds[..., None])
    left = 1 / (1 + np.exp(-score))
    gap = np.abs(left[..., first].mean(axis=-1) - left[..., ~first].mean(axis=-1))
    costs = np.minimum((left * (y == 1) + (1 - left) * (y == 0)).sum(axis=-1), np.inf)
    costs = np.minimum(costs, len(y) - costs)  # either class on the left
    best = costs[gap <= bound + 1e-3].min()  # the grid meets the bound 0 to a thousandth
    slack = 1e-3 * tree.tree_.rates[0].multiplier
    assert tree.objective_ <= best + slack + 1e-9
    assert tree.solution_.violation <= 1e-6


@pytest.mark.parametrize(("kind", "near"), [(Parity, 1e-3), (EqualizedOdds, 0.05)])
def test_the_expected_cost_is_trained_under_the_same_requirements(kind, near):
    X, y = biased_rows(3, seed=7)
    wanted = {"fairness": kind("group", 0.06), "min_class_rate": 0.5}
    tree = small_tree(loss="cost", depth=2, n_starts=2, **wanted).fit(X, y)
    for record in tree.tree_.rates:
        assert np.ptp(record.expected) <= 0.06 + 1e-6
    assert sum(record.multiplier for record in tree.tree_.rates) > 0
    assert tree.solution_.violation <= 1e-6
    assert tree.solution_.stationarity < near
    same = small_tree(loss="cost", depth=2, n_starts=2, n_jobs=2, **wanted).fit(X, y)
    assert_array_equal(same.weights_, tree.weights_)


@pytest.mark.parametrize("kind", [EqualOpportunity, EqualizedOdds])
def test_rates_given_the_class_hold(kind):
    X, y = biased_rows(3, seed=7)
    tree = small_tree(fairness=kind("group", 0.06)).fit(X, y)
    conditions = (1,) if kind is EqualOpportunity else (0, 1)
    proba = tree.predict_proba(X)[:, 1]
    for given in conditions:
        rates = group_rates(proba[y == given], X.group[y == given].to_numpy())
        assert np.ptp(rates) <= 0.06 + 1e-6
    assert len(tree.tree_.rates) == len(conditions)


def test_missing_values_are_a_group_of_their_own():
    X, y = biased_rows(2, seed=4)
    X.loc[X.index % 3 == 0, "group"] = None
    tree = small_tree(fairness=Parity("group", 0.05)).fit(X, y)
    assert tree.tree_.rates[0].groups == ("F", "M", "missing")
    assert np.ptp(tree.tree_.rates[0].expected) <= 0.05 + 1e-6


@pytest.mark.parametrize("rows", [("group", "M"), "mask", *slow(("a", ">", 0.5), "indices")])
def test_rate_constraints_on_any_rows(rows):
    X, y = biased_rows(2, seed=6)
    masks = {("group", "M"): X.group == "M", ("a", ">", 0.5): X.a > 0.5}
    mask = np.asarray(masks.get(rows, X.b > 0))
    given = {"mask": mask, "indices": np.flatnonzero(mask)}.get(rows, rows)
    wanted = [
        RateConstraint(given, of=1, at_most=0.4),
        RateConstraint(None, of=1, at_least=0.45, given=1),
    ]
    tree = small_tree(constraints=wanted).fit(X, y)
    proba = tree.predict_proba(X)[:, 1]
    assert proba[mask].mean() <= 0.4 + 1e-6
    assert proba[y == 1].mean() >= 0.45 - 1e-6


def test_a_bound_that_does_not_bind_changes_nothing():
    X, y = biased_rows(2, seed=9)
    free = small_tree(decision="mixture").fit(X, y)
    tree = small_tree(decision="mixture", fairness=Parity("group", 0.99)).fit(X, y)
    assert_array_equal(tree.weights_, free.weights_)
    assert tree.tree_.rates[0].multiplier == 0


def test_files_copies_and_parameters_keep_requirements():
    X, y = biased_rows(2, seed=2)
    wanted = {
        "fairness": Parity("group", 0.1),
        "constraints": [RateConstraint(("a", ">", 0.0), of=1, at_most=0.8)],
    }
    tree = small_tree(**wanted)
    assert clone(tree).get_params()["fairness"] == wanted["fairness"]
    tree.fit(X, y)
    read = loads_model(dumps_model(tree))
    assert read.get_params()["fairness"] == wanted["fairness"]
    assert read.get_params()["constraints"] == wanted["constraints"]
    assert read.tree_.rates == tree.tree_.rates
    assert_array_equal(read.predict_proba(X), tree.predict_proba(X))


X, Y = biased_rows(3, n=60)
HOSTILE = {  # others are in requirement_cases.py
    "contradiction": (
        {
            "constraints": [
                RateConstraint(("group", "F"), 1, at_least=0.9),
                RateConstraint(("group", "M"), 1, at_most=0.1),
            ],
            "fairness": Parity("group", 0.1),
        },
        "the bound of the rate of 1 on group = F, the bound of the rate of 1 on group = M and "
        "parity of group cannot hold together: no probabilities",
    ),
    "own loss": ({"fairness": Parity("group", 0.1), "loss": LogLoss()}, "loss='cost' only"),
    "engine": ({"fairness": Parity("group", 0.1), "engine": print}, "the engine must be an object"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_required_is_told_in_one_sentence(case):
    given, said = HOSTILE[case]
    tree = small_tree(**given)
    with pytest.raises(ValueError, match=said) as error:
        tree.fit(X, Y)
    assert "\n" not in str(error.value)
    assert not hasattr(tree, "tree_")


def test_a_sensitive_column_of_other_rows_is_refused():
    with pytest.raises(ValueError, match="3 rows, and X has 60"):
        small_tree(fairness=Parity("g", 0.1)).fit(X, Y, sensitive=["a", "b", "c"])
