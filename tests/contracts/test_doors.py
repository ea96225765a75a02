"""Doors of the architecture: an engine and a loss of one's own train through the estimators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from native_cases import make_problem
from own_loss import SquaredError
from slow_cases import slow
from softsplit import NodeDecomposition, SoftTreeClassifier, SoftTreeClassifierCV, strength_path
from softsplit.engines.base import RowsElsewhere
from softsplit.problem.leaves import ClassDistributions
from softsplit.problem.loss import LogLoss
from softsplit.solvers import Budget, EliminationSolver, Status
from softsplit.solvers.active_set.state import DescentLimits
from softsplit.solvers.basin_hopping.budget import IterationBudget
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.elimination.options import EliminationOptions
from softsplit.solvers.starts.rules import draw_start
from two_halves import SOME, TwoHalves

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"global_strength": 0.5},
        *slow(
            {"global_strength": 0.5, "min_class_rate": 0.96},
            {"local_strength": 0.1, "penalty": "l1", "depth": 2},
        ),
    ],
    ids=str,
)
def test_rows_in_two_halves_train_to_the_same_objective(settings):
    known = {"loss": "cost", "n_starts": 3, "random_state": 0} | settings
    plain = SoftTreeClassifier(**known).fit(X, Y)
    halves = SoftTreeClassifier(**known, engine=TwoHalves.of).fit(X, Y)
    assert halves.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert halves.solution_.violation <= 1e-6
    assert halves.score(X, Y) == pytest.approx(plain.score(X, Y), abs=0.02)


@pytest.mark.parametrize("loss", [None, LogLoss(), SquaredError()], ids=["cost", "log", "square"])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_a_descent_over_two_halves_takes_the_steps_of_a_compiled_one(loss, rate):
    """With Newton steps: curvature, rate terms and both loops agree to rounding."""
    problem = make_problem(rows=90, depth=2, global_=0.3, local=0.05, rate=rate)
    problem = replace(problem, steepness=20.0)
    if loss is not None:
        problem = replace(problem, loss=loss)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    leaves = ClassDistributions().soften(start.leaf_values)
    ends = []
    for rows in (problem.rows, TwoHalves.of(problem.samples)):
        run = DescentRun(replace(problem, rows=rows), IterationBudget(Budget(), 10_000))
        theta = start.splits
        run.descend(theta, leaves, DescentLimits(6, 0.0, 0.0, 1000, 0, 0.0))
        ends.append(theta)
    assert np.max(np.abs(ends[0] - start.splits)) > 1e-2
    assert_allclose(ends[1], ends[0], rtol=1e-4, atol=1e-5)


def test_every_door_of_the_library_takes_an_engine():
    tree = SoftTreeClassifier(loss="cost", n_starts=1, random_state=0, engine=TwoHalves.of)
    assert clone(tree).engine == TwoHalves.of
    path = strength_path(X, Y, estimator=tree, n_points=3)
    assert len(path) == 3 and path[2].classifier.global_sparsity_ >= 50
    few = {"depths": (2,), "n_strengths": 3, "cv": 2, "random_state": 0, "engine": TwoHalves.of}
    for loss in ("cost", "log"):
        chosen = SoftTreeClassifierCV(loss=loss, **few).fit(X, Y)
        assert chosen.score(X, Y) > 0.9
    problem = make_problem()
    assert problem.rows.sample() is problem.samples
    with pytest.raises(RowsElsewhere, match="the rows of TwoHalves are not in the memory"):
        _ = replace(problem, rows=TwoHalves.of(problem.samples)).samples


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("ipopt", "solver 'ipopt' needs the training rows in the memory of this process; use"),
        (NodeDecomposition(), "needs the training rows in the memory of this process; use"),
    ],
    ids=["ipopt", "decomposition"],
)
def test_solvers_that_need_the_rows_refuse_an_engine_elsewhere(solver, words):
    pytest.importorskip("casadi")
    with pytest.raises(ValueError, match=words):
        SoftTreeClassifier(loss="cost", solver=solver, engine=TwoHalves.of).fit(X, Y)


@pytest.mark.parametrize(
    "settings",
    [{}, {"penalty": "l1", "local_strength": 2.0}, *slow({"min_class_rate": 0.94})],
    ids=str,
)
def test_rows_in_two_halves_train_by_likelihood(settings):
    """Features are looked for on the same 300 rows, and all descend through ``evaluate``."""
    options = EliminationOptions(support_rows=SOME)
    X, y = load_breast_cancer(return_X_y=True)
    solver = EliminationSolver(options=options)
    known = {"n_starts": 1, "random_state": 0, "solver": solver} | settings
    plain = SoftTreeClassifier(**known).fit(X, y)
    halves = SoftTreeClassifier(**known, engine=TwoHalves.of).fit(X, y)
    assert halves.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert halves.solution_.status is plain.solution_.status is Status.OPTIMAL


def test_a_loss_of_ones_own_trains():
    """To a stationary point of its own objective, and to a tree that is good on it."""
    known = {"n_starts": 10, "random_state": 0, "global_strength": 2.0}
    tree = SoftTreeClassifier(**known, loss=SquaredError()).fit(X, Y)
    assert tree.score(X, Y) > 0.93
    other = SoftTreeClassifier(**known, loss="cost").fit(X, Y)
    wrong, its = (
        1.0 - (one.leaf_proba(X) @ one.leaf_classes_.T)[np.arange(len(Y)), Y]
        for one in (tree, other)
    )
    assert tree.solution_.cost == pytest.approx(np.sum(wrong**2), rel=1e-9)
    assert tree.solution_.cost <= np.sum(its**2) + 2.0 * 4
    assert tree.solution_.status in (Status.OPTIMAL, Status.ACCEPTABLE)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "log-likelihood"}, "loss must be 'log' or 'cost', got 'log-likelihood'"),
        ({"loss": LogLoss}, "loss must be 'log', 'cost' or an object with outer"),
        ({"loss": LogLoss(), "class_weight": "balanced"}, "class_weight is part of loss='cost'"),
        ({"loss": LogLoss(), "solver": "ipopt"}, "'ipopt' trains the expected cost, not LogLoss"),
    ],
    ids=str,
)
def test_a_loss_that_does_not_fit_is_refused(settings, words):
    pytest.importorskip("casadi")
    with pytest.raises(ValueError, match=words):
        SoftTreeClassifier(**settings).fit(X, Y)


class Broken(SquaredError):
    """Parts are replaced by wrong ones."""


@pytest.mark.parametrize(
    ("part", "wrong", "words"),
    [
        ("outer", 7, "the outer of the loss Broken must be one of the numbers"),
        ("outer", "log", "the outer of the loss Broken must be one of the numbers"),
        ("leaf_rule", None, "the leaf_rule of the loss Broken must be an object with exact"),
        ("table", lambda c: c.tolist()[0], "the table of the loss Broken must be finite numbers"),
        ("table", lambda c: None, "the table of the loss Broken must be finite numbers of shape"),
        ("leaf_gradient", lambda g: g[:1], "leaf_gradient of the loss Broken must be finite"),
        (
            "prediction_costs",
            lambda n: np.ones(n),
            "the prediction_costs of the loss Broken must be finite",
        ),
        ("featureless", lambda t: np.nan, "the featureless of the loss Broken must be a finite"),
        ("unit", "a", "the unit of the loss Broken must be a finite number"),
        ("unit", 0.0, "the unit of the loss Broken must be a positive number"),
    ],
)
def test_a_loss_with_a_wrong_part_is_refused_before_anything_is_compiled(part, wrong, words):
    loss = Broken()
    object.__setattr__(loss, part, wrong)
    with pytest.raises(ValueError, match=words):
        SoftTreeClassifier(loss=loss).fit(X, Y)


class Wrong:
    """An engine that gives one of its sums transposed."""

    def __init__(self, engine, part):
        self.engine, self.part = engine, part

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def evaluate(self, *asked):
        sums = self.engine.evaluate(*asked)
        return replace(sums, **{self.part: getattr(sums, self.part).T})


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        *((name, "engine must be 'memory', or a function that makes") for name in ("disk", 3)),
        (None, "engine must be 'memory', or a function that makes"),
        (lambda s: None, "the engine must be an object with n_rows"),
        (lambda s: s, "the engine must be an object with"),
        (lambda s: Wrong(TwoHalves.of(s), "splits"), "Sums whose splits is finite and of shape"),
        (lambda s: Wrong(TwoHalves.of(s), "mass"), "Sums whose mass is finite and of shape"),
    ],
)
def test_what_is_no_engine_or_answers_wrongly_is_refused(engine, words):
    with pytest.raises(ValueError, match=words):
        SoftTreeClassifier(engine=engine).fit(X, Y)
