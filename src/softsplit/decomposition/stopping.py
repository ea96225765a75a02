"""Stopping rules: asked after every macro-iteration; the first that is met ends the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softsplit.decomposition.evaluation import EvaluationSet
from softsplit.decomposition.trace import TraceRow
from softsplit.optimality import kkt
from softsplit.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE
from softsplit.tree import FloatArray, TreeParameters


@dataclass(frozen=True)
class History:
    """The run so far: a row and a tree for every macro-iteration, the start included."""

    problem: TrainingProblem
    rows: Sequence[TraceRow]
    trees: Sequence[TreeParameters]


class StoppingRule(Protocol):
    """Says when a run has gone far enough."""

    def reached(self, history: History) -> bool: ...


@runtime_checkable
class Chooser(Protocol):
    """A stopping rule that also says which tree of the run to return instead of the last."""

    def chosen(self, history: History) -> int: ...


@dataclass(frozen=True)
class MacroIterations:
    """Stop after so many macro-iterations."""

    count: int

    def reached(self, history: History) -> bool:
        return history.rows[-1].macro_iteration >= self.count


@dataclass(frozen=True)
class ProcessorTime:
    """Stop after the macro-iteration in which so many CPU seconds are spent.

    The ``time_limit`` of the estimator also stops in the middle of one.
    """

    cpu_seconds: float

    def reached(self, history: History) -> bool:
        return history.rows[-1].cpu_seconds >= self.cpu_seconds


@dataclass(frozen=True)
class Residual:
    """Stop where the KKT residual of the whole problem is at most ``tol`` cost units."""

    tol: float = 1e-4

    def reached(self, history: History) -> bool:
        problem = history.problem
        return kkt(problem, history.trees[-1]).residual <= self.tol * problem.cost_unit


@dataclass(frozen=True)
class ValidationAccuracy:
    """Stop when the accuracy on other rows has not risen for ``patience`` macro-iterations.

    The feasible tree with the best accuracy is returned, the earliest among equals; while none is
    feasible, the one that violates the constraints least.

    Parameters
    ----------
    rows : EvaluationSet
    patience : int
    """

    rows: EvaluationSet
    patience: int = 3

    def reached(self, history: History) -> bool:
        return len(history.trees) - 1 - self.chosen(history) >= self.patience

    def chosen(self, history: History) -> int:
        return int(np.argmax([self._merit(history.problem, tree) for tree in history.trees]))

    def _merit(self, problem: TrainingProblem, tree: TreeParameters) -> float:
        violation = problem.violation(tree).largest
        return -violation if violation > FEASIBLE else self.rows.accuracy(tree, problem.steepness)

    def adapted(
        self, transform: Callable[[FloatArray], FloatArray], classes: NDArray[Any]
    ) -> ValidationAccuracy:
        return replace(self, rows=self.rows.adapted(transform, classes))
