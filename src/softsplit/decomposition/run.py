"""One decomposition run: the current tree, what is cached of it, and what a step may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from softsplit.decomposition.evaluation import EvaluationSet, training_accuracy
from softsplit.decomposition.stopping import History
from softsplit.decomposition.trace import Stopwatch, TraceRow
from softsplit.engines.block import GateCache
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.problem.leaves import InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Budget, Solution, Solver, Start, Status
from softsplit.tree.parameters import Block, TreeParameters

ACCEPTED = 0.1 * FEASIBLE
"""Largest violation of a tree that counts as feasible: interior points meet equations to this."""

LEAST_DECREASE = 1e-9
"""In cost units: a step that gains less is rounding."""


@dataclass
class Run:
    """The state of a run. ``tree`` is at every moment the best so far."""

    problem: TrainingProblem
    budget: Budget
    tree: TreeParameters
    watch: EvaluationSet | None = None
    n_iter: int = 0
    rows: list[TraceRow] = field(default_factory=list)
    trees: list[TreeParameters] = field(default_factory=list)
    clock: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        problem = self.problem
        self.cache = self._gates()
        self.objective = problem.objective(self.tree)
        self.violation = problem.violation(self.tree).largest

    def _gates(self) -> GateCache | None:
        """The gates of the tree, where its rows and its loss let fixed branches be left out."""
        problem = self.problem
        if not isinstance(problem.rows, CompiledRows) or problem.loss.outer != IDENTITY:
            return None
        return GateCache.of(self.tree, problem.rows, problem.steepness)

    @property
    def feasible(self) -> bool:
        return self.violation <= ACCEPTED

    @property
    def exhausted(self) -> bool:
        return self.budget.exhausted or self._iterations_left == 0

    @property
    def _iterations_left(self) -> int | None:
        limit = self.budget.max_iter
        return None if limit is None else max(0, limit - self.n_iter)

    def inner_budget(self, max_iter: int | None) -> Budget:
        """A share of the run's budget: at most ``max_iter`` iterations."""
        limits = [n for n in (max_iter, self._iterations_left) if n is not None]
        remaining = None if self.budget.time_limit is None else self.budget.remaining
        return Budget(
            max_iter=min(limits, default=None),
            tol=self.budget.tol,
            time_limit=remaining,
            cancel=self.budget.cancel,
        )

    def whole(self, solver: Solver, rule: str, max_iter: int) -> None:
        """The initialisation: some iterations on the whole problem, kept if they are better."""
        found = solver.solve(self.problem, Start(self.tree, rule), self.inner_budget(max_iter))
        self._note(found)
        if self._better(found):
            self.tree = found.parameters
            self.__post_init__()

    def step(self, solver: Solver, block: Block, proximal: float, max_iter: int | None) -> bool:
        """Solve one block; take over the tree if it is feasible and lower, and say so."""
        part = self.problem.restrict(block, self.tree, proximal=proximal, cache=self.cache)
        found = solver.solve(part, Start(self.tree), self.inner_budget(max_iter))
        self._note(found)
        if not self._better(found):
            return False
        self.tree, self.objective = found.parameters, found.objective
        self.violation = found.violation
        if self.cache is not None:
            self.cache.renew(self.tree, block.branches, part.evaluate_cost(self.tree).mass)
        return True

    def _note(self, found: Solution) -> None:
        self.n_iter += found.n_iter
        self.clock.add_child(found.child_cpu_seconds)
        if found.status is Status.INTERRUPTED:
            self.budget.stop()

    def _better(self, found: Solution) -> bool:
        """Feasibility first, and then the objective: an inner solver may return a worse tree."""
        if not self.feasible:
            return found.violation < self.violation
        least = LEAST_DECREASE * self.problem.cost_unit
        return found.violation <= ACCEPTED and found.objective < self.objective - least

    def record(self, steps: int, accepted: int) -> None:
        """Add a row to the trace, off the clock."""
        self.clock.pause()
        problem, tree = self.problem, self.tree
        watched = float("nan")
        if self.watch is not None:
            watched = self.watch.accuracy(tree, problem.steepness)
        row = TraceRow(
            macro_iteration=len(self.rows),
            objective=problem.objective(tree),
            violation=self.violation,
            train_accuracy=training_accuracy(tree, problem.samples, problem.steepness),
            test_accuracy=watched,
            cpu_seconds=self.clock.cpu_seconds,
            seconds=self.clock.seconds,
            n_iter=self.n_iter,
            steps=steps,
            accepted=accepted,
        )
        self.rows.append(row)
        self.trees.append(tree)
        self.clock.resume()

    @property
    def history(self) -> History:
        return History(self.problem, self.rows, self.trees)


def best_start(problem: TrainingProblem, trees: Sequence[TreeParameters]) -> TreeParameters:
    """The best of the given trees; where one is infeasible its leaves are chosen anew."""
    pinned = [problem.pin(tree) for tree in trees]
    candidates = [
        tree if problem.violation(tree).largest <= ACCEPTED else with_better_leaves(problem, tree)
        for tree in pinned
    ]
    ranks = [
        (max(problem.violation(tree).largest, ACCEPTED), problem.objective(tree))
        for tree in candidates
    ]
    return candidates[min(range(len(ranks)), key=ranks.__getitem__)]


def with_better_leaves(problem: TrainingProblem, tree: TreeParameters) -> TreeParameters:
    """The tree after a leaf step, or as it is where no leaves are feasible."""
    try:
        return problem.best_leaves(tree)
    except InfeasibleLeafStep:
        return tree
