"""Monotone effects together with requirements on rates: both hold for the tree that is returned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from monotone_cases import coded_violations
from slow_cases import slow
from softsplit import EqualizedOdds, Parity, RateConstraint, SoftTreeClassifier
from softsplit.estimators.base import model_settings
from softsplit.estimators.training_rows import training_rows
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.bounded import coordinates
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.rated_descents import TreeRates
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.training.preparation import prepare
from softsplit.tree.parameters import TreeParameters

pytestmark = pytest.mark.filterwarnings("ignore:values far outside")


def loans(seed: int, n_classes: int = 2, n_rows: int = 140) -> tuple[pd.DataFrame, np.ndarray]:
    """Income depends on the group, the class on income and arrears; some arrears are missing."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M", "X"][: 2 + seed % 2], n_rows)
    frame = pd.DataFrame(
        {
            "income": rng.normal(size=n_rows) + 0.8 * (sex == "M"),
            "arrears": rng.poisson(1.0, n_rows).astype(float),
            "noise": rng.normal(size=n_rows),
            "sex": sex,
        }
    )
    score = frame.income - 0.7 * frame.arrears + 0.7 * rng.logistic(size=n_rows)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    frame.loc[rng.random(n_rows) < 0.05, "arrears"] = np.nan
    return frame, np.array([f"k{i}" for i in np.digitize(score, cuts)])


WISH = {"arrears": "-", "income": "+"}


def settings(loss: str, n_rows: int) -> dict:
    given = {"loss": loss, "n_starts": 1, "random_state": 0, "depth": 2, "curves": False}
    if loss == "cost":
        given.update(effort=0.1, global_strength=0.002 * n_rows)
    return given


def assert_both_hold(tree, frame):
    for column in tree.monotone:
        found = tree.check_monotone(column)
        assert found.holds and found.proved
        assert coded_violations(tree, frame, column, 2000) == 0
    for record in tree.tree_.rates:
        rates = np.array(record.expected)
        if len(rates) > 1:
            assert np.ptp(rates) <= record.high + 1e-6
        else:
            assert record.low - 1e-6 <= rates[0] <= record.high + 1e-6


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("seed", [0, 1, *slow(2, 3, 4, 5)])
def test_random_problems_hold_both(loss, seed):
    n_classes = 2 + seed % 3
    frame, y = loans(seed, n_classes)
    wished = [
        {"fairness": Parity("sex", 0.02 + 0.03 * (seed % 2))},
        {"constraints": RateConstraint(("sex", "F"), "k1", at_least=0.35, at_most=0.5)},
        {"fairness": EqualizedOdds("sex", 0.1, of="k1")},
        {"min_class_rate": {"k0": 0.6}, "fairness": Parity("sex", 0.1)},
    ][seed % 4]
    wish = WISH if seed % 2 else {"arrears": {"k0": "+"}}
    given = settings(loss, len(y))
    tree = SoftTreeClassifier(monotone=wish, **wished, **given).fit(frame, y)
    assert_both_hold(tree, frame)
    assert tree.solution_.violation <= 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_slopes_of_rates_in_the_chart_are_those_of_differences(n_classes):
    frame, y = loans(2, n_classes)
    given = {"depth": 2, "curves": 2, "monotone": WISH, "fairness": Parity("sex", 0.05)}
    tree = SoftTreeClassifier(min_class_rate={"k0": 0.3}, **given)
    problem = prepare(model_settings(tree), training_rows(tree, frame, y, None)).problem
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(problem.n_features, 3))
    leaves = rng.dirichlet(np.ones(n_classes), 4).T
    drawn = problem.within(TreeParameters(weights, 0.1 * rng.normal(size=3), leaves))
    support = SupportTree.of(drawn, problem)
    rows = RowDescents(problem, Budget(), problem.samples)
    function = rows.function(support, Shrinkage(problem.ridge), support.free)
    chart = coordinates(support, function, support.free, problem.bounds, problem.order)
    rates = TreeRates(problem, support, chart)
    inside = chart.begun + 0.1 * (np.isfinite(chart.box[0]) & (chart.begun == 0))
    found = rates.slopes(inside)
    assert np.max(np.abs(found)) > 0.01
    total = rates.slope(inside, np.arange(1.0, len(found) + 1))
    assert_allclose(total, np.arange(1.0, len(found) + 1) @ found, atol=1e-10)
    for place in np.flatnonzero(chart.free):
        moved = []
        for change in (1e-6, -1e-6):
            there = inside.copy()
            there[place] += change
            moved.append(-rates.shortfalls(there))
        assert_allclose(found[:, place], (moved[0] - moved[1]) / 2e-6, atol=1e-7)
