"""Callbacks of training: progress of starts, search, paths and candidates."""

from __future__ import annotations

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Solution


class Observer:
    """Base class of observers, which does nothing; subclasses override what they need.

    An observer never changes a result. Starts may end in several threads.
    """

    def starting(self, total: int) -> None:
        """``total`` starts are about to run."""

    def start_ended(self, number: int, rule: str, solution: Solution) -> None:
        """Start ``number``, counted from 1, has ended."""

    def searching(self) -> None:
        """The search around the best trees begins."""

    def hopped(self, done: int, objective: float) -> None:
        """``done`` perturbations were made; ``objective`` is the lowest so far."""

    def search_ended(self, solution: Solution) -> None:
        """The search has ended with ``solution``."""

    def point_ended(self, problem: TrainingProblem, solution: Solution) -> None:
        """A problem of a path is solved."""

    def candidate_judged(
        self,
        label: str,
        score: float,
        n_features: float,
        log_loss: tuple[float, float] | None = None,
    ) -> None:
        """A candidate of a cross-validation has been judged: score of its best tree, with how many
        features, and the log-loss if trees are compared by it, without and with the price of its
        size."""
