"""Trees for many problems by likelihood at once: ``solve_together``.

Problems of one shape may differ in their rows (folds), strengths and starts. They descend in
lockstep on a device, in single precision unless it is a CPU; what is returned is measured with rows
in double precision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softsplit.engines.base import samples_of
from softsplit.engines.device.backend import enough_memory, find_device
from softsplit.engines.device.pieces import Pieces
from softsplit.engines.samples import Samples
from softsplit.problem.distributions import CountedDistributions
from softsplit.problem.penalties import Surrogate
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Status, UnsupportedProblem
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.lockstep.batch import Batch
from softsplit.solvers.lockstep.descent import descend
from softsplit.solvers.lockstep.penalty import BatchPenalty
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

MAX_ITER = 1500
DECREASE = 2e-6
"""A tree has ended where a round of steps lowers it by less than this part."""

AT_ONCE = 20_000
"""Trees that descend together."""


class Task(NamedTuple):
    """A problem, and the tree to start from."""

    problem: TrainingProblem
    start: TreeParameters


def supports(problem: TrainingProblem) -> str | None:
    """None, or why such a problem cannot be solved in lockstep."""
    pair = problem.penalties
    if not problem.by_likelihood:
        return "is for loss='log'"
    if pair.counts:
        return "needs a penalty with a slope, such as 'l1' or 'l0'"
    if problem.rated:
        return "knows no minimum class rates"
    if pair.local.surrogate != pair.global_.surrogate and 0.0 not in pair.strengths:
        return "needs one surrogate for both penalties"
    return None


def solve_together(tasks: Sequence[Task], device: str, budget: Budget) -> list[Solution]:
    """The tree that each task leads to, in their order."""
    found: list[Solution | None] = [None] * len(tasks)
    groups: dict[Any, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        reason = supports(task.problem)
        if reason is not None:
            raise UnsupportedProblem(f"training in lockstep {reason}; set device=None.")
        groups[_shape(task.problem)].append(number)
    where = find_device(device)
    for members in groups.values():
        for low in range(0, len(members), AT_ONCE):
            numbers = members[low : low + AT_ONCE]
            with enough_memory(f"{len(numbers)} trees"):
                ends = _descended([tasks[i] for i in numbers], where, budget)
            for number, end in zip(numbers, ends, strict=True):
                found[number] = end
    return [end for end in found if end is not None]


def _shape(problem: TrainingProblem) -> tuple[Any, ...]:
    """What problems of one batch have in common."""
    rows = problem.rows
    unit = problem.steepness / problem.n_features
    return (
        problem.topology.n_branches, rows.n_features, rows.n_classes, unit, _surrogate(problem),
    )  # fmt: skip


def _surrogate(problem: TrainingProblem) -> Surrogate:
    pair = problem.penalties
    return pair.local.surrogate if pair.local.strength > 0 else pair.global_.surrogate


def _descended(tasks: Sequence[Task], device: Any, budget: Budget) -> list[Solution]:
    """Trees of one shape."""
    problems = [task.problem for task in tasks]
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    tables: dict[int, tuple[int, Samples]] = {}
    for problem in problems:
        if id(problem.rows) not in tables:
            tables[id(problem.rows)] = len(tables), samples_of(problem.rows)
    unit = problems[0].steepness / problems[0].n_features
    folds = [samples for _, samples in tables.values()]
    pieces = Pieces.of(folds, device, dtype, shift=0.5, scale=unit)

    def column(values: Sequence[float] | FloatArray, kind: Any = torch.float64) -> torch.Tensor:
        return torch.as_tensor(np.array(values), dtype=kind, device=device)

    batch = Batch(
        pieces,
        column([tables[id(problem.rows)][0] for problem in problems], torch.int32),
        problems[0].topology.n_branches,
        column(np.array([_pseudo(problem) for problem in problems]), dtype),
        column([problem.ridge for problem in problems]),
    )
    penalty = BatchPenalty(
        _surrogate(problems[0]),
        column([problem.penalties.local.strength for problem in problems]),
        column([problem.penalties.global_.strength for problem in problems]),
    )
    drafts = [Draft.of(task.start, task.problem) for task in tasks]
    x = column(np.array([draft.vector for draft in drafts]), dtype)
    best, _, ended = descend(
        batch,
        penalty,
        x,
        max_iter=budget.max_iter or MAX_ITER,
        tol=budget.tol * min(problem.cost_unit for problem in problems),
        decrease=DECREASE,
        go_on=lambda: not budget.exhausted,
    )
    exact = pieces
    if dtype != torch.float64:
        exact = Pieces.of(folds, device, torch.float64, shift=0.5, scale=unit)
    costs = batch.exact_value(best, exact).tolist()
    points = best.to(torch.float64).cpu().numpy()
    over = ended.tolist()
    solutions = []
    for number, (problem, draft) in enumerate(zip(problems, drafts, strict=True)):
        tree = _with_zeros(draft, points[number]).tree(problem)
        status = Status.ACCEPTABLE if over[number] else budget.verdict
        solutions.append(Solution.unmeasured(problem, tree, costs[number], status))
    return solutions


def _pseudo(problem: TrainingProblem) -> FloatArray:
    rule = problem.loss.leaf_rule
    assert isinstance(rule, CountedDistributions)
    return rule.pseudo_counts


def _with_zeros(draft: Draft, point: FloatArray) -> Draft:
    """The draft at a point, which has the zeros of its weights."""
    found = draft.moved_to(point)
    weights = found.splits[:, :-1]
    return Draft(found.splits, found.log_odds, found.columns, weights != 0, found.open)
