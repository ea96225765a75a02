"""Leaf functions as they are printed: fewer terms, then fewer digits.

A term that is the same for all training rows of a leaf goes into its constant, and a hinge that all
of them exceed into the slope of its number. Then the slopes of a leaf are rounded to as few digits
as leave its predictions within ``MOVED`` of its typical error s,

    |u'_j - u_j| deviation(x_j) <= MOVED s / sqrt(terms),    a' = a + sum_j (u_j - u'_j) mean(x_j),

and the root mean square move of all terms together is checked; else the share is halved. The bounds
of a leaf are rounded outwards to the place of its constant; where there are none they are the ends
of its scores. Under a log link the digits are those of factors (``leaf_factors``). ``predict``
computes with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.leaf_factors import short_slope
from softsplit.fitted.walk_rounding import of_one_sign
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_functions import LeafFunctions
from softsplit.variables import Coding

MOVED = 0.06
"""Part of the typical error of a leaf by which rounding may move its predictions."""

LEAST = 1e-4
"""Part of the deviation of the target below which no error counts: exact targets have digits."""

MOST_DIGITS = 15


def printed_functions(
    functions: LeafFunctions,
    X: FloatArray,
    weights: FloatArray,
    errors: FloatArray,
    coding: Coding | None,
    monotone: Sequence[NDArray[np.intp]] = (),
    *,
    log_link: bool = False,
) -> LeafFunctions:
    """Return the functions with the coefficients that are printed.

    Parameters
    ----------
    functions : LeafFunctions
    X : array of shape (n_rows, n_features)
        Training rows in original units.
    weights : array of shape (n_leaves, n_rows)
        What each row counts in each leaf; where no row does, the constant is left.
    errors : array of shape (n_leaves,)
        Typical errors of the scores of the leaves, none of them zero.
    coding : Coding, optional
    monotone : sequence of int arrays
        Features of each monotone variable, its value and its hinges: rounding keeps the sign of
        all slopes.
    """
    constants, slopes = functions.constants.copy(), functions.slopes.copy()
    low, high = functions.low.copy(), functions.high.copy()
    for leaf, allowed in enumerate(MOVED * errors):
        # 1. Constant and slopes in the fewest digits that the rows of the leaf allow.
        here = np.flatnonzero(weights[leaf] > 0)
        constant, own = float(constants[leaf]), slopes[:, leaf]  # a view
        if len(here):
            rows = np.asarray(X[here], dtype=float)
            constant = _settled(constant, own, rows, coding)
            used = np.flatnonzero(own)
            known = rows[:, used], weights[leaf, here]
            curved = [np.flatnonzero(np.isin(used, features)) for features in monotone]
            links = [_link(log_link, coding, j) for j in used.tolist()]
            constant, own[used] = _rounded(constant, own[used], *known, allowed, curved, links)
            scores = constant + rows[:, used] @ own[used]
        else:
            own[:], scores = 0.0, np.array([constant])
        # 2. Bounds of the scores: those of the rows where none are given.
        if not np.isfinite(low[leaf]):
            low[leaf], high[leaf] = scores.min(), scores.max()
        # 3. The constant, and bounds rounded outwards: as factors with a log link.
        if log_link:
            constants[leaf] = short_slope(constant, allowed, indicator=True)
            for ends, side in ((low, -0.5), (high, 0.5)):
                end = float(ends[leaf]) + side * allowed
                ends[leaf] = short_slope(end, 0.5 * allowed, indicator=True)
            continue
        place = _place(allowed)
        constants[leaf] = round(constant, place) + 0.0
        low[leaf] = round(float(low[leaf]) - 0.5 * 10.0**-place, place) + 0.0
        high[leaf] = round(float(high[leaf]) + 0.5 * 10.0**-place, place) + 0.0
    return LeafFunctions(constants, slopes, low, high)


def _link(log_link: bool, coding: Coding | None, column: int) -> Callable[[float, float], float]:
    """Return how a slope of a column is rounded, a function of it and a tolerance."""
    if not log_link:
        return _few_digits
    return partial(short_slope, indicator=coding is not None and bool(coding.indicators[column]))


def _settled(constant: float, slopes: FloatArray, X: FloatArray, coding: Coding | None) -> float:
    """Return the constant with terms that do not vary; ``slopes`` of one leaf are changed."""
    for j in np.flatnonzero(slopes):
        low, high = float(X[:, j].min()), float(X[:, j].max())
        if low == high:
            constant += slopes[j] * low
            slopes[j] = 0.0
        elif coding is not None and coding.hinges[j] and low > 0:
            home = int(coding.homes[j])
            first = coding.firsts[home]
            constant -= slopes[j] * coding.variables[home].knots[j - first - 1]
            slopes[first] += slopes[j]
            slopes[j] = 0.0
    return constant


def _rounded(
    constant: float,
    slopes: FloatArray,
    columns: FloatArray,
    weight: FloatArray,
    allowed: float,
    curved: Sequence[NDArray[np.intp]],
    links: Sequence[Callable[[float, float], float]],
) -> tuple[float, FloatArray]:
    """Return the constant and slopes of a leaf with few digits, from its rows (n_rows, n_terms)."""
    means = np.average(columns, axis=0, weights=weight)
    around = columns - means
    deviations = np.sqrt(np.average(around**2, axis=0, weights=weight))
    for halvings in range(10):
        tolerances = allowed / 2.0**halvings / max(np.sqrt(len(slopes)), 1.0) / deviations
        exact = zip(links, slopes.tolist(), tolerances.tolist(), strict=True)
        few = np.array([short(slope, tolerance) for short, slope, tolerance in exact])
        few = of_one_sign(few, slopes, curved)
        moved = np.sqrt(np.average((around @ (few - slopes)) ** 2, weights=weight))
        if moved <= allowed:
            break
    return constant + float((slopes - few) @ means), few


def _few_digits(value: float, tolerance: float) -> float:
    """The value with the fewest significant digits within the tolerance; zero if that is."""
    texts = (f"{value:.{digits}e}" for digits in range(MOST_DIGITS))
    near = (float(text) for text in texts if abs(float(text) - value) <= tolerance)
    return 0.0 if abs(value) <= tolerance else next(near, float(value))


def _place(allowed: float) -> int:
    """The decimal place, that of hundreds is -2, whose unit is at most ``allowed``."""
    return -int(np.floor(np.log10(max(allowed, 1e-300))))
