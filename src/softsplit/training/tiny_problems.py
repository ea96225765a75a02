"""Small problems that need all compiled code of training."""

from __future__ import annotations

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost, LogLoss
from softsplit.problem.penalties import PenaltyPair, Surrogate, counting, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Topology


def tiny_problems() -> list[TrainingProblem]:
    """Return problems by cost: one split between two classes, and three between three."""
    return [tiny_problem(2, 1), tiny_problem(3, 2)]


def tiny_problem(n_classes: int, depth: int) -> TrainingProblem:
    """Return a problem by cost with two features, both penalties, and class rates."""
    return TrainingProblem(
        tiny_rows(n_classes),
        Topology(depth),
        ExpectedCost.uniform(n_classes),
        PenaltyPair.of(exponential(), 0.1, 0.1),
        np.full(n_classes, 0.1),
    )


def tiny_likelihoods() -> list[TrainingProblem]:
    """Return the same by likelihood, one with a smooth penalty and one that counts."""
    return [tiny_likelihood(2, 1, exponential()), tiny_likelihood(3, 2, counting())]


TINY_PROBLEMS = {"log": tiny_likelihoods, "cost": tiny_problems}
"""Small problems by the compiled code that they need."""


def tiny_likelihood(n_classes: int, depth: int, surrogate: Surrogate) -> TrainingProblem:
    """Return a problem by likelihood with two features, both penalties and a ridge."""
    rows = tiny_rows(n_classes)
    return TrainingProblem(
        rows,
        Topology(depth),
        LogLoss.counted(rows.group_totals),
        PenaltyPair.of(surrogate, 0.1, 0.1),
        np.zeros(n_classes),
        steepness=6.0,
        bounds=Bounds.free(2, Topology(depth).n_branches),
        ridge=1.0,
    )


def tiny_rows(n_classes: int, n_rows: int = 30) -> CompiledRows:
    """Return rows of two features, as many of each class."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_rows) % n_classes
    X = rng.uniform(size=(n_rows, 2)) + labels[:, None]
    return CompiledRows(Samples.from_arrays(X, labels, n_classes))
