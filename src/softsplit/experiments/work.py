"""The work of one process: walk a chain of cells from where it stopped.

Only the solve is on the clock. A cell that raises becomes a row with its status, and the walk goes
on from a start of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from softsplit.experiments.cells import PEER, Chain
from softsplit.experiments.context import (
    Context,
    PreparedFold,
    accuracy,
    axis_seed,
    log_loss,
    tree_probabilities,
)
from softsplit.experiments.peers import run_peer
from softsplit.experiments.spec import Spec, load_attribute
from softsplit.experiments.store import CRASHED, ERROR, CellOutcome, Row, decode_tree, encode_tree
from softsplit.formulations import formulation_of
from softsplit.formulations.settings import make_solver
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import Budget, Solution, Solver, Start, Status
from softsplit.solvers.base import UnsupportedProblem, refuse_unsupported
from softsplit.solvers.starts.rules import draw_start
from softsplit.support.parallel import one_blas_thread
from softsplit.training.tiny_problems import TINY_PROBLEMS
from softsplit.tree.sparsity import global_sparsity, local_sparsity, selected_features

SLICE_SECONDS = 1.0
"""After these a process hands in what it has, so that little is lost if it is killed."""

ENDED_WELL = (Status.OPTIMAL, Status.ACCEPTABLE)


@dataclass(frozen=True)
class ChainJob:
    """Steps of a chain that have no row yet, and the trees of finished steps they start from.

    ``suspect``: a process died while it had this job. It is then run step by step, so that only
    the step at fault is given up.
    """

    chain: Chain
    missing: tuple[int, ...]
    trees: dict[int, bytes]
    suspect: bool = False

    def rest(self, rows: Iterable[Row]) -> ChainJob | None:
        """What is left after ``rows``; None if that is nothing."""
        done = {row.index: row.outcome.tree for row in rows}
        missing = tuple(index for index in self.missing if index not in done)
        if not missing:
            return None
        parents = {self.chain.steps[index].parent for index in missing}
        trees = self.trees | {index: tree for index, tree in done.items() if tree is not None}
        return replace(
            self,
            missing=missing,
            trees={index: tree for index, tree in trees.items() if index in parents},
        )

    def after_death(self, message: str) -> tuple[ChainJob, list[Row]]:
        """The job when a process has died with it: to run alone, or with a row that gives up."""
        if not self.suspect:
            return replace(self, suspect=True), []
        index = self.missing[0]
        return self, [Row(self.chain.cell(index), index, CellOutcome(CRASHED, message=message))]


def run_job(job: ChainJob, context: Context) -> list[Row]:
    """Rows of the first missing steps: as many as fit into a slice of time, at least one."""
    began = time.perf_counter()
    chain, trees, rows = job.chain, dict(job.trees), []
    with one_blas_thread():
        for index in job.missing:
            try:
                outcome = _run_cell(chain, index, trees, context)
            except Exception as error:
                outcome = CellOutcome(ERROR, message=f"{type(error).__name__}: {error}")
            if outcome.tree is not None:
                trees[index] = outcome.tree
            rows.append(Row(chain.cell(index), index, outcome))
            if time.perf_counter() - began > SLICE_SECONDS or job.suspect:
                break
    return rows


def _penalised(chain: Chain, index: int, problem: TrainingProblem, spec: Spec) -> TrainingProblem:
    """The problem with the penalties of a step."""
    step = chain.steps[index]
    model = spec.model(chain.model)
    return problem.with_penalties(model.penalties(step.local, step.global_, spec.training))


def _run_cell(chain: Chain, index: int, trees: dict[int, bytes], context: Context) -> CellOutcome:
    prepared = context.prepared(chain)
    if chain.solver == PEER:
        return run_peer(chain, prepared, context.spec)
    spec, step = context.spec, chain.steps[index]
    # 1. The problem with the penalties of the step; machine code is loaded off the clock.
    solver = solver_named(chain.solver, spec.training.loss)
    warm_up(chain.solver, spec.training.loss)
    problem = _penalised(chain, index, prepared.problem, spec)
    refuse_unsupported(solver, problem)
    # 2. The tree of the step before, or a start of the chain's own.
    drawn = time.perf_counter()
    start = (
        Start(decode_tree(trees[step.parent]))
        if step.parent in trees
        else _draw(chain, problem, solver, context)
    )
    # 3. The solve, which alone is timed as training.
    began = time.perf_counter()
    budget = Budget(max_iter=spec.training.max_iter, time_limit=spec.training.time_limit)
    solution = solver.solve(problem, start, budget)
    seconds = time.perf_counter() - began
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(
        _measure(solution, solver, prepared), seconds=seconds, start_seconds=began - drawn
    )


def _draw(chain: Chain, problem: TrainingProblem, solver: Solver, context: Context) -> Start:
    """The start of the chain: neither the model nor the strengths have a say in it."""
    chosen = context.spec.training.start_rule
    rule = chosen if chosen != "solver" else solver.start_rule(problem, chain.start)
    seed = axis_seed(
        "start", context.spec.seed, chain.dataset, chain.fold, chain.inner, chain.start
    )
    return draw_start(rule, problem, np.random.default_rng(seed), solver.candidates)


def _measure(solution: Solution, solver: Solver, prepared: PreparedFold) -> CellOutcome:
    tree, fold = solution.parameters, prepared.fold
    steepness, zero = prepared.problem.steepness, solver.zero_threshold
    began = time.perf_counter()
    proba = tree_probabilities(tree, fold.X_test, steepness, fold)
    seconds = time.perf_counter() - began
    return CellOutcome(
        status=solution.status.name,
        objective=solution.objective,
        cost=solution.cost,
        violation=solution.violation,
        stationarity=solution.stationarity,
        iterations=solution.n_iter,
        train_accuracy=accuracy(tree_probabilities(tree, fold.X, steepness, fold), fold.y),
        test_accuracy=accuracy(proba, fold.y_test),
        test_log_loss=log_loss(proba, fold.y_test),
        local_sparsity=local_sparsity(tree.weights, zero),
        global_sparsity=global_sparsity(tree.weights, zero),
        features_used=len(selected_features(tree.weights, zero)),
        nonzeros=int(np.sum(np.abs(tree.weights) > zero)),
        # A run that ended well has nothing to say; what it counts may depend on the clock.
        message="" if solution.status in ENDED_WELL else solution.message,
        predict_seconds=seconds,
        tree=encode_tree(tree) if solution.status.usable else None,
    )


@cache
def solver_named(name: str, loss: str) -> Solver:
    """A solver of the library, or ``module:attribute`` for one of the reader's own."""
    given = load_attribute(name)() if ":" in name else name
    return make_solver(given, formulation_of(loss).solver)


@cache
def warm_up(name: str, loss: str) -> None:
    """Solve a tiny problem first: machine code is loaded on first use, which is no training."""
    rng = np.random.default_rng(0)
    solver = solver_named(name, loss)
    for problem in TINY_PROBLEMS[loss]():
        with suppress(UnsupportedProblem):
            refuse_unsupported(solver, problem)
            start = draw_start(solver.start_rule(problem, 0), problem, rng, solver.candidates)
            solver.solve(problem, start, Budget(max_iter=200))
