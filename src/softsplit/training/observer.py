"""What training tells while it runs: how far it is."""

from __future__ import annotations

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Solution


class Observer:
    """Told what has happened, and says nothing; others override what they need.

    Nothing that an observer does changes a result. Starts may end in several threads.
    """

    def starting(self, total: int) -> None:
        """So many starts are about to run."""

    def start_ended(self, number: int, rule: str, solution: Solution) -> None:
        """Start ``number``, counted from 1, came to its end."""

    def searching(self) -> None:
        """Hops around the best trees are about to be made."""

    def hopped(self, done: int, objective: float) -> None:
        """``done`` hops are made; the lowest objective so far."""

    def search_ended(self, solution: Solution) -> None:
        """The search is over, and this is the best tree."""

    def point_ended(self, problem: TrainingProblem, solution: Solution) -> None:
        """A problem of a path is solved."""

    def candidate_judged(self, label: str, score: float, n_features: float) -> None:
        """A candidate of a cross-validation has been judged: its best score, with how many
        features."""
