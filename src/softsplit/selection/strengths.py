"""TODO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from softsplit.problem.penalties import Penalty, PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import max_strength
from softsplit.support.arguments import positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

PathScope = Literal["local", "global", "both"]


PAPER_STRENGTHS = tuple(2.0**r for r in range(-8, 6))


SMALLEST_FRACTION = 1e-3
"""The default grid ends at this part of the largest strength."""


def _given(strengths: Sequence[float] | str | None) -> FloatArray | None:
    """Strengths that the user has named, checked and in ascending order."""
    if strengths is None:
        return None
    if isinstance(strengths, str):
        if strengths != "paper":
            raise ValueError(f"strengths must be numbers or 'paper', got {shown(strengths)}.")
        return np.array(PAPER_STRENGTHS)
    if not np.iterable(strengths):
        raise ValueError(f"strengths must be a sequence of numbers, got {shown(strengths)}.")
    values = sorted(positive_number("strengths", s, zero=True) for s in strengths)
    if not values:
        raise ValueError("strengths is empty; name at least one strength.")
    return np.array(values)


def _default_grid(problem: TrainingProblem, scope: PathScope, n_points: int) -> FloatArray:
    """Strengths up to that of Proposition 1, in ascending order."""
    if problem.minimum_rates.sum() > 1:  # no all-zero tree meets the rates: there is no bound
        return np.array(PAPER_STRENGTHS)
    free = with_strengths(problem, 0.0, 0.0)
    top = max_strength(free, "local" if scope == "local" else "global")
    if not 0 < SMALLEST_FRACTION * top < np.inf:
        return np.array(PAPER_STRENGTHS)
    return np.geomspace(SMALLEST_FRACTION * top, top, n_points)


def _pairs(
    grid: FloatArray, scope: PathScope, problem: TrainingProblem
) -> list[list[tuple[float, float]]]:
    """Rows of (local, global) strengths; each row is walked from its weakest pair."""
    local, overall = problem.penalties.local.strength, problem.penalties.overall.strength
    if scope == "local":
        return [[(float(s), overall) for s in grid]]
    if scope == "global":
        return [[(local, float(s)) for s in grid]]
    return [[(float(a), float(b)) for b in grid] for a in grid]


def with_strengths(problem: TrainingProblem, local: float, overall: float) -> TrainingProblem:
    """The problem with other strengths of its local and its global penalty."""
    pair = problem.penalties
    return problem.with_penalties(
        PenaltyPair(
            Penalty(local, pair.local.surrogate, "local"),
            Penalty(overall, pair.overall.surrogate, "global"),
        )
    )


SHARES = {"global": (0.0, 1.0), "local": (1.0, 0.0), "both": (0.5, 0.5)}
"""Parts of the strength that go to the local and to the global penalty."""


def strengths(scope: str, strength: float) -> tuple[float, float]:
    """Local and global strength."""
    local, overall = SHARES[scope]
    return local * strength, overall * strength


def featureless_cost(problem: TrainingProblem) -> float:
    """The loss of the best tree that uses no feature: the unit of strengths."""
    return problem.loss.featureless(problem.rows.class_totals)
