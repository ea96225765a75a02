"""How the time of a choice is shared by comparing and training, and what is said at its end."""

from __future__ import annotations

from dataclasses import replace

from softsplit.solvers import Budget
from softsplit.support.convergence import CutShortWarning
from softsplit.training.run import End

SEARCH_SHARE = 0.8
"""Part of a time limit that goes to the comparison; the rest is for the tree on all rows."""


def search_budget(whole: Budget) -> Budget:
    """The part of the time that goes to the comparison; Ctrl-C ends both."""
    limit = whole.time_limit
    return whole if limit is None else replace(whole, time_limit=SEARCH_SHARE * limit)


def end_of(budget: Budget) -> End:
    """Why a budget is exhausted."""
    return End.INTERRUPTED if budget.stopped else End.TIME_LIMIT


def cut_short(reason: str, budget: Budget) -> CutShortWarning:
    return CutShortWarning("SoftTreeClassifierCV", reason, budget.stopped)


def reason_of(budget: Budget) -> str:
    return "interrupted" if budget.stopped else "the time limit was reached"


def refit_budget(whole: Budget, time_limit: float | None) -> Budget:
    """For the tree on all rows: an interrupted comparison still ends with one."""
    left = None
    if time_limit is not None:
        left = max(time_limit - whole.elapsed, (1 - SEARCH_SHARE) * time_limit)
    return Budget(whole.max_iter, whole.tol, left)
