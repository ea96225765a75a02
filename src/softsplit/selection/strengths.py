"""What a choice varies: strengths of the penalties, with their unit and grids, and other settings.

The unit of a strength is the loss of the best tree that uses no feature: under the "l0" penalty a
feature enters if it lowers the loss by about its fraction of that. A fraction means the same on
every fold and under every scaling, steepness and depth.

Users see the strength of a tree as one number, the price of a feature (``price``): the global
strength, or the local one where features cost nothing. What is chosen or walked is rounded to a few
digits, so that the number that is printed is the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.metrics import check_scoring, get_scorer_names

from softsplit.formulations import ChoiceRules, Formulation, formulation_of, is_auto, settings
from softsplit.formulations.base import COUNT_FRACTIONS, SLOPE_FRACTIONS, fraction_grid
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import max_strength
from softsplit.support.arguments import MOST_RUNS, positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, nearest, shown, unfit
from softsplit.support.row_budgets import ROWS
from softsplit.training.preparation import with_strengths
from softsplit.training.rows import Rows
from softsplit.tree.parameters import Topology

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
            raise unfit("strengths", strengths, "must be numbers or 'paper'")
        return np.array(PAPER_STRENGTHS)
    if not np.iterable(strengths):
        raise unfit("strengths", strengths, "must be a sequence of numbers")
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


# --- other settings -------------------------------------------------------------------------------

CLASS_COEFFICIENTS = 330.0
"""Trees of many rows may have this many coefficients for each class: with 26 classes a seventh
level found 2 to 4 points more of new rows."""

Axes = dict[str, Sequence[Any]]
"""Values of each setting to choose from."""


def make_axes(
    loss: Any, scales: Any, penalties: Any, scopes: Any, steepnesses: Any, ridges: Any
) -> Axes:
    """Return the values of each setting of a candidate; depths depend on the classes and follow."""
    formulation = formulation_of(loss)
    given = {"scales": scales, "penalties": penalties, "scopes": scopes}
    given |= {"steepnesses": steepnesses, "ridges": ridges}
    values = {
        name: formulation.choice.axes[name] if is_auto(value) else _values(name, value)
        for name, value in given.items()
    }
    for scale in values["scales"]:
        settings.make_scale(scale)
    for penalty in values["penalties"]:
        if penalty is None or penalty not in settings.PENALTIES:
            raise ValueError(f"penalties holds {shown(penalty)}, which has no strength to choose.")
    for scope in values["scopes"]:
        if scope not in SHARES:
            raise unfit("scopes", scope, f"must be of {', '.join(map(repr, SHARES))}")
    gammas = [formulation.check_steepness("steepnesses", s) for s in values["steepnesses"]]
    return {
        "scale": values["scales"],
        "depth": (),
        "steepness": gammas,
        "penalty": values["penalties"],
        "scope": values["scopes"],
        "loss": [loss],
        "ridge": [positive_number("ridges", ridge, zero=True) for ridge in values["ridges"]],
    }


def make_depths(
    depths: Any,
    n_classes: int,
    n_rows: int,
    choice: ChoiceRules,
    max_questions: int | None = None,
    n_columns: int = 1,
) -> list[int]:
    """Return depths in ascending order; "auto" depends on the numbers of classes, rows and columns.

    A tree of so many questions needs no more levels than these.
    """
    smallest = Topology.with_leaves(n_classes).depth
    if not isinstance(depths, str):
        values = sorted({positive_integer("depths", d) for d in _values("depths", depths)})
        if values[0] < smallest and choice.leaf_per_class:
            raise ValueError(
                f"depths holds {values[0]}, but {n_classes} classes need depth {smallest} at "
                "least: each class needs a leaf."
            )
        return values
    if depths != "auto":
        raise unfit("depths", depths, "must be 'auto' or a sequence of integers")
    leaves = n_rows / choice.rows_per_leaf
    if n_rows > ROWS.halved:
        most = max(choice.most_coefficients, CLASS_COEFFICIENTS * n_classes)
        leaves = min(leaves, most / n_columns)
    deepest = max(smallest + 1, int(np.log2(max(leaves, 1))))
    deepest = min(deepest, max_questions or deepest)
    return list(range(min(smallest, deepest), deepest + 1))


def make_fractions(
    strengths: Any, n_strengths: Any, unit: float, loss: float, formulation: Formulation
) -> tuple[float, ...]:
    """Return strengths as fractions of their unit, in ascending order.

    ``loss`` is the unit on the rows that candidates are compared on, each of weight 1.
    """
    if strengths is None:
        count = None
        if not is_auto(n_strengths):
            count = positive_integer("n_strengths", n_strengths, MOST_RUNS)
        return formulation.fractions(count, loss)
    given = _values("strengths", strengths)
    values = sorted({positive_number("strengths", s, zero=True) for s in given})
    return tuple(value / unit for value in values)


def make_scorer(estimator: Any, scoring: Any) -> Any:
    """Return the scorer that ``scoring`` names; None is accuracy."""
    if scoring is None:
        return None
    name = scoring if isinstance(scoring, str) else ""
    if not callable(scoring) and name not in get_scorer_names():
        close = nearest(name, get_scorer_names())
        hint = f"did you mean {close}?" if close else "try 'balanced_accuracy'."
        raise ParameterError(
            "scoring",
            scoring,
            "must be None, a callable or the name of a scorer of scikit-learn, got "
            f"{shown(scoring)}; {hint}",
            typed=f"must be the name of a scorer of scikit-learn, got {shown(scoring)}; {hint}",
        )
    return check_scoring(estimator, scoring=scoring)


def different_scales(scales: Sequence[str], rows: Rows) -> Sequence[str]:
    """Drop "quantile" where it equals the other scalings: no column has three values."""
    known = "quantile" in scales and {"minmax", "standard"} & set(scales)
    if not known or not rows.two_valued:
        return scales
    return [scale for scale in scales if scale != "quantile"]


def _values(name: str, given: Any) -> list[Any]:
    """Return a nonempty list of distinct values."""
    if isinstance(given, str) or not np.iterable(given):
        raise unfit(name, given, "must be a sequence")
    try:
        values = list(dict.fromkeys(given))
    except TypeError:  # a list or an array in a place of one value
        raise unfit(name, given, "must be a flat sequence") from None
    if not values:
        raise ValueError(f"{name} is empty; name at least one value.")
    return values
