"""Problems of a few rows, with which compiled functions are called for the first time."""

from __future__ import annotations

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.loss import ExpectedCost, LogLoss
from softsplit.problem.penalties import PenaltyPair, Surrogate, counting, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Topology

N_ROWS = 30


def tiny_problems() -> list[TrainingProblem]:
    """One split between two classes, and three between three."""
    return [tiny_problem(2, 1), tiny_problem(3, 2)]


def tiny_problem(n_classes: int, depth: int) -> TrainingProblem:
    """Two features, both penalties, and class rates."""
    return TrainingProblem(
        tiny_rows(n_classes),
        Topology(depth),
        ExpectedCost.uniform(n_classes),
        PenaltyPair.of(exponential(), 0.1, 0.1),
        np.full(n_classes, 0.1),
    )


def tiny_likelihoods() -> list[TrainingProblem]:
    """The same by likelihood, with a penalty of each kind."""
    return [tiny_likelihood(2, 1, exponential()), tiny_likelihood(3, 2, counting())]


def tiny_likelihood(n_classes: int, depth: int, surrogate: Surrogate) -> TrainingProblem:
    """Two features, both penalties and a ridge; no box."""
    rows = tiny_rows(n_classes)
    return TrainingProblem(
        rows,
        Topology(depth),
        LogLoss.counted(rows.class_totals),
        PenaltyPair.of(surrogate, 0.1, 0.1),
        np.zeros(n_classes),
        steepness=6.0,
        bound=np.inf,
        ridge=1.0,
    )


def tiny_rows(n_classes: int) -> CompiledRows:
    """Rows of two features, as many of each class."""
    rng = np.random.default_rng(0)
    labels = np.arange(N_ROWS) % n_classes
    X = rng.uniform(size=(N_ROWS, 2)) + labels[:, None]
    return CompiledRows(Samples.from_arrays(X, labels, n_classes))
