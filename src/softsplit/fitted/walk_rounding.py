"""Round the questions of a walk (walk.py) to the decimal numbers that are printed.

Coefficients are divided by that of the weightiest feature and rounded to the fewest
digits, and the cut to the shortest decimal, with which at most ``changed`` of the training rows get
another class. The gate of a question is rounded with it: with the same sum s = sum_j c_tj x_j

    p_t = 1 / (1 + exp(-(s - centre_t) / width_t))       (the other way round for "<")

and so are the class probabilities of the leaves, so that probabilities can be computed from the
print-out as well. Questions on ranks keep the gates of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.walk import (
    CENTRE_STEP,
    DIGITS_TRIED,
    LEVEL_SLOPE,
    MOST_CHANGED,
    MOST_MOVED,
    SHARE_DIGITS,
    TIE,
    WIDTH_DIGITS,
    Arriving,
    Walk,
    arrivals,
)
from softsplit.fitted.walk_choice import Chosen, FixedParts, best_cut, chosen_walk, reached
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import split_scores
from softsplit.tree.scaling import LinearScaling, Scaling


class RoundedQuestion(NamedTuple):
    """One rounded question: coefficients of its features, threshold, and the gate on their sum."""

    coefficients: FloatArray
    bound: float
    centre: float
    width: float


def fit_walk(
    tree: TreeParameters,
    steepness: float,
    scaling: Scaling,
    rows: Arriving,
    gains: FloatArray,
    zero_threshold: float = 0.0,
    *,
    constrained: bool = False,
    monotone: Sequence[NDArray[np.intp]] = (),
    fixed: FixedParts | None = None,
) -> tuple[TreeParameters, Walk]:
    """Choose the walk of a tree on training rows; return the rounded tree and the walk.

    The walk has no counts yet (``Walk.counted``).

    Parameters
    ----------
    tree : TreeParameters
        In scaled units; leaves hold class probabilities.
    gains : array of shape (n_classes, n_classes)
        What predicting k (column) for class y (row) is worth; the identity for equal costs.
    zero_threshold : float
        Weights up to this size are zero.
    constrained : bool
        Whether the tree was trained under class rates. The mixture meets them, so that leaves take
        the class that it predicts for most of their rows, and its gates are not rounded.
    monotone : sequence of int arrays
        Features of each monotone variable, its value and its hinges: rounding keeps the sign of
        all slopes.
    fixed : FixedParts, optional
        What stays as it is.
    """
    chosen = chosen_walk(tree, steepness, rows, gains, constrained=constrained, fixed=fixed)
    scores = split_scores(tree, rows.features)
    rounded, walk = rounded_walk(
        tree, steepness, scaling, rows, scores, chosen, zero_threshold, monotone, fixed
    )
    return (tree if constrained else rounded), walk


def rounded_walk(
    tree: TreeParameters,
    steepness: float,
    scaling: Scaling,
    rows: Arriving,
    scores: FloatArray,
    chosen: Chosen,
    zero_threshold: float,
    monotone: Sequence[NDArray[np.intp]] = (),
    fixed: FixedParts | None = None,
) -> tuple[TreeParameters, Walk]:
    """Round the questions of a tree one after the other, from the root down.

    ``scores`` (n_branches, n_rows) are those of the rows, ``chosen`` the cuts and leaf classes that
    are to be kept; a class for each leaf keeps every row in its leaf.
    """
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    coef, intercept = scaling.splits(tree)
    n_branches, n_features = coef.shape
    printed, bounds = np.zeros(coef.shape), np.zeros(n_branches)
    upwards, ranked = np.ones(n_branches, dtype=bool), np.zeros(n_branches, dtype=bool)
    holds = scores > chosen.cuts[:, None]
    wanted = chosen.classes[arrivals(holds)]
    for t in range(n_branches):
        # 1. The terms of the question, the weightiest first, and the unit that makes its weight 1.
        size = np.where(coef[t] != 0, np.abs(tree.weights[:, t]), 0.0)
        order = np.argsort(-size, kind="stable")
        used = order[size[order] > zero_threshold]
        if not len(used):
            bounds[t] = -1.0 if intercept[t] > chosen.cuts[t] else 1.0
            continue
        given = np.full(len(used), np.nan) if fixed is None else fixed.coefficients[t, used]
        first = 0 if np.all(np.isnan(given)) else int(np.argmax(~np.isnan(given)))
        unit = float(coef[t, used[first]])
        unit = unit if np.isnan(given[first]) else unit / float(given[first])
        exact = coef[t, used] / unit
        # 2. Centre and bound of the sum, in ranks or in the units of the data.
        centre, bound = -intercept[t] / unit, (chosen.cuts[t] - intercept[t]) / unit
        upwards[t], ranked[t] = unit > 0, not scaling.linear
        values = rows.features[used]
        if fixed is not None and not np.isnan(fixed.thresholds[t]):
            ranked[t], bound = fixed.ranked[t], fixed.thresholds[t]
        elif ranked[t] and len(used) == 1 and 0 < bound < 1:
            ranked[t], bound = False, scaling.to_original(int(used[0]), bound)
        if not ranked[t]:
            values = np.array([scaling.restored(int(j), rows.features[j]) for j in used])
        # 3. What it costs a row that arrives here to change sides.
        at = np.flatnonzero(reached(holds, t))
        sides = [
            chosen.classes[arrivals(holds[:, at], 2 * t + side)] == wanted[at] for side in (1, 2)
        ]
        change = (sides[0].astype(float) - sides[1]) * rows.weights[at]
        slack = MOST_CHANGED * float(rows.weights.sum())
        sign, width = (1.0, -1.0)[unit < 0], 1.0 / (steepness * abs(unit))
        # 4. The shortest question that keeps the sides.
        curved = [np.flatnonzero(np.isin(used, own)) for own in monotone]
        curved = [own[np.argsort(used[own])] for own in curved if len(own) > 1]
        question = _question(
            exact, bound, centre, width, sign, values, at, change, slack, given, curved
        )
        if fixed is not None and not np.isnan(fixed.thresholds[t]):
            question = question._replace(bound=fixed.thresholds[t], centre=fixed.centres[t])
        # 5. Where rows go now, and the gate on the printed sum.
        printed[t, used], bounds[t] = question.coefficients, question.bound
        above = sign * (question.coefficients @ values - question.bound)
        holds[t] = above > TIE * abs(question.bound)
        if isinstance(scaling, LinearScaling):
            slope = sign / (steepness * question.width)
            weights[:, t] = 0.0
            weights[used, t] = slope * question.coefficients * scaling.span[used] * n_features
            offset = float(question.coefficients @ scaling.low[used])
            thresholds[t] = slope * (question.centre - offset)
    shares = rounded_shares(tree.leaf_values)
    if fixed is not None:
        shares = np.where(fixed.classes >= 0, tree.leaf_values, shares)
    walk = Walk(printed, bounds, upwards, ranked, np.zeros(shares.shape), chosen.classes)
    return TreeParameters(weights, thresholds, shares), walk


def whole_walk(
    tree: TreeParameters,
    steepness: float,
    rows: Arriving,
    gains: FloatArray,
    *,
    constrained: bool = False,
    fixed: FixedParts | None = None,
) -> tuple[TreeParameters, Walk]:
    """Choose the walk of a tree in points: thresholds are whole numbers of points.

    ``rows`` have points as features, all of one positive weight in their question. The width of a
    gate and its centre in points are rounded as those of any other walk. Arguments are those of
    ``fit_walk``.
    """
    centres = -steepness * tree.thresholds
    slopes = steepness * tree.weights.max(axis=0, initial=0.0) / tree.n_features
    weights, thresholds = np.zeros(tree.weights.shape), tree.thresholds.copy()
    asked, bounds = (tree.weights != 0).T.astype(float), np.zeros(len(thresholds))
    of_questions = np.array([rows.features[line != 0].sum(axis=0) for line in asked])
    scores = (of_questions * slopes[:, None] + centres[:, None]) / steepness
    chosen = chosen_walk(
        tree, steepness, rows, gains, constrained=constrained, fixed=fixed, scores=scores
    )
    for t, (centre, slope) in enumerate(zip(centres.tolist(), slopes.tolist(), strict=True)):
        if not np.any(asked[t]):
            bounds[t] = -1.0 if -tree.thresholds[t] > chosen.cuts[t] else 1.0
            continue
        # 1. Sums of points at the cut; of the whole numbers beside it that which divides alike.
        sums = of_questions[t]
        cut = (steepness * chosen.cuts[t] - centre) / slope
        sides = sums > cut
        low = np.floor(cut + TIE * abs(cut))
        bounds[t] = min(
            (low, low + 1.0), key=lambda whole: rows.weights @ ((sums > whole) != sides)
        )
        if fixed is not None and not np.isnan(fixed.thresholds[t]):
            bounds[t] = fixed.thresholds[t]
        # 2. The gate.
        width = significant(1.0 / slope, WIDTH_DIGITS)
        middle, step = -centre / slope, CENTRE_STEP * width
        middle = shortest(middle, middle - step, middle + step)
        weights[:, t] = asked[t] * tree.n_features / (steepness * width)
        thresholds[t] = middle / (steepness * width)
    shares, none = rounded_shares(tree.leaf_values), np.zeros(len(thresholds), dtype=bool)
    walk = Walk(asked, bounds, ~none, none, np.zeros(shares.shape), chosen.classes)
    return (tree if constrained else TreeParameters(weights, thresholds, shares)), walk


def _question(
    exact: FloatArray,
    bound: float,
    centre: float,
    width: float,
    sign: float,
    values: FloatArray,
    at: NDArray[np.intp],
    change: FloatArray,
    slack: float,
    fixed: FloatArray,
    curved: Sequence[NDArray[np.intp]] = (),
) -> RoundedQuestion:
    """Round one question: the fewest digits that change the class of few rows.

    1. Round coefficients to more and more digits; monotone variables keep the signs of slopes.
    2. Move the threshold with the sums, and cut where the rounded sums are worth most.
    3. Stop when the rows that change their class are worth no more than ``slack``.
    4. Round the threshold within the gap of the cut, and the centre of the gate with it.

    ``at`` are the rows that arrive, ``change`` what going left instead of right is worth for each,
    ``fixed`` coefficients that are not rounded, NaN for the others, ``curved`` the places of the
    value and the hinges of monotone variables.
    """
    sums = exact @ values
    best = np.maximum(change, 0.0).sum()
    for digits in DIGITS_TRIED:
        # 1. Coefficients.
        coefficients = np.array([significant(c, digits) for c in exact])
        coefficients = of_one_sign(coefficients, exact, curved)
        coefficients = np.where(np.isnan(fixed), coefficients, fixed)
        rounded = coefficients @ values
        # 2. Where coefficients were rounded, sums have moved, and so have threshold and centre.
        near = values[:, np.argsort(np.abs(sums - bound))[: max(10, len(sums) // 10)]]
        moved = float(np.mean((coefficients - exact) @ near))
        cut = best_cut(sign * rounded[at], change, sign * (bound + moved))
        # 3. Few enough rows change.
        if best - cut.gain <= slack:
            break
    # 4. Threshold and centre.
    point = cut.nearest(sign * (bound + moved))
    low, high = np.quantile(rounded, [0.25, 0.75])
    loose = MOST_MOVED * max(float(high - low) / 1.35, 1e-3 * float(np.ptp(rounded)))
    threshold = sign * shortest(point, max(cut.low, point - loose), min(cut.high, point + loose))
    step = CENTRE_STEP * width
    middle = centre + moved
    return RoundedQuestion(
        coefficients,
        threshold + 0.0,
        shortest(middle, middle - step, middle + step),
        significant(width, WIDTH_DIGITS),
    )


def of_one_sign(
    coefficients: FloatArray, exact: FloatArray, columns: Sequence[NDArray[np.intp]]
) -> FloatArray:
    """Rounded coefficients of a question whose slopes keep the sign of the exact ones.

    ``columns`` are places of the value and the hinges of each monotone variable among the
    coefficients. A hinge after which the slope would have another sign makes it level instead.
    """
    levelled = coefficients.copy()
    for own in columns:
        sign = np.sign(np.sum(np.cumsum(exact[own])))
        total = 0.0
        for place in own:
            if sign * (total + levelled[place]) < LEVEL_SLOPE * abs(levelled[place]):
                levelled[place] = float(f"{-total:.12g}") + 0.0
            total += levelled[place]
    return levelled


def significant(value: float, digits: int) -> float:
    """A number rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def shortest(near: float, low: float, high: float) -> float:
    """The shortest decimal number in [low, high), the closest to ``near`` of that length.

    ``low`` itself may be taken: a sum that equals the threshold does not exceed it.
    """
    largest = max(abs(low), abs(high), abs(near))
    if not np.isfinite(largest) or largest == 0.0:
        return near if np.isfinite(near) else 0.0
    exponent = int(np.floor(np.log10(largest))) + 1
    edge = TIE * largest
    for power in range(exponent, exponent - 17, -1):
        short = float(f"{round(near / 10.0**power)}e{power}")
        if low - edge <= short < high and (short != 0.0 or power < exponent - 2):
            return short
    return near


def rounded_shares(leaf_values: FloatArray) -> FloatArray:
    """Class probabilities of leaves: the smaller ones rounded, the largest is the rest."""
    shares = np.array(
        [[significant(c, SHARE_DIGITS) for c in column] for column in leaf_values.T]
    ).T
    largest = np.argmax(leaf_values, axis=0)
    columns = np.arange(shares.shape[1])
    shares[largest, columns] = 0.0
    shares[largest, columns] = np.round(1.0 - shares.sum(axis=0), 15)
    return shares
