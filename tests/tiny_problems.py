"""Tiny problems for ``exhaustive.py``, and what the library makes of them."""

from __future__ import annotations

import numpy as np

from exhaustive import TinyProblem
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import Topology


def tiny(seed, depth, n_features, n_classes, surrogate=None, strength=0.05):
    rng = np.random.default_rng([seed, depth, n_features])
    n_rows = 8 if depth == 1 else 7
    X = np.round(rng.uniform(size=(n_rows, n_features)), 2)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)])
    costs = rng.uniform(0.3, 1.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    surrogate = exponential() if surrogate is None else surrogate
    return TinyProblem(X, y, costs, surrogate, strength, depth, steepness=64.0)


def trained(problem):
    """What the library finds, with the defaults of the estimator."""
    n_classes = len(problem.costs)
    asked = TrainingProblem(
        CompiledRows.from_arrays(problem.X, problem.y, n_classes),
        Topology(problem.depth),
        ExpectedCost(problem.costs),
        PenaltyPair.of(problem.surrogate, 0.0, problem.strength),
        np.zeros(n_classes),
        problem.steepness,
    )
    starts = multistart(asked, BasinHoppingSolver(), n_starts=10, seed=0)
    return asked, search_around(asked, BasinHoppingSolver(), starts, seed=0)
