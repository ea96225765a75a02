"""Trees for many problems at once: ``solve_together``; by cost, cost_solver.py sees to them.

Problems may differ in their rows (folds), strengths and starts; those of one shape descend in
lockstep on a device, in single precision unless it is a CPU. What is told of a tree is measured
with rows in double precision. A point of a support tree (solvers/elimination/support_tree.py), with
weights w and intercepts b on features z = unit (x - 1/2), is in the units of a batch

    u_jt = w_jt deviation(z_j),    b_t + sum_j w_jt mean(z_j)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from softsplit.engines.base import samples_of
from softsplit.engines.samples import Samples
from softsplit.on_torch.backend import enough_memory, find_device
from softsplit.on_torch.lockstep.batch import Batch
from softsplit.on_torch.lockstep.cost_solver import costs_alike, descended_by_cost
from softsplit.on_torch.lockstep.descent import descend
from softsplit.on_torch.lockstep.face_descent import OPTIONS as STEP_OPTIONS
from softsplit.on_torch.lockstep.penalty import KNOWN_KINDS, BatchPenalty, common_surrogate
from softsplit.on_torch.lockstep.tasks import Ends, Group, Task
from softsplit.on_torch.pieces import Pieces, Units
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Status, UnsupportedProblem
from softsplit.solvers.elimination.support_tree import ZERO_WEIGHT, SupportTree
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class LockstepOptions:
    """When the descents in lockstep end."""

    max_iter: int = 600
    """Steps of a descent, unless a budget says otherwise; most end after a hundred."""

    decrease: float = 3e-6
    """A tree has ended where a round of steps lowers it by less than this part."""

    smallest: float = 0.01
    """Deviation, of a range of 1, that a feature has at least: what is constant has no unit."""


OPTIONS = LockstepOptions()
STEPS_KEPT = 2 * STEP_OPTIONS.memory + 10
"""Lines of the size of its splits that a tree has in memory."""

AT_ONCE, NUMBERS = 20_000, 5e8
"""Trees that descend together, and numbers that they may have in all."""


def supports(problem: TrainingProblem) -> str | None:
    """None, or why such a problem cannot be solved in lockstep."""
    pair = problem.penalties
    method = _method(problem)
    if method is None or problem.block is not None:
        return "is for loss='log' and loss='cost'"
    if problem.bounds.size not in (1.0, np.inf):
        return "knows no bounds but the box of loss='cost'"
    if pair.counts:
        return "needs a penalty with a slope, such as 'l1' or 'l0'"
    if {pair.local.surrogate.kind, pair.global_.surrogate.kind} - KNOWN_KINDS:
        return "does not know this surrogate (on_torch/lockstep/penalty.py)"
    if problem.groups is not None:
        return "knows no groups of features"
    if problem.binding_rules is not None:
        return "knows no rules about features"
    if problem.rate_limits is not None:
        return "knows no constraints and no fairness"
    if problem.rated and not (method is descended_by_cost and costs_alike(problem)):
        return "knows minimum class rates only where every error of a class costs the same"
    if pair.local.surrogate != pair.global_.surrogate and 0.0 not in pair.strengths:
        return "needs one surrogate for both penalties"
    return None


def _method(problem: TrainingProblem) -> Callable[[Sequence[Task], Any, Budget], Group] | None:
    """Return the function that descends for problems of this kind, if there is one."""
    if problem.by_likelihood:
        return _descended
    by_cost = isinstance(problem.loss, ExpectedCost) and problem.boxed
    return descended_by_cost if by_cost else None


def solve_together(tasks: Sequence[Task], device: str, budget: Budget) -> Ends:
    """The tree that each task leads to.

    Raises
    ------
    UnsupportedProblem
        If a problem is not one for this; see ``supports``.
    """
    places: dict[int, tuple[Group, int]] = {}
    shapes: dict[Any, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        reason = supports(task.problem)
        if reason is not None:
            raise UnsupportedProblem(f"training in lockstep {reason}; set device=None.")
        shapes[_shape(task.problem)].append(number)
    where = find_device(device)
    for members in shapes.values():
        at_once = _at_once(tasks[members[0]].problem)
        for low in range(0, len(members), at_once):
            numbers = members[low : low + at_once]
            with enough_memory(f"{len(numbers)} trees"):
                descended = _method(tasks[numbers[0]].problem)
                assert descended is not None  # ``supports`` has seen to it
                group = descended([tasks[i] for i in numbers], where, budget)
            places |= {number: (group, i) for i, number in enumerate(numbers)}
    return Ends([places[number] for number in range(len(tasks))])


def _at_once(problem: TrainingProblem) -> int:
    """Trees that descend together; fewer where rows are wide: each has its metric and its steps."""
    wide = problem.n_features + 1
    each = wide * (wide + STEPS_KEPT * problem.topology.n_branches)
    return int(min(AT_ONCE, max(1.0, NUMBERS // each)))


def _shape(problem: TrainingProblem) -> tuple[Any, ...]:
    """What problems of one batch have in common."""
    rows = problem.rows
    unit = problem.steepness / rows.n_features
    shape = problem.topology.n_branches, rows.n_features, rows.n_classes
    return *shape, unit, _method(problem), common_surrogate(problem)


def _descended(tasks: Sequence[Task], device: Any, budget: Budget) -> Group:
    """Trees of one shape."""
    problems = [task.problem for task in tasks]
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    homes = {id(problem.rows): problem.rows for problem in problems}
    folds = [samples_of(rows) for rows in homes.values()]
    table_of = {name: number for number, name in enumerate(homes)}
    tables = np.array([table_of[id(problem.rows)] for problem in problems])
    units = [_units(samples) for samples in folds]
    scale = FeatureScale.of(problems[0], units, tables)

    def column(values: Any, kind: Any = torch.float64) -> torch.Tensor:
        return torch.as_tensor(np.array(values), dtype=kind, device=device)

    batch = Batch(
        Pieces.of(folds, device, dtype, units),
        column(tables, torch.int32),
        problems[0].topology.n_branches,
        column([_pseudo(problem) for problem in problems], dtype),
        column(np.array([problem.ridge for problem in problems])[:, None] / scale.deviations**2),
    )
    penalty = BatchPenalty(
        common_surrogate(problems[0]),
        column([problem.penalties.local.strength for problem in problems]),
        column([problem.penalties.global_.strength for problem in problems]),
        column(1.0 / scale.deviations, dtype),
    )
    best, _, ended = descend(
        batch,
        penalty,
        column(scale.into(_vectors(tasks)), dtype),
        max_iter=budget.max_iter or OPTIONS.max_iter,
        tol=budget.tol * min(problem.cost_unit for problem in problems[:1]),
        decrease=OPTIONS.decrease,
        go_on=lambda: not budget.exhausted,
    )
    best = best.to(torch.float64)
    exact = batch.pieces if dtype == torch.float64 else None
    costs = batch.exact_value(best, exact or Pieces.of(folds, device, torch.float64, units))
    totals = costs + penalty.exact().value(batch.weights(best))
    return _group(
        problems,
        scale.back(best.cpu().numpy()),
        costs.cpu().numpy(),
        totals.cpu().numpy(),
        ended.tolist(),
        budget.verdict,
    )


def _vectors(tasks: Sequence[Task]) -> FloatArray:
    """The starts as parameter vectors, (n, size)."""
    known: dict[tuple[int, int], FloatArray] = {}
    for problem, start, _ in tasks:
        key = id(start), id(problem.rows)
        if key not in known:
            known[key] = SupportTree.of(start, problem).vector
    return np.array([known[id(start), id(problem.rows)] for problem, start, _ in tasks])


def _group(
    problems: Sequence[TrainingProblem],
    points: FloatArray,
    costs: FloatArray,
    objectives: FloatArray,
    ended: Sequence[bool],
    otherwise: Status,
) -> Group:
    """Parameter vectors as trees, all at once; as ``SupportTree.parameters``."""
    problem, count = problems[0], len(points)
    n_branches, n_features = problem.topology.n_branches, problem.n_features
    size = n_branches * (n_features + 1)
    splits = points[:, :size].reshape(count, n_branches, n_features + 1)
    weights = np.where(np.abs(splits[:, :, :-1]) > ZERO_WEIGHT, splits[:, :, :-1], 0.0)
    unit = problem.steepness / n_features
    thresholds = (0.5 * unit * weights.sum(axis=2) - splits[:, :, -1]) / problem.steepness
    odds = points[:, size:].reshape(count, problem.n_classes, n_branches + 1)
    shares = np.exp(odds - odds.max(axis=1, keepdims=True))
    leaves = shares / shares.sum(axis=1, keepdims=True)
    turned = np.ascontiguousarray(weights.transpose(0, 2, 1))
    none = np.zeros(count)
    return Group(problems, turned, thresholds, leaves, costs, objectives, none, ended, otherwise)


class FeatureScale(NamedTuple):
    """Mean and deviation of the standardised features z for every tree, (n, n_features)."""

    n_branches: int
    means: FloatArray
    deviations: FloatArray

    @classmethod
    def of(cls, problem: TrainingProblem, units: Sequence[Units], tables: Any) -> FeatureScale:
        unit = problem.steepness / problem.n_features
        means = unit * np.array([one.middle - 0.5 for one in units])
        deviations = unit * np.array([one.scale for one in units])
        return cls(problem.topology.n_branches, means[tables], deviations[tables])

    def into(self, points: FloatArray) -> FloatArray:
        """Points of drafts in the units of a batch."""
        made = points.copy()
        splits = self._splits(made)
        splits[:, :, -1] += np.einsum("btj,bj->bt", splits[:, :, :-1], self.means)
        splits[:, :, :-1] *= self.deviations[:, None]
        return made

    def back(self, points: FloatArray) -> FloatArray:
        """The way back."""
        made = points.copy()
        splits = self._splits(made)
        splits[:, :, :-1] /= self.deviations[:, None]
        splits[:, :, -1] -= np.einsum("btj,bj->bt", splits[:, :, :-1], self.means)
        return made

    def _splits(self, points: FloatArray) -> FloatArray:
        """Their splits, as a view."""
        wide = self.means.shape[1] + 1
        strides = (points.strides[0], wide * points.strides[1], points.strides[1])
        shape = (len(points), self.n_branches, wide)
        return np.lib.stride_tricks.as_strided(points, shape, strides)


def _units(samples: Samples) -> Units:
    """Mean and deviation of every feature; of those that hardly vary, a small one."""
    shares = samples.weights / samples.weights.sum()
    middle = samples.features @ shares
    deviation = np.sqrt((samples.features - middle[:, None]) ** 2 @ shares)
    return Units(middle, np.maximum(deviation, OPTIONS.smallest))


def _pseudo(problem: TrainingProblem) -> FloatArray:
    rule = problem.loss.leaf_rule
    assert isinstance(rule, CountedDistributions)
    return rule.pseudo_counts
