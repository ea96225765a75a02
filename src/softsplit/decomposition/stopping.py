"""Stopping rules: asked after every macro-iteration; the first that is met ends the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softsplit.decomposition.trace import EvaluationSet, History
from softsplit.problem.optimality import kkt
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE
from softsplit.support.arguments import positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.tree.parameters import TreeParameters


class StoppingRule(Protocol):
    """Says when a run has gone far enough.

    A rule that looks at rows of the user's may have two methods more: ``check(problem)``, called
    before a run, and ``adapted(transform, classes)``, which returns the rule for a training
    problem; see ``ValidationAccuracy``.
    """

    def reached(self, history: History) -> bool: ...


@runtime_checkable
class Chooser(Protocol):
    """A stopping rule that also says which tree of the run to return instead of the last."""

    def chosen(self, history: History) -> int: ...


@dataclass(frozen=True)
class MacroIterations:
    """Stop after so many macro-iterations."""

    count: int

    def __post_init__(self) -> None:
        positive_integer("count of MacroIterations", self.count)

    def reached(self, history: History) -> bool:
        return history.rows[-1].macro_iteration >= self.count


@dataclass(frozen=True)
class ProcessorTime:
    """Stop after the macro-iteration in which so many CPU seconds are spent.

    The ``time_limit`` of the estimator also stops in the middle of one.
    """

    cpu_seconds: float

    def __post_init__(self) -> None:
        positive_number("cpu_seconds of ProcessorTime", self.cpu_seconds)

    def reached(self, history: History) -> bool:
        return history.rows[-1].cpu_seconds >= self.cpu_seconds


@dataclass(frozen=True)
class Residual:
    """Stop where the KKT residual of the whole problem is at most ``tol`` cost units."""

    tol: float = 1e-4

    def __post_init__(self) -> None:
        positive_number("tol of Residual", self.tol)

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

    def __post_init__(self) -> None:
        if not isinstance(self.rows, EvaluationSet):
            raise ValueError(
                "rows of ValidationAccuracy must be an EvaluationSet(X, y), got "
                f"{shown(self.rows)}."
            )
        positive_integer("patience of ValidationAccuracy", self.patience)

    def reached(self, history: History) -> bool:
        return len(history.trees) - 1 - self.chosen(history) >= self.patience

    def chosen(self, history: History) -> int:
        return int(np.argmax([self._merit(history.problem, tree) for tree in history.trees]))

    def _merit(self, problem: TrainingProblem, tree: TreeParameters) -> float:
        violation = problem.violation(tree).largest
        return -violation if violation > FEASIBLE else self.rows.accuracy(tree, problem.steepness)

    def check(self, problem: TrainingProblem) -> None:
        self.rows.check(problem.n_features)

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> ValidationAccuracy:
        return replace(self, rows=self.rows.adapted(transform, classes))
