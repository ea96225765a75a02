"""How far a fit is, in words: what runs now, how much of it is done, how long it may take still.

Where the words are shown is ``support/status_line.py``; all of it goes to standard error.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution
from softsplit.support.status_line import Activity, finish_line, seconds, status_line, time_left
from softsplit.training.observer import JudgedCandidate, Observer


class ConsoleProgress(Observer):
    """Shows starts, search, points of a path and candidates, where ``shown`` is entered.

    Parameters
    ----------
    budget : Budget
        Its clock tells the time gone, and the time left where there is a limit.
    n_points : int
        Points of the path that is walked; 0 for a single fit.
    """

    def __init__(self, budget: Budget, n_points: int = 0) -> None:
        self._budget, self._lock = budget, threading.RLock()
        self._points, self._n_points = 0, n_points
        self._stage, self._done, self._total = "training", 0, 0
        self._best: float | None = None
        self._stage_began = self._point_began = budget.now()

    def shown(self) -> AbstractContextManager[None]:
        """Show it while a block runs."""
        return status_line(self.status)

    def working(self, what: str, total: int = 0) -> None:
        with self._lock:
            self._stage, self._done, self._total = what, 0, total
            self._stage_began = self._budget.now()

    def part_ended(self) -> None:
        with self._lock:
            self._done += 1

    def starting(self, total: int) -> None:
        self.working("training from several starts" if total > 1 else "training", total)
        self._best = None

    def start_ended(self, number: int, rule: str, solution: Solution) -> None:
        with self._lock:
            self._done += 1
            if solution.status.usable and self._is_lower(solution.objective):
                self._best = solution.objective
            best = "none yet" if self._best is None else f"{self._best:.6g}"
            told = f"objective {solution.objective:.6g}" if solution.status.usable else "no tree"
            finish_line(
                f"start {number} of {self._total}: {told}, best {best}, {solution.seconds:.1f} s"
            )

    def searching(self) -> None:
        self.working("searching around the best trees")

    def hopped(self, done: int, objective: float) -> None:
        self._done = done
        if self._is_lower(objective):
            self._best = objective

    def search_ended(self, solution: Solution) -> None:
        taken = seconds(self._budget.now() - self._stage_began)
        finish_line(f"search: {self._done} tries, objective {solution.objective:.6g}, {taken}")
        if solution.search is not None:
            finish_line(f"{solution.search}")

    def point_ended(self, problem: TrainingProblem, solution: Solution) -> None:
        self._points += 1
        now = self._budget.now()
        taken, self._point_began = now - self._point_began, now
        pair, n_used = problem.penalties, problem.n_used(solution.parameters.weights != 0)
        finish_line(
            f"tree {self._points} of {self._n_points}: local strength {pair.local.strength:.4g}, "
            f"global strength {pair.global_.strength:.4g}, {_features(n_used)}, "
            f"objective {solution.objective:.6g}, {taken:.1f} s"
        )

    def candidate_judged(self, judged: JudgedCandidate) -> None:
        accuracy, other = f"accuracy {100 * judged.score:.1f} %", f"score {judged.score:.4f}"
        parts = [accuracy if judged.accuracy else other]
        if judged.log_loss is not None:
            loss, priced = judged.log_loss
            parts.append(f"log-loss {loss:.4f} ({priced:.4f} with the penalty for size)")
        parts.append(_features(judged.n_features))
        if judged.folds < judged.n_folds:
            parts.append(f"on {judged.folds} of {judged.n_folds} folds")
        notes = {
            "at more strengths": judged.again,
            "dropped": judged.dropped,
            "not finished": judged.unfinished,
        }
        parts += [note for note, holds in notes.items() if holds]
        finish_line(f"{'chosen: ' if judged.chosen else ''}{judged.label}: {', '.join(parts)}")

    # --- the words --------------------------------------------------------------------------------

    def status(self) -> Activity:
        """What runs now, how far it is, and how long still."""
        with self._lock:
            stage, done, total = self._stage, self._done, self._total
            part = done / total if total else None
            words = [f"softsplit: {stage}"]
            if total > 1:
                words.append(f"{done} of {total} done")
            elif done and not total:
                words.append(f"{done} tries")
            if self._n_points:
                words.append(f"{self._points} of {self._n_points} trees of the path")
            if self._best is not None and (total > 1 or not total):
                words.append(f"best objective {self._best:.6g}")
            times = [seconds(self._budget.elapsed), self._left(part)]
            return Activity(", ".join(words), ", ".join(filter(None, times)), part)

    def _left(self, part: float | None) -> str:
        """How long it may take still, as far as that is known."""
        about = None
        if part:
            about = (self._budget.now() - self._stage_began) * (1 - part) / part
        if self._budget.time_limit is not None:
            most = max(self._budget.remaining, 0.0)
            if about is None or about > most:
                return time_left(most)
        return "" if about is None else f"this step about {seconds(about)} more"

    def _is_lower(self, objective: float) -> bool:
        return self._best is None or objective < self._best


def _features(count: float) -> str:
    """A number of features, which may be a mean over folds."""
    whole = round(count, 1)
    return f"{whole:g} feature{'' if whole == 1 else 's'}"
