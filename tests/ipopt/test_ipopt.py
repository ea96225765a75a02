"""IPOPT: its program stands for the problem, and what a run may and may not claim."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from rated_program import compared, fair_problem
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.ipopt import worker as ipopt_worker
from softsplit.ipopt.bridge import IpoptProgress
from softsplit.ipopt.program import SubstitutedProgram
from softsplit.ipopt.solver import IpoptSolver
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import (
    Penalty,
    PenaltyPair,
    exponential,
    inverse_power,
    linear,
    logarithmic,
    power,
)
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Start, Status
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import Block, Topology, TreeParameters

pytest.importorskip("casadi")

SCOPES = {"local": (0.7, 0.0), "global": (0.0, 0.9), "both": (0.7, 0.9), "none": (0.0, 0.0)}


def make_problem(
    depth: int, steepness: float, penalties: PenaltyPair, rate: float = 0.1, seed: int = 0
) -> TrainingProblem:
    """Weighted random rows; few, as every check costs a call per variable."""
    rng = np.random.default_rng(seed)
    n_classes, n_rows = (2, 6) if depth == 1 else (3, 6)
    X = rng.random((n_rows, 2))
    y = np.arange(n_rows) % n_classes
    samples = Samples.from_arrays(X, y, n_classes, rng.integers(1, 4, n_rows).astype(float))
    costs = rng.uniform(0.2, 1.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    rates = np.full(n_classes, rate)
    rates[-1] = 0.0
    return TrainingProblem(
        CompiledRows(samples), Topology(depth), ExpectedCost(costs), penalties, rates, steepness
    )


def open_tree(problem: TrainingProblem, seed: int = 1) -> TreeParameters:
    """A tree whose gates are not saturated: scores of size about 1 / steepness."""
    rng = np.random.default_rng(seed)
    p, n_branches = problem.n_features, problem.topology.n_branches
    size = min(0.8, 3 * p / problem.steepness)
    weights = size * rng.uniform(0.3, 1.0, (p, n_branches)) * rng.choice([-1, 1], (p, n_branches))
    centre = weights.T @ problem.samples.features.mean(axis=1) / p
    c = rng.dirichlet(np.ones(problem.n_groups), problem.topology.n_leaves).T
    return TreeParameters(weights, np.clip(centre, -1, 1), c)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("restricted", [False, True])
def test_program_is_the_problem(scope: str, restricted: bool) -> None:
    problem = make_problem(2, 32.0, PenaltyPair.of(exponential(), *SCOPES[scope]))
    if restricted:
        problem = problem.restrict(Block((1,), (0, 1)), open_tree(problem, seed=9))
    tree = problem.pin(open_tree(problem))
    program = SubstitutedProgram(problem)
    x = program.start(tree)
    assert program.objective(x) == pytest.approx(problem.objective(tree), rel=1e-12)
    again = program.tree(x)
    np.testing.assert_allclose(again.weights, tree.weights, atol=1e-15)
    np.testing.assert_allclose(again.leaf_values, tree.leaf_values, atol=1e-15)
    rates = problem.rates(tree)[:2]
    first = len(program.variables.linear_lower)
    np.testing.assert_allclose(program.constraints(x)[first : first + 2], rates, rtol=1e-12)


FORMULATIONS = {
    "L1": PenaltyPair.of(linear(), 0.1),
    "Linf": PenaltyPair.of(linear(), 0.0, 0.1),
    "L0loc": PenaltyPair.of(exponential(), 0.1),
    "L0glob": PenaltyPair.of(exponential(), 0.0, 0.1),
    "L1-Linf": PenaltyPair.of(linear(), 0.1, 0.1),
    "L0loc-L0glob": PenaltyPair.of(exponential(), 0.1, 0.1),
    "appr1": PenaltyPair.of(power(), 0.1),
    "appr2": PenaltyPair.of(inverse_power(), 0.001),
    "appr2-global": PenaltyPair.of(inverse_power(), 0.0, 0.001),
    "log": PenaltyPair.of(logarithmic(), 0.1),
    "mixed": PenaltyPair(Penalty(0.1, linear(), "local"), Penalty(0.1, exponential(), "global")),
}
PAIRS = ("L1-Linf", "L0loc-L0glob", "appr2-global")


def clusters(
    penalties: PenaltyPair, n_classes: int = 3, rate: float = 0.1, steepness: float = 512.0
) -> TrainingProblem:
    """Well separated classes in the corners of a square; two features are noise."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]])[:n_classes]
    y = np.repeat(np.arange(n_classes), 6)
    X = np.hstack([centres[y] + rng.uniform(-0.08, 0.08, (len(y), 2)), rng.random((len(y), 2))])
    return TrainingProblem(
        CompiledRows.from_arrays(X, y, n_classes),
        Topology.with_leaves(n_classes),
        ExpectedCost.uniform(n_classes),
        penalties,
        np.full(n_classes, rate),
        steepness,
    )


