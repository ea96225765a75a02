"""All compiled code in pieces: calls of a second or a few each, from which nothing is left out.

A piece calls compiled functions with arguments of the types that training, reading and prediction
hand to them. After all pieces no input has anything left to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from softsplit.engines.compiled import ThreadedRows
from softsplit.engines.samples import Samples
from softsplit.problem.penalties import counting
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.importance import add_spreads
from softsplit.reading.row_pass import RowPlan
from softsplit.solvers import (
    BasinHoppingSolver,
    Budget,
    EliminationSolver,
    Solver,
    Start,
    make_solver,
)
from softsplit.solvers.active_set.program import LOOK
from softsplit.solvers.basin_hopping.meter import Meter
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.elimination.descent import Smoothing, shorter
from softsplit.solvers.elimination.engine_descent import EngineFunction
from softsplit.solvers.elimination.fisher import inverse_fisher
from softsplit.solvers.elimination.growth import featureless_draft, grown
from softsplit.solvers.elimination.path import moves
from softsplit.solvers.elimination.race import Descents, class_shares
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.solvers.starts.rules import draw_start
from softsplit.support import options
from softsplit.training.multistart import hop, multistart
from softsplit.training.tiny_problems import (
    tiny_likelihood,
    tiny_likelihoods,
    tiny_problem,
    tiny_problems,
)
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import LinearScaling

MOST_ITERATIONS = 1000
"""Enough for each kind of hop to have its turn."""


def train_tiny(problems: list[TrainingProblem]) -> None:
    """Train tiny trees in every way in which larger ones are trained."""
    solver: Solver = BasinHoppingSolver() if problems[0].boxed else EliminationSolver()
    for problem in problems:
        budget = Budget(max_iter=MOST_ITERATIONS)
        found = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = hop(problem, solver, found, budget=budget)
        solver.solve(problem, Start(best.parameters), budget)


def train_tiny_blocks() -> None:
    """The same with solvers of options that call the native solver on parts of a problem."""
    solvers = map(make_solver, options.provided("solvers"))
    for solver in [solver for solver in solvers if solver.parts()]:
        for problem in tiny_problems():
            multistart(problem, solver, n_starts=1, budget=Budget(max_iter=3))


def _order(kind: type[np.floating[Any]]) -> None:
    """Rows are put in order by compiled code too."""
    Samples.from_arrays(np.zeros((2, 1), dtype=kind), np.array([0, 1]), 2)


def _tried() -> tuple[Descents, Draft]:
    """Descents by likelihood on a few rows, and a tree of the right shape."""
    problem = tiny_likelihood(3, 2, counting())
    n_branches = problem.topology.n_branches
    leaves = np.repeat(class_shares(problem)[:, None], n_branches + 1, axis=1)
    weights = np.ones((problem.n_features, n_branches))
    tree = TreeParameters(weights, np.full(n_branches, 0.5), leaves)
    return Descents(problem, Budget(), problem.rows.sample()), Draft.of(tree, problem)


def _likelihood_descent() -> None:
    descents, draft = _tried()
    descents.descend(draft, Smoothing(1.0, 1.0, 1.0), 1, 1.0)


def _evaluations() -> None:
    descents, draft = _tried()
    smoothing, problem = Smoothing(1.0, 1.0, 1.0), descents.problem
    descents.function(draft, smoothing, draft.free)(draft.vector)
    problem.merit(draft.tree(problem))


def _fisher() -> None:
    descents, draft = _tried()
    inverse_fisher(draft.vector, descents.field, 1.0, draft.free, draft.shape)


def _prices() -> None:
    descents, draft = _tried()
    moves(draft, descents.field, 1.0, 1)


def _growth() -> None:
    descents, _ = _tried()
    draw_start("growth", descents.problem, np.random.default_rng(0), 1)
    grown(grown(featureless_draft(descents.field), descents.field), descents.field)


def _likelihood() -> None:
    descents, draft = _tried()
    descents.masses(draft).at(draft.vector)  # for class rates
    train_tiny(tiny_likelihoods())


def _cost_descent() -> None:
    problem = tiny_problem(2, 1)
    run, theta = DescentRun(problem, Meter(Budget(), 1)), np.zeros((1, problem.n_features + 1))
    run.descend(theta, np.eye(2), LOOK)


def _cost_starts() -> None:
    draw_start(BasinHoppingSolver().start_rules[0], tiny_problem(2, 1), np.random.default_rng(0))


def _predictions() -> None:
    plan = RowPlan.of(
        TreeParameters(np.ones((1, 1)), np.zeros(1), np.eye(2)), 1.0,
        LinearScaling(np.zeros(1), np.ones(1)),
    )  # fmt: skip
    for kind in (np.float64, np.float32):
        plan.class_proba(np.zeros((200_000, 1), dtype=kind), np.eye(2))


def _importances() -> None:
    one = np.zeros((1, 1))
    add_spreads(one, one, one, np.zeros((1, 2), dtype=np.intp), one)  # of large trees


def _many_rows(kind: type[np.floating[Any]]) -> None:
    descents, draft = _tried()
    samples = descents.problem.rows.sample()
    rows = ThreadedRows(replace(samples, features=samples.features.astype(kind)))
    function = EngineFunction(replace(descents.problem, rows=rows), draft)
    function.smooth(Smoothing(1.0, 1.0, 1.0), draft.free)(draft.vector)
    shorter(1.0, 1.0, -1.0)
    train_tiny([replace(tiny_problem(3, 2), rows=rows)])


PIECES: dict[str, Callable[[], None]] = {
    "order": partial(_order, np.float64),
    "likelihood-descent": _likelihood_descent,
    "evaluations": _evaluations,
    "fisher": _fisher,
    "prices": _prices,
    "growth": _growth,
    "likelihood": _likelihood,
    "predictions": _predictions,
    "single-order": partial(_order, np.float32),
    "importances": _importances,
    "cost-starts": _cost_starts,
    "cost-descent": _cost_descent,
    "cost": lambda: train_tiny(tiny_problems()),
    "many-rows": partial(_many_rows, np.float64),
    "single-rows": partial(_many_rows, np.float32),
    "blocks": train_tiny_blocks,
}
"""By name, those first that are asked for first."""

TRAINING = {
    "log": ("order", "likelihood-descent", "evaluations", "prices", "fisher", "growth"),
    "cost": ("order", "cost-descent", "cost-starts"),
}
"""What trains by a loss. Two processes begin at the ends, where the longest pieces are, and what
calls the same functions lies side by side."""
