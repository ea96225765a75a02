"""NB-DEC of section 6: a solver that moves a few nodes of the tree at a time with another solver.

    start (and initialisation)
    repeat until a stopping rule is met                               macro-iteration
        for each working set (W_B, W_L) of the rule                   step
            minimise O + psi / 2 |A - A_s, C - C_s|^2 over the nodes of the working set
            keep the result if it is feasible and O is lower

The objective never rises: an interior-point solver restarts its barrier in every step and may well
return a worse tree, which is then not taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from softsplit.decomposition.rules import (
    Chooser,
    MacroIterations,
    SingleBranches,
    StoppingRule,
    View,
    WorkingSets,
)
from softsplit.decomposition.trace import (
    DecompositionRun,
    DecompositionTrace,
    EvaluationSet,
    TracedSolution,
    best_start,
    with_better_leaves,
)
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solver, Start, Status
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.solvers.basin_hopping.stages import Polish
from softsplit.solvers.registry import make_solver
from softsplit.support.arguments import positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit
from softsplit.tree.parameters import Block, Topology, TreeParameters

RESTORATION = 100
"""Iterations on the whole problem if the start is infeasible: one block alone rarely mends that."""


BLOCK_SOLVER = BasinHoppingSolver(
    recipes={"given": ()},
    finish=Polish(max_iter=40, rounds=4),
    candidates=0,
    effort=0.0,
)
"""The native solver for a block: it starts from a tree that is good already, so there is nothing
to race, to warm up or to hop from, and has few variables, so that Newton steps are cheap."""


class NodeDecomposition(Solver, BaseEstimator):
    """Node-based decomposition (NB-DEC), with S-NB-DEC of the paper as the default.

    Parameters
    ----------
    inner : str or solver object, default="native"
        Solves the blocks and the initialisation: "native", "ipopt" or a solver.
    working_sets : rule of rules.py, optional
        Which nodes move together; ``SingleBranches()`` (S-NB-DEC) if not given.
    macro_iterations : int, default=10
        The run ends after so many passes over the tree, or earlier if one lowers nothing.
    stopping : sequence of rules of rules.py, default=()
        Further rules; the first that is met ends the run.
    proximal : float, default=0.0
        psi: weight of the proximal term in every step.
    initialisation : int or "neutral", default=0
        Iterations on the whole problem before the first step; with 0 the start is taken as it is,
        with "neutral" the run begins at a = 0, c = 1/K, followed by a leaf step, since with equal
        leaves no branch has a slope. A start that violates the constraints is mended on the
        whole problem in any case.
    inner_iter : int, default=40
        Iterations of the inner solver in each step.
    watch : EvaluationSet, optional
        Rows whose accuracy goes into the trace; they have no influence on the result.

    Notes
    -----
    Solutions carry a ``trace`` with one row per macro-iteration.
    """

    def __init__(
        self,
        inner: str | Solver = "native",
        working_sets: WorkingSets | None = None,
        macro_iterations: int = 10,
        stopping: Sequence[StoppingRule] = (),
        proximal: float = 0.0,
        initialisation: int | str = 0,
        inner_iter: int = 40,
        watch: EvaluationSet | None = None,
    ) -> None:
        self.inner = inner
        self.working_sets = working_sets
        self.macro_iterations = macro_iterations
        self.stopping = stopping
        self.proximal = proximal
        self.initialisation = initialisation
        self.inner_iter = inner_iter
        self.watch = watch

    @property
    def name(self) -> str:
        return f"decomposition({self._whole_solver().name})"

    @property
    def start_rules(self) -> tuple[str, ...]:
        return self._whole_solver().start_rules

    @property
    def candidates(self) -> int:
        return self._whole_solver().candidates

    @property
    def releases_gil(self) -> bool:
        return self._whole_solver().releases_gil

    @property
    def zero_threshold(self) -> float:
        return self._whole_solver().zero_threshold

    @property
    def _initialised(self) -> bool:
        return self.initialisation not in (0, "neutral")

    def supports(self, problem: TrainingProblem) -> str | None:
        """Its trace tells the accuracy on all training rows; branches lie in a box."""
        if not problem.boxed:
            return "does not train by likelihood"
        if getattr(problem.rows, "samples", None) is None:
            return "needs the training rows in the memory of this process"
        return None

    def parts(self) -> tuple[Solver, ...]:
        """The solver of the blocks: it has to be compiled too."""
        return (self._whole_solver(),)

    def _whole_solver(self) -> Solver:
        return make_solver(self.inner, excluded=("decomposition",))

    def _block_solver(self) -> Solver:
        return BLOCK_SOLVER if self.inner == "native" else self._whole_solver()

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> NodeDecomposition:
        """The same solver with all rows it looks at in the units of a training problem."""
        adapted = clone(self)
        if self.watch is not None:
            adapted.watch = self.watch.adapted(transform, classes)
        adapted.stopping = tuple(
            rule.adapted(transform, classes) if hasattr(rule, "adapted") else rule
            for rule in self.stopping
        )
        return adapted

    def check(self) -> None:
        """Refuse parameters that make no sense, in one sentence."""
        self._whole_solver()
        positive_integer("macro_iterations", self.macro_iterations)
        positive_integer("inner_iter", self.inner_iter)
        positive_number("proximal", self.proximal, zero=True)
        self._check_initialisation()
        if self.working_sets is not None and not _offers(self.working_sets, "blocks"):
            raise unfit(
                "working_sets", self.working_sets, "must be a rule such as SingleBranches()"
            )
        if not isinstance(self.stopping, Sequence):
            raise unfit("stopping", self.stopping, "must be a sequence of rules")
        for rule in self.stopping:
            if not _offers(rule, "reached"):
                raise unfit("stopping", rule, "must hold rules such as MacroIterations(5)")
        if not isinstance(self.watch, EvaluationSet | None):
            raise unfit("watch", self.watch, "must be an EvaluationSet(X, y)")

    def _check_initialisation(self) -> None:
        value = self.initialisation
        if isinstance(value, str):
            good = value == "neutral"
        else:
            good = isinstance(value, Integral) and not isinstance(value, bool) and value >= 0
        if not good:
            raise unfit("initialisation", value, "must be a number of iterations >= 0 or 'neutral'")

    def _check_rows(self, problem: TrainingProblem) -> None:
        """Refuse rows to look at that do not fit the problem."""
        if self.watch is not None:
            self.watch.check(problem.n_features)
        for rule in self.stopping:
            if hasattr(rule, "check"):
                rule.check(problem)

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> TracedSolution:
        """Best tree from ``start``; its ``trace`` tells how."""
        self.check()
        self._check_rows(problem)
        began = time.perf_counter()
        run = DecompositionRun(problem, budget, self._first_tree(problem, start), self.watch)
        status, message = Status.ACCEPTABLE, ""
        with budget.interruptible():
            # 1. The initialisation, and what it takes for a feasible tree to begin with.
            if self._initialised:
                run.whole(self._whole_solver(), start.rule, int(self.initialisation))
            if not run.feasible:
                run.whole(self._whole_solver(), start.rule, RESTORATION)
            # 2. Steps, from a first row of the trace on.
            run.record(0, 0)
            message = self._macro_iterations(run, np.random.default_rng(start.seed))
        if run.exhausted:
            status = budget.verdict
        return self._measure(run, status, message or status.value, began)

    def _first_tree(self, problem: TrainingProblem, start: Start) -> TreeParameters:
        if self.initialisation == "neutral":
            neutral = TreeParameters.neutral(problem.n_features, problem.n_groups, problem.topology)
            return with_better_leaves(problem, problem.pin(neutral))
        return best_start(problem, (start.parameters, *start.candidates))

    def _macro_iterations(self, run: DecompositionRun, rng: np.random.Generator) -> str:
        """Go on until a rule is met; which one it was."""
        rule, solver = self.working_sets or SingleBranches(), self._block_solver()
        stopping = (MacroIterations(self.macro_iterations), *self.stopping)
        stuck = False
        while not run.exhausted:
            # 1. One step for each working set.
            steps, accepted = 0, 0
            for block in _within(run.problem, rule.blocks(View(run.problem, run.tree, rng, stuck))):
                if run.exhausted:
                    break
                accepted += run.step(solver, block, float(self.proximal), self.inner_iter)
                steps += 1
            run.record(steps, accepted)
            # 2. Two passes in a row without a gain end the run: a rule may offer other sets when
            # it is told that it is stuck.
            if stuck and accepted == 0 and not run.exhausted:
                return f"no block lowers the objective after {run.rows[-1].macro_iteration} passes"
            stuck = accepted == 0
            # 3. The stopping rules.
            met = [r for r in stopping if r.reached(run.history)]
            if met and not run.exhausted:
                return f"{met[0]!r} was met after {run.rows[-1].macro_iteration} macro-iterations"
        return ""

    def _measure(
        self, run: DecompositionRun, status: Status, message: str, began: float
    ) -> TracedSolution:
        tree = run.tree
        choosers = [rule for rule in self.stopping if isinstance(rule, Chooser)]
        if choosers and run.trees:
            tree = run.trees[choosers[0].chosen(run.history)]
        solution = TracedSolution.measure(
            run.problem,
            tree,
            status,
            tol=run.budget.tol,
            n_iter=run.n_iter,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=message,
            child_cpu_seconds=run.clock.child_cpu_seconds,
        )
        assert isinstance(solution, TracedSolution)
        return replace(solution, trace=DecompositionTrace(tuple(run.rows), self._initialised))


def _offers(rule: object, method: str) -> bool:
    """Whether this is a rule, and not the class of one."""
    return hasattr(rule, method) and not isinstance(rule, type)


def _within(problem: TrainingProblem, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, cut to the free part of a problem that is itself restricted."""
    for block in blocks:
        _check_block(problem.topology, block)
    if problem.block is None:
        return list(blocks)
    cut = [
        Block(
            tuple(t for t in block.branches if problem.free_branches[t]),
            tuple(leaf for leaf in block.leaves if problem.free_leaves[leaf]),
        )
        for block in blocks
    ]
    return [block for block in cut if block.branches or block.leaves]


def _check_block(topology: Topology, block: Block) -> None:
    n_branches, n_leaves = topology.n_branches, topology.n_leaves
    if (
        not isinstance(block, Block)
        or not set(block.branches) <= set(range(n_branches))
        or not set(block.leaves) <= set(range(n_leaves))
    ):
        raise ValueError(
            f"a working-set rule must list Blocks of branches 0 to {n_branches - 1} and leaves 0 "
            f"to {n_leaves - 1}, got {shown(block)}."
        )