def contradictory(rate: float) -> TrainingProblem:
    """The same rows in both classes: no tree gets more than half of both right."""
    X = np.tile(np.random.default_rng(0).random((10, 2)), (2, 1))
    return TrainingProblem(
        CompiledRows.from_arrays(X, np.repeat([0, 1], 10), 2),
        Topology(1),
        ExpectedCost.uniform(2),
        PenaltyPair.of(linear(), 0.1),
        np.full(2, rate),
    )


def begin(problem: TrainingProblem, seed: int = 0) -> Start:
    return draw_start("points", problem, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "formulation",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in PAIRS else name
        for name in FORMULATIONS
    ],
)
def test_every_formulation_runs(formulation: str, capfd: pytest.CaptureFixture[str]) -> None:
    problem = clusters(FORMULATIONS[formulation])
    solver = IpoptSolver()
    runs = [solver.solve(problem, begin(problem, seed), Budget(max_iter=200)) for seed in (1, 2)]
    for solution in runs:
        assert np.isfinite(solution.objective)
        assert solution.n_iter > 0
        if solution.status.usable:
            assert solution.violation <= 1e-5
    # Slopes of 1e5 at the corner where a = 0 and beta = 0: many runs fail, and say so.
    assert formulation == "appr2-global" or any(solution.status.usable for solution in runs)
    assert capfd.readouterr() == ("", "")


def test_impossible_rates_are_not_solved() -> None:
    problem = contradictory(0.99)
    solver = IpoptSolver(max_iter=200)
    solution = solver.solve(problem, begin(problem), Budget())
    assert not solution.status.usable
    assert solution.violation > 1e-3


def test_time_limit_holds() -> None:
    """Also where a process has yet to be started."""
    problem = clusters(PenaltyPair.of(linear(), 0.1))
    ipopt_worker._stop_idle()
    solution = IpoptSolver().solve(problem, begin(problem), Budget(time_limit=0.001))
    assert solution.status is Status.TIME_LIMIT


def test_child_that_breaks_down_is_a_failure() -> None:
    problem = clusters(PenaltyPair.of(linear(), 0.1))
    solver = IpoptSolver(options={"no_such_option": 1})
    for time_limit in (None, 600):
        solution = solver.solve(problem, begin(problem), Budget(time_limit=time_limit))
        assert solution.status is Status.FAILED
        assert solution.message


def test_interrupt_returns_the_last_iterate() -> None:
    problem = clusters(PenaltyPair.of(linear(), 0.1))
    solver = IpoptSolver()
    seen = []

    def listen(*iterate: object) -> None:
        seen.append(iterate)
        if len(seen) == 4:
            signal.raise_signal(signal.SIGINT)

    outcome = solver.run(problem, begin(problem), Budget(), IpoptProgress(listen))
    assert outcome.status is Status.INTERRUPTED
    assert outcome.n_iter < 8


def test_a_casadi_without_ipopt_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import casadi

    monkeypatch.setattr(casadi, "has_nlpsol", lambda _name: False)
    problem = clusters(PenaltyPair.of(linear(), 0.1))
    with pytest.raises(ImportError, match=r"^casadi 3\S+ is installed but cannot load IPOPT; "):
        IpoptSolver().solve(problem, begin(problem), Budget())


# No interior-point method finds a better tree under bounds of rates from the same starts.


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("odds", [False, True])
def test_ipopt_finds_no_better_tree_within_the_bound(loss, odds):
    pytest.importorskip("casadi")
    problem = fair_problem(4, loss, n_groups=3 if odds else 2, odds=odds, n=40)
    best, other = compared(problem, n_starts=1)
    assert problem.unrated.violation(best.parameters).largest <= 1e-6
    assert problem.violation(best.parameters).largest <= 1e-6
    assert best.objective <= other * (1 + 1e-3)
