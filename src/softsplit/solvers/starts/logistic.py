"""Ridge logistic regression by Newton steps, compiled: how a split is fitted to two sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsplit.engines.products import upper_products
from softsplit.support.compiling import compiled, compiled_uncounted
from softsplit.support.linear_algebra import add_line, solve_damped, sum_of_products
from softsplit.tree.routing import open_gates


class LogisticConstants(NamedTuple):
    """Constants that compiled code knows at compile time."""

    newton_steps: int = 6  # the start of a descent needs few digits
    most_features: int = 300  # the cost of a regression grows with their square
    log_odds_apart: float = 4.0  # between the means of both sides, for more features than that


LOGISTIC = LogisticConstants()


@compiled
def fitted_split(features, target, weight, ridge, steepness):  # type: ignore[no-untyped-def]
    """Return weights and threshold, in the box, of a split that sends rows of target 1 left.

    Steepness times the score of a row is the log-odds of the regression, as far as the box
    allows it. Shapes: features (n_features, n_rows), result (n_features + 1,).
    """
    n_features = features.shape[0]
    if n_features > LOGISTIC.most_features:
        solution = mean_difference(features, target, weight, ridge)
    else:
        solution = ridge_logistic(features, target, weight, ridge, LOGISTIC.newton_steps)
    largest = 1e-12
    for j in range(n_features):
        largest = max(largest, abs(solution[j]))
    scale = min(n_features / steepness, 1.0 / largest)
    scale = min(scale, n_features / max(abs(solution[n_features]), 1e-12))
    for j in range(n_features + 1):
        solution[j] *= scale
    solution[n_features] /= n_features
    return solution


@compiled
def mean_difference(features, target, weight, ridge):  # type: ignore[no-untyped-def]
    """Return a diagonal linear discriminant between the two sides, in time linear in the features.

    Coefficients are (mean left - mean right) / (variance + ridge), scaled so that the two means
    are four apart in log-odds; the threshold lies half-way between them. Where only one side has
    rows of positive weight, all rows go there.
    """
    n_features, n_rows = features.shape
    total = np.zeros(2)
    for i in range(n_rows):
        total[int(target[i])] += weight[i]
    solution = np.zeros(n_features + 1)
    if total[0] == 0.0 or total[1] == 0.0:
        solution[n_features] = 2.0 if total[1] == 0.0 else -2.0
        return solution
    middle = np.empty(n_features)
    apart = 0.0
    for j in range(n_features):
        left, right, square = 0.0, 0.0, 0.0
        for i in range(n_rows):
            value = weight[i] * features[j, i]
            square += value * features[j, i]
            left += value * target[i]
            right += value * (1.0 - target[i])
        left, right = left / total[1], right / total[0]
        middle[j] = 0.5 * (left + right)
        spread = max(square / (total[0] + total[1]) - middle[j] * middle[j], 0.0)
        solution[j] = (left - right) / (spread + ridge)
        apart += solution[j] * (left - right)
    for j in range(n_features):
        solution[j] *= LOGISTIC.log_odds_apart / max(abs(apart), 1e-12)
        solution[n_features] += solution[j] * middle[j]
    return solution


@compiled
def ridge_logistic(features, target, weight, ridge, steps):  # type: ignore[no-untyped-def]
    """Return coefficients and threshold of a ridge logistic regression, by a few Newton steps.

    Minimises sum_i weight_i log(1 + exp(-+ (b . x_i - threshold))) + ridge |b|^2 / 2; rows of
    weight zero are left out. The threshold (last entry) is hardly penalised.
    """
    n_features, n_rows = features.shape
    width = n_features + 1
    count = 0
    for i in range(n_rows):
        if weight[i] > 0.0:
            count += 1
    design = np.empty((width, count))
    kept = np.empty(count, dtype=np.int64)
    k = 0
    for i in range(n_rows):
        if weight[i] > 0.0:
            kept[k] = i
            k += 1
    for j in range(n_features):
        for k in range(count):
            design[j, k] = features[j, kept[k]]
    for k in range(count):
        design[n_features, k] = -1.0
    ones, memory = np.ones(width), np.zeros(1)
    solution, slope, matrix = np.zeros(width), np.empty(width), np.empty((width, width))
    weighted, room = np.empty((width, count)), np.empty((5, count))
    for k in range(count):
        room[4, k] = weight[kept[k]]
    bits = room[3].view(np.int64)
    for _ in range(steps):  # solution += (H + ridge)^-1 (slope - ridge solution)
        _slope_and_matrix(design, target, kept, room, bits, solution, weighted, slope, matrix)
        for j in range(width):
            penalty = ridge if j < n_features else 1e-8
            matrix[j, j] += penalty
            slope[j] -= penalty * solution[j]
        if not solve_damped(matrix, slope, ones, memory):
            break
        for j in range(width):
            solution[j] += slope[j]
    return solution


@compiled_uncounted
def _slope_and_matrix(design, target, kept, room, bits, solution, weighted, slope, matrix):  # type: ignore[no-untyped-def]
    """Write the gradient of the log-likelihood to ``slope`` and minus its Hessian to ``matrix``.

    Only entries on and above the diagonal are written.

    ``room`` (5, n_rows): scores, gates of both sides, scratch, and the row weights.
    """
    width, n_rows = design.shape
    score, left, right, powers, weights = room[0], room[1], room[2], room[3], room[4]
    for k in range(n_rows):
        score[k] = 0.0
    for j in range(width):
        add_line(solution[j], design[j], score)
    open_gates(score, 0, n_rows, 1.0, left, right, powers, bits)
    # residuals weight (y - p) and curvatures weight p (1 - p), in place of scores and gates
    for k in range(n_rows):
        score[k] = weights[k] * (target[kept[k]] - left[k])
    for k in range(n_rows):
        left[k] = weights[k] * left[k] * right[k]
    for j in range(width):
        _product(design[j], left, weighted[j])
        slope[j] = sum_of_products(design[j], score)
    upper_products(weighted, design, matrix)


@compiled_uncounted
def _product(line, factor, result):  # type: ignore[no-untyped-def]
    for k in range(result.size):
        result[k] = line[k] * factor[k]
