"""What trains by likelihood, called once in two halves: two processes may compile one each."""

from __future__ import annotations

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.likelihood.descent import Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.elimination import moves
from softsplit.solvers.likelihood.fisher import inverse_fisher
from softsplit.solvers.likelihood.growth import featureless_draft, grown
from softsplit.solvers.likelihood.search import Descents, class_shares
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import TreeParameters


def call_descent(problem: TrainingProblem) -> None:
    """A step of a descent."""
    descents, draft = _tried(problem)
    descents.descend(draft, Smoothing(1.0, 1.0, 1.0), 1, 1.0)


def call_prices(problem: TrainingProblem) -> None:
    """Prices, the Fisher information, and starts."""
    descents, draft = _tried(problem)
    moves(draft, descents.field, 1.0, 1)
    inverse_fisher(draft.vector, descents.field, 1.0, draft.free, draft.shape)
    grown(grown(featureless_draft(descents.field), descents.field), descents.field)
    draw_start("growth", problem, np.random.default_rng(0), 1)


def _tried(problem: TrainingProblem) -> tuple[Descents, Draft]:
    """Descents on the rows of a problem, and a tree of the right shape."""
    n_branches = problem.topology.n_branches
    leaves = np.repeat(class_shares(problem)[:, None], n_branches + 1, axis=1)
    weights = np.ones((problem.n_features, n_branches))
    tree = TreeParameters(weights, np.full(n_branches, 0.5), leaves)
    return Descents(problem, Budget(), problem.rows.sample()), Draft.of(tree, problem)
