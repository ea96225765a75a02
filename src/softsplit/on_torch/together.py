"""Many problems trained at once on a device: all of them from all starts, in lockstep.

Where ``walk`` goes from one strength to the next, every strength here has all starts of its own;
on a GPU hundreds of trees take little longer than one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Solver, Start, Status
from softsplit.training.multistart import numbered_start
from softsplit.tree.parameters import TreeParameters


def lockstep() -> Any:
    """The solver; PyTorch is loaded when it is first asked for."""
    return import_module("softsplit.on_torch.lockstep.solver")


def can_train_together(problems: Sequence[TrainingProblem]) -> bool:
    """Whether these are problems for ``train_together``."""
    return all(lockstep().supports(problem) is None for problem in problems)


def train_together(
    problems: Sequence[TrainingProblem],
    solver: Solver,
    device: str,
    *,
    n_starts: int,
    seed: int,
    budget: Budget,
) -> list[Solution]:
    """The best of all starts for every problem; the problems differ in their strengths only."""
    began = time.perf_counter()
    children = np.random.SeedSequence(seed).spawn(n_starts)
    starts = [
        numbered_start(problems[0], solver, number, child) for number, child in enumerate(children)
    ]
    task = lockstep().Task
    tasks = [
        task(problem, start.parameters, start.candidates)
        for problem in problems
        for start in starts
    ]
    ends = lockstep().solve_together(tasks, device, budget)
    best = ends.comparable.reshape(len(problems), n_starts).argmin(axis=1)
    seconds = (time.perf_counter() - began) / len(problems)
    found = []
    for number, problem in enumerate(problems):
        end = ends[number * n_starts + int(best[number])]
        found.append(measured(problem, end.parameters, end.status, solver, budget, seconds))
    return found


def measured(
    problem: TrainingProblem,
    tree: TreeParameters,
    status: Status,
    solver: Solver,
    budget: Budget,
    seconds: float,
) -> Solution:
    """What a tree of the lockstep is on its problem; where it misses class rates, ``solver`` goes
    on from it."""
    found = Solution.measure(
        problem, tree, status, tol=budget.tol, n_iter=0, seconds=seconds, solver="lockstep",
        message="descents in lockstep",
    )  # fmt: skip
    if found.status is not Status.INFEASIBLE or budget.exhausted:
        return found
    mended = solver.solve(problem, Start(found.parameters), budget)
    return replace(mended, seconds=seconds + mended.seconds)
