"""Strengths of the penalties: their unit, grids, and shares of local and global penalty.

The unit of a strength is the loss of the best tree that uses no feature: under the "l0" penalty a
feature enters if it lowers the loss by about its fraction of that. A fraction means the same on
every fold and under every scaling, steepness and depth.

Users see the strength of a tree as one number, the price of a feature (``price``): the global
strength, or the local one where features cost nothing. What is chosen or walked is rounded to a few
digits, so that the number that is printed is the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from softsplit.formulations.base import COUNT_FRACTIONS, SLOPE_FRACTIONS, fraction_grid
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import max_strength
from softsplit.support.arguments import positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.training.preparation import with_strengths

PathScope = Literal["local", "global", "both"]

Pair = tuple[float, float]
"""Local and global strength, or the parts of a strength that go to each."""

PAPER_STRENGTHS = tuple(2.0**r for r in range(-8, 6))

SMALLEST_PART = 1e-3
"""The default grid of a path ends at this part of the largest strength."""

SHARES: dict[str, Pair] = {
    "global": (0.0, 1.0),
    "local": (1.0, 0.0),
    "both": (0.5, 0.5),
    "size": (0.2, 0.8),
}
"""Parts of the strength that go to the local and to the global penalty, by scope; "size" as
elimination weighs them, a feature four times as much as a coefficient."""

PRINTED_DIGITS = 4
"""Significant digits of a strength that is chosen: a price changes by less than 0.05 %."""

GIVEN_DIGITS = 12
"""Significant digits that a given strength keeps on its way through fractions of the unit."""


# --- units --------------------------------------------------------------------------------------


def strength_unit(problem: TrainingProblem) -> float:
    """Return the loss of the best tree that uses no feature."""
    return problem.loss.featureless(problem.rows.group_totals)


def shared(shares: Pair, strength: float) -> Pair:
    """Return local and global strength from their shares of ``strength``."""
    return shares[0] * strength, shares[1] * strength


def price(local: float, global_: float) -> float:
    """Return the strength of a tree as users see it: what a feature costs, else a coefficient."""
    return global_ if global_ > 0 else local


def priced(shares: Pair, strength: float, digits: int = PRINTED_DIGITS) -> Pair:
    """Return local and global strength in the ratio of ``shares`` with the price ``strength``.

    The price is rounded to ``digits`` significant digits.
    """
    unit, strength = price(*shares), _rounded(strength, digits)
    local, global_ = (_rounded(part / unit * strength, digits + 2) for part in shares)
    return local, global_


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def strengths_at(problem: TrainingProblem, shares: Pair, fraction: float) -> Pair:
    """Return local and global strength at a fraction of the unit."""
    return shared(shares, fraction * strength_unit(problem))


def shares_of(local: float, global_: float) -> Pair:
    """Return the shares of two strengths in their sum; all is global where both are zero."""
    total = local + global_
    part = local / total if total > 0 else 0.0
    return part, 1 - part


# --- grids --------------------------------------------------------------------------------------


def given_grid(strengths: Sequence[float] | str | None) -> FloatArray | None:
    """Return strengths that the user gave, checked and in ascending order."""
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


def bound_grid(problem: TrainingProblem, scope: PathScope, n_points: int) -> FloatArray:
    """Return strengths up to that of Proposition 1, in ascending order.

    Without bounds on the coefficients the all-zero tree is always stationary: the grid then holds
    fractions of the featureless loss.
    """
    if not problem.boxed:
        ends = COUNT_FRACTIONS if problem.penalties.counts else SLOPE_FRACTIONS
        fractions = fraction_grid(n_points, ends)
        return strength_unit(problem) * np.array(fractions)
    if problem.minimum_rates.sum() > 1:  # no all-zero tree meets the rates: there is no bound
        return np.array(PAPER_STRENGTHS)
    free = with_strengths(problem, 0.0, 0.0)
    top = max_strength(free, "local" if scope == "local" else "global")
    if not 0 < SMALLEST_PART * top < np.inf:
        return np.array(PAPER_STRENGTHS)
    return np.geomspace(SMALLEST_PART * top, top, n_points)


def grid_pairs(
    grid: FloatArray, scope: PathScope, problem: TrainingProblem, local_part: float = 0.0
) -> list[list[Pair]]:
    """Return rows of (local, global) strengths, each from its weakest pair.

    Where the global strength varies, the local one is ``local_part`` of it, or constant if that
    is 0.
    """
    local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
    if scope == "local":
        return [[(float(s), global_) for s in grid]]
    if scope == "global":
        return [[(local_part * float(s) or local, float(s)) for s in grid]]
    return [[(float(a), float(b)) for b in grid] for a in grid]
