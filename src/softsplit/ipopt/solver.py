"""The paper's reference method: the interior-point code IPOPT, on strategy (ii) of section 4.1.

The leaf probabilities are replaced by the product of gates (program.py), also in the problems
of loss="log", which the paper does not have. Strategy (i), with the leaf probabilities as
variables, took about eight times as long.
IPOPT comes with the optional package casadi. The result is what IPOPT returns, with violations of
bounds the size of rounding removed and nothing else improved. An interior-point method returns no
exact zeros: count sparsity with a threshold (about 1e-4).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softsplit.engines.outer import IDENTITY
from softsplit.ipopt.bridge import (
    IpoptOutcome,
    IpoptProgress,
    IpoptRun,
    import_casadi,
    run_ipopt,
    tidy,
)
from softsplit.ipopt.program import SubstitutedProgram
from softsplit.ipopt.worker import run_with_limit
from softsplit.problem.leaves import ClassAssignment
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Budget, Solution, Solver, Start, Status
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

logger = logging.getLogger(__name__)

STATUS = {
    "Solve_Succeeded": Status.OPTIMAL,
    "Solved_To_Acceptable_Level": Status.ACCEPTABLE,
    "Maximum_Iterations_Exceeded": Status.MAX_ITER,
    "Maximum_CpuTime_Exceeded": Status.TIME_LIMIT,
    "Maximum_WallTime_Exceeded": Status.TIME_LIMIT,
    "User_Requested_Stop": Status.INTERRUPTED,
    "Infeasible_Problem_Detected": Status.INFEASIBLE,
}
"""IPOPT's return status; anything else is a failure."""

SHARPER = 0.01
"""IPOPT measures complementarity, ``kkt`` slopes: those of a flat penalty are smaller."""

CLOSE = {
    "mu_init": 1e-7,
    "bound_push": 1e-8,
    "bound_frac": 1e-8,
    "slack_bound_push": 1e-8,
    "slack_bound_frac": 1e-8,
}
"""For a second run from the end of a first one. Without a box a barrier drives sizes and caps to
where a concave penalty is flat; close to the tree itself it is too weak for that."""


@dataclass(frozen=True)
class IpoptSolver(Solver):
    """IPOPT with exact first and second derivatives.

    Parameters
    ----------
    max_iter : int
        Iteration limit where the budget has none.
    options : dict, optional
        Further options of IPOPT, which override the ones used here.
    """

    max_iter: int = 1000
    options: dict[str, Any] = field(default_factory=dict)
    start_rules: tuple[str, ...] = ("points",)
    candidates: int = 0
    releases_gil: bool = False
    zero_threshold: float = 1e-4
    name: str = "ipopt"

    def supports(self, problem: TrainingProblem) -> str | None:
        """The expected cost and the log-loss: the programs write them out."""
        assigned = isinstance(problem.loss.leaf_rule, ClassAssignment)
        if not problem.by_likelihood and (problem.loss.outer != IDENTITY or not assigned):
            return f"trains the expected cost, not {type(problem.loss).__name__}"
        if problem.penalties.counts:
            return "follows slopes, and penalty='count' has none; choose another penalty"
        if getattr(problem.rows, "samples", None) is None:
            return "needs the training rows in the memory of this process"
        return None

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        """Mixtures for the log-loss: the others draw trees for the box."""
        rules = ("mixtures",) if problem.by_likelihood else self.start_rules
        return rules[number % len(rules)]

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Run IPOPT from ``start``; with a time limit, in a process that can be stopped."""
        import_casadi()
        began = time.perf_counter()
        if budget.exhausted:
            tree = IpoptProgress().pick(problem, problem.pin(start.parameters))
            outcome = IpoptOutcome(tree, budget.verdict, 0, "no time for an iteration")
        elif budget.time_limit is None:
            outcome = self.run(problem, start, budget, IpoptProgress())
        else:
            outcome = run_with_limit(self.run, problem, start, budget)
        logger.debug("%s: %s after %d iterations", self.name, outcome.message, outcome.n_iter)
        return Solution.measure(
            problem,
            outcome.parameters,
            outcome.status,
            tol=budget.tol,
            n_iter=outcome.n_iter,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=outcome.message,
            child_cpu_seconds=outcome.child_cpu_seconds,
        )

    def run(
        self, problem: TrainingProblem, start: Start, budget: Budget, progress: IpoptProgress
    ) -> IpoptOutcome:
        """The run itself, in this process."""
        program = SubstitutedProgram(problem)

        def report(x: FloatArray, value: float, violation: float) -> None:
            progress.keep(program.tree(x), value, violation)

        x0, options = program.start(problem.pin(start.parameters)), self._options(problem, budget)
        ended = run_ipopt(program, x0, options, report)
        over = STATUS.get(ended.return_status) in (Status.OPTIMAL, Status.ACCEPTABLE)
        if over and not problem.boxed:
            before, x0 = ended.n_iter, program.start(program.tree(ended.x))
            ended = run_ipopt(program, x0, options | CLOSE, report)
            ended.n_iter += before
        return conclude(problem, program, ended, progress)

    def _options(self, problem: TrainingProblem, budget: Budget) -> dict[str, Any]:
        options: dict[str, Any] = {
            "print_level": 0,
            "sb": "yes",
            "max_iter": self.max_iter if budget.max_iter is None else budget.max_iter,
            "tol": budget.tol,
            "constr_viol_tol": min(budget.tol, 0.1 * FEASIBLE),
            "acceptable_constr_viol_tol": 0.1 * FEASIBLE,
        }
        if budget.time_limit is not None:
            options["max_wall_time"] = max(budget.remaining, 1e-3)
        if problem.by_likelihood:
            # Shares must stay positive, and the derivatives small in the units of the problem.
            options |= {
                "bound_relax_factor": 0.0,
                "nlp_scaling_method": "none",
                "tol": SHARPER * budget.tol * min(1.0, problem.cost_unit),
            }
        return options | self.options


def conclude(
    problem: TrainingProblem, program: SubstitutedProgram, ended: IpoptRun, progress: IpoptProgress
) -> IpoptOutcome:
    """Translate the end of a run; whatever is not known to be good is a failure."""
    status, message = STATUS.get(ended.return_status, Status.FAILED), ended.return_status
    if ended.error:
        status, message = Status.FAILED, f"{message} ({ended.error})"
    tree = program.tree(ended.x)
    if not _finite(tree):
        tree = progress.last or program.tree(np.maximum(program.lower, -1.0))
        status = Status.FAILED
    if status in (Status.MAX_ITER, Status.TIME_LIMIT, Status.INTERRUPTED):
        progress.last = tree
        return IpoptOutcome(progress.pick(problem, tree), status, ended.n_iter, message)
    return IpoptOutcome(tidy(problem, tree), status, ended.n_iter, message)


def _finite(parameters: TreeParameters) -> bool:
    arrays = (parameters.weights, parameters.thresholds, parameters.leaf_values)
    return all(bool(np.all(np.isfinite(array))) for array in arrays)
