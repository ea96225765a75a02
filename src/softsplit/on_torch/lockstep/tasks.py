"""Problems with trees to start from, and where they have led, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Solution, Status
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


class Task(NamedTuple):
    """A problem, the tree to start from, and others that may be started from instead."""

    problem: TrainingProblem
    start: TreeParameters
    candidates: tuple[TreeParameters, ...] = ()


@dataclass(frozen=True)
class Group:
    """Where tasks of one shape have led; arrays have an entry for each."""

    problems: Sequence[TrainingProblem]
    weights: FloatArray  # (n, n_features, n_branches)
    thresholds: FloatArray  # (n, n_branches)
    leaves: FloatArray  # (n, n_classes, n_leaves)
    costs: FloatArray  # (n,)
    objectives: FloatArray  # (n,)
    shortfalls: FloatArray  # (n,): by how much class rates are missed
    ended: Sequence[bool]
    otherwise: Status

    def solution(self, number: int) -> Solution:
        tree = TreeParameters(self.weights[number], self.thresholds[number], self.leaves[number])
        status = Status.ACCEPTABLE if self.ended[number] else self.otherwise
        cost = float(self.costs[number])
        return Solution.unmeasured(self.problems[number], tree, cost, status)


class Ends(Sequence[Solution]):
    """Where all tasks have led, in their order; a solution is made when it is asked for."""

    def __init__(self, places: Sequence[tuple[Group, int]]) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Solution: ...

    @overload
    def __getitem__(self, index: slice) -> list[Solution]: ...

    def __getitem__(self, index: int | slice) -> Solution | list[Solution]:
        if isinstance(index, slice):
            return [group.solution(number) for group, number in self._places[index]]
        group, number = self._places[index]
        return group.solution(number)

    @property
    def objectives(self) -> FloatArray:
        """That of every task."""
        return np.array([group.objectives[number] for group, number in self._places])

    @property
    def comparable(self) -> FloatArray:
        """The same, infinite where class rates are missed."""
        missed = np.array([group.shortfalls[number] for group, number in self._places])
        return np.where(missed <= FEASIBLE, self.objectives, np.inf)
