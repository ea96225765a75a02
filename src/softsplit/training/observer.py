"""Callbacks of training: progress of starts, search, paths and candidates."""

from __future__ import annotations

from dataclasses import dataclass

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Solution


@dataclass(frozen=True)
class JudgedCandidate:
    """What is told of a candidate: the best of its trees that were compared.

    Attributes
    ----------
    label : str
        Its settings.
    score : float
    accuracy : bool
        Whether the score is the accuracy.
    n_features : float
        Mean over the folds.
    log_loss : pair of float, optional
        Without and with the price of its size, if trees are compared by it.
    folds, n_folds : int
        Folds on which it was judged, and all folds.
    dropped : bool
        Whether it was left after fewer folds than others, because it was behind.
    unfinished : bool
        Whether time ran out, or the user stopped, before its last fold.
    again : bool
        Whether it was judged before, at fewer strengths.
    chosen : bool
    """

    label: str
    score: float
    accuracy: bool
    n_features: float
    log_loss: tuple[float, float] | None
    folds: int
    n_folds: int
    dropped: bool = False
    unfinished: bool = False
    again: bool = False
    chosen: bool = False


class Observer:
    """Base class of observers, which does nothing; subclasses override what they need.

    An observer never changes a result. Starts may end in several threads.
    """

    def working(self, what: str, total: int = 0) -> None:
        """Work of ``total`` parts begins; 0 if its parts are not known."""

    def part_ended(self) -> None:
        """One of the parts is done."""

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

    def candidate_judged(self, judged: JudgedCandidate) -> None:
        """A candidate of a cross-validation has been judged, or chosen."""
